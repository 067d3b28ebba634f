"""What Arrow columns become: names, dtypes, and memory that is shared."""

import decimal

import numpy as np
import pyarrow as pa
import pytest

from seqflow.errors import ProviderError, UnknownColumnError
from seqflow.record import Record, convert, from_arrow, to_arrow
from seqflow.sequence import Sequence


def tensors(array, **options):
    record = from_arrow(pa.record_batch({"c": array}), **options)
    return {name: tensor.tolist() for name, tensor in record.items()}


def address(array):
    return array.__array_interface__["data"][0]


def within(tensor, buffer):
    return (
        buffer.address <= address(tensor) and address(tensor) + tensor.nbytes <= buffer.address + buffer.size
    )


LISTS = [[1, 2], [], [3]]
NESTED = [[[1], [2, 3]], [], [[], [4]]]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, 2]), {"c": [1, 2]}),
        (pa.array([True, False] * 5), {"c": [True, False] * 5}),
        (pa.array(LISTS), {"c.lengths": [2, 0, 1], "c.values": [1, 2, 3]}),
        (pa.array(LISTS, pa.large_list(pa.int8())), {"c.lengths": [2, 0, 1], "c.values": [1, 2, 3]}),
        (pa.array(LISTS, pa.list_view(pa.int8())), {"c.lengths": [2, 0, 1], "c.values": [1, 2, 3]}),
        (pa.array(LISTS, pa.large_list_view(pa.int8())), {"c.lengths": [2, 0, 1], "c.values": [1, 2, 3]}),
        (
            pa.array(NESTED),
            {"c.lengths": [2, 0, 2], "c.values.lengths": [1, 2, 0, 1], "c.values.values": [1, 2, 3, 4]},
        ),
        (pa.array([{"x": 1, "y": 2.0}]), {"c.x": [1], "c.y": [2.0]}),
        (
            pa.array([[{"x": 1, "t": "ab"}], [], [{"x": 2, "t": ""}]]),
            {
                "c.lengths": [1, 0, 1],
                "c.values.x": [1, 2],
                "c.values.t.lengths": [2, 0],
                "c.values.t.values": [97, 98],
            },
        ),
        (
            pa.array([[(1, 2), (3, 4)], []], pa.map_(pa.int8(), pa.int8())),
            {"c.lengths": [2, 0], "c.keys": [1, 3], "c.values": [2, 4]},
        ),
        (
            pa.array([[(7, [1, 2]), (8, [])], [(9, [3])]], pa.map_(pa.int64(), pa.list_(pa.int64()))),
            {
                "c.lengths": [2, 1],
                "c.keys": [7, 8, 9],
                "c.values.lengths": [2, 0, 1],
                "c.values.values": [1, 2, 3],
            },
        ),
        (pa.array(["é", ""]), {"c.lengths": [2, 0], "c.values": [0xC3, 0xA9]}),
        (pa.array([b"a", b""], pa.large_binary()), {"c.lengths": [1, 0], "c.values": [97]}),
        (pa.array(["a", "b" * 20], pa.string_view()), {"c.lengths": [1, 20], "c.values": [97] + [98] * 20}),
        (pa.array([b"abc"], pa.binary(3)), {"c": [[97, 98, 99]]}),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)), {"c": [[1, 2], [3, 4]]}),
        (
            pa.array([[[1, 2], [3, 4]]], pa.list_(pa.list_(pa.int8(), 2), 2)),
            {"c": [[[1, 2], [3, 4]]]},
        ),
        (
            pa.array([[[1], []], [[2], [3]]], pa.list_(pa.list_(pa.int8()), 2)),
            {"c.lengths": [2, 2], "c.values.lengths": [1, 0, 1, 1], "c.values.values": [1, 2, 3]},
        ),
        (pa.array(["x", "y", "x"]).dictionary_encode(), {"c": [0, 1, 0]}),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_each_type_becomes_tensors_of_documented_names(array, expected):
    assert tensors(array) == expected


@pytest.mark.parametrize(
    ("kind", "stored", "dtype"),
    [
        (pa.float16(), pa.uint16(), "float16"),
        (pa.uint64(), pa.uint64(), "uint64"),
        (pa.timestamp("us", "UTC"), pa.int64(), "M8[us]"),
        (pa.date32(), pa.int32(), "M8[D]"),
        (pa.date64(), pa.int64(), "M8[ms]"),
        (pa.time32("s"), pa.int32(), "m8[s]"),
        (pa.time64("ns"), pa.int64(), "m8[ns]"),
        (pa.duration("ms"), pa.int64(), "m8[ms]"),
    ],
    ids=str,
)
def test_numbers_and_times_keep_their_values_and_unit(kind, stored, dtype):
    array = pa.array([0, 86_400_000 % 2**16, 7], stored).view(kind)
    tensor = from_arrow(pa.record_batch({"c": array}))["c"]
    assert tensor.dtype == np.dtype(dtype)
    assert tensor.view(f"i{tensor.itemsize}").tolist() == [0, 86_400_000 % 2**16, 7]


