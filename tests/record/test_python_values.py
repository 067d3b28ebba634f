"""Python values as rows: each comes out as the value that it was, or the error names its row and column."""

import datetime as dt
import math
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError

EAST = dt.timezone(dt.timedelta(hours=5))
DAY = dt.date(1950, 1, 31)
NOON = dt.datetime(1950, 1, 31, 12, 30, 0, 5)
VALUES = [
    0, 1, -1, 127, 128, 255, 256, 2**24 + 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, 10**30,
    0.5, 0.1, -0.0, 2049.0, 65504.0, 70000.0, 3.4e38, 1e39, 1e308, math.inf, math.nan, True, False,
    Decimal("1"), Decimal("1.5"), Decimal("0.123456789"), Decimal("1e30"), "", "1", "a\0b", "é", "2024-01-01", b"", b"a",
    b"\xff", DAY, dt.date(9999, 12, 31), NOON, NOON.replace(hour=0, minute=0, microsecond=0), NOON.replace(tzinfo=EAST),
    NOON.replace(tzinfo=EAST, microsecond=0),    dt.datetime(9999, 12, 31), dt.time(1, 2, 3), dt.time(1, 2, 3, 4), dt.time(1, tzinfo=EAST), dt.timedelta(days=-1),
    dt.timedelta(microseconds=5), np.int8(-1), np.uint64(2**63), np.float16(0.5), np.float32(0.1), np.float64(1e300),
    np.datetime64(5, "ns"), np.datetime64("1950-01-31"), np.timedelta64(5, "ns"), np.timedelta64(1, "h"),
]  # fmt: skip
KINDS = [
    pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float16(),
    pa.float32(), pa.float64(), pa.decimal128(5, 2), pa.decimal128(38, 0), pa.string(), pa.large_string(), pa.binary(),
    pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"),
    pa.timestamp("s", "Europe/Berlin"), pa.time32("s"), pa.time64("us"), pa.duration("s"), pa.duration("ns"),
]  # fmt: skip


