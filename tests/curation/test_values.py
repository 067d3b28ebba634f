"""Values are compared, not the types that hold them; scores are ordered as Python orders the values."""

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow.curation.values import hashes, record_of, scores
from seqflow.errors import ProviderError

D = Decimal
INTEGERS = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
NUMBERS = (*INTEGERS, pa.float16(), pa.float32(), pa.float64())
DECIMALS = (pa.decimal128(9, 2), pa.decimal128(38, 30), pa.decimal128(9, 0), pa.decimal256(40, 5))
TIMES = tuple(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC"))
FAMILIES = {
    "numbers": ([0, 1, 7, 100, None], NUMBERS),
    "numbers with signs": ([-1, 0, -128, 127, None], [kind for kind in NUMBERS if "u" not in str(kind)]),
    "fractions": ([0.5, -0.25, math.inf, 2.0, None], NUMBERS[-3:]),
    "decimals": ([D(0), D(3), D(-7), D(12), None], DECIMALS),
    "times": ([0, 86400 * 366, -86400, None], (*TIMES, pa.date32(), pa.date64())),
    "durations": ([0, 60, 61, None], [pa.duration(unit) for unit in ("s", "ms", "us", "ns")]),
    "times of day": ([0, 60, 61, None], [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]),
    "texts": (["a", "", "é", None], [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]),
    "bytes": ([b"ab", b"cd", None], [pa.binary(2), pa.binary(), pa.large_binary()]),
}


def column(values, kind):
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    if pa.types.is_temporal(kind):  # of seconds
        values = [None if one is None else timedelta(seconds=one) for one in values]
        made = pa.array(values, pa.duration("s")).cast("int64")
        if pa.types.is_date32(kind):
            return pa.array([None if one is None else one.days for one in values], pa.int32()).cast(kind)
        unit = "ms" if pa.types.is_date64(kind) else kind.unit
        scaled = pa.array(
            [None if one is None else one.as_py() * SCALE[unit] if one.is_valid else None for one in made]
        )
        return scaled.cast("int32" if kind.bit_width == 32 else "int64").cast(kind)
    return pa.array(
        [np.float16(one) if kind == pa.float16() and one is not None else one for one in values], kind
    )


SCALE = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def keys(array):
    return list(zip(*(half.tolist() for half in hashes(record_of(pa.table({"c": array})))), strict=True))


def nested(array):
    """The column itself, and in lists, lists of lists, structs, and beside another field."""
    rows = np.arange(len(array) + 1)
    lists = pa.ListArray.from_arrays(pa.array(rows, pa.int32()), array)
    yield array
    yield lists
    yield pa.LargeListArray.from_arrays(pa.array(rows), lists)
    yield pa.StructArray.from_arrays([array, array], ["a", "b"])


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_values_of_any_types_have_equal_keys(family):
    values, kinds = FAMILIES[family]
    for at, array in enumerate(nested(column(values, kinds[0]))):
        first = keys(array)
        assert len(set(first)) == len(values)
        for kind in kinds[1:]:
            assert keys([*nested(column(values, kind))][at]) == first, kind


def test_fields_of_structs_are_compared_by_name_and_fixed_lists_as_lists():
    one = pa.array([{"a": 1, "b": "x"}, None])
    other = pa.array([{"b": "x", "a": 1}, None], pa.struct([("b", pa.large_string()), ("a", pa.uint8())]))
    assert keys(one) == keys(other)
    assert keys(pa.array([[1, 2], None], pa.list_(pa.int8(), 2))) == keys(pa.array([[1, 2], None]))


WHOLE = st.integers(-(2**63), 2**64 - 1) | st.sampled_from([2**53, 2**53 + 1, 2**63, 2**63 - 1, -(2**63), 0])
FLOATS = st.floats(width=64, allow_nan=False) | WHOLE.map(float)


@given(st.lists(WHOLE | FLOATS, max_size=12))
def test_numbers_are_equal_if_python_says_so(numbers):
    found = {}
    for one in numbers:
        if isinstance(one, float):
            kinds = (pa.float64(),)
        else:
            kinds = [kind for kind in (pa.int64(), pa.uint64()) if _holds(kind, one)]
        for kind in kinds:
            (key,) = keys(pa.array([one], kind))
            value = one if isinstance(one, float) and not math.isfinite(one) else Fraction(one)
            assert found.setdefault(key, value) == value
            assert [other for other, seen in found.items() if seen == value] == [key]


def _holds(kind, number):
    return number >= 0 if kind == pa.uint64() else number < 2**63


def test_times_that_other_units_cannot_hold_differ():
    assert keys(pa.array([1], pa.timestamp("ms"))) != keys(pa.array([1], pa.timestamp("s")))
    assert keys(pa.array([1500], pa.timestamp("ms"))) == keys(pa.array([1_500_000_000], pa.timestamp("ns")))
    assert keys(pa.array([1], pa.timestamp("s"))) != keys(pa.array([1]))
    far = 2**62  # beyond the years of nanoseconds
    assert keys(pa.array([far], pa.timestamp("s"))) != keys(pa.array([far + 1], pa.timestamp("s")))


def test_decimals_of_too_many_digits_are_refused():
    with pytest.raises(ProviderError, match="is not a value of decimal256"):
        keys(pa.array([D(10) ** 60], pa.decimal256(76, 0)))


SCORES = [
    (pa.int64(), [1_700_000_000_000_000_001, None, 1_700_000_000_000_000_002, -(2**63), 2**63 - 1]),
    (pa.uint64(), [2**63, 2**63 + 1, 2**64 - 1, None, 0, 5]),
    (pa.uint8(), [255, 0, None, 7]),
    (pa.float64(), [-math.inf, None, math.inf, 0.5, -0.5, -2.0, 1e308]),
    (pa.float16(), [np.float16(one) for one in (-2.0, 1.5, 0.0)]),
    (pa.decimal128(38, 2), [D("12345678901234567.89"), D("12345678901234567.90"), None, D(-1), D("-1.01")]),
    (pa.decimal128(38, 0), [D(10) ** 37, D(2) ** 64, D(2) ** 64 - 1, -(D(2) ** 64), D(2) ** 63, D(0)]),
    (pa.timestamp("ns"), [2, 1, None, -5]),
    (pa.time32("s"), [2, 1, None]),
    (pa.date64(), [86_400_000, -86_400_000, None]),
    (pa.duration("us"), [2**60, 2**60 + 1, -1]),
]


@pytest.mark.parametrize(("kind", "values"), SCORES)
def test_scores_are_ordered_as_the_values_and_nulls_are_last(kind, values):
    array = pa.array(values, kind)
    found = [*zip(*(half.tolist() for half in scores(array.slice(1))), strict=True)]
    order = [(one is not None, one or 0) for one in values[1:]]
    assert sorted(range(len(found)), key=found.__getitem__) == sorted(
        range(len(order)), key=order.__getitem__
    )


def test_nan_and_null_come_after_all_numbers():
    nan, null, least = zip(*scores(pa.array([math.nan, None, -math.inf])), strict=True)
    assert nan == null < least
    zeros = [*zip(*scores(pa.array([-0.0, 0.0])), strict=True)]
    assert zeros[0] == zeros[1]
