"""`seqflow.auto`: every op for Sequences. The first test is the table of the rule, row by row."""

import gc
import inspect
import weakref

import numpy as np
import pytest

from seqflow import LoD, LodError, Sequence, auto, ops, registry
from seqflow.errors import OpTypeError

RNG = np.random.default_rng(0)
DOCS, SENTENCES = np.array([2, 0, 1]), np.array([2, 0, 3])
WORDS = Sequence(RNG.random((5, 4), np.float32), [DOCS, SENTENCES])
"""Docs > sentences > words."""
IDS = Sequence(np.array([0, 2, 1, 1, 0]), WORDS.lod)
ONE = Sequence(np.array([1, 2, 3, 4, 5]), [3, 0, 2])
PER_SENTENCE = Sequence(RNG.random((3, 4), np.float32), DOCS)
TABLE = RNG.random((3, 2), np.float32)
SMALL = RNG.random((4, 4), np.float32)


def lod_of(result):
    """The levels of lengths of a Sequence, None for an array."""
    if isinstance(result, np.ndarray):
        return None
    assert isinstance(result, Sequence)
    return [level.tolist() for level in result.lod]


D, S = DOCS.tolist(), SENTENCES.tolist()
RULE = [
    ("lstm", lambda: auto.lstm(WORDS, np.zeros((8, 4), "f4"), np.zeros((8, 2), "f4")).h, [D, S]),
    ("lstm, last", lambda: auto.lstm(WORDS, np.zeros((8, 4), "f4"), np.zeros((8, 2), "f4")).h_last, [D]),
    ("fc", lambda: auto.fc(WORDS, SMALL), [D, S]),
    ("arithmetic", lambda: WORDS * 2, [D, S]),
    ("lengths_sum", lambda: auto.lengths_sum(WORDS), [D]),
    ("lengths_sum of one level", lambda: auto.lengths_sum(ONE), None),
    ("lengths_topk", lambda: auto.lengths_topk(IDS, k=2).values, [D]),
    ("lengths_topk of one level", lambda: auto.lengths_topk(ONE, k=2).values, None),
    ("pad", lambda: auto.pad(WORDS).padded, [D]),
    ("pad, mask", lambda: auto.pad(WORDS).mask, [D]),
    ("pad of one level", lambda: auto.pad(ONE).padded, None),
    ("unpad an array", lambda: auto.unpad(np.zeros((3, 3)), SENTENCES), [S]),
    ("unpad a Sequence", lambda: auto.unpad(auto.pad(WORDS).padded, SENTENCES), [D, S]),
    ("truncate", lambda: auto.truncate(WORDS, max_length=2), [D, [2, 0, 2]]),
    ("split_sequences", lambda: auto.split_sequences(ONE, chunk=2).values, [[2, 0, 1], [2, 1, 2]]),
    ("expand an array", lambda: auto.expand(np.arange(3), WORDS), [D, S]),
    ("expand a Sequence", lambda: auto.expand(PER_SENTENCE, WORDS), [D, S]),
    ("gather", lambda: auto.gather(TABLE, IDS), [D, S]),
    ("gather_sequences", lambda: auto.gather_sequences(WORDS, np.array([2, 0])), [[3, 2]]),
    ("weighted sum", lambda: auto.sparse_lengths_weighted_sum(TABLE, np.ones(5, "f4"), IDS), [D]),
    ("weighted sum, Sequence", lambda: auto.sparse_lengths_weighted_sum(TABLE, IDS * 0.5, IDS), [D]),
    ("concat_sequences", lambda: auto.concat_sequences([ONE, ONE]), [[6, 0, 4]]),
    ("pack_rows", lambda: auto.pack_rows(ONE, capacity=4).packed, None),
    ("sort_rows", lambda: auto.sort_rows(ONE), None),
    ("unique", lambda: auto.unique(ONE).unique, None),
    ("concat along another axis", lambda: auto.concat([WORDS, WORDS * 2], axis=1), [D, S]),
    ("cast", lambda: auto.cast(WORDS, dtype="float64"), [D, S]),
    ("reshape, size given", lambda: auto.reshape(WORDS, [5, 2, -1]), [D, S]),
    ("reshape, size left open", lambda: auto.reshape(WORDS, [-1, 2, 2]), [D, S]),
    ("reshape, other rows", lambda: auto.reshape(WORDS, [10, 2]), None),
]  # fmt: skip


