"""Nets: their text, their order, and whose rows each tensor holds."""

from seqflow.net.graph import Net
from seqflow.net.inference import NetInference
from seqflow.net.step import Step

__all__ = ["Net", "NetInference", "Step"]
