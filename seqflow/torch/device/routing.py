"""Tokens to experts and back."""

import torch
from torch import Tensor

from seqflow.torch.device.checks import check_indices
from seqflow.torch.device.lengths import counts_of
from seqflow.torch.device.reductions import REDUCTIONS
from seqflow.torch.device.registration import implements
from seqflow.torch.device.segment_ids import counted
from seqflow.torch.device.structure import positions, segment_ids, starts_of, take, total_of

MAX_INT64 = 2**63 - 1


@implements("route_topk", syncs="the rows of the result, with capacity or multiple_of")
def _route_topk(
    experts: Tensor, *, num_experts: int, capacity: int | None, multiple_of: int
) -> tuple[Tensor, ...]:
    chosen = experts.reshape(-1)
    lengths, choices = counted(chosen, num_experts), torch.argsort(chosen, stable=True)
    if capacity is not None:
        inside = positions(lengths, segment_ids(lengths, len(choices))) < min(capacity, MAX_INT64)
        choices = choices.index_select(0, inside.nonzero()[:, 0])
        lengths = lengths.clamp_max(min(capacity, MAX_INT64))
    if multiple_of > 1:
        step = min(multiple_of, MAX_INT64 // 2)
        padded = -(-lengths // step) * step
        ids = segment_ids(padded, total_of(padded))
        places = positions(padded, ids)
        rows = starts_of(lengths).index_select(0, ids) + places
        choices = take(choices, rows, places < lengths.index_select(0, ids), fill=-1)
        lengths = padded
    return choices.clamp_min(0) // max(experts.shape[1], 1), lengths, choices


@implements("unroute", syncs="the choices that are not -1")
def _unroute(y: Tensor, choices: Tensor, weights: Tensor) -> Tensor:
    kept = (choices != -1).nonzero()[:, 0]
    chosen = choices.index_select(0, kept)
    check_indices(chosen, weights.numel(), argument="choices")
    ids = chosen // max(weights.shape[1], 1)
    weigh, _ = REDUCTIONS["weighted_sum"]
    return weigh(take(y, kept), take(weights.reshape(-1), chosen), ids, counts_of(ids, len(weights)), 0)
