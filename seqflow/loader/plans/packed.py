"""Packed: several sequences in each row of a fixed size."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.arguments import at_least_one
from seqflow.deprecated_names import renamed_fields
from seqflow.errors import BatchPlanError, OpError, UnknownColumnError, nearest
from seqflow.kernels import PackingPlan
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.along import AlongColumns, check_uncut, checked_along
from seqflow.loader.plans.balance import Balance
from seqflow.loader.plans.plan import (
    LATER,
    BatchLimits,
    BatchPlan,
    CutColumn,
    Layout,
    WindowBatches,
    permutation,
    shown_plan,
)
from seqflow.loader.plans.row_plans import batches_of_n
from seqflow.loader.plans.selection import (
    Oversize,
    RowSelection,
    check_lengths_between,
    checked_columns,
)
from seqflow.loader.plans.shares import is_under
from seqflow.loader.plans.trees import TREES, cut_alike, in_trees, layout_of_trees, packed_trees
from seqflow.loader.plans.window_rows import Pieces, WindowRows
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.record import BadRow, Record
from seqflow.record.batch_memory import BatchMemory


@renamed_fields()
@dataclass(frozen=True, slots=True)
class Packed(BatchPlan):
    """Rows of `capacity` elements, packed full; see `ops.pack_rows` for the strategies.

    `columns` are cut and packed alike: each row has equally many elements in all of them. By default these are
    all values under the planned lengths. The rest of a packed row is filled with `fill`, or with the column's
    value in `fills`. For labels, pass `fills={"labels": -100}`, which `cross_entropy` ignores: 0, the default, is
    a label like any other, and no column is taken for labels by its name. The rows of a window are packed
    together, and their packed rows, in a random order, make batches of `rows`. Nothing is lost by default: a
    sequence longer than `capacity` is cut into pieces, unless `oversize` is "truncate", "skip", or "bad_rows",
    which treats it as a bad row of the loader.

    A batch has each packed column under its own name, [R, capacity]; `segment_ids` and `position_ids`, [R,
    capacity]; and for the pieces in each row `pieces` (their number), `piece_lengths` and `sources` (the number
    of the row each piece comes from, counted over the window, before it is shuffled). `window`, [R], is the
    number of the window. Columns with one value for each row, and columns that the loader pads, are included
    with one entry for each piece. Any other list column is an error. The offsets of all pieces come with
    `loader.to("torch", cu_seqlens=True)`.

    With `multiple_of` each piece is followed by padding up to a multiple, over which `position_ids` go on
    counting; `padded_lengths` are the `piece_lengths` including that padding. Pieces are packed on these. With
    `first_fills`, no label of one document is predicted from the last token of the document before it.

    With `share="prefix"`, common prefixes of rows are in a packed row once: the answers to one prompt, the turns of a
    conversation. What is packed are trees of rows, and `capacity` counts their elements; a tree above it is cut in
    lexicographic order, and its parts repeat their path. A row with more than `capacity` or `max_path` elements is
    treated by `oversize`. Padding is the last segment of each packed row. A batch then has, besides the columns:

    * `position_ids`, int32[R, capacity]: the place of each element in its rows.
    * `previous`, int64[R, capacity]: the place whose logits predict it, over all packed rows laid end to end; -1 at
      the beginning of rows, and in padding.
    * `until`, int32[R, capacity]: element i of a packed row sees j if `j <= i < until[j]`.
    * `nodes`, [R], and for these segments `node_lengths` and `parents`, as of `ops.prefix_tree`.
    * `pieces`, [R], and for each row in them `rows.lengths`, `rows.values` with the places of its elements, over all
      packed rows laid end to end, and `sources`. All other columns come flat, by row, in the same order.
    """

    capacity: int
    """Number of elements of a packed row."""
    columns: tuple[str, ...] | None = None
    """List columns that are packed; None is all under the planned lengths."""
    fills: dict[str, float] = field(default_factory=dict)
    """Values that fill the rest of packed rows, by column, in place of `fill`: -100 for labels."""
    strategy: Literal["best_fit", "first_fit", "concat"] = "best_fit"
    """Strategy of packing: see `ops.pack_rows`."""
    rows: int = 64
    """Number of packed rows in a batch."""
    fill: int | float = 0
    """Value that fills the rest of packed rows."""
    drop_last: bool = False
    """Whether to omit short batches."""
    lengths: str | None = None
    """Lengths tensor to plan on; by default that of the first of `columns`, or of the only list column of numbers."""
    min_length: int | None = None
    """Shorter rows are omitted, and counted."""
    max_length: int | None = None
    """Longer rows are omitted, and counted."""
    oversize: Oversize = "split"
    """Treatment of a sequence above `capacity`: cut into pieces, cut off, omitted, or a bad row."""
    multiple_of: int = field(default=1, metadata=LATER)
    """Each piece is padded to a multiple of this, 2 * ranks for context parallelism. `capacity` must be a
    multiple too."""
    first_fills: dict[str, float] = field(default_factory=dict, metadata=LATER)
    """Values that replace the first element of each piece, by column: -100 for labels that a model shifts itself."""
    along: AlongColumns = field(default=(), metadata=LATER)
    """List columns of any depth that travel with their row, such as its images; a mapping to `Along` says where their
    items are, so that rows may be cut between them."""
    max_pieces: int | None = field(default=None, metadata=LATER)
    """Largest number of pieces in a packed row; None for any number."""
    share: Literal["prefix"] | None = field(default=None, metadata=LATER)
    """With "prefix", `columns` of a packed row have common prefixes of its rows once."""
    shared_with: tuple[str, ...] = field(default=(), metadata=LATER)
    """Columns that must be equal, too, in rows that share a prefix: all else that a model sees of it."""
    max_path: int | None = field(default=None, metadata=LATER)
    """With `share`, the largest number of elements of a row; None is `capacity`."""
    min_shared: int = field(default=16, metadata=LATER)
    """With `share`, the smallest number of elements of a prefix that is shared."""
    balance: Balance | None = field(default=None, metadata=LATER)
    """Balance that assigns the rows or batches of training steps so that all ranks have equal costs."""

    __repr__ = shown_plan
    cuts_rows = splits_rows = True

    def __post_init__(self) -> None:
        at_least_one(
            "Packed",
            capacity=self.capacity,
            rows=self.rows,
            multiple_of=self.multiple_of,
            max_pieces=self.max_pieces,
            max_path=self.max_path,
            min_shared=self.min_shared,
        )
        object.__setattr__(self, "along", checked_along(self.along, "Packed"))
        self._check_share()
        if self.oversize in ("split", "truncate"):
            check_uncut("Packed", self.along, "oversize", self.oversize)
        for option in ("along", "max_pieces"):
            if self.strategy == "concat" and (value := getattr(self, option)):
                raise OpError.of(
                    "Packed.strategy", f"is 'concat', which cuts rows anywhere, with {option} = {value!r}"
                )
        if self.capacity % self.multiple_of:
            raise OpError.of(
                "Packed.capacity",
                f"is {self.capacity}, expected a multiple of multiple_of = {self.multiple_of}",
            )
        # segment_ids and position_ids are int32
        if self.capacity >= 2**31:
            raise OpError.of("Packed.capacity", f"is {self.capacity}, expected less than {2**31}")
        check_lengths_between("Packed", self.min_length, self.max_length)
        columns = checked_columns(self.columns, "Packed")
        object.__setattr__(self, "columns", columns)
        if columns is not None and self.lengths is None:
            object.__setattr__(self, "lengths", columns[0])
        for option, fills in (("fills", self.fills), ("first_fills", self.first_fills)):
            unknown = [name for name in fills if self.columns is not None and name not in self.columns]
            if unknown:
                raise OpError.of(f"Packed.{option}", f"has {unknown[0]!r}, which is not one of columns")

    def _check_share(self) -> None:
        given = (
            None if isinstance(self.shared_with, tuple | list) and not self.shared_with else self.shared_with
        )
        names = checked_columns(given, "Packed", "shared_with", "columns") or ()
        object.__setattr__(self, "shared_with", names)
        if self.share is None:
            for option, default in (("shared_with", ()), ("max_path", None), ("min_shared", 16)):
                if (value := getattr(self, option)) != default:
                    raise OpError.of(f"Packed.{option}", f"is {value!r}, which needs share='prefix'")
            return
        wrong = {
            "strategy": self.strategy == "concat" and "which cuts rows anywhere",
            "multiple_of": self.multiple_of > 1 and "and a part that rows share has no end of a row to pad",
            "first_fills": self.first_fills
            and "and an element that rows share has one value for all of them",
            "along": self.along and "and all other list columns come by row anyway",
            "max_pieces": self.max_pieces and "and rows of a tree are packed together",
        }
        for option, why in wrong.items():
            if why:
                value = getattr(self, option)
                raise OpError.of(f"Packed.{option}", f"is {value!r} with share = {self.share!r}, {why}")
        if self.balance is not None and self.balance.cost is not None:
            raise OpError.of(
                "Packed.balance",
                f"has cost = {self.balance.cost!r} with share = {self.share!r}, expected linear, by which a row "
                "costs what it adds to its tree",
            )
        if self.max_path is not None and self.max_path > self.capacity:
            raise OpError.of(
                "Packed.max_path", f"is {self.max_path}, expected at most capacity = {self.capacity}"
            )

    @property
    def deals_rows(self) -> bool:
        return self.rows > 1

    def unknown_by_lengths(self) -> str:
        if self.share is not None:
            return "rows share prefixes, and lengths do not tell which"
        return BatchPlan.unknown_by_lengths(self)

    @property
    def packed_capacity(self) -> int | None:
        return self.capacity

    def limits(self, tokens: int | None, rows: int | None) -> BatchLimits:
        # all packed rows but one are more than half full, counted in pairs
        most = self.rows if tokens is None else min(self.rows, 2 * tokens // self.capacity + 1)
        if self.share is not None:
            return BatchLimits(most, longest={"node_lengths": self.capacity, "rows.lengths": self._longest})
        return BatchLimits(most, longest=dict.fromkeys(("pieces", "piece_lengths"), self.capacity))

    def select(self, sizes: Array) -> RowSelection:
        """Return the rows that are packed; empty rows have nothing to pack."""
        passed = RowSelection.of(sizes).between(self.min_length, self.max_length)
        if self.oversize != "split" or self.share is not None:
            passed = passed.at_most(self._longest, self.oversize, self._limit)
        return passed.filled()

    @property
    def _longest(self) -> int:
        return self.max_path or self.capacity

    @property
    def _limit(self) -> str:
        return f"capacity = {self.capacity}" if self.max_path is None else f"max_path = {self.max_path}"

    def _arranged(
        self, selection: RowSelection, rows: WindowRows, columns: Sequence[CutColumn]
    ) -> tuple[RowSelection, list[BadRow]]:
        if self.share is None:
            return selection, []
        packed = {of.lengths for of in columns}
        selection, bad = cut_alike(selection, rows, columns[0].lengths, packed)
        return in_trees(selection, rows, columns, self.shared_with, self.capacity, self.min_shared), bad

    def _layout(self, selection: RowSelection, key: int) -> Layout:
        trees = selection.pieces.trees
        if trees is None:
            return BatchPlan._layout(self, selection, key)
        first = np.flatnonzero(np.diff(trees[:, 0], prepend=0))
        costs = kernels.segment_reduce("sum", trees[:, 1], np.diff(first, append=len(trees)))
        return layout_of_trees(selection.pieces, self.layout(costs, key), first)

    def _whole_lists(self, rows: WindowRows) -> Collection[str]:
        names = () if self.share is None else rows.source.offsets
        return [name.removesuffix(".lengths") for name in names]

    def layout(self, sizes: Array, key: int) -> Layout:
        """Lay out pieces in packed rows by their padded lengths. Packed rows are permuted by `key`."""
        packing = self._packing(sizes)
        order = permutation(len(packing.pieces), key)
        pieces, first = packing.pieces[order], kernels.lengths_to_offsets(packing.pieces)[order]
        chosen = np.repeat(first, pieces) + kernels.lengths_to_positions(pieces)
        sources, starts, lengths = (kernels.gather(part, chosen) for part in packing[:3])
        if self.multiple_of > 1:
            # packed on rounded lengths: the last piece of a row gets its true length back
            lengths = np.minimum(lengths, sizes[sources] - starts)
        counts, _, short = batches_of_n(len(order), self.rows)
        return Layout(counts, None, short, PackingPlan(sources, starts, lengths, pieces))

    def count(self, sizes: Array) -> int:
        packed_rows = len(self._packing(self.select(sizes).pieces.sizes).pieces)  # in any order
        return packed_rows // self.rows if self.drop_last else -(-packed_rows // self.rows)

    def _packing(self, sizes: Array) -> PackingPlan:
        most = self.max_pieces or 0
        return kernels.plan_packing(rounded(sizes, self.multiple_of), self.capacity, self.strategy, most)

    def cut_columns(self, rows: WindowRows, lengths: str) -> Sequence[CutColumn]:
        """Return the columns that are packed; raise BatchPlanError when they do not fit the records."""
        record = rows.records[0]
        found = BatchPlan.cut_columns(self, rows, lengths)
        names = [one.name for one in found]
        for option, fills in (("fills", self.fills), ("first_fills", self.first_fills)):
            unknown = [name for name in fills if name not in names]
            if unknown:
                raise BatchPlanError(
                    f"Packed: {option} has {unknown[0]!r}, which is not packed\n  packed are {', '.join(names)}"
                )
        padded = [name for name in rows.pads if name in names]
        if padded:
            raise BatchPlanError(
                f"Packed: pad has {padded[0]!r}, which is packed",
                advice="%(fills)s says what fills its rows",
            )
        for name in self.shared_with:
            lists = f"{name}.lengths"
            if any(is_under(record, one, lists) and record.parents[one] != lists for one in record):
                raise BatchPlanError(
                    f"Packed: shared_with has {name!r}, which holds lists of lists\n"
                    "  name a column with a value, or a list of values, in each row"
                )
            if name not in record and lists not in record:
                raise UnknownColumnError(
                    f"Packed: shared_with has {name!r}, which is not a column of the prepared rows"
                    f"{nearest(name, record)}\n  they have {', '.join(record)}"
                )
        cut = {name for one in found for name in (one.tensor, one.lengths)}
        for name in [*names, *(name for name in record if name not in cut)]:
            if name in (MADE if self.share is None else TREES) or (name == PADDED and self.multiple_of > 1):
                raise BatchPlanError(
                    f"Packed: the records have a tensor {name!r}, which is the name of one that packing makes\n"
                    "  give it another name, with rename= or in prepare"
                )
        return [one._replace(**self._fills_of(one.name, record[one.tensor].dtype)) for one in found]

    def _fills_of(self, name: str, dtype: np.dtype[Any]) -> dict[str, Any]:
        """Return the values that fill the padding of a column, and its first elements; None leaves these
        unchanged.
        """
        own, first = f"fills of Packed has {name!r}, which", f"first_fills of Packed has {name!r}, which"
        fill = ("fill", self.fill) if name not in self.fills else (own, self.fills[name])
        first_fill = self.first_fills.get(name)
        return {
            "fill": cast_scalar(*fill, dtype),
            "first_fill": None if first_fill is None else cast_scalar(first, first_fill, dtype),
        }

    def record(
        self, batches: WindowBatches, pieces: Pieces, counts: Array | None, memory: BatchMemory | None = None
    ) -> Record:
        """Return packed rows with so many pieces each."""
        assert counts is not None
        rows = batches.rows
        tensors = (self._dense if self.share is None else self._trees)(batches, pieces, counts, memory)
        window, sources = np.full(len(counts), batches.windows[0], np.int64), rows.numbers(pieces.rows)
        if batches.first_rows is not None:
            of_piece = np.searchsorted(batches.first_rows, sources, side="right") - 1
            sources = sources - batches.first_rows[of_piece]
            window = np.array(batches.windows, np.int64)[of_piece[np.cumsum(counts) - counts]]
        tensors |= {"pieces": counts, "window": window}
        below: Mapping[str, str | None] = TREES
        if self.share is None:
            below = {"piece_lengths": "pieces", "sources": "pieces"}
            tensors["piece_lengths"] = pieces.sizes
        tensors["sources"] = sources
        parents = {name: below.get(name) for name in tensors}
        if self.multiple_of > 1:
            tensors[PADDED], parents[PADDED] = rounded(pieces.sizes, self.multiple_of), "pieces"
        known = rows.source.dictionaries
        dictionaries = {one.name: known[one.tensor] for one in batches.columns if one.tensor in known}
        packed = {name for one in batches.columns for name in (one.tensor, one.lengths)}
        schema = None
        if len(packed) < len(rows.source.chunks):
            items = {lengths: rows.below(lengths, pieces, ()) for lengths in pieces.items}
            taken = rows.take(pieces.rows, memory, without=packed, ranges=items)
            tensors |= taken.tensors
            parents |= {name: parent or "pieces" for name, parent in taken.parents.items()}
            dictionaries |= taken.dictionaries
            schema = taken.schema  # says which bytes are text
        return Record(tensors, parents, len(counts), schema, dictionaries)

    def _dense(
        self, batches: WindowBatches, pieces: Pieces, counts: Array, memory: BatchMemory | None
    ) -> dict[str, Array]:
        """Return the packed columns, `segment_ids` and `position_ids`."""
        numbers, zeros = np.arange(len(pieces.sizes)), np.zeros_like(pieces.sizes)
        packing = PackingPlan(numbers, zeros, pieces.sizes, counts)
        shape = (len(counts), self.capacity)
        tensors: dict[str, Array] = {}
        for column in batches.columns:
            chunks = batches.rows.source.chunks[column.tensor]
            flat = out = None
            if memory is not None:
                elements = (int(pieces.sizes.sum()), *chunks.row_shape)
                flat = memory.empty(f"{column.name}, in a row", elements, chunks.dtype)
                out = (
                    memory.empty(column.name, shape + chunks.row_shape, chunks.dtype),
                    memory.empty("segment_ids", shape, _IDS),
                    memory.empty("position_ids", shape, _IDS),
                )
            ranges = batches.rows.ranges(column.lengths, pieces)
            data = kernels.gather_slices(chunks, *ranges, out=flat)
            if self.multiple_of > 1:
                filled = fill_padded(data, pieces.sizes, counts, self, column.fill, out)
            else:
                filled = kernels.fill_packed(data, pieces.sizes, packing, self.capacity, column.fill, out=out)
            tensors[column.name], segment_ids, position_ids = filled
            if column.first_fill is not None:
                begins = piece_begins(pieces.sizes, counts, self.capacity, self.multiple_of)
                filled[0].reshape(-1, *chunks.row_shape)[begins] = column.first_fill
        return tensors | {"segment_ids": segment_ids, "position_ids": position_ids}

    def _trees(
        self, batches: WindowBatches, pieces: Pieces, counts: Array, memory: BatchMemory | None
    ) -> dict[str, Array]:
        """Return the packed columns, and what tells the trees in their rows."""
        values = [_elements_of(batches, one, pieces) for one in batches.columns]
        found = packed_trees(values, pieces, counts, self.capacity, self.min_shared)
        tensors: dict[str, Array] = {}
        for column, of in zip(batches.columns, values, strict=True):
            dense = np.full((len(counts), self.capacity, *of.shape[1:]), column.fill, of.dtype)
            dense.reshape(-1, *of.shape[1:])[found.places] = of[found.kept]
            tensors[column.name] = dense
        return tensors | found.tensors

    def owners(self, batches: WindowBatches, pieces: Pieces, element: int) -> tuple[Array, Array]:
        """Return the pieces of a packed row that have an element of it, and its place in each."""
        values = [_elements_of(batches, one, pieces) for one in batches.columns]
        counts = np.array([len(pieces.sizes)])
        places = packed_trees(values, pieces, counts, self.capacity, self.min_shared).tensors["rows.values"]
        at = np.flatnonzero(places == element)
        offsets = kernels.lengths_to_offsets(pieces.sizes)
        of = np.searchsorted(offsets, at, side="right") - 1
        return of, at - offsets[of] + pieces.starts[of]


def _elements_of(batches: WindowBatches, column: CutColumn, pieces: Pieces) -> Array:
    ranges = batches.rows.ranges(column.lengths, pieces)
    return kernels.gather_slices(batches.rows.source.chunks[column.tensor], *ranges)


MADE = ("segment_ids", "position_ids", "pieces", "window", "piece_lengths", "sources")
"""Tensors of a packed batch besides the columns."""
PADDED = "padded_lengths"
"""Tensor of the lengths of pieces with their padding, if they have some."""

_IDS = np.dtype(np.int32)


def rounded(sizes: Array, multiple: int) -> Array:
    """Return sizes rounded up to the next multiple."""
    return sizes if multiple == 1 else -(-sizes // multiple) * multiple


def piece_begins(sizes: Array, counts: Array, capacity: int, multiple: int) -> Array:
    """int64[P]: the beginning of each piece in packed rows laid end to end; `counts` are the pieces of each row."""
    rows = np.repeat(np.arange(len(counts)), counts)
    ends = kernels.lengths_to_offsets(rounded(sizes, multiple))
    first = ends[kernels.lengths_to_offsets(counts)[:-1]] if len(counts) else ends[:0]
    begins: Array = rows * capacity + ends[:-1] - first[rows]
    return begins


def fill_padded(
    data: Array, pieces: Array, counts: Array, plan: Packed, fill: Any, out: tuple[Array, Array, Array] | None
) -> tuple[Array, Array, Array]:
    """Return packed rows of some data, `segment_ids`, which are 0 in all padding, and `position_ids`, which go
    on in it.
    """
    shape = (len(counts), plan.capacity)
    if out is None:
        ids = np.empty(shape, _IDS), np.empty(shape, _IDS)
        out = np.empty(shape + data.shape[1:], data.dtype), *ids
    begins = piece_begins(pieces, counts, plan.capacity, plan.multiple_of)
    elements = np.repeat(begins, pieces) + kernels.lengths_to_positions(pieces)
    padded = rounded(pieces, plan.multiple_of)
    positions = kernels.lengths_to_positions(padded)
    for dense, start, places, values in zip(
        out,
        (fill, 0, 0),
        (elements, elements, np.repeat(begins, padded) + positions),
        (data, np.repeat(kernels.lengths_to_positions(counts) + 1, pieces), positions),
        strict=True,
    ):
        dense[...] = start
        dense.reshape(-1, *dense.shape[2:])[places] = values
    return out
