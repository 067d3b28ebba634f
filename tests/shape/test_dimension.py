"""Dimensions: bounds, names, arithmetic, and what can be proved of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow.errors import ShapeError
from seqflow.shape import Comparison, Dimension, PartialShape, Rank

UNKNOWN = Dimension.dynamic()
LARGEST = 2**63 - 1


def dim(text):
    return Dimension.parse(text)


@st.composite
def anonymous(draw):
    low = draw(st.integers(0, 12))
    return Dimension(low, draw(st.none() | st.integers(low, 14)))


sizes = st.integers(0, 6).map(Dimension)
symbols = st.builds(
    lambda make, name: make(name),
    st.sampled_from([Dimension.symbol, Dimension.sum_of, Dimension.max_of, Dimension.len_of]),
    st.sampled_from(["B", "H", "doc.lengths"]),
)
plain = st.one_of(sizes, anonymous(), symbols, st.just(UNKNOWN))


def combined(children):
    def attempt(operation, left, right):
        try:
            return operation(left, right)
        except ShapeError:
            return left

    operations = [
        Dimension.__add__, Dimension.__sub__, Dimension.__mul__, Dimension.__floordiv__,
        Dimension.divide_exactly, Dimension.minimum, Dimension.maximum, Dimension.merge, Dimension.relax,
        Dimension.broadcast_merge,
    ]  # fmt: skip
    return st.builds(attempt, st.sampled_from(operations), children, children)


dimensions = st.recursive(plain, combined, max_leaves=5)


def merged(*parts):
    """The merge of all, or None where two of them are provably different."""
    result = UNKNOWN
    try:
        for part in parts:
            result = result.merge(part)
    except ShapeError:
        return None
    return result


# What a dimension is


def test_a_static_dimension_is_one_number():
    assert Dimension(3).is_static
    assert Dimension(3).get_length() == int(Dimension(3)) == 3
    assert (Dimension(3).min_length, Dimension(3).max_length) == (3, 3)
    assert Dimension(3, 3) == Dimension(3) == 3
    assert hash(Dimension(3)) == hash(3)


def test_a_dynamic_dimension_has_bounds_at_most():
    assert UNKNOWN.is_dynamic
    assert Dimension() == UNKNOWN
    assert (UNKNOWN.min_length, UNKNOWN.max_length) == (0, None)
    assert (Dimension(7, None).min_length, Dimension(7, None).max_length) == (7, None)


def test_a_rank_is_a_dimension():
    assert Rank is Dimension


def test_a_dynamic_dimension_is_no_int():
    for dynamic in (UNKNOWN, Dimension(2, 5), Dimension.symbol("B")):
        with pytest.raises(ValueError, match="is dynamic, expected a static size"):
            int(dynamic)


def test_a_dimension_has_no_truth():
    with pytest.raises(ShapeError, match="compare"):
        bool(Dimension(3))


@pytest.mark.parametrize("value", [-1, LARGEST + 1, 1.5, True, None])
def test_what_is_no_size_is_refused(value):
    with pytest.raises(ShapeError, match="is not a size"):
        Dimension(value)


def test_an_empty_range_is_refused():
    with pytest.raises(ShapeError, match=r"7\.\.2 is empty"):
        Dimension(7, 2)


def test_a_dimension_cannot_be_changed():
    with pytest.raises(AttributeError):
        Dimension(3).min_length = 4


def test_what_is_no_name_is_refused():
    for name in ("", "2a", "a-b", "a b", "?", "a.", "sum(x)"):
        with pytest.raises(ShapeError, match="is not a name"):
            Dimension.symbol(name)


def test_a_tensor_may_have_any_name():
    for name in ("doc.values", "länge", "%1", "my column.lengths", "a-b", "2"):
        total = Dimension.sum_of(name)
        assert Dimension.parse(str(total)) == total
        (size,) = PartialShape.parse("{?}").named(name)
        assert Dimension.parse(str(size)) == size
        assert (size + total).compare(total + size) is Comparison.EQUAL
    assert str(Dimension.max_of("my column")) == "max(`my column`)"


# Arithmetic, with the examples of nGraph, OpenVINO and TensorFlow


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        ("?", "+", "3", "3.."),
        ("?", "+", "4", "4.."),
        ("2", "+", "3", "5"),
        ("3", "+", "0", "3"),
        ("?", "+", "0", "?"),
        ("?", "-", "3", "?"),
        ("6", "-", "?", "0..6"),
        ("7", "-", "3", "4"),
        ("0", "*", "?", "0"),
        ("?", "*", "0", "0"),
        ("0", "*", "sum(lengths)", "0"),
        ("?", "*", "2", "?"),
        ("3", "*", "4", "12"),
        ("?", "*", "1", "?"),
        ("7..10", "+", "1..5", "8..15"),
        ("7..10", "-", "1..5", "2..9"),
        ("7..10", "*", "1..5", "7..50"),
        ("23", "//", "3", "7"),
        ("?", "//", "2", "?"),
        ("2..", "//", "2", "1.."),
        ("5..9", "//", "2", "2..4"),
        ("B", "+", "1", "B+1"),
        ("4", "*", "H", "4*H"),
        ("B", "+", "B", "2*B"),
        ("B+1", "-", "B", "1"),
        ("B", "-", "B", "0"),
        ("B", "*", "H", "B*H"),
        ("B+1", "*", "B+1", "2*B+B*B+1"),
        ("4*H+8", "//", "4", "H+2"),
        ("sum(lengths)", "+", "max(lengths)", "max(lengths)+sum(lengths)"),
        ("B", "+", "?", "?"),
        ("B", "*", "2..3", "?"),
    ],
)
def test_arithmetic_keeps_what_is_known(left, operator, right, expected):
    operation = {
        "+": Dimension.__add__, "-": Dimension.__sub__, "*": Dimension.__mul__, "//": Dimension.__floordiv__,
    }[operator]  # fmt: skip
    assert str(operation(dim(left), dim(right))) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("12", "4", "3"),
        ("0", "B", "0"),
        ("8*B", "8", "B"),
        ("6*B+4", "2", "3*B+2"),
        ("B", "2", "B/2"),
        ("3*B*H", "B", "3*H"),
        ("B", "B", "1"),
        ("5..9", "2", "3..4"),
        ("?", "4", "?"),
        ("12", "?", "1..12"),
    ],
)
def test_exact_division_leaves_nothing(left, right, expected):
    assert str(dim(left).divide_exactly(dim(right))) == expected


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda: Dimension(3) - 7, "3 - 7 is negative"),
        (lambda: dim("0..2") - 7, "0..2 - 7 is negative"),
        (lambda: dim("B") - dim("B+1"), "B - B+1 is negative"),
        (lambda: Dimension(7).divide_exactly(4), "7 / 4 leaves a remainder"),
        (lambda: Dimension(23).divide_exactly(3), "23 / 3 leaves a remainder"),
        (lambda: dim("5..7").divide_exactly(4) * 0 + dim("5..7").divide_exactly(8), "leaves a remainder"),
        (lambda: dim("4*B+1").divide_exactly(2), "4*B+1 / 2 leaves a remainder"),
        (lambda: Dimension(7) // 0, "the divisor is zero"),
        (lambda: UNKNOWN.divide_exactly(0), "the divisor is zero"),
        (lambda: Dimension(LARGEST) + 1, "above 9223372036854775807, the largest int64"),
        (lambda: Dimension(2**62) * 2, "above 9223372036854775807, the largest int64"),
    ],
)
def test_arithmetic_refuses_what_cannot_be(compute, message):
    with pytest.raises(ShapeError) as error:
        compute()
    assert message in str(error.value)


def test_bounds_saturate():
    assert Dimension(2**62, 2**62 + 1) * 4 == Dimension(LARGEST, None)
    assert Dimension(0, 2**62) * 4 == UNKNOWN
    assert Dimension(5, LARGEST) + 6 == Dimension(11, None)


def test_neutral_operands_return_the_dimension_itself():
    for one in (UNKNOWN, dim("B"), dim("3")):
        for same in (one + 0, 0 + one, one - 0, one * 1, 1 * one, one // 1, one.divide_exactly(1)):
            assert same is one


def test_the_smaller_and_the_larger():
    assert UNKNOWN.minimum(0) == 0
    assert UNKNOWN.minimum(3) == Dimension(0, 3)
    assert UNKNOWN.maximum(3) == Dimension(3, None)
    assert dim("B").minimum(dim("B+2")) == dim("B")
    assert dim("B+N").minimum(dim("B")) == dim("B")  # N may be 0
    assert dim("B+N").maximum(dim("B")) == dim("B+N")
    assert dim("B").maximum(dim("B+2")) == dim("B+2")
    assert dim("B").maximum(3).compare(Dimension(3).maximum(dim("B"))) is Comparison.EQUAL


def test_a_long_form_keeps_its_bounds_only():
    total = Dimension(5)
    for k in range(30):
        total += Dimension.symbol(f"n{k}")
    assert str(total) == "5.."


# Equality


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        ("3", "3", "EQUAL"),
        ("3", "4", "UNEQUAL"),
        ("?", "3", "UNKNOWN"),
        ("?", "?", "UNKNOWN"),
        ("B", "B", "EQUAL"),
        ("B", "H", "UNKNOWN"),
        ("B", "B+1", "UNEQUAL"),
        ("B+H+1", "B", "UNEQUAL"),
        ("B:2..5", "B", "EQUAL"),
        ("1..5", "6..7", "UNEQUAL"),
        ("2*B", "7", "UNEQUAL"),
        ("4*H", "2*B+1", "UNEQUAL"),
        ("(a+1)*(a-1)", "a*a-1", "EQUAL"),
        ("a//2*2", "a", "UNKNOWN"),
        ("sum(lengths)", "max(lengths)", "UNKNOWN"),
        ("sum(x)", "sum(y)", "UNKNOWN"),
    ],
)
def test_equality_has_three_answers(left, right, answer):
    assert dim(left).compare(dim(right)) is Comparison[answer]
    assert dim(right).compare(dim(left)) is Comparison[answer]


def test_the_equals_sign_is_structural():
    assert Dimension.dynamic() == UNKNOWN
    assert UNKNOWN.compare(UNKNOWN) is Comparison.UNKNOWN
    assert dim("B:2..5") != dim("B")
    assert Dimension(3) != "3"


def test_the_same_scheme_is_both_dynamic_or_the_same_number():
    assert UNKNOWN.same_scheme(Dimension(1, 5))
    assert Dimension(1, 5).same_scheme(Dimension(6, 7))
    assert Dimension(3).same_scheme(3)
    assert not Dimension(3).same_scheme(4)
    assert not Dimension(3).same_scheme(UNKNOWN)


def test_relaxes_and_refines_speak_of_bounds():
    assert UNKNOWN.relaxes(3)
    assert Dimension(3).refines(UNKNOWN)
    assert not Dimension(3).relaxes(UNKNOWN)
    assert Dimension(1, 9).relaxes(Dimension(2, 5))
    assert not Dimension(2, 5).relaxes(Dimension(1, 9))
    assert Dimension(3).relaxes(3)
    assert Dimension(3).refines(3)


# Merge, relax, broadcast


def test_the_four_rules_of_merge():
    assert UNKNOWN.merge(UNKNOWN) == UNKNOWN
    assert UNKNOWN.merge(3) == Dimension(3).merge(UNKNOWN) == 3
    assert Dimension(3).merge(3) == 3
    with pytest.raises(ShapeError, match="3 and 4 are different sizes"):
        Dimension(3).merge(4)


def test_merge_keeps_the_name_and_the_tighter_bounds():
    assert str(dim("B").merge(Dimension(2, 5))) == "B:2..5"
    assert str(dim("B:3..9").merge(Dimension(2, 5))) == "B:3..5"
    assert dim("B").merge(5) == 5
    assert dim("B").within(0, 64).max_length == 64


def test_relax_keeps_the_name_only_of_the_same_size():
    assert dim("B").relax(dim("B")) == dim("B")
    assert dim("B:1..2").relax(dim("B:4..5")) == dim("B:1..5")
    assert dim("B").relax(dim("H")) == UNKNOWN
    assert Dimension(2).relax(3) == Dimension(2, 3)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("1..12", "10..15", "10..15"),
        ("7..12", "10..15", "10..12"),
        ("0..12", "1..15", "0..15"),
        ("?", "0", "0"),
        ("?", "1", "?"),
        ("?", "7", "7"),
        ("?", "?", "?"),
        ("1", "1", "1"),
        ("B", "1", "B"),
        ("B", "B", "B"),
        ("B", "7", "7"),
        ("B", "?", "?"),
        ("B", "H", "?"),
        ("B:2..", "?", "B:2.."),
    ],
)
def test_broadcasting_one_dimension(left, right, expected):
    assert str(dim(left).broadcast_merge(dim(right))) == expected
    assert str(dim(right).broadcast_merge(dim(left))) == expected


def test_zero_does_not_broadcast_with_two():
    with pytest.raises(ShapeError):
        Dimension(0).broadcast_merge(2)


# Laws


@given(plain, plain)
def test_merge_is_commutative(a, b):
    assert merged(a, b) == merged(b, a)


@given(plain, plain, plain)
def test_merge_is_associative(a, b, c):
    left, right = merged(b, c), merged(a, b)
    assert (merged(a, left) if left is not None else None) == (
        merged(right, c) if right is not None else None
    )


@given(dimensions)
def test_merge_is_idempotent(a):
    assert a.merge(a) == a


@given(dimensions, dimensions)
def test_merge_refines_both(a, b):
    both = merged(a, b)
    assert both is None or (both.refines(a) and both.refines(b))


@given(dimensions, dimensions, dimensions)
def test_relax_is_the_least_upper_bound(a, b, c):
    either = a.relax(b)
    assert either == b.relax(a)
    assert either.relaxes(a)
    assert either.relaxes(b)
    if c.relaxes(a) and c.relaxes(b):
        assert c.relaxes(either)


@given(dimensions)
def test_parse_and_str_are_inverses(a):
    assert Dimension.parse(str(a)) == a
    assert str(Dimension.parse(str(a))) == str(a)


def in_bounds(dimension, size):
    return dimension.may_be(size)


def values(dimension):
    """Some of the sizes a dimension without a name can have."""
    top = dimension.max_length if dimension.max_length is not None else dimension.min_length + 5
    return range(dimension.min_length, top + 1)


@given(sizes | anonymous(), sizes | anonymous())
def test_bounds_hold_for_every_pair_of_sizes(a, b):
    for x in values(a):
        for y in values(b):
            assert in_bounds(a + b, x + y)
            assert in_bounds(a * b, x * y)
            assert in_bounds(a.minimum(b), min(x, y))
            assert in_bounds(a.maximum(b), max(x, y))
            if x >= y:
                assert in_bounds(a - b, x - y)
            if y:
                assert in_bounds(a // b, x // y)
            if y and x % y == 0:
                assert in_bounds(a.divide_exactly(b), x // y)


# Text


@pytest.mark.parametrize(
    "text",
    [
        "3",
        "?",
        "2..5",
        "7..",
        "B",
        "4*H",
        "B+1",
        "sum(lengths)",
        "max(lengths)",
        "len(x)",
        "B:2..5",
        "3-B",
        "x.shape[1]",
        "sum(doc.values.lengths)-1",
        "(B+1)/2",
        "2*(B//3)",
        "max(3,B)",
        "B/(H+1)",
        "B+3-H",
    ],
)
def test_canonical_text_survives(text):
    assert str(dim(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: found the end"),
        ("-1", "column 1: found '-'"),
        ("-3", "column 1: found '-'"),
        ("2..1", "column 1: found '2..1', expected the lower bound first"),
        ("3 3", "column 3: found '3', expected the end"),
        ("B$", "column 2: found '$'"),
        ("a-", "column 3: found the end"),
        ("2a", "column 2: found 'a', expected the end"),
        ("2-3", "column 2: found '-', expected sizes this works on: dimension: 2 - 3 is negative"),
        ("7/4", "leaves a remainder"),
        ("(B", "column 1: this bracket is never closed, expected ')'"),
        ("count(x)", "column 1: found 'count', expected 'sum' or 'max' or 'len' or 'min'"),
        ("B+1:0..0", "column 5: found '0', expected a range that B+1 can lie in"),
        ("9223372036854775808", "expected at most 9223372036854775807"),
    ],
)
def test_malformed_text_is_an_error_with_a_column(text, message):
    with pytest.raises(ShapeError) as error:
        Dimension.parse(text)
    assert message in str(error.value)
    assert str(error.value).endswith("^")
