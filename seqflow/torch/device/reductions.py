"""Reductions of rows by the number of their segment: sums, extremes, products, in differentiable forms."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from seqflow.torch.device.dtypes import mean_dtype, sum_dtype
from seqflow.torch.device.structure import arange, column, fill_like, positions, starts_of, with_rows


def filled(results: Tensor, counts: Tensor, empty: Any) -> Tensor:
    """Return the results, with `empty` for segments without rows; None leaves them as they are."""
    if empty is None:
        return results
    return torch.where(column(counts, results.ndim) == 0, fill_like(results, empty), results)


def sum_by(data: Tensor, ids: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """Return the sums of the rows of each segment."""
    data = data.to(dtype)
    return data.new_zeros((count, *data.shape[1:])).index_add(0, ids, data)


def weighted(data: Tensor, weights: Tensor) -> Tensor:
    """Return each row times its weight, in the dtype of their sum."""
    dtype = sum_dtype(data, weights)
    return data.to(dtype) * column(weights.to(dtype), data.ndim)


def mean_by(data: Tensor, ids: Tensor, counts: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the means of the rows of each segment, 0 for segments without rows."""
    sums = sum_by(data, ids, len(counts), dtype)
    return sums / column(counts.clamp_min(1), sums.ndim).to(dtype)


def first_extreme(data: Tensor, ids: Tensor, count: int, kind: str) -> Tensor:
    """Return the row of the largest (`amax`) or smallest (`amin`) element of each segment, column by column.

    The first of equal elements is taken, and NaN wins. A segment without rows gives the number of all rows.
    """
    values = comparable(data)
    everywhere = column(ids, data.ndim).expand_as(data)
    nan = torch.isnan(values)
    has_nan = _reduce(nan.to(torch.uint8), everywhere, count, "amax").bool()
    extremes = _reduce(values.masked_fill(nan, 0), everywhere, count, kind)
    hits = torch.where(has_nan.gather(0, everywhere), nan, values == extremes.gather(0, everywhere))
    rows = column(arange(ids, len(ids)), data.ndim)
    rows = torch.where(hits, rows, len(ids))
    found = rows.new_full((count, *data.shape[1:]), len(ids))
    return found.scatter_reduce(0, everywhere, rows, "amin", include_self=False)


def comparable(data: Tensor) -> Tensor:
    """Return values in the same order, in a dtype that torch compares and sorts on all devices, without gradient."""
    narrow = {torch.bool: torch.uint8, torch.float16: torch.float32}
    return data.detach().to(narrow.get(data.dtype, data.dtype))


def _reduce(values: Tensor, everywhere: Tensor, count: int, kind: str) -> Tensor:
    zeros = values.new_zeros((count, *values.shape[1:]))
    return zeros.scatter_reduce(0, everywhere, values, kind, include_self=False)


def first_extreme_by(kind: str, data: Tensor, ids: Tensor, counts: Tensor, empty: Any) -> Tensor:
    """Return the extreme of each segment; its gradient goes to the first of equal elements."""
    return picked(data, first_extreme(data, ids, len(counts), kind), empty)


def picked(data: Tensor, rows: Tensor, empty: Any) -> Tensor:
    """Return the elements at these rows, column by column; `empty` for rows outside."""
    inside = rows < len(data)
    data = with_rows(data)
    return torch.where(inside, data.gather(0, rows.clamp_max(len(data) - 1)), fill_like(data, empty))


def shared_extreme_by(kind: str, data: Tensor, ids: Tensor, counts: Tensor, empty: Any) -> Tensor:
    """Return the extreme of each segment; equal elements share its gradient."""
    apply: Callable[..., Tensor] = _Extreme.apply
    return filled(apply(data, ids, len(counts), kind), counts, empty)


