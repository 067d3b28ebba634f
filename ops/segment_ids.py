"""Reductions of rows that are assigned to segments by ids.

`sorted_segment_…` take ids that count up from 0 without gaps: the rows of a segment follow one another.
`unsorted_segment_…` take the rows in any order; a segment may be empty.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from seqflow import kernels, registry
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array, counts
from seqflow.ops.segments import FINITE_LOGS
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.ops.shared.weights import expand_trailing, weighted
from seqflow.registry import op
from seqflow.signature import NonNegative, Scalar


def sorted_lengths(ids: Array) -> Array:
    """Return the count of each id; raise OpError unless they are 0, 1, 2 … in this order, each at least once."""
    signed = ids.astype(np.int64)  # a copy: it is read more than once, and another thread may write to it
    steps = np.diff(signed, prepend=-1)
    wrong = (steps != 0) & (steps != 1)
    wrong[:1] |= steps[:1] != 1
    if wrong.any():
        place = int(np.argmax(wrong))
        expected = f"{signed[place - 1]} as before or one more" if place else "0"
        raise OpError(f"ids[{place}] = {ids[place]}, expected {expected}: sorted ids without gaps")
    return np.bincount(signed)


def _logmeanexp(data: Array, lengths: Array) -> Array:
    logs = kernels.segment_logsumexp(data, lengths)
    logs -= expand_trailing(np.log(lengths).astype(logs.dtype), logs)
    return logs


def _sorted(kind: str, does: str, example: str, grad: Mapping[str, str], **facts: Any) -> Any:
    """Declare an op of sorted ids: the op of lengths of this kind, of the counts of ids."""
    like = "logsumexp" if kind == "logmeanexp" else kind
    of_lengths = registry.get(f"lengths_{like}")
    reduce: Any = _logmeanexp if kind == "logmeanexp" else of_lengths.function
    signature = str(of_lengths.signature).replace("sum(lengths)", "N").replace("lengths[B]", "int ids[N]")
    signature = f"{signature.replace('[B, ', '[S, ')}, S <= minimum(N, max(ids)+1)"

    def by_ids(data: Array, ids: Array) -> Array:
        found: Array = reduce(data, sorted_lengths(ids))
        return found

    def weighted_by_ids(data: Array, weights: Array, ids: Array) -> Array:
        found: Array = reduce(data, weights, sorted_lengths(ids))
        return found

    function: Any = weighted_by_ids if "weights" in grad else by_ids
    function.__name__ = function.__qualname__ = name = f"sorted_segment_{kind}"
    given, found = example.split(" -> ")
    dtypes = "" if kind in ("max", "min") else f"The dtypes are those of `lengths_{like}`.\n\n"
    function.__doc__ = (
        f"{does}; ids are 0, 1, 2 … in this order, so none is empty.\n\n{dtypes}"
        f">>> {name}({given}, np.array([0, 0, 1]))\narray({found})\n"
    )
    return op(signature, rows={"S": "groups(ids)"}, grad=grad, **facts)(function)


_SHARES = "1.0 / maximum(float64(segment_counts(ids, out.{})), 1)"
_EXTREME = "cast_like(gather(d.{0}, ids) * extreme_shares(data, ids, out.{0}), data)"

sorted_segment_sum = _sorted(
    "sum", "Sum the rows of each id", "np.array([1, 2, 3]) -> [3, 3]", {"data": "gather(d.sums, ids)"},
    caffe2="SortedSegmentSum, SortedSegmentRangeSum",
)  # fmt: skip
sorted_segment_mean = _sorted(
    "mean", "Average the rows of each id", "np.array([1, 2, 3]) -> [1.5, 3. ]",
    {"data": f"gather(scale_rows(d.means, {_SHARES.format('means')}), ids)"},
    caffe2="SortedSegmentMean, SortedSegmentRangeMean",
)  # fmt: skip
sorted_segment_weighted_sum = _sorted(
    "weighted_sum", "Sum the rows of each id, each times its weight",
    "np.array([1, 2, 3]), np.array([0.5, 1.0, 2.0]) -> [2.5, 6. ]",
    {
        "data": "cast_like(scale_rows(gather(d.sums, ids), weights), data)",
        "weights": "row_dot(gather(d.sums, ids), data)",
    },
    caffe2="SortedSegmentWeightedSum",
)  # fmt: skip
sorted_segment_max = _sorted(
    "max", "Return the largest row of each id, element by element", "np.array([1, 2, 3]) -> [2, 3]",
    {"data": _EXTREME.format("largest")}, caffe2="SortedSegmentRangeMax",
)  # fmt: skip
sorted_segment_min = _sorted(
    "min", "Return the smallest row of each id, element by element", "np.array([1, 2, 3]) -> [1, 3]",
    {"data": _EXTREME.format("smallest")},
)  # fmt: skip
sorted_segment_prod = _sorted(
    "prod", "Multiply the rows of each id", "np.array([2, 3, 4]) -> [6, 4]",
    {"data": "gather(d.products, ids) * products_of_others(data, segment_counts(ids, out.products))"},

)  # fmt: skip
sorted_segment_logsumexp = _sorted(
    "logsumexp", "Compute log(sum(exp(data))) over the rows of each id",
    "np.array([1000.0, 1000.0, 3.0]) -> [1000.69314718,    3.        ]",
    {"data": f"gather(d.logs, ids) * exp(data - gather({FINITE_LOGS}, ids))"},
    caffe2="SortedSegmentRangeLogSumExp",
)  # fmt: skip
sorted_segment_logmeanexp = _sorted(
    "logmeanexp", "Compute log(mean(exp(data))) over the rows of each id",
    "np.array([1000.0, 1000.0, 3.0]) -> [1000.,    3.]",
    {"data": f"gather(scale_rows(d.logs, {_SHARES.format('logs')}), ids) * exp(data - gather({FINITE_LOGS}, ids))"},
    caffe2="SortedSegmentRangeLogMeanExp",
)  # fmt: skip


@op(
    "number data[N, *d], int ids[N] -> sum_of(data) sums[num_segments|S, *d], S <= max(ids)+1",
    caffe2="UnsortedSegmentSum",
    rows={"S": "groups(ids, num_segments)"},
    grad={"data": "gather_inside(d.sums, ids)"},
)
def unsorted_segment_sum(
    data: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Sum the rows of each id; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment. The dtypes are those of `lengths_sum`.

    >>> unsorted_segment_sum(np.array([1, 2, 3]), np.array([2, 0, 2]))
    array([2, 0, 4])
    """
    return _reduce_by_id("sum", data, ids, num_segments, empty)


