"""Rows of a table at indices, reduced by the segment of each index."""

from typing import Any

import torch
from torch import Tensor

from seqflow.torch.device.checks import check_indices
from seqflow.torch.device.dtypes import mean_dtype, scalar, sum_dtype
from seqflow.torch.device.lengths import counts_of
from seqflow.torch.device.reductions import extreme_by, filled, mean_by, sum_by
from seqflow.torch.device.registration import implements
from seqflow.torch.device.segment_ids import LARGEST, LAST, counted, sorted_counts
from seqflow.torch.device.structure import column, positions, segment_ids, take


def _looked_up(
    table: Tensor, indices: Tensor, lengths: Tensor, ignore_index: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The rows, the segment of each, and how many rows each segment has.

    There is one segment more than lengths, the last one: of the rows that count for nothing.
    """
    check_indices(indices, len(table), ignore_index=ignore_index)
    ids = segment_ids(lengths, len(indices))
    if ignore_index is None:
        return take(table, indices), ids, torch.nn.functional.pad(lengths, (0, 1))
    used = indices != ignore_index
    ids = torch.where(used, ids, len(lengths))
    return take(table, indices, used), ids, counts_of(ids, len(lengths) + 1)


@implements("sparse_lengths_sum")
def _sum(table: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None, empty: Any) -> Tensor:
    dtype = sum_dtype(table)
    value = scalar("empty", empty, dtype)
    rows, ids, counts = _looked_up(table, indices, lengths, ignore_index)
    return filled(sum_by(rows, ids, len(counts), dtype), counts, value)[:-1]


@implements("sparse_lengths_mean")
def _mean(table: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None, empty: Any) -> Tensor:
    dtype = mean_dtype(table)
    value = scalar("empty", empty, dtype)
    rows, ids, counts = _looked_up(table, indices, lengths, ignore_index)
    return filled(mean_by(rows, ids, counts, dtype), counts, value)[:-1]


@implements("sparse_lengths_max")
def _max(table: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None, empty: Any) -> Tensor:
    value = scalar("empty", empty, table.dtype)
    rows, ids, counts = _looked_up(table, indices, lengths, ignore_index)
    return extreme_by(rows, ids, counts, "amax", value)[:-1]


def _weigh(
    table: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor, ignore_index: int | None, empty: Any
) -> Tensor:
    dtype = sum_dtype(table, weights)
    value = scalar("empty", empty, dtype)
    rows, ids, counts = _looked_up(table, indices, lengths, ignore_index)
    return filled(sum_by(_times(rows, weights, dtype), ids, len(counts), dtype), counts, value)[:-1]


@implements("sparse_lengths_weighted_sum")
def _weighted_sum(
    table: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None, empty: Any
) -> Tensor:
    return _weigh(table, weights, indices, lengths, ignore_index, empty)


@implements("sparse_lengths_positional_weighted_sum")
def _positional_weighted_sum(
    table: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None, empty: Any
) -> Tensor:
    places = positions(lengths, segment_ids(lengths, len(indices)))
    return _weigh(table, take(weights, places), indices, lengths, ignore_index, empty)


def _times(rows: Tensor, weights: Tensor, dtype: torch.dtype) -> Tensor:
    return rows.to(dtype) * column(weights.to(dtype), rows.ndim)


# By ids


def _rows_of(table: Tensor, indices: Tensor) -> Tensor:
    check_indices(indices, len(table))
    return take(table, indices)


@implements("sparse_sorted_segment_sum", syncs=LAST)
def _sorted_sum(table: Tensor, indices: Tensor, ids: Tensor) -> Tensor:
    counts = sorted_counts(ids)
    return sum_by(_rows_of(table, indices), ids, len(counts), sum_dtype(table))


@implements("sparse_sorted_segment_mean", syncs=LAST)
def _sorted_mean(table: Tensor, indices: Tensor, ids: Tensor) -> Tensor:
    counts = sorted_counts(ids)
    return mean_by(_rows_of(table, indices), ids, counts, mean_dtype(table))


@implements("sparse_sorted_segment_weighted_sum", syncs=LAST)
def _sorted_weighted_sum(table: Tensor, weights: Tensor, indices: Tensor, ids: Tensor) -> Tensor:
    dtype, counts = sum_dtype(table, weights), sorted_counts(ids)
    return sum_by(_times(_rows_of(table, indices), weights, dtype), ids, len(counts), dtype)


@implements("sparse_unsorted_segment_sum", syncs=LARGEST)
def _unsorted_sum(
    table: Tensor, indices: Tensor, ids: Tensor, *, num_segments: int | None, empty: Any
) -> Tensor:
    dtype = sum_dtype(table)
    value, rows = scalar("empty", empty, dtype), _rows_of(table, indices)
    counts = counted(ids, num_segments)
    return filled(sum_by(rows, ids, len(counts), dtype), counts, value)


@implements("sparse_unsorted_segment_mean", syncs=LARGEST)
def _unsorted_mean(
    table: Tensor, indices: Tensor, ids: Tensor, *, num_segments: int | None, empty: Any
) -> Tensor:
    dtype = mean_dtype(table)
    value, rows = scalar("empty", empty, dtype), _rows_of(table, indices)
    counts = counted(ids, num_segments)
    return filled(mean_by(rows, ids, counts, dtype), counts, value)


@implements("sparse_unsorted_segment_weighted_sum", syncs=LARGEST)
def _unsorted_weighted_sum(
    table: Tensor, weights: Tensor, indices: Tensor, ids: Tensor, *, num_segments: int | None, empty: Any
) -> Tensor:
    dtype = sum_dtype(table, weights)
    value, rows = scalar("empty", empty, dtype), _times(_rows_of(table, indices), weights, dtype)
    counts = counted(ids, num_segments)
    return filled(sum_by(rows, ids, len(counts), dtype), counts, value)
