"""Elementwise arithmetic as text: parsed, compiled to a program, and evaluated block by block."""

from seqflow.expression.expression import Expression

__all__ = ["Expression"]