def is_same(value, found):
    """Whether a value is the one that came out, in a column that may round floats, or show a midnight as its date."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value == found
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        is_close = value == found or math.isclose(value, found, rel_tol=1e-3)
        return type(found) is float and (is_close or (math.isnan(value) and math.isnan(found)))
    return _at_midnight(value) == _at_midnight(found)


def _at_midnight(value):
    return dt.datetime.combine(value, dt.time()) if type(value) is dt.date else value


def out_of(source, schema=None):
    """The value of the column x of the last row; of NumPy where Python has none."""
    provider = sf.open(source, schema=schema)
    column = pa.concat_tables(map(_table, map(provider.read, provider.blocks()))).column("x")
    if str(column.type) in ("timestamp[ns]", "duration[ns]"):
        try:
            column = column.cast(
                pa.duration("us") if pa.types.is_duration(column.type) else pa.timestamp("us")
            )
        except pa.ArrowInvalid:
            return column.to_numpy()[-1]
    return column[-1].as_py()


def _table(rows):
    return rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("nest", ["alone", "in lists", "in structs"])
def test_a_value_is_itself_in_a_declared_column_or_an_error(kind, nest):
    wrap, wrapped, unwrap = {
        "alone": (lambda one: one, kind, lambda one: one),
        "in lists": (lambda one: [one], pa.list_(kind), lambda one: one[0]),
        "in structs": (lambda one: {"y": one}, pa.struct({"y": kind}), lambda one: one["y"]),
    }[nest]
    places, same = [], []
    for value in VALUES:
        try:
            found = unwrap(out_of([{"x": wrap(value)}], pa.schema({"x": wrapped})))
        except ProviderError as error:
            places.append(re.search(r"column 'x'.*, row 0: found ", str(error)))
        else:
            same.append(is_same(value, found) or (value, found))
    assert all(places)
    assert set(same) == {True}


@pytest.mark.parametrize("first", [1, 0.5, Decimal("1.5"), "a", b"a", DAY, NOON, NOON.replace(tzinfo=EAST), dt.time(1),
                                   dt.timedelta(1), True, np.float32(1)], ids=repr)  # fmt: skip
def test_a_value_is_itself_after_others_or_an_error(first):
    places, same = [], []
    for value in VALUES:
        for source in (
            [{"x": first}, {"x": value}],
            iter([{"x": first}] * 1000 + [{"x": value}]),
            {"x": [first, value]},
        ):
            try:
                found = out_of(source)
            except ProviderError as error:
                places.append("column 'x', row " in str(error) or error)
            else:
                same.append(is_same(value, found) or (value, found))
    assert set(places) == {True}
    assert set(same) == {True}


def test_the_error_names_row_column_value_and_type():
    rows = ({"x": one, "y": {"z": [0]}} for one in [1] * 1500 + [Decimal("1.5")])
    with pytest.raises(ProviderError, match=r"column 'x', row 1500: found Decimal\('1.5'\), expected int64"):
        list(sf.open(rows).blocks())
    with pytest.raises(
        ProviderError, match=r"column 'y', column 'z', row 1: found \[300\], expected list<item: uint8>"
    ):
        sf.open(
            [{"y": {"z": [1]}}, {"y": {"z": [300]}}],
            schema=pa.schema({"y": pa.struct({"z": pa.list_(pa.uint8())})}),
        )


def test_pairs_are_maps_where_the_schema_says_so():
    schema = pa.schema({"f": pa.map_(pa.int64(), pa.float64())})
    for first in ([(1, 0.5)], {1: 0.5}):
        provider = sf.open([{"f": first}, {"f": []}, {"f": None}, {}], schema=schema)
        found = provider.read(next(provider.blocks())).column("f").to_pylist()
        assert found == [[(1, 0.5)], [], None, None]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.list_(pa.map_(pa.int64(), pa.float64())), [[{1: 0.5}, [(2, 1.0)]], [], None]),
        (pa.large_list(pa.map_(pa.string(), pa.uint64())), [[{"a": 2**64 - 1}], [None]]),
        (
            pa.struct({"m": pa.map_(pa.string(), pa.int8()), "k": pa.string()}),
            [{"m": {"a": 1}}, None, {"k": "b"}],
        ),
        (
            pa.map_(pa.string(), pa.map_(pa.int64(), pa.list_(pa.int8()))),
            [{"a": {1: [2]}, "b": {}}, [("c", None)]],
        ),
        (pa.map_(pa.string(), pa.struct({"x": pa.float64()})), [{"a": {"x": 0.5}, "b": None}]),
    ],
)
def test_dicts_are_maps_at_any_depth(kind, values):
    provider = sf.open([{"f": value} for value in values], schema=pa.schema({"f": kind}))
    batch = provider.read(next(provider.blocks()))
    batch.validate(full=True)
    as_pairs = pa.array([_pairs(value, kind) for value in values], kind)
    assert pa.table(batch).column("f").combine_chunks().equals(as_pairs)


def _pairs(value, kind):
    """The value with lists of pairs for maps, as pyarrow takes it."""
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, dict) else value
        return [(key, _pairs(one, kind.item_type)) for key, one in pairs]
    if pa.types.is_struct(kind):
        return {child.name: _pairs(value.get(child.name), child.type) for child in kind}
    return [_pairs(one, kind.value_type) for one in value]


@pytest.mark.parametrize(
    "value", ["ab", ["ab"], [(1, 2, 3)], {None: 1}, {1: 1.5}, {1.5: 1}, 5, [(1,)]], ids=repr
)
def test_what_is_no_map_of_its_type_is_an_error_of_its_row(value):
    schema = pa.schema({"f": pa.map_(pa.int64(), pa.int64())})
    with pytest.raises(ProviderError, match=r"column 'f', row 1: .*expected map<int64, int64>"):
        sf.open([{"f": {1: 2}}, {"f": value}], schema=schema)


def test_masked_arrays_among_lists_are_refused():
    with pytest.raises(ProviderError, match=r"column 'x', row 0: .* filled"):
        sf.open([{"x": np.ma.masked_array([1, 2], [False, True])}])


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2], [np.float16(1.5)]],
        [[1, 2], np.array([1.5], np.float16)],
        [[[1, 2]], [[3, np.float16(1.5)]]],
        [([1],), ([np.float16(1.5)],)],
    ],
)
def test_a_half_among_integers_is_an_error_since_arrow_would_cut_it(rows):
    with pytest.raises(
        sf.ProviderError, match=r"row 1: found .*1\.5.*Arrow would cut a float16 among integers"
    ):
        sf.open({"a": rows})


DAY, TIME = dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5, 678901)
UNLIKE = [
    [DAY, TIME], [TIME, DAY], [DAY, None, TIME], [TIME, TIME.replace(tzinfo=dt.UTC)], [TIME.replace(tzinfo=dt.UTC), TIME],
    [[DAY], [TIME]], [{"a": DAY}, {"a": TIME}], [[{"a": [DAY]}], [{"a": [TIME]}]], ["a", b"b"], [True, 2],
    [np.float16(0.5), 1], [[1, np.float16(0.5)]], [dt.time(1), dt.time(1, tzinfo=dt.UTC)], [2**53 + 1, 0.5], [-1, 2**63],
]  # fmt: skip
ALIKE = [
    [1, 1.5], [Decimal("1.5"), Decimal("100.25"), 7], [dt.time(1), dt.time(1, 2, 3, 4)], [dt.timedelta(1), dt.timedelta(0, 0, 1)],
    [[], [1], [1.5]], [None, DAY], [None, TIME], ["a", None], [b"a"], [{"a": 1}, {"a": 0.5}], [True, None], [0.5, None],
]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "is_alike"), [(one, True) for one in ALIKE] + [(one, False) for one in UNLIKE], ids=repr
)
@pytest.mark.parametrize("form", ["rows", "stream", "column", "frame", "frames", "record"])
def test_columns_of_python_values_have_a_type_for_all_of_them_or_are_an_error(values, is_alike, form):
    if form.startswith(("frame", "record")):
        pandas = pytest.importorskip("pandas")
        source = pandas.DataFrame({"x": pandas.Series(values, dtype=object)})
    else:
        rows = [{"x": value} for value in values]
        source = {"rows": rows, "stream": lambda: iter(rows), "column": {"x": values}}[form]

    def read():
        if form == "record" and type(values[0]) is not Decimal:  # which has no tensor
            return sf.to_arrow(sf.from_arrow(source, valid=True)).column("x")
        provider = sf.open((lambda: iter([source])) if form == "frames" else source)
        return pa.chunked_array([provider.read(block).column("x") for block in provider.blocks()])

    if not is_alike:
        with pytest.raises(ProviderError):
            read()
    else:
        assert read().to_pylist() == values
