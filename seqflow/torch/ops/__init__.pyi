"""The ops on tensors, as type checkers see them. Written by `python -m tools.stubs`; do not edit."""

import builtins
import collections.abc
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

Scalar = builtins.bool | int | float
Fill = Scalar
DType = torch.dtype | np.dtype[Any] | str

def register_all() -> None: ...

def abs(x: Tensor) -> Tensor: ...

def acos(x: Tensor) -> Tensor: ...

def acosh(x: Tensor) -> Tensor: ...

def add(x: Tensor, y: Tensor, *, alpha: Scalar = 1) -> Tensor: ...

class AddPaddingResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def add_padding(data: Tensor, lengths: Tensor, start: Tensor | None = None, end: Tensor | None = None, *, before: int = 1, after: int | None = None) -> AddPaddingResult: ...

class AppendTokenResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def append_token(data: Tensor, lengths: Tensor, *, token: Fill) -> AppendTokenResult: ...

def argsort_within(data: Tensor, lengths: Tensor, *, descending: builtins.bool = False) -> Tensor: ...

def asin(x: Tensor) -> Tensor: ...

def asinh(x: Tensor) -> Tensor: ...

def atan(x: Tensor) -> Tensor: ...

def atan2(x: Tensor, y: Tensor) -> Tensor: ...

def atanh(x: Tensor) -> Tensor: ...

class AttentionWithinResult(NamedTuple):
    out: Tensor
    lse: Tensor

def attention_within(q: Tensor, lengths: Tensor, k: Tensor, v: Tensor, kv_lengths: Tensor | None = None, slopes: Tensor | None = None, *, scale: float | None = None, before: int | None = None, after: int | None = None, align: Literal['start', 'end'] | None = None, softcap: float | None = None) -> AttentionWithinResult: ...

class AttentionWithinBackwardResult(NamedTuple):
    grad_q: Tensor
    grad_k: Tensor
    grad_v: Tensor
    grad_slopes: Tensor

def attention_within_backward(q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, d_out: Tensor, d_lse: Tensor, lengths: Tensor, kv_lengths: Tensor | None = None, slopes: Tensor | None = None, *, scale: float | None = None, before: int | None = None, after: int | None = None, align: Literal['start', 'end'] | None = None, softcap: float | None = None) -> AttentionWithinBackwardResult: ...

def batch_bucket_one_hot(x: Tensor, boundaries: Tensor, lengths: Tensor, *, dtype: DType = ...) -> Tensor: ...

def batch_bucketize(x: Tensor, boundaries: Tensor, columns: Tensor, lengths: Tensor, *, nan: int | None = None) -> Tensor: ...

def batch_dense_to_sparse(dense: Tensor, indices: Tensor, lengths: Tensor) -> Tensor: ...

def batch_one_hot(x: Tensor, values: Tensor, lengths: Tensor, *, dtype: DType = ...) -> Tensor: ...

def batch_sparse_to_dense(values: Tensor, indices: Tensor, lengths: Tensor, *, width: int, fill: Fill = 0) -> Tensor: ...

class BidirectionalGruResult(NamedTuple):
    h: Tensor
    h_last: Tensor

def bidirectional_gru(x: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, w_ih_reverse: Tensor, w_hh_reverse: Tensor, bias_ih: Tensor | None = None, bias_hh: Tensor | None = None, bias_ih_reverse: Tensor | None = None, bias_hh_reverse: Tensor | None = None, h0: Tensor | None = None, *, linear_before_reset: builtins.bool = True) -> BidirectionalGruResult: ...

class BidirectionalGruBackwardResult(NamedTuple):
    grad_x: Tensor
    grad_w_ih: Tensor
    grad_w_hh: Tensor
    grad_w_ih_reverse: Tensor
    grad_w_hh_reverse: Tensor
    grad_bias_ih: Tensor
    grad_bias_hh: Tensor
    grad_bias_ih_reverse: Tensor
    grad_bias_hh_reverse: Tensor
    grad_h0: Tensor

def bidirectional_gru_backward(x: Tensor, h: Tensor, d_h: Tensor, d_h_last: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, w_ih_reverse: Tensor, w_hh_reverse: Tensor, bias_ih: Tensor | None = None, bias_hh: Tensor | None = None, bias_ih_reverse: Tensor | None = None, bias_hh_reverse: Tensor | None = None, h0: Tensor | None = None, *, linear_before_reset: builtins.bool = True) -> BidirectionalGruBackwardResult: ...

class BidirectionalLstmResult(NamedTuple):
    h: Tensor
    h_last: Tensor
    c_last: Tensor

def bidirectional_lstm(x: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, w_ih_reverse: Tensor, w_hh_reverse: Tensor, bias: Tensor | None = None, bias_reverse: Tensor | None = None, h0: Tensor | None = None, c0: Tensor | None = None, w_hr: Tensor | None = None, w_hr_reverse: Tensor | None = None, *, proj_size: int | None = None) -> BidirectionalLstmResult: ...

class BidirectionalLstmBackwardResult(NamedTuple):
    grad_x: Tensor
    grad_w_ih: Tensor
    grad_w_hh: Tensor
    grad_w_ih_reverse: Tensor
    grad_w_hh_reverse: Tensor
    grad_bias: Tensor
    grad_bias_reverse: Tensor
    grad_h0: Tensor
    grad_c0: Tensor
    grad_w_hr: Tensor
    grad_w_hr_reverse: Tensor

def bidirectional_lstm_backward(x: Tensor, h: Tensor, d_h: Tensor, d_h_last: Tensor, d_c_last: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, w_ih_reverse: Tensor, w_hh_reverse: Tensor, bias: Tensor | None = None, bias_reverse: Tensor | None = None, h0: Tensor | None = None, c0: Tensor | None = None, w_hr: Tensor | None = None, w_hr_reverse: Tensor | None = None, *, proj_size: int | None = None) -> BidirectionalLstmBackwardResult: ...

class BidirectionalRnnResult(NamedTuple):
    h: Tensor
    h_last: Tensor

def bidirectional_rnn(x: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, w_ih_reverse: Tensor, w_hh_reverse: Tensor, bias: Tensor | None = None, bias_reverse: Tensor | None = None, h0: Tensor | None = None, *, nonlinearity: Literal['tanh', 'relu'] = 'tanh') -> BidirectionalRnnResult: ...

class BidirectionalRnnBackwardResult(NamedTuple):
    grad_x: Tensor
    grad_w_ih: Tensor
    grad_w_hh: Tensor
    grad_w_ih_reverse: Tensor
    grad_w_hh_reverse: Tensor
    grad_bias: Tensor
    grad_bias_reverse: Tensor
    grad_h0: Tensor

def bidirectional_rnn_backward(x: Tensor, h: Tensor, d_h: Tensor, d_h_last: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, w_ih_reverse: Tensor, w_hh_reverse: Tensor, bias: Tensor | None = None, bias_reverse: Tensor | None = None, h0: Tensor | None = None, *, nonlinearity: Literal['tanh', 'relu'] = 'tanh') -> BidirectionalRnnBackwardResult: ...

def bitwise_and(x: Tensor, y: Tensor) -> Tensor: ...

