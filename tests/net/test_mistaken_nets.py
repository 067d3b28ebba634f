"""Nets that are mistaken: inference refuses each before there is data, though all sizes agree.

Each is a statement of what does not go together. From a plain mapping it is refused at the latest when it runs.
"""

import pytest
from two_tables import FIRST_RECORD, SPECS, TENSORS, net_of, used

import seqflow as sf
from seqflow.errors import ExpressionError, LodError, OpTypeError, ShapeError

OTHER_COLUMN = "values of one column, lengths of another"
OTHER_LEVEL = "another level of the same column"
OF_SEQUENCES = "one has a row for each sequence"
SELECTION = "a selection"
PLACES = "rows of different places"
PADDED = "padded for other lengths"
SIDES = "padded on different sides"
STEPS = "rows meet the steps of a padded axis"
BROADCAST = "rows do not broadcast"
PLAIN = "is a plain size"

FIRST_TABLE = {
    # Columns, levels and records
    "reduced by the lengths of another column": ("y = lengths_sum(doc.values, tag.lengths)", OTHER_COLUMN),
    "vectors reduced by the lengths of another column": ("y = lengths_mean(emb.values, doc.lengths)", OTHER_COLUMN),
    "sorted by the lengths of another column": ("y = sort_within(doc.values, tag.lengths)", OTHER_COLUMN),
    "softmax by the lengths of another column": ("y = softmax_within(doc.values / 2, tag.lengths)", OTHER_COLUMN),
    "values of two columns": ("y = doc.values * tag.values", OTHER_COLUMN),
    "values where another column says so": ("y = where(tag.values > 2, doc.values, 0)", OTHER_COLUMN),
    "weights of another column": (
        "y = lengths_weighted_sum(doc.values, cast(tag.values, dtype='float32'), doc.lengths)",
        "weights",
    ),
    "joined with the lengths of another column": (
        "v, n = concat_sequences([doc.values, tag.values], [doc.lengths, doc.lengths])\ny = lengths_sum(v, n)",
        OTHER_COLUMN,
    ),
    "inner values by outer lengths": ("y = lengths_sum(text.values.values, text.lengths)", OTHER_LEVEL),
    "outer values by inner lengths": (
        "w = lengths_sum(text.values.values, text.values.lengths)\ny = lengths_sum(w, text.values.lengths)",
        "text.values.lengths",
    ),
    "levels collapsed with another column": ("y = collapse_lengths(text.values.lengths, doc.lengths)", OTHER_COLUMN),
    "collapsed lengths for the outer level": (
        "n = collapse_lengths(text.values.lengths, text.lengths)\ny = lengths_sum(text.values.lengths, n)",
        "text",
    ),
    "expanded to a column, for another": ("y = expand(score, tag.lengths) * doc.values", OTHER_COLUMN),
    "a row of the record for each row of a column": ("y = score * doc.values", OF_SEQUENCES),
    "what is reduced, for each row of the column": (
        "y = doc.values - lengths_max(doc.values, doc.lengths)",
        OF_SEQUENCES,
    ),
    "rows of the record reduced by the lengths of a column": ("y = lengths_sum(score, doc.lengths)", OF_SEQUENCES),
    "lengths of sequences by the lengths of others": ("y = lengths_sum(tag.lengths, doc.lengths)", OF_SEQUENCES),
    "sequences of one column filtered by the values of another": (
        "v, n = filter_sequences(doc.values, tag.values > 2, doc.lengths)\ny = lengths_sum(v, n)",
        "keep",
    ),
    # Selections
    "a mask of one side only": ("s, _ = boolean_mask(score, flag)\ny = s * label", SELECTION),
    "two masks": (
        "s, _ = boolean_mask(score, flag)\nl, _ = boolean_mask(label, label > 0)\ny = s * l",
        SELECTION,
    ),
    "values masked, lengths as they were": (
        "v, _ = boolean_mask(doc.values, doc.values > 2)\ny = lengths_sum(v, doc.lengths)",
        SELECTION,
    ),
    "lengths masked, values as they were": (
        "n = boolean_mask_lengths(doc.values > 2, doc.lengths)\ny = lengths_sum(doc.values, n)",
        OTHER_COLUMN,
    ),
    "values and lengths by two masks": (
        "v, _ = boolean_mask(doc.values, doc.values > 2)\n"
        "n = boolean_mask_lengths(doc.values > 3, doc.lengths)\ny = lengths_sum(v, n)",
        SELECTION,
    ),
    "a mask of another column": ("v, _ = boolean_mask(doc.values, tag.values > 2)\ny = v * 2", OTHER_COLUMN),
    "sequences filtered, their rows of the record not": (
        "v, n = filter_sequences(doc.values, flag, doc.lengths)\ny = lengths_sum(v, n) * score",
        SELECTION,
    ),
    "sequences filtered, the lengths as they were": (
        "v, _ = filter_sequences(doc.values, flag, doc.lengths)\ny = lengths_sum(v, doc.lengths)",
        "doc.lengths",
    ),
    "lengths selected, values as they were": (
        "n, _ = boolean_mask(doc.lengths, flag)\ny = lengths_sum(doc.values, n)",
        "doc.lengths",
    ),
    "two columns filtered by two masks": (
        "v, n = filter_sequences(doc.values, flag, doc.lengths)\n"
        "w, k = filter_sequences(tag.values, label > 0, tag.lengths)\ny = lengths_sum(v, n) + lengths_sum(w, k)",
        SELECTION,
    ),
    "rows masked inside sequences, lengths as they were": (
        "v, _ = mask_sequences(doc.values, doc.values > 2, doc.lengths)\ny = lengths_sum(v, doc.lengths)",
        "doc.lengths",
    ),
    "rows masked inside sequences meet rows that are not": (
        "v, _ = mask_sequences(doc.values, doc.values > 2, doc.lengths)\ny = v * doc.values",
        "doc.lengths",
    ),
    "a slice of one side only": ("y = slice_axes(score, starts=[1], stops=[4]) * label", SELECTION),
    "two slices": (
        "y = slice_axes(score, starts=[0], stops=[2]) * slice_axes(label, starts=[2], stops=[4])",
        SELECTION,
    ),
    "the other half": ("a, b = split(score, parts=2)\nc, d = split(label, parts=2)\ny = a * d", SELECTION),
    "sequences sliced in two ways": (
        "v, _ = slice_sequences(doc.values, label * 0, label, doc.lengths, clip=True)\n"
        "_, n = slice_sequences(doc.values, label, label, doc.lengths, clip=True)\ny = lengths_sum(v, n)",
        "slice_sequences",
    ),
    "a slice of values by a slice of lengths": (
        "v = slice_axes(doc.values, starts=[0], stops=[2])\nn = slice_axes(doc.lengths, starts=[0], stops=[2])\n"
        "y = lengths_sum(v, n)",
        "doc",
    ),
    "sequences gathered, the lengths as they were": (
        "v, _ = gather_sequences(doc.values, label, doc.lengths)\ny = lengths_sum(v, doc.lengths)",
        OTHER_COLUMN,
    ),
    "sequences gathered in two orders": (
        "v, _ = gather_sequences(doc.values, label, doc.lengths)\n"
        "y = lengths_sum(v, gather(doc.lengths, label + 1 - 1 * label))",
        OTHER_COLUMN,
    ),
    "trimmed on one side only": (
        "v, n = trim_dataset(doc.values, doc.lengths, multiple_of=3)\ny = lengths_sum(v, n) * score",
        SELECTION,
    ),
    # Lengths that are computed otherwise
    "truncated to another length": (
        "v, _ = truncate(doc.values, doc.lengths, max_length=2)\n"
        "_, n = truncate(doc.values, doc.lengths, max_length=1)\ny = lengths_sum(v, n)",
        OTHER_COLUMN,
    ),
    "truncated, the lengths as they were": (
        "v, _ = truncate(doc.values, doc.lengths, max_length=3)\ny = lengths_sum(v, doc.lengths)",
        OTHER_COLUMN,
    ),
    "truncated, and the minimum with another number": (
        "v, _ = truncate(doc.values, doc.lengths, max_length=2)\ny = lengths_sum(v, minimum(doc.lengths, 3))",
        OTHER_COLUMN,
    ),
    "a token appended, and 2 added": (
        "v, _ = append_token(doc.values, doc.lengths, token=9)\ny = lengths_sum(v, doc.lengths + 2)",
        OTHER_COLUMN,
    ),
    "a token appended, the lengths of another column with 1 added": (
        "v, _ = append_token(doc.values, doc.lengths, token=9)\ny = lengths_sum(v, tag.lengths + 1)",
        OTHER_COLUMN,
    ),
    "subtraction the other way round": (
        "v, n = remove_padding(doc.values, doc.lengths * 0 + 2, before=1, after=0)\ny = lengths_sum(v, n)",
        OTHER_COLUMN,
    ),
    "other padding removed than was added": (
        "v, n = add_padding(doc.values, doc.lengths, before=2, after=0)\n"
        "w, k = remove_padding(v, n, before=1, after=0)\ny = lengths_sum(w, doc.lengths)",
        OTHER_COLUMN,
    ),
    "padding removed, the lengths with it": (
        "v, n = add_padding(doc.values, doc.lengths)\nw, k = remove_padding(v, n)\ny = lengths_sum(w, n)",
        OTHER_COLUMN,
    ),
    "offsets of another column": (
        "y = lengths_sum(doc.values, offsets_to_lengths(lengths_to_offsets(tag.lengths)))",
        OTHER_COLUMN,
    ),
    "offsets for lengths": ("y = lengths_sum(doc.values, lengths_to_offsets(doc.lengths))", OTHER_COLUMN),
    "lengths of steps for lengths of sequences": (
        "v, n, order = pack_sequence(doc.values, doc.lengths)\ny = lengths_sum(v, doc.lengths)",
        OTHER_COLUMN,
    ),
    "unpacked in the order of another column": (
        "v, n, _ = pack_sequence(doc.values, doc.lengths)\n_, _, order = pack_sequence(tag.values, tag.lengths)\n"
        "w, _ = unpack_sequence(v, order, n)\ny = lengths_sum(w, doc.lengths)",
        OTHER_COLUMN,
    ),
    "pieces by the lengths of other pieces": (
        "v, _, _ = split_sequences(doc.values, doc.lengths, chunk=2, stride=1)\n"
        "_, n, _ = split_sequences(doc.values, doc.lengths, chunk=1)\ny = lengths_sum(v, n)",
        "split_sequences",
    ),
    "bytes with special tokens, the lengths as they were": (
        "t, n = bytes_to_tokens(utf.values, utf.lengths, end=256)\ny = lengths_sum(t, utf.lengths)",
        OTHER_COLUMN,
    ),
    "rows of a reshaped column": ("y = expand_dims(doc.values, axis=0) * expand_dims(tag.values, axis=0)", OTHER_COLUMN),
    # Said to be the same, of others
    "said of two columns, used for a third": (
        "same_lengths(doc.lengths, mate.lengths)\ny = mate.values * tag.values",
        OTHER_COLUMN,
    ),
    "said of the truncated lengths, used for the whole": (
        "v, n = truncate(doc.values, doc.lengths, max_length=1)\nw, k = truncate(mate.values, mate.lengths, max_length=1)\n"
        "same_lengths(n, k)\ny = doc.values * mate.values",
        OTHER_COLUMN,
    ),
    # Groups by ids
    "groups of two columns": (
        "y = unsorted_segment_sum(doc.values, doc.values, num_segments=9)"
        " * unsorted_segment_sum(tag.values, tag.values, num_segments=9)",
        PLACES,
    ),
    "ids of another column": ("y = unsorted_segment_sum(doc.values, tag.values, num_segments=9)", OTHER_COLUMN),
    "ids of the record": ("y = sorted_segment_sum(doc.values, label)", OF_SEQUENCES),
    "groups meet rows of the record": ("y = unsorted_segment_sum(score, label, num_segments=4) * score", PLACES),
    # Joined
    "joined values with lengths in another order": (
        "v = concat([doc.values, tag.values])\nn = concat([tag.lengths, doc.lengths])\ny = lengths_sum(v, n)",
        "and then",
    ),
    "joined values with the lengths of one": (
        "y = lengths_sum(concat([doc.values, tag.values]), doc.lengths)",
        "and then",
    ),
    "joined rows meet those of one": ("y = concat([score, score]) * score", "and then"),
    "side by side with another column": ("y = concat([emb.values, fc(gather(table, tag.values), two)], axis=1)", OTHER_COLUMN),
    "joined one by one, with the lengths of one": (
        "v, _ = concat_sequences([doc.values, tag.values], [doc.lengths, tag.lengths])\ny = lengths_sum(v, doc.lengths)",
        OTHER_COLUMN,
    ),
    # Padded
    "masked by the mask of another column": (
        "x, _ = pad(doc.values, doc.lengths)\n_, mask = pad(tag.values, tag.lengths)\ny = where(mask, x, 0)",
        PADDED,
    ),
    "masked by the lengths of another column": (
        "x, _ = pad(doc.values, doc.lengths)\ny = x * lengths_to_mask(tag.lengths)",
        PADDED,
    ),
    "unpadded by the lengths of another column": (
        "x, _ = pad(doc.values, doc.lengths)\ny = unpad(x, tag.lengths)",
        PADDED,
    ),
    "unpadded on the other side": (
        "x, _ = pad(doc.values, doc.lengths, side='left')\ny = unpad(x, doc.lengths)",
        SIDES,
    ),
    "masked on the other side": (
        "x, _ = pad(doc.values, doc.lengths, side='left')\ny = where(lengths_to_mask(doc.lengths), x, 0)",
        SIDES,
    ),
    "padded columns meet": (
        "x, _ = pad(doc.values, doc.lengths)\nz, _ = pad(tag.values, tag.lengths)\ny = x * z",
        PADDED,
    ),
    "padded to a number, and padded columns meet": (
        "x, _ = pad(doc.values, doc.lengths, max_length=4)\nz, _ = pad(tag.values, tag.lengths, max_length=4)\n"
        "y = unpad(x * z, doc.lengths)",
        PADDED,
    ),
    "time first meets batch first": (
        "x, _ = pad(doc.values, doc.lengths)\ny = x + pack_by_time(doc.values, doc.lengths)",
        STEPS,
    ),
    "unpadded with time first": ("y = unpad(pack_by_time(doc.values, doc.lengths), doc.lengths)", STEPS),
    "time first by the lengths of another column": (
        "y = unpack_by_time(pack_by_time(doc.values, doc.lengths), tag.lengths)",
        PADDED,
    ),
    "the transpose of another column": (
        "x, _ = pad(tag.values, tag.lengths)\ny = transpose(x) + pack_by_time(doc.values, doc.lengths)",
        PADDED,
    ),
    "steps of another column set to zero": (
        "y = zero_after_length(pack_by_time(doc.values, doc.lengths), tag.lengths)",
        PADDED,
    ),
    "attention to another column, masked by the first": (
        "x, mask = pad(emb.values, emb.lengths)\nz, _ = pad(fc(gather(table, tag.values), two), tag.lengths)\n"
        "scores = matmul(x, transpose(z, perm=[0, 2, 1]))\ny = where(expand_dims(mask, axis=1), scores, 0)",
        PADDED,
    ),
    "attention weights for the steps of another column": (
        "x, _ = pad(emb.values, emb.lengths)\nz, _ = pad(gather(table, tag.values), tag.lengths)\n"
        "weights = softmax(matmul(x, transpose(x, perm=[0, 2, 1])))\ny = matmul(weights, z)",
        PADDED,
    ),
    "laid flat, and masked by the mask of another column": (
        "x, _ = pad(doc.values, doc.lengths)\n_, mask = pad(tag.values, tag.lengths)\n"
        "v, _ = boolean_mask(reshape(x, [-1]), reshape(mask, [-1]))\ny = v * 2",
        "laid flat",
    ),
    "laid flat and masked, by the lengths of another column": (
        "x, mask = pad(doc.values, doc.lengths)\nv, _ = boolean_mask(reshape(x, [-1]), reshape(mask, [-1]))\n"
        "y = lengths_sum(v, tag.lengths)",
        SELECTION,
    ),
    "padded for truncated lengths, unpadded by the whole": (
        "x, _ = pad(doc.values, doc.lengths, max_length=2, truncate=True)\n"
        "y = unpad(x, doc.lengths)",
        PADDED,
    ),
    "steps beyond the lengths of another column": (
        "x, _ = pad(doc.values, doc.lengths)\ny = sequence_mask(x, tag.lengths, mode='sequence', fill=0)",
        PADDED,
    ),
    # Broadcasting
    "a value for each row against a column of values": ("y = reshape(score, [-1, 1]) - label", BROADCAST),
    "predictions of one column against labels": ("y = reduce_sum(fc(point, weight), axes=[1], keepdims=True) - score", BROADCAST),
    "vectors of a column and a value for each row": ("y = emb.values * expand(score, emb.lengths)", BROADCAST),
    "padded steps and a value for each row": ("x, _ = pad(doc.values, doc.lengths)\ny = x * score", STEPS),
    "a column against its own transpose": ("y = expand_dims(score, axis=1) * label", BROADCAST),
    # Layers, weights and constants
    "a recurrent network by the lengths of another column": (
        "_, y = rnn(emb.values, tag.lengths, weight, w_hh)",
        OTHER_COLUMN,
    ),
    "rows of a table by the lengths of another column": (
        "y = sparse_lengths_sum(table, doc.values, tag.lengths)",
        OTHER_COLUMN,
    ),
    "a table by the rows it was looked up with": ("y = gather(table, doc.values) * expand_dims(tag.values, axis=1)", OTHER_COLUMN),
    "two columns dealt out by other keys": (
        "a, b = partition(score, label, parts=2)\nc, d = partition(label, label + 1, parts=2)\ny = a * c",
        SELECTION,
    ),
    "brought together by other keys": (
        "a, b = partition(score, label, parts=2)\ny = gather_by_key([a, b], label + 1)",
        SELECTION,
    ),
    "brought together in another order": (
        "a, b = partition(score, label, parts=2)\ny = gather_by_key([b, a], label)",
        SELECTION,
    ),
    # Joined, then cut
    "two columns joined, and each half of them": (
        "a, b = split(concat([doc.values, tag.values]), parts=2)\ny = a * b",
        "a slice of",
    ),
    "a part of what was joined meets the first column": (
        "a, _ = split(concat([doc.values, tag.values]), parts=[6, 6])\ny = a * doc.values",
        "a slice of",
    ),
    "joined along the steps, and each half of them": (
        "x, _ = pad(doc.values, doc.lengths, max_length=3)\nz, _ = pad(tag.values, tag.lengths, max_length=3)\n"
        "a, b = split(concat([x, z], axis=1), parts=2, axis=1)\ny = a * b",
        PADDED,
    ),
    "joined along the steps, the second half unpadded by the first column": (
        "x, _ = pad(doc.values, doc.lengths, max_length=3)\nz, _ = pad(tag.values, tag.lengths, max_length=3)\n"
        "a, b = split(concat([x, z], axis=1), parts=[3, 3], axis=1)\ny = unpad(b, doc.lengths)",
        PADDED,
    ),
    "joined along the steps in another order": (
        "x, _ = pad(doc.values, doc.lengths, max_length=3)\nz, _ = pad(tag.values, tag.lengths, max_length=3)\n"
        "y = concat([x, z], axis=1) * concat([z, x], axis=1)",
        "and then",
    ),
    "joined with a first step, and unpadded": (
        "x, _ = pad(doc.values, doc.lengths)\n"
        "y = unpad(concat([expand_dims(label, axis=1), x], axis=1), doc.lengths)",
        "and then",
    ),
    "padded steps without the first, unpadded by the whole": (
        "x, _ = pad(doc.values, doc.lengths)\n"
        "y = unpad(slice_axes(x, starts=[1], stops=[100], axes=[1]), doc.lengths - 1)",
        "a slice of",
    ),
    "padded steps in another order": (
        "x, _ = pad(doc.values, doc.lengths, max_length=3)\ny = gather_axis(x, [2, 1, 0], axis=1) * x",
        "selection",
    ),
    "padded steps repeated": (
        "x, _ = pad(doc.values, doc.lengths)\ny = unpad(tile(x, repeats=[1, 2]), doc.lengths)",
        "and then",
    ),
    # Ops of users
    "an op that gives other lengths each time, twice": (
        "v, _ = sampled_of_a_test(doc.values, doc.lengths)\n_, n = sampled_of_a_test(doc.values, doc.lengths)\n"
        "y = lengths_sum(v, n)",
        "sampled_of_a_test",
    ),
    "an op of a user on two columns": (
        "v, _ = halved_of_a_test(doc.values, doc.lengths)\n_, n = halved_of_a_test(tag.values, tag.lengths)\n"
        "y = lengths_sum(v, n)",
        OTHER_COLUMN,
    ),
}  # fmt: skip

