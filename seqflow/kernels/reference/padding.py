"""Between flat rows and padded ones, in NumPy."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import (
    Array,
    apart,
    check_packed,
    check_padded,
    check_room,
    check_side,
    check_width,
    output,
    rows,
    scalar,
)
from seqflow.kernels.reference.checks import check_sum, counts, offsets_of, total_of


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
    check_side(side)
    check_width(width)
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
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
    mask[...] = _mask(taken, width, side)
    out[...] = fill
    out[mask] = data[(inside >= 0) & (inside < np.repeat(taken, lengths))]
    return out, mask


def unpad(padded: Array, lengths: Array, side: str = "right", *, out: Array | None = None) -> Array:
    check_side(side)
    padded, lengths = rows(padded, "padded"), counts(lengths, "lengths")
    check_padded(padded, lengths)
    total = total_of(lengths, "lengths")
    check_room(lengths, padded.shape[1])
    out = output(out, (total, *padded.shape[2:]), padded.dtype)
    out[...] = apart(padded, out)[_mask(lengths, padded.shape[1], side)]
    return out


def pack_by_time(
    data: Array, lengths: Array, num_steps: int, value: Any = 0, *, out: Array | None = None
) -> Array:
    check_width(num_steps)
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    fill = scalar(value, data.dtype)
    out = output(out, (num_steps, len(lengths), *data.shape[1:]), data.dtype)
    check_sum(lengths, len(data), "data")
    check_room(lengths, num_steps)
    data = apart(data, out)
    out[...] = fill
    out.swapaxes(0, 1)[_mask(lengths, num_steps, "right")] = data
    return out


def unpack_by_time(packed: Array, lengths: Array, *, out: Array | None = None) -> Array:
    packed, lengths = rows(packed, "packed"), counts(lengths, "lengths")
    check_packed(packed, lengths)
    total = total_of(lengths, "lengths")
    check_room(lengths, len(packed))
    out = output(out, (total, *packed.shape[2:]), packed.dtype)
    out[...] = apart(packed, out).swapaxes(0, 1)[_mask(lengths, len(packed), "right")]
    return out


def _mask(taken: Array, width: int, side: str) -> Array:
    positions = np.arange(width)
    return positions < taken[:, None] if side == "right" else positions >= width - taken[:, None]
