"""Integers know what they point at: indices of other rows, positions of other sequences, are refused before data."""

import numpy as np
import pytest
from two_tables import FIRST_RECORD, SPECS, TENSORS, net_of, used

import seqflow as sf
from seqflow import registry
from seqflow.errors import LodError
from seqflow.signature import Described
from seqflow.signature.rows import Positions

NO_INDICES = "positions inside sequences are not indices of rows.*\n  to_rows"
OF_OTHERS = "indices of some rows, used on others"
OF_COLUMN = (
    "positions of one column, lengths of another.*\n  if the lengths are the same, add a line: same_lengths"
)
OF_SEQUENCES = "one has a row for each sequence"
SEVERAL = "one has a row for each sequence.*\n  {} takes several positions in a sequence: picked={}"
JOINED = "indices of several rows were joined"
NO_POSITIONS = "indices of rows are not positions inside sequences"

ORDER = "o = argsort_within(doc.values, doc.lengths)\n"
TOP = "v, n, p = topk_within(doc.values, doc.values, doc.lengths, k=2)\n"
BEST = "b = lengths_argmax(doc.values, doc.lengths)\n"
PAIR = "v, p = lengths_topk(doc.values, doc.lengths, k=2)\n"
DISTINCT = "u, i, c = unique(doc.values)\nw, j, d = unique(tag.values)\n"
MASKED = "r, p = boolean_mask(doc.values, doc.values > 2)\n"

