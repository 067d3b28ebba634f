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

class BidirectionalGruResult(NamedTuple):
    h: Array
    h_last: Array

def bidirectional_gru(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, w_ih_reverse: ArrayLike, w_hh_reverse: ArrayLike, bias_ih: ArrayLike | None = None, bias_hh: ArrayLike | None = None, bias_ih_reverse: ArrayLike | None = None, bias_hh_reverse: ArrayLike | None = None, h0: ArrayLike | None = None, *, linear_before_reset: bool = True) -> BidirectionalGruResult: ...

class BidirectionalLstmResult(NamedTuple):
    h: Array
    h_last: Array
    c_last: Array

def bidirectional_lstm(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, w_ih_reverse: ArrayLike, w_hh_reverse: ArrayLike, bias: ArrayLike | None = None, bias_reverse: ArrayLike | None = None, h0: ArrayLike | None = None, c0: ArrayLike | None = None) -> BidirectionalLstmResult: ...

class BidirectionalRnnResult(NamedTuple):
    h: Array
    h_last: Array

def bidirectional_rnn(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, w_ih_reverse: ArrayLike, w_hh_reverse: ArrayLike, bias: ArrayLike | None = None, bias_reverse: ArrayLike | None = None, h0: ArrayLike | None = None, *, nonlinearity: Literal['tanh', 'relu'] = 'tanh') -> BidirectionalRnnResult: ...

class BytesToTokensResult(NamedTuple):
    tokens: Array
    sizes: Array

def bytes_to_tokens(data: ArrayLike, lengths: ArrayLike, *, offset: int = 0, begin: int | None = None, end: int | None = None) -> BytesToTokensResult: ...

class CtcGreedyDecodeResult(NamedTuple):
    labels: Array
    counts: Array

def ctc_greedy_decode(scores: ArrayLike, lengths: ArrayLike, *, blank: int = 0, merge_repeated: bool = True) -> CtcGreedyDecodeResult: ...

def gather(data: ArrayLike, indices: ArrayLike, *, wrap: bool = False, ignore_index: int | None = None, out: Any = None) -> Array: ...

class GatherSequencesResult(NamedTuple):
    rows: Array
    picked: Array

def gather_sequences(data: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, out: Any = None) -> GatherSequencesResult: ...

class GruResult(NamedTuple):
    h: Array
    h_last: Array

def gru(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, bias_ih: ArrayLike | None = None, bias_hh: ArrayLike | None = None, h0: ArrayLike | None = None, *, linear_before_reset: bool = True, reverse: bool = False) -> GruResult: ...

def lengths_max(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_mean(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_min(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_sum(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_to_offsets(lengths: ArrayLike) -> Array: ...

def lengths_to_segment_ids(lengths: ArrayLike) -> Array: ...

class LstmResult(NamedTuple):
    h: Array
    h_last: Array
    c_last: Array

def lstm(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, bias: ArrayLike | None = None, h0: ArrayLike | None = None, c0: ArrayLike | None = None, *, gate_order: Literal['ifgo', 'ifog'] = 'ifgo', forget_bias: float = 0.0, reverse: bool = False) -> LstmResult: ...

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

class RnnResult(NamedTuple):
    h: Array
    h_last: Array

def rnn(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, bias: ArrayLike | None = None, h0: ArrayLike | None = None, *, nonlinearity: Literal['tanh', 'relu'] = 'tanh', reverse: bool = False) -> RnnResult: ...

def same_lengths(lengths: ArrayLike, other: ArrayLike) -> None: ...

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

class UnpackRowsResult(NamedTuple):
    data: Array
    lengths: Array

def unpack_rows(packed: ArrayLike, sources: ArrayLike, piece_lengths: ArrayLike, pieces: ArrayLike, *, num_sequences: int | None = None) -> UnpackRowsResult: ...

def unpad(padded: ArrayLike, lengths: ArrayLike, *, side: Literal['right', 'left'] = 'right', out: Any = None) -> Array: ...
