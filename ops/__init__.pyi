"""The ops, as type checkers see them. Written by `python -m tools.stubs`; do not edit."""

import builtins
import collections.abc
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

Array = np.ndarray[Any, Any]
Scalar = builtins.bool | int | float | np.generic
Fill = Scalar | str | bytes

__all__ = ['acos', 'acosh', 'add', 'add_padding', 'append_token', 'argsort_within', 'as_text', 'asin', 'asinh', 'atan', 'atan2', 'atanh', 'attention_within', 'attention_within_backward', 'batch_bucket_one_hot', 'batch_bucketize', 'batch_dense_to_sparse', 'batch_one_hot', 'batch_sparse_to_dense', 'bidirectional_gru', 'bidirectional_gru_backward', 'bidirectional_lstm', 'bidirectional_lstm_backward', 'bidirectional_rnn', 'bidirectional_rnn_backward', 'bitwise_and', 'bitwise_not', 'bitwise_or', 'bitwise_xor', 'boolean_mask', 'boolean_mask_lengths', 'boolean_unmask', 'broadcast_like', 'bucketize', 'bytes_to_tokens', 'casefold', 'cast', 'cast_like', 'ceil', 'cell_numbers', 'clip', 'collapse_lengths', 'combinations_within', 'concat', 'concat_sequences', 'connected_components', 'contains_text', 'context_windows', 'cos', 'cosh', 'count_text', 'crf_log_likelihood', 'crf_log_likelihood_backward', 'cross_features', 'ctc_greedy_decode', 'cumsum_within', 'decode', 'dense_to_id_list', 'dense_to_sparse', 'dequantize_rowwise', 'discounted_sum_within', 'distinct_sequences', 'div', 'dropout', 'dropout_ids', 'dropout_sequences', 'edit_distance', 'encode', 'encode_strings', 'ends_with', 'equal', 'erase_tokens', 'erf', 'exp', 'expand', 'expand_dims', 'expand_placeholders', 'expm1', 'expression', 'extreme_shares', 'fc', 'fill_in_middle', 'filter_sequences', 'find', 'find_duplicates', 'first_of_equal', 'flatten_rows', 'float16', 'float32', 'float64', 'floor', 'floor_divide', 'fmod', 'gather', 'gather_axis', 'gather_by_key', 'gather_cells', 'gather_columns_within', 'gather_inside', 'gather_matmul', 'gather_padding', 'gather_quantized', 'gather_ranges', 'gather_ranges_to_dense', 'gather_sequences', 'gather_within', 'gather_within_padded', 'greater', 'greater_equal', 'group_order', 'gru', 'gru_backward', 'hash_indices', 'hash_ngrams', 'hash_strings', 'hash_text', 'image_grids', 'image_ids', 'image_spans', 'int16', 'int32', 'int64', 'int8', 'interleave', 'isfinite', 'isin', 'isin_within', 'isnan', 'jaccard', 'join_texts', 'key_split', 'keyed_concat', 'keyed_permute', 'keyed_select', 'keyed_split', 'labels_of_tokens', 'largest_shares', 'layer_norm', 'lengths_all', 'lengths_any', 'lengths_argmax', 'lengths_argmin', 'lengths_first', 'lengths_last', 'lengths_logsumexp', 'lengths_max', 'lengths_max_with_argmax', 'lengths_mean', 'lengths_median', 'lengths_min', 'lengths_min_with_argmin', 'lengths_outer_sum', 'lengths_prod', 'lengths_quantile', 'lengths_range', 'lengths_reduce_positions', 'lengths_split', 'lengths_sqrt_sum', 'lengths_std', 'lengths_sum', 'lengths_to_cu_seqlens', 'lengths_to_mask', 'lengths_to_offsets', 'lengths_to_positions', 'lengths_to_ranges', 'lengths_to_segment_ids', 'lengths_to_shape', 'lengths_to_weights', 'lengths_topk', 'lengths_var', 'lengths_weighted_sum', 'less', 'less_equal', 'list_numbers', 'log', 'log10', 'log1p', 'log_softmax_within', 'logaddexp', 'logical_and', 'logical_not', 'logical_or', 'logical_xor', 'longest_common', 'lower', 'lshift', 'lstm', 'lstm_backward', 'mask_sequences', 'mask_tokens', 'match_names', 'matmul', 'matmul_backward', 'maximum', 'median_within_backward', 'merge_dense_features', 'merge_id_lists', 'merge_list_features', 'merge_map_features', 'merge_multi_list_features', 'merge_multi_map_features', 'merge_multi_scalar_features', 'merge_scalar_features', 'minhash', 'minimum', 'mrope_positions', 'mul', 'neg', 'ngram_overlap', 'ngram_texts', 'ngrams', 'noise', 'noise_spans', 'normalize', 'normalize_offsets', 'normalize_within', 'not_equal', 'offsets_to_lengths', 'one_hot', 'one_like', 'one_permutation_minhash', 'outer_sum', 'outer_sums_by_id', 'pack_by_time', 'pack_by_time_like', 'pack_rows', 'pack_sequence', 'packed_cu_seqlens', 'pad', 'pad_empty', 'pad_lengths', 'pad_like', 'partition', 'partition_sequences', 'patch_positions', 'patchify', 'positions_by_id', 'prefix_tree', 'prepend_token', 'product_within', 'products_of_others', 'products_of_others_backward', 'put_at_positions', 'quantile_within_backward', 'quantize_rowwise', 'random_integers', 'rank_within', 'reciprocal', 'reduce_max', 'reduce_mean', 'reduce_sum', 'regroup', 'relu', 'remainder', 'remove_padding', 'remove_rows', 'repeat_sequences', 'repetition_shares', 'replace_text', 'reshape', 'reshape_like', 'reshape_sequences', 'reverse_packed', 'reverse_sequences', 'rnn', 'rnn_backward', 'rotary', 'route_topk', 'row_dot', 'row_numbers', 'rshift', 'rsqrt', 'rsub', 'run_lengths', 'same_lengths', 'same_rows', 'scale_rows', 'scatter_axis', 'scatter_inside', 'scatter_pooled', 'scatter_pooled_weighted', 'scatter_rows', 'scatter_rows_of_list', 'scatter_sequences', 'scatter_within', 'segment_counts', 'segment_ids_to_lengths', 'segment_ids_to_ranges', 'segment_matmul', 'segment_one_hot', 'sequence_mask', 'shard_sequences', 'shift', 'shuffle_within', 'sigmoid', 'sign', 'sin', 'sinh', 'slice_axes', 'slice_backward', 'slice_sequences', 'softmax', 'softmax_within', 'softmax_within_backward', 'sort_within', 'sorted_segment_logmeanexp', 'sorted_segment_logsumexp', 'sorted_segment_max', 'sorted_segment_mean', 'sorted_segment_min', 'sorted_segment_prod', 'sorted_segment_sum', 'sorted_segment_weighted_sum', 'span_corrupt', 'sparse_lengths_max', 'sparse_lengths_mean', 'sparse_lengths_mean_quantized', 'sparse_lengths_positional_weighted_sum', 'sparse_lengths_sum', 'sparse_lengths_sum_quantized', 'sparse_lengths_weighted_sum', 'sparse_lengths_weighted_sum_quantized', 'sparse_lookup', 'sparse_sorted_segment_mean', 'sparse_sorted_segment_sum', 'sparse_sorted_segment_weighted_sum', 'sparse_to_dense', 'sparse_to_dense_mask', 'sparse_unsorted_segment_mean', 'sparse_unsorted_segment_sum', 'sparse_unsorted_segment_weighted_sum', 'split', 'split_like', 'split_sequences', 'split_text', 'split_words', 'spread', 'sqrt', 'square', 'square_root_divide', 'squeeze', 'standardize_within', 'starts_to_lengths', 'starts_with', 'stop_gradient', 'stride_within', 'strip', 'sub', 'sum_to', 'take_at_positions', 'tan', 'tanh', 'tile', 'tile_backward', 'to_rows', 'to_rows_within', 'token_offsets', 'tokenize', 'tokenize_chat', 'tokens_to_bytes', 'topk_within', 'train_tokenizer', 'transpose', 'tree_paths', 'trim_dataset', 'trunc', 'truncate', 'truncate_together', 'uint16', 'uint32', 'uint64', 'uint8', 'unique', 'unique_within', 'unpack_by_time', 'unpack_rows', 'unpack_sequence', 'unpad', 'unpatchify', 'unroute', 'unshard_sequences', 'unsorted_segment_max', 'unsorted_segment_mean', 'unsorted_segment_min', 'unsorted_segment_sum', 'unsorted_segment_weighted_sum', 'upper', 'viterbi_decode', 'where', 'window_order', 'word_offsets', 'zero_after_length', 'zeros_like']

def abs(x: ArrayLike, *, out: Any = None) -> Array: ...

def acos(x: ArrayLike, *, out: Any = None) -> Array: ...

def acosh(x: ArrayLike, *, out: Any = None) -> Array: ...

def add(x: ArrayLike, y: ArrayLike, *, alpha: Scalar = 1, out: Any = None) -> Array: ...

class AddPaddingResult(NamedTuple):
    values: Array
    lengths: Array

