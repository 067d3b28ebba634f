"""The `collate_fn` for datasets that give whole batches."""

from collections.abc import Mapping, Sequence
from typing import Any

from seqflow.errors import OpError


def collate(batches: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the only batch of a list: a `collate_fn` or `data_collator` for a DataLoader or Trainer of batch
    size 1.

    Args:
        batches: List of one batch.

    Raises OpError for several batches, which must not be stacked like rows.
    """
    if len(batches) != 1:
        raise OpError(
            f"seqflow.torch.collate: found {len(batches)} batches, expected 1: whole batches are not stacked\n"
            "  batch_size=None in a DataLoader, 1 in a Trainer; Loader(batch=…) says how many rows they have"
        )
    return batches[0]
