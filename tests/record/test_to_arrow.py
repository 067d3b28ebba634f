"""What tensors become in Arrow, with and without a schema to go by."""

import re
import time

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError
from seqflow.record import Record, from_arrow, take_rows, to_arrow


def record(tensors, parents=None, num_rows=2):
    parents = dict.fromkeys(tensors) | (parents or {})
    return Record({name: np.asarray(tensor) for name, tensor in tensors.items()}, parents, num_rows)


def address(array):
    return array.__array_interface__["data"][0]


def test_values_and_lengths_become_a_list_column_named_after_the_values():
    batch = to_arrow(record({"c.lengths": [2, 1], "c.values": [1, 2, 3]}, {"c.values": "c.lengths"}))
    assert batch.to_pydict() == {"c": [[1, 2], [3]]}


def test_several_values_of_one_lengths_become_several_columns():
    batch = to_arrow(record({"n": [2, 0], "x": [1, 2], "y": [True, False]}, {"x": "n", "y": "n"}))
    assert batch.to_pydict() == {"x": [[1, 2], []], "y": [[True, False], []]}


def test_levels_of_lengths_become_lists_of_lists():
    batch = to_arrow(record({"m": [2, 0], "n": [1, 2], "x": [1, 2, 3]}, {"n": "m", "x": "n"}))
    assert batch.to_pydict() == {"x": [[[1], [2, 3]], []]}


def test_lengths_that_describe_nothing_stay_a_column_of_integers():
    assert to_arrow(record({"c.lengths": [2, 1]})).to_pydict() == {"c.lengths": [2, 1]}


def test_extra_axes_become_fixed_size_lists():
    batch = to_arrow(record({"x": np.arange(12).reshape(2, 3, 2)}))
    assert batch.schema.field("x").type == pa.list_(pa.list_(pa.int64(), 2), 3)
    assert batch.to_pydict()["x"] == np.arange(12).reshape(2, 3, 2).tolist()


def test_values_with_extra_axes_become_lists_of_fixed_size_lists():
    batch = to_arrow(record({"n": [1, 2], "x": np.ones((3, 2))}, {"x": "n"}))
    assert batch.to_pydict() == {"x": [[[1.0, 1.0]], [[1.0, 1.0]] * 2]}


def test_masks_become_nulls():
    batch = to_arrow(
        record(
            {
                "c.lengths": [1, 0],
                "c.valid": [True, False],
                "c.values": [7],
                "c.values.valid": [False],
                "x": [1, 2],
                "x.valid": [False, True],
            },
            {"c.values": "c.lengths", "c.values.valid": "c.lengths"},
        )
    )
    assert batch.to_pydict() == {"c": [[None], None], "x": [None, 2]}


def test_a_mask_of_nothing_is_a_column():
    assert to_arrow(record({"c.valid": [True, False]})).to_pydict() == {"c.valid": [True, False]}


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("bool", pa.bool_()),
        ("float16", pa.float16()),
        (">i4", pa.int32()),
        ("M8[D]", pa.date32()),
        ("M8[ms]", pa.timestamp("ms")),
        ("M8[h]", pa.timestamp("s")),
        ("m8[ns]", pa.duration("ns")),
        ("m8[D]", pa.duration("s")),
    ],
)
def test_dtypes_without_a_schema_become_their_arrow_type(dtype, kind):
    values = np.array([0, 1]).astype(dtype)
    batch = to_arrow(record({"x": values}))
    assert batch.schema.field("x").type == kind
    assert from_arrow(batch)["x"].tolist() == values.astype(from_arrow(batch)["x"].dtype).tolist()


@pytest.mark.parametrize("values", [np.array([1j, 2j]), np.array([None, 1], object)])
def test_a_dtype_arrow_does_not_know_is_an_error(values):
    with pytest.raises(ProviderError, match="x has dtype"):
        to_arrow(record({"x": values}))


def test_a_tensor_of_other_rows_is_an_error():
    with pytest.raises(ProviderError, match="x has 3 rows, but the record has 2"):
        to_arrow(record({"x": [1, 2, 3]}))
    with pytest.raises(ProviderError, match=r"x has 4 rows, but sum\(n\) is 3"):
        to_arrow(record({"n": [1, 2], "x": [1, 2, 3, 4]}, {"x": "n"}))
    with pytest.raises(ProviderError, match="loss is a scalar"):
        to_arrow(record({"loss": 1.0}))