def test_a_fixed_shape_tensor_has_its_axes_in_the_order_the_type_shows():
    kind = pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=[1, 0])
    array = pa.ExtensionArray.from_storage(kind, pa.array([list(range(6))] * 2, pa.list_(pa.int32(), 6)))
    tensor = from_arrow(pa.record_batch({"c": array}))["c"]
    assert tensor.shape == (2, 3, 2)
    assert np.array_equal(tensor, array.to_numpy_ndarray())


def test_other_extension_types_are_read_as_what_they_store():
    array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))
    assert from_arrow(pa.record_batch({"c": array}))["c"].shape == (1, 16)


SHARED = [
    (pa.array(range(10), pa.int16()), "c", 1),
    (pa.array([[i] * i for i in range(10)], pa.list_(pa.float32())), "c.values", 3),
    (pa.array([[i] * i for i in range(10)], pa.large_list(pa.int64())), "c.values", 3),
    (pa.array([[i] * i for i in range(10)], pa.list_view(pa.int64())), "c.values", 4),
    (pa.array([[[i] * i] for i in range(10)]), "c.values.values", 5),
    (pa.array(["ab"] * 10), "c.values", 2),
    (pa.array([[i, i] for i in range(10)], pa.list_(pa.int64(), 2)), "c", 2),
    (pa.array([[{"x": i}] for i in range(10)]), "c.values.x", 4),
    (pa.array([b"abc"] * 10, pa.binary(3)), "c", 1),
    (pa.array(range(10), pa.timestamp("s")), "c", 1),
    (pa.array(["a", "b"] * 5).dictionary_encode(), "c", 1),
]


@pytest.mark.parametrize(
    ("array", "name", "buffer"), SHARED, ids=lambda value: str(getattr(value, "type", ""))
)
@pytest.mark.parametrize("start", [0, 3])
def test_values_are_the_arrow_buffer_also_of_a_slice(array, name, buffer, start):
    tensor = from_arrow(pa.record_batch({"c": array.slice(start, 5)}))[name]
    assert within(tensor, array.buffers()[buffer])
    assert len(tensor)
    assert not tensor.flags.writeable


def test_a_slice_starts_at_its_own_first_value():
    array = pa.array([[1, 2], [3], [4, 5, 6], []])
    values, lengths = from_arrow(array.slice(1, 2)).unpack()
    assert values.tolist() == [3, 4, 5, 6]
    assert lengths.tolist() == [1, 3]
    assert address(values) == array.buffers()[3].address + 2 * 8


def test_offsets_need_not_start_at_0():
    array = pa.ListArray.from_arrays(pa.array([2, 3, 5], pa.int32()), pa.array([9, 9, 1, 2, 3]))
    assert tensors(array) == {"c.lengths": [1, 2], "c.values": [1, 2, 3]}


def test_a_list_view_may_have_its_lists_in_any_order():
    array = pa.ListViewArray.from_arrays([3, 0, 0], [2, 1, 2], pa.array([1, 2, 3, 4, 5]))
    assert tensors(array) == {"c.lengths": [2, 1, 2], "c.values": [4, 5, 1, 1, 2]}


def test_a_list_view_of_strings_views_may_have_its_lists_in_any_order():
    array = pa.ListViewArray.from_arrays([1, 0], [1, 1], pa.array(["a", "bc"], pa.string_view()))
    assert tensors(array)["c.values.values"] == [98, 99, 97]


def test_lengths_are_int64_and_read_only():
    lengths = from_arrow(pa.array(LISTS)).lengths
    assert lengths.dtype == np.int64
    assert not lengths.flags.writeable


def test_tensors_keep_the_arrow_memory_alive():
    values = from_arrow(pa.array([list(range(100_000))])).values
    ballast = [pa.array([[0] * 100_000]) for _ in range(3)]
    assert values[-1] == 99_999
    assert len(ballast) == 3


def test_bools_are_unpacked_from_any_bit():
    bits = [i % 3 == 0 for i in range(40)]
    assert tensors(pa.array(bits).slice(5, 30))["c"] == bits[5:35]


