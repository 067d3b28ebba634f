"""Calling ops with Sequences: the plan for this kind of call, the op itself, its results with their LoD."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter
from inspect import Signature as PythonSignature
from typing import Any

import numpy as np

from seqflow import registry
from seqflow.carrying.dropped import reason_for, remember
from seqflow.carrying.rule import (
    Details,
    Kind,
    Part,
    Plan,
    Slot,
    Stack,
    brought_lengths,
    flat_outputs,
    label,
    make_plan,
)
from seqflow.errors import LodError, OpTypeError
from seqflow.lod import LoD
from seqflow.registry import OpDef
from seqflow.sequence import Sequence
from seqflow.signature import Repeated
from seqflow.signature.language import Name

Array = np.ndarray[Any, Any]

_MOST_PLANS = 512
_LONGEST_VALUE = 64
"""Larger arrays are no shapes that inference may ask for."""


class Carried:
    """An op for Sequences. Lengths that come with them are left out, or given by keyword and then the same."""

    def __init__(self, op: OpDef) -> None:
        self.op = op
        arguments = op.signature.input_arguments
        self.brought = brought_lengths(op)
        self.positional = tuple(a.name for a in arguments if a.name not in self.brought)
        self.inputs = frozenset(a.name for a in arguments)
        self.lists = frozenset(
            a.name for item in op.signature.inputs if isinstance(item, Repeated) for a in item.arguments
        )
        self.lengths = frozenset(a.name for a in arguments if a.is_lengths)
        self.many_outputs = any(isinstance(item, Repeated) for item in op.signature.outputs)
        self.plans: dict[Any, Plan] = {}
        self.__name__ = self.__qualname__ = op.name
        self.__doc__ = op.doc
        self.__signature__ = _python_signature(self)

    def __repr__(self) -> str:
        return f"<auto {self.op.name}: {self.op.signature}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        inputs, attributes = self._bind(args, named)
        slots = self._slots(inputs)
        plan = self._plan(slots, attributes)
        lods = {slot: _lod(value) for slot, value in slots.items() if type(value) in _CARRIERS}
        if plan.missing:
            raise self._missing(plan.missing[0], slots, lods)
        if plan.equal or plan.compared or plan.differing:
            self._check(plan, slots, lods)
        arrays = self._arrays(inputs, slots, plan, lods)
        if self.op.spread:
            (operands,) = arrays.values()
            result = self.op.call(*operands, **attributes)
        else:
            result = self.op.call(**arrays, **attributes)
        if plan.failure is not None:
            raise plan.failure
        return self._with_lods(result, plan, slots, lods, attributes)

    # What was given

    def _bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Inputs by name, and attributes."""
        if self.op.spread:
            return {self.positional[0]: args}, named
        if len(args) > len(self.positional):
            left_out = ", ".join(sorted(self.brought))
            advice = f"\n  {left_out} comes with the Sequence, or is given by keyword" if left_out else ""
            takes = f"{len(self.positional)} ({', '.join(self.positional)})"
            raise OpTypeError(f"{self.op.name}: found {len(args)} inputs, expected {takes}{advice}")
        inputs = dict(zip(self.positional, args, strict=False))
        attributes = {}
        for name, value in named.items():
            if name not in self.inputs:
                attributes[name] = value
            elif name in inputs:
                raise OpTypeError(f"{self.op.name}: {name} is given twice, by position and by name")
            else:
                inputs[name] = value
        return {name: value for name, value in inputs.items() if value is not None}, attributes

    def _slots(self, inputs: dict[str, Any]) -> dict[Slot, Any]:
        """Every tensor that was given."""
        if not self.lists:
            return {(name, -1): value for name, value in inputs.items()}
        slots: dict[Slot, Any] = {}
        for name, value in inputs.items():
            if name not in self.lists:
                slots[name, -1] = value
            elif isinstance(value, (Sequence, LoD)):
                kind = type(value).__name__
                raise OpTypeError(f"{self.op.name}: {name} is a {kind}, expected a list: [{name}, …]")
            else:
                slots.update(((name, i), one) for i, one in enumerate(value))
        return slots

    # Planning

    def _plan(self, slots: dict[Slot, Any], attributes: dict[str, Any]) -> Plan:
        detailed = self.op.shape is not None
        kinds = {slot: _kind(value, detailed) for slot, value in slots.items()}
        if not detailed:
            count = _hashable(attributes) if self.many_outputs else None
            return self._kept((*kinds.items(), count), kinds, attributes, None)
        classes = _classes(slots)
        details = Details(classes)
        key: Any = (*kinds.items(), *classes.items(), _hashable(attributes))
        plan = self._kept(key, kinds, attributes, details)
        if plan.unsettled and plan.wanted:
            values = {
                name: np.asarray(_values(slots[name, -1])) for name in plan.wanted if (name, -1) in slots
            }
            values = {name: value for name, value in values.items() if value.size <= _LONGEST_VALUE}
            details = Details(classes, values)
            key = (key, tuple((name, value.tobytes()) for name, value in values.items()))
            plan = self._kept(key, kinds, attributes, details)
        if plan.unsettled:
            shapes = {
                slot: np.shape(_values(value)) for slot, value in slots.items() if type(value) is not LoD
            }
            shapes = {slot: shape for slot, shape in shapes.items() if slot not in plan.supplied}
            key = (key, tuple(shapes.items()))
            plan = self._kept(key, kinds, attributes, details._replace(shapes=shapes))
        return plan

    def _kept(
        self, key: Any, kinds: dict[Slot, Kind], attributes: dict[str, Any], details: Details | None
    ) -> Plan:
        plan = self.plans.get(key)
        if plan is None:
            plan = make_plan(self.op, kinds, attributes, details)
            if len(self.plans) >= _MOST_PLANS:
                self.plans.clear()
            self.plans[key] = plan
        return plan

    # Checking

    def _missing(
        self, missing: tuple[Slot, Slot], slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD]
    ) -> LodError:
        lengths, needing = missing
        if needing not in slots or lods:
            bringing = next(iter(lods))
            levels = lods[bringing].num_levels
            return LodError(
                f"{self.op.name}: {label(bringing)} has {levels} level{'s' * (levels != 1)} of lengths, expected "
                f"more: {label(lengths)} is missing\n  {self.op.signature}"
            )
        why = reason_for(slots[needing])
        if why is None:
            kind = (
                "an array" if isinstance(slots[needing], np.ndarray) else f"a {type(slots[needing]).__name__}"
            )
            why = f"{label(needing)} is {kind}, expected a Sequence\n  or give {lengths[0]}= by keyword"
        return LodError(f"{self.op.name}: {label(lengths)} are missing: {why}")

    def _check(self, plan: Plan, slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD]) -> None:
        """LodError where what has to be the same lengths is not."""
        for one, other in plan.equal:
            self._agree(label(one.source), _part(one, lods), label(other.source), _part(other, lods))
        for slot, part in plan.compared:
            expected = _part(part, lods).lengths
            given = _values(slots[slot])
            if slot not in lods and given is not expected:
                self._agree(label(slot), LoD(given), label(part.source), LoD.from_checked((expected,), 0))
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

    # Calling

    def _arrays(
        self, inputs: dict[str, Any], slots: Mapping[Slot, Any], plan: Plan, lods: Mapping[Slot, LoD]
    ) -> dict[str, Any]:
        """What the op is given."""
        found: dict[str, Any] = {}
        for slot, value in slots.items():
            _put(found, slot, _values(value))
        for slot, part in plan.supplied.items():
            lengths = lods[part.source].levels[part.levels - 1]
            if slot not in slots or slots[slot] is not lengths:
                _put(found, slot, lengths)
        return found

    def _with_lods(
        self,
        result: Any,
        plan: Plan,
        slots: Mapping[Slot, Any],
        lods: Mapping[Slot, LoD],
        attributes: Mapping[str, Any],
    ) -> Any:
        if not plan.outputs:
            return result
        fields = list(result) if self.op.result is not None else [result]
        tensors = [tensor for field in fields for tensor in (field if isinstance(field, list) else (field,))]
        made: dict[Stack, LoD] = {}
        wrapped: list[Any] = []
        arguments = flat_outputs(self.op, attributes)
        for tensor, stack, argument in zip(tensors, plan.outputs, arguments, strict=True):
            if stack is None:
                self._note(tensor, argument, slots, lods)
                wrapped.append(tensor)
                continue
            lod = made.get(stack)
            if lod is None:
                lod = made[stack] = self._lod(stack, slots, lods, tensors)
            if tensor.ndim == 0 or len(tensor) != lod.num_rows:
                raise LodError(
                    f"{self.op.name}: {argument.name} has shape {tensor.shape}, but the lengths describe "
                    f"{lod.num_rows} rows: rows do not broadcast"
                )
            wrapped.append(Sequence.from_checked(tensor, lod, argument.is_lengths))
        return self._like(fields, wrapped)

    def _lod(
        self, stack: Stack, slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD], tensors: list[Array]
    ) -> LoD:
        outer = None if stack.outer is None else _part(stack.outer, lods)
        if not stack.inner:
            assert outer is not None
            return outer
        levels = [] if outer is None else list(outer.levels)
        for one in stack.inner:
            lengths = tensors[one] if isinstance(one, int) else slots[one]
            lengths = np.asarray(_values(lengths))
            levels.append(lengths.view() if lengths.size else lengths.astype(np.int64))
        return LoD.from_checked(tuple(levels), int(levels[-1].sum(dtype=np.int64)))

    def _note(
        self, tensor: Array, argument: Any, slots: Mapping[Slot, Any], lods: Mapping[Slot, LoD]
    ) -> None:
        """Remember why an output has no lengths."""
        if any(tensor is value for value in slots.values()):
            return
        if lods:
            described = {a.dims[0] for a in self.op.signature.input_arguments if a.is_lengths and a.dims}
            whole = (
                bool(argument.dims) and isinstance(argument.dims[0], Name) and argument.dims[0] in described
            )
            rows = "a row for each sequence" if whole else "its rows are other rows"
            remember(tensor, f"{self.op.name} dropped them ({rows})")
            return
        for value in slots.values():
            why = reason_for(value)
            if why is not None:
                remember(tensor, why)
                return

    def _like(self, fields: list[Any], tensors: list[Any]) -> Any:
        """The tensors in the form of the op's result."""
        remaining = iter(tensors)
        filled = [
            [next(remaining) for _ in field] if isinstance(field, list) else next(remaining)
            for field in fields
        ]
        return filled[0] if self.op.result is None else self.op.result(*filled)


