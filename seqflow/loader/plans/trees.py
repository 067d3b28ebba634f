"""Trees of rows with common prefixes: the units that are packed, and the tensors of packed rows in which each shared
element is there once.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.plan import CutColumn, Layout
from seqflow.loader.plans.selection import RowSelection, is_text
from seqflow.loader.plans.shares import Share, parts_of_window, stacked
from seqflow.loader.plans.window_rows import Pieces, WindowRows
from seqflow.ops.shared.comparable import as_integers
from seqflow.record import BadRow
from seqflow.record.row_source import ChildRanges


def codes_of(values: Sequence[Array]) -> Array:
    """int64[N]: codes of elements, the same for those that are equal in all columns."""
    if len(values) == 1 and values[0].ndim == 1:
        return as_integers(values[0])
    return stacked([(one, np.ones(len(one), np.int64)) for one in values])[1]


def _codes_of_rows(rows: WindowRows, columns: Sequence[str]) -> Array:
    """int64[rows]: codes of the rows of a window, the same for those whose `columns` are equal."""
    parts, record = [], rows.records[0]
    for column in columns:
        if f"{column}.lengths" not in record:
            parts.append((rows.tensor(column), np.ones(rows.num_rows, np.int64)))
        parts += parts_of_window(rows, Share((column,), None), column)
    return stacked(parts)[1]


def in_trees(
    selection: RowSelection,
    rows: WindowRows,
    columns: Sequence[CutColumn],
    shared_with: Sequence[str],
    capacity: int,
    min_shared: int,
) -> RowSelection:
    """Return the selection in lexicographic order, with the tree of each row, of at most `capacity` elements.

    A tree above it is cut where the next row does not fit: the first row of each part has its whole path again.
    """
    pieces = selection.pieces
    if not len(pieces.sizes):
        return replace(selection, pieces=replace(pieces, trees=np.zeros((0, 2), np.int64)))
    values = [
        kernels.gather_slices(rows.source.chunks[of.tensor], *rows.ranges(of.lengths, pieces))
        for of in columns
    ]
    keys = _codes_of_rows(rows, shared_with)[pieces.rows] if shared_with else None
    found = kernels.prefix_tree(codes_of(values), pieces.sizes, keys, min(min_shared, len(values[0]) + 1))
    # the trie is in preorder, so rows in the order of their last elements are in lexicographic order, and each adds
    # the elements since the last one of the row before
    last = found[3][np.cumsum(pieces.sizes) - 1]
    order = np.argsort(last, kind="stable")
    last, sizes = last[order], pieces.sizes[order]
    added = np.diff(last, prepend=-1)
    begins = added == sizes
    stops = np.append(np.flatnonzero(begins)[1:], len(sizes))[np.cumsum(begins) - 1]
    # the row after each part that begins with a row
    following = np.minimum(np.searchsorted(last, last + (capacity - sizes), side="right"), stops).tolist()
    row, firsts = 0, []
    while row < len(following):
        firsts.append(row)
        row = following[row]
    begins[firsts] = True
    trees = np.stack([np.cumsum(begins), np.where(begins, sizes, added)], axis=1)
    return replace(selection, pieces=replace(pieces.take(order), trees=trees))


def cut_alike(
    selection: RowSelection, rows: WindowRows, lengths: str, packed: Collection[str]
) -> tuple[RowSelection, list[BadRow]]:
    """Return the selection with all other list columns of a row that is cut, cut like it, and rows where they have
    another number of elements.
    """
    if not selection.cut:
        return selection, []
    pieces, record = selection.pieces, rows.records[0]
    sizes = rows.sizes(lengths)[pieces.rows]
    is_cut, unequal = pieces.sizes < sizes, dict[int, BadRow]()
    items = {}
    for name in rows.source.offsets:
        if record.parents[name] is not None or name in packed or is_text(record, name):
            continue
        own = rows.tensor(name)[pieces.rows].astype(np.int64)
        items[name] = ChildRanges(np.where(is_cut, pieces.starts, 0), np.where(is_cut, pieces.sizes, own))
        for at in np.flatnonzero(is_cut & (own != sizes)).tolist():
            column, expected = name.removesuffix(".lengths"), lengths.removesuffix(".lengths")
            reason = f"not as many elements as {expected!r}: they are cut together"
            found = f"{own[at]} elements, but {sizes[at]} in {expected!r}: they are cut together"
            number = int(rows.numbers(pieces.rows[at : at + 1])[0])
            unequal.setdefault(int(pieces.rows[at]), BadRow(number, column, found, reason))
    kept = replace(pieces, items=items).take(~np.isin(pieces.rows, list(unequal)))
    return replace(selection, pieces=kept), list(unequal.values())


def layout_of_trees(pieces: Pieces, planned: Layout, first: Array) -> Layout:
    """Return the layout of pieces, of the planned layout of their trees, which begin with the pieces `first`."""
    assert planned.packing is not None
    trees = planned.packing.sources
    counts = np.diff(first, append=len(pieces.sizes))[trees]
    chosen = np.repeat(first[trees], counts) + kernels.lengths_to_positions(counts)
    of_rows = kernels.segment_reduce("sum", counts, planned.packing.pieces)
    packing = kernels.PackingPlan(chosen, np.zeros_like(chosen), pieces.sizes[chosen], of_rows)
    return planned._replace(packing=packing)


TREES: Mapping[str, str | None] = {
    **dict.fromkeys(("position_ids", "previous", "until", "nodes", "pieces")),
    "node_lengths": "nodes",
    "parents": "nodes",
    "rows.lengths": "pieces",
    "rows.values": "rows.lengths",
    "window": None,
    "sources": "pieces",
}
"""Tensors of packed rows with trees besides the columns, and the lengths that they are under."""


class PackedTrees(NamedTuple):
    """Trees laid out in packed rows [R, C]. Places are counted over all rows laid end to end."""

    kept: Array
    """int64[K]: the element of the pieces at each of `places`."""
    places: Array
    """int64[K]: the places that are not padding."""
    tensors: dict[str, Array]
    """Tensors that tell the trees, by name."""


def packed_trees(
    values: Sequence[Array], pieces: Pieces, counts: Array, capacity: int, min_shared: int
) -> PackedTrees:
    """Lay out pieces, so many in each packed row, with prefixes that they share in a tree once."""
    assert pieces.trees is not None
    num_rows, of_piece = len(counts), np.repeat(np.arange(len(counts)), counts)
    begins = np.diff(pieces.trees[:, 0], prepend=-1) != 0
    begins[1:] |= of_piece[1:] != of_piece[:-1]
    least = min(min_shared, len(values[0]) + 1)
    kept, lengths, parents, rows = kernels.prefix_tree(
        codes_of(values), pieces.sizes, np.cumsum(begins), least
    )
    row = np.repeat(of_piece, pieces.sizes)[kept]
    used = np.bincount(row, minlength=num_rows)
    places = row * capacity + kernels.lengths_to_positions(used)
    # the last segment of each row is its padding, so that segments are those of all rows laid end to end
    of_node = row[kernels.lengths_to_offsets(lengths)[:-1]]
    nodes = np.bincount(of_node, minlength=num_rows)
    ends = np.cumsum(nodes)
    lengths = np.insert(lengths, ends, capacity - used)
    parents = np.insert(np.where(parents < 0, parents, parents + of_node), ends, -1)
    _, _, positions, previous, until = kernels.tree_paths(parents, lengths)
    padding = np.ones(num_rows * capacity, bool)
    padding[places] = False
    positions[padding], previous[padding] = 0, -1
    shape = num_rows, capacity
    tensors = {
        "position_ids": positions.astype(np.int32).reshape(shape),
        "previous": previous.reshape(shape),
        "until": (until.reshape(shape) - np.arange(num_rows)[:, None] * capacity).astype(np.int32),
        "nodes": nodes + 1,
        "node_lengths": lengths,
        "parents": parents,
        "pieces": counts,
        "rows.lengths": pieces.sizes,
        "rows.values": places[rows],
    }
    return PackedTrees(kept, places, tensors)