def there(name):
    """Skips a test of an op that is not registered."""
    return pytest.mark.skipif(name not in registry.names(), reason=f"there is no {name}")


OPS_OF_ROWS = {
    "weighted sum": "sparse_lengths_weighted_sum",
    "weighted sum, Sequence": "sparse_lengths_weighted_sum",
    "sort_rows": "sort_rows",
    "unique": "unique",
}


@pytest.mark.parametrize(
    ("call", "expected"),
    [pytest.param(*row[1:], id=row[0], marks=there(OPS_OF_ROWS.get(row[0], "pad"))) for row in RULE],
)
def test_the_rule_row_by_row(call, expected):
    for _ in range(2):  # planned the first time, remembered the second
        assert lod_of(call()) == expected


@there("sparse_lengths_weighted_sum")
def test_an_unequal_sequence_in_the_place_of_weights_is_refused():
    with pytest.raises(
        LodError, match=r"weights and indices have different lengths: lod\[0\]\[0\] is 1 and 2"
    ):
        auto.sparse_lengths_weighted_sum(TABLE, Sequence(np.ones(5, "f4"), [[1, 1, 1], S]), IDS)


def test_chains_keep_the_very_lengths():
    hidden = auto.fc(WORDS, SMALL)
    assert auto.softmax_within(hidden).lengths is WORDS.lengths
    assert auto.lengths_sum(hidden).lengths is WORDS.lod[0]


def test_values_and_their_lengths_come_back_as_the_sequence():
    result = auto.truncate(ONE, max_length=2)
    assert isinstance(result, Sequence)
    assert result.to_lists() == [[1, 2], [], [4, 5]]
    assert auto.truncate([1, 2, 3], lengths=[2, 1], max_length=1).to_lists() == [[1], [3]]


def test_all_fields_come_back_where_there_are_more():
    result = auto.split_sequences(ONE, chunk=2)
    assert type(result) is type(ops.split_sequences([1], [1], chunk=2))
    assert lod_of(result[0]) == [[2, 0, 1], [2, 1, 2]]


def test_lengths_that_an_op_gave_stand_for_themselves():
    pieces = auto.split_sequences(ONE, chunk=2)[1]
    assert pieces.holds_lengths
    assert lod_of(auto.expand(np.arange(3), pieces)) == [[2, 0, 1], [2, 1, 2]]
    assert not (pieces + 0).holds_lengths
    packed = auto.pack_rows(ONE, capacity=4)
    data = auto.unpack_rows(packed.packed, packed.sources, packed.piece_lengths, num_sequences=3)
    np.testing.assert_array_equal(data.values, ONE.values)


def test_a_lod_is_taken_where_lengths_stay():
    assert lod_of(auto.unpad(np.zeros((3, 3)), WORDS.lod)) == [D, S]
    assert lod_of(auto.lengths_to_positions(WORDS)) == [D, S]


def test_lengths_may_be_given_by_keyword_and_are_then_the_same():
    np.testing.assert_array_equal(auto.lengths_sum(ONE, lengths=[3, 0, 2]), [6, 0, 9])
    np.testing.assert_array_equal(auto.lengths_sum([1, 2, 3], lengths=[2, 1]), [3, 3])
    assert lod_of(auto.cumsum_within([1, 2, 3], lengths=[2, 1])) == [[2, 1]]
    assert lod_of(auto.cumsum_within([1, 2, 3], lengths=LoD([2], [2, 1]))) == [[2], [2, 1]]
    assert lod_of(auto.cumsum_within(IDS, lengths=WORDS.lod)) == [D, S]


def test_equal_lengths_built_apart_agree_and_are_compared_once():
    left, right = Sequence([1, 2, 3], [2, 1]), Sequence([4, 5, 6], np.array([2, 1], np.int32))
    assert (left + right).lod == left.lod
    assert (right + left).values.tolist() == [5, 7, 9]


