"""The C++ side. Arrays are C-contiguous, aligned and in native byte order; TypeError for others.

Fill values are the bytes of one element, or None for 0.
"""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

def isa() -> str: ...
def isas() -> list[str]: ...
def set_isa(name: str) -> None: ...
def num_threads() -> int: ...
def set_num_threads(count: int) -> None: ...
def enter_single_thread() -> None: ...
def leave_single_thread() -> None: ...
def check_lengths(lengths: Array) -> int: ...
def max_length(lengths: Array) -> int: ...
def lengths_to_offsets(lengths: Array) -> Array: ...
def lengths_to_segment_ids(lengths: Array) -> Array: ...
def segment_reduce(kind: str, data: Array, lengths: Array, empty: bytes | None) -> Array: ...
def gather_segment_reduce(
    kind: str, table: Array, indices: Array, lengths: Array, empty: bytes | None, ignore_index: int | None
) -> Array: ...
def gather(data: Array, indices: Array, wrap: bool, ignore_index: int | None, out: Array | None) -> Array: ...
def move_slices(
    source: Array, source_starts: Array, sizes: Array, target: Array, target_starts: Array
) -> None: ...
def pad(
    data: Array,
    lengths: Array,
    width: int,
    value: bytes | None,
    left: bool,
    truncate: bool,
    out: Array | None,
    mask: Array | None,
) -> tuple[Array, Array]: ...
def unpad(padded: Array, lengths: Array, left: bool, out: Array | None) -> Array: ...
def plan_packing(lengths: Array, capacity: int, strategy: str) -> tuple[Array, Array, Array, Array]: ...
def fill_packed(
    data: Array,
    lengths: Array,
    sources: Array,
    starts: Array,
    piece_lengths: Array,
    pieces: Array,
    capacity: int,
    value: bytes | None,
    packed: Array,
    segment_ids: Array,
    position_ids: Array,
) -> None: ...
def run_cell(
    cell: int,
    x: Array,
    lengths: Array,
    w_ih: Array,
    w_hh: Array,
    bias_ih: Array | None,
    bias_hh: Array | None,
    h0: Array | None,
    c0: Array | None,
    reverse: bool,
    h: Array,
    h_last: Array,
    c_last: Array | None,
) -> None: ...
