"""Ops are found by what other libraries call them."""

import json
from pathlib import Path

import numpy as np
import pytest
from command import seqflow
from marks import one_in

from seqflow import registry
from seqflow.expression.functions import table
from seqflow.registry.search import names_elsewhere, nearest, search

KNOWN_AS = Path(registry.__file__).with_name("known_as.txt")
OPS = [registry.get(name) for name in registry.names()]


def found(query):
    return [hit.name for hit in search(query, OPS)]


@pytest.mark.slow
@pytest.mark.parametrize("part", one_in(4, range(4)))
def test_each_op_is_found_by_each_of_its_names(part):
    missed = [
        (op.name, name)
        for op in OPS
        for name in (op.name, *names_elsewhere(op))[part::4]
        if op.name not in found(name)[:5]
    ]
    assert missed == []


def test_each_op_has_a_name_elsewhere_or_is_called_as_in_numpy():
    also = {"erf", "rsub"}
    assert [
        op.name for op in OPS if not (names_elsewhere(op) or hasattr(np, op.name) or op.name in also)
    ] == []


def test_functions_of_expressions_are_found_by_all_their_names():
    missed = [(row.name, alias) for row in table for alias in row.aliases if row.name not in found(alias)[:5]]
    assert missed == []


def test_each_of_the_names_that_an_op_has_in_caffe2_is_one():
    assert names_elsewhere(registry.get("fc"))[:2] == ("Caffe2 FC", "Caffe2 FCTransposed")
    assert found("FCTransposed")[0] == "fc"


def test_the_table_of_names_has_ops_alone_in_their_order():
    rows = [line.split("\t") for line in KNOWN_AS.read_text(encoding="utf-8").splitlines()]
    assert [row[0] for row in rows] == sorted({op.name for op in OPS} & {row[0] for row in rows})
    assert {len(row) for row in rows} == {2}


def test_no_op_has_a_name_twice():
    assert [op.name for op in OPS if len(set(names_elsewhere(op))) < len(names_elsewhere(op))] == []


@pytest.mark.parametrize(
    ("query", "op"),
    [
        ("ragged softmax", "softmax_within"), ("groupby top k", "topk_within"), ("top-k per user", "topk_within"),
        ("batch gather", "gather_within"), ("torch.segment_reduce", "lengths_sum"), ("LengthsSum", "lengths_sum"),
        ("embedding bag", "sparse_lengths_sum"), ("pad_sequence", "pad"), ("sequence packing", "pack_rows"),
        ("fluid.layers.sequence_expand", "expand"), ("RaggedTensor.to_tensor", "pad"), ("pad", "pad"),
        ("torch.nn.functional.pad", "pad"), ("np.arccos", "acos"), ("torch.sigmoid", "sigmoid"),
        ("tf.nn.relu", "relu"), ("KeyedJaggedTensor split", "keyed_split"), ("row_splits", "lengths_to_offsets"),
    ],
)  # fmt: skip
def test_words_of_those_who_ask_lead_to_the_op(query, op):
    assert found(query)[0] == op