def test_mixed_lists_of_sequences_and_a_list_of_lengths():
    explicit = auto.concat_sequences([np.array([1, 2]), np.array([3])], lengths=[[1, 1], [1, 0]])
    assert explicit.to_lists() == [[1, 3], [2]]
    assert auto.expression(ONE, 2, expr="x ** y").to_lists() == [[1, 4, 9], [], [16, 25]]
    pieces = auto.split(WORDS, parts=2, axis=1)
    assert [lod_of(piece) for piece in pieces] == [[D, S], [D, S]]


def test_an_op_without_outputs_gives_nothing():
    assert auto.same_lengths(WORDS, IDS) is None
    with pytest.raises(LodError, match="different lengths"):
        auto.same_lengths(Sequence([1], [[1], [1]]), Sequence([1], [[1, 0], [1]]))


def test_ops_registered_later_are_there_too():
    @registry.op("x[N] -> y[N]")
    def twice_for_this_test(x):
        """Twice.

        >>> twice_for_this_test(np.array([1]))
        array([2])
        """
        return 2 * x

    try:
        assert lod_of(auto.twice_for_this_test(ONE)) == [[3, 0, 2]]
        assert "twice_for_this_test" in dir(auto)
    finally:
        registry.unregister("twice_for_this_test")


def test_the_python_signature_leaves_out_what_the_sequence_brings():
    assert str(inspect.signature(auto.unpad)).startswith("(padded, lengths, *")
    parameters = inspect.signature(auto.lengths_sum).parameters
    assert parameters["lengths"].kind is inspect.Parameter.KEYWORD_ONLY


DROPPED = [
    (lambda: auto.pack_rows(ONE, capacity=5).packed, "pack_rows dropped them (its rows are other rows)"),
    (lambda: auto.lengths_sum(ONE), "lengths_sum dropped them (it has a row for each sequence)"),
    (lambda: np.arange(3), "data is an array, expected a Sequence"),
]


@pytest.mark.parametrize(("make", "why"), DROPPED)
def test_missing_lengths_say_who_dropped_them(make, why):
    array = auto.neg(make())
    with pytest.raises(LodError) as error:
        auto.lengths_sum(array)
    assert f"lengths_sum: lengths are missing: {why}" in str(error.value)


@pytest.mark.slow
def test_what_is_remembered_of_an_array_does_not_keep_it_alive():
    result = auto.lengths_sum(ONE)
    alive = weakref.ref(result)
    del result
    gc.collect()
    assert alive() is None


