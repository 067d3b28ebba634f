"""The `collate_fn` for datasets that give whole batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seqflow.errors import OpError


def collate(batches: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the one batch of a list: the `collate_fn` of a DataLoader, or `data_collator` of a Trainer, of batch size 1.

    Raises OpError for several batches, which could only be stacked as if they were rows.
    """
    if len(batches) != 1:
        raise OpError(
            f"seqflow.torch.collate: {len(batches)} batches are to be one, expected 1: they are whole\n"
            "  batch_size=None in a DataLoader, 1 in a Trainer; Loader(batch=…) says how many rows they have"
        )
    return batches[0]
