"""Streams that can be read once."""

import polars as pl
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError

TABLE = pa.table({"c": [[i] * i for i in range(6)], "s": [{"x": i, "y": str(i)} for i in range(6)]})


def reader():
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=2))


class Foreign:
    """Someone else's stream."""

    def __init__(self, stream):
        self.stream = stream

    def __arrow_c_stream__(self, requested_schema=None):
        return self.stream.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("foreign", [False, True])
def test_batches_are_blocks_of_unknown_number(foreign):
    provider = sf.open(Foreign(reader()) if foreign else reader())
    assert provider.num_rows is None
    rows = [(block.index, block.num_rows, provider.read(block).num_rows) for block in provider.blocks()]
    assert rows == [(0, 2, 2), (1, 2, 2), (2, 2, 2)]


def test_a_column_is_read_with_fields_and_new_names():
    provider = sf.open(reader(), columns=["s.z", "c"], rename={"s.y": "z"})
    assert provider.schema.names == ["s", "c"]
    assert provider["s.z"]["z.values"].tolist() == [ord(str(i)) for i in range(6)]


def test_the_length_is_an_error_that_says_why():
    with pytest.raises(TypeError, match="not known before it is read"):
        len(sf.open(reader()))
    assert sf.open(reader())


def test_a_second_pass_is_an_error_that_says_what_to_do():
    provider = sf.open(reader())
    assert len(provider["c"].lengths) == 6
    with pytest.raises(ProviderError, match=r"can be read once\ncollect it into a table"):
        provider["c"]


def test_a_stream_that_was_opened_before_is_an_error():
    stream = reader()
    sf.open(stream)
    with pytest.raises(ProviderError, match=r"a RecordBatchReader was opened before.*\n.*a function"):
        sf.open(stream)


def test_the_batches_of_a_lazy_frame_are_read_once():
    batches = pl.from_arrow(TABLE).lazy().collect_batches(chunk_size=2)
    assert len(sf.open(batches)["c"]) == 6
    with pytest.raises(ProviderError, match="was opened before"):
        sf.open(batches)


def test_a_block_can_be_read_once():
    provider = sf.open(reader())
    block = next(provider.blocks())
    provider.read(block)
    with pytest.raises(ProviderError, match="was read before"):
        provider.read(block)


def test_an_error_in_the_stream_names_it():
    def batches():
        yield TABLE.to_batches()[0]
        raise OSError("connection lost")

    provider = sf.open(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))
    with pytest.raises(ProviderError, match=r"batch 1 can't be read: .*connection lost"):
        list(provider.blocks())


def test_a_stream_of_no_columns_is_an_error():
    with pytest.raises(ProviderError, match="not a stream of record batches"):
        sf.open(Foreign(pa.chunked_array([[1, 2]])))
