"""Gather ranges of rows; a range is a start and a length."""

from typing import Literal

import numpy as np

from seqflow.errors import OpError, OpIndexError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.slices import move_sequences
from seqflow.registry import MovedRows, op
from seqflow.shape import InferenceContext
from seqflow.signature import Sizes


@op(
    "data[N, *d], offset(N) ranges[B, M, 2] -> values[sum(lengths), *d], int64 lengths[B] <= N*M",
    caffe2="GatherRanges",
    depends={"lengths": "ranges"},
    grad=MovedRows(),
)
def gather_ranges(data: Array, ranges: Array) -> tuple[Array, Array]:
    """Concatenate, for each example, the rows of its M ranges; a range is its first row and its length.

    Ranges may overlap, in any order. A range that is not inside `data` is an OpIndexError; an empty range may start
    anywhere. An example with only empty ranges is an empty sequence.

    >>> gather_ranges(np.array([10, 20, 30, 40]), np.array([[[0, 1], [2, 2]], [[3, 0], [1, 1]]]))
    GatherRangesResult(values=array([10, 30, 40, 20]), lengths=array([3, 1]))
    """
    starts, sizes = _checked(ranges, len(data))
    return move_sequences(data, starts.ravel(), sizes.ravel()), sizes.sum(1)


def _infer_dense(ctx: InferenceContext) -> None:
    ranges, lengths = ctx.input("ranges"), ctx.attr("lengths")
    ctx.check_indices("ranges", ctx.rows("data"), "data")
    if ranges.dimensions is not None:
        ctx.merge(ctx.dim(ranges, 1), len(lengths))
    for i, length in enumerate(lengths):
        ctx.set_output(i, [ctx.dim(ranges, 0), length], rows=ctx.rows("ranges"))


def _ranges_back(lengths: tuple[int, ...]) -> str:
    origins = ", ".join(f"origin{i}" for i in range(len(lengths)))
    return f"""
        numbers = row_numbers(data) + 1
        {origins} = gather_ranges_to_dense(numbers, ranges, keys=keys, lengths=lengths, on_mismatch=on_mismatch)
        scatter_rows(concat(d.dense, axis=1), concat([{origins}], axis=1) - 1, data, ignore_index=-1)
    """


@op(
    "data[N], int ranges[B, M, 2], int keys[N]? -> {dense[B, _]}*lengths",
    caffe2="GatherRangesToDense",
    shape=_infer_dense,
    grad={"data": _ranges_back},
)
def gather_ranges_to_dense(
    data: Array,
    ranges: Array,
    keys: Array | None,
    *,
    lengths: Sizes,
    on_mismatch: Literal["zero", "raise"] = "zero",
) -> list[Array]:
    """Gather the M ranges of each example into M dense tensors: range j of example i is row i of tensor j.

    `lengths[j]` is the expected length of range j. A range of another length gives a row of zeros, or with
    `on_mismatch="raise"` an OpError; an empty range always gives zeros. With `keys`, one for each row of `data`,
    the elements of a range are sorted by their keys; those with equal keys keep their order.

    >>> ranges = np.array([[[0, 1], [2, 2]], [[3, 1], [0, 0]]])
    >>> gather_ranges_to_dense(np.array([10, 20, 30, 40]), ranges, lengths=[1, 2])
    [array([[10],
           [40]]), array([[30, 40],
           [ 0,  0]])]
    """
    starts, sizes = _checked(ranges, len(data))
    if starts.shape[1] != len(lengths):
        raise OpError(f"ranges has {starts.shape[1]} ranges for each example, lengths has {len(lengths)}")
    if on_mismatch == "raise":
        wrong = (sizes != 0) & (sizes != np.array(lengths, np.int64))
        if wrong.any():
            i, j = np.argwhere(wrong)[0].tolist()
            raise OpError(f"ranges[{i}, {j}] has length {sizes[i, j]}, expected {lengths[j]} or 0")
    return [_dense(data, keys, starts[:, j], sizes[:, j], length) for j, length in enumerate(lengths)]


def _dense(data: Array, keys: Array | None, starts: Array, sizes: Array, length: int) -> Array:
    check_memory((len(starts), length), np.dtype(np.int64))
    dense = np.zeros((len(starts), length), data.dtype)
    fits = np.flatnonzero((sizes == length) & (sizes > 0))
    # if nothing fits, `length` is unbounded: it may be more than memory holds
    places = starts[fits, None] + np.arange(length if len(fits) else 0)
    if keys is not None:
        places = np.take_along_axis(places, np.argsort(keys[places], axis=1, kind="stable"), axis=1)
    if len(fits):
        dense[fits] = data[places]
    return dense


def _checked(ranges: Array, num_rows: int) -> tuple[Array, Array]:
    """Return starts and lengths; the start of an empty range becomes 0."""
    pairs = int64_integers(ranges, "ranges")
    starts, sizes = np.where(pairs[..., 1] == 0, 0, pairs[..., 0]), pairs[..., 1]
    # not starts + sizes > num_rows: that sum may wrap around
    wrong = (starts < 0) | (sizes < 0) | (sizes > num_rows) | (starts > num_rows - sizes)
    if wrong.any():
        i, j = np.argwhere(wrong)[0].tolist()
        raise OpIndexError(
            f"ranges[{i}, {j}] starts at {starts[i, j]} and has length {sizes[i, j]}, "
            f"expected a range inside the {num_rows} rows of data"
        )
    return starts, sizes
