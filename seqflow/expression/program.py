"""Compiles a syntax tree to a straight-line program, and runs it block by block.

Compiling folds calls of literals, merges common subexpressions and turns pow(x, 2) into square. Running goes through
the leading axis in blocks that stay in the processor's cache: each step writes to a small buffer, which is reused
after its last reader; the last step writes directly to the result.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from seqflow.errors import ExpressionError
from seqflow.expression.functions import (
    FAILURES,
    DType,
    Function,
    Kernel,
    Refusal,
    Value,
    as_operand,
    broadcast,
    by_name,
    check_out,
    dtype_of,
)
from seqflow.expression.parser import Call, Literal, Operand, Parsed, postorder, refuse
from seqflow.kernels.arrays import Array
from seqflow.parsing.lexer import Token

BLOCK = 131_072
"""Elements of a block."""
SMALL = 16_384
"""Most elements of a result that is computed as one block."""
_PLANS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """`slot = function(*arguments)`. The first slots hold the inputs, the others constants and results of steps."""

    function: Function
    arguments: tuple[int, ...]
    slot: int
    token: Token


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A step with its kernel, for operands of known dtypes."""

    step: Instruction
    kernel: Kernel
    dtype: np.dtype[Any]
    register: int


@dataclass(frozen=True, slots=True, eq=False)
class BlockPlan:
    """Execution plan of a program for one set of input dtypes."""

    dtype: np.dtype[Any]
    scalars: tuple[Instruction, ...]
    """Steps on Python numbers only."""
    steps: tuple[Planned, ...]
    """Steps on arrays; the last one computes the result, unless that is a number or an input."""
    registers: tuple[np.dtype[Any], ...]
    elementwise: bool
    """Whether each step of `steps` depends on an input that is an array."""


@dataclass(eq=False)
class Program:
    """A compiled expression."""

    text: str
    inputs: tuple[str, ...]
    constants: dict[int, Value]
    steps: tuple[Instruction, ...]
    result: int
    """Slot of the result."""
    _plans: dict[tuple[DType, ...], BlockPlan] = field(default_factory=dict, repr=False)

    @cached_property
    def used(self) -> tuple[int, ...]:
        """Inputs that the program reads; operand numbers may have gaps."""
        read = {slot for step in self.steps for slot in step.arguments} | {self.result}
        return tuple(slot for slot in range(len(self.inputs)) if slot in read)

    @cached_property
    def rest(self) -> list[Value | None]:
        """Values of the slots after the inputs, before the first step: constants, and None for results."""
        first = len(self.inputs)
        return [self.constants.get(first + i) for i in range(len(self.constants) + len(self.steps))]

    def plan(self, dtypes: tuple[DType, ...]) -> BlockPlan:
        """Return the plan for these input dtypes; raise ExpressionError when a function does not take them."""
        found = self._plans.get(dtypes)
        if found is None:
            if len(self._plans) >= _PLANS:  # a caller with ever new dtypes must not fill the memory
                self._plans.clear()
            found = self._plans[dtypes] = _plan(self, dtypes)
        return found

    def describe(self, slot: int) -> str:
        """Return the name of a slot for messages."""
        if slot < len(self.inputs):
            return self.inputs[slot]
        if slot in self.constants:
            return str(self.constants[slot])
        return next(f"the result of {step.function.name}" for step in self.steps if step.slot == slot)

    def fail(self, step: Instruction, failure: Exception) -> NoReturn:
        """Raise ExpressionError at the place of a step in the text, with the names of its operands."""
        why = step.function.explain(failure, [self.describe(slot) for slot in step.arguments])
        refuse(self.text, step.token.start, why)


