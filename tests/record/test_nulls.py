"""Nulls: never surfacing, empty for lists, an error, a fill or a mask for values."""

import numpy as np
import pyarrow as pa
import pytest

from seqflow.errors import ProviderError
from seqflow.record import BadRow, find_bad_rows, from_arrow, to_arrow


def tensors(array, **options):
    record = from_arrow(pa.record_batch({"c": array}), **options)
    return {name: tensor.tolist() for name, tensor in record.items()}


def hiding(kind=None):
    """Lists [1, 2], null, [5]; under the null are 3 and 4."""
    array = pa.array([[1, 2], [3, 4], [5]], kind)
    mask = pa.array([False, True, False])
    return type(array).from_arrays(array.offsets, array.values, mask=mask)


def test_a_null_list_is_empty():
    assert tensors(pa.array([[1], None, [2]])) == {"c.lengths": [1, 0, 1], "c.values": [1, 2]}


def test_a_null_string_is_empty():
    assert tensors(pa.array(["a", None])) == {"c.lengths": [1, 0], "c.values": [97]}


@pytest.mark.parametrize("kind", [None, pa.large_list(pa.int64())])
def test_values_under_a_null_list_never_surface(kind):
    assert tensors(hiding(kind)) == {"c.lengths": [2, 0, 1], "c.values": [1, 2, 5]}
    assert tensors(hiding(kind).slice(1)) == {"c.lengths": [0, 1], "c.values": [5]}


def test_values_under_a_null_list_view_never_surface():
    array = pa.ListViewArray.from_arrays(
        [0, 2, 4], [2, 2, 1], pa.array([1, 2, 3, 4, 5]), mask=pa.array([False, True, False])
    )
    assert tensors(array) == {"c.lengths": [2, 0, 1], "c.values": [1, 2, 5]}


def test_strings_under_a_null_struct_never_surface():
    array = pa.StructArray.from_arrays([pa.array(["ab", "secret"])], ["t"], mask=pa.array([False, True]))
    assert tensors(array) == {"c.t.lengths": [2, 0], "c.t.values": [97, 98]}


def test_deep_values_under_a_null_list_never_surface():
    inner = pa.array([[[1]], [[2], [3]], [[4]]])
    array = pa.ListArray.from_arrays(inner.offsets, inner.values, mask=pa.array([False, True, False]))
    assert tensors(array)["c.values.values"] == [1, 4]


def test_null_lists_without_content_cost_no_copy():
    array = pa.array([[1], None, [2]])
    values = from_arrow(array).values
    assert values.__array_interface__["data"][0] == array.values.buffers()[1].address


def test_a_null_map_is_empty():
    array = pa.array([[(1, 2)], None], pa.map_(pa.int8(), pa.int8()))
    assert tensors(array) == {"c.lengths": [1, 0], "c.keys": [1], "c.values": [2]}


def test_a_null_row_of_fixed_size_lists_of_lists_is_empty():
    array = pa.array([[[1], [2]], None], pa.list_(pa.list_(pa.int8()), 2))
    assert tensors(array) == {"c.lengths": [2, 0], "c.values.lengths": [1, 1], "c.values.values": [1, 2]}


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
    filled = from_arrow(pa.record_batch({"c": array}), fill=0)[name]
    assert filled.dtype == before.dtype
    assert np.array_equal(filled[: len(before)], before)
    assert not filled.flags.writeable


@pytest.mark.parametrize(("array", "row", "name"), VALUES, ids=IDS)
def test_a_mask_says_which_values_are_null(array, row, name):
    record = from_arrow(pa.record_batch({"c": array}), valid=True)
    mask = record[f"{name}.valid"]
    assert mask.shape == record[name].shape
    assert not mask.all()
    assert not record[name][~mask].any()
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
    rows = [bad.row for bad in find_bad_rows(pa.record_batch({"c": array}))]
    assert rows[0] == row
    assert find_bad_rows(pa.record_batch({"c": array}), fill=0) == []
    assert find_bad_rows(pa.record_batch({"c": array}), valid=True) == []


def test_bad_rows_come_once_per_column_in_order_across_chunks():
    a = pa.chunked_array([pa.array([1, None]), pa.array([3, None])])
    b = pa.array([[1], [None, None], [], []])
    assert find_bad_rows(pa.table({"a": a, "b": b})) == [
        BadRow(1, "a", "null value in a"),
        BadRow(1, "b", "null value in b.values"),
        BadRow(3, "a", "null value in a"),
    ]


def test_bad_rows_are_found_below_empty_lists():
    array = pa.array([[], [[]], [], [[], [1, None]], [[2]], []], pa.list_(pa.list_(pa.int8())))
    assert [bad.row for bad in find_bad_rows(pa.record_batch({"c": array}))] == [3]
