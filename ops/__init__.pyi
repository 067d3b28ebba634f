"""The ops, as type checkers see them. Written by `python -m seqflow.stubs`; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray[Any, Any]
Scalar = bool | int | float | np.generic

class AppendTokenResult(NamedTuple):
    rows: Array
    longer: Array

def append_token(data: ArrayLike, lengths: ArrayLike, *, token: Scalar) -> AppendTokenResult: ...

def argsort_within(data: ArrayLike, lengths: ArrayLike, *, descending: bool = False) -> Array: ...

class BooleanMaskResult(NamedTuple):
    rows: Array
    positions: Array

def boolean_mask(data: ArrayLike, mask: ArrayLike) -> BooleanMaskResult: ...

def boolean_mask_lengths(mask: ArrayLike, lengths: ArrayLike) -> Array: ...

def boolean_unmask(values: Sequence[ArrayLike], mask: Sequence[ArrayLike], *, fill: Scalar | None = None) -> Array: ...

class BytesToTokensResult(NamedTuple):
    tokens: Array
    sizes: Array

def bytes_to_tokens(data: ArrayLike, lengths: ArrayLike, *, offset: int = 0, begin: int | None = None, end: int | None = None) -> BytesToTokensResult: ...

class ConcatSequencesResult(NamedTuple):
    rows: Array
    joined: Array

def concat_sequences(data: Sequence[ArrayLike], lengths: Sequence[ArrayLike]) -> ConcatSequencesResult: ...

def context_windows(data: ArrayLike, lengths: ArrayLike, *, before: int, after: int, fill: Scalar = 0) -> Array: ...

class DecodeResult(NamedTuple):
    data: Array
    sizes: Array

def decode(tokens: ArrayLike, lengths: ArrayLike, *, tokenizer: Any, special_tokens: bool = False) -> DecodeResult: ...

def dropout_ids(data: ArrayLike, lengths: ArrayLike, *, ratio: float, replacement: Scalar = 0, seed: int) -> Array: ...

class DropoutSequencesResult(NamedTuple):
    rows: Array
    kept: Array

def dropout_sequences(data: ArrayLike, lengths: ArrayLike, *, ratio: float, replacement: Scalar = 0, seed: int) -> DropoutSequencesResult: ...

class EraseTokensResult(NamedTuple):
    rows: Array
    kept: Array

def erase_tokens(data: ArrayLike, lengths: ArrayLike, *, tokens: Any) -> EraseTokensResult: ...

def expand(x: ArrayLike, lengths: ArrayLike, *, out: Any = None) -> Array: ...

class FilterSequencesResult(NamedTuple):
    rows: Array
    kept: Array

def filter_sequences(data: ArrayLike, keep: ArrayLike, lengths: ArrayLike) -> FilterSequencesResult: ...

def gather(data: ArrayLike, indices: ArrayLike, *, wrap: bool = False, ignore_index: int | None = None, out: Any = None) -> Array: ...

class GatherSequencesResult(NamedTuple):
    rows: Array
    picked: Array

def gather_sequences(data: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, out: Any = None) -> GatherSequencesResult: ...

class InterleaveResult(NamedTuple):
    rows: Array
    joined: Array

def interleave(data: Sequence[ArrayLike], lengths: Sequence[ArrayLike]) -> InterleaveResult: ...

def lengths_max(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_mean(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_min(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_sum(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_to_offsets(lengths: ArrayLike) -> Array: ...

def lengths_to_segment_ids(lengths: ArrayLike) -> Array: ...

class LowerResult(NamedTuple):
    lowered: Array
    sizes: Array

def lower(data: ArrayLike, lengths: ArrayLike, *, errors: Literal['strict', 'replace'] = 'strict') -> LowerResult: ...

class MaskSequencesResult(NamedTuple):
    rows: Array
    kept: Array

def mask_sequences(data: ArrayLike, mask: ArrayLike, lengths: ArrayLike) -> MaskSequencesResult: ...

def ngrams(data: ArrayLike, lengths: ArrayLike, *, n: int, fill: Scalar = 0) -> Array: ...

class NormalizeResult(NamedTuple):
    normal: Array
    sizes: Array

def normalize(data: ArrayLike, lengths: ArrayLike, *, form: Literal['NFC', 'NFKC', 'NFD', 'NFKD'] = 'NFC', errors: Literal['strict', 'replace'] = 'strict') -> NormalizeResult: ...

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

class PrependTokenResult(NamedTuple):
    rows: Array
    longer: Array

def prepend_token(data: ArrayLike, lengths: ArrayLike, *, token: Scalar) -> PrependTokenResult: ...

class RepeatSequencesResult(NamedTuple):
    rows: Array
    sizes: Array

def repeat_sequences(data: ArrayLike, repeats: ArrayLike, lengths: ArrayLike) -> RepeatSequencesResult: ...

class ReshapeSequencesResult(NamedTuple):
    rows: Array
    reshaped: Array

def reshape_sequences(data: ArrayLike, lengths: ArrayLike, *, width: int) -> ReshapeSequencesResult: ...

def reverse_packed(data: ArrayLike, lengths: ArrayLike) -> Array: ...

def reverse_sequences(data: ArrayLike, lengths: ArrayLike) -> Array: ...

def same_lengths(lengths: ArrayLike, other: ArrayLike) -> None: ...

def scatter_sequences(x: ArrayLike, updates: ArrayLike, indices: ArrayLike, lengths: ArrayLike) -> Array: ...

def shift(data: ArrayLike, lengths: ArrayLike, *, by: int, fill: Scalar = 0) -> Array: ...

def shuffle_within(data: ArrayLike, lengths: ArrayLike, *, seed: int) -> Array: ...

class SliceSequencesResult(NamedTuple):
    rows: Array
    kept: Array

def slice_sequences(data: ArrayLike, starts: ArrayLike, sizes: ArrayLike, lengths: ArrayLike, *, clip: bool = False) -> SliceSequencesResult: ...

def sort_within(data: ArrayLike, lengths: ArrayLike, *, descending: bool = False) -> Array: ...

def sparse_lengths_sum(table: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, ignore_index: int | None = None, empty: Scalar = 0) -> Array: ...

class SplitSequencesResult(NamedTuple):
    rows: Array
    pieces: Array
    counts: Array

def split_sequences(data: ArrayLike, lengths: ArrayLike, *, chunk: int, stride: int | None = None) -> SplitSequencesResult: ...

class SplitWordsResult(NamedTuple):
    words: Array
    sizes: Array
    counts: Array

def split_words(data: ArrayLike, lengths: ArrayLike, *, pattern: str | None = None, errors: Literal['strict', 'replace'] = 'strict') -> SplitWordsResult: ...

class TokenizeResult(NamedTuple):
    tokens: Array
    sizes: Array

def tokenize(data: ArrayLike, lengths: ArrayLike, *, tokenizer: Any, special_tokens: bool = True, errors: Literal['strict', 'replace'] = 'strict') -> TokenizeResult: ...

class TokensToBytesResult(NamedTuple):
    data: Array
    sizes: Array

def tokens_to_bytes(tokens: ArrayLike, lengths: ArrayLike, *, offset: int = 0) -> TokensToBytesResult: ...

def train_tokenizer(data: ArrayLike, lengths: ArrayLike, *, vocabulary_size: int, min_frequency: int = 2, special_tokens: Any = (), errors: Literal['strict', 'replace'] = 'strict') -> Array: ...

class TrimDatasetResult(NamedTuple):
    rows: Array
    kept: Array

def trim_dataset(data: ArrayLike, lengths: ArrayLike, *, multiple_of: int) -> TrimDatasetResult: ...

class TruncateResult(NamedTuple):
    rows: Array
    kept: Array

def truncate(data: ArrayLike, lengths: ArrayLike, *, max_length: int, keep: Literal['head', 'tail'] = 'head') -> TruncateResult: ...

class UniqueWithinResult(NamedTuple):
    rows: Array
    counts: Array
    kept: Array

def unique_within(data: ArrayLike, lengths: ArrayLike, *, order: Literal['sorted', 'first'] = 'sorted') -> UniqueWithinResult: ...

class UnpackRowsResult(NamedTuple):
    data: Array
    lengths: Array

def unpack_rows(packed: ArrayLike, sources: ArrayLike, piece_lengths: ArrayLike, pieces: ArrayLike, *, num_sequences: int | None = None) -> UnpackRowsResult: ...

def unpad(padded: ArrayLike, lengths: ArrayLike, *, side: Literal['right', 'left'] = 'right', out: Any = None) -> Array: ...
