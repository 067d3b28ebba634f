"""Shapes as far as they are known before the data is read: dimensions, partial shapes, inference."""

from seqflow.shape.dimension import Atom, Comparison, Dimension, DimensionLike, Rank

__all__ = ["Atom", "Comparison", "Dimension", "DimensionLike", "Rank"]
