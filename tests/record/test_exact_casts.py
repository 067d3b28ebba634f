"""Casts keep each value or say which rows hold one that does not fit; nothing that nulls or slices hide is converted."""

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import types
from unified_kinds import RECORDED, named, plain_rows, recorded_kinds

from seqflow.errors import ProviderError
from seqflow.record.exact_casts import ALIKE, CONVERTIBLE, UnfitValues, cast_values, exact_cast, unfit_reason
from seqflow.record.run_ends import decoded
from seqflow.record.unified_types import unified_type

KINDS = recorded_kinds()
INT64 = [-(2**63), 2**63 - 1]
DAY = 86400


def integers(kind):
    return [int(np.iinfo(str(kind)).min), int(np.iinfo(str(kind)).max), 0]


def edges(kind):
    """An array of a type with its least and greatest values, special ones, and a null at each level."""
    if isinstance(kind, pa.BaseExtensionType):
        storage = (
            pa.array(["1", '{"a": 2}', None], kind.storage_type) if named(kind).startswith("json") else None
        )
        return pa.ExtensionArray.from_storage(kind, edges(kind.storage_type) if storage is None else storage)
    if types.is_null(kind):
        return pa.nulls(3)
    if types.is_integer(kind):
        return pa.array([*integers(kind), None], kind)
    if types.is_floating(kind):
        info = np.finfo(f"float{kind.bit_width}")
        found = [
            info.max,
            info.min,
            info.smallest_subnormal,
            info.tiny,
            -0.0,
            math.nan,
            math.inf,
            -math.inf,
            0,
        ]
        return pa.array(np.array(found, info.dtype), mask=np.arange(len(found)) == len(found) - 1)
    if types.is_decimal(kind):
        largest = Decimal((0, (9,) * kind.precision, -kind.scale))
        return pa.array(
            [largest, largest.copy_negate(), Decimal((0, (1,), -kind.scale)), Decimal(0), None], kind
        )
    if types.is_date64(kind):
        return pa.array([DAY * 1000 * -(2**31), DAY * 1000 * (2**31 - 1), 0, None], pa.int64()).cast(kind)
    if types.is_time(kind):
        last = DAY * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit] - 1
        return pa.array([0, last, None], pa.int32() if types.is_time32(kind) else pa.int64()).cast(kind)
    if types.is_temporal(kind):
        return pa.array([*integers(f"int{kind.bit_width}"), -1, None], f"int{kind.bit_width}").cast(kind)
    if types.is_boolean(kind):
        return pa.array([True, False, None])
    if types.is_fixed_size_binary(kind):
        return pa.array([b"\xff" * kind.byte_width, b"\0" * kind.byte_width, None], kind)
    if types.is_dictionary(kind):
        values = edges(kind.value_type)
        codes = pa.array([*range(len(values) - 1), 0, None], kind.index_type)
        return pa.DictionaryArray.from_arrays(codes, values.slice(0, len(values) - 1), ordered=kind.ordered)
    if types.is_struct(kind):
        return structs([edges(child.type) for child in kind], list(kind))
    if types.is_map(kind):
        keys = edges(kind.key_type).drop_null()
        items = edges(kind.item_type)
        items = items.take(pa.array(np.arange(len(keys)) % len(items)))
        return pa.MapArray.from_arrays(pa.array([0, 1, None, 1, len(keys)], pa.int32()), keys, items).cast(
            kind
        )
    if types.is_nested(kind):
        values = edges(kind.value_type)
        if not kind.value_field.nullable:
            values = values.drop_null()
        if types.is_fixed_size_list(kind):
            values = values.take(pa.array(np.arange(3 * kind.list_size) % len(values)))
            return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=pa.array([False, True, False]))
        return lists(
            kind, [len(values), 0, 1, 0], [False, False, True, False], pa.concat_arrays([values, values[:1]])
        )
    texts = ["", "é", "a text of more than twelve bytes", "\0", None]
    return pa.array(texts if str(kind).startswith(("str", "large_str")) else [b"\xff\0", *texts], kind)


def structs(children, fields):
    """Structs as long as the shortest child, the first of which is null."""
    rows = min(map(len, children))
    mask = pa.array([at == 0 for at in range(rows)], pa.bool_())
    return pa.StructArray.from_arrays([child.slice(0, rows) for child in children], fields=fields, mask=mask)


