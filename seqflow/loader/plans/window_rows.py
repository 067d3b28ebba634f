"""The prepared rows of one window: their order, their sizes, and batches of them, padded if requested."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.arguments import DtypeLike, at_least_one
from seqflow.deprecated_names import renamed_fields
from seqflow.errors import BatchPlanError, LodError, OpError, OpTypeError, UnknownColumnError, nearest
from seqflow.kernels.arrays import Array, DType
from seqflow.kernels.files.chunks import converts
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.record import Record, nbytes, slice_rows
from seqflow.record.batch_memory import BatchMemory
from seqflow.record.row_source import ChildRanges, RowSource


@renamed_fields()
@dataclass(frozen=True, slots=True)
class Pad:
    """How a list column of numbers becomes an array [B, T] in each batch, with a mask bool[B, T] and lengths [B].

        sf.Loader(path, pad={"tokens": sf.Pad(0, dtype="int64", multiple_of=8)})

    `fill` fills the padding, on the `side` "right" or "left" of the data. T is `max_length`, or else the length
    of the batch's longest row, rounded up to a `multiple_of`. A row above `max_length` is an error, unless
    `truncate` cuts it (at its end; with side="left" at its start): lengths and mask then describe the cut row.

    The data become `dtype`, which may be any integer or float for bools and integers, and any float for floats; an
    integer that does not fit is an error. With `mask=False` there is no mask. For labels, pass `Pad(-100)`, which
    `cross_entropy` ignores: 0, the default, is a label like any other.
    """

    fill: float = 0
    """Value of the padding."""
    dtype: DtypeLike = None
    """NumPy dtype or its name; None keeps that of the data."""
    side: Literal["right", "left"] = "right"
    """Side of the data on which the padding is."""
    multiple_of: int = 1
    """The length of the longest row is rounded up to a multiple of this."""
    max_length: int | None = None
    """T in every batch; None takes the length of the batch's longest row."""
    truncate: bool = False
    """Whether to cut rows above `max_length` (at their end; with side="left" at their start), not to
    raise."""
    mask: bool = True
    """Whether to make the mask."""

    def __post_init__(self) -> None:
        at_least_one("Pad", multiple_of=self.multiple_of, max_length=self.max_length)
        if self.truncate and self.max_length is None:
            raise OpError.of("Pad", "truncate=True needs max_length, the length to cut rows to")
        if self.dtype is not None:
            object.__setattr__(self, "dtype", _number_dtype(self.dtype))
            cast_scalar("Pad: fill", self.fill, self.dtype)

    def width(self, sizes: Array) -> int:
        """Return T for rows of these lengths; raise LodError when a row above `max_length` may not be cut."""
        longest = kernels.max_length(sizes)
        if self.max_length is not None:
            if longest > self.max_length and not self.truncate:
                row = int(np.argmax(sizes > self.max_length))
                raise LodError(
                    f"row {row} of the batch has {sizes[row]} elements, expected at most "
                    f"max_length = {self.max_length}\n  cut long rows with truncate=True, or drop them in prepare"
                )
            return self.max_length
        return -(-longest // self.multiple_of) * self.multiple_of


_BOOL = np.dtype(np.bool_)


class PaddedColumn(NamedTuple):
    """A padded tensor: its name, that of its lengths, and that of the result."""

    values: str
    lengths: str
    name: str
    pad: Pad
    dtype: DType
    fill: Any
    mask: str
    sizes: str | None
    """Names of the tensors added with it; no sizes for a step of a net: it leaves the lengths as they are."""


class StepPads(NamedTuple):
    """The steps of a net that only pad columns of its batches, by number, and the columns that they pad."""

    steps: tuple[int, ...]
    columns: tuple[PaddedColumn, ...]


TakenRows = tuple[Array, dict[str, ChildRanges], BatchMemory | None]
"""Rows of a batch, as in `RowSource.take_known`."""


class Padding:
    """Makes batches of a source's rows in which some list columns are padded.

    A column `c` gives the tensors `c`, `c.mask` and `c.lengths`; other columns are as in `RowSource.take`. The
    names in `pads` are those of list columns of numbers, or of tensors with rows below the record's rows.
    """

    @classmethod
    def of_steps(cls, source: RowSource, columns: Sequence[PaddedColumn]) -> Padding:
        """Return one that makes batches before a net: with the results of its steps, and the lengths that they read.

        Of the values, batches have dtype and shape alone.
        """
        padding = cls(source, {})
        padding.columns = [*columns]
        padding.without = {column.values for column in columns}
        return padding

    def __init__(self, source: RowSource, pads: Mapping[str, Pad]) -> None:
        self.source = source
        self.columns = [_column(source, name, pad) for name, pad in pads.items()]
        self.without = {column.values for column in self.columns}
        for column in self.columns:
            rest = [
                name
                for name, parent in source.parents.items()
                if parent == column.lengths and name not in self.without
            ]
            if not rest:
                self.without.add(column.lengths)
            elif column.pad.truncate:
                raise BatchPlanError(
                    f"pad: {column.name} is cut to max_length, but {', '.join(rest)} with the same lengths is not "
                    "padded\n  pad it, too, or leave it out"
                )
        self._check_names()
        known = source.dictionaries
        padded = {column.name: known[column.values] for column in self.columns if column.values in known}
        self._dictionaries = {name: known[name] for name in known if name not in self.without} | padded

    def take_known(
        self,
        rows: Array,
        memory: BatchMemory | None = None,
        *,
        without: Collection[str] = (),
        ranges: Mapping[str, ChildRanges] | None = None,
    ) -> Record:
        """Return the batch of `rows`; arguments are as in `RowSource.take_known`."""
        return self.take_all([(rows, dict(ranges or {}), memory)], without=without)[0]

    def take_all(self, batches: Sequence[TakenRows], *, without: Collection[str] = ()) -> list[Record]:
        """Return several batches; each column is padded for all in one call, during which other threads run."""
        source = self.source
        omitted = {*self.without, *without} if without else self.without
        tensors = [source.gather(*batch, without=omitted) for batch in batches]
        parents = {name: source.parents[name] for name in tensors[0]}
        for column in self.columns:
            padded = [
                self._room(column, source.child_ranges(column.lengths, rows, ranges), memory)
                for rows, ranges, memory in batches
            ]
            self._fill(column, padded)
            for of, one in zip(tensors, padded, strict=True):
                of[column.name] = one.padded
                if one.mask is not None:
                    of[column.mask] = one.mask
                if column.sizes is None:
                    of[column.values] = self._shape_of(column, one.sizes)
                    continue
                of[column.sizes] = (
                    np.minimum(one.sizes, one.padded.shape[1]) if column.pad.truncate else one.sizes.copy()
                )
            added = (column.name, column.mask if column.pad.mask else None, column.sizes)
            parents |= {name: None for name in added if name is not None}
            if column.sizes is None:
                parents[column.values] = column.lengths
        dictionaries = self._dictionaries
        if without:
            dictionaries = {name: dictionaries[name] for name in dictionaries if name in tensors[0]}
        return [
            Record(of, parents, len(rows), source.schema, dictionaries)
            for of, (rows, *_) in zip(tensors, batches, strict=True)
        ]

    def _room(
        self, column: PaddedColumn, ranges: ChildRanges, memory: BatchMemory | None
    ) -> kernels.PaddedBatch:
        """Return the positions of the data of a column, and arrays for it and its mask."""
        shape = len(ranges.sizes), column.pad.width(ranges.sizes)
        full = shape + self.source.chunks[column.values].row_shape
        padded = _empty(memory, column.name, full, column.dtype)
        mask = _empty(memory, column.mask, shape, _BOOL) if column.pad.mask else None
        return kernels.PaddedBatch(*ranges, padded, mask)

    def _fill(self, column: PaddedColumn, batches: list[kernels.PaddedBatch]) -> None:
        """Write the data and the mask."""
        chunks, pad = self.source.chunks[column.values], column.pad
        try:
            kernels.pad_batches(
                chunks, batches, column.fill, pad.side, truncate=pad.truncate, dtype=column.dtype
            )
        except kernels.KernelError as error:
            if error.kind != "overflow":
                raise
            raise OpError(
                f"pad: {column.name} has the value {error.value}, which {column.dtype} cannot hold"
            ) from None

    def _shape_of(self, column: PaddedColumn, sizes: Array) -> Array:
        """Return an array with the dtype and shape of the values of a column, all of them one element of memory."""
        chunks, count = self.source.chunks[column.values], int(sizes.sum())
        one = np.zeros(1, chunks.dtype)
        return np.ndarray(
            (count, *chunks.row_shape), chunks.dtype, one, strides=(0,) * (1 + len(chunks.row_shape))
        )

    def _check_names(self) -> None:
        """Raise BatchPlanError when a padded column would take the name of another tensor."""
        kept = set(self.source.chunks) - self.without - {column.lengths for column in self.columns}
        for column in self.columns:
            for name in (column.name, column.mask, column.sizes):
                if name in kept and name != column.lengths:
                    raise BatchPlanError(
                        f"pad: the padded {column.name} needs the name {name}, which is taken"
                    )


def _column(source: RowSource, name: str, pad: Pad) -> PaddedColumn:
    """Return the column that `name` stands for; raise an error when it is not a list column of numbers."""
    parents = source.parents
    values = f"{name}.values" if f"{name}.values" in parents else name
    if f"{name}.values.lengths" in parents:
        raise BatchPlanError(
            f"pad: {name} holds lists of lists, expected lists of numbers\n"
            "  join or reduce the inner lists in prepare"
        )
    if values not in parents:
        raise UnknownColumnError(
            f"pad: there is no list column {name!r}{nearest(name, _columns(parents))}; "
            f"there are {', '.join(_columns(parents)) or 'none'}"
        )
    lengths = parents[values]
    if lengths is None:
        raise BatchPlanError(f"pad: {name} has one entry a row, expected a list column of numbers")
    if parents[lengths] is not None:
        raise BatchPlanError(f"pad: {name} is a list inside of lists, expected lists of numbers")
    dtype = source.chunks[values].dtype
    if dtype.kind not in "biuf":
        raise BatchPlanError(f"pad: {name} holds {dtype}, expected numbers")
    target = dtype if pad.dtype is None else pad.dtype
    if not converts(dtype, target):
        expected = "a dtype of floats" if dtype.kind == "f" else "a dtype of integers or floats"
        raise BatchPlanError(
            f"pad: {name} holds {dtype}, which does not become {target}, expected {expected}\n  cast it in prepare"
        )
    fill = cast_scalar("Pad: fill", pad.fill, target)
    return PaddedColumn(values, lengths, name, pad, target, fill, f"{name}.mask", f"{name}.lengths")


def _empty(memory: BatchMemory | None, name: str, shape: tuple[int, ...], dtype: DType) -> Array:
    if memory is not None:
        return memory.empty(name, shape, dtype)
    # memory of results that were freed: fresh pages cost more than what is written into them
    return kernels.empty_bytes(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def _columns(parents: Mapping[str, str | None]) -> list[str]:
    """Return the names that may be padded: list columns, and tensors that have rows below the record's rows."""
    below = [name for name, parent in parents.items() if parent is not None and parents[parent] is None]
    return [name.removesuffix(".values") for name in below if not name.endswith(".lengths")]


def _number_dtype(dtype: Any) -> DType:
    try:
        found: DType = np.dtype(dtype).newbyteorder("=")
    except TypeError:
        raise OpTypeError.of(
            "Pad.dtype", f"is {dtype!r}, expected a dtype of numbers such as 'int64'"
        ) from None
    if found.kind not in "biuf":
        raise OpTypeError.of("Pad.dtype", f"is {found}, expected one of numbers")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of the rows of a window, in order: the row, first element, and number of elements of each."""

    rows: Array
    """Places of the rows in the order of the window."""
    starts: Array
    sizes: Array
    items: Mapping[str, ChildRanges] = field(default_factory=dict)
    """For lengths of items that travel with their row: those of each piece, counted in the row; others have all."""
    trees: Array | None = None
    """int64[P, 2], if pieces share prefixes: the tree of each, and the elements that it adds to those before it."""

    @property
    def begun(self) -> Array:
        """int64[P + 1]: the number of rows that begin before each piece, counted by their first pieces."""
        return kernels.lengths_to_offsets((self.starts == 0).astype(np.int64))

    def take(self, chosen: Array | slice) -> Pieces:
        items = {name: ChildRanges(*(one[chosen] for one in of)) for name, of in self.items.items()}
        trees = None if self.trees is None else self.trees[chosen]
        return Pieces(self.rows[chosen], self.starts[chosen], self.sizes[chosen], items, trees)

    def some(self, chosen: Array) -> Pieces:
        """Return some pieces, by increasing places, which add to their trees what those that are left out added."""
        found = self.take(chosen)
        if self.trees is not None and found.trees is not None and len(chosen):
            shared, last = self.sizes - self.trees[:, 1], int(chosen[-1])
            since = np.concatenate(
                [[0], chosen[:-1] + 1]
            )  # a piece shares what all since the one before share
            found.trees[:, 1] = found.sizes - np.minimum.reduceat(shared[: last + 1], since)
        return found

    @property
    def shared(self) -> Array:
        """int64[P]: the elements that each piece shares with those before it in its tree."""
        return np.zeros_like(self.sizes) if self.trees is None else self.sizes - self.trees[:, 1]


@dataclass(slots=True, eq=False)
class WindowRows:
    """The rows of some records, one record after another or in another order.

    `order[i]` is the number of row i, counted over the records in turn; None if it is i. The records are not
    joined: batches are gathered directly from them, with the columns of `pads` padded. Threads may share it.
    """

    records: Sequence[Record]
    order: Array | None = None
    pads: Mapping[str, Pad] = field(default_factory=dict)
    _source: RowSource | None = field(default=None, repr=False)
    _ranges: Mapping[str, ChildRanges] | None = field(default=None, repr=False)
    """For each lengths tensor of the rows, the ranges of the elements below each row, in order."""
    _padding: Padding | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if not self.records:
            return
        if self._source is None:
            self._source = RowSource(self.records)
        if self._ranges is None and not self._are_views:
            self._ranges = _ranges_in(self.order, self.source)
        if self.pads:
            self._padding = Padding(self.source, self.pads)

    @property
    def _are_views(self) -> bool:
        """Whether consecutive rows are taken as views of the records."""
        return self.order is None and not self.pads

    def padded_by(self, columns: Sequence[PaddedColumn]) -> WindowRows:
        """Return the same rows, whose batches have the results of steps that pad columns, as in
        `Padding.of_steps`.
        """
        found = copy(self)
        found._padding = Padding.of_steps(self.source, columns)
        return found

    @property
    def source(self) -> RowSource:
        assert self._source is not None
        return self._source

    @property
    def num_rows(self) -> int:
        if self.order is not None:
            return len(self.order)
        return 0 if self._source is None else self._source.num_rows

    @property
    def nbytes(self) -> int:
        return sum(nbytes(record) for record in self.records)

    def tensor(self, name: str) -> Array:
        """Return a tensor that has an entry for each row, in order."""
        joined = self.source.tensor(name)
        return joined if self.order is None else kernels.gather(joined, self.order)

    def numbers(self, rows: Array | slice) -> Array:
        """Return the numbers of rows, counted over the records in turn, from their places in the order."""
        if self.order is not None:
            return self.order[rows]
        return np.arange(*rows.indices(self.num_rows)) if isinstance(rows, slice) else rows

    def take(
        self,
        rows: Array | slice,
        memory: BatchMemory | None = None,
        *,
        without: Collection[str] = (),
        ranges: Mapping[str, ChildRanges] = MappingProxyType({}),
    ) -> Record:
        """Return rows by their place in the order, repeats allowed, with everything below them, padded if requested.

        Consecutive rows of one record are views of it. Other results are in `memory` if it is given, and valid
        until it is used again. The tensors `without` are omitted. `ranges` are as in `RowSource.take`.
        """
        if isinstance(rows, slice) and self._are_views:
            start, stop, _ = rows.indices(self.num_rows)
            return self.source.slice(start, stop)
        found = {**self._ranges_of(rows), **ranges}
        source = self._padding or self.source
        return source.take_known(self.numbers(rows), memory, without=without, ranges=found)

    def take_all(
        self, batches: Sequence[Array | slice], memories: Sequence[BatchMemory | None]
    ) -> list[Record]:
        """Return several batches of rows, each as in `take`."""
        pairs = zip(batches, memories, strict=True)
        if self._padding is None:
            return [self.take(rows, memory) for rows, memory in pairs]
        return self._padding.take_all(
            [(self.numbers(rows), self._ranges_of(rows), memory) for rows, memory in pairs]
        )

    def take_pieces(self, pieces: Pieces, cut: Collection[str], memory: BatchMemory | None = None) -> Record:
        """Return one row for each piece: the piece's elements of tensors under the lengths `cut`, and whole
        rows of all others.
        """
        ranges = {lengths: self.below(lengths, pieces, cut) for lengths in (*cut, *pieces.items)}
        return self.take(pieces.rows, memory, ranges=ranges)

    def below(self, lengths: str, pieces: Pieces, cut: Collection[str]) -> ChildRanges:
        """Return the ranges of what pieces have below lengths of the rows: elements, items, or all of their row."""
        if lengths in pieces.items:
            return self.ranges(lengths, Pieces(pieces.rows, *pieces.items[lengths]))
        if lengths in cut:
            return self.ranges(lengths, pieces)
        return self.source.child_ranges(lengths, self.numbers(pieces.rows), {})

    def _ranges_of(self, rows: Array | slice) -> dict[str, ChildRanges]:
        return {
            name: ChildRanges(of.starts[rows], of.sizes[rows]) for name, of in (self._ranges or {}).items()
        }

    def sizes(self, lengths: str) -> Array:
        """int64[num_rows]: the elements below each row, in order, that the lengths tensor describes.

        Lengths of a deeper level are added up: the words of all sentences of a document.
        """
        if self._ranges is not None and lengths in self._ranges:
            return self._ranges[lengths].sizes
        parts = [_sizes(record, lengths) for record in self.records]
        sizes = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return sizes if self.order is None else kernels.gather(sizes, self.order)

    def ranges(self, lengths: str, pieces: Pieces) -> ChildRanges:
        """Return the ranges of the elements of pieces, under lengths of the rows."""
        if self._ranges is not None:
            starts = self._ranges[lengths].starts[pieces.rows]
        else:
            starts = kernels.gather(self.source.offsets[lengths], self.numbers(pieces.rows))
        return ChildRanges(starts + pieces.starts, pieces.sizes)

    def part(self, start: int, stop: int) -> WindowRows:
        """Return the rows start … stop - 1 of the order."""
        if self.order is not None:
            chosen = slice(start, stop)
            return replace(self, order=self.order[chosen], _ranges=self._ranges_of(chosen))
        if (start, stop) == (0, self.num_rows):
            return self
        found, first = [], 0
        for record in self.records:
            low, high = max(start - first, 0), min(stop - first, record.num_rows)
            if low < high:
                found.append(slice_rows(record, low, high))
            first += record.num_rows
        return replace(self, records=found or [slice_rows(self.records[0], 0, 0)], _source=None, _ranges=None)

    def joined(self, other: WindowRows) -> WindowRows:
        """Return the rows of both."""
        records = (*self.records, *other.records)
        order = None
        if self.order is not None or other.order is not None:
            count = self.source.num_rows
            order = np.concatenate([self.numbers(slice(None)), other.numbers(slice(None)) + count])
        return replace(self, records=records, order=order, _source=None, _ranges=None)


def elements_below(rows: WindowRows, lengths: str, pieces: Pieces, cut: Collection[str]) -> ChildRanges:
    """Return the ranges of the elements that pieces have below lengths of any level."""
    source, levels = rows.source, [lengths]
    while (above := source.parents[levels[0]]) is not None:
        levels.insert(0, above)
    starts, sizes = rows.below(levels[0], pieces, cut)
    stops = starts + sizes
    for level in levels[1:]:
        starts, stops = source.offsets[level][starts], source.offsets[level][stops]
    return ChildRanges(starts, stops - starts)


def _ranges_in(order: Array | None, source: RowSource) -> dict[str, ChildRanges]:
    """Return, for each lengths tensor of the rows in an order, the ranges of the elements below each row."""
    found = {}
    for name, offsets in source.offsets.items():
        if source.parents[name] is None:
            starts, sizes = offsets[:-1], np.diff(offsets)
            if order is not None:
                starts, sizes = kernels.gather(starts, order), kernels.gather(sizes, order)
            found[name] = ChildRanges(starts, sizes)
    return found


def _sizes(record: Record, lengths: str) -> Array:
    sizes: Array = record[lengths].astype(np.int64, copy=False)
    parent = record.parents[lengths]
    while parent is not None:
        sizes = kernels.segment_reduce("sum", sizes, record[parent])
        parent = record.parents[parent]
    return sizes