_CARRIERS = (Sequence, LoD)


def _values(value: Any) -> Any:
    return value.values if type(value) is Sequence else value


def _lod(value: Any) -> LoD:
    return value if type(value) is LoD else value.lod


def _part(part: Part, lods: Mapping[Slot, LoD]) -> LoD:
    lod = lods[part.source]
    return lod if part.levels == lod.num_levels else lod.outermost(part.levels)


def _put(found: dict[str, Any], slot: Slot, value: Any) -> None:
    name, i = slot
    if i < 0:
        found[name] = value
        return
    items = found.setdefault(name, [])
    items.extend([None] * (i + 1 - len(items)))
    items[i] = value


_PLAIN = Kind()


def _kind(value: Any, detailed: bool) -> Kind:
    if type(value) is Sequence:
        levels, holds_lengths = value.lod.num_levels, value.holds_lengths
        if not detailed:
            return Kind(levels, False, holds_lengths)
        return Kind(levels, False, holds_lengths, value.values.dtype, value.values.ndim)
    if type(value) is LoD:
        return Kind(value.num_levels, True, False, np.dtype(np.int64), 1)
    if not detailed:
        return _PLAIN
    if type(value) in (bool, int, float):
        return Kind(0, False, False, type(value), 0)
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    return Kind(0, False, False, array.dtype, array.ndim)