OF_ONE_SIZE = {
    "segment ids counted to more segments than there are": (
        "n = segment_ids_to_lengths(lengths_to_segment_ids(doc.lengths), num_segments=4)\ny = n * score",
        PLACES,
    ),
    "unpacked to more sequences than there are": (
        "p, _, _, sources, sizes, pieces = pack_rows(doc.values, doc.lengths, capacity=4)\n"
        "_, n = unpack_rows(p, sources, sizes, pieces, num_sequences=4)\ny = n * score",
        "new rows",
    ),
    "constants for each row": ("w = reshape([1, 2, 3, 4], [4])\ny = score * w", PLAIN),
    "a constant chosen from, row by row": ("w = reshape([1, 2, 3, 4], [4])\ny = where(flag, w, label)", PLAIN),
    "constants as weights of rows": (
        "w = cast(reshape([1, 2, 3, 4, 5, 6], [6]), dtype='float32')\n"
        "y = lengths_weighted_sum(doc.values, w, doc.lengths)",
        PLAIN,
    ),
    "constants reduced by lengths": (
        "w = reshape([1, 2, 3, 4, 5, 6], [6])\ny = lengths_sum(w, doc.lengths)",
        PLAIN,
    ),
    "constants as ids of rows": (
        "y = unsorted_segment_sum(score, reshape([0, 1, 1, 0], [4]), num_segments=2)",
        PLAIN,
    ),
    "a constant mask of rows": ("y, _ = boolean_mask(score, bool(reshape([0, 1, 1, 0], [4])))", PLAIN),
    "constants beside the columns of rows": (
        "w = cast(reshape([1, 2, 3, 4], [4, 1]), dtype='float32')\ny = concat([point, w], axis=1)",
        PLAIN,
    ),
    "a weight over rows": (
        "w = cast(reshape([1, 2, 3, 4], [4, 1]), dtype='float32')\ny = matmul(transpose(point), w)",
        PLAIN,
    ),
    "a constant as the values of lengths": (
        "w = reshape([1, 2, 3, 4, 5], [5])\ny = lengths_weighted_sum(doc.values, float32(w), doc.lengths)",
        "is a plain size.*\n  if weights has one value for each row that doc.lengths describes",
    ),
    "a sum over rows for each row": ("y = score * reduce_sum(point, axes=[0])", PLAIN),
    "vectors and their transpose": ("y = point * transpose(point)", PLAIN),
    "a constant for each group": (
        "w = reshape([1, 2, 3], [3])\ny = unsorted_segment_sum(score, label, num_segments=3) * w",
        PLAIN,
    ),
    "backwards and forwards": ("y = slice_axes(score, starts=[-1], stops=[-5], steps=[-1]) * label", SELECTION),
    "rows in the order of packed sequences meet the rows": (
        "v, n, order = pack_sequence(doc.values, doc.lengths)\ny = gather(score, order) * label",
        "rows",
    ),
    "vectors and a value for each row": ("y = point * score", BROADCAST),
    "first states of another place": (
        "h0, _ = boolean_mask(fc(point, weight), label > -1)\n"
        "y, _ = rnn(emb.values, emb.lengths, weight, w_hh, bias, h0)",
        SELECTION,
    ),
}  # fmt: skip
"""Whose rows these are is known from the schema only: of a plain mapping's tensors, which nothing ties to others,
all that is known is their sizes, and these are the same."""