def validity(nulls):
    return pa.py_buffer(np.packbits(~np.array(nulls, np.bool_), bitorder="little"))


def lists(kind, lengths, nulls, values, backwards=False):
    """Lists of any layout over values in order; with `backwards`, list views lie in the opposite order."""
    wide = types.is_large_list(kind) or types.is_large_list_view(kind)
    dtype = np.int64 if wide else np.int32
    offsets = np.append(0, np.cumsum(lengths)).astype(dtype)
    buffers = [validity(nulls), pa.py_buffer(offsets)]
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        if backwards:
            starts = [*offsets[:-1], len(values)]
            parts = [values.slice(starts[at], lengths[at]) for at in reversed(range(len(lengths)))]
            values = pa.concat_arrays(parts) if parts else values
            offsets = (offsets[-1] - offsets[1:]).astype(dtype)
        buffers = [
            validity(nulls),
            pa.py_buffer(offsets[: len(lengths)].copy()),
            pa.py_buffer(np.array(lengths, dtype)),
        ]
    return pa.Array.from_buffers(kind, len(lengths), buffers, children=[values])


@pytest.mark.parametrize(
    "pair", RECORDED["results"], ids=lambda pair: f"{named(KINDS[pair[0]])} and {named(KINDS[pair[1]])}"
)
def test_values_at_the_edges_stay_under_unified_types(pair):
    kinds = [KINDS[at] for at in pair[:2]]
    kind, is_checked = unified_type(kinds), len(pair) > 3
    any_unfit = False
    for found in kinds:
        for array in (edges(found), edges(found).slice(1), edges(found).slice(1, 1), edges(found)[:0]):
            values, unfit = cast_values(array, kind)
            values.validate(full=True)
            assert values.type == kind
            unfit = np.zeros(len(array), np.bool_) if unfit is None else unfit
            rows = zip(unfit, plain_rows(array), plain_rows(values), strict=True)
            assert all(after == (None if wrong else before) for wrong, before, after in rows)
            any_unfit = any_unfit or unfit.any()
    assert any_unfit == is_checked


@pytest.mark.parametrize(
    "pair", RECORDED["results"], ids=lambda pair: f"{named(KINDS[pair[0]])} and {named(KINDS[pair[1]])}"
)
def test_a_cast_to_the_unified_type_and_back_gives_the_array(pair):
    kind = unified_type([KINDS[at] for at in pair[:2]])
    for found in (KINDS[at] for at in pair[:2]):
        if named(found) != named(kind) and any(holds(found) for holds in ONE_WAY):
            continue
        array = edges(found)
        values, unfit = cast_values(array, kind)
        if types.is_struct(kind) and set(kind.names) != set(found.names):
            with pytest.raises(pa.ArrowInvalid, match="there are keys besides"):
                exact_cast(values, found)
            continue
        try:
            back = cast_values(values, found)
        except pa.ArrowInvalid:
            assert is_any_struct(kind)  # fields that only the other type has
            continue
        assert back.unfit is None
        expected = plain_rows(array)
        if unfit is not None:
            expected = [None if wrong else row for wrong, row in zip(unfit, expected, strict=True)]
        assert plain_rows(back.values) == expected


def is_any_struct(kind):
    return types.is_struct(kind) or any(is_any_struct(kind.field(at).type) for at in range(kind.num_fields))


# nothing is encoded again, and nothing but nulls becomes a null
def holds_encoded(kind):
    is_encoded = types.is_dictionary(kind) or types.is_null(kind)
    return is_encoded or any(holds_encoded(kind.field(at).type) for at in range(kind.num_fields))


ONE_WAY = (holds_encoded,)


def floats(*values):
    return pa.array(values, pa.float64())


def numbers(kind, *values):
    return pa.array(values, kind)


def instants(unit, *counts, zone=None):
    return pa.array(counts, pa.int64()).cast(pa.timestamp(unit, zone))


def days(*counts):
    return pa.array(counts, pa.int32()).cast(pa.date32())


