"""LoD propagation for one kind of call, derived from the op's signature.

Let stack(e) be the LoD of the row space named by e, the size of axis 0. A Sequence for an input whose axis 0 is a
name N sets stack(N) to its LoD. A Sequence for axis 0 `sum(l)` supplies its innermost lengths as l; the rest of its
LoD goes to axis 0 of l, and so on outwards. A LoD, or a Sequence, given as lengths means its LoD. For outputs,
stack(`sum(l)`) is stack(axis 0 of l) followed by l; stack(N) is as it was set; all other stacks are empty. If a shape
function gives the row space of an output, that is used instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from seqflow.errors import LodError, SeqflowError
from seqflow.registry import OpDef
from seqflow.registry.inference import infer_rows
from seqflow.signature import Argument, Described, Repeated
from seqflow.signature.language import Anything, Name
from seqflow.signature.rows import dividing, name_outputs

Slot = str | tuple[str, int]
"""An input: its name, or its name and index for an op's list of inputs."""


class Kind(NamedTuple):
    """Static kind of an argument: its levels of lengths, dtype and rank."""

    levels: int = 0
    """Number of levels of lengths that came with it."""
    is_lod: bool = False
    """Whether it is a LoD without values."""
    holds_lengths: bool = False
    dtype: Any = None
    """Its dtype, or bool, int or float for a Python number; only set if a shape function needs it."""
    ndim: int = 0


class OuterLevels(NamedTuple):
    """The outermost levels of the LoD of an input."""

    source: Slot
    levels: int


class Stack(NamedTuple):
    """LoD of an output: levels that came with an input, then lengths that are inputs or outputs themselves."""

    outer: OuterLevels | None
    inner: tuple[Slot | int, ...] = ()
    """Inputs, by slot, or outputs, by number."""


class Feed(NamedTuple):
    """Source of one argument: the given value, or the innermost lengths of some levels."""

    slot: Slot
    outer: OuterLevels | None


class OutputRule(NamedTuple):
    """LoD of an output, or the reason why it has none."""

    argument: Argument
    stack: Stack | None
    """LoD of the output; None for a plain array."""
    reason: str
    """Reason why it has no lengths, for messages."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How to call an op with inputs of one kind: the sources of its lengths, and the LoD of its outputs."""

    supplied: Mapping[Slot, OuterLevels]
    """Lengths that come with other inputs: the innermost of these levels."""
    missing: tuple[tuple[Slot, Slot], ...]
    """Missing lengths, and an input that needs them."""
    equal: tuple[tuple[OuterLevels, OuterLevels], ...]
    """Pairs of levels that must be equal."""
    compared: tuple[tuple[Slot, OuterLevels], ...]
    """Lengths that were given although they came with another input."""
    inputs: tuple[Feed | tuple[Feed, ...], ...] = ()
    """Source of each argument of the op, in its order; for a list, of each of its elements."""
    outputs: tuple[OutputRule, ...] = ()
    """The tensors of the results."""
    differing: tuple[Slot, Slot] | None = None
    """Two inputs that were combined with different LoDs."""
    failure: SeqflowError | None = None
    """Error of inference; the op itself raises a better one."""
    unsettled: bool = False
    """Whether sizes and values may prove more."""
    requested: frozenset[str] = frozenset()
    """Inputs whose values may prove more."""


class Details(NamedTuple):
    """Data that inference needs for a call of an op with a shape function."""

    classes: Mapping[Slot, Slot]
    """For each input with a LoD, the first input with the same LoD."""
    values: Mapping[str, Any] = {}
    shapes: Mapping[Slot, tuple[int, ...]] | None = None


def label(slot: Slot) -> str:
    """Return `data`, or `data[2]` in a list."""
    return slot if isinstance(slot, str) else f"{slot[0]}[{slot[1]}]"


def name_of(slot: Slot) -> str:
    """Return the name of the input, or of its list."""
    return slot if isinstance(slot, str) else slot[0]


