"""Repeat rows: each over its segment, or into sliding windows. Put elements at positions inside segments."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array, apart, int64_counts, int64_integers, output, rows, scalar
from seqflow.kernels.checks import check_same_size, check_sum, check_width, offsets_of, total_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.error import outside
from seqflow.kernels.forms import COUNTS, INTEGERS, NUMBERS, ROWS
from seqflow.kernels.memory import check_memory

__all__ = ["expand", "put_elements", "windows"]


@kernel(data=ROWS, lengths=COUNTS)
def expand(data: Array, lengths: Array, *, out: Array | None = None) -> Array:
    """Repeat each row as many times as its length: data[B, *d], lengths[B] -> rows[sum(lengths), *d]."""
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    check_same_size(data=data, lengths=lengths)
    total = total_of(lengths, "lengths")
    out = output(out, (total, *data.shape[1:]), data.dtype)
    if out.size:  # NumPy would repeat rows without bytes one by one
        out[...] = np.repeat(apart(data, out), lengths, axis=0)
    return out


@kernel(data=NUMBERS, positions=INTEGERS, lengths=COUNTS)
def put_elements(data: Array, positions: Array, lengths: Array) -> Array:
    """Put the elements of a row at positions inside its segment, column by column: data[B, *d], positions[B, *d],
    lengths[B] -> rows[sum(lengths), *d].

    All other elements are zero. An element at -1 is dropped.
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    positions = int64_integers(positions, "positions")
    check_same_size(data=data, lengths=lengths)
    check_same_size(data=data.reshape(-1), positions=positions.reshape(-1))
    total = total_of(lengths, "lengths")
    column = (-1, *[1] * (data.ndim - 1))
    beyond = (positions < -1) | (positions >= lengths.reshape(column))
    if beyond.any():
        at = int(np.argmax(beyond))
        length = lengths[at // (data.size // len(data))]
        raise outside("positions", at, int(positions.flat[at]), -1, int(length))
    out = np.zeros((total, *data.shape[1:]), data.dtype)
    used = positions >= 0
    places = (positions + offsets_of(lengths)[:-1].reshape(column))[used]
    out[(places, *np.nonzero(used)[1:])] = data[used]
    return out


@kernel(data=ROWS, lengths=COUNTS)
def windows(data: Array, lengths: Array, before: int, after: int, value: Any = 0) -> Array:
    """Return each row with its neighbours in its segment: data[sum(lengths), *d] -> [sum(lengths), before+1+after,
    *d].

    Places outside the segment hold `value`.
    """
    check_width(before, "before")
    check_width(after, "after")
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    check_sum(lengths, len(data), "data")
    out = output(None, (len(data), before + 1 + after, *data.shape[1:]), data.dtype)
    fill = scalar(value, data.dtype)
    if out.size == 0:
        return out
    check_memory((len(data), before + 1 + after), lengths.dtype)
    offsets = offsets_of(lengths)
    first, end = np.repeat(offsets[:-1], lengths)[:, None], np.repeat(offsets[1:], lengths)[:, None]
    places = np.arange(len(data))[:, None] + np.arange(-before, after + 1)
    inside = (places >= first) & (places < end)
    out[...] = fill
    out[inside] = data[places[inside]]
    return out