class _Extreme(torch.autograd.Function):
    """Extreme of each segment. The gradient of `scatter_reduce` also gives a share to the zeros it starts with."""

    generate_vmap_rule = True

    @staticmethod
    def forward(data: Tensor, ids: Tensor, count: int, kind: str) -> Tensor:
        narrow = data.to(torch.uint8) if data.dtype is torch.bool else data
        return _reduce(narrow, column(ids, data.ndim).expand_as(data), count, kind).to(data.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        data, ids, ctx.count, ctx.kind = inputs
        ctx.save_for_backward(data, ids, output)

    @staticmethod
    def backward(ctx: Any, arriving: Tensor) -> Any:
        data, ids, extremes = (one.detach() for one in ctx.saved_tensors)
        first = first_extreme(data, ids, ctx.count, ctx.kind).index_select(0, ids)
        is_first = column(arange(ids, len(ids)), data.ndim) == first  # the first NaN has the whole share
        hits = torch.where(torch.isnan(data), is_first, data == extremes.index_select(0, ids))
        dtype = torch.promote_types(data.dtype, torch.float32)
        shares = hits / sum_by(hits, ids, ctx.count, dtype).clamp_min(1).index_select(0, ids)
        return (arriving.index_select(0, ids) * shares).to(data.dtype), None, None, None


def scan(data: Tensor, places: Tensor, kind: str) -> Tensor:
    """Return sums or products of each row and all rows before it in its segment; `places` are positions in it."""
    # Each round covers twice as many rows as the one before. The alternative, one scan over all rows and the
    # difference or quotient at starts of segments, loses digits to other segments, and divides by 0. The order of
    # sums is the same on every device.
    neutral = 0 if kind == "sum" else 1
    step = 1
    while step < len(data):
        earlier = torch.cat([data.new_full((step, *data.shape[1:]), neutral), data[:-step]])
        inside = column(places >= step, data.ndim)
        earlier = torch.where(inside, earlier, fill_like(data, neutral))
        data = data + earlier if kind == "sum" else data * earlier
        step *= 2
    return data


# Reductions of rows by segment, with `empty` for segments without rows, or None if all have some


def sums_of(data: Tensor, ids: Tensor, counts: Tensor, empty: Any) -> Tensor:
    """Return the sums, in the dtype of a sum."""
    return filled(sum_by(data, ids, len(counts), sum_dtype(data)), counts, empty)


def means_of(data: Tensor, ids: Tensor, counts: Tensor, empty: Any) -> Tensor:
    """Return the means, in the dtype of a mean."""
    return filled(mean_by(data, ids, counts, mean_dtype(data)), counts, empty)


def weighted_sums_of(data: Tensor, weights: Tensor, ids: Tensor, counts: Tensor, empty: Any) -> Tensor:
    """Return the sums of the rows times their weights."""
    return sums_of(weighted(data, weights), ids, counts, empty)


def products_of(data: Tensor, ids: Tensor, counts: Tensor, empty: Any) -> Tensor:
    """Return the products of the rows, which follow one another."""
    products = with_rows(scan(data.to(sum_dtype(data)), positions(counts, ids), "prod"))
    ends = products.index_select(0, (starts_of(counts) + counts - 1).clamp(0, len(products) - 1))
    return filled(ends, counts, empty)


def logsumexp_of(data: Tensor, ids: Tensor, counts: Tensor, empty: Any) -> Tensor:
    """Return log(sum(exp(data))), without overflow."""
    data = data.to(mean_dtype(data))
    largest = first_extreme_by("amax", data.detach(), ids, counts, 0)
    largest = torch.where(torch.isfinite(largest), largest, fill_like(largest, 0))
    sums = sum_by(torch.exp(data - largest.index_select(0, ids)), ids, len(counts), data.dtype)
    is_zero = sums == 0  # for no rows, and for rows of only -inf: there the gradient is 0
    logs = torch.log(torch.where(is_zero, fill_like(sums, 1), sums)) + largest
    return filled(torch.where(is_zero, fill_like(logs, -torch.inf), logs), counts, empty)


def own_dtype(data: Tensor) -> torch.dtype:
    """Return the dtype of the data, which is that of their extremes."""
    return data.dtype


Reduction = tuple[Callable[..., Tensor], Callable[..., torch.dtype]]
"""Reduction of data, or of data and weights, and the dtype of its results."""
REDUCTIONS: dict[str, Reduction] = {
    "sum": (sums_of, sum_dtype),
    "mean": (means_of, mean_dtype),
    "weighted_sum": (weighted_sums_of, sum_dtype),
    "max": (partial(shared_extreme_by, "amax"), own_dtype),
    "min": (partial(shared_extreme_by, "amin"), own_dtype),
    "prod": (products_of, sum_dtype),
    "logsumexp": (logsumexp_of, mean_dtype),
}
FIRST_EXTREMES: dict[str, Reduction] = {
    "max": (partial(first_extreme_by, "amax"), own_dtype),
    "min": (partial(first_extreme_by, "amin"), own_dtype),
}
"""Extremes in which only the first of equal elements has a gradient."""
