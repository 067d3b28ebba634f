"""Pad: how a list column becomes a padded tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from seqflow import kernels
from seqflow.record import Record


@dataclass(frozen=True, slots=True)
class Pad:
    """Pad each sequence to the longest of its batch."""

    value: int | float = 0
    dtype: str | None = None


def pad_columns(record: Record, pad: Mapping[str, Pad]) -> Record:
    """The record with padded tensors `c` [B, T] and `c.mask` in place of `c.values`."""
    tensors, parents = dict(record.tensors), dict(record.parents)
    for name, how in pad.items():
        values = tensors.pop(f"{name}.values")
        del parents[f"{name}.values"]
        if how.dtype is not None:
            values = values.astype(how.dtype)
        tensors[name], tensors[f"{name}.mask"] = kernels.pad(
            values, tensors[f"{name}.lengths"], kernels.max_length(tensors[f"{name}.lengths"]), how.value
        )
        parents |= {name: None, f"{name}.mask": None}
    return replace(record, tensors=tensors, parents=parents)
