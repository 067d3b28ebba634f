"""Descriptions of structure: lengths as offsets, ids, ranges, positions, and back."""

import torch
from torch import Tensor

from seqflow.errors import LodError
from seqflow.kernels.error import descending, negative, outside
from seqflow.torch.device.checks import check, first_wrong, number_of
from seqflow.torch.device.dtypes import sum_dtype
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import (
    arange,
    longest_of,
    offsets_of,
    positions,
    segment_ids,
    starts_of,
    total_of,
)

MAX_INT32 = 2**31 - 1
TOTAL = "the sum of the lengths"
"""Value that the host waits for if a result has as many rows."""


implements("lengths_to_offsets")(offsets_of)


@implements("offsets_to_lengths")
def _offsets_to_lengths(offsets: Tensor) -> Tensor:
    check(offsets[:1] >= 0, lambda: LodError(f"offsets[0] is {_shown(offsets, 0)}, expected 0 or more"))
    lengths = offsets[1:] - offsets[:-1]
    check(lengths >= 0, lambda: _falls(offsets, lengths))
    return lengths


def _falls(offsets: Tensor, lengths: Tensor) -> LodError:
    i = next(iter(first_wrong(lengths >= 0)), 0)
    return LodError(
        f"offsets[{i + 1}] is {_shown(offsets, i + 1)} but offsets[{i}] is {_shown(offsets, i)}, "
        "expected no decrease"
    )


def _shown(values: Tensor, place: int) -> object:
    """Return the value for a message on the CPU, else a question mark, so that the host does not wait."""
    return int(values[place]) if values.is_cpu else "?"


@implements("lengths_to_cu_seqlens")
def _lengths_to_cu_seqlens(lengths: Tensor) -> Tensor:
    offsets = offsets_of(lengths)
    check(offsets[-1:] <= MAX_INT32, lambda: _too_many(offsets))
    return offsets.int()


def _too_many(offsets: Tensor) -> LodError:
    i = max(next(iter(first_wrong(offsets <= MAX_INT32)), 1) - 1, 0)
    return LodError(f"sum(lengths) is {_shown(offsets, i + 1)} at lengths[{i}], more than int32 can hold")


@implements("lengths_to_segment_ids", syncs=TOTAL)
def _lengths_to_segment_ids(lengths: Tensor) -> Tensor:
    return segment_ids(lengths, total_of(lengths))


def counts_of(ids: Tensor, count: int) -> Tensor:
    """Return the count of each id below `count`."""
    return ids.new_zeros(count).index_add(0, ids, torch.ones_like(ids))


NUM_SEGMENTS = "the last id, without num_segments"


@implements("segment_ids_to_lengths", syncs=NUM_SEGMENTS)
def _segment_ids_to_lengths(ids: Tensor, *, num_segments: int | None) -> Tensor:
    sound = ids >= 0
    sound = torch.cat([sound[:1], sound[1:] & (ids[1:] >= ids[:-1])])
    if num_segments is not None:
        sound &= ids < num_segments
    check(sound, lambda: _bad_id(ids, sound, num_segments))
    if num_segments is None:
        num_segments = number_of(ids[-1]) + 1 if len(ids) else 0
    return counts_of(ids, num_segments)


def _bad_id(ids: Tensor, sound: Tensor, num_segments: int | None) -> Exception:
    i = next(iter(first_wrong(sound)), None)
    if i is None:
        return LodError("ids are negative, decrease, or are too large")
    found = int(ids[i])
    if num_segments is not None and not 0 <= found < num_segments:
        return outside("ids", i, found, 0, num_segments)
    return negative("ids", i, found) if found < 0 else descending("ids", i, found, int(ids[i - 1]))


@implements("lengths_to_ranges")
def _lengths_to_ranges(lengths: Tensor) -> Tensor:
    return torch.stack([starts_of(lengths), lengths], 1)


@implements("segment_ids_to_ranges", syncs=NUM_SEGMENTS)
def _segment_ids_to_ranges(ids: Tensor, *, num_segments: int | None) -> Tensor:
    return _lengths_to_ranges(_segment_ids_to_lengths(ids, num_segments=num_segments))


@implements("lengths_to_positions", syncs=TOTAL)
def _lengths_to_positions(lengths: Tensor) -> Tensor:
    return positions(lengths, segment_ids(lengths, total_of(lengths)))


@implements("lengths_to_weights", syncs=TOTAL)
def _lengths_to_weights(lengths: Tensor, *, power: float) -> Tensor:
    weights = (lengths.clamp_min(1).double() ** -power).float()
    return weights.index_select(0, segment_ids(lengths, total_of(lengths)))


@implements("lengths_to_mask", syncs="the longest length, without max_length")
def _lengths_to_mask(lengths: Tensor, *, max_length: int | None, side: str) -> Tensor:
    width = longest_of(lengths) if max_length is None else max_length
    return mask_of(lengths, width, side)


def mask_of(lengths: Tensor, width: int, side: str) -> Tensor:
    """Return true at the places of data: bool [B, width]."""
    places = arange(lengths, width)
    mask: Tensor = (places if side == "right" else places.flip(0)) < lengths[:, None]
    return mask


@implements("lengths_split")
def _lengths_split(lengths: Tensor, *, n: int) -> Tensor:
    whole = lengths[:, None].div(n, rounding_mode="floor")
    return (whole + (arange(lengths, n) < lengths[:, None].remainder(n))).reshape(-1)


@implements("collapse_lengths")
def _collapse_lengths(inner: Tensor, outer: Tensor) -> Tensor:
    ids = segment_ids(outer, len(inner))
    return outer.new_zeros(len(outer), dtype=sum_dtype(inner)).index_add(0, ids, inner)