def test_values_share_memory_with_the_column():
    values = np.arange(3)
    batch = to_arrow(record({"c.lengths": [2, 1], "c.values": values}, {"c.values": "c.lengths"}))
    assert batch.column("c").values.buffers()[1].address == address(values)


def test_values_that_came_from_arrow_go_back_without_a_copy():
    array = pa.array(["ab", "c"])
    back = to_arrow(from_arrow(pa.record_batch({"c": array})))
    assert back.column("c").buffers()[2].address == array.buffers()[2].address


def test_strided_values_are_copied():
    assert to_arrow(record({"x": np.arange(4)[::2]})).to_pydict() == {"x": [0, 2]}


def test_a_schema_gives_each_column_its_type_back():
    batch = pa.record_batch(
        {
            "m": pa.array([[("a", [1])], []], pa.map_(pa.string(), pa.large_list(pa.int8()))),
            "t": pa.ExtensionArray.from_storage(
                pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=[1, 0]),
                pa.array([list(range(6))] * 2, pa.list_(pa.int32(), 6)),
            ),
            "u": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * 2, pa.binary(16))),
            "d": pa.array(["x", "y"]).dictionary_encode(),
            "e": pa.array([[{}, {}], []], pa.list_(pa.struct([]))),
        }
    )
    back = to_arrow(from_arrow(batch))
    assert back.schema.equals(batch.schema)
    assert back.equals(batch)


def test_field_and_schema_metadata_come_back():
    schema = pa.schema(
        [pa.field("x", pa.int64(), nullable=False, metadata={"unit": "m"})], metadata={"made": "here"}
    )
    batch = pa.record_batch([pa.array([1])], schema=schema)
    assert to_arrow(from_arrow(batch)).schema.equals(schema, check_metadata=True)


def test_a_column_whose_tensors_changed_dtype_is_derived_anew():
    first = from_arrow(pa.record_batch({"c": pa.array([[1], [2]], pa.large_list(pa.int8())), "x": [1, 2]}))
    tensors = {**first.tensors, "c.values": first["c.values"] * 1.5}
    back = to_arrow(Record(tensors, first.parents, 2, first.schema))
    assert back.schema.field("c").type == pa.list_(pa.float64())
    assert back.to_pydict() == {"c": [[1.5], [3.0]], "x": [1, 2]}


def test_new_tensors_come_after_the_columns_of_the_schema():
    first = from_arrow(pa.record_batch({"c": [[1], [2]]}))
    tensors = {"score": np.array([0.5, 0.6]), **first.tensors}
    back = to_arrow(Record(tensors, {"score": None, **first.parents}, 2, first.schema))
    assert back.to_pydict() == {"score": [0.5, 0.6], "c": [[1], [2]]}


def test_a_tensor_named_like_a_field_that_the_type_lacks_is_not_lost():
    first = from_arrow(pa.record_batch({"s": [{"x": 1}, {"x": 2}]}))
    tensors = {**first.tensors, "s.y": np.array([3, 4])}
    back = to_arrow(Record(tensors, {**first.parents, "s.y": None}, 2, first.schema))
    assert back.to_pydict() == {"s.x": [1, 2], "s.y": [3, 4]}


def test_bytes_that_are_no_longer_utf8_do_not_become_a_string():
    first = from_arrow(pa.record_batch({"c": ["ab", "c"]}))
    tensors = {**first.tensors, "c.values": np.array([0xFF, 0xFF, 0xFF], np.uint8)}
    back = to_arrow(Record(tensors, first.parents, 2, first.schema))
    back.validate(full=True)
    assert back.to_pydict() == {"c": [[255, 255], [255]]}


def test_codes_outside_the_dictionary_stay_numbers():
    first = from_arrow(pa.record_batch({"c": pa.array(["a", None]).dictionary_encode()}), fill=-1)
    assert to_arrow(first).to_pydict() == {"c": [0, -1]}


