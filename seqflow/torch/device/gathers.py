"""Gather, drop, extend and reorder rows and whole sequences; windows around rows."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from seqflow.torch.device.checks import check_indices
from seqflow.torch.device.dtypes import scalar
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import (
    arange,
    column,
    fill_like,
    positions,
    segment_ids,
    slices,
    starts_of,
    take,
    total_of,
)


@implements("gather")
def _gather(data: Tensor, indices: Tensor, *, wrap: bool, ignore_index: int | None) -> Tensor:
    check_indices(indices, len(data), wrap=wrap, ignore_index=ignore_index)
    used = None if ignore_index is None else indices != ignore_index
    return take(data, torch.where(indices < 0, indices + len(data), indices) if wrap else indices, used)


@implements("expand", syncs="the sum of the lengths")
def _expand(x: Tensor, lengths: Tensor) -> Tensor:
    return take(x, segment_ids(lengths, total_of(lengths)))


@implements("gather_sequences", syncs="the rows of the result")
def _gather_sequences(data: Tensor, indices: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    check_indices(indices, len(lengths))
    sizes = take(lengths, indices)
    return slices(data, take(starts_of(lengths), indices), sizes), sizes


@implements("boolean_mask", syncs="the rows of the result")
def _boolean_mask(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    rows = mask.nonzero()[:, 0]
    return take(data, rows), rows


@implements("boolean_mask_lengths")
def _boolean_mask_lengths(mask: Tensor, lengths: Tensor) -> Tensor:
    return torch.zeros_like(lengths).index_add(0, segment_ids(lengths, len(mask)), mask.long())


@implements("mask_sequences", syncs="the rows of the result")
def _mask_sequences(data: Tensor, mask: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    ids = segment_ids(lengths, len(data))
    kept = torch.zeros_like(lengths).index_add(0, ids, mask.long())
    return take(data, mask.nonzero()[:, 0]), kept


@implements("filter_sequences", syncs="the rows of the result")
def _filter_sequences(data: Tensor, keep: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    sizes = lengths[keep]
    return slices(data, starts_of(lengths)[keep], sizes), sizes


@implements("truncate", syncs="the rows of the result")
def _truncate(data: Tensor, lengths: Tensor, *, max_length: int, keep: str) -> tuple[Tensor, Tensor]:
    sizes = lengths.clamp_max(max_length)
    starts = starts_of(lengths)
    return slices(data, starts if keep == "head" else starts + lengths - sizes, sizes), sizes


@implements("reverse_sequences")
def _reverse_sequences(data: Tensor, lengths: Tensor) -> Tensor:
    ids = segment_ids(lengths, len(data))
    return take(data, (2 * starts_of(lengths) + lengths - 1).index_select(0, ids) - arange(data, len(data)))


@implements("shift")
def _shift(data: Tensor, lengths: Tensor, *, by: int, fill: float) -> Tensor:
    ids = segment_ids(lengths, len(data))
    sources = positions(lengths, ids) - by
    inside = (sources >= 0) & (sources < lengths.index_select(0, ids))
    return take(data, arange(data, len(data)) - by, inside, scalar("fill", fill, data.dtype))


@implements("reverse_packed")
def _reverse_packed(data: Tensor, lengths: Tensor) -> Tensor:
    steps = arange(data, data.shape[0])[:, None]
    sources = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return data[sources, arange(data, data.shape[1])]


@implements("zero_after_length")
def _zero_after_length(x: Tensor, lengths: Tensor) -> Tensor:
    inside = arange(x, x.shape[0])[:, None] < lengths
    return torch.where(column(inside, x.ndim), x, fill_like(x, 0))


def _with_token(data: Tensor, lengths: Tensor, *, token: Any, at_start: bool) -> tuple[Tensor, Tensor]:
    value, longer = scalar("token", token, data.dtype), lengths + 1
    ids = segment_ids(longer, len(data) + len(lengths))
    places = positions(longer, ids) - int(at_start)
    inside = (places >= 0) & (places < lengths.index_select(0, ids))
    return take(data, starts_of(lengths).index_select(0, ids) + places, inside, value), longer


implements("append_token")(partial(_with_token, at_start=False))
implements("prepend_token")(partial(_with_token, at_start=True))


@implements("ngrams")
def _ngrams(data: Tensor, lengths: Tensor, *, n: int, fill: Any) -> Tensor:
    return _windows(data, lengths, 0, n - 1, scalar("fill", fill, data.dtype))


@implements("context_windows")
def _context_windows(data: Tensor, lengths: Tensor, *, before: int, after: int, fill: Any) -> Tensor:
    return _windows(data, lengths, before, after, scalar("fill", fill, data.dtype))


def _windows(data: Tensor, lengths: Tensor, before: int, after: int, value: Any) -> Tensor:
    ids = segment_ids(lengths, len(data))
    steps = arange(lengths, before + 1 + after) - before
    places = positions(lengths, ids)[:, None] + steps
    inside = (places >= 0) & (places < lengths.index_select(0, ids)[:, None])
    return take(data, arange(lengths, len(data))[:, None] + steps, inside, value)
