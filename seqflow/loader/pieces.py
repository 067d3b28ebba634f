"""Pieces of rows: consecutive elements of list columns."""

from __future__ import annotations

from dataclasses import dataclass

from seqflow.kernels.arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of the rows of a window, in order: of each its row, first element, and number of elements."""

    rows: Array
    """The rows' places in the order of the window."""
    starts: Array
    sizes: Array

    def take(self, chosen: Array | slice) -> Pieces:
        return Pieces(self.rows[chosen], self.starts[chosen], self.sizes[chosen])