@pytest.mark.parametrize("columns", [(LISTS, [[4]]), (NESTED, [[[5]]]), (["a"], ["b", ""])])
def test_several_chunks_are_joined(columns):
    chunked = pa.chunked_array([pa.array(rows) for rows in columns])
    whole = pa.array([row for rows in columns for row in rows])
    record = from_arrow(pa.table({"c": chunked}))
    expected = from_arrow(pa.table({"c": whole}))
    assert {name: tensor.tolist() for name, tensor in record.items()} == {
        name: tensor.tolist() for name, tensor in expected.items()
    }
    assert not record["c.lengths"].flags.writeable


def test_one_chunk_is_not_copied():
    array = pa.array([1, 2, 3])
    assert within(from_arrow(pa.table({"c": array}))["c"], array.buffers()[1])


def test_chunks_with_other_dictionaries_get_one():
    chunks = [pa.array(words).dictionary_encode() for words in (["x", "y"], ["y", "z"])]
    record = from_arrow(pa.table({"c": pa.chunked_array([chunk.cast(chunks[0].type) for chunk in chunks])}))
    assert [record.dictionaries["c"][code].as_py() for code in record["c"].tolist()] == ["x", "y", "y", "z"]


@pytest.mark.parametrize(
    "array", [pa.array(LISTS), pa.array(NESTED), pa.array(["a"]), pa.array([{"x": [1]}])]
)
def test_an_empty_array_has_the_same_tensors_of_0_rows(array):
    full = from_arrow(pa.record_batch({"c": array}))
    for empty in (array.slice(0, 0), pa.array([], array.type)):
        record = from_arrow(pa.record_batch({"c": empty}))
        assert {name: (tensor.dtype, len(tensor)) for name, tensor in record.items()} == {
            name: (tensor.dtype, 0) for name, tensor in full.items()
        }
    assert from_arrow(pa.schema({"c": array.type}).empty_table()).parents == full.parents


def test_parents_say_whose_rows_a_tensor_holds():
    record = from_arrow(pa.record_batch({"c": pa.array(NESTED), "x": pa.array([1, 2, 3])}))
    assert record.parents == {
        "c.lengths": None,
        "c.values.lengths": "c.lengths",
        "c.values.values": "c.values.lengths",
        "x": None,
    }


def test_columns_pick_columns_and_fields():
    table = pa.table({"a": [1], "b": [[{"x": 1, "y": "t"}]], "c": [2]})
    record = from_arrow(table, columns=["c", "b.x"])
    assert list(record) == ["c", "b.lengths", "b.values.x"]


def test_an_unknown_column_names_the_nearest():
    with pytest.raises(UnknownColumnError, match="'tokens'"):
        from_arrow(pa.table({"tokens": [1]}), columns=["token"])


def test_an_unknown_field_names_the_nearest():
    with pytest.raises(UnknownColumnError, match="'title'"):
        from_arrow(pa.table({"docs": [{"title": 1}]}), columns=["docs.titel"])


NAMES = [
    (pa.table({"a.b": [1]}), "has a dot", {"a.b": "ab"}),
    (pa.table({"c": [{"lengths": 1}]}), "lengths tensor", {"c.lengths": "n"}),
    (pa.table({"c": [[{"values": 1}]]}), "values tensor", {"c.values": "v"}),
    (pa.table({"c": [[[{"valid": 1}]]]}), "valid tensor", {"c.valid": "v"}),
    (pa.table([[1], [2]], names=["c", "c"]), "two columns", ["c", "d"]),
]


@pytest.mark.parametrize(("table", "message", "rename"), NAMES)
def test_names_that_collide_are_errors_that_rename_mends(table, message, rename):
    with pytest.raises(ProviderError, match=f"{message}.*\n.*rename="):
        from_arrow(table)
    assert from_arrow(table, rename=rename).num_rows == table.num_rows


def test_renaming_keeps_the_memory():
    array = pa.array([[{"lengths": 1, "t": "a"}]])
    record = from_arrow(pa.table({"c": array}), rename={"c.lengths": "sizes", "c": "d"})
    assert list(record) == ["d.lengths", "d.values.sizes", "d.values.t.lengths", "d.values.t.values"]
    assert within(record["d.values.sizes"], array.values.field(0).buffers()[1])


