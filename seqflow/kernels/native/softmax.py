"""Exponentials inside segments, in C++."""

from seqflow.kernels.reference.softmax import segment_logsumexp, softmax_within

__all__ = ["segment_logsumexp", "softmax_within"]
