"""Records and moving their rows."""

import numpy as np
import pyarrow as pa
import pytest

from seqflow.errors import OpIndexError, ProviderError, UnknownColumnError
from seqflow.record import concat_records, from_arrow, nbytes, slice_rows, take_rows, to_arrow
from seqflow.record.record import parents_by_name

BATCH = pa.record_batch({"c": pa.array([[[1], [2, 3]], [], [[4]]]), "x": pa.array([1.0, 2.0, 3.0])})


def test_a_record_is_a_mapping_of_tensors():
    record = from_arrow(BATCH)
    assert list(record) == ["c.lengths", "c.values.lengths", "c.values.values", "x"]
    assert "x" in record
    assert dict(record)["x"] is record["x"]
    assert {**record}.keys() == record.keys() == set(record)
    assert [name for name, tensor in record.items() if tensor is record["x"]] == ["x"]
    assert len(record.values()) == 4


def test_the_length_of_a_record_is_an_error_that_says_what_to_write():
    record = from_arrow(BATCH)
    with pytest.raises(TypeError, match=r"batch.num_rows counts its rows, len\(batch.tensors\) its tensors"):
        len(record)
    with pytest.raises(ValueError, match=r"ask batch.num_rows > 0, or batch is not None"):
        bool(record)
    assert (record.num_rows, len(record.tensors)) == (3, 4)


def test_a_record_equals_itself_only():
    record = from_arrow(BATCH)
    assert record == record
    assert record != from_arrow(BATCH)
    assert len({record, record}) == 1


def test_an_unknown_tensor_names_the_nearest():
    with pytest.raises(UnknownColumnError, match=r"no tensor 'c.length' \(did you mean 'c.lengths'\?\)"):
        from_arrow(BATCH)["c.length"]


def test_slices_are_views_on_every_level():
    record = from_arrow(BATCH)
    part = slice_rows(record, 0, 2)
    assert all(part[name].base is not None and np.shares_memory(part[name], record[name]) for name in record)


def test_limits_of_a_slice_are_those_of_python():
    record = from_arrow(BATCH)
    assert slice_rows(record, -1, 99)["x"].tolist() == [3.0]
    assert slice_rows(record, 2, 1).num_rows == 0


def test_taken_rows_bring_everything_below_them():
    record = take_rows(from_arrow(BATCH), np.array([2, 0, 2]))
    assert to_arrow(record).to_pydict() == {"c": [[[4]], [[1], [2, 3]], [[4]]], "x": [3.0, 1.0, 3.0]}


def test_no_rows_may_be_taken():
    assert take_rows(from_arrow(BATCH), [])["c.values.values"].shape == (0,)


@pytest.mark.parametrize("indices", [[0, 3], [0, -1]])
def test_an_index_outside_the_rows_is_an_error_that_names_it(indices):
    with pytest.raises(OpIndexError, match=rf"indices\[1\] = {indices[1]} is outside \[0, 3\)"):
        take_rows(from_arrow(BATCH), indices)


def test_indices_must_be_integers():
    with pytest.raises(OpIndexError, match="1-D integer array"):
        take_rows(from_arrow(BATCH), [0.5])


def test_records_of_other_tensors_do_not_join():
    other = from_arrow(pa.record_batch({"x": [1.0]}))
    with pytest.raises(ProviderError, match="one record has the tensors"):
        concat_records([from_arrow(BATCH), other])


def test_records_of_other_dtypes_do_not_join():
    other = from_arrow(pa.record_batch({"x": pa.array([1], pa.int8())}))
    with pytest.raises(ProviderError, match=r"x is float64\[_\] in one record and int8\[_\] in another"):
        concat_records([from_arrow(pa.record_batch({"x": [1.0]})), other])


def test_no_records_do_not_join():
    with pytest.raises(ProviderError, match="no record"):
        concat_records([])


def test_codes_are_renumbered_where_dictionaries_differ():
    one, two = (
        from_arrow(pa.record_batch({"c": pa.array(words).dictionary_encode()}))
        for words in (["a", "b"], ["b", "c", "b"])
    )
    joined = concat_records([one, two])
    assert joined["c"].tolist() == [0, 1, 1, 2, 1]
    assert to_arrow(joined).column("c").to_pylist() == ["a", "b", "b", "c", "b"]


def test_a_dictionary_that_outgrows_its_codes_is_an_error():
    codes = pa.array(range(100), pa.int8())
    one, two = (
        from_arrow(pa.record_batch({"c": pa.DictionaryArray.from_arrays(codes, range(start, start + 100))}))
        for start in (0, 100)
    )
    with pytest.raises(ProviderError, match="200 values does not fit codes of dtype int8"):
        concat_records([one, two])


def test_nbytes_counts_all_tensors():
    assert nbytes(from_arrow(BATCH)) == 3 * 8 + 3 * 8 + 4 * 8 + 3 * 8


def test_parents_may_be_told_by_name():
    names = dict.fromkeys(
        ["c.lengths", "c.values.lengths", "c.values.values.x", "c.valid", "c.keys", "d.values"]
    )
    assert parents_by_name(names) == {
        "c.lengths": None,
        "c.values.lengths": "c.lengths",
        "c.values.values.x": "c.values.lengths",
        "c.valid": None,
        "c.keys": "c.lengths",
        "d.values": None,
    }