@pytest.mark.parametrize(
    ("array", "advice"),
    [
        (pa.array([decimal.Decimal(1)]), "cast it to a float"),
        (pa.nulls(1), "no value tells its type: declare it with schema="),
        (pa.array([[decimal.Decimal(1)]]), "c.values has type decimal"),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_other_types_are_errors_that_say_what_to_do(array, advice):
    with pytest.raises(ProviderError, match="column 'c'") as caught:
        from_arrow(pa.record_batch({"c": array}))
    assert advice in str(caught.value)


def test_offsets_that_decrease_are_an_error():
    offsets = pa.py_buffer(np.array([0, 3, 1], np.int32))
    array = pa.Array.from_buffers(pa.list_(pa.int64()), 2, [None, offsets], children=[pa.array([1, 2, 3])])
    with pytest.raises(ProviderError, match="decrease at row 1"):
        from_arrow(pa.record_batch({"c": array}))


@pytest.mark.parametrize("valid", [None, b"\x05"])
@pytest.mark.parametrize("kind", [pa.large_list(pa.int32()), pa.large_binary()])
def test_offsets_whose_differences_overflow_are_an_error(valid, kind):
    offsets = pa.py_buffer(np.array([0, 2**63 - 1, -(2**63) + 5, 3]))
    buffers = [None if valid is None else pa.py_buffer(valid), offsets]
    if kind == pa.large_binary():
        array = pa.Array.from_buffers(kind, 3, [*buffers, pa.py_buffer(b"abcdef")])
    else:
        array = pa.Array.from_buffers(kind, 3, buffers, children=[pa.array([1, 2, 3, 4, 5, 6], pa.int32())])
    for options in ({}, {"valid": True}, {"fill": []}):
        with pytest.raises(ProviderError, match="Arrow"):
            from_arrow(pa.record_batch({"c": array}), **options)


def test_offsets_beyond_the_values_are_an_error():
    array = pa.ListArray.from_arrays(pa.array([0, 9, 3], pa.int32()), pa.array([1, 2, 3])).slice(0, 1)
    with pytest.raises(ProviderError, match=r"offsets \(9\) larger than values array \(length 3\)"):
        from_arrow(array)


class Exporting:
    """Something that is not pyarrow's, and speaks Arrow's protocols."""

    def __init__(self, obj, protocol):
        setattr(type(self), protocol, lambda self, *args: getattr(obj, protocol)(*args))


@pytest.mark.parametrize("protocol", ["__arrow_c_stream__", "__arrow_c_array__"])
def test_whatever_speaks_arrow_is_read(protocol):
    kind = type("Foreign", (Exporting,), {})
    batch = pa.record_batch({"c": pa.array(LISTS)})
    source = pa.table(batch) if protocol == "__arrow_c_stream__" else batch
    assert from_arrow(kind(source, protocol))["c.values"].tolist() == [1, 2, 3]


def test_a_struct_array_is_read_like_a_batch():
    array = pa.array([{"x": 1}, {"x": 2}]).slice(1)
    assert from_arrow(array)["x"].tolist() == [2]
    assert from_arrow(pa.chunked_array([array, array]))["x"].tolist() == [2, 2]


@pytest.mark.parametrize("obj", [[1, 2], {"a": [1]}, None, "x"])
def test_what_holds_no_arrow_columns_is_an_error(obj):
    with pytest.raises(ProviderError, match="expected a record batch"):
        from_arrow(obj)


def test_a_list_array_gives_a_sequence():
    sequence = from_arrow(pa.array(LISTS))
    assert isinstance(sequence, Sequence)
    assert (sequence.values.tolist(), sequence.lengths.tolist()) == ([1, 2, 3], [2, 0, 1])


@pytest.mark.parametrize(
    "array",
    [
        pa.array(LISTS),
        pa.array(NESTED),
        pa.array([], pa.list_(pa.int32())),
        pa.array([[[1.0, 2.0]], []], pa.list_(pa.list_(pa.float64(), 2))),
    ],
)
def test_to_arrow_is_the_inverse_for_a_sequence(array):
    again = to_arrow(from_arrow(array))
    assert again.to_pylist() == array.to_pylist()
    assert from_arrow(again).lod == from_arrow(array).lod


def test_a_column_of_lists_of_lists_gives_a_sequence_of_two_levels():
    column = from_arrow(pa.chunked_array([pa.array(NESTED), pa.array(NESTED)]))
    values, *lengths = column.unpack()
    assert [level.tolist() for level in lengths] == [[2, 0, 2] * 2, [1, 2, 0, 1] * 2]
    assert values.tolist() == [1, 2, 3, 4] * 2
    assert len(column) == 6
    assert column[2].to_lists() == [[], [4]]
    assert column.to_lists() == NESTED * 2


def test_one_array_has_no_columns_to_pick():
    with pytest.raises(ProviderError, match="no columns to pick or rename"):
        from_arrow(pa.array(LISTS), columns=["values"])


def test_a_column_of_numbers_gives_one_tensor():
    assert from_arrow(pa.array([1, 2])).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("array", "names"),
    [
        (pa.array([{"x": 1}]), ["x"]),
        (pa.array([[{"x": 1}]]), ["lengths", "values.x"]),
        (pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())), ["lengths", "keys", "values"]),
    ],
)
def test_an_array_that_is_no_sequence_gives_a_record(array, names):
    record = from_arrow(array)
    assert isinstance(record, Record)
    assert list(record) == names