ERRORS = [
    (lambda: ONE + Sequence(ONE.values, [2, 1, 2]), LodError, "add: x and y have different lengths: lod[0][0] is 3 and 2"),
    (lambda: ONE + Sequence(ONE.values, [5]), LodError, "add: x and y have different lengths: lod[0] has 3 and 1 lengths"),
    (lambda: IDS + Sequence(IDS.values, S), LodError, "the one has 2 levels, the other 1 level"),
    (lambda: auto.lengths_sum(ONE, lengths=[3, 1, 1]), LodError, "lengths_sum: lengths and data have different lengths: lod[0][1] is 1 and 0"),
    (lambda: auto.lengths_sum(ONE, [3, 0, 2]), OpTypeError, "lengths_sum: found 2 inputs, expected 1 (data)\n  lengths comes with"),
    (lambda: auto.expand(PER_SENTENCE, Sequence(IDS.values, [[1, 2], S])), LodError, "expand: lengths and x have different lengths: lod[0] has 2 and 3 lengths"),
    (lambda: auto.collapse_lengths(LoD([1, 2])), LodError, "collapse_lengths: inner has 1 level of lengths, expected more: outer is missing"),
    (lambda: auto.fc(ONE.lod, SMALL), LodError, "fc: x is a LoD, expected a Sequence or an array"),
    (lambda: auto.concat(ONE), OpTypeError, "concat: tensors is a Sequence, expected a list"),
    (lambda: auto.fc(WORDS), OpTypeError, "fc: weight is missing"),
    (lambda: auto.fc(WORDS, SMALL, x=WORDS), OpTypeError, "fc: x is given twice"),
    (lambda: auto.lengths_topk(ONE), OpTypeError, "lengths_topk: k is missing, expected an integer, 1 or more"),
    (lambda: auto.truncate(ONE, max_lenght=1), OpTypeError, "there is no attribute 'max_lenght' (did you mean 'max_length'?)"),
    (lambda: auto.expression(expr="2*x", x=ONE), OpTypeError, "expression: there is no attribute 'x', expected expr, out"),
    (lambda: auto.lengths_sum(Sequence(["a"], [1])), OpTypeError, "lengths_sum: data is <U1, expected numbers"),
    (lambda: auto.lenghts_sum(ONE), AttributeError, "did you mean 'lengths_sum'?"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[row[2][:40] for row in ERRORS])
def test_every_error_says_what_is_wrong(call, kind, message):
    for _ in range(2):
        with pytest.raises(kind) as error:
            call()
        assert message in str(error.value)


MATRICES = Sequence(np.arange(24.0).reshape(3, 8, 1), [2, 1])
ONE_ATTRIBUTE_IN_TWO_FORMS = [
    ("expand_dims", {"axis": 1}, {"axis": [1]}),
    ("reduce_sum", {"axes": 1}, {"axes": (1,)}),
    ("squeeze", {"axis": 2}, {"axis": np.array([2])}),
    ("tile", {"repeats": 2}, {"repeats": [2]}),
    ("slice_axes", {"starts": 0, "stops": 3}, {"starts": [0], "stops": range(3, 4)}),
    ("split", {"parts": (3, 5), "axis": 1}, {"parts": [3, 5], "axis": np.int64(1)}),
    ("split", {"parts": 2, "axis": 1}, {"parts": np.int32(2), "axis": 1}),
    ("cast", {"dtype": "int32"}, {"dtype": np.dtype(np.int32)}),
]


@pytest.mark.parametrize(("name", "one", "other"), ONE_ATTRIBUTE_IN_TWO_FORMS)
@pytest.mark.parametrize("turn", [False, True])
def test_all_forms_of_an_attribute_give_the_same_result(name, one, other, turn):
    """Whichever form the first call has, whose plan is kept."""
    call = getattr(auto, name)
    call.plans.clear()
    first, second = (call(MATRICES, **form) for form in ((other, one) if turn else (one, other)))
    explicit = getattr(ops, name)(MATRICES.values, **one)
    assert str(first) == str(second)
    plain = explicit if isinstance(explicit, list) else [explicit]
    for ours, expected in zip(first if isinstance(first, list) else [first], plain, strict=True):
        np.testing.assert_array_equal(ours.values if isinstance(ours, Sequence) else ours, expected)


def test_calls_of_one_kind_with_other_sizes_are_planned_once_and_right():
    for n in range(5):
        data = Sequence(np.ones((n, 4), np.float32), [n])
        assert auto.reshape(data, [-1, 2, 2]).lod is data.lod
        assert lod_of(auto.reshape(data, [n, 4, 1])) == [[n]]
        assert lod_of(auto.concat([data, data])) is None


@pytest.mark.parametrize("convert", [np.asarray, "tensor"])
def test_an_array_does_not_repeat_the_rows_of_a_sequence(convert):
    """Predictions [N, 1] minus labels [N] would be [N, N]."""
    if convert == "tensor":
        convert = pytest.importorskip("torch").tensor
    y, labels = Sequence(convert([[1.0], [2.0], [3.0]]), [1, 2]), convert([1.0, 2.0, 3.0])
    for call in (
        lambda: y - labels,
        lambda: auto.sub(labels, y),
        lambda: auto.expression(y, labels, expr="x * y"),
    ):
        with pytest.raises(LodError, match=r"has shape \(3,\), but .* \(3, 1\) has a size of 1 there"):
            call()
    assert (y - labels[:, None]).values.tolist() == [[0], [0], [0]]
    assert (y - labels[None]).values.shape == (3, 3)
    assert (y - labels[:1]).values.shape == (3, 1)