def bitwise_not(x: Tensor) -> Tensor: ...

def bitwise_or(x: Tensor, y: Tensor) -> Tensor: ...

def bitwise_xor(x: Tensor, y: Tensor) -> Tensor: ...

def bool(x: Tensor) -> Tensor: ...

class BooleanMaskResult(NamedTuple):
    rows: Tensor
    positions: Tensor

def boolean_mask(data: Tensor, mask: Tensor) -> BooleanMaskResult: ...

def boolean_mask_lengths(mask: Tensor, lengths: Tensor) -> Tensor: ...

def boolean_unmask(values: collections.abc.Sequence[Tensor], mask: collections.abc.Sequence[Tensor], *, fill: Fill | None = None) -> Tensor: ...

def broadcast_like(x: Tensor, like: Tensor) -> Tensor: ...

def bucketize(x: Tensor, boundaries: Tensor, *, nan: int | None = None) -> Tensor: ...

class BytesToTokensResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def bytes_to_tokens(data: Tensor, lengths: Tensor, *, offset: int = 0, begin: int | None = None, end: int | None = None) -> BytesToTokensResult: ...

class CasefoldResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def casefold(data: Tensor, lengths: Tensor, *, errors: Literal['strict', 'replace'] = 'strict') -> CasefoldResult: ...

def cast(x: Tensor, *, dtype: DType) -> Tensor: ...

def cast_like(x: Tensor, like: Tensor) -> Tensor: ...

def ceil(x: Tensor) -> Tensor: ...

def cell_numbers(like: Tensor) -> Tensor: ...

def clip(x: Tensor, low: Tensor, high: Tensor) -> Tensor: ...

def collapse_lengths(inner: Tensor, outer: Tensor) -> Tensor: ...

class CombinationsWithinResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def combinations_within(lengths: Tensor, *, k: int = 2, replacement: builtins.bool = False) -> CombinationsWithinResult: ...

def concat(tensors: collections.abc.Sequence[Tensor], *, axis: int = 0) -> Tensor: ...

class ConcatSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def concat_sequences(data: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor]) -> ConcatSequencesResult: ...

def connected_components(pairs: Tensor, *, num_rows: int) -> Tensor: ...

def contains_text(data: Tensor, lengths: Tensor, *, pattern: str | None = None, regex: str | None = None, ignore_case: builtins.bool = False, errors: Literal['strict', 'replace'] = 'strict') -> Tensor: ...

def context_windows(data: Tensor, lengths: Tensor, *, before: int, after: int, fill: Fill = 0) -> Tensor: ...

def cos(x: Tensor) -> Tensor: ...

def cosh(x: Tensor) -> Tensor: ...

def count_text(data: Tensor, lengths: Tensor, *, pattern: str | None = None, regex: str | None = None, ignore_case: builtins.bool = False, errors: Literal['strict', 'replace'] = 'strict') -> Tensor: ...

def crf_log_likelihood(scores: Tensor, states: Tensor, lengths: Tensor, transitions: Tensor) -> Tensor: ...

class CrfLogLikelihoodBackwardResult(NamedTuple):
    grad_scores: Tensor
    grad_transitions: Tensor

def crf_log_likelihood_backward(d: Tensor, scores: Tensor, states: Tensor, lengths: Tensor, transitions: Tensor) -> CrfLogLikelihoodBackwardResult: ...

class CrossFeaturesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def cross_features(data: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor], *, num_buckets: int, seed: int = 0) -> CrossFeaturesResult: ...

class CtcGreedyDecodeResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def ctc_greedy_decode(scores: Tensor, lengths: Tensor, *, blank: int = 0, merge_repeated: builtins.bool = True) -> CtcGreedyDecodeResult: ...

def cumsum_within(data: Tensor, lengths: Tensor, *, reverse: builtins.bool = False, exclusive: builtins.bool = False) -> Tensor: ...

class DenseToIdListResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def dense_to_id_list(dense: Tensor) -> DenseToIdListResult: ...

class DenseToSparseResult(NamedTuple):
    values: Tensor
    indices: Tensor

def dense_to_sparse(dense: Tensor) -> DenseToSparseResult: ...

