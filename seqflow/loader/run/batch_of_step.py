"""Batches that know what all batches of their step hold together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from seqflow.loader.run.making import Turn
from seqflow.record import Record
from seqflow.record.record import Tensor

PREFIX = "step."
"""What the names of totals begin with in a batch."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StepBatch(Record):
    """A batch whose loader counts the totals of its step: `batch["step.trained"]` is one of them, a 0-d array."""

    step: int = 0
    """The number of the step in the epoch."""
    totals: Mapping[str, int | float] = field(default_factory=dict)
    """What all batches of the step hold together, on all ranks, by name."""

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.tensors and name.removeprefix(PREFIX) in self.totals and name.startswith(PREFIX):
            return np.asarray(self.totals[name.removeprefix(PREFIX)])
        return Record.__getitem__(self, name)


def batch_of_step(batch: Record, turn: Turn) -> StepBatch:
    """The batch of a turn, with the number and the totals of its step. A total of 0 is said."""
    assert turn.step is not None
    assert turn.totals is not None
    for name, total in turn.totals.items():
        if not total:
            warnings.warn(
                f"totals: {name} of step {turn.step} is 0: no batch of it has any, do not divide by it",
                stacklevel=3,
            )
    return StepBatch(
        batch.tensors, batch.parents, batch.num_rows, batch.schema, batch.dictionaries, batch.number,
        turn.step, turn.totals,
    )  # fmt: skip
