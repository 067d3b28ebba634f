"""Gradients: formulas of ops, the derivative of one call, and the gradient of a net."""

from seqflow.net.gradient.derivative import derivative

__all__ = ["derivative"]
