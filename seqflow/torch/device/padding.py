"""Sequences laid out as rows of one width, and back."""

from torch import Tensor

from seqflow.errors import LodError
from seqflow.kernels.checks import check_room
from seqflow.torch.device.checks import check
from seqflow.torch.device.dtypes import scalar
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import (
    arange,
    longest_of,
    positions,
    segment_ids,
    starts_of,
    take,
    total_of,
)


@implements("pad", syncs="the longest length, without max_length")
def _pad(
    data: Tensor,
    lengths: Tensor,
    *,
    max_length: int | None,
    fill: float,
    side: str,
    truncate: bool,
    multiple_of: int,
) -> tuple[Tensor, Tensor]:
    width = -(-longest_of(lengths) // multiple_of) * multiple_of if max_length is None else max_length
    fill = scalar("fill", fill, data.dtype)
    if not truncate:
        _check_room(lengths, width)
    return _laid_out(data, lengths, width, fill, side)


@implements("pad_like")
def _pad_like(data: Tensor, like: Tensor, lengths: Tensor, *, side: str) -> Tensor:
    padded, _ = _laid_out(data, lengths, like.shape[1], 0, side)
    return padded


def _laid_out(data: Tensor, lengths: Tensor, width: int, fill: float, side: str) -> tuple[Tensor, Tensor]:
    """Return each sequence in a row, and the mask; of a longer sequence its head, or its tail with side="left"."""
    taken = lengths.clamp_max(width)[:, None]
    places = arange(data, width)[None]
    if side == "left":
        inside = places >= width - taken
        rows = (starts_of(lengths) + lengths)[:, None] - width + places
    else:
        inside = places < taken
        rows = starts_of(lengths)[:, None] + places
    return take(data, rows, inside, fill), inside


def _check_room(lengths: Tensor, width: int) -> None:
    if lengths.is_cpu:
        check_room(lengths.numpy(), width)
    else:
        check(lengths <= width, lambda: LodError(f"lengths has one above {width}"))


@implements("unpad", syncs="the sum of the lengths")
def _unpad(padded: Tensor, lengths: Tensor, *, side: str) -> Tensor:
    ids = segment_ids(lengths, total_of(lengths))
    places = positions(lengths, ids)
    width = padded.shape[1]
    if side == "left":
        places = places + width - lengths.index_select(0, ids)
    return take(padded.flatten(0, 1), ids * width + places)


@implements("unpack_by_time", syncs="the sum of the lengths")
def _unpack_by_time(packed: Tensor, lengths: Tensor) -> Tensor:
    ids = segment_ids(lengths, total_of(lengths))
    return take(packed.flatten(0, 1), positions(lengths, ids) * packed.shape[1] + ids)


@implements("pack_by_time", syncs="the longest length, without max_length")
def _pack_by_time(data: Tensor, lengths: Tensor, *, max_length: int | None, fill: float) -> Tensor:
    steps = longest_of(lengths) if max_length is None else max_length
    value = scalar("fill", fill, data.dtype)
    _check_room(lengths, steps)
    time = arange(lengths, steps)[:, None]
    return take(data, starts_of(lengths) + time, time < lengths, value)