DTYPES = {
    "joined in another dtype": "y = concat([score, label])",
    "a column joined in another dtype": "v, _ = concat_sequences([doc.values, doc.values / 2], [doc.lengths, doc.lengths])",
    "floats for lengths": "y = lengths_sum(doc.values, score)",
    "numbers for a mask": "y, _ = boolean_mask(score, label)",
    "floats for ids": "y = unsorted_segment_sum(doc.values, doc.values / 2, num_segments=9)",
    "floats for indices": "y = gather(table, doc.values / 2)",
    "bits of floats": "y = score & label",
}

SHARED_DTYPES = {
    "rows and weights of different dtypes": "y, _ = rnn(emb.values, emb.lengths, wide_weight, w_hh)",
    "a gated network with one wide weight": "y, _ = gru(emb.values, emb.lengths, wide_gates, gates)",
    "a memory network with wide rows": (
        "y, _, _ = lstm(cast(emb.values, dtype='float64'), emb.lengths, more_gates, more_gates_hh)"
    ),
    "put back in another dtype": (
        "s, _ = boolean_mask(score, flag)\nl, _ = boolean_mask(label, label > 0)\n"
        "y = boolean_unmask([s, l], [flag, label > 0], fill=0)"
    ),
}
"""Only the run refuses them, before it computes anything."""

