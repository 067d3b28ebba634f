"""A batch plan as a user writes one."""

from dataclasses import dataclass

import numpy as np

import seqflow as sf
from seqflow.loader import BatchPlan, Layout, permutation


@dataclass(frozen=True)
class AlikeLengths(BatchPlan):
    """Batches of at most `tokens`, whose longest row has at most `factor` times the elements of the shortest."""

    tokens: int
    factor: float = 2.0
    lengths: str | None = None
    balance: sf.Balance | None = None

    def layout(self, sizes, key):
        order = np.argsort(sizes, kind="stable")
        counts, shortest, total = [], 0, 0
        for size in sizes[order].tolist():
            if not counts or total + size > self.tokens or size > self.factor * shortest:
                counts.append(0)
                shortest, total = size, 0
            counts[-1] += 1
            total += size
        batches = np.split(order, np.cumsum(counts)[:-1])
        chosen = permutation(len(counts), key)
        return Layout(np.array(counts)[chosen], np.concatenate([batches[one] for one in chosen]))