DECLARED = [
    (floats(7.0, 7.5, -0.0, math.nan, math.inf, 2.0**63, -(2.0**63), None), pa.int64(), [7, ..., 0, ..., ..., ..., -(2**63), None]),
    (floats(255.0, 256.0, -1.0), pa.uint8(), [255, ..., ...]),
    (floats(2.0**64, 2.0**64 - 2048), pa.uint64(), [..., 2**64 - 2048]),
    (numbers(pa.float32(), 2.0**31, 16777216.0, 0.5), pa.int32(), [..., 16777216, ...]),
    (numbers(pa.float16(), 7.0, 7.5, math.inf, -2.0, None), pa.int64(), [7, ..., ..., -2, None]),
    (numbers(pa.float16(), 7.0, 300.0), pa.int8(), [7, ...]),
    (numbers(pa.int64(), 2**53, 2**53 + 1, 2**60, 2**63 - 1, -(2**63), None), pa.float64(), [2**53, ..., 2**60, ..., -(2**63), None]),
    (numbers(pa.uint64(), 2**64 - 1, 2**64 - 2048), pa.float64(), [..., 2**64 - 2048]),
    (numbers(pa.int32(), 2**24, 2**24 + 1, 2**31 - 1), pa.float32(), [2**24, ..., ...]),
    (numbers(pa.int64(), 2048, 2049, 70000), pa.float16(), [2048, ..., ...]),
    (numbers(pa.int64(), -1, 2**63 - 1), pa.uint64(), [..., 2**63 - 1]),
    (numbers(pa.uint64(), 2**63, 5), pa.int64(), [..., 5]),
    (numbers(pa.int64(), 128, -128, None), pa.int8(), [..., -128, None]),
    (numbers(pa.bool_(), True, False, None), pa.int64(), [1, 0, None]),
    (floats(0.1, 1e300, -math.inf), pa.float32(), [float(np.float32(0.1)), ..., -math.inf]),
    (floats(1.5, 1e5), pa.float16(), [1.5, ...]),
    (numbers(pa.int64(), 99, 100, 2**62), pa.decimal128(4, 2), [Decimal(99), ..., ...]),
    (numbers(pa.uint64(), 2**64 - 1, 7), pa.decimal32(5, 2), [..., Decimal(7)]),
    (numbers(pa.decimal128(5, 2), Decimal("1.50"), Decimal("1.25")), pa.decimal128(5, 1), [Decimal("1.5"), ...]),
    (numbers(pa.decimal256(76, 0), 10**40, 10**75, 7), pa.decimal32(9, 0), [..., ..., Decimal(7)]),
    (numbers(pa.decimal256(76, 0), 2**64 + 5, 2**128 + 5, 5), pa.decimal64(18, 0), [..., ..., Decimal(5)]),
    (numbers(pa.decimal256(76, 0), 10**40, 2**128 + 5, 5), pa.decimal128(38, 0), [..., ..., Decimal(5)]),
    (numbers(pa.decimal256(76, 38), Decimal(2**64 - 1), Decimal("999.99")), pa.uint64(), [2**64 - 1, ...]),
    (numbers(pa.decimal256(76, 38), Decimal(2**96 - 1), Decimal("999.99")), pa.decimal128(38, 2), [Decimal(2**96 - 1), Decimal("999.99")]),
    (numbers(pa.decimal128(38, 10), Decimal("999.99"), Decimal("1000"), Decimal("9.999")), pa.decimal32(5, 2), [Decimal("999.99"), ..., ...]),
    (numbers(pa.decimal64(18, 10), Decimal("999.99"), Decimal(-1)), pa.decimal32(5, 2), [Decimal("999.99"), Decimal(-1)]),
    (numbers(pa.decimal128(38, 1), Decimal("1.5"), Decimal(10**20), Decimal(-7)), pa.int64(), [..., ..., -7]),
    (instants("us", 2**62, 1, None), pa.timestamp("ns"), [..., dt.datetime(1970, 1, 1, 0, 0, 0, 1), None]),
    (instants("ns", 1_000, 1_500), pa.timestamp("us"), [dt.datetime(1970, 1, 1, 0, 0, 0, 1), ...]),
    (instants("ms", DAY * 1000, 1, 2**62), pa.date32(), [dt.date(1970, 1, 2), ..., ...]),
    (instants("ms", DAY * 1000, 1, DAY * 1000 * 2**32), pa.date64(), [dt.date(1970, 1, 2), ..., ...]),
    (days(1, 2**31 - 1, None), pa.timestamp("us"), [dt.datetime(1970, 1, 2), ..., None]),
    (days(1), pa.timestamp("us", "Etc/UTC"), [dt.datetime(1970, 1, 2, tzinfo=dt.UTC)]),
    (instants("us", 1_000_000), pa.timestamp("s", "UTC"), [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)]),
    (instants("us", 1_000_000, zone="Asia/Tokyo"), pa.timestamp("s", "UTC"), [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)]),
    (numbers(pa.time64("us"), dt.time(1), dt.time(1, 0, 0, 5)), pa.time32("s"), [dt.time(1), ...]),
    (numbers(pa.duration("us"), dt.timedelta(1), dt.timedelta(0, 0, 5)), pa.duration("s"), [dt.timedelta(1), ...]),
    (numbers(pa.binary(), b"a", b"\xff", None), pa.string(), ["a", ..., None]),
    (numbers(pa.large_binary(), b"a text of more than twelve bytes", b"\xff" * 13, b"\xff"), pa.large_string(), ["a text of more than twelve bytes", ..., ...]),
    (numbers(pa.binary(2), b"ab", b"\xff\0"), pa.large_string(), ["ab", ...]),
    (numbers(pa.string(), "é", None), pa.large_binary(), ["é".encode(), None]),
    (numbers(pa.large_binary(), b"ab", b"abc"), pa.binary(2), [b"ab", ...]),
    (numbers(pa.list_(pa.int64()), [1, 2], [1], None, [3, 300], [None, 4]), pa.list_(pa.int8(), 2), [[1, 2], ..., None, ..., [None, 4]]),
    (numbers(pa.list_(pa.int64(), 2), [1, 2], [1, 300], None), pa.list_(pa.int8()), [[1, 2], ..., None]),
    (numbers(pa.list_(pa.int8(), 2), [1, 2], None), pa.list_(pa.int8(), 3), [..., None]),
    (numbers(pa.list_(pa.float64()), [1.0, 2.0], [], [7.5], None), pa.large_list(pa.int64()), [[1, 2], [], ..., None]),
    (numbers(pa.list_(pa.struct([("k", pa.string()), ("v", pa.float64())])), [{"k": "a", "v": 1.0}], [{"k": None, "v": 1.0}], [None], [{"k": "a", "v": 1.5}], None), pa.map_(pa.string(), pa.int8()), [[("a", 1)], ..., ..., ..., None]),
    (numbers(pa.map_(pa.int64(), pa.int64()), [(1, 2)], [(300, 1)], [(1, 300)], []), pa.map_(pa.int8(), pa.int8()), [[(1, 2)], ..., ..., []]),
    (numbers(pa.struct([("a", pa.int64()), ("b", pa.string())]), {"a": 1, "b": "x"}, {"a": 300, "b": "y"}, None), pa.struct([("b", pa.large_string()), ("c", pa.int8()), ("a", pa.int8())]), [{"b": "x", "c": None, "a": 1}, ..., None]),
    (pa.array([1.0, 7.5, None, 1.0]).dictionary_encode(), pa.int64(), [1, ..., None, 1]),
    (pa.array([1.0, 7.5, None, 1.0]).dictionary_encode(), pa.dictionary(pa.int64(), pa.int64()), [1, ..., None, 1]),
    (pa.array([1.0, 7.5, None, 1.0]).dictionary_encode().take(pa.array([0, 2])), pa.int64(), [1, None]),
    (pa.DictionaryArray.from_arrays([1, 0, None], pa.array(["a", "b"])), pa.large_string(), ["b", "a", None]),
    (pa.nulls(2), pa.struct([("a", pa.list_(pa.int8()))]), [None, None]),
    (pa.ExtensionArray.from_storage(pa.bool8(), numbers(pa.int8(), 1, 0, None)), pa.int64(), [1, 0, None]),
    (numbers(pa.binary(), b"a" * 16, b"a", None), pa.uuid(), ["61616161-6161-6161-6161-616161616161", ..., None]),
]  # fmt: skip
"""Arrays, declared types, and the values that come out; `...` for rows that hold a value that does not fit."""


