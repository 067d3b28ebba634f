"""Pieces of rows: consecutive elements of list columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of the rows of a window, in order: of each its row, first element, and number of elements."""

    rows: Array
    """The rows' places in the order of the window."""
    starts: Array
    sizes: Array

    def begun(self, starts: Array, stops: Array) -> Array:
        """How many rows begin in each span of pieces: they are first pieces."""
        ends = kernels.lengths_to_offsets((self.starts == 0).astype(np.int64))
        return ends[stops] - ends[starts]

    def take(self, chosen: Array | slice) -> Pieces:
        return Pieces(self.rows[chosen], self.starts[chosen], self.sizes[chosen])
