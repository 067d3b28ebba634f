"""Sequence: values with their LoD, as an array of sequences."""

import pickle
from datetime import date, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import LoD, LodError, Sequence, ops
from seqflow.errors import OpError, OpTypeError


@st.composite
def lists(draw, levels):
    """Nested lists of so many levels, with empty ones among them."""
    if levels == 0:
        return draw(st.integers(0, 9))
    return draw(st.lists(lists(levels - 1), max_size=4))


def three_levels():
    return Sequence.from_lists([[[1, 2], []], [], [[3], [4, 5], []]], dtype="int64")


@pytest.mark.parametrize("levels", [1, 2, 3])
@given(data=st.data())
def test_from_lists_and_to_lists_are_inverses(levels, data):
    items = data.draw(lists(levels + 1))
    sequence = Sequence.from_lists(items, dtype="int64", levels=None)
    again = Sequence.from_lists(items, dtype="int64", levels=sequence.num_levels)
    assert again.lod == sequence.lod
    assert sequence.to_lists() == items


@pytest.mark.parametrize("levels", [1, 2])
@given(data=st.data())
def test_indices_slices_lists_and_masks_are_those_of_a_list(levels, data):
    items = data.draw(lists(levels + 1).filter(bool))
    sequence = Sequence.from_lists(items, dtype="int64")
    plain = sequence.to_lists()
    assert len(sequence) == len(plain)
    assert [as_lists(one) for one in sequence] == plain
    i = data.draw(st.integers(-len(plain), len(plain) - 1))
    assert as_lists(sequence[i]) == plain[i]
    part = data.draw(st.slices(len(plain)))
    assert sequence[part].to_lists() == plain[part]
    picked = data.draw(st.lists(st.integers(-len(plain), len(plain) - 1), max_size=4))
    assert sequence[picked].to_lists() == [plain[j] for j in picked]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(plain), max_size=len(plain))), bool)
    assert sequence[mask].to_lists() == [one for one, keep in zip(plain, mask, strict=True) if keep]


def as_lists(element):
    return element.tolist() if isinstance(element, np.ndarray) else element.to_lists()


def test_elements_and_slices_are_views():
    sequence = Sequence(np.arange(4), [3, 1])
    sequence[0][1] = 7
    assert sequence[:1].values.tolist() == [0, 7, 2]
    assert np.shares_memory(sequence[1:].values, sequence.values)


def test_the_lengths_are_read_only_and_the_values_are_not_copied():
    values = np.arange(4)
    sequence = Sequence(values, [3, 1])
    assert sequence.values is values
    with pytest.raises(ValueError, match="read-only"):
        sequence.lengths[0] = 2


