"""Running sums inside segments, in C++."""

from seqflow.kernels.reference.scans import cumsum_within

__all__ = ["cumsum_within"]
