"""Reductions of the segments that lengths describe."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from seqflow.torch.device.dtypes import mean_dtype, scalar
from seqflow.torch.device.reductions import FIRST_EXTREMES, REDUCTIONS, filled, first_extreme, mean_by, sum_by
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import arange, column, fill_like, segment_ids, starts_of, take
from seqflow.torch.device.within import argsort_rows


def _of_lengths(reduce: Callable[..., Tensor], dtype_of: Callable[..., torch.dtype]) -> Callable[..., Tensor]:
    """Return a reduction of segments that lengths describe; `dtype_of` returns the dtype of its results."""

    def reduced(*given: Tensor, empty: Any) -> Tensor:
        *rows, lengths = given
        value = scalar("empty", empty, dtype_of(*rows))
        return reduce(*rows, segment_ids(lengths, len(rows[0])), lengths, value)

    return reduced


for _kind, _reduction in (REDUCTIONS | FIRST_EXTREMES).items():
    implements(f"lengths_{_kind}")(_of_lengths(*_reduction))


@implements("lengths_sqrt_sum")
def _lengths_sqrt_sum(data: Tensor, lengths: Tensor, *, empty: Any) -> Tensor:
    dtype = mean_dtype(data)
    means = mean_by(data, segment_ids(lengths, len(data)), lengths, dtype)
    roots = torch.sqrt(lengths.clamp_min(1).double()).to(dtype)
    return filled(means * column(roots, means.ndim), lengths, scalar("empty", empty, dtype))


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


def _positions(kind: str, data: Tensor, lengths: Tensor) -> Tensor:
    rows = first_extreme(data, segment_ids(lengths, len(data)), len(lengths), kind)
    return torch.where(rows < len(data), rows - column(starts_of(lengths), rows.ndim), -1)


implements("lengths_argmax")(partial(_positions, "amax"))
implements("lengths_argmin")(partial(_positions, "amin"))


@implements("lengths_topk")
def _lengths_topk(data: Tensor, lengths: Tensor, *, k: int) -> tuple[Tensor, Tensor]:
    order = argsort_rows(data, segment_ids(lengths, len(data)), descending=True)
    starts = starts_of(lengths)[:, None]
    inside = arange(lengths, k) < lengths[:, None]
    rows = take(order, starts + arange(lengths, k), inside, -1)
    return take(data, rows, inside), torch.where(inside, rows - starts, -1)