def dequantize_rowwise(table: Tensor, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Tensor: ...

def discounted_sum_within(x: Tensor, discount: Tensor, lengths: Tensor, last: Tensor | None = None, *, gamma: float = 1.0, reverse: builtins.bool = True) -> Tensor: ...

class DistinctSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    row: Tensor
    first: Tensor

def distinct_sequences(data: Tensor, lengths: Tensor, keys: Tensor | None = None) -> DistinctSequencesResult: ...

def div(x: Tensor, y: Tensor) -> Tensor: ...

class DropoutResult(NamedTuple):
    y: Tensor
    kept: Tensor

def dropout(x: Tensor, *, ratio: float = 0.5, seed: int) -> DropoutResult: ...

def dropout_ids(data: Tensor, lengths: Tensor, *, ratio: float, replacement: Scalar = 0, seed: int) -> Tensor: ...

class DropoutSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def dropout_sequences(data: Tensor, lengths: Tensor, *, ratio: float, replacement: Scalar = 0, seed: int) -> DropoutSequencesResult: ...

def edit_distance(p: Tensor, q: Tensor, lengths: Tensor, other: Tensor, *, normalize: builtins.bool = False) -> Tensor: ...

def encode(ids: Tensor, vocabulary: Tensor, *, on_unknown: Literal['zero', 'raise'] = 'zero') -> Tensor: ...

def encode_strings(data: Tensor, lengths: Tensor, vocabulary: Tensor, *, on_unknown: Literal['zero', 'raise'] = 'zero') -> Tensor: ...

def ends_with(data: Tensor, lengths: Tensor, *, pattern: str, errors: Literal['strict', 'replace'] = 'strict') -> Tensor: ...

def equal(x: Tensor, y: Tensor) -> Tensor: ...

def erf(x: Tensor) -> Tensor: ...

def exp(x: Tensor) -> Tensor: ...

def expand(x: Tensor, lengths: Tensor, *, total: int | None = None) -> Tensor: ...

def expand_dims(x: Tensor, *, axis: int | collections.abc.Sequence[int]) -> Tensor: ...

class ExpandPlaceholdersResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    sources: Tensor

def expand_placeholders(tokens: Tensor, sizes: Tensor, images: Tensor, lengths: Tensor, *, placeholder: int | collections.abc.Sequence[int]) -> ExpandPlaceholdersResult: ...

def expm1(x: Tensor) -> Tensor: ...

def expression(*operands: Tensor, expr: Any) -> Tensor: ...

def extreme_shares(data: Tensor, ids: Tensor, extremes: Tensor) -> Tensor: ...

def fc(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor: ...

class FillInMiddleResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def fill_in_middle(tokens: Tensor, lengths: Tensor, cuts: Tensor | None = None, *, prefix: int, suffix: int, middle: int, seed: int, rate: float = 1.0, spm_rate: float = 0.5, characters: builtins.bool = False) -> FillInMiddleResult: ...

class FilterSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def filter_sequences(data: Tensor, keep: Tensor, lengths: Tensor) -> FilterSequencesResult: ...

def find(x: Tensor, queries: Tensor, *, missing: int = -1) -> Tensor: ...

def find_duplicates(x: Tensor) -> Tensor: ...

def first_of_equal(keys: collections.abc.Sequence[Tensor]) -> Tensor: ...

def flatten_rows(x: Tensor) -> Tensor: ...

def float16(x: Tensor) -> Tensor: ...

def float32(x: Tensor) -> Tensor: ...

def float64(x: Tensor) -> Tensor: ...

def floor(x: Tensor) -> Tensor: ...

def floor_divide(x: Tensor, y: Tensor) -> Tensor: ...

def fmod(x: Tensor, y: Tensor) -> Tensor: ...

def gather(data: Tensor, indices: Tensor, *, wrap: builtins.bool = False, ignore_index: int | None = None) -> Tensor: ...

def gather_axis(data: Tensor, indices: Tensor, *, axis: int, wrap: builtins.bool = False) -> Tensor: ...

def gather_by_key(shards: collections.abc.Sequence[Tensor], keys: Tensor) -> Tensor: ...

def gather_cells(data: Tensor, indices: Tensor, lengths: Tensor) -> Tensor: ...

def gather_columns_within(data: Tensor, positions: Tensor, lengths: Tensor) -> Tensor: ...

def gather_inside(data: Tensor, ids: Tensor) -> Tensor: ...

def gather_matmul(x: Tensor, weight: Tensor, ids: Tensor, *, transpose: builtins.bool = False) -> Tensor: ...

class GatherPaddingResult(NamedTuple):
    start: Tensor
    end: Tensor

def gather_padding(data: Tensor, lengths: Tensor, *, before: int = 1, after: int | None = None) -> GatherPaddingResult: ...

def gather_quantized(table: Tensor, indices: Tensor, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Tensor: ...

class GatherRangesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def gather_ranges(data: Tensor, ranges: Tensor) -> GatherRangesResult: ...

def gather_ranges_to_dense(data: Tensor, ranges: Tensor, keys: Tensor | None = None, *, lengths: int | collections.abc.Sequence[int], on_mismatch: Literal['zero', 'raise'] = 'zero') -> list[Tensor]: ...

class GatherSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def gather_sequences(data: Tensor, indices: Tensor, lengths: Tensor) -> GatherSequencesResult: ...

def gather_within(data: Tensor, positions: Tensor, lengths: Tensor, picked: Tensor, *, fill: Fill | None = None, wrap: builtins.bool = False) -> Tensor: ...

def gather_within_padded(data: Tensor, positions: Tensor, lengths: Tensor, *, fill: Fill | None = None, wrap: builtins.bool = False) -> Tensor: ...

def greater(x: Tensor, y: Tensor) -> Tensor: ...

def greater_equal(x: Tensor, y: Tensor) -> Tensor: ...

class GroupOrderResult(NamedTuple):
    order: Tensor
    lengths: Tensor
    back: Tensor

def group_order(ids: Tensor, *, num_segments: int | None = None, outside: Literal['raise', 'drop'] = 'raise') -> GroupOrderResult: ...

class GruResult(NamedTuple):
    h: Tensor
    h_last: Tensor

def gru(x: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, bias_ih: Tensor | None = None, bias_hh: Tensor | None = None, h0: Tensor | None = None, *, linear_before_reset: builtins.bool = True, reverse: builtins.bool = False) -> GruResult: ...

class GruBackwardResult(NamedTuple):
    grad_x: Tensor
    grad_w_ih: Tensor
    grad_w_hh: Tensor
    grad_bias_ih: Tensor
    grad_bias_hh: Tensor
    grad_h0: Tensor

def gru_backward(x: Tensor, h: Tensor, d_h: Tensor, d_h_last: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, bias_ih: Tensor | None = None, bias_hh: Tensor | None = None, h0: Tensor | None = None, *, linear_before_reset: builtins.bool = True, reverse: builtins.bool = False) -> GruBackwardResult: ...

def hash(x: Tensor, *, seed: int = 0) -> Tensor: ...

def hash_indices(x: Tensor, *, num_buckets: int, seed: int = 0, method: Literal['splitmix', 'caffe2'] = 'splitmix') -> Tensor: ...

class HashNgramsResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def hash_ngrams(tokens: Tensor, lengths: Tensor, *, n: int = 13, seed: int = 0) -> HashNgramsResult: ...

def hash_strings(data: Tensor, lengths: Tensor, *, num_buckets: int, seed: int = 0) -> Tensor: ...

def hash_text(data: Tensor, lengths: Tensor, *, seed: int = 0) -> Tensor: ...

def image_grids(sizes: Tensor, *, patch: int, merge: int, min_pixels: int, max_pixels: int) -> Tensor: ...

def image_ids(starts: Tensor, extents: Tensor, images: Tensor, lengths: Tensor) -> Tensor: ...

class ImageSpansResult(NamedTuple):
    starts: Tensor
    extents: Tensor

def image_spans(tokens: Tensor, sizes: Tensor, images: Tensor, lengths: Tensor, *, placeholder: int | collections.abc.Sequence[int]) -> ImageSpansResult: ...

def int16(x: Tensor) -> Tensor: ...

def int32(x: Tensor) -> Tensor: ...

def int64(x: Tensor) -> Tensor: ...

def int8(x: Tensor) -> Tensor: ...

class InterleaveResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def interleave(data: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor]) -> InterleaveResult: ...

def isfinite(x: Tensor) -> Tensor: ...

def isin(data: Tensor, values: Tensor, *, invert: builtins.bool = False) -> Tensor: ...

def isin_within(data: Tensor, lengths: Tensor, other: Tensor, other_lengths: Tensor, *, invert: builtins.bool = False) -> Tensor: ...

def isnan(x: Tensor) -> Tensor: ...

def jaccard(p: Tensor, q: Tensor, lengths: Tensor, other: Tensor) -> Tensor: ...

class JoinTextsResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def join_texts(data: Tensor, lengths: Tensor, counts: Tensor, separators: Tensor | None = None, separator_lengths: Tensor | None = None, *, separator: str = '') -> JoinTextsResult: ...

def key_split(keys: Tensor, *, num_keys: int) -> list[Tensor]: ...

class KeyedConcatResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    keys: Tensor
    counts: Tensor

def keyed_concat(data: collections.abc.Sequence[Tensor], keys: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor], counts: collections.abc.Sequence[Tensor]) -> KeyedConcatResult: ...

class KeyedPermuteResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    keys: Tensor

def keyed_permute(data: Tensor, keys: Tensor, lengths: Tensor, counts: Tensor, *, names: int | collections.abc.Sequence[int]) -> KeyedPermuteResult: ...

class KeyedSelectResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    keys: Tensor
    counts: Tensor

def keyed_select(data: Tensor, keys: Tensor, lengths: Tensor, counts: Tensor, *, names: int | collections.abc.Sequence[int]) -> KeyedSelectResult: ...

class KeyedSplitResult(NamedTuple):
    values: list[Tensor]
    lengths: list[Tensor]

def keyed_split(data: Tensor, keys: Tensor, lengths: Tensor, counts: Tensor, *, names: int | collections.abc.Sequence[int], duplicates: Literal['raise', 'join'] = 'raise') -> KeyedSplitResult: ...

def labels_of_tokens(label_starts: Tensor, label_ends: Tensor, labels: Tensor, label_counts: Tensor, starts: Tensor, ends: Tensor, counts: Tensor, *, outside: int = 0, inside: int | None = None) -> Tensor: ...

def largest_shares(x: Tensor, largest: Tensor, *, axes: int | collections.abc.Sequence[int] | None = None, keepdims: builtins.bool = False) -> Tensor: ...

def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, epsilon: float = 1e-05) -> Tensor: ...

