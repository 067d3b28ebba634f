"""Caffe2's operators that gather rows, ranges of rows and sequences by index."""

from math import prod

import numpy as np

from seqflow import ops
from seqflow.errors import OpError, OpIndexError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.signature import Positive, Sizes

from .adapter import ADAPTERS, Adapter, from_front


def gather_ranges_to_dense(
    data: Array,
    ranges: Array,
    key: Array | None = None,
    *,
    lengths: Sizes,
    min_observation: Positive = 10000,
    max_mismatched_ratio: float = 0.01,
    max_empty_ratio: float = 1.0,
) -> list[Array]:
    """Gather ranges of fixed lengths. A range of another length gives zeros; too many of these, or empty ones, are an
    error.

    For each feature, the limit is the ratio times the number of examples, which counts as at least `min_observation`.
    Caffe2 counts over the life of the operator, this function in one call. Equal keys keep their order (in Caffe2
    only in short ranges).
    """
    if 0 in lengths:
        raise OpError(f"lengths[{lengths.index(0)}] is 0, expected 1 or more")
    dense = ops.gather_ranges_to_dense(data, ranges, key, lengths=lengths)
    sizes = ranges[..., 1]
    for what, wrong, ratio in (
        ("of another length", (sizes != 0) & (sizes != lengths), max_mismatched_ratio),
        ("empty", sizes == 0, max_empty_ratio),
    ):
        most = max(len(ranges), min_observation) * ratio
        for j, count in enumerate(wrong.sum(0).tolist()):
            if ratio < 1 and count > most:
                raise OpError(
                    f"{count} of {len(ranges)} ranges of feature {j} are {what}, expected {most:g} at most"
                )
    return dense


def gather(
    data: Array,
    indices: Array,
    *,
    axis: int = 0,
    match_outer: bool = False,
    wrap_indices: bool | None = None,
    dense_gradient: bool = False,
) -> Array:
    """Gather rows; negative indices count from the end along axis 0, and along another axis only with `wrap_indices`.

    `dense_gradient` concerns only the gradient. In Caffe2 an empty table gives an empty result for all indices; here
    an index into it is an error.
    """
    axis = from_front("data", data, axis)
    wrap = axis == 0 if wrap_indices is None else wrap_indices
    if match_outer:
        return _gather_matching(data, indices, axis, wrap)
    return ops.gather_axis(data, indices, axis=axis, wrap=wrap)


def batch_gather(data: Array, indices: Array, *, match_outer: bool = False) -> Array:
    """Gather along axis 1; negative indices are errors."""
    return gather(data, indices, axis=1, match_outer=match_outer)


def _gather_matching(data: Array, indices: Array, axis: int, wrap: bool) -> Array:
    """Gather with separate indices for each of the outer positions that data and indices share."""
    if indices.dtype.kind not in "iu":
        raise OpTypeError(f"indices is {indices.dtype}, expected integers")
    outer = data.shape[:axis]
    if indices.shape[:axis] != outer:
        raise ShapeError(f"indices.shape[:{axis}] is {indices.shape[:axis]}, expected {outer} as in data")
    size, blocks = data.shape[axis], prod(outer)
    table = indices.reshape(blocks, prod(indices.shape[axis:])).astype(np.int64)
    low = -size if wrap else 0
    bad = np.flatnonzero((table < low) | (table >= size))
    if len(bad):
        place = ", ".join(map(str, np.unravel_index(bad[0], indices.shape)))
        raise OpIndexError(f"indices[{place}] = {table.flat[bad[0]]} is outside [{low}, {size})")
    # an index into block i becomes an index into all blocks, one after another
    table += np.where(table < 0, size, 0) + size * np.arange(blocks)[:, None]
    rows = data.reshape(blocks * size, *data.shape[axis + 1 :])
    gathered = ops.gather(rows, table.reshape(-1))
    return gathered.reshape(*outer, *indices.shape[axis:], *data.shape[axis + 1 :])


ADAPTERS |= {
    "Gather": Adapter(gather, strings=True),
    "BatchGather": Adapter(batch_gather, strings=True),
    # the new lengths are not an output: gather the lengths, too; negative indices are errors
    "LengthsGather": Adapter(inputs="data, lengths, indices", outputs="values", strings=True),
    "GatherRanges": Adapter(outputs="values, int32 lengths", strings=True),
    "GatherRangesToDense": Adapter(gather_ranges_to_dense, strings=True),
}
