"""Nulls of every type at every level: an error, a fill or a mask, and never something else."""

from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.compute import run_end_encode

from seqflow.errors import ProviderError, ProviderOptionError, UnknownColumnError
from seqflow.record import BadRow, convert, from_arrow, to_arrow


def bad_rows_of(table, **options):
    return convert(table, **options)[1]


def tensors(array, **options):
    record = from_arrow(pa.record_batch({"c": array}), **options)
    return {name: tensor.tolist() for name, tensor in record.items()}


def hiding(kind=None):
    """Lists [1, 2], null, [5]; under the null are 3 and 4."""
    array = pa.array([[1, 2], [3, 4], [5]], kind)
    mask = pa.array([False, True, False])
    return type(array).from_arrays(array.offsets, array.values, mask=mask)


NULLS = [
    pa.array([1, None]),
    pa.array(["a", None]),
    pa.array([b"a", None], pa.binary_view()),
    pa.array([[1], None]),
    pa.array([[1], None], pa.list_view(pa.int8())),
    pa.array([[1], None], pa.large_list(pa.int8())),
    pa.array([[[1]], [None]]),
    pa.array([["a"], ["b", None]]),
    pa.array([{"x": 1}, None]),
    pa.array([{"x": "a"}, {"x": None}]),
    pa.array([{}, None], pa.struct([])),
    pa.array([[{"x": [1]}], [None]]),
    pa.array([[(1, 2)], None], pa.map_(pa.int8(), pa.int8())),
    pa.array([[(1, "a")], [(2, None)]], pa.map_(pa.int8(), pa.string())),
    pa.array([[1, 2], None], pa.list_(pa.int8(), 2)),
    pa.array([[1, 2], [None, 3]], pa.list_(pa.int8(), 2)),
    pa.array([[[1], [2]], None], pa.list_(pa.list_(pa.int8()), 2)),
    pa.array([b"ab", None], pa.binary(2)),
    pa.array([True, None]),
    pa.array([0, None], pa.timestamp("s")),
    pa.array(["a", None]).dictionary_encode(),
    pa.array([["a", None]]).cast(pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    run_end_encode(pa.array(["a", None])),
    pa.ListArray.from_arrays([0, 2], run_end_encode(pa.array([1, None]))),
]


@pytest.mark.parametrize("array", NULLS, ids=lambda array: str(array.type))
def test_a_null_of_any_type_at_any_level_is_an_error_or_has_a_mask(array):
    batch = pa.record_batch({"c": array})
    with pytest.raises(ProviderError, match="null value in c"):
        from_arrow(batch)
    assert [bad.row for bad in bad_rows_of(batch)] == [len(array) - 1]
    assert bad_rows_of(batch, valid=True) == bad_rows_of(batch, valid=["c"]) == []
    back = to_arrow(from_arrow(batch, valid=True))
    back.validate(full=True)
    assert back.to_pylist() == batch.to_pylist()


@pytest.mark.parametrize("array", [one for one in NULLS if one.null_count], ids=lambda array: str(array.type))
def test_a_null_in_a_column_that_is_declared_not_null_is_an_error_with_masks_too(array):
    schema = pa.schema([pa.field("c", array.type, nullable=False)])
    with pytest.raises(ProviderError, match="null value in c, which is declared not null"):
        from_arrow(pa.record_batch([array], schema=schema), valid=True)


@pytest.mark.parametrize("kind", [None, pa.large_list(pa.int64())])
def test_values_under_a_null_list_never_surface(kind):
    expected = {"c.lengths": [2, 0, 1], "c.values": [1, 2, 5]}
    assert tensors(hiding(kind), fill=[]) == expected
    assert tensors(hiding(kind).slice(1), fill=[]) == {"c.lengths": [0, 1], "c.values": [5]}
    masked = tensors(hiding(kind), valid=["c"])
    assert {name: masked[name] for name in expected} == expected


def test_values_under_a_null_list_view_never_surface():
    array = pa.ListViewArray.from_arrays(
        [0, 2, 4], [2, 2, 1], pa.array([1, 2, 3, 4, 5]), mask=pa.array([False, True, False])
    )
    assert tensors(array, fill=[]) == {"c.lengths": [2, 0, 1], "c.values": [1, 2, 5]}


def test_strings_under_a_null_struct_never_surface():
    array = pa.StructArray.from_arrays([pa.array(["ab", "secret"])], ["t"], mask=pa.array([False, True]))
    assert tensors(array, fill="") == {"c.t.lengths": [2, 0], "c.t.values": [97, 98]}


def test_deep_values_under_a_null_list_never_surface():
    inner = pa.array([[[1]], [[2], [3]], [[4]]])
    array = pa.ListArray.from_arrays(inner.offsets, inner.values, mask=pa.array([False, True, False]))
    assert tensors(array, fill={"c": []})["c.values.values"] == [1, 4]


def test_values_under_a_null_fixed_size_list_never_surface():
    values = pa.array([1, 2, 3, 4], pa.int8())
    array = pa.FixedSizeListArray.from_arrays(values, 2, mask=pa.array([False, True]))
    assert tensors(array, valid=True)["c"] == [[1, 2], [0, 0]]
    assert tensors(array, fill=9)["c"] == [[1, 2], [9, 9]]


def test_empty_lists_for_nulls_cost_no_copy():
    array = pa.array([[1], None, [2]])
    values = from_arrow(array, fill=[]).values
    assert values.__array_interface__["data"][0] == array.values.buffers()[1].address


FILLS = [
    (pa.array([1, None], pa.int8()), 7, [1, 7]),
    (pa.array([1, None], pa.float32()), 0.1, [1, np.float32(0.1)]),
    (pa.array([True, None]), False, [True, False]),
    (pa.array(["a", None]), "é", ["a", "é"]),
    (pa.array(["a", None], pa.string_view()), "more than twelve bytes", ["a", "more than twelve bytes"]),
    (pa.array([b"a", None], pa.large_binary()), b"\xff", [b"a", b"\xff"]),
    (pa.array([None, [1]]), [2, 3], [[2, 3], [1]]),
    (pa.array([None, [1], None], pa.large_list_view(pa.int8())), (2,), [[2], [1], [2]]),
    (pa.array([None, [[1], []]]), [[2], [3, 4]], [[[2], [3, 4]], [[1], []]]),
    (pa.array([["a", None]]), {"values": "b"}, [["a", "b"]]),
    (pa.array([[None, ["a"]]]), {"values": ["b", "c"]}, [[["b", "c"], ["a"]]]),
    (pa.array([[(1, 2)], None], pa.map_(pa.int8(), pa.int8())), {}, [[(1, 2)], []]),
    (pa.array([[(1, 2)], None], pa.map_(pa.int8(), pa.int8())), {3: 4}, [[(1, 2)], [(3, 4)]]),
    (pa.array([{"x": 1, "y": "a"}, None]), {"x": 2, "y": "b"}, [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}]),
    (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [3, 4], [[1, 2], [3, 4]]),
    (pa.array([[1, 2], [3, None]], pa.list_(pa.int8(), 2)), {"values": 5}, [[1, 2], [3, 5]]),
    (pa.array([[[1], []], None], pa.list_(pa.list_(pa.int8()), 2)), [[2], [3]], [[[1], []], [[2], [3]]]),
    (pa.array([b"ab", None], pa.binary(2)), b"cd", [b"ab", b"cd"]),
    (pa.array([0, None], pa.timestamp("s")), np.datetime64("1970-01-02"), [datetime(1970, 1, 1), datetime(1970, 1, 2)]),
    (pa.array([0, None], pa.timestamp("s")), datetime(1970, 1, 2), [datetime(1970, 1, 1), datetime(1970, 1, 2)]),
    (pa.array([0, None], pa.date32()), date(1970, 1, 2), [date(1970, 1, 1), date(1970, 1, 2)]),
    (pa.array([0, None], pa.time32("s")), time(1), [time(0), time(1)]),
    (pa.array([0, None], pa.duration("ms")), timedelta(1), [timedelta(0), timedelta(1)]),
    (pa.array(["a", None]).dictionary_encode(), "a", ["a", "a"]),
    (pa.array(["a", None]).dictionary_encode(), "b", ["a", "b"]),
    (run_end_encode(pa.array(["a", None])), "b", ["a", "b"]),
    (pa.ListArray.from_arrays([0, 2], run_end_encode(pa.array([1, None]))), {"values": 2}, [[1, 2]]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("array", "fill", "expected"), FILLS, ids=lambda value: str(getattr(value, "type", ""))
)
def test_a_fill_takes_the_place_of_nulls_of_any_type(array, fill, expected):
    batch = pa.record_batch({"c": array})
    back = to_arrow(from_arrow(batch, fill={"c": fill}))
    back.validate(full=True)
    assert back.column(0).to_pylist() == expected
    masked = to_arrow(from_arrow(batch, fill={"c": fill}, valid=True))
    assert masked.to_pylist() == batch.to_pylist()


@pytest.mark.parametrize(
    ("array", "fill"),
    [
        (pa.array(["a", None]), 0),
        (pa.array([[1], None]), "x"),
        (pa.array([[1], None]), [1.5]),
        (pa.array([[1], None]), [None]),
        (pa.array([[1], None], pa.list_(pa.int8())), [300]),
        (pa.array([[(1, 2)], None], pa.map_(pa.int8(), pa.int8())), [1]),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [1]),
        (pa.array([b"ab", None], pa.binary(2)), b"abc"),
        (pa.array([1, None]), []),
        (pa.array([1.5, None], pa.float32()), 1e300),
        (pa.array([1.5, None]), 2**53 + 1),
        (pa.array([0, None], pa.timestamp("s")), 0),
        (pa.array([0, None], pa.timestamp("s")), np.datetime64("2020-01-01T00:00:00.5")),
        (pa.array(["a", None]), b"\xff"),
        (pa.array(["a", None]).dictionary_encode(), 0),
        (pa.array([0, None], pa.duration("s")), np.datetime64("2020-01-01")),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_a_fill_that_a_type_can_not_hold_is_an_error_for_its_nulls(array, fill):
    batch = pa.record_batch({"c": array})
    with pytest.raises(ProviderError, match="is not a value of c"):
        from_arrow(batch, fill=fill)
    with pytest.raises(ProviderOptionError, match="is not a value of c"):
        from_arrow(batch.slice(0, 0), fill={"c": fill})


@pytest.mark.parametrize(
    "fill",
    ["", "NaT", np.datetime64("NaT", "s"), np.datetime64(2**62, "s"), np.timedelta64("NaT", "s"),
     datetime(2020, 1, 1, 12, tzinfo=UTC), time(1, tzinfo=UTC)],
)  # fmt: skip
@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), pa.timestamp("us"), pa.time64("us"), pa.duration("us")]
)
def test_what_is_no_time_of_the_type_fills_nothing(kind, fill):
    with pytest.raises(ProviderError, match="is not a value of c"):
        from_arrow(pa.record_batch({"c": pa.array([None], kind)}), fill=fill)


