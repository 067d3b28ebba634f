"""Reductions of rows that are assigned to segments by ids."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from seqflow.errors import OpError
from seqflow.torch.device.checks import check, check_indices, first_wrong, number_of
from seqflow.torch.device.dtypes import scalar
from seqflow.torch.device.lengths import counts_of
from seqflow.torch.device.reductions import REDUCTIONS, logsumexp_of
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import column

LAST = "the last id"
LARGEST = "the largest id, without num_segments"


def sorted_counts(ids: Tensor) -> Tensor:
    """Return the count of each id; raise OpError unless they are 0, 1, 2 … in order. The host waits for the last."""
    steps = torch.diff(ids, prepend=ids.new_full((1,), -1))
    sound = (steps == 1) | (steps == 0)
    sound = torch.cat([steps[:1] == 1, sound[1:]])
    check(sound, lambda: _gap(ids, sound))
    return counts_of(ids, number_of(ids[-1]) + 1 if len(ids) else 0)


def _gap(ids: Tensor, sound: Tensor) -> OpError:
    i = next(iter(first_wrong(sound)), None)
    if i is None:
        return OpError("ids have gaps or decrease, expected sorted ids without gaps")
    expected = f"{int(ids[i - 1])} as before or one more" if i else "0"
    return OpError(f"ids[{i}] = {int(ids[i])}, expected {expected}: sorted ids without gaps")


def _sorted(reduce: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a reduction by sorted ids; no segment is empty."""
    return lambda *given: reduce(*given, sorted_counts(given[-1]), None)


for _kind, (_reduce, _) in REDUCTIONS.items():
    implements(f"sorted_segment_{_kind}", syncs=LAST)(_sorted(_reduce))


@implements("sorted_segment_logmeanexp", syncs=LAST)
def _sorted_logmeanexp(data: Tensor, ids: Tensor) -> Tensor:
    counts = sorted_counts(ids)
    logs = logsumexp_of(data, ids, counts, None)
    return logs - column(torch.log(counts.double()).to(logs.dtype), logs.ndim)


def counted(ids: Tensor, num_segments: int | None) -> Tensor:
    """Return the count of each id, in any order; without `num_segments` the host waits for the largest."""
    if num_segments is None:
        num_segments = max(number_of(ids.max()) + 1, 0) if len(ids) else 0
    check_indices(ids, num_segments, argument="ids")
    return counts_of(ids, num_segments)


def _unsorted(reduce: Callable[..., Tensor], dtype_of: Callable[..., torch.dtype]) -> Callable[..., Tensor]:
    """Return a reduction by ids in any order; `dtype_of` returns the dtype of its results."""

    def reduced(*given: Tensor, num_segments: int | None, empty: Any) -> Tensor:
        *rows, ids = given
        # first, as on arrays: its error comes before that of an id
        value = scalar("empty", empty, dtype_of(*rows))
        return reduce(*rows, ids, counted(ids, num_segments), value)

    return reduced


for _kind in ("sum", "mean", "weighted_sum", "max", "min"):
    implements(f"unsorted_segment_{_kind}", syncs=LARGEST)(_unsorted(*REDUCTIONS[_kind]))
