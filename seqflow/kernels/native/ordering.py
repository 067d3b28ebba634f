"""Order inside segments, in C++."""

from seqflow.kernels.reference.ordering import argsort_within, segment_arg, segment_topk, sort_within

__all__ = ["argsort_within", "segment_arg", "segment_topk", "sort_within"]
