"""The items of consecutive batches, what they cost, and the batches that they make when they are dealt anew."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.errors import BatchPlanError
from seqflow.kernels import PackingPlan
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance
from seqflow.loader.plans.batches import RowBatches
from seqflow.loader.plans.packed import Packed, PackedBatches
from seqflow.loader.plans.plan import BatchPlan, WindowBatches
from seqflow.loader.plans.rows import Rows
from seqflow.loader.plans.selection import Pieces, RowSelection
from seqflow.loader.plans.window_rows import WindowRows


class Span(NamedTuple):
    """Consecutive planned batches."""

    batches: WindowBatches
    start: int
    stop: int


def deals_rows(plan: BatchPlan, balance: Balance) -> bool:
    """Whether rows are dealt, or packed rows; else whole batches are, which any other rows would not fill."""
    if balance.needs_longest:
        return False
    return isinstance(plan, Rows) or (isinstance(plan, Packed) and plan.rows > 1)


def item_counts(span: Span, rows: bool) -> Array:
    """int64[batches]: how many items each batch has: its rows, or itself."""
    return row_counts(span) if rows else np.ones(span.stop - span.start, np.int64)


def item_costs(span: Span, balance: Balance, rows: bool) -> Array:
    """int64 or float64: what the items of the batches cost, batch after batch."""
    batches, counts, chosen = span.batches, row_counts(span), places_of(span)
    if isinstance(batches, PackedBatches):
        costs = _packed_costs(batches, chosen, balance)
    else:
        costs = _row_costs(batches, chosen, counts, balance)
    return costs if rows else kernels.segment_reduce("sum", costs, counts)


def row_counts(span: Span) -> Array:
    """int64[batches]: the rows of each batch, or its packed rows."""
    bounds = span.batches.bounds
    return bounds.stops[span.start : span.stop] - bounds.starts[span.start : span.stop]


def places_of(span: Span) -> Array:
    """The places of the rows, batch after batch: those of buckets do not follow each other."""
    counts = row_counts(span)
    starts = span.batches.bounds.starts[span.start : span.stop]
    return np.repeat(starts, counts) + kernels.lengths_to_positions(counts)


def _packed_costs(batches: PackedBatches, chosen: Array, balance: Balance) -> Array:
    """Of some packed rows, by their places in the order."""
    packed_rows = batches.order[chosen]
    pieces = batches.pieces_of(packed_rows)
    longest = np.full(len(pieces.sizes), batches.capacity)
    costs = balance.piece_costs(pieces, batches.rows, longest)
    return kernels.segment_reduce("sum", costs, batches.layout.pieces[packed_rows])


def _row_costs(batches: RowBatches, chosen: Array, counts: Array, balance: Balance) -> Array:
    """Of some rows or pieces, in the order in which batches have them."""
    if batches.planned is None:
        raise BatchPlanError("Balance: the batches of rows have no lengths that say what they cost")
    pieces = batches.planned.take(chosen)
    longest = None
    if balance.needs_longest:
        longest = np.repeat(kernels.segment_reduce("max", pieces.sizes, counts), counts)
    return balance.piece_costs(pieces, batches.rows, longest)


def dealt_batches(spans: Sequence[Span], items: Array, counts: Array) -> WindowBatches:
    """Batches of so many items each: rows that are numbered over the batches of the spans in turn."""
    places = [places_of(one) for one in spans]
    if len(spans) == 1:
        return spans[0].batches.dealt(places[0][items], counts)
    joined, firsts = joined_batches([one.batches for one in spans])
    inside = np.concatenate([one + first for one, first in zip(places, firsts, strict=True)])
    return joined.dealt(inside[items], counts)


def joined_batches(batches: Sequence[WindowBatches]) -> tuple[WindowBatches, Array]:
    """The rows of all in turn, as batches of one plan, and the first of each; batches of which are dealt anew."""
    rows = reduce(WindowRows.joined, [one.rows for one in batches])
    before = _before([one.rows.num_rows for one in batches])
    if all(isinstance(one, PackedBatches) for one in batches):
        return _joined_packed(batches, rows, before)  # type: ignore[arg-type]
    planned = [one.planned for one in batches if isinstance(one, RowBatches) and one.planned is not None]
    pieces = Pieces(
        np.concatenate([one.rows + first for one, first in zip(planned, before, strict=True)]),
        np.concatenate([one.starts for one in planned]),
        np.concatenate([one.sizes for one in planned]),
    )
    first = batches[0]
    assert isinstance(first, RowBatches)
    made = RowBatches(
        rows, first.bounds, first.sizes, first.dropped, pieces=pieces, cut=first.cut, planned=pieces
    )
    return made, _before([len(one.sizes) for one in planned])


def _joined_packed(
    batches: Sequence[PackedBatches], rows: WindowRows, before: Array
) -> tuple[PackedBatches, Array]:
    entries = _before([len(one.selection.pieces.rows) for one in batches])
    selected = [one.selection.pieces for one in batches]
    pieces = Pieces(
        np.concatenate([one.rows + first for one, first in zip(selected, before, strict=True)]),
        np.concatenate([one.starts for one in selected]),
        np.concatenate([one.sizes for one in selected]),
    )
    layouts = [one.layout for one in batches]
    layout = PackingPlan(
        np.concatenate([one.sources + first for one, first in zip(layouts, entries, strict=True)]),
        *(np.concatenate(parts) for parts in list(zip(*layouts, strict=True))[1:]),
    )
    counts = [len(one.pieces) for one in layouts]
    firsts = _before(counts)
    orders = [one.order for one in batches]
    sources = _before([one.rows.source.num_rows for one in batches])
    first = batches[0]
    made = PackedBatches(
        rows,
        first.columns,
        first.capacity,
        np.repeat([one.window for one in batches], counts),
        RowSelection(pieces, whole=False, cut=any(one.selection.cut for one in batches)),
        (),
        layout,
        kernels.lengths_to_offsets(layout.pieces),
        np.concatenate([one + number for one, number in zip(orders, firsts, strict=True)]),
        first.bounds,
        first.sizes,
        first.dropped,
        first.multiple_of,
        np.repeat(sources, counts),
    )
    return made, _before([len(one) for one in orders])


def _before(counts: Sequence[int]) -> Array:
    """int64: the sum of those before each."""
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
