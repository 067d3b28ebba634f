"""Lengths and what follows from them, in C++."""

import numpy as np

from seqflow.kernels import _native
from seqflow.kernels.arrays import Array, counts

quick_check_lengths = _native.check_lengths


def check_lengths(lengths: Array) -> int:
    try:
        return _native.check_lengths(lengths)
    except TypeError:
        return _native.check_lengths(counts(lengths, "lengths"))


def max_length(lengths: Array) -> int:
    try:
        return _native.max_length(lengths)
    except TypeError:
        return _native.max_length(counts(lengths, "lengths"))


def lengths_to_offsets(lengths: Array) -> Array:
    try:
        return _native.lengths_to_offsets(lengths)
    except TypeError:
        return _native.lengths_to_offsets(counts(lengths, "lengths"))


def lengths_to_segment_ids(lengths: Array) -> Array:
    try:
        return _native.lengths_to_segment_ids(lengths)
    except TypeError:
        return _native.lengths_to_segment_ids(counts(lengths, "lengths"))


def lengths_to_positions(lengths: Array) -> Array:
    try:
        return _native.lengths_to_positions(lengths)
    except TypeError:
        return _native.lengths_to_positions(counts(lengths, "lengths"))


def segment_ids_to_lengths(ids: Array, num_segments: int | None = None) -> Array:
    limit = -1 if num_segments is None else int(np.int64(num_segments))
    try:
        return _native.segment_ids_to_lengths(ids, limit)
    except TypeError:
        return _native.segment_ids_to_lengths(counts(ids, "ids"), limit)