def rows_of(array):
    return [str(row) if hasattr(row, "hex") and hasattr(row, "urn") else row for row in array.to_pylist()]


@pytest.mark.parametrize(
    ("array", "kind", "expected"), DECLARED, ids=lambda one: str(getattr(one, "type", one))[:60]
)
def test_a_declared_type_takes_the_values_that_it_holds(array, kind, expected):
    values, unfit = cast_values(array, kind)
    values.validate(full=True)
    assert values.type == kind
    assert (unfit is not None) == (... in expected)
    assert rows_of(values) == [None if value is ... else value for value in expected]
    for row, value in enumerate(expected):
        assert bool(unfit_reason(array, kind, row)) == (value is ...)
        assert unfit is None or unfit[row] == (value is ...)


@pytest.mark.parametrize(
    ("array", "kind", "reason"),
    [
        (floats(7.5), pa.int64(), "7.5 is not a value of int64"),
        (pa.array([[1.0], [2.0, 7.5]]), pa.list_(pa.int64()), "7.5 is not a value of int64"),
        (
            pa.array([{"a": 1, "b": 300}]),
            pa.struct([("b", pa.int8()), ("a", pa.int8())]),
            "300 is not a value of int8",
        ),
        (pa.array([7.5]).dictionary_encode(), pa.int64(), "7.5 is not a value of int64"),
        (
            pa.array([[1]]),
            pa.list_(pa.int64(), 2),
            "a list of 1 is not a value of fixed_size_list<item: int64>[2]",
        ),
        (pa.array([b"\xff"]), pa.string(), r"b'\xff' is not a value of string"),
        (pa.array([b"\xff" * 100]), pa.string(), "b'" + r"\xff" * 19 + r"\… is not a value of string"),
        (
            instants("s", 2**62),
            pa.timestamp("ns"),
            f"{2**62} of timestamp[s] is not a value of timestamp[ns]",
        ),
        (days(2**31 - 1), pa.timestamp("ns"), f"{2**31 - 1} of date32[day] is not a value of timestamp[ns]"),
    ],
    ids=str,
)
def test_the_reason_names_the_first_value(array, kind, reason):
    assert unfit_reason(array, kind, len(array) - 1) == reason
    with pytest.raises(UnfitValues) as refused:
        exact_cast(array, kind, CONVERTIBLE)
    assert str(refused.value) == reason
    assert refused.value.rows.tolist() == [False] * (len(array) - 1) + [True]


