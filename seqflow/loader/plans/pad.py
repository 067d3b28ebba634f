"""Pad: list columns of a batch as padded arrays, made straight from the memory their rows lie in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.arguments import DtypeLike
from seqflow.errors import BatchPlanError, LodError, OpError, OpTypeError, UnknownColumnError, nearest
from seqflow.kernels.arrays import Array, DType
from seqflow.kernels.chunks import converts
from seqflow.loader.plans.selection import at_least_one, planned_lengths
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.record import Record
from seqflow.record.batch_memory import BatchMemory
from seqflow.record.row_source import ChildRanges, RowSource
from seqflow.renamed import renamed_fields


@renamed_fields(value="fill")
@dataclass(frozen=True, slots=True)
class Pad:
    """How a list column of numbers becomes an array [B, T] in each batch, with a mask bool[B, T] and lengths [B].

        sf.Loader(path, pad={"tokens": sf.Pad(0, dtype="int64", multiple_of=8)})

    `fill` fills the room beside the data, on the `side` "right" or "left". T is `max_length`, or else the length of
    the batch's longest row, rounded up to a `multiple_of`. A row above `max_length` is an error, unless
    `truncate` cuts it (at its end; with side="left" at its start): lengths and mask are of what is left.

    The data become `dtype`, which may be any integer or float for bools and integers, and any float for floats; an
    integer that does not fit is an error. Without `mask` there is none.
    """

    fill: float = 0
    dtype: DtypeLike = None
    """A NumPy dtype or its name; None keeps that of the data."""
    side: str = "right"
    multiple_of: int = 1
    max_length: int | None = None
    truncate: bool = False
    mask: bool = True

    def __post_init__(self) -> None:
        if self.side not in ("right", "left"):
            raise OpError.of("Pad.side", f"is {self.side!r}, expected 'right' or 'left'")
        at_least_one("Pad", multiple_of=self.multiple_of, max_length=self.max_length)
        if self.truncate and self.max_length is None:
            raise OpError.of("Pad", "truncate=True needs max_length, the length to cut rows to")
        if not isinstance(self.fill, int | float | np.number | np.bool_):
            raise OpTypeError.of("Pad.fill", f"is {self.fill!r}, expected a number")
        if self.dtype is not None:
            object.__setattr__(self, "dtype", _number_dtype(self.dtype))
            cast_scalar("Pad: fill", self.fill, self.dtype)

    def width(self, sizes: Array) -> int:
        """T for rows of these lengths; LodError for a row above `max_length` that is not to be cut."""
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
    """A tensor that is padded: its name, that of its lengths, and that of the result."""

    values: str
    lengths: str
    name: str
    pad: Pad
    dtype: DType
    fill: Any
    mask: str
    sizes: str
    """The names of what comes with it."""


class TakenRows(NamedTuple):
    """The rows of a batch, as in `RowSource.take_known`."""

    rows: Array
    ranges: dict[str, ChildRanges]
    memory: BatchMemory | None


class Padding:
    """Makes batches of a source's rows in which some list columns are padded.

    A column `c` gives the tensors `c`, `c.mask` and `c.lengths`; other columns are as in `RowSource.take`. The
    names in `pads` are those of list columns of numbers, or of tensors with rows below the record's rows.
    """

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
        """The batch of `rows`; arguments are as in `RowSource.take_known`."""
        return self.take_all([TakenRows(rows, dict(ranges or {}), memory)], without=without)[0]

    def take_all(self, batches: Sequence[TakenRows], *, without: Collection[str] = ()) -> list[Record]:
        """Several batches; all of a column is padded in one call, during which other threads run."""
        source = self.source
        left_out = {*self.without, *without} if without else self.without
        tensors = [source.gather(*batch, without=left_out) for batch in batches]
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
                of[column.sizes] = (
                    np.minimum(one.sizes, one.padded.shape[1]) if column.pad.truncate else one.sizes.copy()
                )
            parents |= dict.fromkeys([column.name, *([column.mask] if column.pad.mask else ()), column.sizes])
        dictionaries = self._dictionaries
        if without:
            dictionaries = {name: dictionaries[name] for name in dictionaries if name in tensors[0]}
        return [
            Record(of, parents, len(batch.rows), source.schema, dictionaries)
            for of, batch in zip(tensors, batches, strict=True)
        ]

    def _room(
        self, column: PaddedColumn, ranges: ChildRanges, memory: BatchMemory | None
    ) -> kernels.PaddedBatch:
        """Where the data of a column are, and arrays for it and its mask."""
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

    def _check_names(self) -> None:
        """BatchPlanError where a padded column would take the name of another tensor."""
        kept = set(self.source.chunks) - self.without - {column.lengths for column in self.columns}
        for column in self.columns:
            for name in (column.name, column.mask, column.sizes):
                if name in kept and name != column.lengths:
                    raise BatchPlanError(
                        f"pad: the padded {column.name} needs the name {name}, which is taken"
                    )


def pads_of(pad: Pad | float | Mapping[str, Pad | float], empty: Callable[[], Record]) -> dict[str, Pad]:
    """How each column is padded: a number stands for `Pad(number)`, and without a name it is the only list column.

    `empty` gives a record without rows, which shows what columns there are.
    """
    if not isinstance(pad, Mapping):
        lengths = planned_lengths(empty(), None, "pad")
        assert lengths is not None  # or planned_lengths has raised
        pad = {lengths.removesuffix(".lengths"): pad}
    return {name: each if isinstance(each, Pad) else Pad(each) for name, each in pad.items()}


def _column(source: RowSource, name: str, pad: Pad) -> PaddedColumn:
    """What `name` stands for; an error where it is not a list column of numbers."""
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
    return np.empty(shape, dtype) if memory is None else memory.empty(name, shape, dtype)


def _columns(parents: Mapping[str, str | None]) -> list[str]:
    """The names that may be padded: list columns, and tensors that have rows below the record's rows."""
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
