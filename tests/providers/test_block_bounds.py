"""What is known of the rows and values in each block before it is read."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.providers.block_bounds import BlockBounds, block_bounds
from seqflow.record import from_arrow


def check_sums(provider):
    """The bounds of every block; what is read stays within them."""
    found = list(block_bounds(provider))
    for bounds, block in zip(found, provider.blocks(), strict=True):
        record = from_arrow(provider.read(block), valid=True)
        assert record.num_rows == bounds.rows
        for name, most in bounds.sums.items():
            assert name not in record or int(record[name].sum()) <= most
    return found


def test_a_footer_counts_the_values_of_lists_and_an_empty_list_as_one(tmp_path):
    lists = pa.array([[[1, 2], [3]], [], None, [[]], [[4] * 5]], pa.list_(pa.list_(pa.int32())))
    pq.write_table(pa.table({"a": lists}), tmp_path / "x.parquet", row_group_size=3)
    first, last = check_sums(sf.open(tmp_path / "x.parquet"))
    assert first == BlockBounds(3, {"a.lengths": 5, "a.values.lengths": 5})
    assert last == BlockBounds(2, {"a.lengths": 6, "a.values.lengths": 6})


def test_a_footer_with_size_statistics_counts_the_bytes_of_texts(tmp_path):
    kind = pa.struct({"t": pa.list_(pa.string())})
    pq.write_table(
        pa.table({"s": pa.array([{"t": ["ab", None, "cde"]}, None], kind)}), tmp_path / "x.parquet"
    )
    (found,) = check_sums(sf.open(tmp_path / "x.parquet"))
    assert (found.sums["s.t.lengths"], found.sums.get("s.t.values.lengths", 5)) == (4, 5)


@pytest.mark.parametrize(
    ("encoding", "errors", "growth"),
    [
        (None, "strict", 1), ("utf8", "strict", 1), ("utf-8", "ignore", 1), ("utf-8", "replace", 3),
        ("ascii", "replace", 3), ("latin-1", "strict", 2), ("cp1252", "replace", 3),
    ],
)  # fmt: skip
def test_a_file_becomes_text_of_so_many_times_its_bytes(tmp_path, encoding, errors, growth):
    worst = {
        "utf8": b"abc",
        "utf-8": b"\xff" * 5,
        "ascii": b"\xff" * 5,
        "latin-1": b"\xe9" * 4,
        "cp1252": b"\x80" * 4,
    }
    content = worst.get(encoding, b"\x00\xff")
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "b.txt").write_bytes(b"")
    provider = sf.open(
        tmp_path, kind="text", format=sf.Text(encoding=encoding, errors=errors), rename={"path": "file"}
    )
    (found,) = check_sums(provider)
    column = "bytes" if encoding is None else "text"
    paths = sum(len(str(tmp_path / name)) for name in ("a.txt", "b.txt"))
    assert found == BlockBounds(2, {"file.lengths": paths, f"{column}.lengths": growth * len(content)})
    if errors != "ignore":
        assert len(provider[column].values) == growth * len(content), "the bound is reached"


def test_of_other_encodings_nothing_is_known(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab")
    (found,) = check_sums(sf.open(tmp_path, kind="text", format=sf.Text(encoding="utf-16-le")))
    assert list(found.sums) == ["path.lengths"]


def test_tables_and_arrow_files_know_their_rows_and_streams_nothing(tmp_path):
    table = pa.table({"a": [[1], [2, 3]]})
    assert check_sums(sf.open(table)) == [BlockBounds(2, {})]
    assert block_bounds(sf.open(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))) is None
