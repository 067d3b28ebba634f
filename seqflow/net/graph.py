"""Net: a straight-line program of ops over named tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seqflow import registry
from seqflow.errors import NetError, UnknownOpError, nearest
from seqflow.net.inference import NetInference, infer_net
from seqflow.net.parser import Constant, Operand, Place, Program, Reference, Statement, fail, parse
from seqflow.registry import OpDef
from seqflow.shape import DimensionLike
from seqflow.signature import Repeated, RowSpace, bind_rows
from seqflow.tensor import TensorSpec


@dataclass(frozen=True, slots=True)
class Step:
    """One call of an op, its operands matched to the op's inputs and attributes."""

    op: OpDef
    inputs: Mapping[str, Operand]
    attributes: Mapping[str, Any]
    results: tuple[str, ...]
    """The tensors its outputs become, one an output."""
    statement: Statement

    @property
    def uses(self) -> tuple[str, ...]:
        """The tensors it reads."""
        return tuple(operand.name for operand in self.inputs.values() if isinstance(operand, Reference))

    def note(self, given: Mapping[str, str]) -> str:
        """What an exception of this step is told: the statement, and what each input was."""
        inputs = ", ".join(f"{name} {what}" for name, what in given.items())
        return f"in the net, line {self.statement.place.line}: {self.statement}\n  given {inputs}"


class Net:
    """A net, from its text.

        ids, n = truncate(doc.values, doc.lengths, max_length=512)
        x, mask = pad(ids, n, value=0)
        return x, mask

    Each statement calls an op on names and literals. Names are assigned once; `_` throws a result away; one
    name for several outputs binds a group (`t = truncate(…)`, then `t.rows`, `t.kept`). Statements may stand in
    any order: they run in topological order. Free names are the inputs. `return` names the outputs; without it
    they are all names the net assigns and all tensors of the record that nothing consumed.

    Raises NetError, with line, column and a caret, for text that is malformed, unknown ops, arguments an op does
    not take, names assigned twice and cycles.
    """

    def __init__(self, text: str, constants: Mapping[str, Any] | None = None) -> None:
        self.text = text
        self.constants: Mapping[str, Any] = dict(constants or {})
        program = parse(text)
        self.steps: tuple[Step, ...] = _ordered(program, [_step(program, s) for s in program.statements])
        self.assigned: tuple[str, ...] = tuple(n for step in self.steps for n in step.results if n != "_")
        self.returned = self._returned(program)
        _refuse_groups(program, self.assigned)
        unused = next((name for name in self.constants if name not in self._free), None)
        if unused is not None:
            raise NetError(f"net: nothing uses the constant {unused!r}{nearest(unused, self._free)}")

    @cached_property
    def _free(self) -> tuple[str, ...]:
        """Names the net reads but does not assign, by first appearance."""
        assigned = set(self.assigned)
        read = [name for step in self.steps for name in step.uses] + list(self.returned or ())
        return tuple(dict.fromkeys(name for name in read if name not in assigned))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tensors the net takes from the record, by first appearance."""
        return tuple(name for name in self._free if name not in self.constants)

    def bind(self, **constants: Any) -> "Net":
        """The same net with some of its inputs fixed: tables, weights. They are not copied."""
        return Net(self.text, {**self.constants, **constants})

    def outputs(self, available: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The names of the results, for a record that has the tensors `available`."""
        if self.returned is not None:
            return self.returned
        consumed = {name for step in self.steps for name in step.uses}
        return (*(name for name in available if name not in consumed), *self.assigned)

    def rows(self, spaces: Mapping[str, RowSpace]) -> dict[str, RowSpace]:
        """Whose rows axis 0 of each tensor holds, as far as the signatures say; `spaces` has those of the inputs."""
        known = dict(spaces)
        for step in self.steps:
            given = {name: getattr(operand, "name", None) for name, operand in step.inputs.items()}
            origin = f"{step.op.name}, line {step.statement.place.line}"
            spaces_found = bind_rows(step.op.signature, given, step.results, known, origin)
            for name, space in zip(step.results, spaces_found, strict=True):
                if space is not None:
                    known[name] = space
        return known

    def infer(
        self, specs: Mapping[str, TensorSpec], limits: Mapping[DimensionLike, int] | None = None
    ) -> NetInference:
        """The spec of every tensor, for inputs of these specs; no data is needed.

        `limits` says of further sizes what they never exceed, such as `{"max(doc.lengths)": 512}`.

        OpTypeError, ShapeError and LodError come from the op that cannot take its inputs, with a note that names
        the statement. What could be neither proved nor refused is among the result's `guards`; the ops check it
        when they run.
        """
        return infer_net(self, specs, limits)

    def _returned(self, program: Program) -> tuple[str, ...] | None:
        if program.returned is None:
            return None
        names = [reference.name for reference in program.returned]
        for i, reference in enumerate(program.returned):
            if reference.name in names[:i]:
                fail(program.text, reference.place, f"{reference.name} is returned twice")
        return tuple(names)

    def __str__(self) -> str:
        lines = [str(step.statement) for step in self.steps]
        return "\n".join(lines + ([f"return {', '.join(self.returned)}"] if self.returned else []))

    def _repr_html_(self) -> str:
        from seqflow.net.drawing import html

        return html(self)

    def __repr__(self) -> str:
        return f"Net({str(self)!r})"