WRONG = {
    "an order inside sequences": (ORDER + "y = gather(doc.values, o)", NO_INDICES),
    "the best of each sequence": (TOP + "y = gather(doc.values, p)", NO_INDICES),
    "the largest of each sequence": (BEST + "y = gather(doc.values, b)", NO_INDICES),
    "the largest of each sequence, of the records": (BEST + "y = gather(score, b)", NO_INDICES),
    "the best of each sequence, padded": (PAIR + "y = gather(doc.values, p, ignore_index=-1)", NO_INDICES),
    "places inside sequences": ("y = gather(doc.values, lengths_to_positions(doc.lengths))", NO_INDICES),
    "places along axis 0": (
        "y = gather_axis(doc.values, lengths_to_positions(doc.lengths), axis=0)",
        NO_INDICES,
    ),
    "places that are pooled": (
        ORDER + "y = sparse_lengths_sum(doc.values, o, doc.lengths)",
        NO_INDICES,
    ),
    "rows that are removed": (ORDER + "y = remove_rows(doc.values, o)", NO_INDICES),
    "sequences that are gathered": (BEST + "y, n = gather_sequences(doc.values, b, doc.lengths)", NO_INDICES),
    "the order of another column": (
        ORDER + "y = gather_within(tag.values, o, tag.lengths, doc.lengths)",
        OF_COLUMN,
    ),
    "the best of another column": (PAIR + "y = gather_within_padded(tag.values, p, tag.lengths)", OF_COLUMN),
    "the order of another column, as rows": (
        ORDER + "y = to_rows_within(o, tag.lengths, doc.lengths)",
        OF_COLUMN,
    ),
    "an order, as one place of each sequence": (
        ORDER + "y = to_rows(o, doc.lengths)",
        SEVERAL.format("to_rows_within", "doc.lengths"),
    ),
    "several of each sequence, as one place": (
        TOP + "y = to_rows(p, doc.lengths)",
        SEVERAL.format("to_rows_within", "n"),
    ),
    "several of each sequence, as a padded axis": (
        "o = argsort_within(expand_dims(doc.values, axis=1), doc.lengths)\n"
        "y = gather_within_padded(doc.values, o, doc.lengths)",
        SEVERAL.format("gather_within", "doc.lengths"),
    ),
    "places in a column, of the records": (
        BEST + "y = gather(label, b)",
        "makes indices of the rows that doc.lengths describes",
    ),
    "starts found in another column": (
        BEST + "y, n = slice_sequences(tag.values, b, label, tag.lengths, clip=True)",
        OF_COLUMN,
    ),
    "rows of one column, of another": (
        ORDER + "y = gather(tag.values, to_rows_within(o, doc.lengths, doc.lengths))",
        OF_OTHERS,
    ),
    "the inverse of another column": (DISTINCT + "y = gather(u, j)", OF_OTHERS),
    "the inverse, of what it was made from": (DISTINCT + "y = gather(doc.values, i)", OF_OTHERS),
    "the inverse of another column, cast": (DISTINCT + "y = gather(u, cast(j, dtype='int32'))", OF_OTHERS),
    "the inverse of another column, in an expression": (
        DISTINCT + "y = gather(u, int32(maximum(j, 0)))",
        OF_OTHERS,
    ),
    "one inverse or the other": (DISTINCT + "y = gather(u, concat([i, j]))", JOINED),
    "one inverse where the other": (
        "same_lengths(doc.lengths, tag.lengths)\n" + DISTINCT + "y = gather(u, where(i > 1, i, j))",
        JOINED,
    ),
    "an inverse that was padded and turned": (
        DISTINCT + "q, m = pad(j, tag.lengths)\ny = gather(u, transpose(q))",
        OF_OTHERS,
    ),
    "an inverse that was sliced": (
        DISTINCT + "y = gather(u, slice_axes(j, starts=[0], stops=[2]))",
        OF_OTHERS,
    ),
    "an inverse of an inverse": (
        DISTINCT + "y = gather(u, gather(j, lengths_to_segment_ids(doc.lengths)))",
        ".",
    ),
    "where another column is true": (MASKED + "y = gather(tag.values, p)", OF_OTHERS),
    "the sequence of each row, among rows": (
        "y = gather(doc.values, lengths_to_segment_ids(doc.lengths))",
        OF_OTHERS,
    ),
    "the sequence of each row, of another table": (
        "y = gather(rating, lengths_to_segment_ids(doc.lengths))",
        OF_OTHERS,
    ),
    "where each sequence of another column starts": (
        "y = gather(tag.values, slice_axes(lengths_to_offsets(doc.lengths), starts=[0], stops=[2]))",
        OF_OTHERS,
    ),
    "the ranges of another column": (
        "y, n = gather_ranges(tag.values, expand_dims(lengths_to_ranges(doc.lengths), axis=1))",
        OF_OTHERS,
    ),
    "where another column has a key": (
        "a, b = key_split(doc.values % 2, num_keys=2)\ny = gather(tag.values, a)",
        OF_OTHERS,
    ),
    "the sources of packed rows": (
        "k = pack_rows(doc.values, doc.lengths, capacity=4)\ny = gather(doc.values, k.sources)",
        OF_OTHERS,
    ),
    "the order of packed sequences": (
        "s = pack_sequence(doc.values, doc.lengths)\ny = gather(rating, s.order)",
        OF_OTHERS,
    ),
    "a row where a position is wanted": (
        DISTINCT + "y = gather_within(doc.values, i, doc.lengths, doc.lengths)",
        NO_POSITIONS,
    ),
    "where a value is found in another column": (
        "y = gather(tag.values, find(doc.values, tag.values))",
        OF_OTHERS,
    ),
    "positions of sequences that were filtered, as rows": (
        BEST
        + "f, n = filter_sequences(doc.values, flag, doc.lengths)\nq, k = boolean_mask(b, flag)\ny = gather(f, q)",
        NO_INDICES,
    ),
    "positions of sequences that were filtered, of another column": (
        BEST
        + "f, n = filter_sequences(tag.values, flag, tag.lengths)\nq, k = boolean_mask(b, flag)\ny = to_rows(q, n)",
        "that were moved since",
    ),
    "positions of sequences in another order": (
        BEST + "y = to_rows(gather(b, label), doc.lengths)",
        "that were moved since.*\n  move the lengths as the positions were moved",
    ),
    "positions in another order along axis 0": (
        BEST + "y = to_rows(gather_axis(b, label, axis=0), doc.lengths)",
        "that were moved since",
    ),
    "positions of sequences in another order, lengths computed": (
        BEST + "n = gather(doc.lengths, label)\ny = to_rows(gather(b, label), n + n)",
        "that were moved since",
    ),
    "positions of all sequences, of those that are packed": (
        "k = pack_rows(doc.values, doc.lengths, capacity=4)\ny = gather(doc.values, k.position_ids)",
        NO_INDICES,
    ),
    "ranks as rows": ("y = gather(doc.values, rank_within(doc.values, doc.lengths))", NO_INDICES),
    "a sum over other groups": (
        DISTINCT + "s = unsorted_segment_sum(doc.values, i)\ny = gather(s, j)",
        OF_OTHERS,
    ),
    "several positions of each, without how many": (ORDER + "y = to_rows(o, doc.lengths)", OF_SEQUENCES),
    "the mask of another column": (
        "x, m = pad(doc.values, doc.lengths)\nq, k = pad(tag.values, tag.lengths)\ny = where(k, x, 0)",
        "padded for other lengths",
    ),
    "the mask of another column, of one width": (
        "x, m = pad(doc.values, doc.lengths, max_length=3)\nk = lengths_to_mask(tag.lengths, max_length=3)\n"
        "y = where(k, x, 0)",
        "padded for other lengths",
    ),
    "what another column's mask takes": ("y, p = boolean_mask(doc.values, tag.values > 2)", "doc.lengths"),
    "the flat mask of another column": (
        "x, m = pad(doc.values, doc.lengths, max_length=3)\nk = lengths_to_mask(tag.lengths, max_length=3)\n"
        "y, p = boolean_mask(reshape(x, shape=[-1]), reshape(k, shape=[-1]))",
        ".",
    ),
}