def compile_tree(parsed: Parsed) -> Program:
    """Return the program of a parsed expression; raise ExpressionError when a call of literals has no value."""
    made: dict[tuple[Any, ...], int] = {}
    constants: dict[int, Value] = {}
    steps: list[Instruction] = []
    stack: list[int] = []
    first = len(parsed.inputs)

    def constant(value: Value) -> int:
        number = value.item() if isinstance(value, np.ndarray) else value
        # by repr: 0.0 and -0.0 are equal but differ, and NaN is not equal to itself
        slot = made.setdefault((str(dtype_of(value)), repr(number)), first + len(made))
        constants[slot] = value
        return slot

    for node in postorder(parsed.tree):
        match node:
            case Operand(index=index):
                stack.append(index)
            case Literal(value=value):
                stack.append(constant(value))
            case Call(function=function, token=token):
                arguments = tuple(stack[-function.arity :])
                del stack[-function.arity :]
                if all(slot in constants for slot in arguments):
                    values = [constants[slot] for slot in arguments]
                    stack.append(constant(_fold(parsed.text, token, function, values)))
                    continue
                # np.square takes half the time of np.power, and less of integers
                if function.of_two and _is_two(constants.get(arguments[1])):
                    function, arguments = by_name[function.of_two], arguments[:1]
                slot = made.setdefault((function.name, *arguments), first + len(made))
                if not steps or slot > steps[-1].slot:  # an earlier slot is a common subexpression
                    steps.append(Instruction(function, arguments, slot, token))
                stack.append(slot)
    return Program(parsed.text, parsed.inputs, constants, tuple(steps), stack.pop())


def _is_two(value: Value | None) -> bool:
    """Return whether a value is the integer 2; not 2.0, which turns integers into floats."""
    return type(value) is int and value == 2


def _fold(text: str, token: Token, function: Function, values: Sequence[Value]) -> Value:
    """Return the value of a call of constants; a Python number if all of them are Python numbers."""
    try:
        return function.value(values)
    except FAILURES as failure:
        refuse(text, token.start, function.explain(failure, [str(value) for value in values]))


def _plan(program: Program, inputs: tuple[DType, ...]) -> BlockPlan:
    dtypes: dict[int, DType] = dict(enumerate(inputs))
    dtypes.update((slot, dtype_of(value)) for slot, value in program.constants.items())
    scalars: list[Instruction] = []
    steps: list[tuple[Instruction, Kernel, np.dtype[Any]]] = []
    arrays = {slot for slot, dtype in enumerate(inputs) if not isinstance(dtype, type)}
    for step in program.steps:
        operands = [dtypes[slot] for slot in step.arguments]
        try:
            dtype = step.function.result(operands)
        except Refusal as failure:
            program.fail(step, failure)
        dtypes[step.slot] = dtype
        if isinstance(dtype, type):
            scalars.append(step)
            continue
        steps.append((step, step.function.kernel_for(operands), dtype))
        # a cast of a number is an array, too, but its shape is not that of an input
        if not arrays.isdisjoint(step.arguments):
            arrays.add(step.slot)
    numbers, registers = _allocate(steps)
    planned = tuple(Planned(*item, number) for item, number in zip(steps, numbers, strict=True))
    result = np.dtype(dtypes[program.result]).newbyteorder("=")
    elementwise = bool(planned) and all(step.slot in arrays for step, _, _ in steps)
    return BlockPlan(result, tuple(scalars), planned, registers, elementwise)


def _allocate(
    steps: Sequence[tuple[Instruction, Kernel, np.dtype[Any]]],
) -> tuple[list[int], tuple[np.dtype[Any], ...]]:
    """Return the number of each step's register, and the registers' dtypes.

    A register is used again after its last reader. A ufunc may write over one of its operands; other kernels write
    before they have read all of them.
    """
    last = {slot: i for i, (step, _, _) in enumerate(steps) for slot in step.arguments}
    held: dict[int, int] = {}
    registers: list[np.dtype[Any]] = []
    free: dict[np.dtype[Any], list[int]] = {}
    numbers: list[int] = []
    for i, (step, _, dtype) in enumerate(steps):
        done = [held.pop(slot) for slot in set(step.arguments) if slot in held and last[slot] == i]
        in_place = isinstance(step.function.kernel, np.ufunc)
        number = next((r for r in done if in_place and registers[r] == dtype), -1)
        if number < 0 and free.get(dtype):
            number = free[dtype].pop()
        elif number < 0:
            number = len(registers)
            registers.append(dtype)
        for register in done:
            if register != number:
                free.setdefault(registers[register], []).append(register)
        held[step.slot] = number
        numbers.append(number)
    return numbers, tuple(registers)


