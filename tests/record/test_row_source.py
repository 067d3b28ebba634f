"""RowSource: rows of several records, gathered without joining them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.batches import batches

from seqflow.errors import OpIndexError, ProviderError
from seqflow.record import Record, concat_records, from_arrow, slice_rows, take_rows, to_arrow
from seqflow.record.batch_memory import BatchMemory
from seqflow.record.record import parents_by_name
from seqflow.record.row_source import RowSource


def records_of(*columns):
    return [from_arrow(pa.record_batch({"c": column})) for column in columns]


LISTS = records_of(pa.array([[1, 2], []]), pa.array([], pa.list_(pa.int64())), pa.array([[3], [4, 5, 6]]))


def same(found, expected):
    """The same tensors, of the same dtypes, under the same lengths."""
    assert list(found) == list(expected)
    assert (dict(found.parents), found.num_rows) == (dict(expected.parents), expected.num_rows)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        np.testing.assert_array_equal(found[name], tensor)
    assert to_arrow(found).equals(to_arrow(expected))
    return True


def test_rows_are_counted_over_all_records():
    taken = RowSource(LISTS).take_known(np.array([3, 0, 3, 1]))
    assert to_arrow(taken).to_pydict() == {"c": [[4, 5, 6], [1, 2], [4, 5, 6], []]}
    assert taken["c.values"].flags.writeable


def test_the_lengths_of_all_rows_are_there_to_plan_on():
    source = RowSource(LISTS)
    assert (source.num_rows, source.tensor("c.lengths").tolist()) == (4, [2, 0, 1, 3])


def test_a_row_outside_the_records_is_an_index_error():
    for rows in ([0, 4], [-1]):
        with pytest.raises(OpIndexError, match=r"outside \[0, 4\)"):
            take_rows(concat_records(LISTS), rows)
    with pytest.raises(OpIndexError, match="must be a 1-D integer array"):
        take_rows(concat_records(LISTS), [0.5])


def test_records_must_have_the_same_tensors():
    with pytest.raises(
        ProviderError, match=r"c.values is int64\[_\] in one record and float64\[_\] in another"
    ):
        RowSource(records_of(pa.array([[1]]), pa.array([[1.0]])))
    with pytest.raises(ProviderError, match="there is no record"):
        RowSource([])


def test_dictionaries_that_differ_are_merged():
    source = RowSource(
        records_of(*(pa.array(texts).dictionary_encode() for texts in (["a", "b"], ["c", "a"])))
    )
    assert to_arrow(source.take_known(np.array([2, 0, 3, 1]))).to_pydict() == {"c": ["c", "a", "a", "b"]}
    assert to_arrow(source.slice(2, 3)).column("c").dictionary.to_pylist() == ["a", "b", "c"]


def test_a_slice_inside_one_record_is_a_view():
    source = RowSource(LISTS)
    assert np.shares_memory(source.slice(2, 4)["c.values"], LISTS[2]["c.values"])
    assert to_arrow(source.slice(1, 3)).to_pydict() == {"c": [[], [3]]}
    assert source.slice(4, 9).num_rows == source.slice(2, 2).num_rows == 0


def test_memory_is_written_anew_by_the_next_batch():
    source, memory = RowSource(LISTS), BatchMemory()
    first = source.take_known(np.array([3]), memory)
    assert first["c.values"].tolist() == [4, 5, 6]
    second = source.take_known(np.array([0]), memory)
    assert second["c.values"].tolist() == [1, 2]
    assert np.shares_memory(first["c.values"], second["c.values"])
    assert first["c.values"].ctypes.data % 64 == 0
    many = source.take_known(np.array([3] * 1000), memory)
    assert many["c.values"].tolist() == [4, 5, 6] * 1000
    assert memory.nbytes >= many["c.values"].nbytes


def test_lengths_keep_their_dtype():
    tensors = {"c.lengths": np.array([2, 0], np.int32), "c.values": np.array([[1, 2], [3, 4]])}
    record = Record(tensors, parents_by_name(tensors), 2)
    assert same(RowSource([record, record]).take_known(np.array([2, 1, 0])), take_rows(record, [0, 1, 0]))


@given(batches(min_rows=1), st.lists(st.integers(0, 6), max_size=3), st.data())
def test_it_is_what_taking_rows_of_the_joined_records_gives(batch, stops, data):
    stops = sorted(min(stop, batch.num_rows) for stop in stops)
    limits = zip([0, *stops], [*stops, batch.num_rows], strict=True)
    records = [from_arrow(batch.slice(start, stop - start)) for start, stop in limits]
    rows = data.draw(st.lists(st.integers(0, batch.num_rows - 1), max_size=8))
    source, memory = RowSource(records), BatchMemory()
    joined = concat_records(records)
    assert same(source.take_known(np.array(rows, np.int64)), take_rows(joined, rows))
    assert same(source.take_known(np.array(rows, np.int64), memory), take_rows(joined, rows))
    start, stop = sorted(data.draw(st.tuples(st.integers(0, 7), st.integers(0, 7))))
    assert same(source.slice(start, stop), slice_rows(joined, start, stop))
