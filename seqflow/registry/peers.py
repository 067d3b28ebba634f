"""What other libraries, and people who ask, call what an op does."""

from __future__ import annotations

_TABLE = """
abs: np.absolute
acos: np.arccos
acosh: np.arccosh
add: torch.add; tf.add_n; x + y
add_padding: F.pad; pad both ends of each sequence
append_token: add eos; tf.concat([x, eos], axis=1)
argsort_within: ak.argsort; argsort per row; tf.argsort ragged
as_text: tf.strings.as_string; astype(str)
asin: np.arcsin
asinh: np.arcsinh
atan: np.arctan
atan2: np.arctan2
atanh: np.arctanh
batch_bucket_one_hot: one-hot of buckets per column
batch_bucketize: np.digitize per column; tf.feature_column.bucketized_column
batch_dense_to_sparse: nonzero columns as id lists
batch_one_hot: sklearn.preprocessing.OneHotEncoder; one-hot per column
batch_sparse_to_dense: id lists as dense columns; multi-hot
bidirectional_gru: torch.nn.GRU bidirectional
bidirectional_gru_backward: gradient of torch.nn.GRU bidirectional
bidirectional_lstm: torch.nn.LSTM bidirectional; tf.keras.layers.Bidirectional
bidirectional_lstm_backward: gradient of torch.nn.LSTM bidirectional
bidirectional_rnn: torch.nn.RNN bidirectional
bidirectional_rnn_backward: gradient of torch.nn.RNN bidirectional
bitwise_and: x & y
bitwise_not: np.invert
bitwise_or: x | y
bitwise_xor: x ^ y
bool: torch.Tensor.bool
boolean_mask: torch.masked_select; tf.boolean_mask; tf.ragged.boolean_mask; filter elements
boolean_mask_lengths: tf.ragged.boolean_mask; lengths after a mask
boolean_unmask: undo masks; masked_scatter
broadcast_like: torch.Tensor.expand_as; np.broadcast_to
bucketize: torch.bucketize; np.digitize; tf.searchsorted; pd.cut; quantile bins
bytes_to_tokens: tf.io.decode_raw; byte tokens; ByT5 tokenizer
cast: torch.Tensor.to; np.ndarray.astype; tf.cast
cast_like: torch.Tensor.type_as
cell_numbers: index of each cell of a padded batch
clip: torch.clamp; tf.clip_by_value
collapse_lengths: ak.flatten axis=1; RaggedTensor.merge_dims; flatten one level of nesting; two levels to one
concat: torch.cat; np.concatenate; tf.concat
concat_sequences: tf.concat axis=1 ragged; ak.concatenate axis=1; fluid.layers.sequence_concat;
    concatenate two ragged features; join two list columns
context_windows: fluid.layers.sequence_conv; sliding window; skip-gram windows
cross_features: tf.feature_column.crossed_column; tf.ragged.cross; feature crosses
ctc_greedy_decode: tf.nn.ctc_greedy_decoder; fluid.layers.ctc_greedy_decoder
cumsum_within: df.groupby.cumsum; running total per row; torch.cumsum per sequence; cumulative sum per group
decode: tokenizer.decode; tokenizer.batch_decode; detokenize
dense_to_id_list: positions of ones
dense_to_sparse: torch.Tensor.to_sparse; tf.sparse.from_dense
dequantize_rowwise: fbgemm.Fused8BitRowwiseQuantizedToFloat
div: np.divide; np.true_divide; x / y
dropout: torch.nn.Dropout; tf.nn.dropout
dropout_ids: drop random ids
dropout_sequences: drop random rows
encode: pd.factorize; tf.lookup.StaticHashTable; label encode; vocabulary look up
encode_strings: tf.keras.layers.StringLookup; pc.index_in; vocabulary look up of strings
equal: torch.eq
erase_tokens: fluid.layers.sequence_erase; remove tokens; remove stop words
expand: torch.repeat_interleave; np.repeat; fluid.layers.sequence_expand; df.explode of a scalar column;
    broadcast a value over its sequence
expand_dims: torch.unsqueeze; np.newaxis; tf.expand_dims
expression: numexpr.evaluate; df.eval; pnnx.Expression
fc: torch.nn.Linear; tf.keras.layers.Dense
filter_sequences: datasets.filter; df.groupby.filter; filter rows by a condition; drop empty sequences
find: np.isin; pc.index_in; where an id is
find_duplicates: df.duplicated
flatten_rows: torch.flatten; np.ravel of each row
float16: torch.Tensor.half
float32: torch.Tensor.float
float64: torch.Tensor.double
gather: torch.index_select; np.take; tf.gather; torch.nn.Embedding; embedding look up; embedding lookup
gather_axis: torch.index_select dim=1; tf.gather axis=1; np.take axis=1
gather_by_key: undo a partition by key
gather_cells: torch.gather; np.take_along_axis of rows
gather_columns_within: columns of a padded batch
gather_inside: np.take_along_axis inside sequences
gather_padding: gradient of padding
gather_quantized: quantized embedding look up
gather_ranges: tf.ragged.range gather; slices of a flat array
gather_ranges_to_dense: fixed-length ranges as a dense table
gather_sequences: tf.gather of a ragged; ak.take; batch gather by ids; jagged_index_select;
    keyed_jagged_index_select_dim1
gather_within: tf.gather batch_dims=1; tf.batch_gather; batch gather; torch.gather per row
gather_within_padded: tf.gather batch_dims=1 of a padded batch
greater: torch.gt
greater_equal: torch.ge
gru: torch.nn.GRU; fluid.layers.dynamic_gru
gru_backward: gradient of torch.nn.GRU
hash_indices: torchrec.modules.hash; tf.keras.layers.Hashing; hashing trick
hash_strings: tf.strings.to_hash_bucket_fast; FeatureHasher; hashing trick of strings
int32: torch.Tensor.int
int64: torch.Tensor.long; int
interleave: zip sequences; tf.data.Dataset.interleave; zip lists
key_split: df.groupby of ids
keyed_concat: KeyedJaggedTensor.concat
keyed_permute: KeyedJaggedTensor.permute; fbgemm.permute_2D_sparse_data
keyed_select: KeyedJaggedTensor[key]
keyed_split: KeyedJaggedTensor.split; KeyedJaggedTensor.to_dict
layer_norm: torch.nn.LayerNorm
lengths_all: ak.all; df.groupby.all
lengths_any: ak.any; df.groupby.any
lengths_argmax: ak.argmax; df.groupby.idxmax; argmax per row; torch_scatter.scatter_max arg
lengths_argmin: ak.argmin; df.groupby.idxmin
lengths_first: df.groupby.first; ak.firsts; fluid.layers.sequence_first_step; first of each row; first token;
    cls pooling
lengths_last: df.groupby.last; fluid.layers.sequence_last_step; last hidden state; last of each row
lengths_logsumexp: torch_scatter.scatter_logsumexp; scipy.special.logsumexp per row
lengths_max: tf.reduce_max ragged; ak.max; np.maximum.reduceat; torch_scatter.segment_max_csr;
    max pooling per row
lengths_mean: tf.reduce_mean ragged; ak.mean; torch_scatter.segment_mean_csr; df.groupby.mean; mean pooling;
    fluid.layers.sequence_pool average
lengths_min: tf.reduce_min ragged; ak.min; np.minimum.reduceat; torch_scatter.segment_min_csr
lengths_prod: ak.prod; tf.reduce_prod ragged; np.multiply.reduceat
lengths_split: batch sizes of a split
lengths_sqrt_sum: tf.nn.embedding_lookup_sparse sqrtn; sum over the root of its length
lengths_std: ak.std; torch_scatter.scatter_std; df.groupby.std
lengths_sum: tf.reduce_sum ragged; ak.sum; np.add.reduceat; torch.segment_reduce; torch_scatter.segment_csr;
    df.groupby.sum; fluid.layers.sequence_pool sum; fbgemm.segment_sum_csr; sum per row
lengths_to_cu_seqlens: cu_seqlens; flash attention cu_seqlens
lengths_to_mask: tf.sequence_mask; attention mask from lengths; fluid.layers.sequence_mask; padding mask
lengths_to_offsets: asynchronous_complete_cumsum; fbgemm.asynchronous_complete_cumsum; row_splits; indptr;
    np.cumsum of lengths; crow_indices
lengths_to_positions: position ids; df.groupby.cumcount; arange per row
lengths_to_ranges: starts and lengths; row_starts
lengths_to_segment_ids: value_rowids; np.repeat(np.arange(n), lengths); torch.repeat_interleave of arange;
    lengths to segment ids; torch_geometric batch vector; ptr to index
lengths_to_shape: uniform_row_length
lengths_to_weights: one over the length
lengths_topk: tf.math.top_k ragged padded; torch_geometric.nn.pool.topk
lengths_var: ak.var; df.groupby.var
lengths_weighted_sum: weighted sum per row; attention pooling
less: torch.lt
less_equal: torch.le
list_numbers: which list each element is in
log_softmax_within: torch_scatter.scatter_log_softmax; ragged log softmax
logaddexp: log of a sum of two exponentials
lower: str.lower; tf.strings.lower; pc.utf8_lower; lowercase
lshift: np.left_shift
lstm: torch.nn.LSTM; fluid.layers.dynamic_lstm
lstm_backward: gradient of torch.nn.LSTM
mask_sequences: zero after the mask of a row; masked fill of sequences; attention mask on values
match_names: regex on names; pc.match_substring_regex; re.search
matmul: torch.matmul; np.matmul
matmul_backward: gradient of torch.matmul
maximum: np.maximum; max; elementwise max
merge_dense_features: torch.cat of dense features
merge_id_lists: union of id lists; set union per row
merge_list_features: optional list features as one
merge_map_features: optional map features as one
merge_multi_list_features: many list features by id
merge_multi_map_features: many map features by id
merge_multi_scalar_features: many scalar features by id
merge_scalar_features: optional scalar features as one
minimum: np.minimum; min; elementwise min
mul: np.multiply; x * y
neg: np.negative
ngrams: tf.strings.ngrams; tft.ngrams; nltk.ngrams; n-grams; bigrams
normalize: unicodedata.normalize; tf_text.normalize_utf8
normalize_within: normalise per row; divide by the sum of its row; weights of a weighted mean
not_equal: torch.ne
offsets_to_lengths: row_lengths; fbgemm.offsets_to_lengths; np.diff of offsets; row_splits to row_lengths;
    RaggedTensor.from_row_splits; ak.num
one_hot: torch.nn.functional.one_hot; tf.one_hot; pd.get_dummies
one_like: torch.ones_like; np.ones_like
outer_sum: np.add.outer
pack_by_time: time-major batch; batch_first=False
pack_by_time_like: time-major batch with the plan of another
pack_rows: trl.pack_dataset; sequence packing; sft packing; group_texts; ConcatDataset packing;
    block diagonal attention
pack_sequence: torch.nn.utils.rnn.pack_sequence; torch.nn.utils.rnn.pack_padded_sequence; PackedSequence
packed_cu_seqlens: flash_attn_varlen_func cu_seqlens of packed rows; document boundaries of packed rows
pad: torch.nn.utils.rnn.pad_sequence; RaggedTensor.to_tensor; ak.pad_none; tokenizer.pad;
    fbgemm.jagged_to_padded_dense; fluid.layers.sequence_pad; torch.nested.to_padded_tensor; nested to padded;
    collate; ragged to dense; left padding
pad_empty: fill empty rows; at least one element per row
pad_lengths: pad to a multiple; padded lengths
pad_like: pad with the width of another
partition: tf.dynamic_partition
partition_sequences: tf.dynamic_partition of id lists; shard id lists by modulo;
    torchrec.bucketize_kjt_before_all2all; block_bucketize_sparse_features
pow: np.power
prepend_token: add bos
products_of_others: product of all but one
products_of_others_backward: gradient of a product of others
put_at_positions: tf.tensor_scatter_nd_update per row; np.put_along_axis
quantize_rowwise: fbgemm.FloatToFused8BitRowwiseQuantized; torch.quantize_per_channel
rank_within: df.groupby.rank
reduce_max: torch.amax; np.max
reduce_mean: torch.mean; np.mean
reduce_sum: torch.sum; np.sum
regroup: KeyedTensor.regroup
relu: torch.nn.ReLU
remainder: np.mod; tf.math.floormod
remove_padding: undo add_padding
remove_rows: np.delete; df.drop
repeat_sequences: repeat rows; tf.repeat of a ragged; oversample rows
reshape: torch.reshape; np.reshape; torch.Tensor.view; tf.reshape; unflatten
reshape_like: torch.Tensor.view_as
reshape_sequences: fluid.layers.sequence_reshape
reverse_packed: reverse a time-major batch; reverse packed segments
reverse_sequences: tf.reverse_sequence; tf.reverse ragged; fluid.layers.sequence_reverse; reverse each row
rnn: torch.nn.RNN
rnn_backward: gradient of torch.nn.RNN
round: np.rint
row_dot: torch.einsum bd,bd->b; batched dot product
row_numbers: np.arange of rows; df.index
rshift: np.right_shift
rsqrt: 1 / sqrt
same_lengths: assert equal row_lengths
same_rows: assert equal rows
scale_rows: x * w[:, None]; multiply each row by a weight
scatter_axis: torch.Tensor.index_copy dim=1
scatter_inside: torch.Tensor.scatter inside sequences
scatter_pooled: gradient of an embedding bag
scatter_pooled_weighted: gradient of a weighted embedding bag
scatter_rows: torch.Tensor.index_copy_; np.put
scatter_rows_of_list: rows put back from several parts; tf.dynamic_stitch
scatter_sequences: put sequences back at rows
scatter_within: torch.Tensor.scatter per row
segment_counts: torch.bincount; np.bincount; df.groupby.size
segment_ids_to_lengths: np.bincount of segment ids; RaggedTensor.from_value_rowids
segment_ids_to_ranges: segment starts and lengths
segment_one_hot: multi-hot labels
sequence_mask: tf.sequence_mask; causal mask; torch.tril
shard_sequences: context parallel; ring attention shards; zigzag
shift: causal lm labels; next-token labels; np.roll per row; df.groupby.shift; sessions by a time gap
shuffle_within: shuffle each row
sigmoid: scipy.special.expit
slice_axes: x[a:b, c:d]; tf.slice; torch.narrow
slice_backward: gradient of a slice
slice_sequences: ragged[:, a:b]; ak slices; fluid.layers.sequence_slice; str.slice; crop
softmax: torch.softmax; tf.nn.softmax
softmax_within: torch_scatter.scatter_softmax; torch_geometric.utils.softmax; ragged softmax;
    fluid.layers.sequence_softmax; segment softmax; tf.nn.softmax ragged
softmax_within_backward: gradient of a ragged softmax
sort_within: ak.sort; tf.sort ragged; sort each row
sorted_segment_logmeanexp: log mean exp per segment
sorted_segment_logsumexp: torch.logsumexp per segment
sorted_segment_max: tf.math.segment_max
sorted_segment_mean: tf.math.segment_mean
sorted_segment_min: tf.math.segment_min
sorted_segment_prod: tf.math.segment_prod
sorted_segment_sum: tf.math.segment_sum; torch_scatter.segment_coo
sorted_segment_weighted_sum: weighted segment sum
sparse_lengths_max: torch.nn.EmbeddingBag max
sparse_lengths_mean: torch.nn.EmbeddingBag mean; tf.nn.embedding_lookup_sparse mean
sparse_lengths_mean_quantized: quantized embedding bag mean
sparse_lengths_positional_weighted_sum: position weighted embedding bag; PositionWeightedModule
sparse_lengths_sum: torch.nn.EmbeddingBag; torch.nn.functional.embedding_bag; tf.nn.embedding_lookup_sparse;
    EmbeddingBagCollection; embedding bag; bag of embeddings
sparse_lengths_sum_quantized: fbgemm.IntNBitTableBatchedEmbeddingBags; quantized embedding bag;
    torch.ops.quantized.embedding_bag_byte_rowwise_offsets
sparse_lengths_weighted_sum: torch.nn.functional.embedding_bag per_sample_weights; weighted embedding bag;
    weighted mean of embeddings
sparse_lengths_weighted_sum_quantized: quantized weighted embedding bag
sparse_lookup: pruned embedding look up; remapped ids
sparse_sorted_segment_mean: tf.sparse.segment_mean
sparse_sorted_segment_sum: tf.sparse.segment_sum
sparse_sorted_segment_weighted_sum: weighted sparse segment sum
sparse_to_dense: torch.sparse_coo_tensor.to_dense; tf.sparse.to_dense
sparse_to_dense_mask: id-value pairs as columns; known ids as columns
sparse_unsorted_segment_mean: unsorted sparse segment mean
sparse_unsorted_segment_sum: tf.IndexedSlices sum
sparse_unsorted_segment_weighted_sum: weighted unsorted sparse segment sum
split: torch.split; np.split; tf.split
extreme_shares: gradient of a segment's largest elements
largest_shares: gradient of torch.amax
split_like: torch.split by the sizes of others
split_sequences: group_texts; split long rows into chunks; tokenizer return_overflowing_tokens stride
split_words: str.split; tf.strings.split; whitespace tokenizer
spread: spread rows over others
square_root_divide: divide each row by the root of its length
squeeze: torch.squeeze; np.squeeze
stop_gradient: torch.Tensor.detach; tf.stop_gradient
sub: np.subtract; x - y
sum_to: torch.Tensor.sum_to_size; undo broadcasting
take_at_positions: np.take_along_axis per row; tf.gather batch_dims=1
tile: np.tile; torch.Tensor.repeat; tf.tile
tile_backward: gradient of np.tile
to_rows: each element as a row
to_rows_within: each element of a sequence as a row
tokenize: tokenizers.encode_batch; AutoTokenizer; tokenizer()
tokenize_chat: apply_chat_template; assistant masks; sft labels -100
tokens_to_bytes: bytes from byte tokens; tf.strings.reduce_join
topk_within: torch.topk per row; tf.math.top_k ragged; groupby top k; df.groupby.nlargest; top-k per user
train_tokenizer: tokenizers.trainers.BpeTrainer
transpose: torch.permute; np.transpose
trim_dataset: drop_last; rows in multiples of n
truncate: tokenizer truncation; fluid.layers.sequence_slice from 0; ragged[:, :n]
unique: torch.unique; np.unique; tf.unique; pd.factorize
unique_within: deduplicate in a row; deduplicate within each row; set per row; dedupe per row;
    df.drop_duplicates per group
unpack_by_time: time-major to flat
unpack_rows: undo packing
unpack_sequence: torch.nn.utils.rnn.unpack_sequence; torch.nn.utils.rnn.pad_packed_sequence
unpad: torch.nn.utils.rnn.unpad_sequence; RaggedTensor.from_tensor; fbgemm.dense_to_jagged;
    fluid.layers.sequence_unpad; padded[mask]; dense to ragged
unshard_sequences: undo context parallel; gather ring attention shards
unsorted_segment_max: tf.math.unsorted_segment_max; torch_scatter.scatter_max
unsorted_segment_mean: tf.math.unsorted_segment_mean; torch_scatter.scatter_mean
unsorted_segment_min: tf.math.unsorted_segment_min; torch_scatter.scatter_min
unsorted_segment_sum: tf.math.unsorted_segment_sum; torch.index_add; torch_scatter.scatter_add; np.add.at
unsorted_segment_weighted_sum: weighted scatter_add
where: torch.where; np.where; pc.if_else
zero_after_length: masked_fill after lengths; fluid.layers.sequence_mask zero
zeros_like: torch.zeros_like; np.zeros_like
"""
"""An op a line; more of its names on lines that are further in."""
PEERS: dict[str, tuple[str, ...]] = {
    name: tuple(names.split("; "))
    for name, _, names in (line.partition(": ") for line in _TABLE.replace("\n    ", " ").split("\n") if line)
}
"""For each op what it is called elsewhere: calls of other libraries, and words of those who ask."""