def test_fixed_size_lists_that_lost_an_element_become_lists():
    first = from_arrow(pa.record_batch({"c": pa.array([[[1], [2]]], pa.list_(pa.list_(pa.int8()), 2))}))
    tensors = {
        "c.lengths": np.array([1]),
        "c.values.lengths": np.array([1]),
        "c.values.values": np.array([1], np.int8),
    }
    assert to_arrow(Record(tensors, first.parents, 1, first.schema)).to_pydict() == {"c": [[[1]]]}


def test_strings_after_taking_rows_are_strings():
    first = from_arrow(pa.record_batch({"c": ["é", "b"]}))
    assert to_arrow(take_rows(first, [1, 0, 0])).to_pydict() == {"c": ["b", "é", "é"]}


def test_a_record_without_tensors_keeps_its_rows():
    assert to_arrow(Record({}, {}, 3)).num_rows == 3


@pytest.mark.parametrize("tensors", [{"x": np.ones(3)}, np.ones(3), None])
def test_what_is_no_record_is_refused_by_name(tensors):
    with pytest.raises(
        sf.ProviderError, match=rf"to_arrow: found {type(tensors).__name__}, expected a record or a Sequence"
    ) as error:
        sf.to_arrow(tensors)
    assert isinstance(error.value, TypeError)


def test_strings_become_text_and_bytes_binary_with_nulls_where_a_mask_says():
    tensors = {"t": ["a", "語"], "b": [b"x", b"yy"], "n": ["", "z"], "n.valid": [False, True], "e": ["q"]}
    tensors |= {"e.lengths": [1, 0]}
    batch = to_arrow(record(tensors, {"e": "e.lengths"}))
    assert batch.to_pydict() == {"t": ["a", "語"], "b": [b"x", b"yy"], "n": [None, "z"], "e": [["q"], []]}
    assert batch.schema.types == [pa.string(), pa.binary(), pa.string(), pa.list_(pa.string())]
    assert to_arrow(record({"t": np.empty(0, "U1")}, num_rows=0)).schema.types == [pa.string()]


def test_strings_with_further_axes_become_lists_of_a_fixed_size():
    tensors = {
        "t": [["a", "b"], ["é", ""]],
        "t.valid": [True, False],
        "t.values.valid": [[True, False], [True, True]],
    }
    batch = to_arrow(record(tensors | {"b": np.array([[[b"x"]], [[b"y"]]])}))
    batch.validate(full=True)
    assert batch.to_pydict() == {"t": [["a", None], None], "b": [[[b"x"]], [[b"y"]]]}
    assert to_arrow(record({"t": np.empty((2, 0), "U1")})).to_pydict() == {"t": [[], []]}


@pytest.mark.parametrize(
    ("tensor", "found"),
    [
        (np.array(["a"], object), "dtype object"),
        (np.array(["a"], np.dtypes.StringDType()), "StringDType"),
        (np.array(["\ud800"]), "a text that cannot be encoded as UTF-8"),
        (np.array([1], "M8[ps]"), "datetime64.ps"),
        (np.array([1], "m8[M]"), "timedelta64.M"),
    ],
)
def test_what_arrow_has_no_type_for_is_refused(tensor, found):
    with pytest.raises(ProviderError, match=f"to_arrow: x has {found}|to_arrow: x has dtype {found}"):
        to_arrow(record({"x": tensor}, num_rows=1))


@pytest.mark.parametrize(
    ("tensor", "kind"), [("M8[D]", None), ("M8[D]", pa.date32()), ("m8[s]", pa.time32("s"))]
)
@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40, -(2**63)])
def test_times_are_not_cut_to_32_bits(tensor, kind, value):
    schema = kind and pa.schema({"x": kind})
    times = np.array([5, value]).view(tensor)
    with pytest.raises(ProviderError, match=f"{times[1]} is not a value of (date|time)32"):
        to_arrow(Record({"x": times}, {"x": None}, 2, schema))
    masked = Record({"x": times, "x.valid": np.array([True, False])}, {"x": None, "x.valid": None}, 2, schema)
    assert to_arrow(masked).column(0).null_count == 1