BOTH_TABLES = {
    "rows of two tables": ("y = score * rating", PLACES),
    "rows of two tables, one chosen by the other": ("y, _ = boolean_mask(score, chosen)", PLACES),
    "what is reduced in one table meets the other": (
        "y = lengths_sum(page.values, page.lengths) - lengths_sum(doc.values, doc.lengths)",
        PLACES,
    ),
    "values of one table by the lengths of the other": (
        "y = lengths_sum(doc.values, page.lengths)",
        OTHER_COLUMN,
    ),
    "values of two tables": ("y = doc.values + page.values", OTHER_COLUMN),
    "sequences filtered by the other table": (
        "y, _ = filter_sequences(doc.values, chosen, doc.lengths)",
        PLACES,
    ),
    "a value of one table expanded in the other": ("y = expand(rating, doc.lengths)", PLACES),
    "slices of two tables": (
        "y = slice_axes(score, starts=[0], stops=[4]) * slice_axes(rating, starts=[0], stops=[4])",
        SELECTION,
    ),
    "columns of both tables joined, lengths in another order": (
        "v = concat([doc.values, page.values])\ny = lengths_sum(v, concat([page.lengths, doc.lengths]))",
        "and then",
    ),
    "padded in one table, masked in the other": (
        "x, _ = pad(doc.values, doc.lengths)\ny = where(lengths_to_mask(page.lengths), x, 0)",
        "rows|lengths",
    ),
    "lengths of two tables": ("y = doc.lengths + page.lengths", PLACES),
}