def lengths_all(data: Tensor, lengths: Tensor, *, empty: builtins.bool = False) -> Tensor: ...

def lengths_any(data: Tensor, lengths: Tensor, *, empty: builtins.bool = False) -> Tensor: ...

def lengths_argmax(data: Tensor, lengths: Tensor) -> Tensor: ...

def lengths_argmin(data: Tensor, lengths: Tensor) -> Tensor: ...

def lengths_first(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

def lengths_last(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

def lengths_logsumexp(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

def lengths_max(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

class LengthsMaxWithArgmaxResult(NamedTuple):
    largest: Tensor
    positions: Tensor

def lengths_max_with_argmax(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> LengthsMaxWithArgmaxResult: ...

def lengths_mean(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

def lengths_median(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

def lengths_min(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

class LengthsMinWithArgminResult(NamedTuple):
    smallest: Tensor
    positions: Tensor

def lengths_min_with_argmin(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> LengthsMinWithArgminResult: ...

def lengths_outer_sum(a: Tensor, b: Tensor, lengths: Tensor) -> Tensor: ...

def lengths_prod(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

class LengthsRangeResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def lengths_range(start: Tensor, stop: Tensor, step: Tensor | None = None, *, inclusive: builtins.bool = False, max_total: int | None = None) -> LengthsRangeResult: ...

class LengthsReducePositionsResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def lengths_reduce_positions(data: Tensor, lengths: Tensor, groups: Tensor, *, how: Literal['sum', 'mean', 'max', 'min', 'prod', 'var', 'sqrt_n'] = 'sum') -> LengthsReducePositionsResult: ...

def lengths_split(lengths: Tensor, *, n: int) -> Tensor: ...

def lengths_sqrt_sum(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

def lengths_std(data: Tensor, lengths: Tensor, *, ddof: int = 0, empty: Scalar = 0) -> Tensor: ...

def lengths_sum(data: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

def lengths_to_cu_seqlens(lengths: Tensor) -> Tensor: ...

def lengths_to_mask(lengths: Tensor, *, max_length: int | None = None, side: Literal['right', 'left'] = 'right') -> Tensor: ...

def lengths_to_offsets(lengths: Tensor) -> Tensor: ...

def lengths_to_positions(lengths: Tensor) -> Tensor: ...

def lengths_to_ranges(lengths: Tensor) -> Tensor: ...

def lengths_to_segment_ids(lengths: Tensor) -> Tensor: ...

def lengths_to_shape(lengths: Tensor) -> Tensor: ...

def lengths_to_weights(lengths: Tensor, *, power: float = 0.5) -> Tensor: ...

class LengthsTopkResult(NamedTuple):
    values: Tensor
    positions: Tensor

def lengths_topk(data: Tensor, lengths: Tensor, *, k: int) -> LengthsTopkResult: ...

def lengths_var(data: Tensor, lengths: Tensor, *, ddof: int = 0, empty: Scalar = 0) -> Tensor: ...

def lengths_weighted_sum(data: Tensor, weights: Tensor, lengths: Tensor, *, empty: Scalar = 0) -> Tensor: ...

def less(x: Tensor, y: Tensor) -> Tensor: ...

def less_equal(x: Tensor, y: Tensor) -> Tensor: ...

def list_numbers(tensors: collections.abc.Sequence[Tensor], *, parts: int) -> list[Tensor]: ...

def log(x: Tensor) -> Tensor: ...

def log10(x: Tensor) -> Tensor: ...

def log1p(x: Tensor) -> Tensor: ...

def log_softmax_within(data: Tensor, lengths: Tensor) -> Tensor: ...

def logaddexp(x: Tensor, y: Tensor) -> Tensor: ...

def logical_and(x: Tensor, y: Tensor) -> Tensor: ...

def logical_not(x: Tensor) -> Tensor: ...

def logical_or(x: Tensor, y: Tensor) -> Tensor: ...

def logical_xor(x: Tensor, y: Tensor) -> Tensor: ...

def longest_common(p: Tensor, q: Tensor, lengths: Tensor, other: Tensor) -> Tensor: ...

class LowerResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def lower(data: Tensor, lengths: Tensor, *, errors: Literal['strict', 'replace'] = 'strict') -> LowerResult: ...

def lshift(x: Tensor, y: Tensor) -> Tensor: ...

class LstmResult(NamedTuple):
    h: Tensor
    h_last: Tensor
    c_last: Tensor

def lstm(x: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor | None = None, h0: Tensor | None = None, c0: Tensor | None = None, w_hr: Tensor | None = None, *, gate_order: Literal['ifgo', 'ifog'] = 'ifgo', forget_bias: float = 0.0, proj_size: int | None = None, reverse: builtins.bool = False) -> LstmResult: ...

class LstmBackwardResult(NamedTuple):
    grad_x: Tensor
    grad_w_ih: Tensor
    grad_w_hh: Tensor
    grad_bias: Tensor
    grad_h0: Tensor
    grad_c0: Tensor
    grad_w_hr: Tensor

def lstm_backward(x: Tensor, h: Tensor, d_h: Tensor, d_h_last: Tensor, d_c_last: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor | None = None, h0: Tensor | None = None, c0: Tensor | None = None, w_hr: Tensor | None = None, *, gate_order: Literal['ifgo', 'ifog'] = 'ifgo', forget_bias: float = 0.0, proj_size: int | None = None, reverse: builtins.bool = False) -> LstmBackwardResult: ...

class MaskSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def mask_sequences(data: Tensor, mask: Tensor, lengths: Tensor) -> MaskSequencesResult: ...

class MaskTokensResult(NamedTuple):
    values: Tensor
    labels: Tensor
    chosen: Tensor

def mask_tokens(tokens: Tensor, lengths: Tensor, words: Tensor | None = None, counts: Tensor | None = None, *, ratio: float, mask: int, vocabulary_size: int, seed: int, random: float = 0.1, keep: float = 0.1, never: int | collections.abc.Sequence[int] = (), ignore: int = -100) -> MaskTokensResult: ...

def matmul(a: Tensor, b: Tensor) -> Tensor: ...

class MatmulBackwardResult(NamedTuple):
    grad_a: Tensor
    grad_b: Tensor

def matmul_backward(d: Tensor, a: Tensor, b: Tensor) -> MatmulBackwardResult: ...

def maximum(x: Tensor, y: Tensor) -> Tensor: ...

def median_within_backward(d: Tensor, data: Tensor, lengths: Tensor) -> Tensor: ...

class MergeDenseFeaturesResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    keys: Tensor

def merge_dense_features(data: Tensor, presence: Tensor, *, feature_ids: int | collections.abc.Sequence[int]) -> MergeDenseFeaturesResult: ...

class MergeIdListsResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def merge_id_lists(data: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor]) -> MergeIdListsResult: ...

class MergeListFeaturesResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    keys: Tensor
    counts: Tensor

def merge_list_features(data: collections.abc.Sequence[Tensor], presence: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor], *, feature_ids: int | collections.abc.Sequence[int]) -> MergeListFeaturesResult: ...

class MergeMapFeaturesResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    value_keys: Tensor
    keys: Tensor
    counts: Tensor

def merge_map_features(data: collections.abc.Sequence[Tensor], value_keys: collections.abc.Sequence[Tensor], presence: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor], *, feature_ids: int | collections.abc.Sequence[int]) -> MergeMapFeaturesResult: ...

class MergeMultiListFeaturesResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    keys: Tensor
    counts: Tensor

def merge_multi_list_features(data: collections.abc.Sequence[Tensor], keys: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor], counts: collections.abc.Sequence[Tensor]) -> MergeMultiListFeaturesResult: ...

class MergeMultiMapFeaturesResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    value_keys: Tensor
    keys: Tensor
    counts: Tensor

def merge_multi_map_features(data: collections.abc.Sequence[Tensor], value_keys: collections.abc.Sequence[Tensor], keys: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor], counts: collections.abc.Sequence[Tensor]) -> MergeMultiMapFeaturesResult: ...

class MergeMultiScalarFeaturesResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    keys: Tensor

def merge_multi_scalar_features(data: collections.abc.Sequence[Tensor], keys: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor]) -> MergeMultiScalarFeaturesResult: ...

class MergeScalarFeaturesResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    keys: Tensor

def merge_scalar_features(data: collections.abc.Sequence[Tensor], presence: collections.abc.Sequence[Tensor], *, feature_ids: int | collections.abc.Sequence[int]) -> MergeScalarFeaturesResult: ...

def minhash(shingles: Tensor, lengths: Tensor, *, num_perm: int = 128, seed: int = 1) -> Tensor: ...

def minimum(x: Tensor, y: Tensor) -> Tensor: ...

def mrope_positions(starts: Tensor, grids: Tensor, images: Tensor, lengths: Tensor, intervals: Tensor | None = None, *, after: Literal['side', 'max'], merge: int = 2) -> Tensor: ...

def mul(x: Tensor, y: Tensor) -> Tensor: ...

def neg(x: Tensor) -> Tensor: ...

def ngram_overlap(tokens: Tensor, known: Tensor, lengths: Tensor, *, n: int = 13, seed: int = 0) -> Tensor: ...

class NgramTextsResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    counts: Tensor

def ngram_texts(data: Tensor, lengths: Tensor, counts: Tensor, *, n: int | collections.abc.Sequence[int], separator: str = ' ', partial: builtins.bool = False) -> NgramTextsResult: ...

def ngrams(data: Tensor, lengths: Tensor, *, n: int, fill: Fill = 0) -> Tensor: ...

def noise(x: Tensor, *, scale: float = 1.0, kind: Literal['normal', 'uniform'] = 'normal', seed: int) -> Tensor: ...

def noise_spans(lengths: Tensor, *, density: float = 0.15, mean_span: float = 3.0, seed: int) -> Tensor: ...

class NormalizeResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def normalize(data: Tensor, lengths: Tensor, *, form: Literal['NFC', 'NFKC', 'NFD', 'NFKD'] = 'NFC', errors: Literal['strict', 'replace'] = 'strict') -> NormalizeResult: ...

class NormalizeOffsetsResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def normalize_offsets(data: Tensor, lengths: Tensor, *, form: Literal['NFC', 'NFKC', 'NFD', 'NFKD'] = 'NFC') -> NormalizeOffsetsResult: ...

def normalize_within(data: Tensor, lengths: Tensor, *, norm: Literal['l1', 'l2'] = 'l2') -> Tensor: ...

def not_equal(x: Tensor, y: Tensor) -> Tensor: ...

def offsets_to_lengths(offsets: Tensor) -> Tensor: ...

def one_hot(x: Tensor, *, width: int, dtype: DType = ...) -> Tensor: ...

def one_like(x: Tensor) -> Tensor: ...

def one_permutation_minhash(shingles: Tensor, lengths: Tensor, *, num_perm: int = 128, seed: int = 1) -> Tensor: ...

def outer_sum(a: Tensor, b: Tensor) -> Tensor: ...

def outer_sums_by_id(a: Tensor, b: Tensor, ids: Tensor, like: Tensor) -> Tensor: ...

def pack_by_time(data: Tensor, lengths: Tensor, *, max_length: int | None = None, fill: Fill = 0) -> Tensor: ...

def pack_by_time_like(data: Tensor, like: Tensor, lengths: Tensor) -> Tensor: ...

class PackRowsResult(NamedTuple):
    packed: Tensor
    segment_ids: Tensor
    position_ids: Tensor
    sources: Tensor
    piece_lengths: Tensor
    pieces: Tensor

def pack_rows(data: Tensor, lengths: Tensor, *, capacity: int, strategy: Literal['best_fit', 'first_fit', 'concat'] = 'best_fit', fill: Fill = 0) -> PackRowsResult: ...

class PackSequenceResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    order: Tensor

def pack_sequence(data: Tensor, lengths: Tensor) -> PackSequenceResult: ...

def packed_cu_seqlens(piece_lengths: Tensor, pieces: Tensor, *, capacity: int) -> Tensor: ...

class PadResult(NamedTuple):
    padded: Tensor
    mask: Tensor

def pad(data: Tensor, lengths: Tensor, *, max_length: int | None = None, fill: Fill = 0, side: Literal['right', 'left'] = 'right', truncate: builtins.bool = False, multiple_of: int = 1) -> PadResult: ...

class PadEmptyResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def pad_empty(data: Tensor, lengths: Tensor, *, fill: Fill = 0) -> PadEmptyResult: ...

def pad_lengths(data: Tensor, lengths: Tensor, *, target_length: int, fill: Fill = 0) -> Tensor: ...

def pad_like(data: Tensor, like: Tensor, lengths: Tensor, *, side: Literal['right', 'left'] = 'right') -> Tensor: ...

def partition(data: Tensor, keys: Tensor, *, parts: int) -> list[Tensor]: ...

class PartitionSequencesResult(NamedTuple):
    values: list[Tensor]
    lengths: list[Tensor]

def partition_sequences(data: Tensor, keys: Tensor, lengths: Tensor, *, parts: int) -> PartitionSequencesResult: ...

class PatchPositionsResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def patch_positions(grids: Tensor, *, merge: int = 2) -> PatchPositionsResult: ...

class PatchifyResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    grids: Tensor

def patchify(pixels: Tensor, sizes: Tensor, lengths: Tensor, *, patch: int = 14, merge: int = 2, repeat: int = 2) -> PatchifyResult: ...

def positions_by_id(ids: Tensor) -> Tensor: ...

def pow(x: Tensor, y: Tensor) -> Tensor: ...

class PrefixTreeResult(NamedTuple):
    kept: Tensor
    node_lengths: Tensor
    parents: Tensor
    rows: Tensor

def prefix_tree(data: Tensor, lengths: Tensor, keys: Tensor | None = None, *, min_shared: int = 1) -> PrefixTreeResult: ...

class PrependTokenResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def prepend_token(data: Tensor, lengths: Tensor, *, token: Fill) -> PrependTokenResult: ...

class ProductWithinResult(NamedTuple):
    left: Tensor
    right: Tensor
    lengths: Tensor

def product_within(lengths: Tensor, other: Tensor) -> ProductWithinResult: ...

def products_of_others(data: Tensor, lengths: Tensor) -> Tensor: ...

def products_of_others_backward(d: Tensor, data: Tensor, lengths: Tensor) -> Tensor: ...

def put_at_positions(rows: Tensor, positions: Tensor, like: Tensor, lengths: Tensor) -> Tensor: ...

def quantize_rowwise(data: Tensor, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Tensor: ...

def random_integers(positives: Tensor, lengths: Tensor, positive_lengths: Tensor, weights: Tensor | None = None, *, high: int, seed: int) -> Tensor: ...

def rank_within(data: Tensor, lengths: Tensor, *, ties: Literal['first', 'min', 'max', 'dense'] = 'first', descending: builtins.bool = False) -> Tensor: ...

def reciprocal(x: Tensor) -> Tensor: ...

def reduce_max(x: Tensor, *, axes: int | collections.abc.Sequence[int] | None = None, keepdims: builtins.bool = False, empty: Scalar = 0) -> Tensor: ...

def reduce_mean(x: Tensor, *, axes: int | collections.abc.Sequence[int] | None = None, keepdims: builtins.bool = False, empty: Scalar = 0) -> Tensor: ...

def reduce_sum(x: Tensor, *, axes: int | collections.abc.Sequence[int] | None = None, keepdims: builtins.bool = False, empty: Scalar = 0) -> Tensor: ...

def relu(x: Tensor) -> Tensor: ...

def remainder(x: Tensor, y: Tensor) -> Tensor: ...

class RemovePaddingResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def remove_padding(data: Tensor, lengths: Tensor, *, before: int = 1, after: int | None = None) -> RemovePaddingResult: ...

def remove_rows(data: Tensor, indices: Tensor) -> Tensor: ...

class RepeatSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def repeat_sequences(data: Tensor, repeats: Tensor, lengths: Tensor) -> RepeatSequencesResult: ...

def repetition_shares(pieces: Tensor, sizes: Tensor, counts: Tensor, *, n: int = 1, top: builtins.bool = False) -> Tensor: ...

class ReplaceTextResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def replace_text(data: Tensor, lengths: Tensor, *, pattern: str | None = None, regex: str | None = None, by: str = '', errors: Literal['strict', 'replace'] = 'strict') -> ReplaceTextResult: ...

def reshape(x: Tensor, shape: Tensor) -> Tensor: ...

def reshape_like(x: Tensor, like: Tensor) -> Tensor: ...

class ReshapeSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def reshape_sequences(data: Tensor, lengths: Tensor, *, width: int) -> ReshapeSequencesResult: ...

def reverse_packed(data: Tensor, lengths: Tensor) -> Tensor: ...

def reverse_sequences(data: Tensor, lengths: Tensor) -> Tensor: ...

class RnnResult(NamedTuple):
    h: Tensor
    h_last: Tensor

def rnn(x: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor | None = None, h0: Tensor | None = None, *, nonlinearity: Literal['tanh', 'relu'] = 'tanh', reverse: builtins.bool = False) -> RnnResult: ...

class RnnBackwardResult(NamedTuple):
    grad_x: Tensor
    grad_w_ih: Tensor
    grad_w_hh: Tensor
    grad_bias: Tensor
    grad_h0: Tensor

def rnn_backward(x: Tensor, h: Tensor, d_h: Tensor, d_h_last: Tensor, lengths: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor | None = None, h0: Tensor | None = None, *, nonlinearity: Literal['tanh', 'relu'] = 'tanh', reverse: builtins.bool = False) -> RnnBackwardResult: ...

def rotary(x: Tensor, positions: Tensor, *, base: float = 10000.0, interleaved: builtins.bool = False, sections: int | collections.abc.Sequence[int] = (), inverse: builtins.bool = False) -> Tensor: ...

def round(x: Tensor) -> Tensor: ...

class RouteTopkResult(NamedTuple):
    tokens: Tensor
    lengths: Tensor
    choices: Tensor

def route_topk(experts: Tensor, *, num_experts: int, capacity: int | None = None, multiple_of: int = 1) -> RouteTopkResult: ...

def row_dot(a: Tensor, b: Tensor) -> Tensor: ...

def row_numbers(like: Tensor) -> Tensor: ...

def rshift(x: Tensor, y: Tensor) -> Tensor: ...

def rsqrt(x: Tensor) -> Tensor: ...

def rsub(x: Tensor, y: Tensor, *, alpha: Scalar = 1) -> Tensor: ...

class RunLengthsResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    counts: Tensor

def run_lengths(data: Tensor, lengths: Tensor, *, gap: float | None = None) -> RunLengthsResult: ...

def same_lengths(lengths: Tensor, other: Tensor) -> None: ...

def same_rows(data: Tensor, other: Tensor) -> None: ...

def scale_rows(data: Tensor, scale: Tensor) -> Tensor: ...

def scatter_axis(x: Tensor, indices: Tensor, like: Tensor, *, axis: int, wrap: builtins.bool = False) -> Tensor: ...

def scatter_inside(rows: Tensor, ids: Tensor, like: Tensor) -> Tensor: ...

def scatter_pooled(rows: Tensor, like: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None = None) -> Tensor: ...

def scatter_pooled_weighted(rows: Tensor, weights: Tensor, like: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None = None) -> Tensor: ...

def scatter_rows(rows: Tensor, indices: Tensor, like: Tensor, *, wrap: builtins.bool = False, ignore_index: int | None = None) -> Tensor: ...

def scatter_rows_of_list(rows: Tensor, indices: Tensor, like: collections.abc.Sequence[Tensor], *, parts: int, ignore_index: int | None = None) -> list[Tensor]: ...

def scatter_sequences(x: Tensor, updates: Tensor, indices: Tensor, lengths: Tensor) -> Tensor: ...

def scatter_within(data: Tensor, positions: Tensor, lengths: Tensor) -> Tensor: ...

def segment_counts(ids: Tensor, like: Tensor) -> Tensor: ...

def segment_ids_to_lengths(ids: Tensor, *, num_segments: int | None = None) -> Tensor: ...

def segment_ids_to_ranges(ids: Tensor, *, num_segments: int | None = None) -> Tensor: ...

def segment_matmul(x: Tensor, weight: Tensor, lengths: Tensor, *, transpose: builtins.bool = False) -> Tensor: ...

def segment_one_hot(indices: Tensor, lengths: Tensor, *, width: int, dtype: DType = ...) -> Tensor: ...

def sequence_mask(x: Tensor, bounds: Tensor | None = None, *, mode: Literal['sequence', 'window', 'upper', 'lower', 'upper_diagonal', 'lower_diagonal'], axis: int = 1, batch: int | None = None, repeat_from_axis: int | None = None, radius: int = 10, fill: Fill | None = None) -> Tensor: ...

class ShardSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def shard_sequences(data: Tensor, lengths: Tensor, *, parts: int, part: int, order: Literal['zigzag', 'zigzag_row', 'contiguous'] = 'zigzag') -> ShardSequencesResult: ...

def shift(data: Tensor, lengths: Tensor, *, by: int, fill: Fill = 0) -> Tensor: ...

def shuffle_within(data: Tensor, lengths: Tensor, *, seed: int) -> Tensor: ...

def sigmoid(x: Tensor) -> Tensor: ...

def sign(x: Tensor) -> Tensor: ...

def sin(x: Tensor) -> Tensor: ...

def sinh(x: Tensor) -> Tensor: ...

def slice_axes(x: Tensor, *, starts: int | collections.abc.Sequence[int], stops: int | collections.abc.Sequence[int], steps: int | collections.abc.Sequence[int] | None = None, axes: int | collections.abc.Sequence[int] | None = None) -> Tensor: ...

def slice_backward(d: Tensor, like: Tensor, *, starts: int | collections.abc.Sequence[int], stops: int | collections.abc.Sequence[int], steps: int | collections.abc.Sequence[int] | None = None, axes: int | collections.abc.Sequence[int] | None = None) -> Tensor: ...

class SliceSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def slice_sequences(data: Tensor, starts: Tensor, sizes: Tensor, lengths: Tensor, *, clip: builtins.bool = False) -> SliceSequencesResult: ...

def softmax(x: Tensor) -> Tensor: ...

def softmax_within(data: Tensor, lengths: Tensor) -> Tensor: ...

def softmax_within_backward(d: Tensor, y: Tensor, lengths: Tensor) -> Tensor: ...

def sort_within(data: Tensor, lengths: Tensor, *, descending: builtins.bool = False) -> Tensor: ...

def sorted_segment_logmeanexp(data: Tensor, ids: Tensor) -> Tensor: ...

def sorted_segment_logsumexp(data: Tensor, ids: Tensor) -> Tensor: ...

def sorted_segment_max(data: Tensor, ids: Tensor) -> Tensor: ...

def sorted_segment_mean(data: Tensor, ids: Tensor) -> Tensor: ...

def sorted_segment_min(data: Tensor, ids: Tensor) -> Tensor: ...

def sorted_segment_prod(data: Tensor, ids: Tensor) -> Tensor: ...

def sorted_segment_sum(data: Tensor, ids: Tensor) -> Tensor: ...

def sorted_segment_weighted_sum(data: Tensor, weights: Tensor, ids: Tensor) -> Tensor: ...

class SpanCorruptResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    targets: Tensor
    target_lengths: Tensor

def span_corrupt(tokens: Tensor, noise: Tensor, lengths: Tensor, *, first: int) -> SpanCorruptResult: ...

def sparse_lengths_max(table: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None = None, empty: Scalar = 0) -> Tensor: ...

def sparse_lengths_mean(table: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None = None, empty: Scalar = 0, sparse: builtins.bool = False) -> Tensor: ...

def sparse_lengths_mean_quantized(table: Tensor, indices: Tensor, lengths: Tensor, mapping: Tensor | None = None, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Tensor: ...

def sparse_lengths_positional_weighted_sum(table: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None = None, empty: Scalar = 0, sparse: builtins.bool = False) -> Tensor: ...

def sparse_lengths_sum(table: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None = None, empty: Scalar = 0, sparse: builtins.bool = False) -> Tensor: ...

def sparse_lengths_sum_quantized(table: Tensor, indices: Tensor, lengths: Tensor, mapping: Tensor | None = None, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Tensor: ...

def sparse_lengths_weighted_sum(table: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor, *, ignore_index: int | None = None, empty: Scalar = 0, sparse: builtins.bool = False) -> Tensor: ...

def sparse_lengths_weighted_sum_quantized(table: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor, mapping: Tensor | None = None, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Tensor: ...

class SparseLookupResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def sparse_lookup(indices: Tensor, mapping: Tensor, lengths: Tensor) -> SparseLookupResult: ...

def sparse_sorted_segment_mean(table: Tensor, indices: Tensor, ids: Tensor) -> Tensor: ...

def sparse_sorted_segment_sum(table: Tensor, indices: Tensor, ids: Tensor) -> Tensor: ...

def sparse_sorted_segment_weighted_sum(table: Tensor, weights: Tensor, indices: Tensor, ids: Tensor) -> Tensor: ...

def sparse_to_dense(values: Tensor, indices: Tensor, *, num_rows: int | None = None, duplicates: Literal['sum', 'last', 'raise'] = 'sum') -> Tensor: ...

class SparseToDenseMaskResult(NamedTuple):
    dense: Tensor
    presence: Tensor

def sparse_to_dense_mask(values: Tensor, default: Tensor, indices: Tensor, lengths: Tensor, *, mask: int | collections.abc.Sequence[int]) -> SparseToDenseMaskResult: ...

def sparse_unsorted_segment_mean(table: Tensor, indices: Tensor, ids: Tensor, *, num_segments: int | None = None, empty: Scalar = 0) -> Tensor: ...

def sparse_unsorted_segment_sum(table: Tensor, indices: Tensor, ids: Tensor, *, num_segments: int | None = None, empty: Scalar = 0) -> Tensor: ...

def sparse_unsorted_segment_weighted_sum(table: Tensor, weights: Tensor, indices: Tensor, ids: Tensor, *, num_segments: int | None = None, empty: Scalar = 0) -> Tensor: ...

def split(x: Tensor, *, parts: int | collections.abc.Sequence[int], axis: int = 0) -> list[Tensor]: ...

def split_like(x: Tensor, like: collections.abc.Sequence[Tensor], *, axis: int = 0, parts: int) -> list[Tensor]: ...

class SplitSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    counts: Tensor

def split_sequences(data: Tensor, lengths: Tensor, *, chunk: int, stride: int | None = None) -> SplitSequencesResult: ...

class SplitTextResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    counts: Tensor

def split_text(data: Tensor, lengths: Tensor, *, delimiter: str | collections.abc.Sequence[str] | None = None, pattern: str | None = None, keep_empty: builtins.bool = True, keep_delimiter: builtins.bool = False, max_splits: int | None = None, errors: Literal['strict', 'replace'] = 'strict') -> SplitTextResult: ...

class SplitWordsResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    counts: Tensor

def split_words(data: Tensor, lengths: Tensor, *, pattern: str | None = None, errors: Literal['strict', 'replace'] = 'strict') -> SplitWordsResult: ...

def spread(x: Tensor, like: Tensor, *, axes: int | collections.abc.Sequence[int] | None = None, keepdims: builtins.bool = False, mean: builtins.bool = False) -> Tensor: ...

def sqrt(x: Tensor) -> Tensor: ...

def square(x: Tensor) -> Tensor: ...

def square_root_divide(data: Tensor, scale: Tensor) -> Tensor: ...

def squeeze(x: Tensor, *, axis: int | collections.abc.Sequence[int] | None = None) -> Tensor: ...

def standardize_within(data: Tensor, lengths: Tensor, *, ddof: int = 0, epsilon: float = 1e-08) -> Tensor: ...

class StartsToLengthsResult(NamedTuple):
    lengths: Tensor
    counts: Tensor

def starts_to_lengths(starts: Tensor, lengths: Tensor) -> StartsToLengthsResult: ...

def starts_with(data: Tensor, lengths: Tensor, *, pattern: str, errors: Literal['strict', 'replace'] = 'strict') -> Tensor: ...

def stop_gradient(x: Tensor) -> Tensor: ...

class StrideWithinResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def stride_within(data: Tensor, lengths: Tensor, start: Tensor | None = None, stop: Tensor | None = None, step: Tensor | None = None) -> StrideWithinResult: ...

class StripResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def strip(data: Tensor, lengths: Tensor, *, characters: str | None = None, errors: Literal['strict', 'replace'] = 'strict') -> StripResult: ...

def sub(x: Tensor, y: Tensor, *, alpha: Scalar = 1) -> Tensor: ...

def sum_to(x: Tensor, like: Tensor) -> Tensor: ...

def take_at_positions(data: Tensor, positions: Tensor, lengths: Tensor) -> Tensor: ...

def tan(x: Tensor) -> Tensor: ...

def tanh(x: Tensor) -> Tensor: ...

def tile(x: Tensor, *, repeats: int | collections.abc.Sequence[int]) -> Tensor: ...

def tile_backward(d: Tensor, like: Tensor, *, repeats: int | collections.abc.Sequence[int]) -> Tensor: ...

def to_rows(positions: Tensor, lengths: Tensor, *, keep_missing: builtins.bool = False) -> Tensor: ...

def to_rows_within(positions: Tensor, lengths: Tensor, picked: Tensor, *, keep_missing: builtins.bool = False) -> Tensor: ...

class TokensToBytesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def tokens_to_bytes(tokens: Tensor, lengths: Tensor, *, offset: int = 0) -> TokensToBytesResult: ...

class TopkWithinResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    positions: Tensor

def topk_within(data: Tensor, scores: Tensor, lengths: Tensor, *, k: int) -> TopkWithinResult: ...

def train_tokenizer(data: Tensor, lengths: Tensor, *, vocabulary_size: int, min_frequency: int = 2, special_tokens: str | collections.abc.Sequence[str] = (), errors: Literal['strict', 'replace'] = 'strict') -> Tensor: ...

def transpose(x: Tensor, *, perm: int | collections.abc.Sequence[int] | None = None) -> Tensor: ...

class TreePathsResult(NamedTuple):
    keys: Tensor
    path_lengths: Tensor
    positions: Tensor
    previous: Tensor
    until: Tensor

def tree_paths(parents: Tensor, node_lengths: Tensor) -> TreePathsResult: ...

class TrimDatasetResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def trim_dataset(data: Tensor, lengths: Tensor, *, multiple_of: int) -> TrimDatasetResult: ...

def trunc(x: Tensor) -> Tensor: ...

class TruncateResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def truncate(data: Tensor, lengths: Tensor, *, max_length: int, keep: Literal['head', 'tail'] = 'head') -> TruncateResult: ...

class TruncateTogetherResult(NamedTuple):
    values: list[Tensor]
    lengths: list[Tensor]

def truncate_together(data: collections.abc.Sequence[Tensor], lengths: collections.abc.Sequence[Tensor], budget: Tensor, *, columns: int, how: Literal['longest_first', 'waterfall'] = 'longest_first', keep: Literal['head', 'tail'] = 'head') -> TruncateTogetherResult: ...

def uint16(x: Tensor) -> Tensor: ...

def uint32(x: Tensor) -> Tensor: ...

def uint64(x: Tensor) -> Tensor: ...

def uint8(x: Tensor) -> Tensor: ...

class UniqueResult(NamedTuple):
    unique: Tensor
    inverse: Tensor
    counts: Tensor

def unique(x: Tensor) -> UniqueResult: ...

class UniqueWithinResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    counts: Tensor

def unique_within(data: Tensor, lengths: Tensor, *, order: Literal['sorted', 'first'] = 'sorted') -> UniqueWithinResult: ...

def unpack_by_time(packed: Tensor, lengths: Tensor) -> Tensor: ...

class UnpackRowsResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def unpack_rows(packed: Tensor, sources: Tensor, piece_lengths: Tensor, pieces: Tensor, *, num_sequences: int | None = None) -> UnpackRowsResult: ...

class UnpackSequenceResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def unpack_sequence(data: Tensor, order: Tensor, lengths: Tensor) -> UnpackSequenceResult: ...

def unpad(padded: Tensor, lengths: Tensor, *, side: Literal['right', 'left'] = 'right') -> Tensor: ...

class UnpatchifyResult(NamedTuple):
    values: Tensor
    lengths: Tensor
    sizes: Tensor

def unpatchify(patches: Tensor, grids: Tensor, lengths: Tensor, *, patch: int = 14, merge: int = 2, repeat: int = 2) -> UnpatchifyResult: ...

def unroute(y: Tensor, choices: Tensor, weights: Tensor) -> Tensor: ...

class UnshardSequencesResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def unshard_sequences(data: Tensor, lengths: Tensor, *, parts: int, order: Literal['zigzag', 'zigzag_row', 'contiguous'] = 'zigzag') -> UnshardSequencesResult: ...

def unsorted_segment_max(data: Tensor, ids: Tensor, *, num_segments: int | None = None, empty: Scalar = 0) -> Tensor: ...

def unsorted_segment_mean(data: Tensor, ids: Tensor, *, num_segments: int | None = None, empty: Scalar = 0) -> Tensor: ...

def unsorted_segment_min(data: Tensor, ids: Tensor, *, num_segments: int | None = None, empty: Scalar = 0) -> Tensor: ...

def unsorted_segment_sum(data: Tensor, ids: Tensor, *, num_segments: int | None = None, empty: Scalar = 0) -> Tensor: ...

def unsorted_segment_weighted_sum(data: Tensor, weights: Tensor, ids: Tensor, *, num_segments: int | None = None, empty: Scalar = 0) -> Tensor: ...

class UpperResult(NamedTuple):
    values: Tensor
    lengths: Tensor

def upper(data: Tensor, lengths: Tensor, *, errors: Literal['strict', 'replace'] = 'strict') -> UpperResult: ...

class ViterbiDecodeResult(NamedTuple):
    states: Tensor
    score: Tensor

def viterbi_decode(scores: Tensor, transitions: Tensor, lengths: Tensor, allowed: Tensor | None = None) -> ViterbiDecodeResult: ...

def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor: ...

class WindowOrderResult(NamedTuple):
    order: Tensor
    lengths: Tensor

def window_order(grids: Tensor, *, merge: int = 2, window: int = 4) -> WindowOrderResult: ...

class WordOffsetsResult(NamedTuple):
    starts: Tensor
    ends: Tensor
    counts: Tensor

def word_offsets(data: Tensor, lengths: Tensor, *, pattern: str | None = None, characters: builtins.bool = False, errors: Literal['strict', 'replace'] = 'strict') -> WordOffsetsResult: ...

def zero_after_length(x: Tensor, lengths: Tensor) -> Tensor: ...

def zeros_like(like: Tensor) -> Tensor: ...
