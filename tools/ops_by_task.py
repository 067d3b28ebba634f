"""Ops by given data and wanted result: the table at the beginning of the reference of the ops."""

from collections.abc import Mapping

OPS_BY_TASK: Mapping[str, Mapping[str, str]] = {
    "Values and lengths": {
        "a padded batch": "pad lengths_to_mask",
        "packed rows for training": "pack_rows packed_cu_seqlens",
        "a time-major batch, a PackedSequence": "pack_by_time pack_sequence",
        "one row of each sequence: sum, mean, largest, first, last": (
            "lengths_sum lengths_mean lengths_max lengths_first lengths_last"
        ),
        "softmax, norm, running sum, rank in each": (
            "softmax_within normalize_within cumsum_within rank_within"
        ),
        "each sorted, its best k, distinct, shuffled": "sort_within topk_within unique_within shuffle_within",
        "the place of the largest": "lengths_argmax argsort_within",
        "quantiles, the median": "lengths_quantile lengths_median",
        "discounted sums, returns, decayed counts": "discounted_sum_within",
        "sequences of a group, position by position": "lengths_reduce_positions",
        "a matrix for each": "segment_matmul lengths_outer_sum",
        "values that are in another column, set operations": "isin_within jaccard",
        "two sequences compared": "edit_distance longest_common",
        "runs of equal values, sessions": "run_lengths starts_to_lengths",
        "every second row, Python's slices": "stride_within",
        "equal sequences once, common prefixes once": "distinct_sequences prefix_tree tree_paths",
        "pairs of rows": "product_within combinations_within",
        "each cut: to a length, to a part, into pieces": "truncate slice_sequences split_sequences",
        "begin and end tokens, rows of padding": "prepend_token append_token add_padding pad_empty",
        "the next token of each": "shift",
        "several columns cut to one budget": "truncate_together",
        "masked tokens, corrupted spans, middles to fill in": "mask_tokens noise_spans span_corrupt fill_in_middle",
        "random numbers, negative samples": "random_integers noise",
        "each reversed, repeated": "reverse_sequences repeat_sequences",
        "n-grams, sliding windows": "ngrams context_windows",
        "fewer rows, fewer sequences, without some ids": "mask_sequences filter_sequences erase_tokens",
        "several columns joined": "concat_sequences interleave merge_id_lists",
        "rows at places inside each": "gather_within take_at_positions",
        "some sequences, in another order": "gather_sequences",
        "a value of each sequence for all its rows": "expand",
        "parts for several machines": "partition_sequences shard_sequences",
        "an LSTM, GRU or RNN": "lstm gru rnn bidirectional_lstm",
    },
    "A padded batch": {
        "values and lengths": "unpad unpack_by_time",
        "zeros after the end of each": "zero_after_length sequence_mask",
        "the steps of each reversed": "reverse_packed",
        "sequences of packed rows": "unpack_rows",
    },
    "A table and indices": {
        "rows, or parts of rows": "gather gather_axis gather_cells",
        "pooled embeddings": "sparse_lengths_sum sparse_lengths_mean sparse_lengths_max",
        "pooled with weights": "sparse_lengths_weighted_sum sparse_lengths_positional_weighted_sum",
        "the same of a quantised table": "sparse_lengths_sum_quantized gather_quantized quantize_rowwise",
        "ranges of rows": "gather_ranges gather_ranges_to_dense",
        "rows put back": "scatter_rows scatter_within",
    },
    "Rows and the id of a segment for each": {
        "sums, means, largest": "unsorted_segment_sum unsorted_segment_mean unsorted_segment_max sorted_segment_sum",
        "the count of each": "segment_counts segment_ids_to_lengths",
        "any other op, in any order of the ids": "group_order positions_by_id",
        "tokens of experts, and back": "route_topk unroute gather_matmul",
        "a part for each key": "partition key_split",
    },
    "Lengths, offsets, row splits": {
        "offsets, `cu_seqlens`": "lengths_to_offsets lengths_to_cu_seqlens offsets_to_lengths",
        "the segment of each row, its place there": "lengths_to_segment_ids lengths_to_positions",
        "a mask": "lengths_to_mask",
        "two levels as one": "collapse_lengths",
    },
    "Maps of lists by key": {
        "some keys, in an order": "keyed_select keyed_permute match_names",
        "a tensor for each key, and back": "keyed_split regroup keyed_concat",
        "maps of features, one tensor each": "merge_list_features merge_scalar_features merge_dense_features",
    },
    "Ids, numbers, text": {
        "ids below a bound": "hash_indices hash_strings cross_features",
        "splits and samples by id": "hash hash_text",
        "ids of a vocabulary": "encode encode_strings",
        "distinct ids, where they are": "unique find find_duplicates isin first_of_equal",
        "buckets, zeros and ones": "bucketize one_hot segment_one_hot batch_one_hot",
        "tokens, and text of them": "tokenize tokenize_chat split_words decode bytes_to_tokens",
        "text that contains, starts or ends with a text": "contains_text count_text starts_with ends_with",
        "text replaced, trimmed, in one case": "replace_text strip lower upper casefold",
        "text cut and joined": "split_text join_texts ngram_texts",
        "places of words and tokens, their labels": "word_offsets token_offsets labels_of_tokens",
        "hashes of n-grams, signatures, what repeats": "hash_ngrams minhash one_permutation_minhash "
        "ngram_overlap repetition_shares",
        "clusters of pairs": "connected_components",
        "ranges of numbers": "lengths_range",
    },
    "Text with images, video, audio": {
        "as many placeholders as an image has tokens": "expand_placeholders",
        "where images are in the text, the image of each token": "image_spans image_ids",
        "positions in time, height and width": "mrope_positions",
        "the grid of patches for a size": "image_grids",
        "patches of pixels, and back": "patchify unpatchify",
        "places of patches, windows of the encoder": "patch_positions window_order",
    },
    "Dense tensors": {
        "layers": "fc matmul layer_norm softmax dropout",
        "another shape": "reshape transpose expand_dims concat split tile slice_axes",
        "the rows where a mask is true": "boolean_mask",
        "sparse ones, and back": "dense_to_sparse sparse_to_dense sparse_to_dense_mask",
    },
}
"""Names of ops, the most likely first, by the given data and then by the wanted result."""
