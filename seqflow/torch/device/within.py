"""Functions of a whole segment that keep its rows: softmax, norms, running sums."""

import torch
from torch import Tensor

from seqflow.torch.device.dtypes import mean_dtype, sum_dtype
from seqflow.torch.device.reductions import extreme_by, scan, sum_by
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import column, fill_like, positions, segment_ids


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
    """Each row minus the largest of its segment, and the segment of each."""
    data, ids = data.to(mean_dtype(data)), segment_ids(lengths, len(data))
    return data - extreme_by(data.detach(), ids, lengths, "amax", 0).index_select(0, ids), ids


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
