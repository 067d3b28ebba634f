"""Steps of training: assign their items so that ranks and micro-batches have equal costs, and count their totals."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from seqflow import kernels
from seqflow.errors import BatchPlanError, ExpressionError, OpTypeError, nearest
from seqflow.expression import Expression
from seqflow.expression.functions import truth
from seqflow.expression.parser import Call, postorder
from seqflow.kernels.arrays import Array, sum_dtype
from seqflow.loader.plans.balance import Balance, Slots, StepCosts, whole_costs
from seqflow.loader.plans.plan import BatchPlan, WindowBatches, joined
from seqflow.loader.plans.window_rows import Pieces, WindowRows, elements_below
from seqflow.ops.shared.random_bits import sequence_bits
from seqflow.record import Record
from seqflow.record.row_source import RowSource


class Span(NamedTuple):
    """Consecutive planned batches."""

    batches: WindowBatches
    start: int
    stop: int

    @property
    def rows(self) -> slice:
        """Their rows among those of all batches."""
        return slice(self.batches.ends.item(self.start), self.batches.ends.item(self.stop))

    @property
    def row_counts(self) -> Array:
        """int64[batches]: the rows of each batch, or its packed rows."""
        return np.diff(self.batches.ends[self.start : self.stop + 1])

    @property
    def piece_counts(self) -> Array:
        """int64: the pieces of each of their rows."""
        return self.batches.counts(self.rows)

    @property
    def pieces(self) -> Pieces:
        return self.batches.of_rows(self.rows)


class BalancedPool(NamedTuple):
    """A pool of steps whose items are assigned."""

    slots: Slots
    items: Array
    """Items of each batch in turn, as they are numbered over the spans: rows, or whole batches."""
    costs: Array | None
    """Costs of the items, batch after batch as planned; None without a balance."""
    batches: WindowBatches | None
    """The resulting batches if rows were assigned; None if whole batches were."""


def deals_rows(plan: BatchPlan, balance: Balance | None) -> bool:
    """Return whether single rows, or packed rows, are assigned; otherwise whole batches, which fit no other rows."""
    return balance is not None and not balance.needs_longest and plan.deals_rows


def balance_pool(
    spans: Sequence[Span], balance: Balance | None, steps: Array, columns: Array, key: int
) -> BalancedPool:
    """Assign the items of the batches of some spans to these steps and these ranks of the group.

    Without a balance the batches stay as they are.
    """
    rows = deals_rows(spans[0].batches.plan, balance)
    counts = np.concatenate([one.row_counts for one in spans]) if rows else np.ones(len(steps), np.int64)
    slots = Slots(steps, columns, counts)
    if balance is None:
        return BalancedPool(slots, np.arange(len(steps)), None, None)
    costs = np.concatenate([_costs(one, balance, rows) for one in spans])
    items = assign_items(whole_costs(costs), slots, key)
    return BalancedPool(slots, items, costs, _regrouped(spans, items, counts) if rows else None)


def _costs(span: Span, balance: Balance, rows: bool) -> Array:
    """int64 or float64: the costs of the items of the batches, batch after batch."""
    batches, pieces, of_row, counts = span.batches, span.pieces, span.piece_counts, span.row_counts
    longest = None
    if balance.needs_longest:
        capacity, of_batch = batches.plan.packed_capacity, kernels.segment_reduce("sum", of_row, counts)
        most = kernels.segment_reduce("max", pieces.sizes, of_batch)
        longest = np.repeat(most if capacity is None else np.full_like(most, capacity), of_batch)
    costs = balance.piece_costs(pieces, batches.rows, longest, batches.cut)
    if batches.first is not None:
        costs = kernels.segment_reduce("sum", costs, of_row)
    return costs if rows else kernels.segment_reduce("sum", costs, counts)


def _regrouped(spans: Sequence[Span], items: Array, counts: Array) -> WindowBatches:
    """Return batches of so many rows each, which are numbered over the batches of the spans in turn."""
    if len(spans) == 1:
        return spans[0].batches.regrouped(items + spans[0].rows.start, counts)
    batches, firsts = joined([one.batches for one in spans])
    rows = [
        np.arange(one.rows.start, one.rows.stop) + first for one, first in zip(spans, firsts, strict=True)
    ]
    return batches.regrouped(np.concatenate(rows)[items], counts)


def window_costs(batches: WindowBatches) -> StepCosts | None:
    """Return the costs of the steps that begin with the first batch of a window; None if the plan has no balance."""
    balance = batches.plan.balance
    if balance is None:
        return None
    found = StepCosts()
    for _, regrouped in _pools(batches, balance):
        assert regrouped.costs is not None
        found.add(regrouped.costs, regrouped.slots, regrouped.items, balance.group)
    return found


def _pools(batches: WindowBatches, balance: Balance) -> Iterator[tuple[Span, BalancedPool]]:
    """Yield the pools of whole steps of a window, as if it were the first."""
    whole = len(batches) // balance.step * balance.step
    pool = (balance.steps_in_pool or max(1, whole // balance.step)) * balance.step
    for first in range(0, whole, pool):
        span = Span(batches, first, min(first + pool, whole))
        numbers = np.arange(span.stop - span.start)
        yield span, balance_pool([span], balance, numbers // balance.step, numbers % balance.group, first)


def assign_items(costs: Array, slots: Slots, key: int) -> Array:
    """int64[N]: the items of each batch in turn, where costs[N] are those of items, batch after batch.

    Each batch keeps its number of items. Items stay in their step if the pool has one step; otherwise `key`
    decides which step gets which of the items with similar costs.
    """
    starts = kernels.lengths_to_offsets(slots.counts)
    found = np.zeros(len(costs), np.int64)
    batches_of = _batches_of(slots.steps)
    items_of = _items_of_steps(costs, slots, batches_of, key)
    for batches, items in zip(batches_of, items_of, strict=True):
        columns, counts = slots.columns[batches], slots.counts[batches]
        batch, layer, room = _places(columns.tobytes(), counts.tobytes())
        # one item for each rank: there is nothing to balance
        regrouped = items if room.max() == 1 else items[kernels.assign(costs[items], room)]
        found[starts[batches][batch] + layer] = regrouped
    return found


def _batches_of(steps: Array) -> list[Array]:
    """Return the batches of each step."""
    if steps[0] == steps[-1] and (steps == steps[0]).all():
        return [np.arange(len(steps))]
    in_order = np.argsort(steps, kind="stable")
    first = np.concatenate([[0], np.flatnonzero(np.diff(steps[in_order])) + 1, [len(steps)]])
    return [in_order[start:stop] for start, stop in pairwise(first.tolist())]


def _items_of_steps(costs: Array, slots: Slots, batches_of: list[Array], key: int) -> list[Array]:
    """Return the items of each step: its own if there is one step, otherwise by strata of similar cost.

    All items in falling order of cost are cut into strata, each with one layer of every step, and a stratum
    into neighbouring groups. The key decides which step gets which group, so the ranks of a step get items of
    similar cost.
    """
    if len(batches_of) == 1:
        return [np.arange(len(costs))]
    totals = np.array([slots.counts[batches].sum() for batches in batches_of])
    widths = np.array([len(np.unique(slots.columns[batches])) for batches in batches_of])
    layers = np.maximum(-(-totals // widths), 0)
    steps = np.repeat(np.arange(len(totals)), layers)
    layer = kernels.lengths_to_positions(layers)
    sizes = np.minimum(widths[steps], totals[steps] - layer * widths[steps])
    numbers = np.array([slots.steps[batches[0]] for batches in batches_of])
    most = int(numbers.max()) + 1
    bits = sequence_bits(key, most * (int(layers.max()) + 1))  # of step and layer: the same in all streams
    order = np.lexsort((bits[layer * most + numbers[steps]], layer))
    of_item = np.repeat(steps[order], sizes[order])
    # stable: items of equal cost keep their order on all machines
    falling = np.argsort(-costs, kind="stable")
    by_step = falling[np.argsort(of_item, kind="stable")]
    return np.split(by_step, np.cumsum(totals)[:-1])


@lru_cache(maxsize=16)
def _places(columns: bytes, counts: bytes) -> tuple[Array, Array, Array]:
    """Return the places of a step, column after column, in the order in which a column fills its micro-batches.

    A place is the number of a batch and a place in it; the last array has the number of places of each column.
    Micro-batches get one item each in turn, so that they are alike too. Arguments are the bytes of int64
    arrays, so that the result is cached: most steps are alike.
    """
    of, sizes = np.frombuffer(columns, np.int64), np.frombuffer(counts, np.int64)
    batch = np.repeat(np.arange(len(sizes)), sizes)
    layer = kernels.lengths_to_positions(sizes)
    order = np.lexsort((batch, layer, of[batch]))
    return batch[order], layer[order], np.bincount(of, sizes).astype(np.int64)


class Totals:
    """For each name, an expression over the elements of a list column, or over columns with one number for each row.

    `{"trained": "labels.values != -100", "tokens": "tokens.lengths"}` counts trained labels, and adds up
    lengths. If a row is cut into pieces, each batch counts its own elements; a number of a row counts once for
    each piece.
    """

    def __init__(self, texts: Mapping[str, str], *, apart: bool = False) -> None:
        self.texts, self.apart = dict(texts), apart
        """Expressions by name; whether batches have the values of each batch of their step, for others to sum."""
        self._expressions = {name: Expression(text) for name, text in self.texts.items()}
        self._elements: WeakKeyDictionary[RowSource, dict[str, Array]] = WeakKeyDictionary()
        """For the rows of a window, the value of each element, by name."""

    def __reduce__(self) -> "tuple[type[Totals], tuple[dict[str, str]]]":
        """Make another process start without the elements: it has its own rows."""
        return Totals, (self.texts,)

    def check_sum(self, name: str, step: int, total: int | float) -> None:
        """Raise BatchPlanError when 64 bits do not hold the total of a step."""
        if isinstance(total, int) and not -(2**63) <= total < 2**64:
            raise BatchPlanError(
                f"totals: {name} of step {step} is {total}, expected an integer of 64 bits\n"
                f"  write {self.texts[name]} * 1.0 for a floating-point number"
            )

    @property
    def inputs(self) -> set[str]:
        """The tensors that are counted."""
        return {one for expression in self._expressions.values() for one in expression.inputs}

    def check(self, record: Record, pads: Collection[str] = ()) -> None:
        """Raise BatchPlanError unless an expression gives one number for each element or row of records like
        this one.
        """
        for name, expression in self._expressions.items():
            for one in expression.inputs:
                if one not in record:
                    raise BatchPlanError(
                        f"totals: {name} names {one!r}, which the records have not{nearest(one, record)}\n"
                        f"  they have {', '.join(record)}"
                    )
                if one.removesuffix(".values").removesuffix(".lengths") in pads:
                    raise BatchPlanError(
                        f"totals: {name} names {one!r}, a column that the loader pads, and may cut\n"
                        "  pad it in net= instead, or truncate it in prepare="
                    )
            levels = {one: record.parents[one] for one in expression.inputs}
            if len({*levels.values()}) != 1:
                found = ", ".join(f"{one} under {lengths or 'the rows'}" for one, lengths in levels.items())
                raise BatchPlanError(
                    f"totals: {name} has {found or 'no tensor'}, expected tensors with an entry for each element of "
                    "one column, or for each row"
                )
            made = self._values(name, {one: record[one][:0] for one in expression.inputs})
            if made.ndim != 1 or made.dtype.kind not in "biuf":
                raise BatchPlanError(
                    f"totals: {name} is {made.dtype} with {made.ndim} axes, expected one number an element or row"
                )

    def of(self, span: Span, without: Counter[str], *, of_rows: bool) -> dict[str, Array]:
        """int64, uint64 or float64: for each name the total of each batch, or of each of its rows in turn.

        The sums are Python integers if 64 bits may not hold them.

        Rows, or pieces of them, whose total is 0 are counted in `without`.
        """
        batches, pieces, counts = span.batches, span.pieces, span.piece_counts
        if not of_rows:
            counts = kernels.segment_reduce("sum", counts, span.row_counts)
        cut, found = batches.cut, {}
        firsts = {one.tensor: one.first_fill for one in batches.columns if one.first_fill is not None}
        for name in self._expressions:
            of_pieces = self._of_pieces(name, batches.rows, pieces, cut, firsts)
            without[name] += len(of_pieces) - int(np.count_nonzero(of_pieces))
            found[name] = _sums(of_pieces, counts)
        return found

    def _of_pieces(
        self,
        name: str,
        rows: WindowRows,
        pieces: Pieces,
        cut: Collection[str],
        firsts: Mapping[str, Any],
    ) -> Array:
        """Return the total of each piece, whose first elements may have been replaced."""
        expression, source = self._expressions[name], rows.source
        lengths = source.parents[expression.inputs[0]]
        if lengths is None:
            values = {
                one: rows.below(one, pieces, cut).sizes
                if one in source.offsets
                else rows.tensor(one)[pieces.rows]
                for one in expression.inputs
            }
            return wide(np.broadcast_to(self._values(name, values), pieces.rows.shape))
        starts, sizes = elements_below(rows, lengths, pieces, cut)
        places = np.repeat(starts, sizes) + kernels.lengths_to_positions(sizes)
        # not differences of one running sum: a NaN, an infinity or 1e17 would be in the totals of all later steps
        elements = self._elements_of(name, source)[places]
        if any(one in firsts for one in expression.inputs):
            filled = sizes > 0
            begins = {one: source.tensor(one)[starts[filled]] for one in expression.inputs}
            instead = {
                one: np.full_like(of, firsts[one]) if one in firsts else of for one, of in begins.items()
            }
            elements[kernels.lengths_to_offsets(sizes)[:-1][filled]] = wide(self._values(name, instead))
        return _sums(elements, sizes)

    def _elements_of(self, name: str, source: RowSource) -> Array:
        """Return the value of each element of a window."""
        found = self._elements.setdefault(source, {})
        if name not in found:
            tensors = {one: source.tensor(one) for one in self._expressions[name].inputs}
            found[name] = wide(self._values(name, tensors))
        return found[name]

    def _values(self, name: str, tensors: Mapping[str, Array]) -> Array:
        """Return the values of the expression over operands that are widened first, so that it neither wraps
        nor becomes infinite.
        """
        expression = self._expressions[name]
        # floats keep their dtype next to literals that they are compared with: x == 0.1
        compares = any(
            isinstance(one, Call) and one.function.rule is truth for one in postorder(expression.tree)
        )
        kinds = "iu" if compares else "iuf"
        operands = {
            one: of.astype(np.float64 if of.dtype.kind == "f" else sum_dtype(of.dtype), copy=False)
            if of.dtype.kind in kinds
            else of
            for one, of in tensors.items()
        }
        found = np.asarray(expression(**operands))
        if found.dtype.kind in "iu" and len(expression.rpn) > 1:
            with suppress(ExpressionError):  # of operators on bits, which take no floats
                # integers wrap without an error: the same expression in floats shows it
                about = expression(**{one: of.astype(np.float64) for one, of in operands.items()})
                if np.abs(about).max(initial=0) >= 2.0 ** (64 - (found.dtype.kind == "i")):
                    raise BatchPlanError(
                        f"totals: {name} is about {np.abs(about).max():.3g} for one element, which {found.dtype} "
                        f"cannot hold\n  multiply by 1.0 to count in float64"
                    )
        return found


def totals_of(totals: Mapping[str, str] | Sequence[str] | None) -> Totals | None:
    """Return the totals of a mapping, or of a list of names; raise OpTypeError for anything else."""
    if totals is None:
        return None
    if not isinstance(totals, Mapping):
        if isinstance(totals, str) or not isinstance(totals, Sequence):
            raise OpTypeError.of("Loader.totals", f"is {totals!r}, expected {_EXPECTED}")
        totals = {name: name for name in totals}
    if not totals or not all(isinstance(text, str) for pair in totals.items() for text in pair):
        raise OpTypeError.of("Loader.totals", f"is {totals!r}, expected {_EXPECTED}")
    return Totals(totals)


_EXPECTED = "names and expressions, such as {'trained': 'labels.values != -100'}, or a list of tensors"


def wide(values: Array) -> Array:
    """Return counts as int64 or uint64, other numbers as float64; Python integers if a sum may not fit 64 bits."""
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    if values.dtype.itemsize == 8 and values.size:
        most = max(abs(int(values.max())), abs(int(values.min())))
        if most >= 2**62 // len(values):
            return values.astype(object)
    return values.astype(np.uint64 if values.dtype == np.uint64 else np.int64)


def _sums(values: Array, counts: Array) -> Array:
    """Return the sum of each segment."""
    if values.dtype != object:
        return kernels.segment_reduce("sum", values, counts)
    found = np.zeros(len(counts), object)
    np.add.at(found, np.repeat(np.arange(len(counts)), counts), values)
    return found