@pytest.mark.parametrize(
    ("kind", "fill"),
    [
        (pa.date32(), datetime(2020, 1, 1, 12)),
        (pa.date32(), np.datetime64(2**40, "D")),
        (pa.time64("us"), datetime(2020, 1, 1, 12)),
        (pa.time64("us"), timedelta(hours=1)),
        (pa.duration("us"), time(1)),
        (pa.timestamp("s"), datetime(2020, 1, 1, 0, 0, 0, 5)),
    ],
    ids=str,
)
def test_a_time_is_not_cut_to_fill(kind, fill):
    with pytest.raises(ProviderError, match="is not a value of c"):
        from_arrow(pa.record_batch({"c": pa.array([None], kind)}), fill=fill)


def test_a_time_of_a_zone_fills_times_of_any_zone():
    fill = datetime(2020, 1, 1, 12, tzinfo=UTC)
    filled = from_arrow(
        pa.record_batch({"c": pa.array([None], pa.timestamp("s", "Europe/Berlin"))}), fill=fill
    )
    assert filled["c"][0] == np.datetime64("2020-01-01T12")


def test_one_fill_serves_the_columns_whose_type_takes_it():
    table = pa.table({"x": [1, None], "s": ["a", None], "l": [[1], None]})
    assert bad_rows_of(table, fill=0) == [
        BadRow(1, "s", "null value in s, and fill=0 is not a value of s, which has type string"),
        BadRow(
            1,
            "l",
            "null value in l, and fill=0 is not a value of l, which has type list<item: int64>; expected "
            'fill={"l": [], "l.values": 0}',
        ),
    ]
    filled = from_arrow(table, fill={"x": 0, "s": "?", "l": []})
    assert to_arrow(filled).to_pylist()[1] == {"x": 0, "s": "?", "l": []}


