"""Arithmetic over arrays: one text, one table of functions, one fused program."""

from seqflow.expression.expression import Expression

__all__ = ["Expression"]