def _tensor(slot: Slot) -> str:
    """Return the name of the tensor in inference: `data`, or `data.2` in a list."""
    return slot if isinstance(slot, str) else f"{slot[0]}.{slot[1]}"


def make_plan(
    op: OpDef, kinds: Mapping[Slot, Kind], attributes: Mapping[str, Any], details: Details | None
) -> CallPlan:
    """Return the plan for calls of this kind; raise LodError for levels that fit no lengths of the op."""
    rule = _LengthSources(op, kinds)
    rule.give_all()
    missing = tuple(rule.missing())
    plan = CallPlan(rule.supplied, missing, tuple(rule.equal), tuple(rule.compared.items()), rule.feeds())
    return plan if missing else _with_outputs(plan, rule, attributes, details)


class _LengthSources:
    """Resolves which input supplies which lengths."""

    def __init__(self, op: OpDef, kinds: Mapping[Slot, Kind]) -> None:
        self.op = op
        self.kinds = kinds
        self.arguments = {argument.name: argument for argument in op.signature.input_arguments}
        self.supplied: dict[Slot, OuterLevels] = {}
        self.compared: dict[Slot, OuterLevels] = {}
        self.equal: list[tuple[OuterLevels, OuterLevels]] = []
        self.rows: dict[Slot, OuterLevels] = {}
        """The levels that describe the rows of each input whose axis 0 is a name or unspecified."""
        self.named: dict[str, OuterLevels] = {}

    def give_all(self) -> None:
        own_lengths = [slot for slot in self.kinds if self.stands_for_lengths(slot)]
        for slot in own_lengths:
            self.supply(slot, OuterLevels(slot, self.kinds[slot].levels))
        for slot, kind in self.kinds.items():
            if slot in own_lengths or not kind.levels:
                continue
            if kind.is_lod:
                raise LodError(f"{self.op.name}: {label(slot)} is a LoD, expected a Sequence or an array")
            self.give(slot, OuterLevels(slot, kind.levels))

    def stands_for_lengths(self, slot: Slot) -> bool:
        kind = self.kinds[slot]
        return self.arguments[name_of(slot)].is_lengths and kind.levels > 0 and not kind.holds_lengths

    def lengths_of(self, slot: Slot) -> Slot | None:
        """Return the lengths that describe axis 0 of an input."""
        of = dividing(self.arguments[name_of(slot)])
        if of not in self.arguments:
            return None
        return (of, slot[1]) if of in self.op.signature.listed and not isinstance(slot, str) else of

    def give(self, slot: Slot, outer: OuterLevels) -> None:
        """Set the levels that describe the rows of an input."""
        if not outer.levels:
            return
        lengths = self.lengths_of(slot)
        if lengths is not None:
            self.supply(lengths, outer)
            return
        argument = self.arguments[name_of(slot)]
        name = argument.row_name
        if self.op.shape is None and argument.rest == 0:  # `*d` at the place of a name means the same rows
            name = str(argument.dims[0])
        if name is not None:
            self.agree(self.named.setdefault(name, outer), outer)
            self.rows[slot] = self.named[name]
        elif _has_any_shape(argument):
            self.rows[slot] = outer
        elif argument.is_lengths:
            raise LodError(
                f"{self.op.name}: {label(outer.source)} has more levels of lengths than the op takes",
                advice=str(self.op.signature),
            )

    def supply(self, lengths: Slot, outer: OuterLevels) -> None:
        """Declare that the innermost of some levels is these lengths; the others describe their rows."""
        if lengths in self.supplied:
            self.agree(self.supplied[lengths], outer)
            return
        self.supplied[lengths] = outer
        if lengths in self.kinds and lengths != outer.source:
            self.compared[lengths] = outer
        self.give(lengths, OuterLevels(outer.source, outer.levels - 1))

    def agree(self, one: OuterLevels, other: OuterLevels) -> None:
        if one.source != other.source:
            self.equal.append((one, other))

    def missing(self) -> list[tuple[Slot, Slot]]:
        """Return lengths that are needed by a given input but not supplied."""
        found: dict[Slot, Slot] = {}
        for slot in [*self.kinds, *self.supplied]:
            lengths = self.lengths_of(slot)
            if lengths is not None and lengths not in self.kinds and lengths not in self.supplied:
                found.setdefault(lengths, slot)
        return list(found.items())

    @property
    def slots(self) -> dict[Slot, Kind]:
        """Return all inputs of the op, including those that come with others."""
        found = {**self.kinds, **dict.fromkeys(self.supplied, Kind(dtype=np.dtype(np.int64), ndim=1))}
        return dict(sorted(found.items(), key=lambda pair: -1 if isinstance(pair[0], str) else pair[0][1]))

    def by_name(self, values: Mapping[Slot, Any]) -> dict[str, Any]:
        """Group facts about slots by input; a list of inputs gives a list."""
        found: dict[str, Any] = {}
        for slot, value in values.items():
            if isinstance(slot, str):
                found[slot] = value
            else:
                found.setdefault(slot[0], []).append(value)
        return found

    def feeds(self) -> tuple[Feed | tuple[Feed, ...], ...]:
        """Return the source of each argument, in the op's order; None for optional inputs that were not given."""
        by_name = self.by_name({slot: Feed(slot, self.supplied.get(slot)) for slot in self.slots})
        feeds = (by_name.get(name, Feed(name, None)) for name in self.arguments)
        return tuple(tuple(feed) if isinstance(feed, list) else feed for feed in feeds)


