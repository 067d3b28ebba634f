"""Functions of a whole segment that keep its rows: softmax, norms, running sums, orders and ranks."""

import torch
from torch import Tensor

from seqflow.torch.device.dtypes import mean_dtype, sum_dtype
from seqflow.torch.device.reductions import comparable, first_extreme_by, scan, sum_by
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import arange, column, fill_like, positions, segment_ids, starts_of, take


def argsort_rows(data: Tensor, ids: Tensor, descending: bool) -> Tensor:
    """Return the rows that sort each sequence by column; equal values keep their order, NaN is the largest."""
    # two stable sorts, by value and then by sequence: torch has no sort by two keys
    order = torch.argsort(comparable(data), dim=0, stable=True, descending=descending)
    sequences = column(ids, data.ndim).expand_as(data).gather(0, order)
    return order.gather(0, torch.argsort(sequences, dim=0, stable=True))


@implements("sort_within")
def _sort_within(data: Tensor, lengths: Tensor, *, descending: bool) -> Tensor:
    return data.gather(0, argsort_rows(data, segment_ids(lengths, len(data)), descending))


@implements("argsort_within")
def _argsort_within(data: Tensor, lengths: Tensor, *, descending: bool) -> Tensor:
    ids = segment_ids(lengths, len(data))
    first = starts_of(lengths).index_select(0, ids)
    return argsort_rows(data, ids, descending) - column(first, data.ndim)


@implements("rank_within")
def _rank_within(data: Tensor, lengths: Tensor, *, ties: str, descending: bool) -> Tensor:
    ids = segment_ids(lengths, len(data))
    order = argsort_rows(data, ids, descending)
    starts = column(starts_of(lengths).index_select(0, ids), data.ndim).expand_as(data)
    places = column(arange(ids, len(ids)), data.ndim).expand_as(data)
    ranks = (
        places - starts if ties == "first" else _tied(comparable(data).gather(0, order), starts, places, ties)
    )
    return torch.empty_like(ranks).scatter(0, order, ranks)


def _tied(ordered: Tensor, starts: Tensor, places: Tensor, ties: str) -> Tensor:
    """Return the ranks of sorted elements, with equal ranks for equal elements."""
    if not len(ordered):
        return torch.zeros_like(places)
    before, after = ordered[:-1], ordered[1:]
    differs = (before != after) & ~((before != before) & (after != after))
    opens = torch.cat([torch.ones_like(differs[:1]) if len(differs) else ordered[:1] == ordered[:1], differs])
    opens = opens | (places == starts)
    if ties == "dense":
        count = opens.long().cumsum(0)
        return count - count.gather(0, starts)
    if ties == "min":
        lowest: Tensor = torch.where(opens, places, 0).cummax(0).values
        return lowest - starts
    closes = torch.cat([opens[1:], torch.ones_like(opens[:1])])
    highest: Tensor = torch.where(closes, places, len(ordered)).flip(0).cummin(0).values.flip(0)
    return highest - starts


@implements("topk_within", syncs="the sum of the new lengths")
def _topk_within(data: Tensor, scores: Tensor, lengths: Tensor, *, k: int) -> tuple[Tensor, ...]:
    kept = lengths.clamp_max(k)
    order = argsort_rows(scores, segment_ids(lengths, len(data)), descending=True)
    ids = segment_ids(kept, int(kept.sum()))
    starts = starts_of(lengths).index_select(0, ids)
    rows = take(order, starts + positions(kept, ids))
    return take(data, rows), kept, rows - starts


@implements("softmax_within")
def _softmax_within(data: Tensor, lengths: Tensor) -> Tensor:
    shifted, ids = _shifted(data, lengths)
    powers = torch.exp(shifted)
    return powers / sum_by(powers, ids, len(lengths), powers.dtype).index_select(0, ids)


@implements("log_softmax_within")
def _log_softmax_within(data: Tensor, lengths: Tensor) -> Tensor:
    shifted, ids = _shifted(data, lengths)
    sums = sum_by(torch.exp(shifted), ids, len(lengths), shifted.dtype)
    return shifted - torch.log(sums.index_select(0, ids))


def _shifted(data: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return each row minus the largest row of its segment, and the segment of each row."""
    data, ids = data.to(mean_dtype(data)), segment_ids(lengths, len(data))
    return data - first_extreme_by("amax", data.detach(), ids, lengths, 0).index_select(0, ids), ids


@implements("normalize_within")
def _normalize_within(data: Tensor, lengths: Tensor, *, norm: str) -> Tensor:
    dtype = mean_dtype(data)
    wide, ids = data.double(), segment_ids(lengths, len(data))
    sums = sum_by(wide.abs() if norm == "l1" else wide.square(), ids, len(lengths), wide.dtype)
    sums = torch.where(sums == 0, fill_like(sums, 1), sums)  # 1 before the root, which has no derivative at 0
    norms = sums if norm == "l1" else sums.sqrt()
    return (wide / norms.index_select(0, ids)).to(dtype)


@implements("cumsum_within")
def _cumsum_within(data: Tensor, lengths: Tensor, *, reverse: bool, exclusive: bool) -> Tensor:
    places = positions(lengths, segment_ids(lengths, len(data)))
    if reverse:
        left = lengths.index_select(0, segment_ids(lengths, len(data))) - 1 - places
        return _sums_before(data.flip(0), left.flip(0), exclusive).flip(0)
    return _sums_before(data, places, exclusive)


def _sums_before(data: Tensor, places: Tensor, exclusive: bool) -> Tensor:
    dtype = sum_dtype(data)
    wide = data.double() if data.is_floating_point() else data.to(dtype)
    if exclusive:
        earlier = torch.cat([torch.zeros_like(wide[:1]), wide[:-1]])
        wide = torch.where(column(places > 0, wide.ndim), earlier, fill_like(wide, 0))
    return scan(wide, places, "sum").to(dtype)