@pytest.fixture(autouse=True)
def two_ops(ops_of_a_user):
    """Nets may call the ops that a user wrote."""


def table(nets):
    return pytest.mark.parametrize(("text", "words"), nets.values(), ids=nets)


@table(FIRST_TABLE | OF_ONE_SIZE | BOTH_TABLES)
def test_inference_before_data_refuses_it(text, words):
    net = net_of(text)
    with pytest.raises(LodError, match=words):
        net.infer(used(net, SPECS))


@table(FIRST_TABLE | OF_ONE_SIZE)
def test_a_run_on_a_record_refuses_it(text, words):
    with pytest.raises(LodError, match=words):
        sf.run(net_of(text), FIRST_RECORD)


@table(FIRST_TABLE | BOTH_TABLES)
def test_a_run_on_a_plain_mapping_refuses_it(text, words):
    net = net_of(text)
    with pytest.raises((LodError, ShapeError, ExpressionError)):
        sf.run(net, TENSORS)


dtypes = pytest.mark.parametrize("text", DTYPES.values(), ids=DTYPES)


@dtypes
def test_inference_before_data_refuses_its_dtypes(text):
    net = net_of(text)
    with pytest.raises(OpTypeError, match=r"float|int|bool"):
        net.infer(used(net, SPECS))


