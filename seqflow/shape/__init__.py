"""Sizes and shapes as far as they are known before the data is read: dimensions, partial shapes, inference."""

from seqflow.shape.arithmetic import Comparison
from seqflow.shape.atoms import Atom
from seqflow.shape.context import InferenceContext
from seqflow.shape.dimension import Dimension, DimensionLike, Rank
from seqflow.shape.equalities import Equalities
from seqflow.shape.guards import Guard, InferredOutput, SameLengths
from seqflow.shape.partial_shape import PartialShape, ShapeLike

__all__ = [
    "Atom", "Comparison", "Dimension", "DimensionLike", "Equalities", "Guard", "InferenceContext", "InferredOutput",
    "PartialShape", "Rank", "SameLengths", "ShapeLike",
]  # fmt: skip
