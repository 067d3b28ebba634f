"""Positions inside each segment: of its largest element, its smallest, its k largest."""

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.registry import op
from seqflow.signature import Positive, Scalar


@op("ordered data[sum(lengths), *d], lengths[B] -> position(lengths) positions[B, *d]")
def lengths_argmax(data: Array, lengths: Array) -> Array:
    """Return the position of the largest element inside each segment, column by column.

    The first of equal elements is taken. NaN and NaT are the largest, as in `np.argmax`. An empty segment gives -1.

    The position of the first row that is `v`, or -1 (with `expand(v, n)` for a value of each row):

        where(lengths_any(x == v, n), lengths_argmax(x == v, n), -1)

    >>> lengths_argmax(np.array([1, 3, 2]), np.array([2, 0, 1]))
    array([ 1, -1,  0])
    """
    return kernels.segment_arg("max", data, lengths)


@op("ordered data[sum(lengths), *d], lengths[B] -> position(lengths) positions[B, *d]")
def lengths_argmin(data: Array, lengths: Array) -> Array:
    """Return the position of the smallest element inside each segment, column by column.

    The first of equal elements is taken. NaN and NaT are the smallest, as in `np.argmin`. An empty segment gives -1.

    >>> lengths_argmin(np.array([1, 3, 2]), np.array([2, 0, 1]))
    array([ 0, -1,  0])
    """
    return kernels.segment_arg("min", data, lengths)


@op(
    "ordered data[sum(lengths), *d], lengths[B] -> largest[B, *d], position(lengths) positions[B, *d]",
    grad={"data": "put_at_positions(d.largest, out.positions, data, lengths)"},
)
def lengths_max_with_argmax(data: Array, lengths: Array, *, empty: Scalar = 0) -> tuple[Array, Array]:
    """Return the largest row of each segment, element by element, and its position: `lengths_max` and
    `lengths_argmax`.

    An empty segment gives `empty`, by default 0, and -1.

    >>> lengths_max_with_argmax(np.array([1, 3, 2]), np.array([2, 0, 1]))
    LengthsMaxWithArgmaxResult(largest=array([3, 0, 2]), positions=array([ 1, -1,  0]))
    """
    return kernels.segment_extreme("max", data, lengths, cast_scalar("empty", empty, data.dtype))


@op(
    "ordered data[sum(lengths), *d], lengths[B] -> smallest[B, *d], position(lengths) positions[B, *d]",
    grad={"data": "put_at_positions(d.smallest, out.positions, data, lengths)"},
)
def lengths_min_with_argmin(data: Array, lengths: Array, *, empty: Scalar = 0) -> tuple[Array, Array]:
    """Return the smallest row of each segment, element by element, and its position: `lengths_min` and
    `lengths_argmin`.

    An empty segment gives `empty`, by default 0, and -1.

    >>> lengths_min_with_argmin(np.array([1, 3, 2]), np.array([2, 0, 1]))
    LengthsMinWithArgminResult(smallest=array([1, 0, 2]), positions=array([ 0, -1,  0]))
    """
    return kernels.segment_extreme("min", data, lengths, cast_scalar("empty", empty, data.dtype))


@op(
    "ordered data[sum(lengths)], lengths[B] -> values[B, k], position(lengths) positions[B, k]",
    caffe2="LengthsTopK",
    grad={"data": "put_at_positions(d.values, out.positions, data, lengths)"},
)
def lengths_topk(data: Array, lengths: Array, *, k: Positive) -> tuple[Array, Array]:
    """Return the `k` largest elements of each segment in descending order, and their positions in it.

    Equal elements keep their order. NaN and NaT count as larger than everything else, as in torch. A segment with
    fewer than `k` elements is filled up with value 0 and position -1; an empty segment has only these.

    >>> lengths_topk(np.array([1, 3, 2, 5]), np.array([3, 0, 1]), k=2)
    LengthsTopkResult(values=array([[3, 2],
           [0, 0],
           [5, 0]]), positions=array([[ 1,  2],
           [-1, -1],
           [ 0, -1]]))
    """
    return kernels.segment_topk(data, lengths, k)