def _refuse_groups(program: Program, assigned: tuple[str, ...]) -> None:
    """NetError where a group of results is used as if it were one tensor."""
    operands = [operand for statement in program.statements for operand in statement.operands]
    for reference in (*operands, *(program.returned or ())):
        name = getattr(reference, "name", None)
        members = [other for other in assigned if name is not None and other.startswith(f"{name}.")]
        if members and name not in assigned:
            fail(program.text, reference.place, f"{name} is a group, expected one of {', '.join(members)}")


def _step(program: Program, statement: Statement) -> Step:
    """Match a statement to its op's signature."""
    place = statement.place
    try:
        op = registry.get(statement.op)
    except UnknownOpError as error:
        message, _, advice = str(error).partition("\n  ")
        fail(program.text, place, message, advice)
    inputs, attributes = _match_operands(program, statement, op)
    return Step(op, inputs, attributes, _results(program, statement, op), statement)


def _match_operands(
    program: Program, statement: Statement, op: OpDef
) -> tuple[dict[str, Operand], dict[str, Any]]:
    if any(isinstance(item, Repeated) for item in op.signature.inputs):
        fail(program.text, statement.place, f"{op.name} takes lists of tensors, which a net cannot write yet")
    names = [argument.name for argument in op.signature.input_arguments]
    if len(statement.arguments) > len(names):
        place = statement.arguments[len(names)].place
        found = f"{op.name} takes {len(names)} inputs, found {len(statement.arguments)}"
        fail(program.text, place, found, f"{op.signature}; attributes are given by keyword")
    inputs = dict(zip(names, statement.arguments, strict=False))
    attributes: dict[str, Any] = {}
    known = {attribute.name: attribute for attribute in op.attributes}
    for name, operand in statement.keywords:
        if name in inputs:
            fail(program.text, operand.place, f"{op.name}: {name} is given twice")
        if name in names:
            inputs[name] = operand
        elif name in known:
            attributes[name] = _attribute(program, op, name, operand)
        else:
            guess = nearest(name, [*names, *known])
            fail(program.text, operand.place, f"{op.name} takes no {name!r}{guess}", str(op.signature))
    required = [argument.name for argument in op.signature.input_arguments if not argument.optional]
    required += [attribute.name for attribute in op.attributes if attribute.required]
    missing = next((name for name in required if name not in inputs and name not in attributes), None)
    if missing:
        fail(program.text, statement.place, f"{op.name} needs {missing!r}", str(op.signature))
    return inputs, attributes


def _attribute(program: Program, op: OpDef, name: str, operand: Operand) -> Any:
    if not isinstance(operand, Constant):
        fail(program.text, operand.place, f"{op.name}: {name} is {operand}, expected a literal")
    attribute = next(attribute for attribute in op.attributes if attribute.name == name)
    try:
        return attribute.check(operand.value)
    except ValueError as error:
        fail(program.text, operand.place, f"{op.name}: {error}")


def _results(program: Program, statement: Statement, op: OpDef) -> tuple[str, ...]:
    targets, outputs = statement.targets, op.output_names
    if len(targets) == 1 and len(outputs) > 1:
        group = targets[0].name
        return tuple("_" if group == "_" else f"{group}.{name}" for name in outputs)
    if len(targets) != len(outputs):
        place = targets[0].place if targets else statement.place
        found = f"{op.name} has {len(outputs)} outputs ({', '.join(outputs)}), found {len(targets)} names"
        fail(program.text, place, found, str(op.signature))
    return tuple(target.name for target in targets)


def _ordered(program: Program, steps: list[Step]) -> tuple[Step, ...]:
    """The steps in topological order: what only checks as early as it can, the rest as written if possible."""
    producer: dict[str, Step] = {}
    for step in steps:
        for name in step.results:
            if name in producer and name != "_":
                place = _target_place(step, name)
                first = producer[name].statement.place.line
                fail(program.text, place, f"{name} is assigned already, in line {first}")
            producer[name] = step
    done: dict[int, Step] = {}
    for step in sorted(steps, key=lambda step: bool(step.results)):  # checks first: others may rely on them
        _visit(program, step, producer, done)
    return tuple(done.values())


def _visit(program: Program, start: Step, producer: Mapping[str, Step], done: dict[int, Step]) -> None:
    """Depth first, on a stack of its own: nets may be long."""
    stack, open_steps = [start], {id(start)}
    while stack:
        step = stack[-1]
        needed = [producer[name] for name in step.uses if name in producer and id(producer[name]) not in done]
        if id(step) in done or not needed:
            done.setdefault(id(step), step)
            open_steps.discard(id(step))
            stack.pop()
        elif id(needed[0]) in open_steps:
            chain = ", ".join(", ".join(step.results) for step in stack)
            fail(program.text, step.statement.place, f"{step.statement} needs its own result ({chain})")
        else:
            stack.append(needed[0])
            open_steps.add(id(needed[0]))


def _target_place(step: Step, name: str) -> Place:
    targets = step.statement.targets
    return next((target.place for target in targets if target.name == name), targets[0].place)
