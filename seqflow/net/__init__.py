"""Nets: straight-line programs of ops, as text; parsing, ordering and inference of shapes and rows."""

from seqflow.net.inference import NetInference
from seqflow.net.net import Net
from seqflow.net.step import Step

__all__ = ["Net", "NetInference", "Step"]