@op(
    "number data[N, *d], int ids[N] -> mean_of(data) means[num_segments|S, *d], S <= max(ids)+1",
    caffe2="UnsortedSegmentMean",
    rows={"S": "groups(ids, num_segments)"},
    grad={
        "data": "gather_inside(scale_rows(d.means, 1.0 / maximum(float64(segment_counts(ids, out.means)), 1)), ids)"
    },
)
def unsorted_segment_mean(
    data: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Average the rows of each id; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment. The dtypes are those of `lengths_mean`.

    >>> unsorted_segment_mean(np.array([1, 2, 3]), np.array([2, 0, 2]))
    array([2., 0., 2.])
    """
    return _reduce_by_id("mean", data, ids, num_segments, empty)


@op(
    "ordered data[N, *d], int ids[N] -> largest[num_segments|S, *d], S <= max(ids)+1",
    rows={"S": "groups(ids, num_segments)"},
    grad={"data": "cast_like(gather_inside(d.largest, ids) * extreme_shares(data, ids, out.largest), data)"},
)
def unsorted_segment_max(
    data: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Return the largest row of each id, element by element; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment.

    >>> unsorted_segment_max(np.array([1, 2, 3]), np.array([2, 0, 2]))
    array([2, 0, 3])
    """
    return _reduce_by_id("max", data, ids, num_segments, empty)


@op(
    "ordered data[N, *d], int ids[N] -> smallest[num_segments|S, *d], S <= max(ids)+1",
    rows={"S": "groups(ids, num_segments)"},
    grad={
        "data": "cast_like(gather_inside(d.smallest, ids) * extreme_shares(data, ids, out.smallest), data)"
    },
)
def unsorted_segment_min(
    data: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Return the smallest row of each id, element by element; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment.

    >>> unsorted_segment_min(np.array([1, 2, 3]), np.array([2, 0, 2]))
    array([2, 0, 1])
    """
    return _reduce_by_id("min", data, ids, num_segments, empty)


@op(
    "number data[N, *d], float weights[N], int ids[N]"
    " -> sum_of(data, weights) sums[num_segments|S, *d], S <= max(ids)+1",
    caffe2="UnsortedSegmentWeightedSum",
    rows={"S": "groups(ids, num_segments)"},
    grad={
        "data": "cast_like(scale_rows(gather_inside(d.sums, ids), weights), data)",
        "weights": "row_dot(gather_inside(d.sums, ids), data)",
    },
)
def unsorted_segment_weighted_sum(
    data: Array, weights: Array, ids: Array, *, num_segments: NonNegative | None = None, empty: Scalar = 0
) -> Array:
    """Sum the rows of each id, each times its weight; an empty segment gives `empty`.

    Without `num_segments` the largest id is the last segment. The dtypes are those of `lengths_weighted_sum`.

    >>> unsorted_segment_weighted_sum(np.array([1, 2, 3]), np.array([0.5, 1.0, 2.0]), np.array([2, 0, 2]))
    array([2. , 0. , 6.5])
    """
    return _reduce_by_id("sum", weighted(data, weights), ids, num_segments, empty)


_RESULT_DTYPES = {"sum": kernels.sum_dtype, "mean": kernels.mean_dtype}
"""Dtypes of reductions that differ from those of the data."""


def _reduce_by_id(kind: str, data: Array, ids: Array, num_segments: int | None, empty: Scalar) -> Array:
    rule = _RESULT_DTYPES.get(kind)
    value = cast_scalar("empty", empty, data.dtype if rule is None else rule(data.dtype))
    if num_segments is None:
        ids = counts(ids, "ids")
        num_segments = int(ids.max(initial=-1)) + 1
    if kind in ("sum", "mean") and data.ndim == 1 and data.dtype.kind == "f" and data.dtype.itemsize <= 8:
        return _add_up(kind, data, ids, num_segments, value)
    order, lengths = kernels.group_rows(ids, num_segments)
    return kernels.gather_segment_reduce(kind, data, order, lengths, value)


def _add_up(kind: str, column: Array, ids: Array, num_segments: int, empty: Any) -> Array:
    """Return sums or means of one column, in float64: adding single elements is faster than sorting them by id."""
    counted, dtype = kind == "mean" or empty != 0, _RESULT_DTYPES[kind](column.dtype)
    if column.dtype.itemsize < 4:
        column = column.astype(np.float32)
    sums, sizes = kernels.add_by_id(column, ids, num_segments, counted)
    with np.errstate(all="ignore"):
        if kind == "mean":
            sums /= np.maximum(sizes, 1)
        result: Array = sums.astype(dtype, copy=False)
    if counted:
        result[sizes == 0] = empty
    return result
