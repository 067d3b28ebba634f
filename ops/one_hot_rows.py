"""Rows of zeros and ones for ids, categories and buckets."""

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.kernels.memory import check_memory
from seqflow.ops.buckets import check_boundaries, each_list
from seqflow.ops.shared.indices import indices_below
from seqflow.ops.shared.slices import int64
from seqflow.registry import NoDerivative, op
from seqflow.signature import Dtype, Positive

FLOAT32 = np.dtype(np.float32)


@op(
    "index(width) x[N, *i] -> dtype hot[N, *i, width]",
    caffe2="OneHot",
    grad=NoDerivative("it is piecewise constant"),
)
def one_hot(x: Array, *, width: Positive, dtype: Dtype = FLOAT32) -> Array:
    """Return a row of `width` for each id: 1 in the column of the id, 0 in all others. Ids are 0 to `width - 1`.

    >>> one_hot(np.array([2, 0]), width=3)
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    ids = indices_below("x", x, width)
    check_memory((*ids.shape, width), dtype)
    hot = np.zeros((*ids.shape, width), dtype)
    hot.reshape(-1)[np.arange(ids.size) * width + ids.reshape(-1)] = 1
    return hot


@op(
    "index(width) indices[sum(lengths)], lengths[B] -> dtype hot[B, width]",
    caffe2="SegmentOneHot",
    grad=NoDerivative("it is piecewise constant"),
)
def segment_one_hot(indices: Array, lengths: Array, *, width: Positive, dtype: Dtype = FLOAT32) -> Array:
    """Return a row of `width` for each sequence of ids: 1 in the columns of its ids, 0 in all others.

    An id that occurs twice also gives 1; an empty sequence is a row of zeros.

    >>> segment_one_hot(np.array([2, 0, 1]), np.array([2, 0, 1]), width=3)
    array([[1., 0., 1.],
           [0., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    columns = indices_below("indices", indices, width)
    check_memory((len(lengths), width), dtype)
    hot = np.zeros((len(lengths), width), dtype)
    hot.reshape(-1)[kernels.lengths_to_segment_ids(lengths) * width + columns] = 1
    return hot


@op(
    "x[B, D], like(x) values[sum(lengths)], lengths[D] -> dtype hot[B, sum(lengths)]",
    caffe2="BatchOneHot",
    moves="",
    grad=NoDerivative("it is piecewise constant"),
)
def batch_one_hot(x: Array, values: Array, lengths: Array, *, dtype: Dtype = FLOAT32) -> Array:
    """Replace each column of a matrix by one column for each value listed for it: 1 if it has the value, else 0.

    Sequence d of `values` lists the values of column d; an empty sequence drops the column. A value that is not
    listed gives zeros, a value that is listed twice gives 1 in both places.

    >>> batch_one_hot(np.array([[2, 3], [4, 1]]), np.array([2, 4, 1, 3]), np.array([2, 2]))
    array([[1., 0., 0., 1.],
           [0., 1., 1., 0.]], dtype=float32)
    """
    check_memory((len(x), len(values)), max(x.dtype, dtype, key=lambda one: one.itemsize))
    columns = kernels.lengths_to_segment_ids(lengths)
    hot: Array = (x[:, columns] == values).astype(dtype)
    return hot


@op(
    "number x[B, D], number boundaries[sum(lengths)], lengths[D] -> dtype hot[B, sum(lengths)+D]",
    caffe2="BatchBucketOneHot",
    grad=NoDerivative("it is piecewise constant"),
)
def batch_bucket_one_hot(x: Array, boundaries: Array, lengths: Array, *, dtype: Dtype = FLOAT32) -> Array:
    """Replace each column of a matrix by one column for each of its buckets: 1 in the bucket of the value, else 0.

    Sequence d of `boundaries` is for column d; there is one bucket more than boundaries. An empty sequence gives
    one bucket, which is always 1. The buckets are those of `bucketize`; NaN is in the last one.

    >>> batch_bucket_one_hot(np.array([[2.0, 3.0], [4.0, 1.0]]), np.array([2.5, 1.0, 3.5]), np.array([1, 2]))
    array([[1., 0., 0., 1., 0.],
           [0., 1., 1., 0., 0.]], dtype=float32)
    """
    sizes = int64(lengths)
    check_boundaries(boundaries, sizes)
    width = len(boundaries) + len(sizes)
    check_memory((len(x), width), dtype)
    hot = np.zeros((len(x), width), dtype)
    first = 0
    for column, bounds in zip(x.T, each_list(boundaries, sizes), strict=True):
        dtype_of_both = np.result_type(column, bounds)
        places = np.searchsorted(bounds.astype(dtype_of_both), column.astype(dtype_of_both))
        hot[np.arange(len(x)), first + places] = 1
        first += len(bounds) + 1
    return hot
