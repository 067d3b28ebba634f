"""What every kernel means, in NumPy. The functions of `seqflow.kernels`, whose docstrings hold here as well."""

from seqflow.kernels.reference.lengths import (
    check_lengths,
    lengths_to_offsets,
    lengths_to_segment_ids,
    max_length,
    quick_check_lengths,
)
from seqflow.kernels.reference.moves import gather, move_slices
from seqflow.kernels.reference.packing import fill_packed, plan_packing
from seqflow.kernels.reference.padding import pad, unpad
from seqflow.kernels.reference.recurrent import run_cell
from seqflow.kernels.reference.reductions import gather_segment_reduce, segment_reduce

__all__ = [
    "check_lengths",
    "fill_packed",
    "gather",
    "gather_segment_reduce",
    "lengths_to_offsets",
    "lengths_to_segment_ids",
    "max_length",
    "move_slices",
    "pad",
    "plan_packing",
    "quick_check_lengths",
    "run_cell",
    "segment_reduce",
    "unpad",
]