@pytest.mark.parametrize(
    ("query", "op"),
    [
        ("attention", "attention_within"), ("scaled_dot_product_attention", "attention_within"),
        ("flash attention", "attention_within"), ("varlen", "attention_within"), ("xformers", "attention_within"),
        ("cu_seqlens", "attention_within"), ("rope", "rotary"), ("mrope", "rotary"),
        ("scatter_add", "unsorted_segment_sum"), ("segment_ids", "lengths_to_segment_ids"),
        ("tf.ragged.boolean_mask", "boolean_mask"), ("cu_seqlens", "lengths_to_cu_seqlens"),
        ("explode", "expand"), ("dedupe per row", "unique_within"), ("bag of embeddings", "sparse_lengths_sum"),
        ("mean pooling with mask", "lengths_mean"), ("sliding window", "context_windows"),
        ("causal mask", "sequence_mask"), ("KeyedJaggedTensor permute", "keyed_permute"),
        ("ak.flatten", "collapse_lengths"), ("collate_fn", "pad"), ("LengthsToSegmentIds", "lengths_to_segment_ids"),
        ("attention mask", "lengths_to_mask"), ("padding mask", "lengths_to_mask"),
        ("position_ids", "lengths_to_positions"), ("bos token", "prepend_token"), ("eos token", "append_token"),
        ("truncation", "truncate"), ("chunk long documents", "split_sequences"), ("crop", "slice_sequences"),
        ("next token labels", "shift"), ("shuffle tokens in each sequence", "shuffle_within"),
        ("sort each list", "sort_within"), ("argsort per group", "argsort_within"),
        ("cumulative sum per group", "cumsum_within"), ("rank within group", "rank_within"),
        ("groupby sum", "lengths_sum"), ("groupby count", "segment_counts"), ("bincount", "segment_counts"),
        ("row_splits to row_lengths", "offsets_to_lengths"), ("RaggedTensor.from_row_splits", "offsets_to_lengths"),
        ("value_rowids", "lengths_to_segment_ids"), ("torch.nested to padded", "pad"),
        ("jagged_to_padded_dense", "pad"), ("ragged to dense", "pad"), ("left padding", "pad"),
        ("dense_to_jagged", "unpad"), ("dense to ragged", "unpad"), ("unpad_input", "unpad"),
        ("flash attention varlen", "packed_cu_seqlens"), ("pack_padded_sequence", "pack_sequence"),
        ("pad_packed_sequence", "unpack_sequence"), ("bin packing", "pack_rows"), ("multi hot", "segment_one_hot"),
        ("hashing trick", "hash_indices"), ("feature cross", "cross_features"), ("string lookup", "encode_strings"),
        ("embedding lookup", "gather"), ("tf.gather", "gather"), ("torch.gather", "gather_cells"),
        ("torch.repeat_interleave", "expand"), ("np.add.reduceat", "lengths_sum"), ("segment_csr", "lengths_sum"),
        ("concat ragged", "concat_sequences"), ("join two list columns", "concat_sequences"),
        ("zip lists", "interleave"), ("remove stop words", "erase_tokens"), ("filter rows", "filter_sequences"),
        ("drop empty sequences", "filter_sequences"), ("last hidden state", "lengths_last"),
        ("first token", "lengths_first"), ("max pooling", "lengths_max"), ("attention pooling", "lengths_weighted_sum"),
        ("UnsortedSegmentSum", "unsorted_segment_sum"), ("PackSegments", "pad"), ("LengthsTile", "expand"),
        ("tf.dynamic_partition", "partition"), ("bigrams", "ngrams"), ("n-grams", "ngrams"),
        ("chat template", "tokenize_chat"), ("detokenize", "decode"), ("quantile bins", "bucketize"),
        ("set union", "merge_id_lists"), ("coo to dense", "sparse_to_dense"), ("word dropout", "dropout_ids"),
        ("context parallel", "shard_sequences"), ("shard by modulo", "partition_sequences"),
        ("linear layer", "fc"), ("argmax per row", "lengths_argmax"), ("time major", "pack_by_time"),
        ("EmbeddingBag per_sample_weights", "sparse_lengths_weighted_sum"), ("ptr to index", "lengths_to_segment_ids"),
        ("pad to multiple of 8", "pad_lengths"),
    ],
)  # fmt: skip
def test_the_op_is_among_the_first_three_of_those_found(query, op):
    assert op in found(query)[:3]


