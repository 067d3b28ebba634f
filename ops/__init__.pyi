"""The ops, as type checkers see them. Written by `python -m seqflow.stubs`; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray[Any, Any]
Scalar = bool | int | float | np.generic

class AddPaddingResult(NamedTuple):
    rows: Array
    longer: Array

def add_padding(data: ArrayLike, lengths: ArrayLike, start: ArrayLike | None = None, end: ArrayLike | None = None, *, before: int = 1, after: int | None = None) -> AddPaddingResult: ...

class AppendTokenResult(NamedTuple):
    rows: Array
    longer: Array

def append_token(data: ArrayLike, lengths: ArrayLike, *, token: Scalar) -> AppendTokenResult: ...

class BytesToTokensResult(NamedTuple):
    tokens: Array
    sizes: Array

def bytes_to_tokens(data: ArrayLike, lengths: ArrayLike, *, offset: int = 0, begin: int | None = None, end: int | None = None) -> BytesToTokensResult: ...

def collapse_lengths(inner: ArrayLike, outer: ArrayLike) -> Array: ...

def gather(data: ArrayLike, indices: ArrayLike, *, wrap: bool = False, ignore_index: int | None = None, out: Any = None) -> Array: ...

class GatherPaddingResult(NamedTuple):
    start: Array
    end: Array

def gather_padding(data: ArrayLike, lengths: ArrayLike, *, before: int = 1, after: int | None = None) -> GatherPaddingResult: ...

class GatherSequencesResult(NamedTuple):
    rows: Array
    picked: Array

def gather_sequences(data: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, out: Any = None) -> GatherSequencesResult: ...

def lengths_max(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_mean(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_min(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_split(lengths: ArrayLike, *, n: int) -> Array: ...

def lengths_sum(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_to_cu_seqlens(lengths: ArrayLike) -> Array: ...

def lengths_to_mask(lengths: ArrayLike, *, max_length: int | None = None, side: Literal['right', 'left'] = 'right') -> Array: ...

def lengths_to_offsets(lengths: ArrayLike) -> Array: ...

def lengths_to_positions(lengths: ArrayLike) -> Array: ...

def lengths_to_ranges(lengths: ArrayLike) -> Array: ...

def lengths_to_segment_ids(lengths: ArrayLike) -> Array: ...

def lengths_to_shape(lengths: ArrayLike) -> Array: ...

def lengths_to_weights(lengths: ArrayLike, *, power: float = 0.5) -> Array: ...

def offsets_to_lengths(offsets: ArrayLike) -> Array: ...

def pack_by_time(data: ArrayLike, lengths: ArrayLike, *, max_length: int | None = None, value: Scalar = 0, out: Any = None) -> Array: ...

class PackRowsResult(NamedTuple):
    packed: Array
    segment_ids: Array
    position_ids: Array
    sources: Array
    piece_lengths: Array
    pieces: Array

def pack_rows(data: ArrayLike, lengths: ArrayLike, *, capacity: int, strategy: Literal['best_fit', 'first_fit', 'concat'] = 'best_fit', value: Scalar = 0) -> PackRowsResult: ...

class PackSequenceResult(NamedTuple):
    rows: Array
    batch_sizes: Array
    order: Array

def pack_sequence(data: ArrayLike, lengths: ArrayLike) -> PackSequenceResult: ...

def packed_cu_seqlens(piece_lengths: ArrayLike, pieces: ArrayLike, *, capacity: int) -> Array: ...

class PadResult(NamedTuple):
    padded: Array
    mask: Array

def pad(data: ArrayLike, lengths: ArrayLike, *, max_length: int | None = None, value: Scalar = 0, side: Literal['right', 'left'] = 'right', truncate: bool = False, multiple_of: int = 1, out: Any = None) -> PadResult: ...

class PadEmptyResult(NamedTuple):
    rows: Array
    filled: Array

def pad_empty(data: ArrayLike, lengths: ArrayLike, *, value: Scalar = 0) -> PadEmptyResult: ...

def pad_lengths(data: ArrayLike, lengths: ArrayLike, *, target_length: int, value: Scalar = 0) -> Array: ...

class RemovePaddingResult(NamedTuple):
    rows: Array
    kept: Array

def remove_padding(data: ArrayLike, lengths: ArrayLike, *, before: int = 1, after: int | None = None) -> RemovePaddingResult: ...

def same_lengths(lengths: ArrayLike, other: ArrayLike) -> None: ...

def same_rows(data: ArrayLike, other: ArrayLike) -> None: ...

def segment_ids_to_lengths(ids: ArrayLike, *, num_segments: int | None = None) -> Array: ...

def segment_ids_to_ranges(ids: ArrayLike, *, num_segments: int | None = None) -> Array: ...

def sequence_mask(x: ArrayLike, bounds: ArrayLike | None = None, *, mode: Literal['sequence', 'window', 'upper', 'lower', 'upper_diagonal', 'lower_diagonal'], axis: int = 1, batch: int | None = None, repeat_from_axis: int | None = None, radius: int = 10, fill: Scalar = -inf) -> Array: ...

def sparse_lengths_sum(table: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, ignore_index: int | None = None, empty: Scalar = 0) -> Array: ...

class SplitSequencesResult(NamedTuple):
    rows: Array
    pieces: Array
    counts: Array

def split_sequences(data: ArrayLike, lengths: ArrayLike, *, chunk: int, stride: int | None = None) -> SplitSequencesResult: ...

class TruncateResult(NamedTuple):
    rows: Array
    kept: Array

def truncate(data: ArrayLike, lengths: ArrayLike, *, max_length: int, keep: Literal['head', 'tail'] = 'head') -> TruncateResult: ...

def unpack_by_time(packed: ArrayLike, lengths: ArrayLike, *, out: Any = None) -> Array: ...

class UnpackRowsResult(NamedTuple):
    data: Array
    lengths: Array

def unpack_rows(packed: ArrayLike, sources: ArrayLike, piece_lengths: ArrayLike, pieces: ArrayLike, *, num_sequences: int | None = None) -> UnpackRowsResult: ...

class UnpackSequenceResult(NamedTuple):
    data: Array
    lengths: Array

def unpack_sequence(rows: ArrayLike, batch_sizes: ArrayLike, order: ArrayLike) -> UnpackSequenceResult: ...

def unpad(padded: ArrayLike, lengths: ArrayLike, *, side: Literal['right', 'left'] = 'right', out: Any = None) -> Array: ...

def zero_after_length(x: ArrayLike, lengths: ArrayLike) -> Array: ...
