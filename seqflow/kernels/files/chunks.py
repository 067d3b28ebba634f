"""Gathers slices of rows from Arrow chunks, concatenated or padded."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array, DType, apart, int64_counts, output, row_text, rows, scalar
from seqflow.kernels.checks import check_chunk_slices, check_room, check_same_size, total_of
from seqflow.kernels.dispatch import extension, kernel
from seqflow.kernels.error import does_not_fit
from seqflow.kernels.forms import COUNTS
from seqflow.kernels.padding import check_side, padding_mask

__all__ = ["ChunkedRows", "PaddedBatch", "gather_slices", "pad_batches"]


class ChunkedRows:
    """Rows [R, *d] in several arrays of one dtype and row shape, numbered across the arrays.

    Texts are converted to the width of the widest array.

    arrays: the arrays, C-contiguous and in native byte order. firsts: the number of the first row of each, and R.
    held: the arrays in the form of native kernels; None if these do not support them.
    """

    __slots__ = ("arrays", "dtype", "firsts", "held", "row_shape")

    def __init__(self, arrays: Iterable[Any]) -> None:
        self.arrays = tuple(rows(array, "arrays") for array in arrays)
        if not self.arrays:
            raise ValueError("there are no arrays, expected at least one")
        kinds = {array.dtype.kind for array in self.arrays}
        if kinds == {"U"} or kinds == {"S"}:
            widest = np.result_type(*self.arrays)
            self.arrays = tuple(array.astype(widest, copy=False) for array in self.arrays)
        first = self.arrays[0]
        for other in self.arrays:
            if other.dtype != first.dtype or other.shape[1:] != first.shape[1:]:
                raise ValueError(
                    f"one array is {first.dtype}{row_text(first)} and another {other.dtype}{row_text(other)}, "
                    "expected the same dtype and row shape"
                )
        self.dtype: DType = first.dtype
        self.row_shape: tuple[int, ...] = first.shape[1:]
        self.firsts = np.cumsum([0, *map(len, self.arrays)])
        self.held = None if extension() is None else extension().hold_rows(self.arrays)

    def __len__(self) -> int:
        return int(self.firsts[-1])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.arrays,)


class PaddedBatch(NamedTuple):
    """Slices of rows, and the arrays to write them to."""

    starts: Array
    sizes: Array
    padded: Array
    """[B, width, *d]"""
    mask: Array | None
    """bool[B, width]"""


@kernel(starts=COUNTS, sizes=COUNTS)
def gather_slices(chunks: ChunkedRows, starts: Array, sizes: Array, *, out: Array | None = None) -> Array:
    """Slices of rows, one after another: chunks[s : s + n] for each (s, n) of starts[K], sizes[K].

    Raises KernelError for a slice that is not inside one array, unless it is empty.
    """
    starts, sizes = _checked(chunks, starts, sizes)
    out = output(out, (total_of(sizes, "sizes"), *chunks.row_shape), chunks.dtype)
    end = 0
    for found in _slices(chunks, starts, sizes, out):
        start, end = end, end + len(found)
        out[start:end] = found
    return out


@kernel()
def pad_batches(
    chunks: ChunkedRows,
    batches: list[PaddedBatch],
    value: Any = 0,
    side: str = "right",
    *,
    truncate: bool = False,
    dtype: DType | None = None,
) -> None:
    """Write one padded row for each slice of each batch, filled up with `value`, and true to its mask for data.

    Slices are as in `gather_slices`, `side` and `truncate` as in `pad`. `dtype` converts bools and integers to
    integers and floats, and floats to floats; an integer that does not fit is a KernelError.
    """
    target, fill = _padding(chunks, value, side, dtype)
    for starts, sizes, padded, mask in batches:
        starts, sizes = _checked(chunks, starts, sizes)
        width = padded.shape[1]
        out = output(padded, (len(sizes), width, *chunks.row_shape), target)
        marks = output(mask, (len(sizes), width), np.dtype(bool), "mask")
        if not truncate:
            check_room(sizes, width, "sizes")
        taken = np.minimum(sizes, width)
        if side == "left":
            starts = starts + sizes - taken
        # an empty array first: `concatenate` needs at least one array
        none = chunks.arrays[0][:0]
        data = _converted(np.concatenate([none, *_slices(chunks, starts, taken, out, marks)]), target)
        marks[...] = padding_mask(taken, width, side)
        out[...] = fill
        out[marks] = data


def _padding(chunks: ChunkedRows, value: Any, side: str, dtype: DType | None) -> tuple[DType, Any]:
    """Return the dtype to pad in, and the value in it."""
    check_side(side)
    target = np.dtype(chunks.dtype if dtype is None else dtype).newbyteorder("=")
    _check_cast(chunks.dtype, target)
    return target, scalar(value, target)


def _checked(chunks: ChunkedRows, starts: Array, sizes: Array) -> tuple[Array, Array]:
    """Return starts and sizes of slices, each inside one of the arrays."""
    starts, sizes = int64_counts(starts, "starts"), int64_counts(sizes, "sizes")
    check_same_size(starts=starts, sizes=sizes)
    check_chunk_slices(chunks.firsts, starts, sizes)
    return starts, sizes


def _slices(chunks: ChunkedRows, starts: Array, sizes: Array, *targets: Array) -> Iterator[Array]:
    """Yield the slices, from copies of arrays that writing to `targets` could change."""
    arrays = list(chunks.arrays)
    for target in targets:
        arrays = [apart(array, target) for array in arrays]
    # an empty slice may start at R, after the last array
    places = np.minimum(np.searchsorted(chunks.firsts, starts, side="right"), len(arrays)) - 1
    inside = starts - chunks.firsts[places]
    for place, start, size in zip(places.tolist(), inside.tolist(), sizes.tolist(), strict=True):
        yield arrays[place][start : start + size]


def converts(source: DType, target: DType) -> bool:
    """Return whether elements can be converted from one dtype to the other."""
    allowed = {"b": "biuf", "i": "iuf", "u": "iuf", "f": "f"}.get(source.kind, "")
    return source == target or (target.kind in allowed and target.kind != "b")


def _check_cast(source: DType, target: DType) -> None:
    """Raise TypeError when elements cannot be converted from one dtype to the other."""
    if not converts(source, target):
        raise TypeError(f"{source} is not converted to {target}")


def _converted(data: Array, dtype: DType) -> Array:
    """Convert the data to another dtype; raise KernelError for the first integer that does not fit."""
    with np.errstate(all="ignore"):
        converted = data.astype(dtype, copy=False)
    if dtype.kind in "iu" and data.dtype.kind in "iu":
        wrong = np.flatnonzero(converted != data)
        if len(wrong):
            at, bounds = int(wrong[0]), np.iinfo(dtype)
            raise does_not_fit("chunks", at, int(data.flat[at]), int(bounds.min), int(bounds.max) + 1, dtype)
    return converted