def run(program: Program, operands: Sequence[Any], out: Array | None = None) -> Array:
    """Return the program's result on its inputs, in `out` if it is given.

    Raises ExpressionError for inputs that a function does not take, for shapes that do not broadcast and for an `out`
    of another shape or dtype.
    """
    try:
        inputs = [as_operand(name, value) for name, value in zip(program.inputs, operands, strict=True)]
    except ExpressionError as error:
        raise ExpressionError(f"expression: {error}") from None
    plan = program.plan(tuple([dtype_of(value) for value in inputs]))
    shapes = {x.shape for i in program.used if isinstance(x := inputs[i], np.ndarray)}
    alike = len(shapes) == 1
    shape = shapes.pop() if alike else _shape(program, inputs)
    fresh = True
    if out is None:
        out = np.empty(shape, plan.dtype)
    else:
        try:
            check_out(out, shape, plan.dtype)
        except ExpressionError as error:
            raise ExpressionError(f"expression: {error}") from None
        fresh = not _shared(inputs, out)
        if not (fresh or _may_write(plan, inputs, out)):  # compute apart, then copy
            np.copyto(out, run(program, inputs))
            return out
    # floats never warn; kernels that divide integers set a state of their own, and raise
    with np.errstate(all="ignore"):
        if alike and plan.elementwise and not plan.scalars and out.size <= SMALL:
            _run_small(program, plan, inputs, out, fresh)
        else:
            _Run(program, plan, inputs, out, fresh).run()
    return out


def _shape(program: Program, inputs: Sequence[Value]) -> tuple[int, ...]:
    arrays = {program.inputs[i]: np.shape(inputs[i]) for i in program.used}
    try:
        return broadcast(list(arrays.values()))
    except ExpressionError:
        found = ", ".join(f"{name} {shape}" for name, shape in arrays.items() if shape)
        raise ExpressionError(f"expression: the shapes of its inputs do not broadcast: {found}") from None


def _shared(inputs: Sequence[Value], out: Any) -> list[Array]:
    """Return the inputs that may share memory with `out`."""
    return [x for x in inputs if isinstance(x, np.ndarray) and np.may_share_memory(x, out)]


def _may_write(plan: BlockPlan, inputs: Sequence[Value], out: Array) -> bool:
    """Return whether the result may be written over the inputs: each element must be read before it is written."""
    if not plan.steps:
        return False
    address = out.__array_interface__["data"][0]
    return isinstance(plan.steps[-1].step.function.kernel, np.ufunc) and all(
        x.__array_interface__["data"][0] == address
        and (x.shape, x.strides, x.dtype) == (out.shape, out.strides, out.dtype)
        for x in _shared(inputs, out)
    )


def _run_small(program: Program, plan: BlockPlan, inputs: list[Value], out: Array, fresh: bool) -> None:
    """Run all steps at once; every array must have the shape of the result."""
    values: list[Any] = inputs + program.rest
    buffers = [np.empty(out.shape, dtype) for dtype in plan.registers]
    last = planned = plan.steps[-1]
    if fresh:
        buffers[last.register] = out
    try:
        for planned in plan.steps:
            step = planned.step
            values[step.slot] = target = out if planned is last else buffers[planned.register]
            planned.kernel(*[values[slot] for slot in step.arguments], out=target)
    except FAILURES as failure:
        program.fail(planned.step, failure)


