"""The extension, as type checkers see it. Written by `python -m seqflow.kernels.stub`; do not edit.

A kernel answers NotImplemented where it declines.
"""

from types import NotImplementedType
from typing import Any

import numpy as np

from seqflow.kernels.chunks import ChunkedRows
from seqflow.kernels.packing import PackingPlan

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

def add_by_id(
    data: Array,
    ids: Array,
    num_groups: int,
    counted: bool,
    /,
) -> NotImplementedType | tuple[Array, Array]: ...
def argsort_within(
    data: Array,
    lengths: Array,
    descending: bool,
    /,
) -> NotImplementedType | Array: ...
def bucketize(
    values: Array,
    boundaries: Array,
    /,
) -> NotImplementedType | Array: ...
def check_lengths(
    lengths: Array,
    /,
) -> NotImplementedType | int: ...
def cumsum_within(
    data: Array,
    lengths: Array,
    reverse: bool,
    exclusive: bool,
    /,
) -> NotImplementedType | Array: ...
def distinct_ids(
    ids: Array,
    /,
) -> NotImplementedType | tuple[Array, Array, Array]: ...
def enter_single_thread() -> None: ...
def expand(
    data: Array,
    lengths: Array,
    out: Array | None,
    /,
) -> NotImplementedType | Array: ...
def fill_packed(
    data: Array,
    lengths: Array,
    plan: tuple[Array, Array, Array, Array],
    capacity: int,
    value: Any,
    out: tuple[Array, Array, Array] | None,
    /,
) -> NotImplementedType | tuple[Array, Array, Array]: ...
def find_strings(
    slots: Array,
    offsets: Array,
    text: Array,
    data: Array,
    lengths: Array,
    /,
) -> NotImplementedType | Array: ...
def find_words(
    slots: Array,
    words: Array,
    /,
) -> NotImplementedType | Array: ...
def gather(
    data: Array,
    indices: Array,
    wrap: bool,
    ignore_index: int | None,
    out: Array | None,
    /,
) -> NotImplementedType | Array: ...
def gather_segment_reduce(
    kind: str,
    table: Array,
    indices: Array,
    lengths: Array,
    empty: Any,
    ignore_index: int | None,
    /,
) -> NotImplementedType | Array: ...
def gather_segment_weigh(
    table: Array,
    weights: Array,
    indices: Array,
    lengths: Array,
    positional: bool,
    empty: Any,
    ignore_index: int | None,
    /,
) -> NotImplementedType | Array: ...
def gather_slices(
    chunks: ChunkedRows,
    starts: Array,
    sizes: Array,
    out: Array | None,
    /,
) -> NotImplementedType | Array: ...
def group_rows(
    ids: Array,
    num_groups: int,
    /,
) -> NotImplementedType | tuple[Array, Array]: ...
def hash_ids(
    ids: Array,
    state: int,
    num_buckets: int,
    /,
) -> NotImplementedType | Array: ...
def hash_slots(
    words: Array,
    /,
) -> NotImplementedType | Array: ...
def hash_strings(
    data: Array,
    lengths: Array,
    state: int,
    num_buckets: int,
    /,
) -> NotImplementedType | Array: ...
def hold_rows(arg: tuple[object, ...], /) -> object: ...
def isa() -> str: ...
def isas() -> list[str]: ...
def leave_single_thread() -> None: ...
def lengths_to_offsets(
    lengths: Array,
    /,
) -> NotImplementedType | Array: ...
def lengths_to_positions(
    lengths: Array,
    /,
) -> NotImplementedType | Array: ...
def lengths_to_segment_ids(
    lengths: Array,
    /,
) -> NotImplementedType | Array: ...
def max_length(
    lengths: Array,
    /,
) -> NotImplementedType | int: ...
def move_slices(
    source: Array,
    source_starts: Array,
    sizes: Array,
    target: Array,
    target_starts: Array,
    /,
) -> NotImplementedType | None: ...
def num_threads() -> int: ...
def pack_by_time(
    data: Array,
    lengths: Array,
    num_steps: int,
    value: Any,
    out: Array | None,
    /,
) -> NotImplementedType | Array: ...
def pad(
    data: Array,
    lengths: Array,
    width: int,
    value: Any,
    side: str,
    truncate: bool,
    out: Array | None,
    mask: Array | None,
    /,
) -> NotImplementedType | tuple[Array, Array]: ...
def pad_batches(
    chunks: ChunkedRows,
    batches: list,
    value: Any,
    side: str,
    truncate: bool,
    dtype: DType | None,
    /,
) -> NotImplementedType | None: ...
def pad_slices(
    chunks: ChunkedRows,
    starts: Array,
    sizes: Array,
    width: int,
    value: Any,
    side: str,
    truncate: bool,
    dtype: DType | None,
    out: Array | None,
    mask: Array | None,
    /,
) -> NotImplementedType | Array: ...
def plan_packing(
    lengths: Array,
    capacity: int,
    strategy: str,
    /,
) -> NotImplementedType | PackingPlan: ...
def pool_quantized(
    kind: str,
    table: Array,
    weights: Array | None,
    indices: Array,
    lengths: Array,
    bits: int,
    scale: str,
    pruned: bool,
    /,
) -> NotImplementedType | Array: ...
def quick_check_lengths(arg: object, /) -> object: ...
def run_cell(
    cell: str,
    x: Array,
    lengths: Array,
    w_ih: Array,
    w_hh: Array,
    bias_ih: Array | None,
    bias_hh: Array | None,
    h0: Array | None,
    c0: Array | None,
    reverse: bool,
    /,
) -> NotImplementedType | tuple[Array, Array, Array | None]: ...
def segment_arg(
    kind: str,
    data: Array,
    lengths: Array,
    /,
) -> NotImplementedType | Array: ...
def segment_ids_to_lengths(
    ids: Array,
    num_segments: int | None,
    /,
) -> NotImplementedType | Array: ...
def segment_logsumexp(
    data: Array,
    lengths: Array,
    empty: Any,
    /,
) -> NotImplementedType | Array: ...
def segment_reduce(
    kind: str,
    data: Array,
    lengths: Array,
    empty: Any,
    /,
) -> NotImplementedType | Array: ...
def segment_topk(
    data: Array,
    lengths: Array,
    k: int,
    /,
) -> NotImplementedType | tuple[Array, Array]: ...
def segment_variance(
    data: Array,
    lengths: Array,
    ddof: int,
    empty: Any,
    /,
) -> NotImplementedType | Array: ...
def set_isa(arg: str, /) -> None: ...
def set_num_threads(arg: int, /) -> None: ...
def softmax_within(
    data: Array,
    lengths: Array,
    log: bool,
    /,
) -> NotImplementedType | Array: ...
def sort_within(
    data: Array,
    lengths: Array,
    descending: bool,
    /,
) -> NotImplementedType | Array: ...
def unpack_by_time(
    packed: Array,
    lengths: Array,
    out: Array | None,
    /,
) -> NotImplementedType | Array: ...
def unpad(
    padded: Array,
    lengths: Array,
    side: str,
    out: Array | None,
    /,
) -> NotImplementedType | Array: ...
def windows(
    data: Array,
    lengths: Array,
    before: int,
    after: int,
    value: Any,
    /,
) -> NotImplementedType | Array: ...
def words_of_strings(
    data: Array,
    lengths: Array,
    /,
) -> NotImplementedType | Array: ...