DOC, TAG = TENSORS["doc.values"], TENSORS["tag.values"]
DOC_LENGTHS = TENSORS["doc.lengths"]
RIGHT = {
    "an order inside sequences": (
        ORDER + "y = gather_within(doc.values, o, doc.lengths, doc.lengths)",
        sf.ops.sort_within(DOC, DOC_LENGTHS),
    ),
    "an order, as rows": (
        ORDER + "y = gather(doc.values, to_rows_within(o, doc.lengths, doc.lengths))",
        sf.ops.sort_within(DOC, DOC_LENGTHS),
    ),
    "an order of another column of the same lengths": (
        "same_lengths(doc.lengths, mate.lengths)\no = argsort_within(mate.values, mate.lengths)\n"
        "y = gather_within(doc.values, o, doc.lengths, doc.lengths)",
        [2, 1, 3, 5, 4, 6],
    ),
    "the best of each sequence, as rows": (
        TOP + "y = gather(doc.values, to_rows_within(p, doc.lengths, n))",
        [2, 1, 5, 4, 6],
    ),
    "the largest of each sequence, as rows": (
        BEST + "y = gather(doc.values, to_rows(b, doc.lengths, keep_missing=True), ignore_index=-1)",
        [2, 0, 5, 6],
    ),
    "the order, cut": (
        ORDER
        + "q, n = truncate(o, doc.lengths, max_length=1)\ny = gather_within(doc.values, q, doc.lengths, n)",
        [1, 3, 6],
    ),
    "the order, turned": (
        ORDER
        + "r = reverse_sequences(o, doc.lengths)\ny = gather_within(doc.values, r, doc.lengths, doc.lengths)",
        [2, 1, 5, 4, 3, 6],
    ),
    "positions of sequences that were filtered": (
        "f, n = filter_sequences(doc.values, flag, doc.lengths)\nb = lengths_argmax(doc.values, doc.lengths)\n"
        "q, k = boolean_mask(b, flag)\ny = gather(f, to_rows(q, n))",
        [2, 5, 6],
    ),
    "positions of sequences in another order": (
        BEST + "f, n = gather_sequences(doc.values, label, doc.lengths)\n"
        "y = to_rows(gather(b, label), n, keep_missing=True)",
        [-1, 1, 4, -1],
    ),
    "positions that were padded and turned": (
        PAIR + "y = reshape(to_rows(transpose(transpose(p)), doc.lengths, keep_missing=True), shape=[-1])",
        [1, 0, -1, -1, 4, 3, 5, -1],
    ),
    "a sum over groups, for each of them": (
        DISTINCT + "s = unsorted_segment_sum(doc.values, i)\ny = gather(s, i)",
        DOC,
    ),
    "a sum over positions, for each row": (
        "p = lengths_to_positions(doc.lengths)\ny = gather(unsorted_segment_sum(doc.values, p), p)",
        [10, 6, 10, 6, 5, 10],
    ),
    "sorted, and put back by ranks": (
        "s = sort_within(doc.values, doc.lengths)\nr = rank_within(doc.values, doc.lengths)\n"
        "y = gather_within(s, r, doc.lengths, doc.lengths)",
        DOC,
    ),
    "positions in a table of positions": ("y = gather(table, lengths_to_positions(doc.lengths)) * 1", None),
    "positions along a padded axis": (
        PAIR
        + "x, m = pad(doc.values, doc.lengths)\ny = gather_axis(x, maximum(slice_axes(p, starts=[0], stops=[1]), 0),"
        " axis=1)",
        None,
    ),
    "the inverse of unique": (DISTINCT + "y = gather(u, i)", DOC),
    "the inverse, padded": (
        DISTINCT + "q, m = pad(i, doc.lengths)\ny = unpad(gather(u, q), doc.lengths)",
        DOC,
    ),
    "the inverse, cast and chosen": (
        DISTINCT + "y = gather(u, int32(where(i > 1, i, 0)))",
        [1, 1, 3, 4, 5, 6],
    ),
    "the inverse, gathered": (DISTINCT + MASKED + "y = gather(u, gather(i, p))", [3, 4, 5, 6]),
    "rows of what is joined to others": (DISTINCT + "y = gather(concat([u, w]), i)", DOC),
    "a number that was computed": (DISTINCT + "y = gather(u, minimum(j + 0, 5))", None),
    "the rows of a mask": (MASKED + "y = gather(doc.values, p)", [3, 4, 5, 6]),
    "the sequence of each row": (
        "y = gather(score, lengths_to_segment_ids(doc.lengths))",
        [0.5, 0.5, 4.0, 4.0, 4.0, 8.0],
    ),
    "where each sequence starts": (
        "y = gather(doc.values, slice_axes(lengths_to_offsets(doc.lengths), starts=[0], stops=[3]))",
        [1, 3, 3],
    ),
    "the sources of packed rows": (
        "k = pack_rows(doc.values, doc.lengths, capacity=4)\ny = gather(score, k.sources)",
        None,
    ),
    "the order of packed sequences": (
        "s = pack_sequence(doc.values, doc.lengths)\ny = gather(score, s.order)",
        [4.0, 0.5, 8.0, 2.0],
    ),
    "packed and unpacked again": (
        "s = pack_sequence(doc.values, doc.lengths)\ny, n = unpack_sequence(s.values, s.order, s.lengths)",
        DOC,
    ),
    "ids of a record": ("y = gather(score, label)", [2.0, 0.5, 4.0, 2.0]),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_inference_refuses_indices_of_others(text, words):
    net = net_of(text)
    with pytest.raises(LodError, match=f"(?s){words}"):
        net.infer(used(net, SPECS))


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_a_run_refuses_indices_of_others(text, words):
    if "rating" not in text:
        with pytest.raises(LodError, match=f"(?s){words}"):
            sf.run(net_of(text), FIRST_RECORD)


@pytest.mark.parametrize(("text", "expected"), RIGHT.values(), ids=RIGHT)
def test_indices_of_the_same_rows_are_taken(text, expected):
    net = net_of(text)
    net.infer(used(net, SPECS))
    found = [sf.run(net, FIRST_RECORD)["y"], sf.run(net, used(net, TENSORS))["y"]]
    np.testing.assert_array_equal(*found)
    if expected is not None:
        np.testing.assert_array_equal(found[0], expected)


def points(text, name, **specs):
    net = net_of(text)
    return net.infer(used(net, {**SPECS, **specs})).specs[name].points


def test_a_spec_says_what_its_integers_point_at():
    assert points(ORDER, "o") == Positions("doc.lengths")
    assert points(ORDER + "r = to_rows_within(o, doc.lengths, doc.lengths)", "r") == Described("doc.lengths")
    assert points("s = lengths_to_segment_ids(doc.lengths)", "s") == SPECS["score"].rows
    assert points(ORDER + "r = o + 1", "r") is None
    assert points(ORDER + "r = float32(o)", "r") is None


def test_integers_that_are_chosen_next_to_undeclared_ones_point_at_nothing():
    assert points(ORDER + "r = maximum(o, 0)", "r") == Positions("doc.lengths")
    assert points(ORDER + "r = maximum(o, doc.values)", "r") is None
    assert points(ORDER + "r = maximum(o, doc.values + 1)", "r") is None
    assert points(ORDER + "r = where(doc.values > 2, o, doc.values)", "r") is None
    assert points(ORDER + "r = concat([o, doc.values])", "r") is None


def test_an_input_may_say_what_it_points_at():
    column = sf.TensorSpec("int64", "{?}", SPECS["label"].rows, points=Described("doc.lengths"))
    assert points("y = gather(doc.values, label)", "y", label=column) is None
    with pytest.raises(LodError, match=OF_OTHERS):
        points("y = gather(tag.values, label)", "y", label=column)
    inside = sf.TensorSpec("int64", "{?}", SPECS["label"].rows, points=Positions("doc.lengths"))
    assert points("y = to_rows(label, doc.lengths)", "y", label=inside) == Described("doc.lengths")
    with pytest.raises(LodError, match=OF_COLUMN):
        points("y = to_rows(label, tag.lengths)", "y", label=inside)


@pytest.fixture
def ops_that_shift_and_turn():
    """Two ops of a user: of one nothing is known, the other says that it moves what it is given."""

    @sf.op("x[N] -> shifted[N]")
    def shifted(x):
        return x + 1

    @sf.op("x[N] -> turned[P=N]", moves="x")
    def turned(x):
        return x[::-1]

    @sf.op("x[N], like(x) y[M] -> index(N) places[M]")
    def first_places(x, y):
        return np.zeros(len(y), np.int64)

    yield
    for name in ("shifted", "turned", "first_places"):
        registry.unregister(name)


def test_an_op_of_a_user_says_what_it_moves_and_what_points(ops_that_shift_and_turn):
    assert points(ORDER + "y = shifted(o)", "y") is None
    made = points(ORDER + "y = turned(o)", "y")
    assert str(made) == "positions inside the sequences of doc.lengths"
    with pytest.raises(LodError, match=NO_INDICES):
        points(ORDER + "y = gather(doc.values, turned(o))", "y")
    assert points("y = first_places(doc.values, tag.values)", "y") == Described("doc.lengths")
    with pytest.raises(LodError, match=OF_OTHERS):
        points("y = gather(tag.values, first_places(doc.values, tag.values))", "y")
    outputs = registry.get("first_places").infer({"x": SPECS["score"], "y": SPECS["score"]}).outputs
    assert outputs[0].points == SPECS["score"].rows
