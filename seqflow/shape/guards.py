"""Guards: equalities that were assumed, to be checked on data; the outputs of shape functions."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from seqflow.shape.dimension import Dimension
from seqflow.shape.partial_shape import PartialShape
from seqflow.shape.terms import Term


class Guard(NamedTuple):
    """Two sizes, or two shapes, that were assumed equal without proof; checked as soon as both are known."""

    left: Dimension | PartialShape
    right: Dimension | PartialShape
    origin: str
    is_checked: bool = True
    """Whether the op itself checks it when it runs, as far as its signature tells."""

    def tensors(self) -> list[str]:
        """Tensors whose sizes must be known before the guard can be checked."""
        atoms = [atom for pair in self.pairs() for size in pair for atom in size.atoms()]
        return [atom.tensor for atom in atoms if atom.tensor is not None]

    def pairs(self) -> Iterator[tuple[Dimension, Dimension]]:
        """The sizes, left and right, one axis after another."""
        return zip(*map(_dimensions, (self.left, self.right)), strict=True)

    def __str__(self) -> str:
        return f"{self.left} == {self.right} ({self.origin})"


def _dimensions(side: Dimension | PartialShape) -> Iterable[Dimension]:
    return [side] if isinstance(side, Dimension) else side.dimensions or ()


class SameLengths(NamedTuple):
    """Two lengths tensors that were assumed equal without proof; they are compared value by value."""

    left: str
    right: str
    origin: str

    def tensors(self) -> list[str]:
        """Tensors that must be known before the guard can be checked."""
        return [self.left, self.right]

    def __str__(self) -> str:
        return f"{self.left} == {self.right}, each length ({self.origin})"


Guards = list[Guard | SameLengths]


class InferredOutput(NamedTuple):
    """One output, as a shape function inferred it."""

    shape: PartialShape
    axes: tuple[Term | None, ...]
    dtype: np.dtype[Any] | None
    points: Term | None = None