def test_good_rows_are_not_bad():
    assert convert(pa.table({"c": NESTED, "d": ["a", "", "b"]}))[1] == []


class Offered:
    """What offers Arrow data without being pyarrow's."""

    def __init__(self, data):
        name = "__arrow_c_stream__" if hasattr(data, "__arrow_c_stream__") else "__arrow_c_array__"
        setattr(type(self), name, lambda self, schema=None: getattr(data, name)(schema))


def offered(data):
    return type("Series", (Offered,), {})(data)


@pytest.mark.parametrize("array", [pa.array([[1, 2], [], [3]]), pa.chunked_array([[[1, 2], []], [[3]]])])
def test_a_column_that_another_library_offers_is_a_column(array):
    sequence = from_arrow(offered(array))
    values, lengths = sequence.values, sequence.lengths
    assert (values.tolist(), lengths.tolist()) == ([1, 2, 3], [2, 0, 1])
    assert from_arrow(offered(array.cast(pa.large_list(pa.int8())))).values.dtype == np.int8


def test_offered_columns_of_numbers_and_of_structs():
    assert from_arrow(offered(pa.array([1, 2]))).tolist() == [1, 2]
    numbers = pa.array([1, 2])
    assert address(from_arrow(offered(numbers))) == numbers.buffers()[1].address
    structs = pa.array([{"x": 1, "y": [2]}])
    for data in (structs, pa.chunked_array([structs]), pa.RecordBatch.from_struct_array(structs)):
        assert list(from_arrow(offered(data))) == ["x", "y.lengths", "y.values"]


def test_a_polars_series_is_a_column_and_a_frame_a_record():
    pl = pytest.importorskip("polars")
    sequence = from_arrow(pl.Series([[1, 2], [], [3]]))
    values, lengths = sequence.values, sequence.lengths
    assert (values.tolist(), lengths.tolist()) == ([1, 2, 3], [2, 0, 1])
    assert from_arrow(pl.Series(["ab", ""])).lengths.tolist() == [2, 0]
    assert list(from_arrow(pl.DataFrame({"x": [1], "y": [[2]]}))) == ["x", "y.lengths", "y.values"]
    with pytest.raises(ProviderError, match="row 0: null value"):
        from_arrow(pl.Series([[None, 1]]))
    assert from_arrow(pl.Series([[None, 1]]), fill=7).values.tolist() == [7, 1]


EMPTY = pa.struct([])


@pytest.mark.parametrize("valid", [False, True])
@pytest.mark.parametrize("kind", [
    EMPTY, pa.struct([("a", EMPTY)]), pa.struct([("a", EMPTY), ("b", pa.int64())]), pa.list_(EMPTY), pa.large_list(pa.list_(EMPTY)),
    pa.list_(EMPTY, 1), pa.map_(pa.string(), EMPTY), pa.struct([("a", pa.list_(EMPTY))]),
], ids=str)  # fmt: skip
def test_structs_without_fields_are_kept_or_refused_never_left_out(kind, valid):
    values = {EMPTY: {}, pa.int64(): 1}

    def value(kind):
        if pa.types.is_struct(kind):
            return {one.name: value(one.type) for one in kind}
        if pa.types.is_map(kind):
            return [("k", value(kind.item_type))]
        return [value(kind.value_type)] if pa.types.is_nested(kind) else values[kind]

    table = pa.table({"c": pa.array([value(kind), value(kind)], kind), "k": [1, 2]})
    assert from_arrow(table, columns=["k"])["k"].tolist() == [1, 2]
    if valid or kind not in (EMPTY, pa.struct([("a", EMPTY)])):
        assert to_arrow(from_arrow(table, valid=valid)).to_pylist() == table.to_pylist()
        return
    with pytest.raises(ProviderError, match=r"c has type struct<.*, which has no tensor form"):
        from_arrow(table)
