"""The rows of each sequence in the order of their values."""

import torch
from torch import Tensor

from seqflow.torch.device.reductions import comparable
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import arange, column, positions, segment_ids, starts_of, take


def argsort_rows(data: Tensor, ids: Tensor, descending: bool) -> Tensor:
    """The rows that sort each sequence, column by column; equal values keep their order, NaN is the largest."""
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
    """The ranks of sorted elements where equal ones have equal ranks."""
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