@pytest.mark.parametrize(
    ("query", "op"),
    [
        ("entropy", "unique_within"), ("mode", "unique_within"), ("skewness", "lengths_var"),
        ("bit_xor", "lengths_any"), ("forward fill", "starts_to_lengths"), ("bfill", "starts_to_lengths"),
        ("n-step returns", "discounted_sum_within"), ("tf-idf", "sparse_lengths_sum"), ("z-score", "standardize_within"),
        ("array_insert", "slice_sequences"), ("array_position", "lengths_argmax"), ("groupby nth", "group_order"),
        ("join with a separator of each row", "join_texts"), ("substring_index", "replace_text"),
        ("isdigit", "contains_text"), ("code points", "as_text"), ("calibration", "bucketize"),
        ("share of lines", "split_text"), ("valid mask", "mask_sequences"), ("masked mean", "mask_sequences"),
        ("skip nulls", "mask_sequences"), ("nanmean", "mask_sequences"), ("span alignment", "product_within"),
        ("zip unequal lengths", "unpad"), ("simhash", "minhash"), ("repeated n-grams", "repetition_shares"),
        ("split texts by offsets", "repeat_sequences"), ("list diff", "shift"), ("word count", "count_text"),
        ("negative positions", "gather_within"), ("list_resize", "gather_within"), ("has all of", "isin_within"),
        ("map_concat", "isin_within"), ("keep last duplicate", "first_of_equal"), ("cummax", "cumsum_within"),
        ("bag of words", "sparse_lengths_sum"), ("words and bigrams", "ngram_texts"), ("whiten", "standardize_within"),
        ("invert_permutation", "argsort_within"), ("locate", "split_text"), ("nested lists", "gather_sequences"),
    ],
)  # fmt: skip
def test_what_a_recipe_does_leads_to_the_op_that_has_it(query, op):
    assert op in found(query)[:3]


FIRST = """
most recent n: stride_within
last n: stride_within
negative sampling: random_integers
attention: attention_within
range: lengths_range
arange: lengths_range
discounted sum: discounted_sum_within
GAE: discounted_sum_within
returns: discounted_sum_within
exponential moving average: discounted_sum_within
quantile: lengths_quantile
percentile: lengths_quantile
median: lengths_median
variance: lengths_var
standard deviation: lengths_std
histogram: segment_counts
cumcount: positions_by_id
groupby transform: group_order
MLM: mask_tokens
whole word masking: mask_tokens
span corruption: span_corrupt
T5: span_corrupt
FIM: fill_in_middle
RLE: run_lengths
MoE: route_topk
top-k routing: route_topk
grouped GEMM: segment_matmul
set difference: isin_within
jaccard: jaccard
levenshtein: edit_distance
ROUGE-L: longest_common
minhash: minhash
near duplicates: minhash
dedup: first_of_equal
drop duplicates: first_of_equal
ngrams: ngrams
hash n-grams: hash_ngrams
contains: contains_text
startswith: starts_with
endswith: ends_with
replace: replace_text
regex replace: replace_text
strip: strip
lowercase: lower
casefold: casefold
split string: split_text
split on whitespace: split_words
join strings: join_texts
concat strings: concat_sequences
cartesian product: product_within
pairs: combinations_within
truncate pair: truncate_together
truncation: truncate
padding: pad
left padding: pad
softmax: softmax
embedding bag: sparse_lengths_sum
embeddings lookup: gather
one hot: one_hot
reverse a list: reverse_sequences
sort descending: sort_within
cumulative sums: cumsum_within
flatten nested lists: collapse_lengths
zip two lists: interleave
sliding windows: context_windows
bin packing: pack_rows
tf.RaggedTensor.from_tensor: unpad
torch.flip: reverse_sequences
tf.strings.length: count_text
tf.strings.substr: replace_text
list.std: lengths_std
list.sum: lengths_sum
list.mean: lengths_mean
jax.ops.segment_sum: unsorted_segment_sum
torch.nonzero: dense_to_sparse
to_dense_batch: pad
combine_segments: concat_sequences
tf.reduce_all: lengths_all
shift_tokens_right: shift
str.extract: replace_text
generalized advantage: discounted_sum_within
8-bit embedding: gather_quantized
most recent: stride_within
sessionize: run_lengths
collate: pad
varlen: lengths_to_cu_seqlens
cu_seqlens: lengths_to_cu_seqlens
bucketize: bucketize
n-gram: ngrams
RoPE: rotary
ALiBi: attention_within
sliding window: context_windows
GRPO: standardize_within
DataCollatorWithPadding: pad
DataCollatorWithFlattening: pack_rows
edge_softmax: softmax_within
global_add_pool: lengths_sum
unique_consecutive: run_lengths
invert_permute: argsort_within
cosine_similarity: row_dot
n_unique: unique_within
array_union: merge_id_lists
arrays_overlap: isin_within
groupby.rolling: context_windows
groupby.ewm: discounted_sum_within
cum_max: cumsum_within
fuzzy dedup: minhash
url filter: match_names
multipack: pack_rows
padding_free: pack_rows
first fit decreasing: pack_rows
left truncation: stride_within
sequence parallel: shard_sequences
NFKC: normalize
OrdinalEncoder: encode_strings
MultiLabelBinarizer: segment_one_hot
KBinsDiscretizer: bucketize
token dropout: dropout_ids
last token pooling: lengths_last
decoder_input_ids: shift
prefix sums: cumsum_within
exact dedup: first_of_equal
oversampling: repeat_sequences
regexp_extract_all: split_text
list_cosine_similarity: lengths_sum
RLOO: lengths_mean
masked_whiten: standardize_within
td_lambda: discounted_sum_within
binned_gather: route_topk
padded_scatter: unroute
MultiSegmentPacker: truncate_together
asynchronous_exclusive_cumsum: lengths_to_offsets
jagged_softmax: softmax_within
jagged_slice: slice_sequences
list.len: offsets_to_lengths
list.tail: stride_within
NonZero: dense_to_sparse
Compress: boolean_mask
rotary position embedding: rotary
hash strings into buckets: hash_strings
crossing features: cross_features
label encoding: encode
CRF decoding: viterbi_decode
CRF: crf_log_likelihood
training a tokenizer: train_tokenizer
how do I remove stop words from my texts: erase_tokens
"""