TEXT = pa.string()


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (TEXT, pa.int64()), (TEXT, pa.float64()), (TEXT, pa.timestamp("us")), (TEXT, pa.binary(2)), (TEXT, pa.bool_()),
        (pa.int64(), TEXT), (pa.float64(), TEXT), (pa.date32(), TEXT), (pa.int64(), pa.bool_()), (pa.bool_(), pa.float64()),
        (pa.int64(), pa.timestamp("us")), (pa.timestamp("us"), pa.int64()), (pa.timestamp("us"), pa.timestamp("us", "Asia/Tokyo")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")), (pa.timestamp("us", "UTC"), pa.date32()), (pa.timestamp("us"), pa.time64("us")),
        (pa.duration("s"), pa.time32("s")), (pa.decimal128(5, 2), pa.float64()), (pa.float64(), pa.decimal128(5, 2)),
        (pa.list_(pa.int8()), pa.int8()), (pa.list_(pa.int8()), pa.binary()), (pa.list_(TEXT), pa.list_(pa.int8())),
        (pa.map_(TEXT, TEXT), pa.list_(TEXT)), (pa.list_(TEXT), pa.map_(TEXT, TEXT)), (pa.map_(TEXT, TEXT), pa.struct([("a", TEXT)])),
        (pa.struct([("a", TEXT)]), pa.map_(TEXT, TEXT)), (TEXT, pa.dictionary(pa.int8(), TEXT)),
        (pa.uuid(), pa.json_()), (pa.fixed_shape_tensor(pa.int8(), [2, 3]), pa.fixed_shape_tensor(pa.int8(), [3, 2])),
        (pa.struct([("a", TEXT), ("b", TEXT)]), pa.struct([("a", TEXT)])), (pa.bool8(), pa.bool_()),
        (pa.dictionary(pa.int8(), TEXT), pa.int64()),
    ],
    ids=str,
)  # fmt: skip
def test_types_of_another_nature_are_refused_even_without_rows(found, kind):
    for array in (pa.array([], found), edges(found) if types.is_primitive(found) else pa.array([], found)):
        with pytest.raises(pa.ArrowInvalid, match=r"values are |there are keys besides") as refused:
            cast_values(array, kind)
        assert not isinstance(refused.value, UnfitValues)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (floats(7.0), pa.int64()), (pa.array([True]), pa.int64()), (pa.array([b"a"]), TEXT), (pa.array(["a"]), pa.binary()),
        (instants("us", 1), pa.timestamp("us", "UTC")), (days(1), pa.timestamp("us", "UTC")),
    ],
    ids=str,
)  # fmt: skip
def test_values_that_change_their_nature_need_a_declared_type(array, kind):
    assert len(cast_values(array, kind).values) == 1
    with pytest.raises(pa.ArrowInvalid, match="values are "):
        exact_cast(array, kind, ALIKE)


