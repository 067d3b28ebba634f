"""The kernels in C++. The functions of `seqflow.kernels`, whose docstrings hold here as well.

Each first hands its arguments over as they are. What the C++ side does not take (TypeError: other dtypes,
strides, byte orders) is brought into a form that it does, and only what has no such form is left to NumPy.
"""

from seqflow.kernels import _native
from seqflow.kernels.native.groups import group_rows
from seqflow.kernels.native.lengths import (
    check_lengths,
    lengths_to_offsets,
    lengths_to_positions,
    lengths_to_segment_ids,
    max_length,
    quick_check_lengths,
    segment_ids_to_lengths,
)
from seqflow.kernels.native.moves import gather, move_slices
from seqflow.kernels.native.ordering import argsort_within, segment_arg, segment_topk, sort_within
from seqflow.kernels.native.packing import fill_packed, plan_packing
from seqflow.kernels.native.padding import pack_by_time, pad, unpack_by_time, unpad
from seqflow.kernels.native.recurrent import run_cell
from seqflow.kernels.native.reductions import gather_segment_reduce, segment_reduce, segment_variance
from seqflow.kernels.native.scans import cumsum_within
from seqflow.kernels.native.softmax import segment_logsumexp, softmax_within
from seqflow.kernels.native.spreading import expand, windows

isa = _native.isa
isas = _native.isas
set_isa = _native.set_isa
num_threads = _native.num_threads
set_num_threads = _native.set_num_threads
enter_single_thread = _native.enter_single_thread
leave_single_thread = _native.leave_single_thread

__all__ = [
    "argsort_within",
    "check_lengths",
    "cumsum_within",
    "enter_single_thread",
    "expand",
    "fill_packed",
    "gather",
    "gather_segment_reduce",
    "group_rows",
    "isa",
    "isas",
    "leave_single_thread",
    "lengths_to_offsets",
    "lengths_to_positions",
    "lengths_to_segment_ids",
    "max_length",
    "move_slices",
    "num_threads",
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
    "set_isa",
    "set_num_threads",
    "softmax_within",
    "sort_within",
    "unpack_by_time",
    "unpad",
    "windows",
]