@pytest.mark.parametrize(
    ("kind", "fits", "unfit"),
    [(pa.time32("s"), 86399, 86400), (pa.time64("us"), 0, -1), (pa.date64(), 86_400_000, 3_600_000)],
    ids=str,
)
def test_times_that_readers_would_cut_are_errors_where_they_are_not_null(kind, fits, unfit):
    times = np.array([fits, unfit]).view("M8[ms]" if kind == pa.date64() else f"m8[{kind.unit}]")
    schema = pa.schema({"x": kind})
    with pytest.raises(ProviderError, match=f"to_arrow: {times[1]} is not a value of {re.escape(str(kind))}"):
        to_arrow(Record({"x": times}, {"x": None}, 2, schema))
    masked = Record({"x": times, "x.valid": np.array([True, False])}, {"x": None, "x.valid": None}, 2, schema)
    assert to_arrow(masked).column(0).null_count == 1
    with pytest.raises(ProviderError, match="is not a value of x"):
        from_arrow(pa.table({"x": pa.nulls(1, kind)}), fill={"x": times[1]})
    assert from_arrow(pa.table({"x": pa.nulls(1, kind)}), fill={"x": times[0]})["x"][0] == times[0]


def test_texts_end_at_their_last_letter_not_at_a_nul():
    for texts in (np.array(["a\0b", "", "é"]), np.array([b"a\0b", b"", b"\xff"])):
        assert to_arrow(record({"x": texts}, num_rows=3)).column(0).to_pylist() == texts.tolist()


def test_times_in_units_that_arrow_does_not_have_keep_their_values():
    for unit in ("m", "h", "W", "M8[M]", "M8[Y]", "25s", "7ms"):
        times = np.array([1, 2]).view(unit if unit.startswith("M8") else f"M8[{unit}]")
        assert np.array_equal(to_arrow(record({"x": times})).column(0), times)
    with pytest.raises(ProviderError, match=r"x has datetime64.Y. that datetime64.s. cannot hold"):
        to_arrow(record({"x": np.array([1, 2**40]).view("M8[Y]")}))


def test_columns_below_more_lengths_keep_their_type_in_lists():
    batch = pa.record_batch(
        {
            "text": ["ab", "c", "d"],
            "time": pa.array([1, 2, 3], pa.timestamp("s", "UTC")),
            "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
            "place": [{"x": 1, "y": [2]}, {"x": 3, "y": []}, {"x": 4, "y": [5, 6]}],
            "images": pa.array([[{"id": 1, "bytes": b"q"}], None, [{"id": 2, "bytes": b""}, {"id": 3, "bytes": b"r"}]]),
            "n": pa.array([1, 2, 3], pa.int16()),
        }
    )  # fmt: skip
    rows = from_arrow(batch, valid=["images"])
    parents = {name: parent or "pieces" for name, parent in rows.parents.items()}
    tensors = {"pieces": np.array([2, 1]), **rows.tensors}
    packed = Record(tensors, {"pieces": None, **parents}, 2, rows.schema, rows.dictionaries)
    back = to_arrow(packed)
    assert back.schema.names == batch.schema.names
    for name in back.schema.names:
        assert back.schema.field(name).type == pa.list_(batch.schema.field(name).type)
        first, second = back[name].to_pylist()
        assert first + second == batch[name].to_pylist()
    # values of another dtype do not fit: each tensor of the column is one of its own
    tensors["place.x"] = tensors["place.x"].astype(np.float32)
    changed = to_arrow(Record(tensors, packed.parents, 2, rows.schema, rows.dictionaries))
    assert [name for name in changed.schema.names if name.startswith("place")] == ["place.x", "place.y"]
    assert changed["place.y"].to_pylist() == [[[2], []], [[5, 6]]]


@pytest.mark.slow
def test_the_time_grows_with_the_number_of_columns_and_no_faster():
    def seconds(columns):
        lists, masked = pa.array([[1, 2], [3]]), pa.array([1, None])
        table = pa.table({f"c{at}": lists if at % 2 else masked for at in range(columns)})
        record, took = from_arrow(table, valid=True), []
        for _ in range(5):
            start = time.process_time()
            to_arrow(record)
            took.append(time.process_time() - start)
        return min(took)

    # linear is 8, and twice that on a busy machine; a copy of all names for each column takes 25 times as long
    assert seconds(4000) < 16 * seconds(500)
