"""Calls of ops with Sequences: make or find the plan for the call, run the op, and attach LoD to its results."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from inspect import Signature as PythonSignature
from typing import Any

import numpy as np

from seqflow.errors import LodError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.lod import LoD
from seqflow.lod_propagation.rule import (
    CallPlan,
    Details,
    Feed,
    Kind,
    OuterLevels,
    OutputRule,
    Slot,
    Stack,
    brought_lengths,
    gives_sequence,
    label,
    make_plan,
    name_of,
)
from seqflow.lod_propagation.tensors import call_on_tensors, dtype_of, is_tensor, tensor_among
from seqflow.registry import OpDef
from seqflow.signature.bind_arrays import as_array
from seqflow.signature.bind_rows import frozen
from seqflow.signature.language import Rest

_MOST_PLANS = 512
_LONGEST_VALUE = 64
"""Arrays with more elements are not passed to inference as values: they are not shapes."""


class Lifted:
    """An op for Sequences. Lengths that come with a Sequence are omitted; passed by keyword, they must be equal to
    it.

    `sequence` is the class of values with a LoD, for inputs and results.
    """

    def __init__(self, op: OpDef, sequence: type[Any]) -> None:
        self.op = op
        self.sequence = sequence
        self.gives_sequence = gives_sequence(op)
        arguments = op.signature.input_arguments
        self.brought = brought_lengths(op)
        self.positional = tuple(a.name for a in arguments if a.name not in self.brought)
        self.inputs = frozenset(a.name for a in arguments)
        self.lists = op.signature.listed
        self.required = tuple(a.name for a in arguments if not a.optional and a.name not in self.brought)
        self.detailed = op.shape is not None
        self.repeats = all(one.dims == (Rest("_"),) for one in (*arguments, *op.signature.output_arguments))
        """Whether sizes of 1 are repeated, as in the functions of expressions."""
        self.many_outputs = op.signature.gives_lists
        self.plans: dict[Any, CallPlan] = {}
        self.__name__ = self.__qualname__ = op.name
        self.__doc__ = op.doc
        self.__signature__ = _python_signature(self)

    def __repr__(self) -> str:
        return f"<auto {self.op.name}: {self.op.signature}>"

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        slots, given = self._bind(args, named)
        attributes = self.op.check_attributes(given) if given or self.op.attributes else given
        lods: dict[Slot, LoD] = {}
        plan = self._plan(slots, lods, attributes)
        if plan.missing:
            raise self._missing(plan.missing[0], slots, lods)
        if plan.equal or plan.compared or plan.differing:
            self._check(plan, slots, lods)
        arrays = [
            [_fed(one, slots, lods) for one in feed] if type(feed) is tuple else _fed(feed, slots, lods)  # type: ignore[arg-type]
            for feed in plan.inputs
        ]
        tensor = tensor_among(arrays)
        if tensor is not None:
            result = call_on_tensors(self.op.name, arrays, attributes, tensor, self.op.variadic)
        else:
            result = self.op.call(*(arrays[0] if self.op.variadic else arrays), **attributes)
        if plan.failure is not None:
            raise plan.failure
        return self._with_lods(result, plan, slots, lods) if plan.outputs else result

    # Arguments

    def _bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[Slot, Any], dict[str, Any]]:
        """Return all tensors that were passed, and the attributes."""
        if self.op.variadic:
            return {(self.positional[0], i): one for i, one in enumerate(args)}, named
        if len(args) > len(self.positional):
            supplied = ", ".join(sorted(self.brought))
            advice = f"\n  {supplied} comes with the Sequence, or is given by keyword" if supplied else ""
            takes = f"{len(self.positional)} ({', '.join(self.positional)})"
            raise OpTypeError(f"{self.op.name}: found {len(args)} inputs, expected {takes}{advice}")
        inputs: dict[Slot, Any] = dict(zip(self.positional, args, strict=False))
        if not self.inputs.isdisjoint(named):
            for name in self.inputs.intersection(named):
                if name in inputs:
                    raise OpTypeError(f"{self.op.name}: {name} is given twice, by position and by name")
                inputs[name] = named.pop(name)
        if any(value is None for value in inputs.values()):
            inputs = {name: value for name, value in inputs.items() if value is not None}
        for name in self.required:
            if name not in inputs:
                raise OpTypeError(f"{self.op.name}: {name} is missing ({self.op.signature})")
        return self._slots(inputs) if self.lists else inputs, named

    def _slots(self, inputs: dict[Slot, Any]) -> dict[Slot, Any]:
        """Return the tensors, with the elements of lists one by one."""
        slots: dict[Slot, Any] = {}
        for name, value in inputs.items():
            if name not in self.lists:
                slots[name] = value
            elif not isinstance(value, (list, tuple)):
                kind = type(value).__name__
                raise OpTypeError(f"{self.op.name}: {name} is a {kind}, expected a list: [{name}, …]")
            else:
                slots.update({(name, i): one for i, one in enumerate(value)})
        return slots

    # Planning

    def _plan(self, slots: dict[Slot, Any], lods: dict[Slot, LoD], attributes: dict[str, Any]) -> CallPlan:
        """Return the plan for a call of this kind; replaces Sequences by their values and fills `lods`."""
        detailed, sequence = self.detailed, self.sequence
        parts: list[Any] = []
        holding: set[Slot] = set()
        for slot, value in slots.items():
            parts.append(slot)
            if type(value) is sequence:
                lod = lods[slot] = value.lod
                parts.append((lod.num_levels, value.holds_lengths))
                if value.holds_lengths:
                    holding.add(slot)
                value = slots[slot] = value.values
            elif type(value) is LoD:
                lods[slot] = value
                parts.append(value.num_levels)
                continue
            if detailed:
                is_array = type(value) is np.ndarray
                parts.append((value.dtype.char, value.ndim) if is_array else _kind_of_value(value))

        def kinds() -> dict[Slot, Kind]:
            return {slot: _kind(value, lods.get(slot), slot in holding) for slot, value in slots.items()}

        if not detailed:
            key = (*parts, *attributes.items()) if self.many_outputs else tuple(parts)
            return self._kept(key, kinds, attributes)
        classes = _classes(lods) if len(lods) > 1 else {slot: slot for slot in lods}
        key = (*parts, *(classes.values() if len(lods) > 1 else ()), *attributes.items())
        plan = self._kept(key, kinds, attributes, Details(classes))
        return self._settled(plan, key, slots, kinds, attributes, classes) if plan.unsettled else plan

    def _settled(
        self,
        plan: CallPlan,
        key: Any,
        slots: dict[Slot, Any],
        kinds: Callable[[], dict[Slot, Kind]],
        attributes: dict[str, Any],
        classes: dict[Slot, Slot],
    ) -> CallPlan:
        """Return a plan made with values, and then with sizes, if these can prove more."""
        values: dict[str, Any] = {}
        if plan.requested:
            values = {name: np.asarray(slots[name]) for name in plan.requested if name in slots}
            values = {name: value for name, value in values.items() if value.size <= _LONGEST_VALUE}
            key = (key, *((name, value.tobytes()) for name, value in values.items()))
            plan = self._kept(key, kinds, attributes, Details(classes, values))
        if plan.unsettled:
            given = {slot: value for slot, value in slots.items() if slot not in plan.supplied}
            shapes = {
                slot: tuple(value.shape) if is_tensor(value) else np.shape(value)
                for slot, value in given.items()
            }
            key = (key, *shapes.items())
            plan = self._kept(key, kinds, attributes, Details(classes, values, shapes))
        return plan

    def _kept(
        self,
        key: Any,
        kinds: Callable[[], dict[Slot, Kind]],
        attributes: dict[str, Any],
        details: Details | None = None,
    ) -> CallPlan:
        try:
            plan = self.plans.get(key)
        except TypeError:  # an attribute is a list or an array
            # large arrays must stay writable, and are not needed to infer rows
            key = frozen(key, _LONGEST_VALUE)
            plan = self.plans.get(key)
        if plan is None:
            plan = make_plan(self.op, kinds(), attributes, details)
            if len(self.plans) >= _MOST_PLANS:
                self.plans.clear()
            self.plans[key] = plan
        return plan

    # Checking

    def _missing(
        self, missing: tuple[Slot, Slot], slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD]
    ) -> LodError:
        lengths, needing = missing
        if needing not in slots or needing in lods:
            bringing = next(iter(lods))
            levels = lods[bringing].num_levels
            return LodError(
                f"{self.op.name}: {label(bringing)} has {levels} level{'s' * (levels != 1)} of lengths, expected "
                f"more: {label(lengths)} is missing",
                advice=str(self.op.signature),
            )
        why = reason_for(slots[needing])
        if why is None:
            value = slots[needing]
            if type(value).__module__.startswith("awkward"):
                as_array(label(needing), value)  # which says how it becomes arrays
            kind = "an array" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
            why = f"{label(needing)} is {kind}, expected a Sequence\n  or give {name_of(lengths)}= by keyword"
        return LodError(f"{self.op.name}: {label(lengths)} are missing: {why}")

    def _check(self, plan: CallPlan, slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD]) -> None:
        """Raise LodError when lengths that must be equal differ."""
        for one, other in plan.equal:
            self._agree(label(one.source), _lod_of(one, lods), label(other.source), _lod_of(other, lods))
        for slot, outer in plan.compared:
            expected = _lod_of(outer, lods).lengths
            given = slots[slot]
            if slot not in lods and given is not expected:
                self._agree(label(slot), LoD(given), label(outer.source), LoD(expected))
        if plan.differing is not None:
            mine, theirs = plan.differing
            self._agree(label(mine), lods[mine], label(theirs), lods[theirs])

    def _agree(self, one: str, mine: LoD, other: str, theirs: LoD) -> None:
        if mine == theirs:
            return
        raise LodError(
            f"{self.op.name}: {one} and {other} have different lengths: {mine.difference(theirs)} "
            f"({self.op.signature.inputs_text})"
        )

    # Results

    def _with_lods(
        self, result: Any, plan: CallPlan, slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD]
    ) -> Any:
        """Return the result, with a Sequence for each array whose rows are known to be divided by a LoD."""
        if len(plan.outputs) == 1 and (type(result) is np.ndarray or is_tensor(result)):
            return self._carry(result, plan.outputs[0], slots, lods, [result], {})
        if self.gives_sequence:
            return self._carry(result[0], plan.outputs[0], slots, lods, result, {})
        fields = result if self.op.result is not None else (result,)
        tensors = [tensor for field in fields for tensor in (field if isinstance(field, list) else (field,))]
        made: dict[Stack, LoD] = {}
        results = [
            self._carry(tensor, output, slots, lods, tensors, made)
            for tensor, output in zip(tensors, plan.outputs, strict=True)
        ]
        if len(fields) < len(tensors) or isinstance(fields[0], list):
            remaining = iter(results)
            results = [
                [next(remaining) for _ in field] if isinstance(field, list) else next(remaining)
                for field in fields
            ]
        return results[0] if self.op.result is None else self.op.result(*results)

    def _carry(
        self,
        tensor: Array,
        output: OutputRule,
        slots: Mapping[Slot, Any],
        lods: Mapping[Slot, LoD],
        tensors: Sequence[Array],
        made: dict[Stack, LoD],
    ) -> Any:
        argument, stack, reason = output
        if stack is None:
            self._note(tensor, reason, slots, lods)
            return tensor
        if stack.inner:
            lod = made.get(stack)
            if lod is None:
                lod = made[stack] = _new_lod(stack, slots, lods, tensors, tensor)
        else:
            lod = _lod_of(stack.outer, lods)  # type: ignore[arg-type]
            if self.repeats and tensor.ndim > 1:
                self._refuse_repeated(tensor, stack.outer.source, slots, lods)  # type: ignore[union-attr]
        if tensor.ndim == 0 or len(tensor) != lod.num_rows:
            raise LodError(
                f"{self.op.name}: {argument.name} has shape {tensor.shape}, but the lengths describe "
                f"{lod.num_rows} rows: rows do not broadcast"
            )
        return self.sequence.from_checked(tensor, lod, argument.is_lengths)

    def _refuse_repeated(
        self, tensor: Array, source: Slot, slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD]
    ) -> None:
        """Raise LodError when the rows of a Sequence, of size 1, were repeated for an array with fewer axes."""
        rows: tuple[int, ...] = slots[source].shape
        if tensor.shape[1:] == rows[1:] or tensor.ndim != len(rows):
            return
        for slot, value in slots.items():
            shape: tuple[int, ...] = np.shape(value) if slot not in lods else ()
            if 0 < len(shape) < len(rows) and shape[0] != 1 and rows[-len(shape)] == 1:
                raise LodError(
                    f"{self.op.name}: {label(slot)} has shape {tuple(shape)}, but {label(source)} {tuple(rows)} "
                    "has a size of 1 there: rows do not broadcast",
                    advice=f"expand_dims({label(slot)}, axis=1) has a value for each row, axis=0 one for each column",
                )

    def _note(self, tensor: Array, reason: str, slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD]) -> None:
        """Remember why an output has no lengths if an op dropped them."""
        why = reason if lods else next(filter(None, map(reason_for, slots.values())), None)
        if why is not None and not any(tensor is value for slot, value in slots.items() if slot not in lods):
            remember(tensor, why)


def _fed(feed: Feed, slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD]) -> Any:
    slot, outer = feed
    if outer is not None:
        return lods[outer.source].levels[outer.levels - 1]
    return slots.get(slot)


def _new_lod(
    stack: Stack, slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD], tensors: Sequence[Array], rows: Array
) -> LoD:
    """Return the LoD that ends with these lengths, which an op took or returned."""
    levels = [] if stack.outer is None else list(_lod_of(stack.outer, lods).levels)
    for one in stack.inner:
        lengths = np.asarray(tensors[one] if isinstance(one, int) else slots[one])
        levels.append(lengths.view() if lengths.size else lengths.astype(np.int64))
    return LoD.from_checked(tuple(levels), len(rows))


def _lod_of(outer: OuterLevels, lods: Mapping[Slot, LoD]) -> LoD:
    lod = lods[outer.source]
    return lod if outer.levels == lod.num_levels else lod.outermost(outer.levels)


def _kind(value: Any, lod: LoD | None = None, holds_lengths: bool = False) -> Kind:
    if isinstance(value, LoD):
        return Kind(value.num_levels, True, False, np.dtype(np.int64), 1)
    if lod is not None:
        return Kind(lod.num_levels, False, holds_lengths, dtype_of(value), value.ndim)
    if type(value) in (bool, int, float):
        return Kind(0, False, False, type(value), 0)
    array = value if isinstance(value, np.ndarray) or is_tensor(value) else as_array("value", value)
    return Kind(0, False, False, dtype_of(array), array.ndim)


def _kind_of_value(value: Any) -> Any:
    kind = _kind(value)
    return kind.dtype, kind.ndim


def _classes(lods: Mapping[Slot, LoD]) -> dict[Slot, Slot]:
    """Return, for each input with a LoD, the first input with the same LoD."""
    return {slot: next(one for one, other in lods.items() if other == lod) for slot, lod in lods.items()}


def _python_signature(lifted: Lifted) -> PythonSignature:
    """Return the explicit op's signature, with the lengths that come with Sequences as keyword-only parameters."""
    op = lifted.op
    if op.variadic:
        positional = [Parameter(lifted.positional[0], Parameter.VAR_POSITIONAL)]
    else:
        optional = {a.name for a in op.signature.input_arguments if a.optional}
        positional = [
            Parameter(
                name, Parameter.POSITIONAL_OR_KEYWORD, default=None if name in optional else Parameter.empty
            )
            for name in lifted.positional
        ]
    brought = [name for name in (a.name for a in op.signature.input_arguments) if name in lifted.brought]
    keywords = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in brought]
    keywords += [Parameter(a.name, Parameter.KEYWORD_ONLY, default=a.default) for a in op.attributes]
    return PythonSignature([*positional, *keywords])


_reasons: dict[int, tuple[weakref.ref[Array], str]] = {}


def remember(array: Array, reason: str) -> None:
    """Remember, while this array lives, why it has no lengths."""
    key = id(array)
    _reasons[key] = weakref.ref(array, lambda _: _reasons.pop(key, None)), reason


def reason_for(array: Any) -> str | None:
    """Return why an array has no lengths: `sort_rows dropped them (its rows are other rows)`; None if unknown."""
    known = _reasons.get(id(array))
    return known[1] if known is not None and known[0]() is array else None
