"""Gradients: the formulas beside the ops, the derivative of one call, and that of a net."""

from seqflow.net.gradient.derivative import derivative

__all__ = ["derivative"]
