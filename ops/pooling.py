"""Pooling: rows of a table at the indices of each segment, reduced to one row.

The table is read in place, even if it is mapped from a file: only the rows at the indices are read. An index outside
the table is an error that names its position. Rows at `ignore_index` are not counted, not even in a mean, and a
segment of only such indices is empty. An empty segment gives `empty`.
"""

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.ops.shared.weights import weighted_dtype
from seqflow.registry import op
from seqflow.signature import Scalar


@op(
    "number table[R, *d], index(R) indices[sum(lengths)], lengths[B] -> sum_of(table) sums[B, *d]",
    caffe2="SparseLengthsSum",
    sparse_factor="one",
    grad={"table": "scatter_pooled(d.sums, table, indices, lengths, ignore_index=ignore_index)"},
)
def sparse_lengths_sum(
    table: Array, indices: Array, lengths: Array, *, ignore_index: int | None = None, empty: Scalar = 0
) -> Array:
    """Sum the rows of `table` at the indices of each segment; an empty segment gives `empty`.

    The result is that of `lengths_sum(gather(table, indices), lengths)`, without the gathered rows in memory. Rows at
    `ignore_index` are not counted.

    The identity as a table counts ids: `sparse_lengths_sum(np.eye(size), ids, lengths)` is a bag of words, and with
    `np.diag(weights)` a weighted one (tf-idf).

    >>> sparse_lengths_sum(np.array([1.0, 10.0, 100.0]), np.array([0, 2, 1]), np.array([2, 0, 1]))
    array([101.,   0.,  10.])
    """
    if empty != 0:
        empty = cast_scalar("empty", empty, kernels.sum_dtype(table.dtype))
    return kernels.gather_segment_reduce("sum", table, indices, lengths, empty, ignore_index)


def _mean_back(ignore_index: int | None) -> str:
    used = "lengths" if ignore_index is None else "lengths_sum(int64(indices != ignore_index), lengths)"
    return f"""
        shares = scale_rows(d.means, 1.0 / maximum(float64({used}), 1))
        scatter_pooled(shares, table, indices, lengths, ignore_index=ignore_index)
    """


@op(
    "number table[R, *d], index(R) indices[sum(lengths)], lengths[B] -> mean_of(table) means[B, *d]",
    caffe2="SparseLengthsMean",
    sparse_factor="shares",
    grad={"table": _mean_back},
)
def sparse_lengths_mean(
    table: Array, indices: Array, lengths: Array, *, ignore_index: int | None = None, empty: Scalar = 0
) -> Array:
    """Average the rows of `table` at the indices of each segment; an empty segment gives `empty`.

    Rows at `ignore_index` are not counted, in the sum and in the number of rows. The dtypes are those of
    `lengths_mean`.

    >>> sparse_lengths_mean(np.array([1.0, 10.0, 100.0]), np.array([0, 2, 1]), np.array([2, 0, 1]))
    array([50.5,  0. , 10. ])
    """
    if empty != 0:
        empty = cast_scalar("empty", empty, kernels.mean_dtype(table.dtype))
    return kernels.gather_segment_reduce("mean", table, indices, lengths, empty, ignore_index)


def _max_back(ignore_index: int | None) -> str:
    kept, lengths = ("indices", "lengths") if ignore_index is None else ("kept", "sizes")
    chosen = (
        ""
        if ignore_index is None
        else "kept, sizes = mask_sequences(indices, indices != ignore_index, lengths)"
    )
    return f"""
        {chosen}
        rows = gather(table, {kept})
        scatter_rows(put_at_positions(d.largest, lengths_argmax(rows, {lengths}), rows, {lengths}), {kept}, table)
    """