@pytest.mark.parametrize(
    "options",
    [{"fill": {"tokns": 0}}, {"fill": {"docs": {"titel": ""}}}, {"fill": {"docs.titel": ""}}, {"valid": ["tokns"]},
     {"columns": ["tokns"]}, {"rename": {"tokns": "x"}}],
)  # fmt: skip
def test_names_that_are_not_there_are_errors_with_the_nearest_name(options):
    table = pa.table({"tokens": [[1]], "docs": [{"title": "a"}]})
    with pytest.raises(UnknownColumnError, match=r"did you mean '(tokens|docs\.title)'"):
        from_arrow(table, **options)


@pytest.mark.parametrize("valid", ["x", 1, None])
def test_valid_is_true_false_or_a_list_of_columns(valid):
    with pytest.raises(ProviderOptionError, match="expected True, False or a list of columns"):
        from_arrow(pa.table({"x": [1]}), valid=valid)


VALUES = [
    (pa.array([1, None]), 1, "c"),
    (pa.array([[1], [2, None], []]), 1, "c.values"),
    (pa.array([[[1]], [[], [2, None]]]), 1, "c.values.values"),
    (pa.array([{"x": 1}, None]), 1, "c.x"),
    (pa.array([[{"x": 1}], [{"x": 2}, None]]), 1, "c.values.x"),
    (pa.array([[1, 2], None, [3, None]], pa.list_(pa.int8(), 2)), 1, "c"),
    (pa.array([[(1, 2)], [(3, None)]], pa.map_(pa.int8(), pa.int8())), 1, "c.values"),
    (pa.array(["a", None]).dictionary_encode(), 1, "c"),
    (pa.DictionaryArray.from_arrays([0, 1], pa.array(["a", None])), 1, "c"),
    (pa.array([b"ab", None], pa.binary(2)), 1, "c"),
    (pa.array([True, None]), 1, "c"),
]
IDS = [str(array.type) for array, _, _ in VALUES]


