"""Packed rows whose pieces are padded to a multiple, as context parallelism needs it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array


class PaddedPlaces(NamedTuple):
    """Where elements of pieces lie in their packed rows, laid end to end."""

    elements: Array
    """int64: of each element, piece after piece."""
    padded: Array
    """int64: of each element and each of the padding behind its piece."""
    positions: Array
    """int64: the place in its piece of each of these."""
    segments: Array
    """int64: for each element the number of its piece in the row, from 1 on."""


def rounded(sizes: Array, multiple: int) -> Array:
    """Sizes up to the next multiple."""
    return sizes if multiple == 1 else -(-sizes // multiple) * multiple


def piece_begins(sizes: Array, counts: Array, capacity: int, multiple: int) -> Array:
    """int64[P]: where each piece begins in packed rows laid end to end; `counts` are the pieces of each row."""
    rows = np.repeat(np.arange(len(counts)), counts)
    ends = kernels.lengths_to_offsets(rounded(sizes, multiple))
    first = ends[kernels.lengths_to_offsets(counts)[:-1]] if len(counts) else ends[:0]
    begins: Array = rows * capacity + ends[:-1] - first[rows]
    return begins


def padded_places(sizes: Array, counts: Array, capacity: int, multiple: int) -> PaddedPlaces:
    """Where everything lies in rows of padded pieces."""
    begins, padded = piece_begins(sizes, counts, capacity, multiple), rounded(sizes, multiple)
    elements = np.repeat(begins, sizes) + kernels.lengths_to_positions(sizes)
    positions = kernels.lengths_to_positions(padded)
    segments = np.repeat(kernels.lengths_to_positions(counts) + 1, sizes)
    return PaddedPlaces(elements, np.repeat(begins, padded) + positions, positions, segments)


def fill_padded(
    data: Array,
    places: PaddedPlaces,
    shape: tuple[int, int],
    fill: Any,
    out: tuple[Array, Array, Array] | None,
) -> tuple[Array, Array, Array]:
    """Packed rows of some data, `segment_ids`, which are 0 in all padding, and `position_ids`, which go on in it."""
    if out is None:
        ids = np.empty(shape, np.int32), np.empty(shape, np.int32)
        out = np.empty(shape + data.shape[1:], data.dtype), *ids
    dense, segment_ids, position_ids = out
    dense[...], segment_ids[...], position_ids[...] = fill, 0, 0
    cells = shape[0] * shape[1]
    dense.reshape(cells, *data.shape[1:])[places.elements] = data
    segment_ids.reshape(cells)[places.elements] = places.segments
    position_ids.reshape(cells)[places.padded] = places.positions
    return dense, segment_ids, position_ids
