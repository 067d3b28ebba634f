"""The type that holds the values of several types: decided over the set, the same in any order, or two of them named."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unified_kinds import RECORDED, named, recorded_kinds

from seqflow.record.unified_types import UnlikeTypes, unified_field, unified_type

KINDS = recorded_kinds()


def unified(*kinds):
    try:
        return unified_type(kinds)
    except UnlikeTypes:
        return None


def without_order(kind):
    """The type with the fields of structs by name, as text."""
    if pa.types.is_struct(kind):
        return sorted((child.name, without_order(child.type), child.nullable) for child in kind)
    if pa.types.is_nested(kind):
        children = [without_order(kind.field(at).type) for at in range(kind.num_fields)]
        return str(kind).partition("<")[0], children
    return named(kind)


def test_all_recorded_pairs_are_here():
    assert len(RECORDED["results"]) + sum(map(len, RECORDED["errors"].values())) == 2439


def test_recorded_pairs_unify_to_the_recorded_type_in_both_orders():
    for one, other, result, *_ in RECORDED["results"]:
        assert named(unified(KINDS[one], KINDS[other])) == result
        assert without_order(unified(KINDS[other], KINDS[one])) == without_order(
            unified(KINDS[one], KINDS[other])
        )


@pytest.mark.parametrize("one", list(map(int, RECORDED["errors"])), ids=lambda one: named(KINDS[one]))
def test_pairs_recorded_as_unlike_are_refused_in_both_orders(one):
    for other in RECORDED["errors"][str(one)]:
        for pair in ((KINDS[one], KINDS[other]), (KINDS[other], KINDS[one])):
            with pytest.raises(UnlikeTypes) as refused:
                unified_type(pair)
            assert (refused.value.one, refused.value.other) == (0, 1)
            assert refused.value.reason


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_a_type_alone_and_with_itself_and_nulls_stays(kind):
    assert unified_type([kind]) is kind
    assert unified_type([kind, pa.null(), kind]) == kind


def nested(kinds):
    """Types around unified ones: in lists, fields of two names, and values of maps."""
    return st.one_of(
        st.builds(pa.list_, kinds),
        st.builds(pa.large_list, kinds),
        st.builds(lambda one: pa.struct({"a": one}), kinds),
        st.builds(lambda one, other: pa.struct({"b": one, "a": other}), kinds, kinds),
        st.builds(lambda one: pa.map_(pa.string(), one), kinds),
    )


# few leaves, so that many sets unify
LEAVES = st.sampled_from(
    [pa.null(), pa.int8(), pa.uint16(), pa.int32(), pa.decimal128(10, 2), pa.string(), pa.large_string()]
)


@given(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=4)
    | st.lists(st.recursive(LEAVES, nested, max_leaves=4), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
def test_a_set_unifies_if_each_two_do_and_in_any_order(kinds, random):
    found = unified(*kinds)
    pairs = [(one, other) for one in kinds for other in kinds]
    assert (found is None) == any(unified(*pair) is None for pair in pairs)
    shuffled = random.sample(kinds, len(kinds))
    if found is None:
        with pytest.raises(UnlikeTypes) as refused:
            unified_type(shuffled)
        assert unified(shuffled[refused.value.one], shuffled[refused.value.other]) is None
    else:
        assert without_order(unified(*shuffled)) == without_order(found)
        assert all(unified(found, kind) == found for kind in kinds)


@pytest.mark.parametrize(
    ("one", "other", "reason", "advice"),
    [
        (pa.int8(), pa.float32(), "integers do not become floats", "float64"),
        (pa.list_(pa.int8()), pa.list_(pa.float16()), "integers do not become floats", "list<float64>"),
        (pa.struct({"n": pa.int8()}), pa.struct({"n": pa.float64(), "t": pa.string()}), "integers do not become floats", "struct<n: float64, t: string>"),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.float32()), "integers do not become floats", "map<string, float64>"),
        (pa.bool_(), pa.int8(), "true is not a number", "int64"),
        (pa.bool8(), pa.int8(), "true is not a number", "int64"),
        (pa.bool8(), pa.bool_(), "true is not a number", ""),
        (pa.uint64(), pa.int8(), "no integer type holds uint64 and negative numbers", "int64"),
        (pa.date32(), pa.timestamp("us"), "a day is not an instant", "timestamp[us]"),
        (pa.date64(), pa.timestamp("ns", "UTC"), "a day is not an instant", "timestamp[ns, tz=UTC]"),
        (pa.timestamp("us"), pa.timestamp("ms", "UTC"), "one has a zone, the other is local time", "timestamp[us, tz=UTC]"),
        (pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("ms", "UTC"), "zones differ", "timestamp[us, tz=UTC]"),
        (pa.list_(pa.int8()), pa.list_(pa.int32(), 2), "one has a fixed size, which is an axis of the tensor", "list<int32>"),
        (pa.large_list(pa.int8()), pa.list_(pa.float32(), 2), "one has a fixed size, which is an axis of the tensor", "large_list<float64>"),
        (pa.list_(pa.int8(), 2), pa.list_(pa.int8(), 3), "sizes differ, and with them an axis of the tensors", "list<int8>"),
        (pa.string(), pa.large_binary(), "bytes need not be text", "large_string"),
        (pa.dictionary(pa.int8(), pa.string()), pa.binary(), "bytes need not be text", "large_string"),
        (pa.uuid(), pa.binary(), "one has a fixed size, which is an axis of the tensor", "large_binary"),
        (pa.binary(2), pa.binary(3), "sizes differ", "large_binary"),
        (pa.decimal128(38, 0), pa.decimal256(76, 70), "38 digits before the point and 70 after it are more than 76", ""),
        (pa.decimal128(38, 0), pa.float64(), "a float is not a decimal", ""),
        (pa.string(), pa.int64(), "a number is not a text", ""),
        (pa.struct({"a": pa.int8()}), pa.map_(pa.string(), pa.int8()), "map and struct differ in meaning", ""),
        (pa.struct([("a", pa.int8()), ("a", pa.int8())]), pa.struct({"b": pa.int8()}), "a struct has two fields of one name", ""),
        (pa.uuid(), pa.json_(), "extension types differ in meaning", ""),
        (pa.fixed_shape_tensor(pa.int8(), [2]), pa.list_(pa.int8(), 2), "a tensor of fixed shape goes with tensors of the same shape only", ""),
    ],
    ids=str,
)  # fmt: skip
def test_types_that_do_not_unify_say_why_and_what_to_declare(one, other, reason, advice):
    for kinds in ([one, pa.null(), other], [other, one, one]):
        with pytest.raises(UnlikeTypes) as refused:
            unified_type(kinds)
        assert (refused.value.reason, refused.value.advice) == (reason, advice)
        assert {kinds[refused.value.one], kinds[refused.value.other]} == {one, other}


def test_the_first_two_that_do_not_unify_are_named():
    with pytest.raises(UnlikeTypes) as refused:
        unified_type([pa.int8(), pa.int8(), pa.int16(), pa.decimal128(5, 2), pa.string(), pa.binary()])
    assert (refused.value.one, refused.value.other) == (0, 4)


def test_names_of_list_items_make_no_difference():
    kinds = [pa.list_(pa.field(name, pa.int32())) for name in ("item", "element", "l")]
    assert unified_type(kinds) is kinds[0]
    kinds.append(pa.list_(pa.field("element", pa.int64())))
    assert str(unified_type(kinds)) == "list<item: int64>"


def test_no_types_are_null():
    assert unified_type([]) == pa.null()


def test_a_field_is_nullable_if_one_is_or_if_it_is_missing():
    small, large = (pa.field("a", kind, nullable=False) for kind in (pa.int8(), pa.int64()))
    assert unified_field("b", [small, large]) == pa.field("b", pa.int64(), nullable=False)
    assert unified_field("b", [small, large.with_nullable(True)]) == pa.field("b", pa.int64())
    assert unified_field("b", [None, small]) == pa.field("b", pa.int8())
    assert unified_field("b", [None]) == pa.field("b", pa.null())


def test_a_field_has_the_metadata_of_the_first():
    first, second = (pa.field("a", pa.int8(), metadata={"from": name}) for name in ("one", "other"))
    assert unified_field("a", [None, first, second]).metadata == {b"from": b"one"}


def test_unlike_fields_are_named_by_position():
    fields = [None, pa.field("a", pa.int8()), None, pa.field("a", pa.string())]
    with pytest.raises(UnlikeTypes) as refused:
        unified_field("a", fields)
    assert (refused.value.one, refused.value.other) == (1, 3)


def test_codes_of_uint64_and_signed_ones_become_int64():
    one, other = (pa.dictionary(codes, pa.string()) for codes in (pa.uint64(), pa.int8()))
    assert unified_type([one, other]) == pa.dictionary(pa.int64(), pa.string())


def test_decimals_of_256_bits_keep_their_width():
    kinds = [pa.decimal256(5, 2), pa.decimal128(6, 2), pa.int8()]
    assert unified_type(kinds) == pa.decimal256(6, 2)


def test_integers_that_do_not_unify_do_not_become_decimals():
    with pytest.raises(UnlikeTypes, match="no integer type holds uint64 and negative numbers") as refused:
        unified_type([pa.decimal128(30, 2), pa.uint64(), pa.int8()])
    assert (refused.value.one, refused.value.other) == (1, 2)
