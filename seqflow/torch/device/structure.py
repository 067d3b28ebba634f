"""Structure described by lengths: starts of sequences, the sequence of each row, and taking rows by place."""

from typing import Any

import torch
from torch import Tensor

from seqflow.torch.device.checks import number_of


def starts_of(lengths: Tensor) -> Tensor:
    """Return the first row of each sequence."""
    return lengths.cumsum(0) - lengths


def offsets_of(lengths: Tensor) -> Tensor:
    """Return the start of each sequence, and the total: int64 [B+1]."""
    return torch.nn.functional.pad(lengths.cumsum(0), (1, 0))


def total_of(lengths: Tensor) -> int:
    """Return the sum of the lengths; the host waits for it."""
    return number_of(lengths.sum())


def longest_of(lengths: Tensor) -> int:
    """Return the largest length, 0 if there are none; the host waits for it."""
    return number_of(lengths.max()) if len(lengths) else 0


def arange(like: Tensor, count: int) -> Tensor:
    """Return 0, 1, 2 … on the device of another tensor."""
    return torch.arange(count, device=like.device)


def segment_ids(lengths: Tensor, total: int) -> Tensor:
    """Return the sequence of each of `total` rows."""
    return torch.repeat_interleave(arange(lengths, len(lengths)), lengths, output_size=total)


def positions(lengths: Tensor, ids: Tensor) -> Tensor:
    """Return the position of each row inside its sequence."""
    return arange(ids, len(ids)) - starts_of(lengths).index_select(0, ids)


def column(values: Tensor, rank: int) -> Tensor:
    """Return one value for each row with axes of size 1 at the end, to broadcast with tensors of this rank."""
    return values.reshape(*values.shape, *[1] * (rank - values.ndim))


def take(data: Tensor, rows: Tensor, inside: Tensor | None = None, fill: Any = 0) -> Tensor:
    """Return the rows of data at `rows`, of any rank, and `fill` unless `inside`: rows[*i] -> [*i, *d]."""
    if data.dtype is torch.float16 and data.requires_grad:  # its gradient is summed in float32, and cast once
        return take(data.float(), rows, inside, fill).to(data.dtype)
    data, inner = with_rows(data), data.shape[1:]
    if inside is not None:
        rows = rows.clamp(0, len(data) - 1)
    taken = data.index_select(0, rows.reshape(-1)).reshape(*rows.shape, *inner)
    return taken if inside is None else torch.where(column(inside, taken.ndim), taken, fill_like(taken, fill))


def with_rows(data: Tensor) -> Tensor:
    """Return the data, or a row of zeros if it has no rows, so that rows can be taken and keep the graph."""
    return data if len(data) else torch.cat([data, data.new_zeros(1, *data.shape[1:])])


def fill_like(data: Tensor, fill: Any) -> Tensor:
    """Return a scalar tensor of the dtype of data."""
    return torch.full((), fill, dtype=data.dtype, device=data.device)


def slices(data: Tensor, starts: Tensor, sizes: Tensor) -> Tensor:
    """Return the slices `data[start : start + size]`, one after another; the host waits for their total size."""
    ids = segment_ids(sizes, total_of(sizes))
    return take(data, starts.index_select(0, ids) + positions(sizes, ids))