@op(
    "ordered table[R, *d], index(R) indices[sum(lengths)], lengths[B] -> largest[B, *d]",
    caffe2="SparseLengthsMax",
    grad={"table": _max_back},
)
def sparse_lengths_max(
    table: Array, indices: Array, lengths: Array, *, ignore_index: int | None = None, empty: Scalar = 0
) -> Array:
    """Return the largest of the rows of `table` at the indices of each segment, element by element.

    An empty segment gives `empty`, by default 0, even if all rows are negative. Rows at `ignore_index` are not
    counted. NaN and NaT win, as in `np.max`.

    >>> sparse_lengths_max(np.array([-1.0, 10.0, -100.0]), np.array([0, 2, 1]), np.array([2, 0, 1]))
    array([-1.,  0., 10.])
    """
    if empty != 0:
        empty = cast_scalar("empty", empty, table.dtype)
    return kernels.gather_segment_reduce("max", table, indices, lengths, empty, ignore_index)


@op(
    "number table[R, *d], float weights[sum(lengths)], index(R) indices[sum(lengths)], lengths[B]"
    " -> sum_of(table, weights) sums[B, *d]",
    caffe2="SparseLengthsWeightedSum",
    sparse_factor="weights",
    grad={
        "table": """
            scatter_pooled_weighted(d.sums, weights, table, indices, lengths, ignore_index=ignore_index)
        """,
        "weights": "row_dot(expand(d.sums, lengths), gather(table, indices, ignore_index=ignore_index))",
    },
)
def sparse_lengths_weighted_sum(
    table: Array,
    weights: Array,
    indices: Array,
    lengths: Array,
    *,
    ignore_index: int | None = None,
    empty: Scalar = 0,
) -> Array:
    """Sum the rows of `table` at the indices of each segment, each times the weight of its index.

    Weights belong to positions of `indices`, not to rows of the table. An empty segment gives `empty`. For a weighted
    mean use weights that sum to 1: `normalize_within(weights, lengths, norm="l1")`. Rows at `ignore_index` are not
    counted. Table and weights are promoted as in NumPy, at least to float32.

    >>> table, weights = np.array([1.0, 10.0, 100.0]), np.array([0.5, 2.0, 3.0])
    >>> sparse_lengths_weighted_sum(table, weights, np.array([0, 2, 1]), np.array([2, 0, 1]))
    array([200.5,   0. ,  30. ])
    """
    return _weigh(table, weights, indices, lengths, False, ignore_index, empty)


@op(
    "number table[R, *d], float weights[P>=max(lengths)], index(R) indices[sum(lengths)], lengths[B]"
    " -> sum_of(table, weights) sums[B, *d]",
    caffe2="SparseLengthsPositionalWeightedSum",
    sparse_factor="weights by position",
    grad={
        "table": """
            factors = gather(weights, lengths_to_positions(lengths))
            scatter_pooled_weighted(d.sums, factors, table, indices, lengths, ignore_index=ignore_index)
        """,
        "weights": """
            products = row_dot(expand(d.sums, lengths), gather(table, indices, ignore_index=ignore_index))
            scatter_rows(products, lengths_to_positions(lengths), weights)
        """,
    },
)
def sparse_lengths_positional_weighted_sum(
    table: Array,
    weights: Array,
    indices: Array,
    lengths: Array,
    *,
    ignore_index: int | None = None,
    empty: Scalar = 0,
) -> Array:
    """Sum the rows of `table` at the indices of each segment, each times the weight of its position in the segment.

    The first index of every segment has the first weight; a segment must not be longer than the weights. An empty
    segment gives `empty`. Rows at `ignore_index` are not counted; the indices after them keep their positions.

    >>> table, weights = np.array([1.0, 10.0, 100.0]), np.array([0.5, 2.0])
    >>> sparse_lengths_positional_weighted_sum(table, weights, np.array([0, 2, 1]), np.array([2, 0, 1]))
    array([200.5,   0. ,   5. ])
    """
    return _weigh(table, weights, indices, lengths, True, ignore_index, empty)


def _weigh(
    table: Array,
    weights: Array,
    indices: Array,
    lengths: Array,
    positional: bool,
    ignore_index: int | None,
    empty: Scalar,
) -> Array:
    dtype = weighted_dtype(table, weights)
    if empty != 0:
        empty = cast_scalar("empty", empty, dtype)
    factors = weights.astype(dtype, copy=False)
    return kernels.gather_segment_weigh(table, factors, indices, lengths, positional, empty, ignore_index)
