"""Batches that know their sources in a mix, or what all batches of their step hold together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from seqflow.record import Record
from seqflow.record.record import Tensor

PREFIX = "step."
"""Prefix of the names of totals in a batch."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LoadedBatch(Record):
    """A batch of a mix, or of a loader that counts totals: `batch["step.trained"]` is one of them, a 0-d array."""

    sources: tuple[str, ...] = ()
    """The names of the sources in a mix that its rows come from."""
    step: int = 0
    """The number of its step in the epoch."""
    totals: Mapping[str, int | float] = field(default_factory=dict)
    """What all batches of the step hold together, on all ranks, by name."""

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.tensors and name.removeprefix(PREFIX) in self.totals and name.startswith(PREFIX):
            return np.asarray(self.totals[name.removeprefix(PREFIX)])
        return Record.__getitem__(self, name)

    def of_step(self, step: int | None, totals: Mapping[str, int | float]) -> LoadedBatch:
        """The batch with the number and the totals of its step. Warn of a total of 0."""
        assert step is not None
        for name, total in totals.items():
            if not total:
                warnings.warn(
                    f"totals: {name} of step {step} is 0: no batch of it has any, do not divide by it",
                    stacklevel=4,
                )
        return replace(self, step=step, totals=totals)
