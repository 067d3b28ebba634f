"""Nets: their text, their order, and whose rows each tensor holds."""

from seqflow.net.graph import Net, Step
from seqflow.net.inference import NetInference

__all__ = ["Net", "NetInference", "Step"]
