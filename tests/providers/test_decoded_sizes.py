"""What a row takes in memory is counted as tensors have it, however small a file or table makes it."""

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.byte_sizes import parse_bytes
from seqflow.errors import ProviderError
from seqflow.record import nbytes
from seqflow.record.decoded_sizes import row_bytes

ROWS, TEXT = 2_000, "x" * 2_000
WINDOW, MEMORY = parse_bytes("64 KiB"), parse_bytes("256 KiB")
CODES = pa.DictionaryArray.from_arrays(pa.array(np.zeros(ROWS, np.int32)), pa.array([TEXT]))
RUNS = pa.RunEndEncodedArray.from_arrays([ROWS], pa.array([TEXT]))


def views():
    """Text views that all are of one text."""
    buffers = pa.array([TEXT], pa.string_view()).buffers()
    return pa.Array.from_buffers(
        pa.string_view(), ROWS, [None, pa.py_buffer(buffers[1].to_pybytes()[:16] * ROWS), buffers[2]]
    )


def list_views(kind, dtype):
    """List views that all are of the same bytes."""
    starts, sizes = np.zeros(ROWS, dtype), np.full(ROWS, len(TEXT), dtype)
    return kind.from_arrays(starts, sizes, pa.array(np.zeros(len(TEXT), np.uint8)))


COMPACT = {
    "runs": RUNS,
    "runs in lists": pa.ListArray.from_arrays(np.arange(ROWS + 1, dtype=np.int32), RUNS),
    "runs in structs": pa.StructArray.from_arrays([RUNS], ["t"]),
    "text views": views(),
    "list views": list_views(pa.ListViewArray, np.int32),
    "large list views": list_views(pa.LargeListViewArray, np.int64),
}


def in_memory(table, folder):
    return table


def in_a_stream(table, folder):
    return table.to_reader()


def in_a_file(table, folder):
    feather.write_feather(table, folder / "x.arrow", compression="uncompressed")
    return folder / "x.arrow"


def in_a_compressed_file(table, folder):
    feather.write_feather(table, folder / "x.arrow", compression="zstd")
    return folder / "x.arrow"


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("place", [in_memory, in_a_stream, in_a_file, in_a_compressed_file])
@pytest.mark.parametrize("name", COMPACT)
def test_windows_are_as_large_as_their_tensors(tmp_path, name, place):
    source = place(pa.table({"s": COMPACT[name], "x": range(ROWS)}), tmp_path)
    loader = sf.Loader(source, window=WINDOW, memory=MEMORY, batch=7)
    found, size = [], 0
    for batch in loader:
        assert loader.stats().bytes_in_flight <= 2 * MEMORY
        found += batch["x"].tolist()
        size += nbytes(batch)
    assert found == list(range(ROWS))
    assert size >= ROWS * len(TEXT)


def parquet_files(folder):
    """Texts that a file has once, by the writer that wrote them."""
    table = pa.table({"s": CODES})
    pq.write_table(table, folder / "codes.parquet", store_schema=False)
    lists = pa.ListArray.from_arrays(np.arange(0, ROWS + 1, 2, dtype=np.int32), CODES)
    pq.write_table(pa.table({"s": lists}), folder / "lists.parquet", store_schema=False)
    return folder


@pytest.mark.parametrize("name", ["codes", "lists"])
def test_texts_that_the_footer_counts_are_read_in_slices(tmp_path, name):
    provider = sf.open(parquet_files(tmp_path) / f"{name}.parquet")
    (block,) = provider.blocks()
    assert block.nbytes >= ROWS * len(TEXT)
    loader = sf.Loader(provider, window=WINDOW, memory=MEMORY, batch=10)
    for batch in loader:
        assert nbytes(batch) < MEMORY
        assert loader.stats().bytes_in_flight <= 2 * MEMORY


def prefixes(folder):
    """Each text begins like the one before."""
    column = pa.table({"s": CODES.cast(pa.string())})
    encoding = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
    pq.write_table(column, folder / "x.parquet", **encoding)


def no_counts(folder):
    """The texts of a dictionary, by a writer that does not count their bytes."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"s": pl.from_arrow(CODES.cast(pa.large_string())), "x": range(ROWS)})
    frame.write_parquet(folder / "x.parquet", row_group_size=ROWS)


@pytest.mark.parametrize("write", [prefixes, no_counts])
def test_texts_that_no_footer_counts_are_refused_where_they_do_not_fit(tmp_path, write):
    write(tmp_path)
    refused = r"x\.parquet, row group 0: rows 0 to \d+ take .* in memory, expected 256"
    with pytest.raises(ProviderError, match=refused):
        list(sf.Loader(tmp_path / "x.parquet", window=WINDOW, memory=MEMORY))
    (batch,) = sf.Loader(tmp_path / "x.parquet", window="5 MiB", memory="5 MiB", batch=ROWS)
    assert sf.to_arrow(batch)["s"].to_pylist() == [TEXT] * ROWS


@pytest.mark.parametrize("kind", [pa.int16(), pa.string(), pa.list_(pa.int8())])
def test_a_slice_counts_its_own_rows_alone(kind):
    rows = [[1, 2], None, [], [3], [4, 5, 6]]
    of_kind = {pa.int16(): int, pa.string(): str, pa.list_(pa.int8()): lambda value: [value] * value}[kind]
    array = pa.array([row and [of_kind(value) for value in row] for row in rows], pa.list_(kind))
    whole = row_bytes(array)
    for start in range(6):
        for stop in range(start, 6):
            assert row_bytes(array.slice(start, stop - start)).tolist() == whole[start:stop].tolist()