@pytest.mark.parametrize(("array", "row", "name"), VALUES, ids=IDS)
def test_a_null_value_is_an_error_naming_column_and_row(array, row, name):
    with pytest.raises(ProviderError, match=f"column 'c', row {row}: null value in {name}\n.*fill="):
        from_arrow(pa.record_batch({"c": array}))


@pytest.mark.parametrize(("array", "row", "name"), VALUES, ids=IDS)
def test_a_fill_replaces_null_values(array, row, name):
    before = from_arrow(pa.record_batch({"c": array.slice(0, row)}))[name]
    fill = "a" if pa.types.is_dictionary(array.type) else 0
    filled = from_arrow(pa.record_batch({"c": array}), fill=fill)[name]
    assert filled.dtype == before.dtype
    assert np.array_equal(filled[: len(before)], before)
    assert not filled.flags.writeable


@pytest.mark.parametrize(("array", "row", "name"), VALUES, ids=IDS)
def test_a_mask_says_which_values_are_null(array, row, name):
    record = from_arrow(pa.record_batch({"c": array}), valid=True)
    mask = record[f"{name}.valid"]
    assert len(mask) == len(record[name])
    values = record.tensors.get(f"{name}.values.valid", mask)
    assert not (mask.all() and values.all())
    assert not record[name][~mask].any()
    assert not record[name][~values].any()
    assert record.parents[f"{name}.valid"] == record.parents[name]


def test_integers_never_become_floats():
    big = 2**53 + 1
    assert tensors(pa.array([[big, None]]), fill=-1)["c.values"] == [big, -1]


def test_a_fill_may_be_given_by_column_or_tensor():
    table = pa.table({"a": [1, None], "b": [[2, None], []], "d": [[{"x": None, "y": None}], []]})
    table = table.cast(pa.schema({"a": pa.int8(), "b": pa.list_(pa.int8()), "d": pa.list_(
        pa.struct({"x": pa.int8(), "y": pa.int8()}))}))  # fmt: skip
    record = from_arrow(table, fill={"a": 7, "b": 8, "d": 9, "d.values.y": 10})
    assert record["a"].tolist() == [1, 7]
    assert record["b.values"].tolist() == [2, 8]
    assert record["d.values.x"].tolist() == [9]
    assert record["d.values.y"].tolist() == [10]


@pytest.mark.parametrize(
    ("kind", "fill"),
    [(pa.int8(), 0.5), (pa.int8(), 300), (pa.uint8(), -1), (pa.int64(), float("nan")), (pa.int8(), "x")],
)
def test_a_fill_that_the_dtype_can_not_hold_is_an_error(kind, fill):
    with pytest.raises(ProviderError, match=f"fill={fill!r} is not a value of c"):
        from_arrow(pa.record_batch({"c": pa.array([None], kind)}), fill=fill)


def test_a_float_column_may_be_filled_with_nan():
    assert np.isnan(tensors(pa.array([None], pa.float32()), fill=float("nan"))["c"][0])


