"""Conversion of sparse to dense and back: values with their rows or columns."""

from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.indices import indices_below
from seqflow.ops.shared.keys import checked_keys, places_of
from seqflow.registry import NoDerivative, op
from seqflow.signature import Ints, NonNegative


def _sparse_to_dense_back(duplicates: str) -> str:
    if duplicates == "sum":
        return "gather(d.dense, indices)"
    return """
        origin = sparse_to_dense(row_numbers(values) + 1, indices, num_rows=num_rows, duplicates=duplicates)
        scatter_rows(d.dense, origin - 1, values, ignore_index=-1)
    """


@op(
    "number values[N, *d], int indices[N] -> dense[num_rows|R, *d], R <= max(indices)+1",
    caffe2="SparseToDense",
    depends={"R": "indices"},
    grad={"values": _sparse_to_dense_back},
)
def sparse_to_dense(
    values: Array,
    indices: Array,
    *,
    num_rows: NonNegative | None = None,
    duplicates: Literal["sum", "last", "raise"] = "sum",
) -> Array:
    """Put row i of `values` into row `indices[i]` of a dense tensor; all other rows are 0.

    Without `num_rows` the largest index is the last row. `duplicates` is the treatment of an index that occurs more
    than once: add its rows up, in the dtype of the values (which wraps around; for bool adding means "or"), keep the
    last one, or raise an error.

    >>> sparse_to_dense(np.array([1, 2, 3]), np.array([3, 0, 3]))
    array([2, 0, 0, 4])
    """
    rows = int64_integers(indices, "indices")
    if num_rows is None:
        num_rows = max(int(rows.max(initial=-1)) + 1, 0)
    rows = indices_below("indices", rows, num_rows)
    check_memory((num_rows, *values.shape[1:]), values.dtype)
    order, counts = kernels.group_rows(rows, num_rows)
    if duplicates == "raise":
        _refuse_duplicates(rows, order, counts)
    if duplicates == "sum":
        sums = kernels.gather_segment_reduce("sum", values, order, counts)
        return sums.astype(values.dtype, copy=False)
    dense = np.zeros((num_rows, *values.shape[1:]), values.dtype)
    taken = np.flatnonzero(counts)
    # the order is stable: at the end of each group is the last row of its index
    dense[taken] = values[order[np.cumsum(counts)[taken] - 1]]
    return dense


def _refuse_duplicates(rows: Array, order: Array, counts: Array) -> None:
    second = np.cumsum(counts)[counts > 1] - counts[counts > 1] + 1
    if len(second):
        place = int(order[second].min())
        first = int(np.flatnonzero(rows == rows[place])[0])
        raise OpError(
            f"indices[{place}] = {rows[place]} is the same as indices[{first}], expected no duplicates"
        )


@op(
    "number dense[R, *d] -> values[K, *d], index(R) indices[K], K <= R",
    grad=NoDerivative("it picks by value"),
)
def dense_to_sparse(dense: Array) -> tuple[Array, Array]:
    """Return the rows that are not all 0, and their indices; `sparse_to_dense` puts them back. NaN is not 0.

    >>> dense_to_sparse(np.array([2, 0, 0, 4]))
    DenseToSparseResult(values=array([2, 4]), indices=array([0, 3]))
    """
    used = dense.astype(bool).reshape(len(dense), int(np.prod(dense.shape[1:], dtype=np.int64))).any(1)
    indices = np.flatnonzero(used)
    return kernels.gather(dense, indices), indices


@op(
    "values[sum(lengths), *d], like(values) default[*d], int indices[sum(lengths)], lengths[B]"
    " -> dense[B, len(mask), *d], bool presence[B, len(mask)]",
    caffe2="SparseToDenseMask",
    grad={
        "values": """
            origin, _ = sparse_to_dense_mask(row_numbers(values) + 1, 0, indices, lengths, mask=mask)
            scatter_rows(d.dense, origin - 1, values, ignore_index=-1)
        """,
        "default": """
            missing = where(out.presence, -1, 0)
            reshape_like(scatter_rows(d.dense, missing, expand_dims(default, axis=0), ignore_index=-1), default)
        """,
    },
)
def sparse_to_dense_mask(
    values: Array, default: Array, indices: Array, lengths: Array, *, mask: Ints
) -> tuple[Array, Array]:
    """Return a dense row of K features for each example: column k has the example's value for the id `mask[k]`.

    If the example has no such id, the column has `default` and `presence` is False; an empty example is a row of
    `default`. Ids that are not in `mask` are omitted, also negative ones. If an id occurs twice in an example, the
    last value counts. The ids of `mask` must be distinct.

    >>> values, ids = np.array([1.0, 2.0, 3.0]), np.array([7, 5, 9])
    >>> sparse_to_dense_mask(values, np.array(-1.0), ids, np.array([2, 0, 1]), mask=[5, 7]).dense
    array([[ 2.,  1.],
           [-1., -1.],
           [-1., -1.]])
    """
    columns = places_of(indices, checked_keys("mask", mask))
    known = np.flatnonzero(columns >= 0)
    shape = len(lengths), len(mask)
    check_memory((*shape, *values.shape[1:]), values.dtype)
    places = kernels.lengths_to_segment_ids(lengths)[known] * shape[1] + columns[known]
    dense = np.empty((shape[0] * shape[1], *values.shape[1:]), values.dtype)
    dense[...] = default
    dense[places] = values[known]
    presence = np.zeros(shape[0] * shape[1], bool)
    presence[places] = True
    return dense.reshape(*shape, *values.shape[1:]), presence.reshape(shape)
