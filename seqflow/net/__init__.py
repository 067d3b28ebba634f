"""Nets: their text, their order, and whose rows each tensor holds."""

from seqflow.net.graph import Net, Step

__all__ = ["Net", "Step"]
