"""Detects libraries that shard or stack a dataset: they are found among the callers, since they do not say so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from seqflow.errors import OpError


def is_sharded_again(dataset: Any) -> bool:
    """Whether Accelerate, or the Trainer of transformers, takes this process's part of what the dataset gives."""
    return any(
        type(caller).__name__ == "IterableDatasetShard" and caller.dataset is dataset for caller in _callers()
    )


def refuse_dispatch() -> None:
    """OpError where Accelerate cuts the batches of one process by rows, for all processes."""
    if any(type(caller).__name__ == "DataLoaderDispatcher" for caller in _callers()):
        raise OpError(
            "seqflow.torch.iterable: Accelerate dispatches batches, which cuts every tensor of a batch to as many "
            "rows; values have other rows than their lengths\n"
            "  Accelerator(dataloader_config=DataLoaderConfiguration(dispatch_batches=False)), or for a Trainer "
            'TrainingArguments(accelerator_config={"dispatch_batches": False})'
        )


def refuse_stacking() -> None:
    """OpError where a collator of transformers would stack whole batches as if they were rows."""
    for caller in _callers():
        collate = getattr(caller, "collate_fn", None) if getattr(caller, "auto_collation", False) else None
        collate = getattr(collate, "data_collator", collate)  # the Trainer's, which removes columns first
        kind = collate if hasattr(collate, "__module__") else type(collate)
        if str(getattr(kind, "__module__", "")).startswith("transformers."):
            name = getattr(collate, "__name__", type(collate).__name__)
            raise OpError(
                f"seqflow.torch.iterable: {name} stacks rows, but the dataset gives whole batches\n"
                "  Trainer(…, data_collator=seqflow.torch.collate) with per_device_train_batch_size=1"
            )


def _callers() -> Iterator[Any]:
    """The objects whose methods are being called, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if caller is not None:
            yield caller
        frame = frame.f_back  # type: ignore[assignment]