class _Run:
    """One evaluation; slots that depend on the rows hold one block at a time, all others the whole value."""

    def __init__(
        self, program: Program, plan: BlockPlan, inputs: list[Value], out: Array, fresh: bool
    ) -> None:
        self.program, self.plan, self.out, self.fresh = program, plan, out, fresh
        self.target, inputs = _flatten(program, inputs, out)
        self.values: list[Any] = inputs + program.rest
        self.by_rows: dict[int, Array] = {}
        for slot in program.used:
            value = inputs[slot]
            if isinstance(value, np.ndarray) and self.has_rows(value.shape):
                self.by_rows[slot] = value
        self.step: Instruction | None = None

    def has_rows(self, shape: tuple[int, ...]) -> bool:
        # an array with fewer axes, or with axis 0 of size 1, is broadcast: each block uses all of it
        return len(shape) == self.target.ndim and shape[:1] == self.target.shape[:1]

    def run(self) -> None:
        try:
            for step in self.plan.scalars:
                self.step = step
                self.values[step.slot] = step.function.value([self.values[slot] for slot in step.arguments])
            shapes = self.run_once()
            if self.plan.steps and self.program.result in shapes:
                self.run_blocks(shapes)
            else:
                self.step = None
                np.copyto(self.out, self.values[self.program.result])
        except FAILURES as failure:
            if self.step is None:
                raise ExpressionError(f"expression: {failure}") from None
            self.program.fail(self.step, failure)

    def run_once(self) -> dict[int, tuple[int, ...]]:
        """Run the steps that do not depend on the rows; return the whole shapes of the slots that do."""
        shapes = {slot: value.shape for slot, value in self.by_rows.items()}
        for planned in self.plan.steps:
            self.step = step = planned.step
            shape = broadcast([shapes.get(slot) or np.shape(self.values[slot]) for slot in step.arguments])
            if any(slot in shapes for slot in step.arguments):
                shapes[step.slot] = shape
            else:
                self.values[step.slot] = value = np.empty(shape, planned.dtype)
                planned.kernel(*[self.values[slot] for slot in step.arguments], out=value)
        return shapes

    def run_blocks(self, shapes: dict[int, tuple[int, ...]]) -> None:
        """Run the steps that depend on the rows, block by block."""
        target, values = self.target, self.values
        block = self.block_length()
        in_target = self.in_target(shapes)
        buffers = self.buffers(shapes, block, in_target)
        steps = [planned for planned in self.plan.steps if planned.step.slot in shapes]
        for start in range(0, target.shape[0], block):
            stop = min(start + block, target.shape[0])
            result = target[start:stop]
            for slot, value in self.by_rows.items():
                values[slot] = value[start:stop]
            for planned in steps:
                self.step = step = planned.step
                buffer = result if step.slot in in_target else buffers[step.slot][: stop - start]
                values[step.slot] = buffer
                planned.kernel(*[values[slot] for slot in step.arguments], out=buffer)

    def in_target(self, shapes: dict[int, tuple[int, ...]]) -> set[int]:
        """Return the slots that are written directly to the result: the last one, and those with its register."""
        if not self.fresh:
            return {self.program.result}
        register, shape = self.plan.steps[-1].register, self.target.shape
        return {
            planned.step.slot
            for planned in self.plan.steps
            if planned.register == register and shapes.get(planned.step.slot) == shape
        }

    def block_length(self) -> int:
        """Return the number of rows to compute at once."""
        size: int = self.target.size
        rows: int = max(1, self.target.shape[0])
        # a single ufunc reads and writes each element once: blocks would save no traffic of memory
        alone = len(self.plan.steps) == 1 and isinstance(self.plan.steps[0].kernel, np.ufunc)
        whole = size <= SMALL or alone
        return rows if whole else max(1, BLOCK * rows // size)

    def buffers(
        self, shapes: dict[int, tuple[int, ...]], block: int, in_target: set[int]
    ) -> dict[int, Array]:
        """Return buffers for one block of each slot outside the result; slots of one register share memory."""
        size = block * math.prod(self.target.shape[1:])
        memory: dict[int, Array] = {}
        buffers = {}
        for planned in self.plan.steps:
            slot, register = planned.step.slot, planned.register
            if slot in shapes and slot not in in_target:
                if register not in memory:
                    memory[register] = np.empty(size, planned.dtype)
                shape = (block, *shapes[slot][1:])
                buffers[slot] = memory[register][: math.prod(shape)].reshape(shape)
        return buffers


def _flatten(program: Program, inputs: list[Value], out: Array) -> tuple[Array, list[Value]]:
    """Return the result and the inputs, flattened to one axis if all are contiguous or single numbers."""
    arrays: dict[int, Array] = {}
    for slot in program.used:
        value = inputs[slot]
        if isinstance(value, np.ndarray) and (value.ndim or not out.ndim):
            arrays[slot] = value
    shaped = all(x.shape == out.shape and x.flags.c_contiguous for x in arrays.values())
    if out.ndim == 1 or not (shaped and out.flags.c_contiguous):
        return out, inputs
    return out.reshape(-1), [arrays[i].reshape(-1) if i in arrays else x for i, x in enumerate(inputs)]
