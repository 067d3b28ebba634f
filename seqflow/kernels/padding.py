"""Padding, time-major packing, and their inverses."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array, apart, int64_counts, output, rows, scalar
from seqflow.kernels.checks import check_room, check_sum, check_width, offsets_of, total_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, ROWS

__all__ = ["pack_by_time", "pad", "unpack_by_time", "unpad"]


@kernel(data=ROWS, lengths=COUNTS)
def pad(
    data: Array,
    lengths: Array,
    width: int,
    value: Any = 0,
    side: str = "right",
    *,
    truncate: bool = False,
    out: Array | None = None,
    mask: Array | None = None,
) -> tuple[Array, Array]:
    """One padded row for each sequence: data[sum(lengths), *d], lengths[B] -> padded[B, width, *d], bool mask[B,
    width].

    `side` is the side of the padding, which has the value `value`. A length above `width` is a KernelError, unless
    `truncate` keeps the head of the sequence (its tail with side="left"). `out` and `mask` are arrays to write to.
    """
    check_side(side)
    check_width(width)
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    fill = scalar(value, data.dtype)
    shape = (len(lengths), width)
    out = output(out, shape + data.shape[1:], data.dtype)
    mask = output(mask, shape, np.dtype(bool), "mask")
    check_sum(lengths, len(data), "data")
    if not truncate:
        check_room(lengths, width)
    data = apart(apart(data, out), mask)
    taken = np.minimum(lengths, width)
    dropped = lengths - taken if side == "left" else np.zeros_like(lengths)
    inside = np.arange(len(data)) - np.repeat(offsets_of(lengths)[:-1] + dropped, lengths)
    mask[...] = padding_mask(taken, width, side)
    out[...] = fill
    out[mask] = data[(inside >= 0) & (inside < np.repeat(taken, lengths))]
    return out, mask


@kernel(padded=ROWS, lengths=COUNTS)
def unpad(padded: Array, lengths: Array, side: str = "right", *, out: Array | None = None) -> Array:
    """The inverse of `pad`: padded[B, T, *d], lengths[B] -> data[sum(lengths), *d]."""
    check_side(side)
    padded, lengths = rows(padded, "padded"), int64_counts(lengths, "lengths")
    _check_rows(padded, lengths, "padded", 0)
    total = total_of(lengths, "lengths")
    check_room(lengths, padded.shape[1])
    out = output(out, (total, *padded.shape[2:]), padded.dtype)
    out[...] = apart(padded, out)[padding_mask(lengths, padded.shape[1], side)]
    return out


@kernel(data=ROWS, lengths=COUNTS)
def pack_by_time(
    data: Array, lengths: Array, num_steps: int, value: Any = 0, *, out: Array | None = None
) -> Array:
    """Rows ordered by time: data[sum(lengths), *d], lengths[B] -> packed[num_steps, B, *d], `value` after each end.

    Raises KernelError for a length above `num_steps`.
    """
    check_width(num_steps)
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    fill = scalar(value, data.dtype)
    out = output(out, (num_steps, len(lengths), *data.shape[1:]), data.dtype)
    check_sum(lengths, len(data), "data")
    check_room(lengths, num_steps)
    data = apart(data, out)
    out[...] = fill
    out.swapaxes(0, 1)[padding_mask(lengths, num_steps, "right")] = data
    return out


@kernel(packed=ROWS, lengths=COUNTS)
def unpack_by_time(packed: Array, lengths: Array, *, out: Array | None = None) -> Array:
    """The inverse of `pack_by_time`: packed[T, B, *d], lengths[B] -> data[sum(lengths), *d]."""
    packed, lengths = rows(packed, "packed"), int64_counts(lengths, "lengths")
    _check_rows(packed, lengths, "packed", 1)
    total = total_of(lengths, "lengths")
    check_room(lengths, len(packed))
    out = output(out, (total, *packed.shape[2:]), packed.dtype)
    out[...] = apart(packed, out).swapaxes(0, 1)[padding_mask(lengths, len(packed), "right")]
    return out


def padding_mask(taken: Array, width: int, side: str) -> Array:
    """Return bool[B, width]: true where there is data, for the number of rows taken of each sequence."""
    if not len(taken):  # `width` may be huge without sequences
        return np.zeros((0, width), bool)
    positions = np.arange(width)
    return positions < taken[:, None] if side == "right" else positions >= width - taken[:, None]


def check_side(side: str) -> None:
    """Raise ValueError when `side` is not "right" or "left"."""
    if side not in ("right", "left"):
        raise ValueError(f"side is {side!r}, expected 'right' or 'left'")


def _check_rows(padded: Array, lengths: Array, argument: str, axis: int) -> None:
    """Raise ValueError unless the rows along an axis are as many as the lengths."""
    if padded.ndim < 2:
        raise ValueError(f"{argument} has {padded.ndim} dimensions, expected 2 or more")
    if padded.shape[axis] != len(lengths):
        found = f"{padded.shape[axis]} {'columns' if axis else 'rows'}"
        raise ValueError(f"{argument} has {found} but there are {len(lengths)} lengths")