def test_nan_stays_nan_and_the_sign_of_zero_stays():
    values, unfit = cast_values(floats(math.nan, -0.0), pa.float32())
    assert unfit is None
    assert plain_rows(values) == ["nan", "-0x0.0p+0"]


ENCODED = pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(ENCODED), pa.large_list(ENCODED),
        pa.list_(ENCODED, 2), pa.map_(pa.string(), ENCODED), pa.struct([("a", ENCODED)]),
        pa.list_(pa.struct([("a", pa.list_(ENCODED, 2))])), pa.struct([("m", pa.map_(pa.int8(), pa.list_(ENCODED)))]),
        pa.struct([]), pa.list_(pa.null()), pa.uuid(), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.int8(), 2),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("rows", [0, 3])
def test_nulls_of_any_type_are_valid(kind, rows):
    found = exact_cast(pa.nulls(rows), kind)
    found.validate(full=True)
    assert found.type == kind
    assert found.to_pylist() == [None] * rows
    assert found.null_count == rows


def test_more_values_than_offsets_of_32_bits_count_are_refused():
    rows = 2**31
    offsets = pa.py_buffer(np.array([0, rows], np.int64))
    array = pa.Array.from_buffers(pa.large_list(pa.null()), 1, [None, offsets], children=[pa.nulls(rows)])
    with pytest.raises(
        pa.ArrowInvalid, match=r"2147483648 values are too many for .*, which has offsets of 32 bits"
    ):
        cast_values(array, pa.list_(pa.null()))


def test_more_bytes_than_offsets_of_32_bits_count_are_refused():
    offsets = pa.py_buffer(np.array([0, 2**30, 2**31 + 8]))
    pages = pa.py_buffer(np.zeros(2**31 + 8, np.uint8))  # never touched, so they take no memory
    array = pa.Array.from_buffers(pa.large_binary(), 2, [None, offsets, pages])
    with pytest.raises(pa.ArrowInvalid, match="input array too large") as refused:
        cast_values(array, pa.binary())
    assert not isinstance(refused.value, UnfitValues)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_dictionary_is_ordered_if_the_type_is(ordered):
    array = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["a"]), ordered=True)
    kind = pa.dictionary(pa.int32(), pa.large_string(), ordered=ordered)
    assert cast_values(array, kind).values.type.ordered == ordered


def test_codes_that_do_not_fit_are_refused():
    array = pa.DictionaryArray.from_arrays(pa.array([200], pa.int32()), pa.array(np.arange(201)))
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        cast_values(array, pa.dictionary(pa.int8(), pa.int64()))


def test_text_offsets_out_of_bounds_are_found_before_they_are_followed():
    offsets = pa.py_buffer(np.array([0, 2**30, 2], np.int32))
    array = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"ab")])
    with pytest.raises(ProviderError, match="a text is not valid Arrow data"):
        cast_values(array, pa.large_string())


@dataclass(frozen=True)
class Source:
    """Rows of one type for a cast to `kind`; some do not fit."""

    kind: pa.DataType
    rows: st.SearchStrategy[Any]
    array: Callable[[list[Any]], pa.Array]
    """Rows as an array, with the row `hidden` under each null."""
    hidden: Any
    """A row that does not fit, if there is one."""
    fits: Callable[[Any], bool]
    expected: Callable[[Any], Any]
    """A row that fits, as `plain` gives it."""


