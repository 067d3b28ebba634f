"""Rows written more than once, in NumPy."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array, apart, check_same_size, check_width, output, rows, scalar
from seqflow.kernels.reference.checks import check_sum, counts, offsets_of, total_of


def expand(data: Array, lengths: Array, *, out: Array | None = None) -> Array:
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    check_same_size(data=data, lengths=lengths)
    total = total_of(lengths, "lengths")
    out = output(out, (total, *data.shape[1:]), data.dtype)
    out[...] = np.repeat(apart(data, out), lengths, axis=0)
    return out


def windows(data: Array, lengths: Array, before: int, after: int, value: Any = 0) -> Array:
    check_width(before, "before")
    check_width(after, "after")
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    check_sum(lengths, len(data), "data")
    offsets = offsets_of(lengths)
    first, end = np.repeat(offsets[:-1], lengths)[:, None], np.repeat(offsets[1:], lengths)[:, None]
    places = np.arange(len(data))[:, None] + np.arange(-before, after + 1)
    inside = (places >= first) & (places < end)
    out = np.empty((len(data), before + 1 + after, *data.shape[1:]), data.dtype)
    out[...] = scalar(value, data.dtype)
    out[inside] = data[places[inside]]
    return out
