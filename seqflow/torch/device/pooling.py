"""Pooling: rows of a table at indices, reduced by the segment of each index."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from seqflow.torch.device.checks import check_indices
from seqflow.torch.device.dtypes import scalar
from seqflow.torch.device.lengths import counts_of
from seqflow.torch.device.reductions import FIRST_EXTREMES, REDUCTIONS
from seqflow.torch.device.registration import IMPLEMENTED, implements
from seqflow.torch.device.segment_ids import LARGEST, LAST
from seqflow.torch.device.structure import positions, segment_ids, take


def _looked_up(
    table: Tensor, indices: Tensor, lengths: Tensor, ignore_index: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows, the segment of each, and the number of rows of each segment.

    There is one segment more than lengths: the last one, for the rows at `ignore_index`.
    """
    check_indices(indices, len(table), ignore_index=ignore_index)
    ids = segment_ids(lengths, len(indices))
    if ignore_index is None:
        return take(table, indices), ids, torch.nn.functional.pad(lengths, (0, 1))
    used = indices != ignore_index
    ids = torch.where(used, ids, len(lengths))
    return take(table, indices, used), ids, counts_of(ids, len(lengths) + 1)


def _pooled(reduce: Callable[..., Tensor], dtype_of: Callable[..., torch.dtype]) -> Callable[..., Tensor]:
    """Return a pooled look-up; `dtype_of` returns the dtype of its results."""

    def pool(table: Tensor, *given: Tensor, ignore_index: int | None, empty: Any) -> Tensor:
        *weights, indices, lengths = given
        value = scalar("empty", empty, dtype_of(table, *weights))
        rows, *segments = _looked_up(table, indices, lengths, ignore_index)
        return reduce(rows, *weights, *segments, value)[:-1]

    return pool


for _kind in ("sum", "mean", "weighted_sum", "max"):
    implements(f"sparse_lengths_{_kind}")(_pooled(*(REDUCTIONS | FIRST_EXTREMES)[_kind]))


@implements("sparse_lengths_positional_weighted_sum")
def _positional_weighted_sum(
    table: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None, empty: Any
) -> Tensor:
    places = positions(lengths, segment_ids(lengths, len(indices)))
    own = take(weights, places)
    weighted_sum: Callable[..., Tensor] = IMPLEMENTED["sparse_lengths_weighted_sum"].body
    return weighted_sum(table, own, indices, lengths, ignore_index=ignore_index, empty=empty)


# By ids


def _looked_up_first(name: str, dtype_of: Callable[..., torch.dtype]) -> Callable[..., Tensor]:
    """Return the op of this name on the rows at indices; the weights of the rows, if any, come before these."""
    reduce: Callable[..., Tensor] = IMPLEMENTED[name].body

    def pool(table: Tensor, *given: Tensor, **attributes: Any) -> Tensor:
        *weights, indices, ids = given
        if "empty" in attributes:  # checked first, as on arrays: its error comes before that of an index
            scalar("empty", attributes["empty"], dtype_of(table, *weights))
        check_indices(indices, len(table))
        return reduce(take(table, indices), *weights, ids, **attributes)

    return pool


for _order, _syncs in (("sorted", LAST), ("unsorted", LARGEST)):
    for _kind in ("sum", "mean", "weighted_sum"):
        _name = f"{_order}_segment_{_kind}"
        implements(f"sparse_{_name}", syncs=_syncs)(_looked_up_first(_name, REDUCTIONS[_kind][1]))
