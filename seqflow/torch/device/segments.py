"""Reductions of the segments that lengths describe."""

from typing import Any

import torch
from torch import Tensor

from seqflow.torch.device.dtypes import mean_dtype, scalar, sum_dtype
from seqflow.torch.device.reductions import (
    extreme_by,
    filled,
    first_extreme,
    logsumexp_by,
    mean_by,
    means_of,
    prod_by,
    sum_by,
    sums_of,
    weighted,
)
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import arange, column, fill_like, positions, segment_ids, starts_of, take
from seqflow.torch.device.within import argsort_rows


@implements("lengths_sum")
def _lengths_sum(data: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    return sums_of(data, segment_ids(lengths, len(data)), lengths, empty)


@implements("lengths_mean")
def _lengths_mean(data: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    return means_of(data, segment_ids(lengths, len(data)), lengths, empty)


@implements("lengths_sqrt_sum")
def _lengths_sqrt_sum(data: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    dtype = mean_dtype(data)
    means = mean_by(data, segment_ids(lengths, len(data)), lengths, dtype)
    roots = torch.sqrt(lengths.clamp_min(1).double()).to(dtype)
    return filled(means * column(roots, means.ndim), lengths, scalar("empty", empty, dtype))


@implements("lengths_max")
def _lengths_max(data: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    value = scalar("empty", empty, data.dtype)
    return extreme_by(data, segment_ids(lengths, len(data)), lengths, "amax", value)


@implements("lengths_min")
def _lengths_min(data: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    value = scalar("empty", empty, data.dtype)
    return extreme_by(data, segment_ids(lengths, len(data)), lengths, "amin", value)


@implements("lengths_prod")
def _lengths_prod(data: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    dtype = sum_dtype(data)
    ids = segment_ids(lengths, len(data))
    products = prod_by(data, positions(lengths, ids), starts_of(lengths), lengths, dtype)
    return filled(products, lengths, scalar("empty", empty, dtype))


@implements("lengths_weighted_sum")
def _lengths_weighted_sum(data: Tensor, weights: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    return sums_of(weighted(data, weights), segment_ids(lengths, len(data)), lengths, empty)


@implements("lengths_var")
def _lengths_var(data: Tensor, lengths: Tensor, *, ddof: int, empty: Any) -> Tensor:
    dtype = mean_dtype(data)
    return _variances(data, lengths, ddof, scalar("empty", empty, dtype), dtype)


@implements("lengths_std")
def _lengths_std(data: Tensor, lengths: Tensor, *, ddof: int, empty: Any) -> Tensor:
    dtype = mean_dtype(data)
    value = scalar("empty", empty, dtype)
    variances = _variances(data, lengths, ddof, 0, dtype)
    is_zero = variances == 0  # the gradient of a root is infinite at 0
    deviations = torch.sqrt(torch.where(is_zero, fill_like(variances, 1), variances))
    deviations = torch.where(is_zero, fill_like(variances, 0), deviations)
    return torch.where(column(lengths, data.ndim) <= ddof, fill_like(deviations, value), deviations)


def _variances(data: Tensor, lengths: Tensor, ddof: int, empty: Any, dtype: torch.dtype) -> Tensor:
    ids = segment_ids(lengths, len(data))
    means = mean_by(data, ids, lengths, dtype)
    squares = sum_by((data.to(dtype) - means.index_select(0, ids)) ** 2, ids, len(lengths), dtype)
    ddof = min(ddof, len(data))
    freedom = (lengths - ddof).clamp_min(1).to(dtype)
    enough = column(lengths > ddof, data.ndim)
    return torch.where(enough, squares / column(freedom, data.ndim), fill_like(squares, empty))


@implements("lengths_logsumexp")
def _lengths_logsumexp(data: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    dtype = mean_dtype(data)
    value = scalar("empty", empty, dtype)
    return logsumexp_by(data, segment_ids(lengths, len(data)), lengths, dtype, value)


@implements("lengths_any")
def _lengths_any(data: Tensor, lengths: Tensor, *, empty: bool) -> Tensor:
    return filled(_nonzero(data, lengths) > 0, lengths, empty)


@implements("lengths_all")
def _lengths_all(data: Tensor, lengths: Tensor, *, empty: bool) -> Tensor:
    return filled(_nonzero(data, lengths) == column(lengths, data.ndim), lengths, empty)


def _nonzero(data: Tensor, lengths: Tensor) -> Tensor:
    """Return the number of rows of each segment that are not 0."""
    return sum_by(data != 0, segment_ids(lengths, len(data)), len(lengths), torch.int64)


@implements("lengths_first")
def _lengths_first(data: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    return take(data, starts_of(lengths), lengths > 0, scalar("empty", empty, data.dtype))


@implements("lengths_last")
def _lengths_last(data: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    return take(data, lengths.cumsum(0) - 1, lengths > 0, scalar("empty", empty, data.dtype))


@implements("lengths_argmax")
def _lengths_argmax(data: Tensor, lengths: Tensor) -> Tensor:
    return _positions(data, lengths, "amax")


@implements("lengths_argmin")
def _lengths_argmin(data: Tensor, lengths: Tensor) -> Tensor:
    return _positions(data, lengths, "amin")


def _positions(data: Tensor, lengths: Tensor, kind: str) -> Tensor:
    rows = first_extreme(data, segment_ids(lengths, len(data)), len(lengths), kind)
    return torch.where(rows < len(data), rows - column(starts_of(lengths), rows.ndim), -1)


@implements("lengths_topk")
def _lengths_topk(data: Tensor, lengths: Tensor, *, k: int) -> tuple[Tensor, Tensor]:
    order = argsort_rows(data, segment_ids(lengths, len(data)), descending=True)
    starts = starts_of(lengths)[:, None]
    inside = arange(lengths, k) < lengths[:, None]
    rows = take(order, starts + arange(lengths, k), inside, -1)
    return take(data, rows, inside), torch.where(inside, rows - starts, -1)