@pytest.mark.parametrize("text", (DTYPES | SHARED_DTYPES).values(), ids=DTYPES | SHARED_DTYPES)
def test_a_run_refuses_its_dtypes(text):
    net = net_of(text)
    with pytest.raises(OpTypeError, match=r"float|int|bool"):
        sf.run(net, TENSORS)


def test_a_difference_that_lies_deep_is_shown():
    steps = [f"m{i + 1} = m{i} * {i} + 1\nk{i + 1} = k{i} * {i} + 1" for i in range(12)]
    text = "\n".join(["m0 = doc.values * 7", "k0 = doc.values * 5", *steps])
    text = f"{text}\na, _ = boolean_mask(doc.values, m12 > 3)\nb, _ = boolean_mask(doc.values, k12 > 3)\ny = a + b"
    names = {f"{name}{i}" for name in "mk" for i in range(13)}
    for name in sorted(names, key=len, reverse=True):
        line = next(one for one in text.split("\n") if one.startswith(f"{name} = "))
        text = text.replace(f"{line}\n", "").replace(f"{name} ", f"({line.partition(' = ')[2]}) ")
    with pytest.raises(LodError, match=r"doc.values, 5.*doc.values, 7|doc.values, 7.*doc.values, 5"):
        sf.run(net_of(text), FIRST_RECORD)
