"""A folder with a file of rows and a job that reads it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

JOB = """
[source]
paths = "docs.parquet"
[batch]
kind = "tokens"
max_tokens = 20
[output]
path = "out"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with docs.parquet, 100 rows of 0 to 9 tokens, and job.toml."""
    tokens = pa.array([list(range(n % 10)) for n in range(100)], pa.list_(pa.int32()))
    pq.write_table(pa.table({"tokens": tokens}), tmp_path / "docs.parquet")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder of four Parquet files of two row groups of 5 rows: 2 has no end, 3 a damaged row group."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for number in range(4):
        rows = range(number * 10, number * 10 + 10)
        table = pa.table({"tokens": [[n, n] for n in rows], "text": [f"text {n}" for n in rows]})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=5)
    content = (folder / "2.parquet").read_bytes()
    (folder / "2.parquet").write_bytes(content[: len(content) // 2])
    group = pq.ParquetFile(folder / "3.parquet").metadata.row_group(1)
    damaged = bytearray((folder / "3.parquet").read_bytes())
    for column in range(group.num_columns):
        at = group.column(column).dictionary_page_offset or group.column(column).data_page_offset
        damaged[at : at + 8] = b"\xff" * 8
    (folder / "3.parquet").write_bytes(damaged)
    return folder


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A file of 5,000 JSON lines, of which 3,000 and 4,000 have a wrong type, and 3,500 is broken."""
    good = [f'{{"id": {n}, "tokens": [1, 2, {n % 7}], "text": "line {n}"}}' for n in range(5000)]
    for number in (3000, 4000):
        good[number] = '{"id": 0, "tokens": ["x"], "text": "y"}'
    good[3500] = '{"id": '
    (tmp_path / "lines.jsonl").write_text("\n".join(good))
    return tmp_path / "lines.jsonl"