def _with_outputs(
    plan: CallPlan, rule: _LengthSources, attributes: Mapping[str, Any], details: Details | None
) -> CallPlan:
    op = rule.op
    tensors = op.tensor_names(attributes)
    arguments = [output.argument for output in name_outputs(op.signature, tensors)]
    names = rule.by_name({slot: _tensor(slot) for slot in rule.slots})
    requested: frozenset[str] = frozenset()
    if details is None:
        known = {_tensor(slot): outer for slot, outer in rule.rows.items()}
        rows: Sequence[Any] = infer_rows(op, names, attributes, tensors, known)
        # without inference, a result of any shape is taken to have the rows of the deepest input
        if op.shape is not None:
            deepest = max(rule.rows.values(), key=lambda outer: outer.levels, default=None)
            rows = [
                deepest if _has_any_shape(argument) else space
                for argument, space in zip(arguments, rows, strict=True)
            ]
    else:
        try:
            inference = op.infer(
                rule.by_name(_specs(rule, details)), attributes, values=details.values, names=names,
                results=tensors, all_declared=False,
            )  # fmt: skip
        except LodError as error:
            met = list(dict.fromkeys(details.classes.values()))
            if len(met) > 1:
                return replace(plan, differing=(met[0], met[1]))
            return replace(plan, failure=error)
        except SeqflowError as error:
            return replace(plan, failure=error)
        rows, requested = [spec.rows for spec in inference.outputs], inference.requested
    stacks = _Stacks(rule, tensors, rows)
    unknown = any(not isinstance(space, (OuterLevels, Described)) for space in rows)
    unsettled = details is not None and unknown and bool(rule.rows or rule.supplied)
    outputs = tuple(
        OutputRule(argument, stacks.of_rows(space), _reason(op, argument))
        for argument, space in zip(arguments, rows, strict=True)
    )
    return replace(plan, outputs=outputs, unsettled=unsettled, requested=requested)


def _reason(op: OpDef, argument: Argument) -> str:
    """Return why an output has no lengths although inputs came with some."""
    described = {a.dims[0] for a in op.signature.input_arguments if a.is_lengths and a.dims}
    whole = bool(argument.dims) and isinstance(argument.dims[0], Name) and argument.dims[0] in described
    return (
        f"{op.name} dropped them ({'it has a row for each sequence' if whole else 'its rows are other rows'})"
    )


