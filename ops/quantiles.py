"""Quantiles of each segment, by one sort."""

from typing import Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import NoDerivative, op
from seqflow.shape import InferenceContext
from seqflow.signature import Scalar

Interpolation = Literal["linear", "lower", "higher", "nearest", "midpoint"]


def _checked_q(q: Any) -> Array:
    """Return the shares as float64; raise OpError for one outside [0, 1]."""
    try:
        shares = np.asarray(q, np.float64)
    except (TypeError, ValueError):
        raise OpTypeError(f"q is {q!r}, expected a number from 0 to 1, or a list of them") from None
    if shares.ndim > 1 or isinstance(q, (str, bytes, bool)):
        raise OpTypeError(f"q is {q!r}, expected a number from 0 to 1, or a list of them")
    wrong = np.flatnonzero(~((shares.reshape(-1) >= 0) & (shares.reshape(-1) <= 1)))
    if len(wrong):
        place = f"q[{wrong[0]}]" if shares.ndim else "q"
        raise OpError(f"{place} is {shares.reshape(-1)[wrong[0]]}, expected 0 to 1")
    return shares


def _infer_quantiles(ctx: InferenceContext) -> None:
    data, lengths = ctx.input("data"), ctx.input("lengths")
    shares = _checked_q(ctx.attr("q"))
    if data.dimensions is not None:
        shape = [ctx.dim(lengths, 0), *shares.shape, *data.dimensions[1:]]
        axes = [ctx.rows("lengths"), *[None] * shares.ndim, *ctx.axes("data")[1:]]
        ctx.set_output(0, shape, axes=axes)


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) quantiles[B, *e]",
    shape=_infer_quantiles,
    grad={
        "data": """
            quantile_within_backward(d.quantiles, data, lengths, q=q, interpolation=interpolation)
        """
    },
)
def lengths_quantile(
    data: Array, lengths: Array, *, q: Any, interpolation: Interpolation = "linear", empty: Scalar = 0
) -> Array:
    """Return quantiles of each segment, column by column; an empty segment gives `empty`.

    `q` is a share from 0 to 1, or a list of them, which adds an axis after that of the segments. They are those of
    `np.quantile`: a quantile that lies between two rows is interpolated. A NaN gives NaN. float32 and float64 keep
    their dtype, everything else gives float64.

    >>> lengths_quantile(np.array([3, 1, 2, 4, 1]), np.array([3, 0, 2]), q=0.5)
    array([2. , 0. , 2.5])
    """
    shares = _checked_q(q)
    dtype = kernels.mean_dtype(data.dtype)
    value = cast_scalar("empty", empty, dtype)
    sizes = int64(lengths)
    wide = np.result_type(dtype, np.float64)
    # sorted as they are: half as wide, floats take half the time
    ordered = kernels.sort_within(data, sizes)
    below, above, part = _places(sizes, shares.reshape(-1), interpolation)
    starts = starts_of(sizes)[:, None]
    filled = sizes > 0
    found = np.full((len(sizes), shares.size, *data.shape[1:]), value, dtype)
    with np.errstate(all="ignore"):
        low, high = (ordered[(starts + place)[filled]].astype(wide, copy=False) for place in (below, above))
        between = _between(low, high, _column(part[filled], low))
        last = ordered[(starts[:, 0] + sizes - 1)[filled]].astype(wide, copy=False)[:, None]
        found[filled] = np.where(np.isnan(last), np.nan, between)  # NaN is sorted to the end
    return found if shares.ndim else found[:, 0]


def _places(sizes: Array, shares: Array, interpolation: str) -> tuple[Array, Array, Array]:
    """Return the positions below and above each quantile in its sorted segment, and the part of the way between."""
    at = np.maximum(sizes - 1, 0)[:, None] * shares
    below = np.floor(at).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(sizes - 1, 0)[:, None])
    part = at - below
    if interpolation == "lower":
        part = np.zeros_like(part)
    elif interpolation == "higher":
        part = np.ceil(part)
    elif interpolation == "nearest":
        part = np.rint(at) - below  # to the even position, as in NumPy
    elif interpolation == "midpoint":
        part = np.where(part > 0, 0.5, 0.0)
    return below, above, part