def test_the_lod_may_be_given_in_three_ways():
    for lod in (LoD([1, 1], [2, 1]), [[1, 1], [2, 1]], [np.array([1, 1]), [2, 1]]):
        assert Sequence([1, 2, 3], lod).lod == LoD([1, 1], [2, 1])
    assert Sequence([1, 2, 3], np.array([2, 1])).num_levels == 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Sequence([1, 2], [3]), LodError, "Sequence: the lengths describe 3 rows but values has 2"),
        (lambda: Sequence(1, [1]), LodError, "Sequence: values is a number"),
        (lambda: Sequence([1, 2], [[1], [1, 1]]), LodError, "LoD: sum(lod[0]) is 1 but lod[1] has 2 lengths"),
        (lambda: Sequence([1], [-1]), LodError, "negative"),
        (lambda: Sequence.from_lists([[1], 2]), LodError, "at depth 1, item 0 is a list but item 1 is 2"),
        (lambda: Sequence.from_lists([1, 2]), LodError, "no lists in the list"),
        (lambda: Sequence.from_lists([[1]], levels=2), LodError, "nest 1 deep, expected 2 levels"),
        (lambda: three_levels()[3], IndexError, "sequence 3 is outside [-3, 3)"),
        (lambda: three_levels()[[0, 3]], IndexError, "index [1] = 3 is outside [-3, 3)"),
        (lambda: three_levels()[[True]], IndexError, "the mask has 1 entries for 3 sequences"),
        (lambda: three_levels()[0, 1], TypeError, "indexed by an integer, a slice"),
        (lambda: three_levels()[[0.5]], TypeError, "not by float64"),
        (lambda: bool(three_levels()), ValueError, "ambiguous"),
        (lambda: np.hypot(three_levels(), 1), TypeError, "np.hypot is not among the functions"),
        (lambda: np.add.reduce(three_levels()), TypeError, "np.add.reduce does not take a Sequence"),
        (lambda: np.add(three_levels(), 1, dtype="f4"), TypeError, "np.add with dtype="),
        (lambda: np.concatenate([three_levels()]), TypeError, "np.concatenate does not take a Sequence"),
        (lambda: three_levels() + "x", TypeError, "unsupported operand"),
        (lambda: {three_levels(): 1}, TypeError, "unhashable"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_an_error_that_says_why(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_rows_may_be_arrays():
    sequence = Sequence.from_lists([[[1, 2]], [[3, 4], [5, 6]]], levels=1)
    assert (sequence.lengths.tolist(), sequence.values.shape) == ([1, 2], (3, 2))
    assert Sequence.from_lists([np.array([1, 2]), np.array([], int)]).to_lists() == [[1, 2], []]
    assert Sequence.from_lists([]).to_lists() == []
    assert Sequence.from_lists([["a", "bc"], []]).values.tolist() == ["a", "bc"]


ROWS = np.array([1, -2, 3, 4])
OPERATIONS = [
    lambda x: x + 1, lambda x: 1 + x, lambda x: x - ROWS, lambda x: ROWS - x, lambda x: x * 2, lambda x: 2 / x,
    lambda x: x / 2, lambda x: x // 2, lambda x: 7 // x, lambda x: x % 3, lambda x: x**2, lambda x: 2.0**x,
    lambda x: x & 1, lambda x: 1 | x, lambda x: x ^ ROWS, lambda x: x << 1, lambda x: x >> 1, lambda x: -x,
    lambda x: +x, lambda x: ~x, lambda x: abs(x), lambda x: x == ROWS, lambda x: x != 1, lambda x: x < 2,
    lambda x: x <= 2, lambda x: x < 2, lambda x: x >= 2, lambda x: np.exp(x), lambda x: np.multiply(ROWS, x),
    lambda x: np.maximum(x, 0), lambda x: np.isfinite(x), lambda x: np.mod(x, 3), lambda x: np.power(x, 2),
]  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
def test_arithmetic_is_numpys_and_keeps_the_lod(operation):
    sequence = Sequence(ROWS.copy(), [[1, 1], [3, 1]])
    result = operation(sequence)
    assert isinstance(result, Sequence)
    assert result.lod is sequence.lod
    np.testing.assert_array_equal(result.values, operation(ROWS))


def test_rows_never_broadcast():
    with pytest.raises(LodError, match="rows do not broadcast"):
        Sequence([1], [1]) + np.arange(3)


@pytest.mark.parametrize(
    "of", [np.asarray, np.array, lambda one: np.asarray(one, "f4"), lambda one: np.stack([one])]
)
def test_an_array_of_a_sequence_would_lose_its_lengths(of):
    with pytest.raises(OpTypeError, match=r"lengths would be lost\n  pass sequence.values"):
        of(Sequence(np.arange(3), [1, 2]))


def test_a_sequence_can_be_pickled():
    again = pickle.loads(pickle.dumps(three_levels()))
    assert again.to_lists() == three_levels().to_lists()


def test_the_repr_shows_levels_and_first_rows():
    assert repr(three_levels()) == (
        "Sequence of 3 > 5 sequences, 5 rows, int64\n  [[1, 2], []]\n  []\n  [[3], [4, 5], []]"
    )
    long = repr(Sequence(np.arange(1000.0).reshape(500, 2), [20] * 25))
    assert "500 rows, float64[2]" in long
    assert "… 19 more" in long
    assert len(long) < 1500


def test_the_drawing_is_escaped_and_self_contained():
    html = Sequence.from_lists([["<b>", "&"], []])._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "<script" not in html
    assert "http" not in html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert html.count("<div") == html.count("</div>")


def test_unpack_gives_the_values_and_the_lengths_of_every_level_outermost_first():
    words = Sequence(np.arange(4), [[2, 0], [3, 1]])
    values, *lengths = words.unpack()
    assert values is words.values
    assert [level.tolist() for level in lengths] == [[2, 0], [3, 1]]


def test_an_operator_in_place_gives_a_new_sequence():
    before = sequence = Sequence(ROWS.copy(), [[1, 1], [3, 1]])
    sequence += 1
    assert sequence is not before
    assert (before.values.tolist(), sequence.values.tolist()) == (ROWS.tolist(), (ROWS + 1).tolist())


def test_what_is_no_operand_may_know_how_to_compute_with_a_sequence():
    class Other:
        def __radd__(self, other):
            return "of the other"

    assert three_levels() + Other() == "of the other"
    assert (three_levels() == "x") is False


ARRAYS = [
    np.array([2**53 + 1, -1]), np.array([2**63], np.uint64), np.array([3, 255], np.uint8), np.array([True, False]),
    np.array([0.5, np.inf], np.float16), np.array([0.1], np.float32), np.array([0.1, 1e300]), np.array([7], ">i4"),
    np.array(["9999-01-01", "NaT"], "M8[D]"), np.array([5], "M8[ns]"), np.array([5], "m8[us]"), np.array(["a", "bcd"]),
    np.array([b"a\0b"]), np.array([[1, 2], [3, 4]]), np.array([1], np.longdouble), np.empty(0), np.empty(0, np.int32),
    [2**53 + 1], [2**63], [0.5, 1], [True, 2], ["a"], [],
]  # fmt: skip


@pytest.mark.parametrize("one", ARRAYS, ids=repr)
def test_values_of_arrays_and_lists_are_kept_or_refused(one):
    kept = []
    for other in ARRAYS:
        try:
            sequence = Sequence.from_lists([one, other, one[:0]])
        except (OpError, LodError):
            continue
        kept.append(other)
        for before, found in zip((np.asarray(one), np.asarray(other)), sequence, strict=False):
            is_time = len(found) and before.dtype.kind in "mM"
            again = found.astype(before.dtype) if is_time else found  # in the unit that it had
            assert again.astype(object).tolist() == before.astype(object).tolist()
            assert not is_time or found.dtype.kind == before.dtype.kind
    assert any(other is one for other in kept)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "bool"]
)
@pytest.mark.parametrize("value", [0, 1, 2, -1, 300, 2**53 + 1, 2**63, 0.5, 70000.0, 1e39, np.inf, True])
def test_values_are_those_of_a_dtype_or_an_error(dtype, value):
    for items in ([value], np.array([value])):
        try:
            (found,) = Sequence.from_lists([items], dtype).values.tolist()
        except OpError as error:
            refused = error
        else:
            assert found == value or (isinstance(value, float) and found == np.dtype(dtype).type(value))
            continue
        assert f"from_lists: values[0] is {value}, which is not a value of {dtype}" in str(refused)


def test_texts_and_python_times_become_times_where_a_dtype_says_so():
    days = Sequence.from_lists([["2024-01-31", None], [date(1950, 1, 1)]], "M8[D]").values
    assert days.astype(object).tolist() == [date(2024, 1, 31), None, date(1950, 1, 1)]
    with pytest.raises(OpError, match=r"values\[0\] is .* not a value of datetime64\[s\]"):
        Sequence.from_lists([[datetime(2024, 1, 31, 0, 0, 0, 5)]], "M8[s]")


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([2**53 + 1, 0.5], "has 9007199254740993"),
        (["a", 1], "has 1, which becomes"),
        (["a", b"b"], "has b'b', which becomes"),
        ([np.datetime64("9999-01-01"), np.datetime64(5, "ns")], "has .*9999.* becomes"),
        ([np.ma.masked, 1], "is a masked array"),
    ],
)
def test_lists_that_numpy_would_give_another_dtype_are_refused(items, message):
    for make in (
        lambda: Sequence(items, [2]),
        lambda: Sequence.from_lists([items]),
        lambda: ops.gather(items, [0]),
    ):
        with pytest.raises(OpTypeError, match=message):
            make()
