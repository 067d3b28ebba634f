"""Rows by ids in any order, and membership in the sequence of another column."""

import torch
from torch import Tensor

from seqflow.errors import OpError
from seqflow.torch.device.checks import check, first_wrong
from seqflow.torch.device.reductions import comparable
from seqflow.torch.device.registration import implements
from seqflow.torch.device.segment_ids import counted
from seqflow.torch.device.structure import arange, segment_ids
from seqflow.torch.device.within import argsort_rows


@implements(
    "group_order", syncs="the largest id, without num_segments; the rows of the result, with outside='drop'"
)
def _group_order(ids: Tensor, *, num_segments: int | None, outside: str) -> tuple[Tensor, ...]:
    kept = arange(ids, len(ids))
    if outside == "drop":
        inside = (ids >= 0) if num_segments is None else (ids >= 0) & (ids < num_segments)
        kept = inside.nonzero()[:, 0]
    elif num_segments is None:
        check(ids >= 0, lambda: _below_0(ids))
    used = ids.index_select(0, kept)
    lengths = counted(used, num_segments)
    order = kept.index_select(0, torch.argsort(used, stable=True))
    return order, lengths, torch.full_like(ids, -1).scatter(0, order, arange(ids, len(order)))


def _below_0(ids: Tensor) -> OpError:
    i = next(iter(first_wrong(ids >= 0)), None)
    found = "ids are negative" if i is None else f"ids[{i}] is {int(ids[i])}"
    return OpError(f"{found}, expected 0 or more", advice="outside='drop' omits such rows")


@implements("isin_within")
def _isin_within(
    data: Tensor, lengths: Tensor, other: Tensor, other_lengths: Tensor, *, invert: bool
) -> Tensor:
    values = comparable(torch.cat([other, data]))
    rows = torch.cat([segment_ids(other_lengths, len(other)), segment_ids(lengths, len(data))])
    order = argsort_rows(values, rows, descending=False)
    values, rows = values.index_select(0, order), rows.index_select(0, order)
    before, after = values[:-1], values[1:]
    differs = (before != after) & ~((before != before) & (after != after)) | (rows[:-1] != rows[1:])
    # equal values of a sequence are a group, which has values of `other` or has none
    groups = torch.nn.functional.pad(differs.long(), (1, 0))[: len(values)].cumsum(0)
    counts = torch.zeros_like(groups).index_add(0, groups, (order < len(other)).long())
    found = torch.zeros_like(groups).scatter(0, order, counts.index_select(0, groups))
    return (found[len(other) :] > 0) ^ invert
