"""PartialShape: the vocabulary of nGraph and OpenVINO, on immutable values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow.errors import ShapeError
from seqflow.shape import Dimension, PartialShape


def shape(text):
    return PartialShape.parse(text)


@st.composite
def dimensions(draw):
    low = draw(st.integers(0, 4))
    kind = draw(st.sampled_from(["static", "unknown", "named", "interval"]))
    if kind == "interval":
        return Dimension(low, draw(st.none() | st.integers(low, 6)))
    return {
        "static": Dimension(low), "unknown": Dimension.dynamic(), "named": Dimension.symbol("BH"[low % 2]),
    }[kind]  # fmt: skip


shapes = st.one_of(st.just(PartialShape.dynamic()), st.lists(dimensions(), max_size=3).map(PartialShape))
static_shapes = st.lists(st.integers(0, 3) | st.just(1), max_size=4)


def merged(*parts):
    """The merge of all, or None where two of them are provably different."""
    result = PartialShape.dynamic()
    try:
        for part in parts:
            if part is None:
                return None
            result = result.merge(part)
    except ShapeError:
        return None
    return result


# What a shape is


def test_a_shape_of_known_numbers_is_static():
    assert shape("{2,3,4}").rank == 3
    assert shape("{2,3,4}").is_static
    assert PartialShape([2, 3, 4]).to_shape() == (2, 3, 4)


def test_a_scalar_has_rank_0_and_is_static():
    scalar = PartialShape([])
    assert scalar.rank == 0
    assert scalar.is_static
    assert str(scalar) == "{}"
    assert scalar.to_shape() == ()
    assert scalar != PartialShape.dynamic()


def test_a_shape_may_have_unknown_dimensions():
    assert shape("{2,?,3}").rank == 3
    assert shape("{2,?,3}").is_dynamic
    assert PartialShape.dynamic(2) == shape("{?,?}")


def test_a_shape_may_have_unknown_rank():
    assert PartialShape.dynamic().rank.is_dynamic
    assert PartialShape.dynamic().is_dynamic
    assert PartialShape.dynamic(Dimension.dynamic()) == PartialShape.dynamic()


def test_to_shape_refuses_what_is_dynamic():
    for text in ("?", "{2,?}"):
        with pytest.raises(ShapeError, match="is dynamic, expected a static shape"):
            shape(text).to_shape()


def test_all_dimensions_are_non_negative():
    assert PartialShape.dynamic().all_non_negative
    assert shape("{2,?}").all_non_negative
    with pytest.raises(ShapeError, match="-1 is not a size, expected 0 or more"):
        PartialShape([2, -1])


def test_a_shape_cannot_be_changed():
    with pytest.raises(AttributeError):
        shape("{2}").dimensions = ()


def test_a_shape_is_a_sequence_of_dimensions():
    size, unknown, named = a = shape("{2,?,B}")
    assert (size, unknown, named) == (2, Dimension.dynamic(), Dimension.symbol("B"))
    assert len(a) == 3
    assert a[0] == a[-3] == 2
    assert a[1:] == shape("{?,B}")
    assert np.zeros(shape("{2,3}")).shape == (2, 3)


def test_a_missing_dimension_is_an_error():
    with pytest.raises(ShapeError, match=r"\{2,\?\} has no dimension 2, expected one of its 2"):
        shape("{2,?}")[2]
    for use in (len, list, lambda unknown: unknown[0]):
        with pytest.raises(ShapeError, match="its rank is dynamic"):
            use(PartialShape.dynamic())


def test_the_smallest_and_the_largest_shape():
    assert shape("{2,?,3..5}").min_shape == (2, 0, 3)
    assert shape("{2,?,3..5}").max_shape == (2, None, 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "1"),
        ("{2,3}", "6"),
        ("{0,?}", "0"),
        ("{?,0}", "0"),
        ("{2,?}", "?"),
        ("{3,B}", "3*B"),
        ("?", "?"),
    ],
)
def test_the_number_of_elements(text, expected):
    assert str(shape(text).num_elements) == expected


def test_a_huge_shape_with_a_zero_has_no_elements():
    assert PartialShape([2**62, 2**62, 0]).num_elements == 0


def test_unnamed_dimensions_can_be_named():
    assert str(shape("{3,B,?,2..5}").named("x")) == "{3,B,x.shape[2],x.shape[3]:2..5}"
    assert PartialShape.dynamic().named("x") == PartialShape.dynamic()


# Merge: the nine of nGraph, those of TensorFlow


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("?", "?", "?"),
        ("?", "{?,?}", "{?,?}"),
        ("{?,?}", "{?,?}", "{?,?}"),
        ("{1,2,3,4}", "?", "{1,2,3,4}"),
        ("{1,2}", "{1,?}", "{1,2}"),
        ("{1,2,?,?}", "{1,?,3,?}", "{1,2,3,?}"),
        ("{1,2,3}", "{1,2,3}", "{1,2,3}"),
        ("{2,?}", "{?,2}", "{2,2}"),
        ("{2,?}", "{?,5}", "{2,5}"),
        ("{}", "?", "{}"),
        ("{B,?}", "{?,2..5}", "{B,2..5}"),
    ],
)
def test_merge(left, right, expected):
    assert str(shape(left).merge(shape(right))) == expected
    assert str(shape(right).merge(shape(left))) == expected


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("{1,?}", "{2,?}", "merge: dimension 0 is 1 in {1,?} but 2 in {2,?}"),
        ("{2,2}", "{1,2}", "merge: dimension 0 is 2 in {2,2} but 1 in {1,2}"),
        ("{?,?}", "{?,?,?}", "merge: {?,?} has rank 2 but {?,?,?} has rank 3"),
        ("{B}", "{B+1}", "merge: dimension 0 is B in {B} but B+1 in {B+1}"),
    ],
)
def test_a_merge_that_cannot_be_names_the_place(left, right, message):
    with pytest.raises(ShapeError) as error:
        shape(left).merge(shape(right))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("{2,?}", "{?,2}", "{?,?}"),
        ("{2,2}", "{3,2}", "{2..3,2}"),
        ("{2,2}", "{1,2,3}", "?"),
        ("?", "{2}", "?"),
        ("{2,?}", "{2,?}", "{2,?}"),
        ("{B}", "{B}", "{B}"),
        ("{}", "{1}", "?"),
    ],
)
def test_relax(left, right, expected):
    assert str(shape(left).relax(shape(right))) == expected
    assert str(shape(right).relax(shape(left))) == expected


def test_what_relax_forgets_does_not_come_back():
    assert shape("{2}").relax("{3}").merge("{?}") == shape("{2..3}")


def test_merge_rank():
    assert PartialShape.dynamic().merge_rank(2) == shape("{?,?}")
    assert PartialShape.dynamic().merge_rank(Dimension.dynamic()) == PartialShape.dynamic()
    assert shape("{2,3}").merge_rank(2) == shape("{2,3}")
    assert shape("{2,3}").merge_rank(Dimension.dynamic()) == shape("{2,3}")
    with pytest.raises(ShapeError, match=r"\{2,3\} has rank 2, expected 3"):
        shape("{2,3}").merge_rank(3)


# Comparing


def test_compatible_shapes_can_be_the_same():
    assert PartialShape.dynamic().compatible("{1,2}")
    assert shape("{1,?}").compatible("{?,2}")
    assert not shape("{1,?}").compatible("{2,?}")
    assert not shape("{1}").compatible("{1,2}")
    assert not shape("{1..5}").compatible("{6..7}")
    assert not shape("{B}").compatible("{B+1}")


def test_the_same_scheme_has_known_numbers_in_the_same_places():
    assert PartialShape.dynamic().same_scheme("?")
    assert shape("{1,?}").same_scheme("{1,2..5}")
    assert not shape("{1,?}").same_scheme("{1,2}")
    assert not shape("{1,?}").same_scheme("?")
    assert not shape("{?}").same_scheme("{?,?}")


def test_relaxes_and_refines_are_each_others_mirror():
    assert PartialShape.dynamic().relaxes("{1,2}")
    assert shape("{1,2}").refines("?")
    assert shape("{?,2}").relaxes("{1,2}")
    assert not shape("{1,2}").relaxes("{?,2}")
    assert not shape("{1,2}").relaxes("?")
    assert not shape("{?}").relaxes("{1,2}")
    assert shape("{1..9}").relaxes("{2..3}")


# Sums and broadcasting


def test_shapes_add_dimension_by_dimension():
    assert shape("{2,?}") + shape("{3,4}") == shape("{5,4..}")
    assert PartialShape.dynamic() + shape("{3}") == PartialShape.dynamic()
    with pytest.raises(ShapeError, match="rank 1 but"):
        shape("{2}") + shape("{3,4}")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("{8,1,6,1}", "{7,1,5}", "{8,7,6,5}"),
        ("{}", "?", "?"),
        ("{}", "{2,?}", "{2,?}"),
        ("{?}", "{0}", "{0}"),
        ("{?}", "{1}", "{?}"),
        ("{?}", "{7}", "{7}"),
        ("{B}", "{1}", "{B}"),
        ("{B}", "{7}", "{7}"),
        ("{B,4}", "{B,1}", "{B,4}"),
        ("{B}", "{H}", "{?}"),
        ("?", "{2,3}", "?"),
    ],
)
def test_broadcasting_as_numpy_does(left, right, expected):
    assert str(shape(left).broadcast_merge(right)) == expected
    assert str(shape(right).broadcast_merge(left)) == expected


def test_broadcasting_names_the_dimension_that_does_not_fit():
    with pytest.raises(ShapeError, match=r"dimension 1 is 0 in \{2,0\} but 2 in \{2,2\}"):
        shape("{2,0}").broadcast_merge("{2,2}")


@pytest.mark.parametrize(
    ("left", "right", "axis", "expected"),
    [
        ("{2,?,4}", "{3}", 1, "{2,3,4}"),
        ("{2,3,4}", "{3}", 1, "{2,3,4}"),
        ("{2,3,4}", "{3,4}", -1, "{2,3,4}"),
        ("{2,3,4}", "{1,4}", -1, "{2,3,4}"),
        ("{2,3}", "{3,1}", 1, "{2,3}"),
        ("{2,?}", "{2}", 0, "{2,?}"),
        ("{2,3}", "?", 0, "{2,3}"),
        ("{2,?}", "{?,?}", 0, "{2,?}"),
        ("?", "{2,3}", 0, "?"),
    ],
)
def test_broadcasting_into_a_shape_that_never_grows(left, right, axis, expected):
    assert str(shape(left).broadcast_merge(right, "pdpd", axis)) == expected


@pytest.mark.parametrize(
    ("left", "right", "axis", "message"),
    [
        ("{2,1,4}", "{3}", 1, "dimension 1 is 1 in {2,1,4} but 3 in {3}"),
        ("{2}", "{2,3}", -1, "{2,3} from axis -1 on does not fit into {2}"),
        ("{2,3}", "{2,3}", 1, "{2,3} from axis 1 on does not fit into {2,3}"),
        ("{2,3}", "{3}", -2, "axis is -2, expected -1 or more"),
    ],
)
def test_what_would_make_the_shape_grow_is_refused(left, right, axis, message):
    with pytest.raises(ShapeError) as error:
        shape(left).broadcast_merge(right, "pdpd", axis)
    assert message in str(error.value)


def test_broadcasting_none_changes_and_checks_nothing():
    assert shape("{2}").broadcast_merge("{3}", "none") == shape("{2}")


def test_an_unknown_way_of_broadcasting_is_refused():
    with pytest.raises(ShapeError, match="expected 'numpy', 'pdpd' or 'none'"):
        shape("{2}").broadcast_merge("{2}", "onnx")


# Laws


@given(static_shapes, static_shapes)
def test_static_broadcasting_agrees_with_numpy(left, right):
    a, b = PartialShape(left), PartialShape(right)
    try:
        expected = np.broadcast_shapes(tuple(left), tuple(right))
    except ValueError:
        with pytest.raises(ShapeError):
            a.broadcast_merge(b)
    else:
        assert a.broadcast_merge(b).to_shape() == expected


@given(shapes, static_shapes, shapes, static_shapes)
def test_broadcasting_allows_what_any_refinement_gives(a, small_a, b, small_b):
    left, right = PartialShape(small_a), PartialShape(small_b)
    try:
        result = left.broadcast_merge(right)
    except ShapeError:
        return
    assert left.relax(a).broadcast_merge(right.relax(b)).relaxes(result)


@given(shapes, shapes)
def test_merge_is_commutative(a, b):
    assert merged(a, b) == merged(b, a)


@given(shapes, shapes, shapes)
def test_merge_is_associative(a, b, c):
    assert merged(a, merged(b, c)) == merged(merged(a, b), c)


@given(shapes)
def test_merge_is_idempotent(a):
    assert a.merge(a) == a


@given(shapes, shapes)
def test_merge_refines_both(a, b):
    both = merged(a, b)
    assert both is None or (both.refines(a) and both.refines(b))


@given(shapes, shapes, shapes)
def test_relax_is_the_least_upper_bound(a, b, c):
    either = a.relax(b)
    assert either == b.relax(a)
    assert either.relaxes(a)
    assert either.relaxes(b)
    if c.relaxes(a) and c.relaxes(b):
        assert c.relaxes(either)


@given(shapes)
def test_parse_and_str_are_inverses(a):
    assert PartialShape.parse(str(a)) == a


# Text


@pytest.mark.parametrize(
    "text", ["?", "{}", "{1,?,2,3}", "{2,3,4}", "{1,?,2..5,7..}", "{sum(lengths),4*H,B+1}"]
)
def test_canonical_text_survives(text):
    assert str(shape(text)) == text


def test_blanks_are_allowed_in_text():
    assert shape(" { 1 , ? } ") == shape("{1,?}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: found the end, expected '{'"),
        ("3", "column 1: found '3', expected '{'"),
        ("{1,-2}", "column 4: found '-'"),
        ("{1,3..2}", "column 4: found '3..2', expected the lower bound first"),
        ("{1,2", "column 1: this bracket is never closed, expected '}'"),
        ("{1 2}", "column 4: found '2', expected ',' or '}'"),
        ("{1,}", "column 4: found '}'"),
        ("{1}x", "column 4: found 'x', expected the end"),
        ("??", "column 2: found '?', expected the end"),
    ],
)
def test_malformed_text_is_an_error_with_a_column(text, message):
    with pytest.raises(ShapeError) as error:
        PartialShape.parse(text)
    assert message in str(error.value)


def test_text_is_not_taken_for_a_list_of_dimensions():
    with pytest.raises(ShapeError, match=r"PartialShape\.parse"):
        PartialShape("123")


@pytest.mark.parametrize(
    "text",
    ["(" * 500 + "B" + ")" * 500, "max(B, " * 500 + "1" + ")" * 500, "9" * 5000, "x.shape[" + "1" * 5000 + "]", "B" + " " * 20_000 + "B" + " " * 20_000],
    ids=["brackets", "calls", "digits", "axis", "blanks"],
)  # fmt: skip
def test_texts_beyond_all_reason_are_refused_at_once(text):
    with pytest.raises(ShapeError):
        Dimension.parse(text)
