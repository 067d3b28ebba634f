"""The hot loops. Each kernel is a function in NumPy, which says what it means, and one in C++, for speed.

`data`, `table`, `source` and `padded` are arrays of any dtype with at least one axis; non-contiguous and
read-only ones are fine. `lengths` are one-dimensional and, like `indices`, of any integer dtype. Results are
fresh C-contiguous arrays, unless `out` is given: a writable C-contiguous array of exactly the result's shape
and dtype. What does not fit raises KernelError and says at which position; after an error `out` may be partly
written.

Native kernels are used where they were built. The environment variable SEQFLOW_KERNELS changes that:
`reference` takes NumPy, `baseline`, `avx2` or `avx512` the native ones with that instruction set.
"""

from seqflow.kernels.arrays import check_out, mean_dtype, sum_dtype
from seqflow.kernels.dispatch import info, isas, num_threads, set_num_threads, single_thread, use
from seqflow.kernels.error import KernelError
from seqflow.kernels.groups import group_rows
from seqflow.kernels.lengths import (
    check_lengths,
    lengths_to_offsets,
    lengths_to_positions,
    lengths_to_segment_ids,
    max_length,
    quick_check_lengths,
    segment_ids_to_lengths,
)
from seqflow.kernels.moves import gather, move_slices
from seqflow.kernels.ordering import argsort_within, segment_arg, segment_topk, sort_within
from seqflow.kernels.packing import PackingPlan, fill_packed, plan_packing
from seqflow.kernels.padding import pack_by_time, pad, unpack_by_time, unpad
from seqflow.kernels.recurrent import run_cell
from seqflow.kernels.reductions import gather_segment_reduce, segment_reduce, segment_variance
from seqflow.kernels.scans import cumsum_within
from seqflow.kernels.softmax import segment_logsumexp, softmax_within
from seqflow.kernels.spreading import expand, windows

__all__ = [
    "KernelError",
    "PackingPlan",
    "argsort_within",
    "check_lengths",
    "check_out",
    "cumsum_within",
    "expand",
    "fill_packed",
    "gather",
    "gather_segment_reduce",
    "group_rows",
    "info",
    "isas",
    "lengths_to_offsets",
    "lengths_to_positions",
    "lengths_to_segment_ids",
    "max_length",
    "mean_dtype",
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
    "set_num_threads",
    "single_thread",
    "softmax_within",
    "sort_within",
    "sum_dtype",
    "unpack_by_time",
    "unpad",
    "use",
    "windows",
]
