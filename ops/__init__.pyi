"""The ops, as type checkers see them. Written by `python -m seqflow.stubs`; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

Array = np.ndarray[Any, Any]
Scalar = bool | int | float | np.generic

class AppendTokenResult(NamedTuple):
    rows: Array
    longer: Array

def append_token(data: ArrayLike, lengths: ArrayLike, *, token: Scalar) -> AppendTokenResult: ...

class BytesToTokensResult(NamedTuple):
    tokens: Array
    sizes: Array

def bytes_to_tokens(data: ArrayLike, lengths: ArrayLike, *, offset: int = 0, begin: int | None = None, end: int | None = None) -> BytesToTokensResult: ...

def cast(x: ArrayLike, *, dtype: DTypeLike) -> Array: ...

def concat(tensors: Sequence[ArrayLike], *, axis: int = 0) -> Array: ...

class DropoutResult(NamedTuple):
    y: Array
    kept: Array

def dropout(x: ArrayLike, *, ratio: float = 0.5, seed: int) -> DropoutResult: ...

def expand_dims(x: ArrayLike, *, axis: int | Sequence[int]) -> Array: ...

def fc(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Array: ...

def gather(data: ArrayLike, indices: ArrayLike, *, wrap: bool = False, ignore_index: int | None = None, out: Any = None) -> Array: ...

def gather_axis(data: ArrayLike, indices: ArrayLike, *, axis: int, wrap: bool = False) -> Array: ...

class GatherSequencesResult(NamedTuple):
    rows: Array
    picked: Array

def gather_sequences(data: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, out: Any = None) -> GatherSequencesResult: ...

def layer_norm(x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, *, epsilon: float = 1e-05) -> Array: ...

def lengths_max(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_mean(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_min(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_sum(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_to_offsets(lengths: ArrayLike) -> Array: ...

def lengths_to_segment_ids(lengths: ArrayLike) -> Array: ...

def matmul(a: ArrayLike, b: ArrayLike) -> Array: ...

class PackRowsResult(NamedTuple):
    packed: Array
    segment_ids: Array
    position_ids: Array
    sources: Array
    piece_lengths: Array
    pieces: Array

def pack_rows(data: ArrayLike, lengths: ArrayLike, *, capacity: int, strategy: Literal['best_fit', 'first_fit', 'concat'] = 'best_fit', value: Scalar = 0) -> PackRowsResult: ...

class PadResult(NamedTuple):
    padded: Array
    mask: Array

def pad(data: ArrayLike, lengths: ArrayLike, *, max_length: int | None = None, value: Scalar = 0, side: Literal['right', 'left'] = 'right', truncate: bool = False, multiple_of: int = 1, out: Any = None) -> PadResult: ...

def reduce_max(x: ArrayLike, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, empty: Scalar = 0) -> Array: ...

def reduce_mean(x: ArrayLike, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, empty: Scalar = 0) -> Array: ...

def reduce_sum(x: ArrayLike, *, axes: int | Sequence[int] | None = None, keepdims: bool = False, empty: Scalar = 0) -> Array: ...

def reshape(x: ArrayLike, shape: ArrayLike) -> Array: ...

def same_lengths(lengths: ArrayLike, other: ArrayLike) -> None: ...

def slice_axes(x: ArrayLike, *, starts: int | Sequence[int], stops: int | Sequence[int], steps: int | Sequence[int] | None = None, axes: int | Sequence[int] | None = None) -> Array: ...

def softmax(x: ArrayLike) -> Array: ...

def sparse_lengths_sum(table: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, ignore_index: int | None = None, empty: Scalar = 0) -> Array: ...

def split(x: ArrayLike, *, parts: int | Sequence[int], axis: int = 0) -> Array: ...

class SplitSequencesResult(NamedTuple):
    rows: Array
    pieces: Array
    counts: Array

def split_sequences(data: ArrayLike, lengths: ArrayLike, *, chunk: int, stride: int | None = None) -> SplitSequencesResult: ...

def square_root_divide(data: ArrayLike, scale: ArrayLike) -> Array: ...

def squeeze(x: ArrayLike, *, axis: int | Sequence[int] | None = None) -> Array: ...

def tile(x: ArrayLike, *, repeats: int | Sequence[int]) -> Array: ...

def transpose(x: ArrayLike, *, perm: int | Sequence[int] | None = None) -> Array: ...

class TruncateResult(NamedTuple):
    rows: Array
    kept: Array

def truncate(data: ArrayLike, lengths: ArrayLike, *, max_length: int, keep: Literal['head', 'tail'] = 'head') -> TruncateResult: ...

class UnpackRowsResult(NamedTuple):
    data: Array
    lengths: Array

def unpack_rows(packed: ArrayLike, sources: ArrayLike, piece_lengths: ArrayLike, pieces: ArrayLike, *, num_sequences: int | None = None) -> UnpackRowsResult: ...

def unpad(padded: ArrayLike, lengths: ArrayLike, *, side: Literal['right', 'left'] = 'right', out: Any = None) -> Array: ...