def _between(low: Array, high: Array, part: Array) -> Array:
    """Return the numbers at a part of the way from low to high; the ends themselves at 0 and 1."""
    way = high - low
    # a way is infinite next to an infinity, and between numbers near ±1.7e308
    found = np.where(np.isfinite(way), low + part * way, low * (1 - part) + high * part)
    return np.where((part == 0) | (low == high), low, np.where(part == 1, high, found))


def _column(numbers: Array, rows: Array) -> Array:
    return numbers.reshape(*numbers.shape, *[1] * (rows.ndim - numbers.ndim))


@op(
    "number d[B, *e], number data[sum(lengths), *d], lengths[B] -> mean_of(data) back[sum(lengths), *d]",
    moves="",
    grad=NoDerivative("it picks rows by their order"),
)
def quantile_within_backward(
    d: Array, data: Array, lengths: Array, *, q: Any, interpolation: Interpolation = "linear"
) -> Array:
    """Return the gradient of `lengths_quantile`: each share goes to the two rows that it lies between.

    An empty segment has no rows.

    >>> quantile_within_backward(np.array([1.0]), np.array([3.0, 1.0]), np.array([2]), q=0.25)
    array([0.25, 0.75])
    """
    shares, sizes = _checked_q(q).reshape(-1), int64(lengths)
    back = np.zeros(data.shape, np.float64)
    if d.size != len(sizes) * shares.size * int(np.prod(data.shape[1:])):
        raise OpError(f"d has the shape {d.shape}, expected that of the quantiles")
    arriving = d.reshape(len(sizes), shares.size, *data.shape[1:])
    order = kernels.argsort_within(data, sizes)
    below, above, part = _places(sizes, shares, interpolation)
    filled = sizes > 0
    for place, weight in ((below, 1 - part), (above, part)):
        rows = (starts_of(sizes)[:, None] + place)[filled]
        picked = order[rows] + _column(
            np.broadcast_to(starts_of(sizes)[:, None], place.shape)[filled], order[rows]
        )
        columns = np.indices(picked.shape)[2:]
        np.add.at(back, (picked, *columns), arriving[filled] * _column(weight[filled], arriving[filled]))
    return back.astype(kernels.mean_dtype(data.dtype), copy=False)


@op(
    "number d[B, *d], number data[sum(lengths), *d], lengths[B] -> mean_of(data) back[sum(lengths), *d]",
    moves="",
    grad=NoDerivative("it picks rows by their order"),
)
def median_within_backward(d: Array, data: Array, lengths: Array) -> Array:
    """Return the gradient of `lengths_median`: the row in the middle gets it, or two rows get half of it each.

    An empty segment has no rows.

    >>> median_within_backward(np.array([1.0, 2.0]), np.array([3.0, 1.0, 5.0]), np.array([2, 1]))
    array([0.5, 0.5, 2. ])
    """
    return quantile_within_backward(d, data, lengths, q=0.5)


@op(
    "number data[sum(lengths), *d], lengths[B] -> mean_of(data) medians[B, *d]",
    grad={"data": "median_within_backward(d.medians, data, lengths)"},
)
def lengths_median(data: Array, lengths: Array, *, empty: Scalar = 0) -> Array:
    """Return the median of each segment, column by column; an empty segment gives `empty`. A NaN gives NaN.

    An even number of rows has the mean of the two in the middle. The dtypes are those of `lengths_quantile`.

    >>> lengths_median(np.array([3, 1, 2, 4, 1]), np.array([3, 0, 2]))
    array([2. , 0. , 2.5])
    """
    return lengths_quantile(data, lengths, q=0.5, empty=empty)