def add_padding(data: ArrayLike, lengths: ArrayLike, start: ArrayLike | None = None, end: ArrayLike | None = None, *, before: int = 1, after: int | None = None) -> AddPaddingResult: ...

class AppendTokenResult(NamedTuple):
    values: Array
    lengths: Array

def append_token(data: ArrayLike, lengths: ArrayLike, *, token: Fill) -> AppendTokenResult: ...

def argsort_within(data: ArrayLike, lengths: ArrayLike, *, descending: builtins.bool = False) -> Array: ...

def as_text(data: ArrayLike, lengths: ArrayLike, *, errors: Literal['strict', 'replace'] = 'strict') -> Array: ...

def asin(x: ArrayLike, *, out: Any = None) -> Array: ...

def asinh(x: ArrayLike, *, out: Any = None) -> Array: ...

def atan(x: ArrayLike, *, out: Any = None) -> Array: ...

def atan2(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def atanh(x: ArrayLike, *, out: Any = None) -> Array: ...

class AttentionWithinResult(NamedTuple):
    out: Array
    lse: Array

def attention_within(q: ArrayLike, lengths: ArrayLike, k: ArrayLike, v: ArrayLike, kv_lengths: ArrayLike | None = None, slopes: ArrayLike | None = None, *, scale: float | None = None, before: int | None = None, after: int | None = None, align: Literal['start', 'end'] | None = None, softcap: float | None = None) -> AttentionWithinResult: ...

class AttentionWithinBackwardResult(NamedTuple):
    grad_q: Array
    grad_k: Array
    grad_v: Array
    grad_slopes: Array

def attention_within_backward(q: ArrayLike, k: ArrayLike, v: ArrayLike, out: ArrayLike, lse: ArrayLike, d_out: ArrayLike, d_lse: ArrayLike, lengths: ArrayLike, kv_lengths: ArrayLike | None = None, slopes: ArrayLike | None = None, *, scale: float | None = None, before: int | None = None, after: int | None = None, align: Literal['start', 'end'] | None = None, softcap: float | None = None) -> AttentionWithinBackwardResult: ...

def batch_bucket_one_hot(x: ArrayLike, boundaries: ArrayLike, lengths: ArrayLike, *, dtype: DTypeLike = ...) -> Array: ...

def batch_bucketize(x: ArrayLike, boundaries: ArrayLike, columns: ArrayLike, lengths: ArrayLike, *, nan: int | None = None) -> Array: ...

def batch_dense_to_sparse(dense: ArrayLike, indices: ArrayLike, lengths: ArrayLike) -> Array: ...

def batch_one_hot(x: ArrayLike, values: ArrayLike, lengths: ArrayLike, *, dtype: DTypeLike = ...) -> Array: ...

def batch_sparse_to_dense(values: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, width: int, fill: Fill = 0) -> Array: ...

class BidirectionalGruResult(NamedTuple):
    h: Array
    h_last: Array

def bidirectional_gru(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, w_ih_reverse: ArrayLike, w_hh_reverse: ArrayLike, bias_ih: ArrayLike | None = None, bias_hh: ArrayLike | None = None, bias_ih_reverse: ArrayLike | None = None, bias_hh_reverse: ArrayLike | None = None, h0: ArrayLike | None = None, *, linear_before_reset: builtins.bool = True) -> BidirectionalGruResult: ...

class BidirectionalGruBackwardResult(NamedTuple):
    grad_x: Array
    grad_w_ih: Array
    grad_w_hh: Array
    grad_w_ih_reverse: Array
    grad_w_hh_reverse: Array
    grad_bias_ih: Array
    grad_bias_hh: Array
    grad_bias_ih_reverse: Array
    grad_bias_hh_reverse: Array
    grad_h0: Array

def bidirectional_gru_backward(x: ArrayLike, h: ArrayLike, d_h: ArrayLike, d_h_last: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, w_ih_reverse: ArrayLike, w_hh_reverse: ArrayLike, bias_ih: ArrayLike | None = None, bias_hh: ArrayLike | None = None, bias_ih_reverse: ArrayLike | None = None, bias_hh_reverse: ArrayLike | None = None, h0: ArrayLike | None = None, *, linear_before_reset: builtins.bool = True) -> BidirectionalGruBackwardResult: ...

class BidirectionalLstmResult(NamedTuple):
    h: Array
    h_last: Array
    c_last: Array

def bidirectional_lstm(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, w_ih_reverse: ArrayLike, w_hh_reverse: ArrayLike, bias: ArrayLike | None = None, bias_reverse: ArrayLike | None = None, h0: ArrayLike | None = None, c0: ArrayLike | None = None, w_hr: ArrayLike | None = None, w_hr_reverse: ArrayLike | None = None, *, proj_size: int | None = None) -> BidirectionalLstmResult: ...

class BidirectionalLstmBackwardResult(NamedTuple):
    grad_x: Array
    grad_w_ih: Array
    grad_w_hh: Array
    grad_w_ih_reverse: Array
    grad_w_hh_reverse: Array
    grad_bias: Array
    grad_bias_reverse: Array
    grad_h0: Array
    grad_c0: Array
    grad_w_hr: Array
    grad_w_hr_reverse: Array

def bidirectional_lstm_backward(x: ArrayLike, h: ArrayLike, d_h: ArrayLike, d_h_last: ArrayLike, d_c_last: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, w_ih_reverse: ArrayLike, w_hh_reverse: ArrayLike, bias: ArrayLike | None = None, bias_reverse: ArrayLike | None = None, h0: ArrayLike | None = None, c0: ArrayLike | None = None, w_hr: ArrayLike | None = None, w_hr_reverse: ArrayLike | None = None, *, proj_size: int | None = None) -> BidirectionalLstmBackwardResult: ...

class BidirectionalRnnResult(NamedTuple):
    h: Array
    h_last: Array

def bidirectional_rnn(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, w_ih_reverse: ArrayLike, w_hh_reverse: ArrayLike, bias: ArrayLike | None = None, bias_reverse: ArrayLike | None = None, h0: ArrayLike | None = None, *, nonlinearity: Literal['tanh', 'relu'] = 'tanh') -> BidirectionalRnnResult: ...

class BidirectionalRnnBackwardResult(NamedTuple):
    grad_x: Array
    grad_w_ih: Array
    grad_w_hh: Array
    grad_w_ih_reverse: Array
    grad_w_hh_reverse: Array
    grad_bias: Array
    grad_bias_reverse: Array
    grad_h0: Array

def bidirectional_rnn_backward(x: ArrayLike, h: ArrayLike, d_h: ArrayLike, d_h_last: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, w_ih_reverse: ArrayLike, w_hh_reverse: ArrayLike, bias: ArrayLike | None = None, bias_reverse: ArrayLike | None = None, h0: ArrayLike | None = None, *, nonlinearity: Literal['tanh', 'relu'] = 'tanh') -> BidirectionalRnnBackwardResult: ...

def bitwise_and(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def bitwise_not(x: ArrayLike, *, out: Any = None) -> Array: ...

def bitwise_or(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def bitwise_xor(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def bool(x: ArrayLike, *, out: Any = None) -> Array: ...

class BooleanMaskResult(NamedTuple):
    rows: Array
    positions: Array

def boolean_mask(data: ArrayLike, mask: ArrayLike) -> BooleanMaskResult: ...

def boolean_mask_lengths(mask: ArrayLike, lengths: ArrayLike) -> Array: ...

def boolean_unmask(values: collections.abc.Sequence[ArrayLike], mask: collections.abc.Sequence[ArrayLike], *, fill: Fill | None = None) -> Array: ...

def broadcast_like(x: ArrayLike, like: ArrayLike) -> Array: ...

def bucketize(x: ArrayLike, boundaries: ArrayLike, *, nan: int | None = None) -> Array: ...

class BytesToTokensResult(NamedTuple):
    values: Array
    lengths: Array

def bytes_to_tokens(data: ArrayLike, lengths: ArrayLike, *, offset: int = 0, begin: int | None = None, end: int | None = None) -> BytesToTokensResult: ...

class CasefoldResult(NamedTuple):
    values: Array
    lengths: Array

def casefold(data: ArrayLike, lengths: ArrayLike, *, errors: Literal['strict', 'replace'] = 'strict') -> CasefoldResult: ...

def cast(x: ArrayLike, *, dtype: DTypeLike) -> Array: ...

def cast_like(x: ArrayLike, like: ArrayLike) -> Array: ...

def ceil(x: ArrayLike, *, out: Any = None) -> Array: ...

def cell_numbers(like: ArrayLike) -> Array: ...

def clip(x: ArrayLike, low: ArrayLike, high: ArrayLike, *, out: Any = None) -> Array: ...

def collapse_lengths(inner: ArrayLike, outer: ArrayLike) -> Array: ...

class CombinationsWithinResult(NamedTuple):
    values: Array
    lengths: Array

def combinations_within(lengths: ArrayLike, *, k: int = 2, replacement: builtins.bool = False) -> CombinationsWithinResult: ...

def concat(tensors: collections.abc.Sequence[ArrayLike], *, axis: int = 0) -> Array: ...

class ConcatSequencesResult(NamedTuple):
    values: Array
    lengths: Array

def concat_sequences(data: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike]) -> ConcatSequencesResult: ...

def connected_components(pairs: ArrayLike, *, num_rows: int) -> Array: ...

def contains_text(data: ArrayLike, lengths: ArrayLike, *, pattern: str | None = None, regex: str | None = None, ignore_case: builtins.bool = False, errors: Literal['strict', 'replace'] = 'strict') -> Array: ...

def context_windows(data: ArrayLike, lengths: ArrayLike, *, before: int, after: int, fill: Fill = 0) -> Array: ...

def cos(x: ArrayLike, *, out: Any = None) -> Array: ...

def cosh(x: ArrayLike, *, out: Any = None) -> Array: ...

def count_text(data: ArrayLike, lengths: ArrayLike, *, pattern: str | None = None, regex: str | None = None, ignore_case: builtins.bool = False, errors: Literal['strict', 'replace'] = 'strict') -> Array: ...

def crf_log_likelihood(scores: ArrayLike, states: ArrayLike, lengths: ArrayLike, transitions: ArrayLike) -> Array: ...

class CrfLogLikelihoodBackwardResult(NamedTuple):
    grad_scores: Array
    grad_transitions: Array

def crf_log_likelihood_backward(d: ArrayLike, scores: ArrayLike, states: ArrayLike, lengths: ArrayLike, transitions: ArrayLike) -> CrfLogLikelihoodBackwardResult: ...

class CrossFeaturesResult(NamedTuple):
    values: Array
    lengths: Array

def cross_features(data: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike], *, num_buckets: int, seed: int = 0) -> CrossFeaturesResult: ...

class CtcGreedyDecodeResult(NamedTuple):
    values: Array
    lengths: Array

def ctc_greedy_decode(scores: ArrayLike, lengths: ArrayLike, *, blank: int = 0, merge_repeated: builtins.bool = True) -> CtcGreedyDecodeResult: ...

def cumsum_within(data: ArrayLike, lengths: ArrayLike, *, reverse: builtins.bool = False, exclusive: builtins.bool = False) -> Array: ...

class DecodeResult(NamedTuple):
    values: Array
    lengths: Array

def decode(tokens: ArrayLike, lengths: ArrayLike, *, tokenizer: Any, special_tokens: builtins.bool = False) -> DecodeResult: ...

class DenseToIdListResult(NamedTuple):
    values: Array
    lengths: Array

def dense_to_id_list(dense: ArrayLike) -> DenseToIdListResult: ...

class DenseToSparseResult(NamedTuple):
    values: Array
    indices: Array

def dense_to_sparse(dense: ArrayLike) -> DenseToSparseResult: ...

def dequantize_rowwise(table: ArrayLike, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Array: ...

def discounted_sum_within(x: ArrayLike, discount: ArrayLike, lengths: ArrayLike, last: ArrayLike | None = None, *, gamma: float = 1.0, reverse: builtins.bool = True) -> Array: ...

class DistinctSequencesResult(NamedTuple):
    values: Array
    lengths: Array
    row: Array
    first: Array

def distinct_sequences(data: ArrayLike, lengths: ArrayLike, keys: ArrayLike | None = None) -> DistinctSequencesResult: ...

def div(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

class DropoutResult(NamedTuple):
    y: Array
    kept: Array

def dropout(x: ArrayLike, *, ratio: float = 0.5, seed: int) -> DropoutResult: ...

def dropout_ids(data: ArrayLike, lengths: ArrayLike, *, ratio: float, replacement: Scalar = 0, seed: int) -> Array: ...

class DropoutSequencesResult(NamedTuple):
    values: Array
    lengths: Array

def dropout_sequences(data: ArrayLike, lengths: ArrayLike, *, ratio: float, replacement: Scalar = 0, seed: int) -> DropoutSequencesResult: ...

def edit_distance(p: ArrayLike, q: ArrayLike, lengths: ArrayLike, other: ArrayLike, *, normalize: builtins.bool = False) -> Array: ...

def encode(ids: ArrayLike, vocabulary: ArrayLike, *, on_unknown: Literal['zero', 'raise'] = 'zero') -> Array: ...

def encode_strings(data: ArrayLike, lengths: ArrayLike, vocabulary: ArrayLike, *, on_unknown: Literal['zero', 'raise'] = 'zero') -> Array: ...

def ends_with(data: ArrayLike, lengths: ArrayLike, *, pattern: str, errors: Literal['strict', 'replace'] = 'strict') -> Array: ...

def equal(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

class EraseTokensResult(NamedTuple):
    values: Array
    lengths: Array

def erase_tokens(data: ArrayLike, lengths: ArrayLike, *, tokens: Any) -> EraseTokensResult: ...

def erf(x: ArrayLike, *, out: Any = None) -> Array: ...

def exp(x: ArrayLike, *, out: Any = None) -> Array: ...

def expand(x: ArrayLike, lengths: ArrayLike, *, out: Any = None) -> Array: ...

def expand_dims(x: ArrayLike, *, axis: int | collections.abc.Sequence[int]) -> Array: ...

class ExpandPlaceholdersResult(NamedTuple):
    values: Array
    lengths: Array
    sources: Array

def expand_placeholders(tokens: ArrayLike, sizes: ArrayLike, images: ArrayLike, lengths: ArrayLike, *, placeholder: int | collections.abc.Sequence[int]) -> ExpandPlaceholdersResult: ...

def expm1(x: ArrayLike, *, out: Any = None) -> Array: ...

def expression(*operands: ArrayLike, expr: Any, out: Any = None) -> Array: ...

def extreme_shares(data: ArrayLike, ids: ArrayLike, extremes: ArrayLike) -> Array: ...

def fc(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Array: ...

class FillInMiddleResult(NamedTuple):
    values: Array
    lengths: Array

def fill_in_middle(tokens: ArrayLike, lengths: ArrayLike, cuts: ArrayLike | None = None, *, prefix: int, suffix: int, middle: int, seed: int, rate: float = 1.0, spm_rate: float = 0.5, characters: builtins.bool = False) -> FillInMiddleResult: ...

class FilterSequencesResult(NamedTuple):
    values: Array
    lengths: Array

def filter_sequences(data: ArrayLike, keep: ArrayLike, lengths: ArrayLike) -> FilterSequencesResult: ...

def find(x: ArrayLike, queries: ArrayLike, *, missing: int = -1) -> Array: ...

def find_duplicates(x: ArrayLike) -> Array: ...

def first_of_equal(keys: collections.abc.Sequence[ArrayLike]) -> Array: ...

def flatten_rows(x: ArrayLike) -> Array: ...

def float16(x: ArrayLike, *, out: Any = None) -> Array: ...

def float32(x: ArrayLike, *, out: Any = None) -> Array: ...

def float64(x: ArrayLike, *, out: Any = None) -> Array: ...

def floor(x: ArrayLike, *, out: Any = None) -> Array: ...

def floor_divide(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def fmod(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def gather(data: ArrayLike, indices: ArrayLike, *, wrap: builtins.bool = False, ignore_index: int | None = None, out: Any = None) -> Array: ...

def gather_axis(data: ArrayLike, indices: ArrayLike, *, axis: int, wrap: builtins.bool = False) -> Array: ...

def gather_by_key(shards: collections.abc.Sequence[ArrayLike], keys: ArrayLike) -> Array: ...

def gather_cells(data: ArrayLike, indices: ArrayLike, lengths: ArrayLike) -> Array: ...

def gather_columns_within(data: ArrayLike, positions: ArrayLike, lengths: ArrayLike) -> Array: ...

def gather_inside(data: ArrayLike, ids: ArrayLike) -> Array: ...

def gather_matmul(x: ArrayLike, weight: ArrayLike, ids: ArrayLike, *, transpose: builtins.bool = False) -> Array: ...

class GatherPaddingResult(NamedTuple):
    start: Array
    end: Array

def gather_padding(data: ArrayLike, lengths: ArrayLike, *, before: int = 1, after: int | None = None) -> GatherPaddingResult: ...

def gather_quantized(table: ArrayLike, indices: ArrayLike, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Array: ...

class GatherRangesResult(NamedTuple):
    values: Array
    lengths: Array

def gather_ranges(data: ArrayLike, ranges: ArrayLike) -> GatherRangesResult: ...

def gather_ranges_to_dense(data: ArrayLike, ranges: ArrayLike, keys: ArrayLike | None = None, *, lengths: int | collections.abc.Sequence[int], on_mismatch: Literal['zero', 'raise'] = 'zero') -> list[Array]: ...

class GatherSequencesResult(NamedTuple):
    values: Array
    lengths: Array

def gather_sequences(data: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, out: Any = None) -> GatherSequencesResult: ...

def gather_within(data: ArrayLike, positions: ArrayLike, lengths: ArrayLike, picked: ArrayLike, *, fill: Fill | None = None, wrap: builtins.bool = False) -> Array: ...

def gather_within_padded(data: ArrayLike, positions: ArrayLike, lengths: ArrayLike, *, fill: Fill | None = None, wrap: builtins.bool = False) -> Array: ...

def greater(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def greater_equal(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

class GroupOrderResult(NamedTuple):
    order: Array
    lengths: Array
    back: Array

def group_order(ids: ArrayLike, *, num_segments: int | None = None, outside: Literal['raise', 'drop'] = 'raise') -> GroupOrderResult: ...

class GruResult(NamedTuple):
    h: Array
    h_last: Array

def gru(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, bias_ih: ArrayLike | None = None, bias_hh: ArrayLike | None = None, h0: ArrayLike | None = None, *, linear_before_reset: builtins.bool = True, reverse: builtins.bool = False) -> GruResult: ...

class GruBackwardResult(NamedTuple):
    grad_x: Array
    grad_w_ih: Array
    grad_w_hh: Array
    grad_bias_ih: Array
    grad_bias_hh: Array
    grad_h0: Array

def gru_backward(x: ArrayLike, h: ArrayLike, d_h: ArrayLike, d_h_last: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, bias_ih: ArrayLike | None = None, bias_hh: ArrayLike | None = None, h0: ArrayLike | None = None, *, linear_before_reset: builtins.bool = True, reverse: builtins.bool = False) -> GruBackwardResult: ...

def hash(x: ArrayLike, *, seed: int = 0) -> Array: ...

def hash_indices(x: ArrayLike, *, num_buckets: int, seed: int = 0, method: Literal['splitmix', 'caffe2'] = 'splitmix') -> Array: ...

class HashNgramsResult(NamedTuple):
    values: Array
    lengths: Array

def hash_ngrams(tokens: ArrayLike, lengths: ArrayLike, *, n: int = 13, seed: int = 0) -> HashNgramsResult: ...

def hash_strings(data: ArrayLike, lengths: ArrayLike, *, num_buckets: int, seed: int = 0) -> Array: ...

def hash_text(data: ArrayLike, lengths: ArrayLike, *, seed: int = 0) -> Array: ...

def image_grids(sizes: ArrayLike, *, patch: int, merge: int, min_pixels: int, max_pixels: int) -> Array: ...

def image_ids(starts: ArrayLike, extents: ArrayLike, images: ArrayLike, lengths: ArrayLike) -> Array: ...

class ImageSpansResult(NamedTuple):
    starts: Array
    extents: Array

def image_spans(tokens: ArrayLike, sizes: ArrayLike, images: ArrayLike, lengths: ArrayLike, *, placeholder: int | collections.abc.Sequence[int]) -> ImageSpansResult: ...

def int16(x: ArrayLike, *, out: Any = None) -> Array: ...

def int32(x: ArrayLike, *, out: Any = None) -> Array: ...

def int64(x: ArrayLike, *, out: Any = None) -> Array: ...

def int8(x: ArrayLike, *, out: Any = None) -> Array: ...

class InterleaveResult(NamedTuple):
    values: Array
    lengths: Array

def interleave(data: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike]) -> InterleaveResult: ...

def isfinite(x: ArrayLike, *, out: Any = None) -> Array: ...

def isin(data: ArrayLike, values: ArrayLike, *, invert: builtins.bool = False) -> Array: ...

def isin_within(data: ArrayLike, lengths: ArrayLike, other: ArrayLike, other_lengths: ArrayLike, *, invert: builtins.bool = False) -> Array: ...

def isnan(x: ArrayLike, *, out: Any = None) -> Array: ...

def jaccard(p: ArrayLike, q: ArrayLike, lengths: ArrayLike, other: ArrayLike) -> Array: ...

class JoinTextsResult(NamedTuple):
    values: Array
    lengths: Array

def join_texts(data: ArrayLike, lengths: ArrayLike, counts: ArrayLike, separators: ArrayLike | None = None, separator_lengths: ArrayLike | None = None, *, separator: str = '') -> JoinTextsResult: ...

def key_split(keys: ArrayLike, *, num_keys: int) -> list[Array]: ...

class KeyedConcatResult(NamedTuple):
    values: Array
    lengths: Array
    keys: Array
    counts: Array

def keyed_concat(data: collections.abc.Sequence[ArrayLike], keys: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike], counts: collections.abc.Sequence[ArrayLike]) -> KeyedConcatResult: ...

class KeyedPermuteResult(NamedTuple):
    values: Array
    lengths: Array
    keys: Array

def keyed_permute(data: ArrayLike, keys: ArrayLike, lengths: ArrayLike, counts: ArrayLike, *, names: int | collections.abc.Sequence[int]) -> KeyedPermuteResult: ...

class KeyedSelectResult(NamedTuple):
    values: Array
    lengths: Array
    keys: Array
    counts: Array

def keyed_select(data: ArrayLike, keys: ArrayLike, lengths: ArrayLike, counts: ArrayLike, *, names: int | collections.abc.Sequence[int]) -> KeyedSelectResult: ...

class KeyedSplitResult(NamedTuple):
    values: list[Array]
    lengths: list[Array]

def keyed_split(data: ArrayLike, keys: ArrayLike, lengths: ArrayLike, counts: ArrayLike, *, names: int | collections.abc.Sequence[int], duplicates: Literal['raise', 'join'] = 'raise') -> KeyedSplitResult: ...

def labels_of_tokens(label_starts: ArrayLike, label_ends: ArrayLike, labels: ArrayLike, label_counts: ArrayLike, starts: ArrayLike, ends: ArrayLike, counts: ArrayLike, *, outside: int = 0, inside: int | None = None) -> Array: ...

def largest_shares(x: ArrayLike, largest: ArrayLike, *, axes: int | collections.abc.Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array: ...

def layer_norm(x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, *, epsilon: float = 1e-05) -> Array: ...

def lengths_all(data: ArrayLike, lengths: ArrayLike, *, empty: builtins.bool = False) -> Array: ...

def lengths_any(data: ArrayLike, lengths: ArrayLike, *, empty: builtins.bool = False) -> Array: ...

def lengths_argmax(data: ArrayLike, lengths: ArrayLike) -> Array: ...

def lengths_argmin(data: ArrayLike, lengths: ArrayLike) -> Array: ...

def lengths_first(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_last(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_logsumexp(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_max(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

class LengthsMaxWithArgmaxResult(NamedTuple):
    largest: Array
    positions: Array

def lengths_max_with_argmax(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> LengthsMaxWithArgmaxResult: ...

def lengths_mean(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_median(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_min(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

class LengthsMinWithArgminResult(NamedTuple):
    smallest: Array
    positions: Array

def lengths_min_with_argmin(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> LengthsMinWithArgminResult: ...

def lengths_outer_sum(a: ArrayLike, b: ArrayLike, lengths: ArrayLike) -> Array: ...

def lengths_prod(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_quantile(data: ArrayLike, lengths: ArrayLike, *, q: Any, interpolation: Literal['linear', 'lower', 'higher', 'nearest', 'midpoint'] = 'linear', empty: Scalar = 0) -> Array: ...

class LengthsRangeResult(NamedTuple):
    values: Array
    lengths: Array

def lengths_range(start: ArrayLike, stop: ArrayLike, step: ArrayLike | None = None, *, inclusive: builtins.bool = False, max_total: int | None = None) -> LengthsRangeResult: ...

class LengthsReducePositionsResult(NamedTuple):
    values: Array
    lengths: Array

def lengths_reduce_positions(data: ArrayLike, lengths: ArrayLike, groups: ArrayLike, *, how: Literal['sum', 'mean', 'max', 'min', 'prod', 'var', 'sqrt_n'] = 'sum') -> LengthsReducePositionsResult: ...

def lengths_split(lengths: ArrayLike, *, n: int) -> Array: ...

def lengths_sqrt_sum(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_std(data: ArrayLike, lengths: ArrayLike, *, ddof: int = 0, empty: Scalar = 0) -> Array: ...

def lengths_sum(data: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def lengths_to_cu_seqlens(lengths: ArrayLike) -> Array: ...

def lengths_to_mask(lengths: ArrayLike, *, max_length: int | None = None, side: Literal['right', 'left'] = 'right') -> Array: ...

def lengths_to_offsets(lengths: ArrayLike) -> Array: ...

def lengths_to_positions(lengths: ArrayLike) -> Array: ...

def lengths_to_ranges(lengths: ArrayLike) -> Array: ...

def lengths_to_segment_ids(lengths: ArrayLike) -> Array: ...

def lengths_to_shape(lengths: ArrayLike) -> Array: ...

def lengths_to_weights(lengths: ArrayLike, *, power: float = 0.5) -> Array: ...

class LengthsTopkResult(NamedTuple):
    values: Array
    positions: Array

def lengths_topk(data: ArrayLike, lengths: ArrayLike, *, k: int) -> LengthsTopkResult: ...

def lengths_var(data: ArrayLike, lengths: ArrayLike, *, ddof: int = 0, empty: Scalar = 0) -> Array: ...

def lengths_weighted_sum(data: ArrayLike, weights: ArrayLike, lengths: ArrayLike, *, empty: Scalar = 0) -> Array: ...

def less(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def less_equal(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def list_numbers(tensors: collections.abc.Sequence[ArrayLike], *, parts: int) -> list[Array]: ...

def log(x: ArrayLike, *, out: Any = None) -> Array: ...

def log10(x: ArrayLike, *, out: Any = None) -> Array: ...

def log1p(x: ArrayLike, *, out: Any = None) -> Array: ...

def log_softmax_within(data: ArrayLike, lengths: ArrayLike) -> Array: ...

def logaddexp(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def logical_and(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def logical_not(x: ArrayLike, *, out: Any = None) -> Array: ...

def logical_or(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def logical_xor(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def longest_common(p: ArrayLike, q: ArrayLike, lengths: ArrayLike, other: ArrayLike) -> Array: ...

class LowerResult(NamedTuple):
    values: Array
    lengths: Array

def lower(data: ArrayLike, lengths: ArrayLike, *, errors: Literal['strict', 'replace'] = 'strict') -> LowerResult: ...

def lshift(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

class LstmResult(NamedTuple):
    h: Array
    h_last: Array
    c_last: Array

def lstm(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, bias: ArrayLike | None = None, h0: ArrayLike | None = None, c0: ArrayLike | None = None, w_hr: ArrayLike | None = None, *, gate_order: Literal['ifgo', 'ifog'] = 'ifgo', forget_bias: float = 0.0, proj_size: int | None = None, reverse: builtins.bool = False) -> LstmResult: ...

class LstmBackwardResult(NamedTuple):
    grad_x: Array
    grad_w_ih: Array
    grad_w_hh: Array
    grad_bias: Array
    grad_h0: Array
    grad_c0: Array
    grad_w_hr: Array

def lstm_backward(x: ArrayLike, h: ArrayLike, d_h: ArrayLike, d_h_last: ArrayLike, d_c_last: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, bias: ArrayLike | None = None, h0: ArrayLike | None = None, c0: ArrayLike | None = None, w_hr: ArrayLike | None = None, *, gate_order: Literal['ifgo', 'ifog'] = 'ifgo', forget_bias: float = 0.0, proj_size: int | None = None, reverse: builtins.bool = False) -> LstmBackwardResult: ...

class MaskSequencesResult(NamedTuple):
    values: Array
    lengths: Array

def mask_sequences(data: ArrayLike, mask: ArrayLike, lengths: ArrayLike) -> MaskSequencesResult: ...

class MaskTokensResult(NamedTuple):
    values: Array
    labels: Array
    chosen: Array

def mask_tokens(tokens: ArrayLike, lengths: ArrayLike, words: ArrayLike | None = None, counts: ArrayLike | None = None, *, ratio: float, mask: int, vocabulary_size: int, seed: int, random: float = 0.1, keep: float = 0.1, never: int | collections.abc.Sequence[int] = (), ignore: int = -100) -> MaskTokensResult: ...

def match_names(data: ArrayLike, lengths: ArrayLike, *, names: Any) -> Array: ...

def matmul(a: ArrayLike, b: ArrayLike) -> Array: ...

class MatmulBackwardResult(NamedTuple):
    grad_a: Array
    grad_b: Array

def matmul_backward(d: ArrayLike, a: ArrayLike, b: ArrayLike) -> MatmulBackwardResult: ...

def maximum(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def median_within_backward(d: ArrayLike, data: ArrayLike, lengths: ArrayLike) -> Array: ...

class MergeDenseFeaturesResult(NamedTuple):
    values: Array
    lengths: Array
    keys: Array

def merge_dense_features(data: ArrayLike, presence: ArrayLike, *, feature_ids: int | collections.abc.Sequence[int]) -> MergeDenseFeaturesResult: ...

class MergeIdListsResult(NamedTuple):
    values: Array
    lengths: Array

def merge_id_lists(data: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike]) -> MergeIdListsResult: ...

class MergeListFeaturesResult(NamedTuple):
    values: Array
    lengths: Array
    keys: Array
    counts: Array

def merge_list_features(data: collections.abc.Sequence[ArrayLike], presence: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike], *, feature_ids: int | collections.abc.Sequence[int]) -> MergeListFeaturesResult: ...

class MergeMapFeaturesResult(NamedTuple):
    values: Array
    lengths: Array
    value_keys: Array
    keys: Array
    counts: Array

def merge_map_features(data: collections.abc.Sequence[ArrayLike], value_keys: collections.abc.Sequence[ArrayLike], presence: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike], *, feature_ids: int | collections.abc.Sequence[int]) -> MergeMapFeaturesResult: ...

class MergeMultiListFeaturesResult(NamedTuple):
    values: Array
    lengths: Array
    keys: Array
    counts: Array

def merge_multi_list_features(data: collections.abc.Sequence[ArrayLike], keys: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike], counts: collections.abc.Sequence[ArrayLike]) -> MergeMultiListFeaturesResult: ...

class MergeMultiMapFeaturesResult(NamedTuple):
    values: Array
    lengths: Array
    value_keys: Array
    keys: Array
    counts: Array

def merge_multi_map_features(data: collections.abc.Sequence[ArrayLike], value_keys: collections.abc.Sequence[ArrayLike], keys: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike], counts: collections.abc.Sequence[ArrayLike]) -> MergeMultiMapFeaturesResult: ...

class MergeMultiScalarFeaturesResult(NamedTuple):
    values: Array
    lengths: Array
    keys: Array

def merge_multi_scalar_features(data: collections.abc.Sequence[ArrayLike], keys: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike]) -> MergeMultiScalarFeaturesResult: ...

class MergeScalarFeaturesResult(NamedTuple):
    values: Array
    lengths: Array
    keys: Array

def merge_scalar_features(data: collections.abc.Sequence[ArrayLike], presence: collections.abc.Sequence[ArrayLike], *, feature_ids: int | collections.abc.Sequence[int]) -> MergeScalarFeaturesResult: ...

def minhash(shingles: ArrayLike, lengths: ArrayLike, *, num_perm: int = 128, seed: int = 1) -> Array: ...

def minimum(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def mrope_positions(starts: ArrayLike, grids: ArrayLike, images: ArrayLike, lengths: ArrayLike, intervals: ArrayLike | None = None, *, after: Literal['side', 'max'], merge: int = 2) -> Array: ...

def mul(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def neg(x: ArrayLike, *, out: Any = None) -> Array: ...

def ngram_overlap(tokens: ArrayLike, known: ArrayLike, lengths: ArrayLike, *, n: int = 13, seed: int = 0) -> Array: ...

class NgramTextsResult(NamedTuple):
    values: Array
    lengths: Array
    counts: Array

def ngram_texts(data: ArrayLike, lengths: ArrayLike, counts: ArrayLike, *, n: int | collections.abc.Sequence[int], separator: str = ' ', partial: builtins.bool = False) -> NgramTextsResult: ...

def ngrams(data: ArrayLike, lengths: ArrayLike, *, n: int, fill: Fill = 0) -> Array: ...

def noise(x: ArrayLike, *, scale: float = 1.0, kind: Literal['normal', 'uniform'] = 'normal', seed: int) -> Array: ...

def noise_spans(lengths: ArrayLike, *, density: float = 0.15, mean_span: float = 3.0, seed: int) -> Array: ...

class NormalizeResult(NamedTuple):
    values: Array
    lengths: Array

def normalize(data: ArrayLike, lengths: ArrayLike, *, form: Literal['NFC', 'NFKC', 'NFD', 'NFKD'] = 'NFC', errors: Literal['strict', 'replace'] = 'strict') -> NormalizeResult: ...

class NormalizeOffsetsResult(NamedTuple):
    values: Array
    lengths: Array

def normalize_offsets(data: ArrayLike, lengths: ArrayLike, *, form: Literal['NFC', 'NFKC', 'NFD', 'NFKD'] = 'NFC') -> NormalizeOffsetsResult: ...

def normalize_within(data: ArrayLike, lengths: ArrayLike, *, norm: Literal['l1', 'l2'] = 'l2') -> Array: ...

def not_equal(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def offsets_to_lengths(offsets: ArrayLike) -> Array: ...

def one_hot(x: ArrayLike, *, width: int, dtype: DTypeLike = ...) -> Array: ...

def one_like(x: ArrayLike) -> Array: ...

def one_permutation_minhash(shingles: ArrayLike, lengths: ArrayLike, *, num_perm: int = 128, seed: int = 1) -> Array: ...

def outer_sum(a: ArrayLike, b: ArrayLike) -> Array: ...

def outer_sums_by_id(a: ArrayLike, b: ArrayLike, ids: ArrayLike, like: ArrayLike) -> Array: ...

def pack_by_time(data: ArrayLike, lengths: ArrayLike, *, max_length: int | None = None, fill: Fill = 0, out: Any = None) -> Array: ...

def pack_by_time_like(data: ArrayLike, like: ArrayLike, lengths: ArrayLike) -> Array: ...

class PackRowsResult(NamedTuple):
    packed: Array
    segment_ids: Array
    position_ids: Array
    sources: Array
    piece_lengths: Array
    pieces: Array

def pack_rows(data: ArrayLike, lengths: ArrayLike, *, capacity: int, strategy: Literal['best_fit', 'first_fit', 'concat'] = 'best_fit', fill: Fill = 0) -> PackRowsResult: ...

class PackSequenceResult(NamedTuple):
    values: Array
    lengths: Array
    order: Array

def pack_sequence(data: ArrayLike, lengths: ArrayLike) -> PackSequenceResult: ...

def packed_cu_seqlens(piece_lengths: ArrayLike, pieces: ArrayLike, *, capacity: int) -> Array: ...

class PadResult(NamedTuple):
    padded: Array
    mask: Array

def pad(data: ArrayLike, lengths: ArrayLike, *, max_length: int | None = None, fill: Fill = 0, side: Literal['right', 'left'] = 'right', truncate: builtins.bool = False, multiple_of: int = 1, out: Any = None) -> PadResult: ...

class PadEmptyResult(NamedTuple):
    values: Array
    lengths: Array

def pad_empty(data: ArrayLike, lengths: ArrayLike, *, fill: Fill = 0) -> PadEmptyResult: ...

def pad_lengths(data: ArrayLike, lengths: ArrayLike, *, target_length: int, fill: Fill = 0) -> Array: ...

def pad_like(data: ArrayLike, like: ArrayLike, lengths: ArrayLike, *, side: Literal['right', 'left'] = 'right') -> Array: ...

def partition(data: ArrayLike, keys: ArrayLike, *, parts: int) -> list[Array]: ...

class PartitionSequencesResult(NamedTuple):
    values: list[Array]
    lengths: list[Array]

def partition_sequences(data: ArrayLike, keys: ArrayLike, lengths: ArrayLike, *, parts: int) -> PartitionSequencesResult: ...

class PatchPositionsResult(NamedTuple):
    values: Array
    lengths: Array

def patch_positions(grids: ArrayLike, *, merge: int = 2) -> PatchPositionsResult: ...

class PatchifyResult(NamedTuple):
    values: Array
    lengths: Array
    grids: Array

def patchify(pixels: ArrayLike, sizes: ArrayLike, lengths: ArrayLike, *, patch: int = 14, merge: int = 2, repeat: int = 2) -> PatchifyResult: ...

def positions_by_id(ids: ArrayLike) -> Array: ...

def pow(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

class PrefixTreeResult(NamedTuple):
    kept: Array
    node_lengths: Array
    parents: Array
    rows: Array

def prefix_tree(data: ArrayLike, lengths: ArrayLike, keys: ArrayLike | None = None, *, min_shared: int = 1) -> PrefixTreeResult: ...

class PrependTokenResult(NamedTuple):
    values: Array
    lengths: Array

def prepend_token(data: ArrayLike, lengths: ArrayLike, *, token: Fill) -> PrependTokenResult: ...

class ProductWithinResult(NamedTuple):
    left: Array
    right: Array
    lengths: Array

def product_within(lengths: ArrayLike, other: ArrayLike) -> ProductWithinResult: ...

def products_of_others(data: ArrayLike, lengths: ArrayLike) -> Array: ...

def products_of_others_backward(d: ArrayLike, data: ArrayLike, lengths: ArrayLike) -> Array: ...

def put_at_positions(rows: ArrayLike, positions: ArrayLike, like: ArrayLike, lengths: ArrayLike) -> Array: ...

def quantile_within_backward(d: ArrayLike, data: ArrayLike, lengths: ArrayLike, *, q: Any, interpolation: Literal['linear', 'lower', 'higher', 'nearest', 'midpoint'] = 'linear') -> Array: ...

def quantize_rowwise(data: ArrayLike, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Array: ...

def random_integers(positives: ArrayLike, lengths: ArrayLike, positive_lengths: ArrayLike, weights: ArrayLike | None = None, *, high: int, seed: int) -> Array: ...

def rank_within(data: ArrayLike, lengths: ArrayLike, *, ties: Literal['first', 'min', 'max', 'dense'] = 'first', descending: builtins.bool = False) -> Array: ...

def reciprocal(x: ArrayLike, *, out: Any = None) -> Array: ...

def reduce_max(x: ArrayLike, *, axes: int | collections.abc.Sequence[int] | None = None, keepdims: builtins.bool = False, empty: Scalar = 0) -> Array: ...

def reduce_mean(x: ArrayLike, *, axes: int | collections.abc.Sequence[int] | None = None, keepdims: builtins.bool = False, empty: Scalar = 0) -> Array: ...

def reduce_sum(x: ArrayLike, *, axes: int | collections.abc.Sequence[int] | None = None, keepdims: builtins.bool = False, empty: Scalar = 0) -> Array: ...

class RegroupResult(NamedTuple):
    values: list[Array]
    lengths: list[Array]

def regroup(data: ArrayLike, keys: ArrayLike, lengths: ArrayLike, counts: ArrayLike, *, groups: Any, duplicates: Literal['raise', 'join'] = 'raise') -> RegroupResult: ...

def relu(x: ArrayLike, *, out: Any = None) -> Array: ...

def remainder(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

class RemovePaddingResult(NamedTuple):
    values: Array
    lengths: Array

def remove_padding(data: ArrayLike, lengths: ArrayLike, *, before: int = 1, after: int | None = None) -> RemovePaddingResult: ...

def remove_rows(data: ArrayLike, indices: ArrayLike) -> Array: ...

class RepeatSequencesResult(NamedTuple):
    values: Array
    lengths: Array

def repeat_sequences(data: ArrayLike, repeats: ArrayLike, lengths: ArrayLike) -> RepeatSequencesResult: ...

def repetition_shares(pieces: ArrayLike, sizes: ArrayLike, counts: ArrayLike, *, n: int = 1, top: builtins.bool = False) -> Array: ...

class ReplaceTextResult(NamedTuple):
    values: Array
    lengths: Array

def replace_text(data: ArrayLike, lengths: ArrayLike, *, pattern: str | None = None, regex: str | None = None, by: str = '', errors: Literal['strict', 'replace'] = 'strict') -> ReplaceTextResult: ...

def reshape(x: ArrayLike, shape: ArrayLike) -> Array: ...

def reshape_like(x: ArrayLike, like: ArrayLike) -> Array: ...

class ReshapeSequencesResult(NamedTuple):
    values: Array
    lengths: Array

def reshape_sequences(data: ArrayLike, lengths: ArrayLike, *, width: int) -> ReshapeSequencesResult: ...

def reverse_packed(data: ArrayLike, lengths: ArrayLike) -> Array: ...

def reverse_sequences(data: ArrayLike, lengths: ArrayLike) -> Array: ...

class RnnResult(NamedTuple):
    h: Array
    h_last: Array

def rnn(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, bias: ArrayLike | None = None, h0: ArrayLike | None = None, *, nonlinearity: Literal['tanh', 'relu'] = 'tanh', reverse: builtins.bool = False) -> RnnResult: ...

class RnnBackwardResult(NamedTuple):
    grad_x: Array
    grad_w_ih: Array
    grad_w_hh: Array
    grad_bias: Array
    grad_h0: Array

def rnn_backward(x: ArrayLike, h: ArrayLike, d_h: ArrayLike, d_h_last: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, bias: ArrayLike | None = None, h0: ArrayLike | None = None, *, nonlinearity: Literal['tanh', 'relu'] = 'tanh', reverse: builtins.bool = False) -> RnnBackwardResult: ...

def rotary(x: ArrayLike, positions: ArrayLike, *, base: float = 10000.0, interleaved: builtins.bool = False, sections: int | collections.abc.Sequence[int] = (), inverse: builtins.bool = False) -> Array: ...

def round(x: ArrayLike, *, out: Any = None) -> Array: ...

class RouteTopkResult(NamedTuple):
    tokens: Array
    lengths: Array
    choices: Array

def route_topk(experts: ArrayLike, *, num_experts: int, capacity: int | None = None, multiple_of: int = 1) -> RouteTopkResult: ...

def row_dot(a: ArrayLike, b: ArrayLike) -> Array: ...

def row_numbers(like: ArrayLike) -> Array: ...

def rshift(x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

def rsqrt(x: ArrayLike, *, out: Any = None) -> Array: ...

def rsub(x: ArrayLike, y: ArrayLike, *, alpha: Scalar = 1, out: Any = None) -> Array: ...

class RunLengthsResult(NamedTuple):
    values: Array
    lengths: Array
    counts: Array

def run_lengths(data: ArrayLike, lengths: ArrayLike, *, gap: float | None = None) -> RunLengthsResult: ...

def same_lengths(lengths: ArrayLike, other: ArrayLike) -> None: ...

def same_rows(data: ArrayLike, other: ArrayLike) -> None: ...

def scale_rows(data: ArrayLike, scale: ArrayLike) -> Array: ...

def scatter_axis(x: ArrayLike, indices: ArrayLike, like: ArrayLike, *, axis: int, wrap: builtins.bool = False) -> Array: ...

def scatter_inside(rows: ArrayLike, ids: ArrayLike, like: ArrayLike) -> Array: ...

def scatter_pooled(rows: ArrayLike, like: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, ignore_index: int | None = None) -> Array: ...

def scatter_pooled_weighted(rows: ArrayLike, weights: ArrayLike, like: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, ignore_index: int | None = None) -> Array: ...

def scatter_rows(rows: ArrayLike, indices: ArrayLike, like: ArrayLike, *, wrap: builtins.bool = False, ignore_index: int | None = None) -> Array: ...

def scatter_rows_of_list(rows: ArrayLike, indices: ArrayLike, like: collections.abc.Sequence[ArrayLike], *, parts: int, ignore_index: int | None = None) -> list[Array]: ...

def scatter_sequences(x: ArrayLike, updates: ArrayLike, indices: ArrayLike, lengths: ArrayLike) -> Array: ...

def scatter_within(data: ArrayLike, positions: ArrayLike, lengths: ArrayLike) -> Array: ...

def segment_counts(ids: ArrayLike, like: ArrayLike) -> Array: ...

def segment_ids_to_lengths(ids: ArrayLike, *, num_segments: int | None = None) -> Array: ...

def segment_ids_to_ranges(ids: ArrayLike, *, num_segments: int | None = None) -> Array: ...

def segment_matmul(x: ArrayLike, weight: ArrayLike, lengths: ArrayLike, *, transpose: builtins.bool = False) -> Array: ...

def segment_one_hot(indices: ArrayLike, lengths: ArrayLike, *, width: int, dtype: DTypeLike = ...) -> Array: ...

def sequence_mask(x: ArrayLike, bounds: ArrayLike | None = None, *, mode: Literal['sequence', 'window', 'upper', 'lower', 'upper_diagonal', 'lower_diagonal'], axis: int = 1, batch: int | None = None, repeat_from_axis: int | None = None, radius: int = 10, fill: Fill | None = None) -> Array: ...

class ShardSequencesResult(NamedTuple):
    values: Array
    lengths: Array

def shard_sequences(data: ArrayLike, lengths: ArrayLike, *, parts: int, part: int, order: Literal['zigzag', 'zigzag_row', 'contiguous'] = 'zigzag') -> ShardSequencesResult: ...

def shift(data: ArrayLike, lengths: ArrayLike, *, by: int, fill: Fill = 0) -> Array: ...

def shuffle_within(data: ArrayLike, lengths: ArrayLike, *, seed: int) -> Array: ...

def sigmoid(x: ArrayLike, *, out: Any = None) -> Array: ...

def sign(x: ArrayLike, *, out: Any = None) -> Array: ...

def sin(x: ArrayLike, *, out: Any = None) -> Array: ...

def sinh(x: ArrayLike, *, out: Any = None) -> Array: ...

def slice_axes(x: ArrayLike, *, starts: int | collections.abc.Sequence[int], stops: int | collections.abc.Sequence[int], steps: int | collections.abc.Sequence[int] | None = None, axes: int | collections.abc.Sequence[int] | None = None) -> Array: ...

def slice_backward(d: ArrayLike, like: ArrayLike, *, starts: int | collections.abc.Sequence[int], stops: int | collections.abc.Sequence[int], steps: int | collections.abc.Sequence[int] | None = None, axes: int | collections.abc.Sequence[int] | None = None) -> Array: ...

class SliceSequencesResult(NamedTuple):
    values: Array
    lengths: Array

def slice_sequences(data: ArrayLike, starts: ArrayLike, sizes: ArrayLike, lengths: ArrayLike, *, clip: builtins.bool = False) -> SliceSequencesResult: ...

def softmax(x: ArrayLike) -> Array: ...

def softmax_within(data: ArrayLike, lengths: ArrayLike) -> Array: ...

def softmax_within_backward(d: ArrayLike, y: ArrayLike, lengths: ArrayLike) -> Array: ...

def sort_within(data: ArrayLike, lengths: ArrayLike, *, descending: builtins.bool = False) -> Array: ...

def sorted_segment_logmeanexp(data: ArrayLike, ids: ArrayLike) -> Array: ...

def sorted_segment_logsumexp(data: ArrayLike, ids: ArrayLike) -> Array: ...

def sorted_segment_max(data: ArrayLike, ids: ArrayLike) -> Array: ...

def sorted_segment_mean(data: ArrayLike, ids: ArrayLike) -> Array: ...

def sorted_segment_min(data: ArrayLike, ids: ArrayLike) -> Array: ...

def sorted_segment_prod(data: ArrayLike, ids: ArrayLike) -> Array: ...

def sorted_segment_sum(data: ArrayLike, ids: ArrayLike) -> Array: ...

def sorted_segment_weighted_sum(data: ArrayLike, weights: ArrayLike, ids: ArrayLike) -> Array: ...

class SpanCorruptResult(NamedTuple):
    values: Array
    lengths: Array
    targets: Array
    target_lengths: Array

def span_corrupt(tokens: ArrayLike, noise: ArrayLike, lengths: ArrayLike, *, first: int) -> SpanCorruptResult: ...

def sparse_lengths_max(table: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, ignore_index: int | None = None, empty: Scalar = 0) -> Array: ...

def sparse_lengths_mean(table: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, ignore_index: int | None = None, empty: Scalar = 0) -> Array: ...

def sparse_lengths_mean_quantized(table: ArrayLike, indices: ArrayLike, lengths: ArrayLike, mapping: ArrayLike | None = None, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Array: ...

def sparse_lengths_positional_weighted_sum(table: ArrayLike, weights: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, ignore_index: int | None = None, empty: Scalar = 0) -> Array: ...

def sparse_lengths_sum(table: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, ignore_index: int | None = None, empty: Scalar = 0) -> Array: ...

def sparse_lengths_sum_quantized(table: ArrayLike, indices: ArrayLike, lengths: ArrayLike, mapping: ArrayLike | None = None, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Array: ...

def sparse_lengths_weighted_sum(table: ArrayLike, weights: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, ignore_index: int | None = None, empty: Scalar = 0) -> Array: ...

def sparse_lengths_weighted_sum_quantized(table: ArrayLike, weights: ArrayLike, indices: ArrayLike, lengths: ArrayLike, mapping: ArrayLike | None = None, *, bits: int = 8, scale: Literal['float32', 'float16'] | None = None) -> Array: ...

class SparseLookupResult(NamedTuple):
    values: Array
    lengths: Array

def sparse_lookup(indices: ArrayLike, mapping: ArrayLike, lengths: ArrayLike) -> SparseLookupResult: ...

def sparse_sorted_segment_mean(table: ArrayLike, indices: ArrayLike, ids: ArrayLike) -> Array: ...

def sparse_sorted_segment_sum(table: ArrayLike, indices: ArrayLike, ids: ArrayLike) -> Array: ...

def sparse_sorted_segment_weighted_sum(table: ArrayLike, weights: ArrayLike, indices: ArrayLike, ids: ArrayLike) -> Array: ...

def sparse_to_dense(values: ArrayLike, indices: ArrayLike, *, num_rows: int | None = None, duplicates: Literal['sum', 'last', 'raise'] = 'sum') -> Array: ...

class SparseToDenseMaskResult(NamedTuple):
    dense: Array
    presence: Array

def sparse_to_dense_mask(values: ArrayLike, default: ArrayLike, indices: ArrayLike, lengths: ArrayLike, *, mask: int | collections.abc.Sequence[int]) -> SparseToDenseMaskResult: ...

def sparse_unsorted_segment_mean(table: ArrayLike, indices: ArrayLike, ids: ArrayLike, *, num_segments: int | None = None, empty: Scalar = 0) -> Array: ...

def sparse_unsorted_segment_sum(table: ArrayLike, indices: ArrayLike, ids: ArrayLike, *, num_segments: int | None = None, empty: Scalar = 0) -> Array: ...

def sparse_unsorted_segment_weighted_sum(table: ArrayLike, weights: ArrayLike, indices: ArrayLike, ids: ArrayLike, *, num_segments: int | None = None, empty: Scalar = 0) -> Array: ...

def split(x: ArrayLike, *, parts: int | collections.abc.Sequence[int], axis: int = 0) -> list[Array]: ...

def split_like(x: ArrayLike, like: collections.abc.Sequence[ArrayLike], *, axis: int = 0, parts: int) -> list[Array]: ...

class SplitSequencesResult(NamedTuple):
    values: Array
    lengths: Array
    counts: Array

def split_sequences(data: ArrayLike, lengths: ArrayLike, *, chunk: int, stride: int | None = None) -> SplitSequencesResult: ...

class SplitTextResult(NamedTuple):
    values: Array
    lengths: Array
    counts: Array

def split_text(data: ArrayLike, lengths: ArrayLike, *, delimiter: str | collections.abc.Sequence[str] | None = None, pattern: str | None = None, keep_empty: builtins.bool = True, keep_delimiter: builtins.bool = False, max_splits: int | None = None, errors: Literal['strict', 'replace'] = 'strict') -> SplitTextResult: ...

class SplitWordsResult(NamedTuple):
    values: Array
    lengths: Array
    counts: Array

def split_words(data: ArrayLike, lengths: ArrayLike, *, pattern: str | None = None, errors: Literal['strict', 'replace'] = 'strict') -> SplitWordsResult: ...

def spread(x: ArrayLike, like: ArrayLike, *, axes: int | collections.abc.Sequence[int] | None = None, keepdims: builtins.bool = False, mean: builtins.bool = False) -> Array: ...

def sqrt(x: ArrayLike, *, out: Any = None) -> Array: ...

def square(x: ArrayLike, *, out: Any = None) -> Array: ...

def square_root_divide(data: ArrayLike, scale: ArrayLike) -> Array: ...

def squeeze(x: ArrayLike, *, axis: int | collections.abc.Sequence[int] | None = None) -> Array: ...

def standardize_within(data: ArrayLike, lengths: ArrayLike, *, ddof: int = 0, epsilon: float = 1e-08) -> Array: ...

class StartsToLengthsResult(NamedTuple):
    lengths: Array
    counts: Array

def starts_to_lengths(starts: ArrayLike, lengths: ArrayLike) -> StartsToLengthsResult: ...

def starts_with(data: ArrayLike, lengths: ArrayLike, *, pattern: str, errors: Literal['strict', 'replace'] = 'strict') -> Array: ...

def stop_gradient(x: ArrayLike) -> Array: ...

class StrideWithinResult(NamedTuple):
    values: Array
    lengths: Array

def stride_within(data: ArrayLike, lengths: ArrayLike, start: ArrayLike | None = None, stop: ArrayLike | None = None, step: ArrayLike | None = None) -> StrideWithinResult: ...

class StripResult(NamedTuple):
    values: Array
    lengths: Array

def strip(data: ArrayLike, lengths: ArrayLike, *, characters: str | None = None, errors: Literal['strict', 'replace'] = 'strict') -> StripResult: ...

def sub(x: ArrayLike, y: ArrayLike, *, alpha: Scalar = 1, out: Any = None) -> Array: ...

def sum_to(x: ArrayLike, like: ArrayLike) -> Array: ...

def take_at_positions(data: ArrayLike, positions: ArrayLike, lengths: ArrayLike) -> Array: ...

def tan(x: ArrayLike, *, out: Any = None) -> Array: ...

def tanh(x: ArrayLike, *, out: Any = None) -> Array: ...

def tile(x: ArrayLike, *, repeats: int | collections.abc.Sequence[int]) -> Array: ...

def tile_backward(d: ArrayLike, like: ArrayLike, *, repeats: int | collections.abc.Sequence[int]) -> Array: ...

def to_rows(positions: ArrayLike, lengths: ArrayLike, *, keep_missing: builtins.bool = False) -> Array: ...

def to_rows_within(positions: ArrayLike, lengths: ArrayLike, picked: ArrayLike, *, keep_missing: builtins.bool = False) -> Array: ...

class TokenOffsetsResult(NamedTuple):
    starts: Array
    ends: Array
    counts: Array

def token_offsets(data: ArrayLike, lengths: ArrayLike, *, tokenizer: Any, special_tokens: builtins.bool = True, characters: builtins.bool = False, errors: Literal['strict', 'replace'] = 'strict') -> TokenOffsetsResult: ...

class TokenizeResult(NamedTuple):
    values: Array
    lengths: Array

def tokenize(data: ArrayLike, lengths: ArrayLike, *, tokenizer: Any, begin: str | None = None, end: str | None = None, special_tokens: builtins.bool = True, errors: Literal['strict', 'replace'] = 'strict') -> TokenizeResult: ...

class TokenizeChatResult(NamedTuple):
    values: Array
    lengths: Array
    labels: Array

def tokenize_chat(content: ArrayLike, role: ArrayLike, content_lengths: ArrayLike, role_lengths: ArrayLike, lengths: ArrayLike, *, tokenizer: Any, roles: str | collections.abc.Sequence[str] = ('system', 'user', 'assistant'), trained: str | collections.abc.Sequence[str] = ('assistant',), turn_start: str | collections.abc.Sequence[str] = ('<|im_start|>{role}\n',), turn_end: str | collections.abc.Sequence[str] = ('<|im_end|>\n',), begin: str | None = None, end: str | None = None, errors: Literal['strict', 'replace'] = 'strict') -> TokenizeChatResult: ...

class TokensToBytesResult(NamedTuple):
    values: Array
    lengths: Array

def tokens_to_bytes(tokens: ArrayLike, lengths: ArrayLike, *, offset: int = 0) -> TokensToBytesResult: ...

class TopkWithinResult(NamedTuple):
    values: Array
    lengths: Array
    positions: Array

def topk_within(data: ArrayLike, scores: ArrayLike, lengths: ArrayLike, *, k: int) -> TopkWithinResult: ...

def train_tokenizer(data: ArrayLike, lengths: ArrayLike, *, vocabulary_size: int, min_frequency: int = 2, special_tokens: str | collections.abc.Sequence[str] = (), errors: Literal['strict', 'replace'] = 'strict') -> Array: ...

def transpose(x: ArrayLike, *, perm: int | collections.abc.Sequence[int] | None = None) -> Array: ...

class TreePathsResult(NamedTuple):
    keys: Array
    path_lengths: Array
    positions: Array
    previous: Array
    until: Array

def tree_paths(parents: ArrayLike, node_lengths: ArrayLike) -> TreePathsResult: ...

class TrimDatasetResult(NamedTuple):
    values: Array
    lengths: Array

def trim_dataset(data: ArrayLike, lengths: ArrayLike, *, multiple_of: int) -> TrimDatasetResult: ...

def trunc(x: ArrayLike, *, out: Any = None) -> Array: ...

class TruncateResult(NamedTuple):
    values: Array
    lengths: Array

def truncate(data: ArrayLike, lengths: ArrayLike, *, max_length: int, keep: Literal['head', 'tail'] = 'head') -> TruncateResult: ...

class TruncateTogetherResult(NamedTuple):
    values: list[Array]
    lengths: list[Array]

def truncate_together(data: collections.abc.Sequence[ArrayLike], lengths: collections.abc.Sequence[ArrayLike], budget: ArrayLike, *, columns: int, how: Literal['longest_first', 'waterfall'] = 'longest_first', keep: Literal['head', 'tail'] = 'head') -> TruncateTogetherResult: ...

def uint16(x: ArrayLike, *, out: Any = None) -> Array: ...

def uint32(x: ArrayLike, *, out: Any = None) -> Array: ...

def uint64(x: ArrayLike, *, out: Any = None) -> Array: ...

def uint8(x: ArrayLike, *, out: Any = None) -> Array: ...

class UniqueResult(NamedTuple):
    unique: Array
    inverse: Array
    counts: Array

def unique(x: ArrayLike) -> UniqueResult: ...

class UniqueWithinResult(NamedTuple):
    values: Array
    lengths: Array
    counts: Array

def unique_within(data: ArrayLike, lengths: ArrayLike, *, order: Literal['sorted', 'first'] = 'sorted') -> UniqueWithinResult: ...

def unpack_by_time(packed: ArrayLike, lengths: ArrayLike, *, out: Any = None) -> Array: ...

class UnpackRowsResult(NamedTuple):
    values: Array
    lengths: Array

def unpack_rows(packed: ArrayLike, sources: ArrayLike, piece_lengths: ArrayLike, pieces: ArrayLike, *, num_sequences: int | None = None) -> UnpackRowsResult: ...

class UnpackSequenceResult(NamedTuple):
    values: Array
    lengths: Array

def unpack_sequence(data: ArrayLike, order: ArrayLike, lengths: ArrayLike) -> UnpackSequenceResult: ...

def unpad(padded: ArrayLike, lengths: ArrayLike, *, side: Literal['right', 'left'] = 'right', out: Any = None) -> Array: ...

class UnpatchifyResult(NamedTuple):
    values: Array
    lengths: Array
    sizes: Array

def unpatchify(patches: ArrayLike, grids: ArrayLike, lengths: ArrayLike, *, patch: int = 14, merge: int = 2, repeat: int = 2) -> UnpatchifyResult: ...

def unroute(y: ArrayLike, choices: ArrayLike, weights: ArrayLike) -> Array: ...

class UnshardSequencesResult(NamedTuple):
    values: Array
    lengths: Array

def unshard_sequences(data: ArrayLike, lengths: ArrayLike, *, parts: int, order: Literal['zigzag', 'zigzag_row', 'contiguous'] = 'zigzag') -> UnshardSequencesResult: ...

def unsorted_segment_max(data: ArrayLike, ids: ArrayLike, *, num_segments: int | None = None, empty: Scalar = 0) -> Array: ...

def unsorted_segment_mean(data: ArrayLike, ids: ArrayLike, *, num_segments: int | None = None, empty: Scalar = 0) -> Array: ...

def unsorted_segment_min(data: ArrayLike, ids: ArrayLike, *, num_segments: int | None = None, empty: Scalar = 0) -> Array: ...

def unsorted_segment_sum(data: ArrayLike, ids: ArrayLike, *, num_segments: int | None = None, empty: Scalar = 0) -> Array: ...

def unsorted_segment_weighted_sum(data: ArrayLike, weights: ArrayLike, ids: ArrayLike, *, num_segments: int | None = None, empty: Scalar = 0) -> Array: ...

class UpperResult(NamedTuple):
    values: Array
    lengths: Array

def upper(data: ArrayLike, lengths: ArrayLike, *, errors: Literal['strict', 'replace'] = 'strict') -> UpperResult: ...

class ViterbiDecodeResult(NamedTuple):
    states: Array
    score: Array

def viterbi_decode(scores: ArrayLike, transitions: ArrayLike, lengths: ArrayLike, allowed: ArrayLike | None = None) -> ViterbiDecodeResult: ...

def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, *, out: Any = None) -> Array: ...

class WindowOrderResult(NamedTuple):
    order: Array
    lengths: Array

def window_order(grids: ArrayLike, *, merge: int = 2, window: int = 4) -> WindowOrderResult: ...

class WordOffsetsResult(NamedTuple):
    starts: Array
    ends: Array
    counts: Array

def word_offsets(data: ArrayLike, lengths: ArrayLike, *, pattern: str | None = None, characters: builtins.bool = False, errors: Literal['strict', 'replace'] = 'strict') -> WordOffsetsResult: ...

def zero_after_length(x: ArrayLike, lengths: ArrayLike) -> Array: ...

def zeros_like(like: ArrayLike) -> Array: ...