def leaf(found, kind, fitting, unfit=()):
    """Values that fit, with what they become, and values that do not. Times are counts of their unit."""
    values = [*fitting, *unfit]
    stored = pa.int32() if types.is_date32(found) else pa.int64() if types.is_temporal(found) else found
    hidden = values[-1]

    def array(rows):
        if types.is_binary_view(found) or types.is_string_view(found):
            return pa.array(rows, found)
        shown = pa.array([hidden if row is None else row for row in rows], stored).cast(found)
        buffers = [validity([row is None for row in rows]), *shown.buffers()[1:]]
        return pa.Array.from_buffers(found, len(rows), buffers)

    return Source(
        kind, st.none() | st.sampled_from(values), array, hidden, lambda row: row not in unfit, fitting.get
    )


def nothing(kind):
    return Source(kind, st.none(), lambda rows: pa.nulls(len(rows)), None, lambda row: True, lambda row: None)


MICRO = 10**3
LEAVES = [
    leaf(pa.int64(), pa.int8(), {0: 0, -128: -128}, [300]),
    leaf(pa.int32(), pa.int64(), {5: 5, -(2**31): -(2**31)}),
    leaf(pa.int64(), pa.int64(), {5: 5}),
    leaf(pa.float64(), pa.int64(), {7.0: 7, -1.0: -1}, [7.5, math.nan]),
    leaf(pa.timestamp("us", "+00:00"), pa.timestamp("ns", "UTC"), {1: MICRO, 0: 0}, [2**62]),
    leaf(pa.date32(), pa.timestamp("ns"), {1: DAY * 10**9}, [2**31 - 1]),
    leaf(pa.decimal128(5, 2), pa.decimal32(4, 2), {Decimal("1.50"): Decimal("1.50")}, [Decimal("999.99")]),
    leaf(pa.binary(), pa.string(), {b"a": "a", b"": ""}, [b"\xff"]),
    leaf(pa.binary_view(), pa.large_string(), {b"a": "a", b"a" * 13: "a" * 13}, [b"\xff", b"\xff" * 13]),
    leaf(pa.string(), pa.large_string(), {"é": "é"}),
    leaf(pa.string_view(), pa.large_string(), {"a": "a", "a" * 13: "a" * 13}),
    nothing(pa.int8()),
    nothing(pa.null()),
    nothing(pa.list_(pa.int8(), 2)),
]


def encoded(of):
    """A dictionary of the rows, with an entry that does not fit, which the codes under nulls have."""

    def array(rows):
        entries = [row for row in rows if row is not None] + [of.hidden]
        codes = [len(entries) - 1 if row is None else entries.index(row) for row in rows]
        buffers = [validity([row is None for row in rows]), pa.py_buffer(np.array(codes, np.int8))]
        return pa.DictionaryArray.from_arrays(
            pa.Array.from_buffers(pa.int8(), len(rows), buffers), of.array(entries)
        )

    return Source(of.kind, of.rows, array, of.hidden, of.fits, of.expected)


def runs(of):
    def array(rows):
        ends = [at + 1 for at in range(len(rows)) if at + 1 == len(rows) or rows[at + 1] is not rows[at]]
        return pa.RunEndEncodedArray.from_arrays(
            pa.array(ends, pa.int32()), of.array([rows[end - 1] for end in ends])
        )

    return Source(of.kind, of.rows, array, of.hidden, of.fits, of.expected)


LAYOUTS = {
    "list": pa.list_, "large_list": pa.large_list, "list_view": pa.list_view, "large_list_view": pa.large_list_view,
    "fixed": lambda kind: pa.list_(kind, 2),
}  # fmt: skip


def in_lists(of, layout, to_layout, backwards):
    kind, to_kind = LAYOUTS[layout](of.array([]).type), LAYOUTS[to_layout](of.kind)
    is_fixed, fixes = layout == "fixed", to_layout == "fixed"
    hidden = [of.hidden] * (2 if is_fixed else 1)

    def array(rows):
        shown = [hidden if row is None else row for row in rows]
        values, nulls = of.array([value for row in shown for value in row]), [row is None for row in rows]
        if is_fixed:
            return pa.Array.from_buffers(kind, len(rows), [validity(nulls)], children=[values])
        return lists(kind, list(map(len, shown)), nulls, values, backwards)

    def fits(row):
        return row is None or (all(map(of.fits, row)) and not (fixes and len(row) != 2))

    rows = st.lists(of.rows, min_size=2 if is_fixed else 0, max_size=2 if is_fixed else 3)

    def expected(row):
        return None if row is None else tuple(map(of.expected, row))

    return Source(to_kind, st.none() | rows, array, hidden, fits, expected)


