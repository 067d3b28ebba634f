"""Pad: padded list columns of batches."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import BatchPlanError, LodError, OpError, SeqflowError, UnknownColumnError
from seqflow.loader.arguments import pads_of
from seqflow.loader.plans.window_rows import Pad, WindowRows
from seqflow.record import Record, from_arrow
from seqflow.record.batch_memory import BatchMemory

TOKENS = [[1, 2, 3], [], [4], [5, 6]]


def window(order=None, **columns):
    """The columns as a window of two records."""
    batch = pa.record_batch(
        columns or {"tokens": pa.array(TOKENS, pa.list_(pa.int32())), "x": pa.array([0, 1, 2, 3])}
    )
    half = batch.num_rows // 2
    parts = (batch.slice(0, half), batch.slice(half))
    return WindowRows([from_arrow(part) for part in parts], order)


def take_padded(rows, places, pads, memory=None):
    return replace(rows, pads=pads).take(places, memory)


def test_a_list_column_becomes_an_array_a_mask_and_lengths():
    batch = take_padded(window(), np.array([3, 0]), {"tokens": Pad(dtype="int64")})
    assert batch["tokens"].dtype == np.int64
    assert batch["tokens"].tolist() == [[5, 6, 0], [1, 2, 3]]
    assert batch["tokens.mask"].tolist() == [[True, True, False], [True, True, True]]
    assert batch["tokens.lengths"].tolist() == [2, 3]
    assert batch["x"].tolist() == [3, 0]
    assert set(batch) == {"tokens", "tokens.mask", "tokens.lengths", "x"}
    assert set(batch.parents.values()) == {None}


def test_rows_are_places_in_the_order_of_the_window():
    ordered = window(np.array([2, 0, 3, 1]))
    assert take_padded(ordered, slice(0, 2), {"tokens": Pad()})["tokens"].tolist() == [[4, 0, 0], [1, 2, 3]]
    assert take_padded(window(), slice(2, 4), {"tokens": Pad(7)})["tokens"].tolist() == [[4, 7], [5, 6]]


def test_the_width_is_rounded_up_or_given():
    rows = np.array([2, 3])
    assert take_padded(window(), rows, {"tokens": Pad(multiple_of=8)})["tokens"].shape == (2, 8)
    assert take_padded(window(), rows, {"tokens": Pad(max_length=5)})["tokens"].shape == (2, 5)
    assert take_padded(window(), rows[:0], {"tokens": Pad()})["tokens"].shape == (0, 0)


def test_rows_above_max_length_are_cut_or_an_error():
    rows = np.array([3, 0])
    with pytest.raises(LodError, match=r"row 1 of the batch has 3 elements, expected at most max_length = 2"):
        take_padded(window(), rows, {"tokens": Pad(max_length=2)})
    cut = take_padded(window(), rows, {"tokens": Pad(max_length=2, truncate=True)})
    assert (cut["tokens"].tolist(), cut["tokens.lengths"].tolist()) == ([[5, 6], [1, 2]], [2, 2])
    left = take_padded(window(), rows, {"tokens": Pad(max_length=2, truncate=True, side="left")})
    assert left["tokens"].tolist() == [[5, 6], [2, 3]]


def test_padding_on_the_left_and_no_mask():
    batch = take_padded(window(), np.array([2, 0]), {"tokens": Pad(-1, side="left", mask=False)})
    assert batch["tokens"].tolist() == [[-1, -1, 4], [1, 2, 3]]
    assert set(batch) == {"tokens", "tokens.lengths", "x"}


def test_rows_of_lists_of_fixed_size_keep_their_shape():
    pairs = pa.array([[[1, 2]], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.float32(), 2)))
    batch = take_padded(window(pairs=pairs), np.array([0, 1]), {"pairs": Pad(9, "float64")})
    assert batch["pairs"].tolist() == [[[1, 2], [9, 9]], [[3, 4], [5, 6]]]


def test_tensors_with_the_same_lengths_are_padded_one_by_one():
    tensors = {
        "c.lengths": np.array([1, 2]), "c.values": np.array([1, 2, 3]), "weights": np.array([0.5, 1, 2]),
    }  # fmt: skip
    record = Record(tensors, {"c.lengths": None, "c.values": "c.lengths", "weights": "c.lengths"}, 2)
    rows = WindowRows([record])
    both = take_padded(rows, np.array([1, 0]), {"c": Pad(), "weights": Pad()})
    assert both["weights"].tolist() == [[1, 2], [0.5, 0]]
    assert set(both) == {f"{name}{end}" for name in ("c", "weights") for end in ("", ".mask", ".lengths")}
    one = take_padded(rows, np.array([1, 0]), {"c": Pad()})
    assert one["weights"].tolist() == [1, 2, 0.5]
    assert (one.parents["weights"], one["c.lengths"].tolist()) == ("c.lengths", [2, 1])
    with pytest.raises(
        BatchPlanError, match="c is cut to max_length, but weights with the same lengths is not padded"
    ):
        take_padded(rows, np.array([1, 0]), {"c": Pad(max_length=1, truncate=True)})


def test_codes_keep_their_dictionary():
    codes = pa.array([["a", "b"], ["c"]], pa.list_(pa.dictionary(pa.int8(), pa.string())))
    batch = take_padded(window(codes=codes), np.array([1, 0]), {"codes": Pad(-1, "int64")})
    texts = batch.dictionaries["codes"].to_pylist()
    assert [[texts[code] for code in row if code >= 0] for row in batch["codes"]] == [["c"], ["a", "b"]]


def test_memory_is_used_again():
    memory, rows = BatchMemory(), window()
    first = take_padded(rows, np.array([0, 1]), {"tokens": Pad()}, memory)
    second = take_padded(rows, np.array([3, 2]), {"tokens": Pad()}, memory)
    assert second["tokens"].tolist() == [[5, 6], [4, 0]]
    assert np.shares_memory(first["tokens"], second["tokens"])
    assert np.shares_memory(first["tokens.mask"], second["tokens.mask"])


@pytest.mark.parametrize(
    ("column", "name", "error", "message"),
    [
        (TOKENS, "tokns", UnknownColumnError, r"no list column 'tokns' \(did you mean 'tokens'\?\)"),
        ([1, 2], "tokens", BatchPlanError, "tokens has one entry a row, expected a list column of numbers"),
        ([[[1]], []], "tokens", BatchPlanError, "tokens holds lists of lists, expected lists of numbers"),
        ([[[1]], []], "tokens.values", BatchPlanError, "tokens.values is a list inside of lists"),
        (pa.array([[1]], pa.list_(pa.timestamp("s"))), "tokens", BatchPlanError, r"holds datetime64\[s\]"),
    ],
)
def test_what_is_not_a_list_column_of_numbers_is_an_error(column, name, error, message):
    array = column if isinstance(column, pa.Array) else pa.array(column)
    with pytest.raises(error, match=message):
        take_padded(window(tokens=array), np.array([0]), {name: Pad()})


def test_numbers_that_do_not_fit_are_errors():
    large = window(tokens=pa.array([[1], [2**40]]))
    with pytest.raises(OpError, match="tokens has the value 1099511627776, which int32 cannot hold"):
        take_padded(large, np.array([0, 1]), {"tokens": Pad(dtype="int32")})
    with pytest.raises(OpError, match="fill is 300, which uint8 cannot hold"):
        take_padded(window(tokens=pa.array([[1]], pa.list_(pa.uint8()))), np.array([0]), {"tokens": Pad(300)})


@pytest.mark.parametrize(
    ("source", "dtype"), [("float64", "int64"), ("float32", "uint8"), ("float16", "bool"), ("int64", "bool")]
)
def test_a_dtype_that_the_data_are_not_converted_to_is_an_error(source, dtype):
    table = pa.table({"a": pa.array([[1], [2, 3]], pa.list_(pa.from_numpy_dtype(source)))})
    with pytest.raises(
        SeqflowError, match=f"pad: a holds {source}, which does not become {dtype}, expected a dtype"
    ):
        next(iter(sf.Loader(table, pad={"a": Pad(dtype=dtype)})))


@pytest.mark.parametrize("multiple_of", [1, 4, 8])
@pytest.mark.parametrize("side", ["right", "left"])
def test_max_length_is_the_width_whatever_the_multiple(multiple_of, side):
    table = pa.table({"a": [list(range(9)), [1], []]})
    pad = Pad(0, max_length=5, multiple_of=multiple_of, truncate=True, side=side)
    batch = next(iter(sf.Loader(table, pad={"a": pad})))
    assert batch["a"].shape == batch["a.mask"].shape == (3, 5)
    assert batch["a.lengths"].tolist() == batch["a.mask"].sum(axis=1).tolist() == [5, 1, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"side": "top"}, "side is 'top', expected 'right' or 'left'"),
        ({"multiple_of": 0}, "multiple_of is 0, expected an integer, 1 or more"),
        ({"max_length": 2.5}, "max_length is 2.5, expected an integer"),
        ({"truncate": True}, "truncate=True needs max_length"),
        ({"fill": "0"}, "fill is '0', expected a number"),
        ({"dtype": "int65"}, "dtype is 'int65', expected a dtype of numbers"),
        ({"dtype": "M8[s]"}, r"dtype is datetime64\[s\], expected one of numbers"),
        ({"fill": -1, "dtype": "uint8"}, "fill is -1, which uint8 cannot hold"),
    ],
)
def test_a_wrong_option_says_what_is_expected(options, message):
    with pytest.raises(OpError, match=message):
        Pad(**options)


def test_a_number_stands_for_padding_with_it():
    record = window().records[0]
    assert pads_of(0, lambda: record) == {"tokens": Pad(0)}
    assert pads_of({"tokens": 3}, record) == {"tokens": sf.Pad(3)}
    assert pads_of(Pad(1, "int64"), lambda: record) == {"tokens": Pad(1, np.int64)}
    with pytest.raises(BatchPlanError, match="pad: there is not just one list column"):
        pads_of(0, lambda: from_arrow(pa.record_batch({"x": [1]})))


@given(
    st.lists(st.lists(st.integers(0, 200), max_size=40), min_size=1, max_size=9),
    st.sampled_from(["int8", "uint8", "int32", "int64", "uint64", "float16", "float32"]),
    st.sampled_from([None, "int64", "int32", "uint16", "float32", "float64"]),
    st.sampled_from(["right", "left"]),
    st.data(),
)
def test_it_is_taking_rows_and_padding_them(lists, source, target, side, data):
    lists = [[value // 2 for value in values] for values in lists]
    column = pa.array([np.array(values, source) for values in lists], pa.list_(pa.from_numpy_dtype(source)))
    rows = np.array(data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=6)), np.int64)
    floats = np.dtype(source).kind == "f"
    dtype = None if floats and target is not None and np.dtype(target).kind != "f" else target
    found = take_padded(window(c=column), rows, {"c": Pad(1, dtype, side)})
    taken = window(c=column).take(rows)
    padded, mask = sf.ops.pad(taken["c.values"], taken["c.lengths"], fill=1, side=side)
    np.testing.assert_array_equal(found["c"], padded)
    assert found["c"].dtype == np.dtype(dtype or source)
    np.testing.assert_array_equal(found["c.mask"], mask)
    np.testing.assert_array_equal(found["c.lengths"], taken["c.lengths"])
