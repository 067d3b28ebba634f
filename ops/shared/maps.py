"""Joining features row by row: what every merge does."""

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import int64, starts_of


def in_turn(data: list[Array], sizes: Array) -> Array:
    """The rows of all features, example by example, and inside it feature by feature: sizes[B, F] of data[F]."""
    offsets = kernels.lengths_to_offsets(sizes.ravel())
    rows = np.empty((int(offsets[-1]), *data[0].shape[1:]), data[0].dtype)
    targets = offsets[:-1].reshape(sizes.shape)
    for j, values in enumerate(data):
        own = np.ascontiguousarray(sizes[:, j])
        kernels.move_slices(values, starts_of(own), own, rows, np.ascontiguousarray(targets[:, j]))
    return rows


def row_sizes(lengths: list[Array], counts: list[Array]) -> Array:
    """How many values all lists of a row have in each input: [B, F]."""
    totals = [kernels.segment_reduce("sum", *pair) for pair in zip(lengths, counts, strict=True)]
    return np.stack(totals, axis=1).astype(np.int64, copy=False)


def join_maps(
    data: list[Array], keys: list[Array], lengths: list[Array], counts: list[Array]
) -> tuple[Array, Array, Array, Array]:
    """The maps of lists that each row has in every input, joined: values, lengths, keys and counts."""
    pairs = np.stack([int64(one) for one in counts], axis=1)
    values = in_turn(data, row_sizes(lengths, counts))
    sizes, joined = (in_turn([int64(one) for one in each], pairs) for each in (lengths, keys))
    return values, sizes, joined, pairs.sum(axis=1)
