"""Caffe2's operators for buckets and one-hot rows."""

from typing import Any

import numpy as np

from seqflow import ops
from seqflow.caffe2.adapter import Adapter, as_matrix, int32, single_integer
from seqflow.errors import OpError, ShapeError
from seqflow.kernels.arrays import Array


def bucketize(x: Array, *, boundaries: Any) -> Array:
    """NaN goes to the first bucket. Boundaries are taken as float32."""
    bounds = np.asarray(boundaries, np.float32)
    flat = x.reshape(x.size)
    return int32(ops.bucketize(flat, bounds, nan=0).reshape(x.shape))


def one_hot(indices: Array, index_size: Array) -> Array:
    width = single_integer("index_size", index_size)
    if indices.ndim != 1:
        raise ShapeError(f"indices has {indices.ndim} dimensions, expected 1")
    return ops.one_hot(indices, width=width)


def segment_one_hot(lengths: Array, indices: Array, index_size: Array) -> Array:
    """An index beyond the width is an error (Caffe2 writes it into the next row)."""
    return ops.segment_one_hot(indices, lengths, width=single_integer("index_size", index_size))


def batch_one_hot(data: Array, lengths: Array, values: Array) -> Array:
    """All axes but the first are columns; the result has the dtype of the data."""
    return ops.batch_one_hot(as_matrix("data", data), values, lengths, dtype=data.dtype)


def batch_bucket_one_hot(data: Array, lengths: Array, boundaries: Array) -> Array:
    """All axes but the first are columns; each has a boundary at least."""
    if lengths.dtype.kind in "iu" and not lengths.all():
        raise OpError(f"lengths[{int(np.argmin(lengths != 0))}] is 0, expected 1 or more")
    return ops.batch_bucket_one_hot(as_matrix("data", data), boundaries, lengths)


ADAPTERS = {
    "Bucketize": Adapter(bucketize),
    "BatchBucketize": Adapter(inputs="x, columns, boundaries, lengths", outputs="int32 buckets"),
    "OneHot": Adapter(one_hot),
    "SegmentOneHot": Adapter(segment_one_hot),
    "BatchOneHot": Adapter(batch_one_hot),
    "BatchBucketOneHot": Adapter(batch_bucket_one_hot),
}
