"""Reductions of rows that are assigned to segments by ids."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from seqflow.errors import OpError
from seqflow.torch.device.checks import check, check_indices, first_wrong, number_of
from seqflow.torch.device.dtypes import mean_dtype, scalar, sum_dtype
from seqflow.torch.device.lengths import counts_of
from seqflow.torch.device.reductions import (
    logsumexp_by,
    means_of,
    prod_by,
    shared_extreme_by,
    sums_of,
    weighted,
)
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import column, positions, starts_of

LAST = "the last id"
LARGEST = "the largest id, without num_segments"


def sorted_counts(ids: Tensor) -> Tensor:
    """Return the count of each id; raise OpError unless they are 0, 1, 2 … in order. The host waits for the last."""
    steps = torch.diff(ids, prepend=ids.new_full((1,), -1))
    sound = (steps == 1) | (steps == 0)
    sound = torch.cat([steps[:1] == 1, sound[1:]])
    check(sound, lambda: _gap(ids, sound))
    return counts_of(ids, number_of(ids[-1]) + 1 if len(ids) else 0)


def _gap(ids: Tensor, sound: Tensor) -> OpError:
    i = next(iter(first_wrong(sound)), None)
    if i is None:
        return OpError("ids have gaps or decrease, expected sorted ids without gaps")
    expected = f"{int(ids[i - 1])} as before or one more" if i else "0"
    return OpError(f"ids[{i}] = {int(ids[i])}, expected {expected}: sorted ids without gaps")


@implements("sorted_segment_sum", syncs=LAST)
def _sorted_sum(data: Tensor, ids: Tensor) -> Tensor:
    return sums_of(data, ids, sorted_counts(ids))


@implements("sorted_segment_mean", syncs=LAST)
def _sorted_mean(data: Tensor, ids: Tensor) -> Tensor:
    return means_of(data, ids, sorted_counts(ids))


@implements("sorted_segment_weighted_sum", syncs=LAST)
def _sorted_weighted_sum(data: Tensor, weights: Tensor, ids: Tensor) -> Tensor:
    return _weighted_sums(data, weights, ids, sorted_counts(ids))


@implements("sorted_segment_max", syncs=LAST)
def _sorted_max(data: Tensor, ids: Tensor) -> Tensor:
    return shared_extreme_by(data, ids, sorted_counts(ids), "amax", 0)


@implements("sorted_segment_min", syncs=LAST)
def _sorted_min(data: Tensor, ids: Tensor) -> Tensor:
    return shared_extreme_by(data, ids, sorted_counts(ids), "amin", 0)


@implements("sorted_segment_prod", syncs=LAST)
def _sorted_prod(data: Tensor, ids: Tensor) -> Tensor:
    counts = sorted_counts(ids)
    return prod_by(data, positions(counts, ids), starts_of(counts), counts, sum_dtype(data))


@implements("sorted_segment_logsumexp", syncs=LAST)
def _sorted_logsumexp(data: Tensor, ids: Tensor) -> Tensor:
    return logsumexp_by(data, ids, sorted_counts(ids), mean_dtype(data), 0)


@implements("sorted_segment_logmeanexp", syncs=LAST)
def _sorted_logmeanexp(data: Tensor, ids: Tensor) -> Tensor:
    counts = sorted_counts(ids)
    logs = logsumexp_by(data, ids, counts, mean_dtype(data), 0)
    return logs - column(torch.log(counts.double()).to(logs.dtype), logs.ndim)


def counted(ids: Tensor, num_segments: int | None) -> Tensor:
    """Return the count of each id, in any order; without `num_segments` the host waits for the largest."""
    if num_segments is None:
        num_segments = max(number_of(ids.max()) + 1, 0) if len(ids) else 0
    check_indices(ids, num_segments, argument="ids")
    return counts_of(ids, num_segments)


def _unsorted(reduce: Callable[..., Tensor], dtype_of: Callable[..., torch.dtype]) -> Callable[..., Tensor]:
    """Return a reduction by ids in any order; `dtype_of` returns the dtype of its results."""

    def reduced(*given: Tensor, num_segments: int | None, empty: Any) -> Tensor:
        *rows, ids = given
        # first, as on arrays: its error comes before that of an id
        value = scalar("empty", empty, dtype_of(*rows))
        return reduce(*rows, ids, counted(ids, num_segments), value)

    return reduced


def _weighted_sums(data: Tensor, weights: Tensor, *segments: Any) -> Tensor:
    return sums_of(weighted(data, weights), *segments)


def _extreme(kind: str) -> Callable[..., Tensor]:
    return lambda data, ids, counts, empty: shared_extreme_by(data, ids, counts, kind, empty)


def _own_dtype(data: Tensor) -> torch.dtype:
    return data.dtype


implements("unsorted_segment_sum", syncs=LARGEST)(_unsorted(sums_of, sum_dtype))
implements("unsorted_segment_mean", syncs=LARGEST)(_unsorted(means_of, mean_dtype))
implements("unsorted_segment_weighted_sum", syncs=LARGEST)(_unsorted(_weighted_sums, sum_dtype))
implements("unsorted_segment_max", syncs=LARGEST)(_unsorted(_extreme("amax"), _own_dtype))
implements("unsorted_segment_min", syncs=LARGEST)(_unsorted(_extreme("amin"), _own_dtype))