def _classes(slots: Mapping[Slot, Any]) -> dict[Slot, Slot]:
    """For each input that brings a LoD the first one that brings the same."""
    classes: dict[Slot, Slot] = {}
    first: list[tuple[Slot, LoD]] = []
    for slot, value in slots.items():
        if type(value) in _CARRIERS:
            lod = _lod(value)
            classes[slot] = next((one for one, other in first if other == lod), slot)
            if classes[slot] == slot:
                first.append((slot, lod))
    return classes


def _hashable(attributes: Mapping[str, Any]) -> Any:
    """Attributes as part of a key; arrays to write to say nothing of rows."""
    return tuple((name, _frozen(value)) for name, value in attributes.items())


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tobytes() if value.size <= _LONGEST_VALUE else None
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return type(value), value


def _python_signature(carried: Carried) -> PythonSignature:
    """As the explicit op's, with the lengths that come with Sequences by keyword only."""
    op = carried.op
    if op.spread:
        positional = [Parameter(carried.positional[0], Parameter.VAR_POSITIONAL)]
    else:
        optional = {a.name for a in op.signature.input_arguments if a.optional}
        positional = [
            Parameter(
                name, Parameter.POSITIONAL_OR_KEYWORD, default=None if name in optional else Parameter.empty
            )
            for name in carried.positional
        ]
    brought = [name for name in (a.name for a in op.signature.input_arguments) if name in carried.brought]
    keywords = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in brought]
    keywords += [Parameter(a.name, Parameter.KEYWORD_ONLY, default=a.default) for a in op.attributes]
    return PythonSignature([*positional, *keywords])


@cache
def _carried(op: OpDef) -> Carried:
    return Carried(op)


def carried(name: str) -> Callable[..., Any]:
    """The op of that name for Sequences; UnknownOpError where there is none."""
    return _carried(registry.get(name))
