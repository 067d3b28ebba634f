"""Sequences with a token more, and windows around their rows."""

from typing import Any

from torch import Tensor

from seqflow.torch.device.dtypes import scalar
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import arange, positions, segment_ids, starts_of, take


@implements("append_token")
def _append_token(data: Tensor, lengths: Tensor, *, token: Any) -> tuple[Tensor, Tensor]:
    return _with_token(data, lengths, token, at_start=False)


@implements("prepend_token")
def _prepend_token(data: Tensor, lengths: Tensor, *, token: Any) -> tuple[Tensor, Tensor]:
    return _with_token(data, lengths, token, at_start=True)


def _with_token(data: Tensor, lengths: Tensor, token: Any, at_start: bool) -> tuple[Tensor, Tensor]:
    value, longer = scalar("token", token, data.dtype), lengths + 1
    ids = segment_ids(longer, len(data) + len(lengths))
    places = positions(longer, ids) - int(at_start)
    inside = (places >= 0) & (places < lengths.index_select(0, ids))
    return take(data, starts_of(lengths).index_select(0, ids) + places, inside, value), longer


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