@pytest.mark.parametrize(("query", "op"), [line.split(": ") for line in FIRST.split("\n") if line])
def test_the_op_of_a_purpose_is_found_first(query, op):
    assert found(query)[0] == op


@pytest.mark.parametrize(
    "query",
    [
        "fourier transform", "convolution", "resize bilinear", "beam search", "dropout schedule", "optimizer",
        "regression", "jpeg", "sql join", "left join", "cross entropy", "matrix inverse", "learning rate", "k-means",
        "random forest", "time zone", "date parsing", "batch normalization", "gradient descent", "gradient clipping",
        "weight decay", "speech recognition", "confusion matrix", "early stopping", "graph coloring",
        "window function", "value function", "list comprehension", "group theory", "random walk", "text to speech",
        "data augmentation", "principal components", "merge sort", "binary search", "attention heatmap",
    ],
)  # fmt: skip
def test_nothing_is_found_for_what_no_op_does_although_ops_have_some_of_its_words(query):
    assert found(query) == []


def test_nothing_is_found_for_words_that_no_op_has():
    assert found("xyzzy") == []
    assert found("") == []
    assert found("§ !") == []


def test_what_is_spelled_wrong_has_near_names():
    assert "sigmoid" in nearest("sigmiod", OPS)
    assert "sparse_lengths_sum" in nearest("SparseLengthSumm", OPS)
    assert nearest("xyzzyxyzzy", OPS) == []


def test_the_command_shows_the_best_and_what_they_are_known_as():
    done = seqflow("ops", "--search", "ragged softmax")
    assert done.stdout.splitlines()[1].split()[0] == "softmax_within"
    hits = json.loads(seqflow("ops", "--search", "ragged softmax", "--json").stdout)["ops"]
    assert hits[0] == {"name": "softmax_within", "known as": "ragged softmax"}


def test_what_has_no_op_but_advice_is_told_where_to_go():
    for query in ("as-of", "lexsort", "merge_asof"):
        done = seqflow("ops", "--search", query)
        assert done.returncode == 0
        assert "sf." in done.stdout


def test_a_search_without_hits_is_an_error():
    done = seqflow("ops", "--search", "xyzzy")
    assert done.returncode == 1
    assert "found no op for 'xyzzy'" in done.stderr
    assert "nearest: sigmoid" in seqflow("ops", "--search", "sigmiod").stderr