def in_structs(one, other):
    """Fields `b` and `a` become `a`, `missing` and `b`."""
    parts = {"b": one, "a": other}
    kind = pa.struct([("a", other.kind), ("missing", pa.int8()), ("b", one.kind)])
    hidden = {name: of.hidden for name, of in parts.items()}

    def array(rows):
        shown = [hidden if row is None else row for row in rows]
        children = [of.array([row[name] for row in shown]) for name, of in parts.items()]
        fields = [pa.field(name, child.type) for name, child in zip(parts, children, strict=True)]
        buffers = [validity([row is None for row in rows])]
        return pa.Array.from_buffers(pa.struct(fields), len(rows), buffers, children=children)

    def fits(row):
        return row is None or all(of.fits(row[name]) for name, of in parts.items())

    def expected(row):
        found = {} if row is None else {name: of.expected(row[name]) for name, of in parts.items()}
        return None if row is None else {name: one for name, one in found.items() if one is not None}

    rows = st.fixed_dictionaries({name: of.rows for name, of in parts.items()})
    return Source(kind, st.none() | rows, array, hidden, fits, expected)


def in_maps(of, as_pairs):
    """Maps, or lists of pairs, whose keys may not fit either."""
    keys = leaf(pa.int64(), pa.int8(), {0: 0, -128: -128}, [300])
    hidden = [(keys.hidden, of.hidden)]

    def array(rows):
        shown = [hidden if row is None else row for row in rows]
        pairs = [pair for row in shown for pair in row]
        children = [part.array([pair[at] for pair in pairs]) for at, part in enumerate((keys, of))]
        # keys are counted: before 26, Arrow ends the process where it does not know that none of them is null
        children[0] = pa.Array.from_buffers(pa.int64(), len(pairs), [None, children[0].buffers()[1]], 0)
        fields = [pa.field("key", pa.int64(), nullable=False), pa.field("value", children[1].type)]
        entries = pa.StructArray.from_arrays(children, fields=fields)
        kind = pa.list_(entries.type) if as_pairs else pa.map_(*fields)
        return lists(kind, list(map(len, shown)), [row is None for row in rows], entries)

    def fits(row):
        return row is None or all(keys.fits(key) and of.fits(value) for key, value in row)

    def expected(row):
        return None if row is None else tuple((key, of.expected(value)) for key, value in row)

    rows = st.lists(st.tuples(st.sampled_from([0, -128, 300]), of.rows), max_size=2)
    return Source(pa.map_(pa.int8(), of.kind), st.none() | rows, array, hidden, fits, expected)


def nested(of):
    layouts = st.sampled_from(list(LAYOUTS))
    return st.one_of(
        st.builds(in_lists, of, layouts, st.sampled_from(["list", "large_list", "fixed"]), st.booleans()),
        st.builds(in_structs, of, of),
        st.builds(in_maps, of, st.booleans()),
    )


FLAT = st.sampled_from([*LEAVES, *map(encoded, LEAVES[:-3]), *map(runs, LEAVES[:-3])])
SOURCES = st.recursive(FLAT, nested, max_leaves=4)


@given(st.data(), SOURCES)
def test_rows_come_out_as_they_were_or_do_not_fit_whatever_nulls_and_slices_hide(data, source):
    drawn = data.draw(st.lists(source.rows, max_size=6))
    start = data.draw(st.integers(0, len(drawn)))
    rows = drawn[start : data.draw(st.integers(start, len(drawn)))]
    whole = source.array(drawn)
    whole.validate(full=True)
    array = decoded(whole.slice(start, len(rows)))
    array.validate(full=True)
    values, unfit = cast_values(array, source.kind)
    values.validate(full=True)
    assert values.type == source.kind
    fits = list(map(source.fits, rows))
    assert (unfit is None) == all(fits)
    assert unfit is None or unfit.tolist() == [not one for one in fits]
    expected = [source.expected(row) if one else None for row, one in zip(rows, fits, strict=True)]
    assert plain_rows(values) == expected
    assert [unfit_reason(array, source.kind, row) == "" for row in range(len(rows))] == fits