class _Stacks:
    """Maps row spaces to LoDs."""

    def __init__(self, rule: _LengthSources, tensors: Sequence[str], rows: Sequence[Any]) -> None:
        self.rule = rule
        self.inputs = {_tensor(slot): slot for slot in rule.slots}
        self.outputs = {name: i for i, name in enumerate(tensors)}
        self.rows = rows

    def of_rows(self, rows: Any) -> Stack | None:
        if isinstance(rows, OuterLevels):
            return Stack(rows)
        if not isinstance(rows, Described):
            return None
        if rows.by in self.outputs:
            i = self.outputs[rows.by]
            outer = self.of_rows(self.rows[i])
            return _appended(outer, i)
        return self.of_lengths(self.inputs[rows.by])

    def of_lengths(self, lengths: Slot) -> Stack:
        if lengths in self.rule.supplied:
            return Stack(self.rule.supplied[lengths])
        above = self.rule.lengths_of(lengths)
        return _appended(self.of_lengths(above) if above else self.of_axis(lengths), lengths)

    def of_axis(self, slot: Slot) -> Stack | None:
        """Return the stack of a name that another input may have set."""
        outer = self.rule.named.get(str(self.rule.arguments[name_of(slot)].row_name))
        return None if outer is None else Stack(outer)


def _appended(stack: Stack | None, lengths: Slot | int) -> Stack:
    return Stack(None, (lengths,)) if stack is None else Stack(stack.outer, (*stack.inner, lengths))


def _specs(rule: _LengthSources, details: Details) -> dict[Slot, Any]:
    from seqflow.shape import PartialShape
    from seqflow.tensor import TensorSpec

    slots = rule.slots
    strong = [kind.dtype for kind in slots.values() if isinstance(kind.dtype, np.dtype)]
    found = {}
    for slot, kind in slots.items():
        known = None if details.shapes is None else details.shapes.get(slot)
        shape = (
            PartialShape.of(known)
            if known is not None
            else PartialShape.dynamic(kind.ndim).named(_tensor(slot))
        )
        found[slot] = TensorSpec(_spec_dtype(kind.dtype, strong), shape, _rows(rule, slot, details.classes))
    return found


def _spec_dtype(dtype: Any, strong: Sequence[np.dtype[Any]]) -> Any:
    """Return the dtype of a Python number: that of the arrays it is combined with."""
    if isinstance(dtype, np.dtype):
        return dtype
    kinds = {bool: "", int: "iuf", float: "f"}[dtype]
    return next((one for one in strong if one.kind in kinds), np.dtype(dtype))


def _rows(rule: _LengthSources, slot: Slot, classes: Mapping[Slot, Slot]) -> Any:
    lengths = rule.lengths_of(slot)
    if lengths is not None:
        return Described(_tensor(lengths))
    outer = rule.rows.get(slot)
    return None if outer is None else OuterLevels(classes.get(outer.source, outer.source), outer.levels)


def brought_lengths(op: OpDef) -> dict[str, str]:
    """Return the lengths inputs that come with a Sequence, and the first input whose rows they divide."""
    names = {argument.name for argument in op.signature.input_arguments}
    found: dict[str, str] = {}
    for argument in op.signature.input_arguments:
        lengths = dividing(argument)
        if lengths in names:
            found.setdefault(str(lengths), argument.name)
    return found


def gives_sequence(op: OpDef) -> bool:
    """Return whether the results of an op are exactly values and the lengths that divide their rows."""
    outputs = op.signature.outputs
    if len(outputs) != 2 or any(isinstance(item, Repeated) for item in outputs):
        return False
    values, lengths = op.signature.output_arguments
    return lengths.is_lengths and dividing(values) == lengths.name


def _has_any_shape(argument: Argument) -> bool:
    """Return whether only a shape function knows the axes of the argument: `x[*d]`, `x[_, *d]`."""
    return argument.rest == 0 or isinstance(next(iter(argument.dims), None), Anything)