def test_a_time_may_be_filled_with_a_time():
    filled = from_arrow(
        pa.record_batch({"c": pa.array([None], pa.timestamp("s"))}), fill=np.datetime64("2020-01-01")
    )
    assert filled["c"][0] == np.datetime64("2020-01-01")


def test_masks_are_there_for_null_lists_and_values_alike():
    assert tensors(pa.array([[1, None], None, []]), valid=True) == {
        "c.lengths": [2, 0, 0],
        "c.valid": [True, False, True],
        "c.values": [1, 0],
        "c.values.valid": [True, False],
    }


def test_masks_depend_on_the_schema_alone():
    assert tensors(pa.array([1]), valid=True) == {"c": [1], "c.valid": [True]}
    batch = pa.record_batch([pa.array([1])], schema=pa.schema([pa.field("c", pa.int64(), nullable=False)]))
    assert list(from_arrow(batch, valid=True)) == ["c"]


def test_fill_and_masks_go_together():
    assert tensors(pa.array([1, None]), fill=9, valid=True) == {"c": [1, 9], "c.valid": [True, False]}


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None, 3]),
        pa.array([[1, None], None, []]),
        pa.array([[[1], None], None, [[], [None]]]),
        pa.array(["a", None, ""]),
        pa.array([[(1, None)], None], pa.map_(pa.int8(), pa.int8())),
        pa.array(["x", None]).dictionary_encode(),
        pa.array([b"ab", None], pa.binary(2)),
        pa.array([[1, None], [3, 4]], pa.list_(pa.int8(), 2)),
        pa.array([True, None, False]),
    ],
    ids=lambda array: str(array.type),
)
def test_masks_bring_nulls_back_to_arrow(array):
    batch = pa.record_batch({"c": array})
    assert to_arrow(from_arrow(batch, valid=True)).equals(batch)


@pytest.mark.parametrize(("array", "row", "name"), VALUES, ids=IDS)
def test_bad_rows_are_the_outermost_rows(array, row, name):
    rows = [bad.row for bad in bad_rows_of(pa.record_batch({"c": array}))]
    assert rows[0] == row
    fill = "a" if pa.types.is_dictionary(array.type) else 0
    assert bad_rows_of(pa.record_batch({"c": array}), fill=fill) == []
    assert bad_rows_of(pa.record_batch({"c": array}), valid=True) == []


def test_bad_rows_come_once_per_column_in_order_across_chunks():
    a = pa.chunked_array([pa.array([1, None]), pa.array([3, None])])
    b = pa.array([[1], [None, None], [], []])
    assert bad_rows_of(pa.table({"a": a, "b": b})) == [
        BadRow(1, "a", "null value in a"),
        BadRow(1, "b", "null value in b.values"),
        BadRow(3, "a", "null value in a"),
    ]


def test_bad_rows_are_found_below_empty_lists():
    array = pa.array([[], [[]], [], [[], [1, None]], [[2]], []], pa.list_(pa.list_(pa.int8())))
    assert [bad.row for bad in bad_rows_of(pa.record_batch({"c": array}))] == [3]


@pytest.mark.parametrize(
    ("array", "fill", "expected"),
    [
        (pa.array([[1, 2], None]), -1, '{"x": [], "x.values": -1}'),
        (pa.array([[[1]], None]), -1, '{"x": [], "x.values": [], "x.values.values": -1}'),
        (pa.array([["a"], None]), "", '{"x": [], "x.values": \'\'}'),
        (pa.array([[0.5], None], pa.large_list(pa.float32())), 0.0, '{"x": [], "x.values": 0.0}'),
        (pa.array([[1], None], pa.list_view(pa.int8())), 7, '{"x": [], "x.values": 7}'),
    ],
)
def test_the_refusal_of_a_fill_for_a_list_names_the_fill_of_lists_and_values(array, fill, expected):
    with pytest.raises(ProviderError) as error:
        from_arrow(pa.table({"x": array}), fill=fill)
    assert f"; expected fill={expected}\n" in str(error.value)
    from_arrow(pa.table({"x": array}), fill=eval(expected))  # the advice is followed


@pytest.mark.parametrize(
    ("array", "fill"),
    [(pa.array([[1], None]), "a"), (pa.array(["a", None]), 1)],
)
def test_a_fill_that_fits_no_level_gets_no_such_advice(array, fill):
    with pytest.raises((ProviderError, ProviderOptionError)) as error:
        from_arrow(pa.table({"x": array}), fill=fill)
    assert "expected fill=" not in str(error.value)
