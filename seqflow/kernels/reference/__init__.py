"""What every kernel means, in NumPy. The functions of `seqflow.kernels`, whose docstrings hold here as well."""

from seqflow.kernels.reference.groups import group_rows
from seqflow.kernels.reference.lengths import (
    check_lengths,
    lengths_to_offsets,
    lengths_to_positions,
    lengths_to_segment_ids,
    max_length,
    quick_check_lengths,
    segment_ids_to_lengths,
)
from seqflow.kernels.reference.moves import gather, move_slices
from seqflow.kernels.reference.ordering import argsort_within, segment_arg, segment_topk, sort_within
from seqflow.kernels.reference.packing import fill_packed, plan_packing
from seqflow.kernels.reference.padding import pack_by_time, pad, unpack_by_time, unpad
from seqflow.kernels.reference.recurrent import run_cell
from seqflow.kernels.reference.reductions import gather_segment_reduce, segment_reduce, segment_variance
from seqflow.kernels.reference.scans import cumsum_within
from seqflow.kernels.reference.softmax import segment_logsumexp, softmax_within
from seqflow.kernels.reference.spreading import expand, windows

__all__ = [
    "argsort_within",
    "check_lengths",
    "cumsum_within",
    "expand",
    "fill_packed",
    "gather",
    "gather_segment_reduce",
    "group_rows",
    "lengths_to_offsets",
    "lengths_to_positions",
    "lengths_to_segment_ids",
    "max_length",
    "move_slices",
    "pack_by_time",
    "pad",
    "plan_packing",
    "quick_check_lengths",
    "run_cell",
    "segment_arg",
    "segment_ids_to_lengths",
    "segment_logsumexp",
    "segment_reduce",
    "segment_topk",
    "segment_variance",
    "softmax_within",
    "sort_within",
    "unpack_by_time",
    "unpad",
    "windows",
]
