"""A loader and a mix as a stream of Arrow record batches."""

import pyarrow as pa
import pytest

import seqflow as sf

TABLE = pa.table(
    {"ids": pa.array([[1, 2], [], [3], [4, 5, 6], []], pa.list_(pa.int32())), "name": list("abcde")}
)


def test_the_batches_of_an_epoch_are_the_rows_of_the_source():
    loader = sf.Loader(TABLE, batch=2)
    reader = pa.RecordBatchReader.from_stream(loader)
    assert [batch.num_rows for batch in reader] == [2, 2, 1]
    assert loader.epoch == 1
    assert pa.table(loader).equals(TABLE)
    assert loader.epoch == 2


def test_a_stream_goes_on_where_the_loader_is():
    loader = sf.Loader(TABLE, batch=2)
    next(iter(loader))
    state = loader.state_dict()
    other = sf.Loader(TABLE, batch=2)
    other.load_state_dict(state)
    assert pa.table(other).column("name").to_pylist() == ["c", "d", "e"]


def test_a_mix_is_a_stream_too_with_the_source_of_each_row():
    sources = {"a": sf.Loader(TABLE, batch=2), "b": sf.Loader(TABLE, batch=2)}
    mixed = pa.table(sf.Mix(sources, weights={"a": 1, "b": 1}, column="source"))
    assert sorted(set(mixed.column("source").to_pylist())) == [0, 1]


def test_no_batches_have_the_schema_of_batches():
    assert pa.table(sf.Loader(TABLE[:0], batch=2)).schema == TABLE.schema


def test_batches_of_other_types_are_an_error_that_names_the_column():
    loader = sf.Loader(TABLE, batch=2, net="x, _ = pad(ids.values, ids.lengths)\nreturn x")
    with pytest.raises(
        pa.ArrowInvalid, match=r"column 'x' is fixed_size_list<item: int32>\[3\], expected .*\[2\]"
    ):
        pa.table(loader)


def test_an_error_on_the_way_has_its_message():
    def fail_at_third(record):
        if 3 in record["ids.values"]:
            raise ValueError("the third row is bad")
        return record

    with pytest.raises(Exception, match="the third row is bad"):
        pa.table(sf.Loader(TABLE, batch=2, net=fail_at_third))
