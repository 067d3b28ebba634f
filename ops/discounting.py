"""Sums in which what is further away counts less: returns, advantages, decayed counts."""

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.registry import op


def _x_back(reverse: bool) -> str:
    by = 1 if reverse else -1
    return f"""
        moved = shift(discount, lengths, by={by})
        discounted_sum_within(d.y, moved, lengths, gamma=gamma, reverse=logical_not(reverse))
    """


def _discount_back(reverse: bool, last: bool) -> str:
    by, place = (-1, "int64(lengths) - 1") if reverse else (1, "where(lengths == 0, -1, 0)")
    begin = f" + put_at_positions(cast_like(last, out.y), {place}, out.y, lengths)" if last else ""
    arriving = _x_back(reverse).strip().replace("\n        disc", "\n        arriving = disc")
    return f"""
        {arriving}
        met = shift(out.y, lengths, by={by}){begin}
        cast_like(row_dot(arriving, met) * gamma, discount)
    """


def _last_back(reverse: bool) -> str:
    arriving = _x_back(reverse).strip().replace("\n        disc", "\n        arriving = disc")
    end = "lengths_last" if reverse else "lengths_first"
    return f"""
        {arriving}
        cast_like({end}(scale_rows(arriving, discount), lengths) * gamma, last)
    """


@op(
    "number x[sum(lengths), *d], number discount[sum(lengths)], lengths[B], number last[B, *d]?"
    " -> mean_of(x) y[sum(lengths), *d]",
    grad={"x": _x_back, "discount": _discount_back, "last": _last_back},
)
def discounted_sum_within(
    x: Array, discount: Array, lengths: Array, last: Array | None, *, gamma: float = 1.0, reverse: bool = True
) -> Array:
    """Return y[t] = x[t] + gamma * discount[t] * y[t + 1] in each sequence; after its end stands `last`, or 0.

    `reverse=False` runs forward, with y[t - 1]: weighted means, decayed counts. For one discount for all, `gamma`,
    the discounts are ones: `lengths_to_weights(lengths, power=0.0)`. A discount of 0 ends an episode; NaN and inf go
    on as in the formula. An empty sequence stays empty and does not read its `last`. float32 and float64 keep their
    dtype, everything else gives float64; the sums are made in float64. Generalised advantages: `x` is
    r + g * next_v - v, the discount g * lambda. An exponentially weighted mean: `x` is alpha times the value, the
    discount 1 - alpha, `last` is `lengths_first` of the values, forward.

    Rows that do not take part are dropped first, by `mask_sequences` of rewards and values together. Returns of k
    steps begin as `y = r + g * v`; then k - 1 times:

        after = shift(y, lengths, by=-1, fill=nan)
        y = r + g * where(isnan(after), v, after)

    >>> discounted_sum_within(np.array([1.0, 1.0, 4.0]), np.array([0.5, 0.5, 0.0]), np.array([2, 1]))
    array([1.5, 1. , 4. ])
    """
    data = x.astype(kernels.mean_dtype(x.dtype), copy=False)
    by = discount if discount.dtype == np.float32 else discount.astype(np.float64, copy=False)
    start = None if last is None else last.astype(np.float64)
    return kernels.discounted_sums(data, by, lengths, start, reverse, gamma)
