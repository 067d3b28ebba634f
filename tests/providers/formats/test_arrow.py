"""Arrow IPC files, streams in files, and Feather."""

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import seqflow as sf
from seqflow.errors import ProviderError
from seqflow.record import from_arrow

TABLE = pa.table(
    {
        "label": pa.array(range(10), pa.int64()),
        "tokens": pa.array([[i] * (i % 3) for i in range(10)], pa.list_(pa.int32())),
        "docs": [[{"title": str(i), "n": i}] for i in range(10)],
    }
)


def write_file(path, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(path, TABLE.schema, options=options) as writer:
        writer.write_table(TABLE, max_chunksize=4)


def write_stream(path, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(path, TABLE.schema, options=options) as writer:
        writer.write_table(TABLE, max_chunksize=4)


def write_feather(path, compression="uncompressed"):
    feather.write_feather(TABLE, str(path), compression=compression, chunksize=4)


FORMATS = [
    (write_file, "x.arrow"),
    (write_stream, "x.arrows"),
    (write_feather, "x.feather"),
    (write_file, "x.ipc"),
]


@pytest.fixture(params=FORMATS, ids=lambda each: each[1])
def path(request, tmp_path):
    write, name = request.param
    write(tmp_path / name)
    return tmp_path / name


def test_record_batches_are_blocks(path):
    provider = sf.open(path)
    blocks = list(provider.blocks())
    assert [(block.origin, block.index, block.num_rows) for block in blocks] == [
        (str(path), index, rows) for index, rows in enumerate((4, 4, 2))
    ]
    assert pa.Table.from_batches([provider.read(block) for block in blocks]).equals(TABLE)
    assert len(provider) == 10
    assert all(block.nbytes for block in blocks)


def test_a_list_column_is_values_and_lengths(path):
    values, lengths = sf.open(path)["tokens"].unpack()
    assert lengths.tolist() == [i % 3 for i in range(10)]
    assert values.tolist() == [i for i in range(10) for _ in range(i % 3)]


def test_columns_and_fields_are_picked_and_renamed(path):
    provider = sf.open(path, columns=["docs.t", "label"], rename={"docs.title": "t"})
    batch = provider.read(next(provider.blocks()))
    assert batch.schema.equals(provider.schema)
    assert batch.to_pylist()[3] == {"docs": [{"t": "3"}], "label": 3}
    assert provider.read(next(provider.blocks()), ["label"]).schema.names == ["label"]


def test_values_are_the_mapped_file(tmp_path):
    table = pa.table({"x": np.arange(1 << 20)})
    for name, new in (("x.arrow", pa.ipc.new_file), ("x.arrows", pa.ipc.new_stream)):
        with new(tmp_path / name, table.schema) as writer:
            writer.write_table(table)
        provider = sf.open(tmp_path / name)
        before = pa.total_allocated_bytes()
        tensor = from_arrow(provider.read(next(provider.blocks())))["x"]
        assert pa.total_allocated_bytes() - before < tensor.nbytes // 100
        assert tensor[-1] == (1 << 20) - 1


@pytest.mark.parametrize("write", [write_file, write_stream, write_feather])
def test_compressed_files_are_read(tmp_path, write):
    write(tmp_path / "x.arrow", compression="zstd")
    assert sf.open(tmp_path)["label"].tolist() == list(range(10))
    assert sf.open(tmp_path).num_rows == 10


def test_many_files_are_one_provider(tmp_path):
    write_file(tmp_path / "b.arrow")
    write_stream(tmp_path / "a.arrows")
    assert sf.open(tmp_path)["label"].tolist() == [*range(10), *range(10)]


def test_files_that_disagree_are_an_error_naming_both(tmp_path):
    for name, rows in (("a", [1]), ("b", ["x"])):
        feather.write_feather(pa.table({"c": rows}), str(tmp_path / f"{name}.feather"))
    with pytest.raises(ProviderError, match=r"'c' is int64 in .*a\.feather, but string in .*b\.feather"):
        sf.open(tmp_path)


@pytest.mark.parametrize("data", [b"", b"ARROW1", b"neither file nor stream"])
def test_what_is_not_arrow_is_an_error_naming_the_file(tmp_path, data):
    (tmp_path / "x.arrow").write_bytes(data)
    with pytest.raises(ProviderError, match=r"x\.arrow is not an Arrow IPC file, or damaged"):
        sf.open(tmp_path / "x.arrow")


def test_a_second_stream_in_a_file_is_an_error(tmp_path):
    path = tmp_path / "x.arrows"
    write_stream(path)
    content = path.read_bytes()
    for rest in (b"", bytes(64)):
        path.write_bytes(content + rest)
        assert sf.open(path).num_rows == 10
    path.write_bytes(content + content)
    for memory_map in (True, False):
        with pytest.raises(ProviderError, match=r"x\.arrows has more after the end of its stream"):
            sf.open(path, format=sf.Arrow(memory_map=memory_map))


def test_a_truncated_file_is_an_error_naming_the_file(tmp_path):
    write_file(tmp_path / "x.arrow")
    (tmp_path / "x.arrow").write_bytes((tmp_path / "x.arrow").read_bytes()[:-50])
    with pytest.raises(ProviderError, match=r"x\.arrow is not an Arrow IPC file, or damaged"):
        sf.open(tmp_path / "x.arrow")
