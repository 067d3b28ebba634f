"""A sparse vector for each example, as indices and values with lengths, and the matrix of all of them."""

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.indices import indices_below
from seqflow.ops.shared.scalars import filled, with_fill
from seqflow.registry import op
from seqflow.signature import Fill, Positive


@op(
    "values[sum(lengths)], index(width) indices[sum(lengths)], lengths[B] -> dense[B, width]",
    caffe2="BatchSparseToDense",
    grad={
        "values": """
            numbers = row_numbers(values)
            last = batch_sparse_to_dense(numbers, indices, lengths, width=width, fill=-1)
            kept = batch_dense_to_sparse(last, indices, lengths) == numbers
            where(kept, batch_dense_to_sparse(d.dense, indices, lengths), 0.0)
        """
    },
)
def batch_sparse_to_dense(
    values: Array, indices: Array, lengths: Array, *, width: Positive, fill: Fill = 0
) -> Array:
    """Return a dense row for each example: its values in the columns given by `indices`, `fill` in all others.

    If an index occurs twice in an example, the last value counts. An empty example is a row of `fill`.

    >>> batch_sparse_to_dense(np.array([6, 7, 8]), np.array([0, 2, 1]), np.array([2, 0, 1]), width=3)
    array([[6, 0, 7],
           [0, 0, 0],
           [0, 8, 0]])
    """
    columns = indices_below("indices", indices, width)
    values, fill = with_fill("fill", fill, values)
    check_memory((len(lengths), width), values.dtype)
    dense = filled((len(lengths), width), fill, values.dtype)
    # where an index repeats, NumPy assigns in order: the last value stays
    dense.reshape(-1)[_places(lengths, width) + columns] = values
    return dense


@op(
    "dense[B, W], index(W) indices[sum(lengths)], lengths[B] -> values[sum(lengths)]",
    caffe2="BatchDenseToSparse",
    grad={"dense": "scatter_sequences(zeros_like(dense), d.values, indices, lengths)"},
)
def batch_dense_to_sparse(dense: Array, indices: Array, lengths: Array) -> Array:
    """Return the elements of row i of `dense` in the columns listed by sequence i of `indices`.

    An empty sequence has none. This is the inverse of `batch_sparse_to_dense`.

    >>> dense = np.array([[6, 0, 7], [0, 0, 0], [0, 8, 0]])
    >>> batch_dense_to_sparse(dense, np.array([0, 2, 1]), np.array([2, 0, 1]))
    array([6, 7, 8])
    """
    columns = indices_below("indices", indices, dense.shape[1])
    flat = np.ascontiguousarray(dense).reshape(-1)
    return kernels.gather(flat, _places(lengths, dense.shape[1]) + columns)


def _places(lengths: Array, width: int) -> Array:
    """Return the start of each element's row in the flat matrix."""
    return kernels.lengths_to_segment_ids(lengths) * width


@op(
    "number dense[B, W] -> int64 values[sum(lengths)] <= W-1, int64 lengths[B] <= W",
    caffe2="DenseVectorToIdList",
)
def dense_to_id_list(dense: Array) -> tuple[Array, Array]:
    """Return the columns of each row with a value above 0: a vector of flags or counts as a list of ids.

    A row without a value above 0 is an empty list; NaN is not above 0.

    >>> dense_to_id_list(np.array([[1, 0, 2], [0, -1, 0]]))
    DenseToIdListResult(values=array([0, 2]), lengths=array([2, 0]))
    """
    rows, columns = np.nonzero(dense > 0)
    return columns, np.bincount(rows, minlength=len(dense))
