"""Text that comes along with packed rows is written as text."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.job import Job, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with docs.parquet: 60 rows of tokens, text and bytes."""
    table = pa.table({
        "tokens": pa.array([[row] * (row % 5) for row in range(60)], pa.list_(pa.int32())),
        "text": ["é" * (row % 4) + str(row) for row in range(60)],
        "raw": pa.array([bytes([row, 255]) for row in range(60)], pa.large_binary()),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "docs.parquet", row_group_size=20)
    return tmp_path


def job(folder: Path, **tables: Any) -> Job:
    return Job.from_dict(
        {
            "source": {"paths": "docs.parquet"}, "order": {"window": 1600},
            "batch": {"kind": "packed", "capacity": 8, "rows": 3, "columns": ["tokens"]},
            "output": {"path": "out", "part_bytes": 1600}, **tables,
        },
        folder,
    )  # fmt: skip


def rows_of(folder: Path, job: Job) -> tuple[pa.Schema, list[dict[str, Any]]]:
    found = pa.concat_tables([pq.read_table(file) for file in run(job).files])
    return found.schema, found.to_pylist()


def pieces_of(row: dict[str, Any]) -> list[int]:
    """The row of the source of each piece, which its tokens are."""
    ends, at = [], 0
    for length in row["piece_lengths"]:
        ends.append(row["tokens"][at])
        at += length
    return ends


@pytest.mark.slow
@pytest.mark.parametrize("engine", [{}, {"workers": 2}])
def test_each_piece_has_the_text_of_its_row(folder: Path, engine: dict[str, Any]) -> None:
    schema, rows = rows_of(folder, job(folder, engine=engine))
    assert schema.field("text").type.value_type == pa.string()
    assert schema.field("raw").type.value_type == pa.large_binary()
    for row in rows:
        assert row["text"] == ["é" * (of % 4) + str(of) for of in pieces_of(row)]
        assert row["raw"] == [bytes([of, 255]) for of in pieces_of(row)]


def test_text_that_a_net_returns_stays_text(folder: Path) -> None:
    net = {"net": "return tokens, piece_lengths, pieces, text.values, text.lengths"}
    schema, rows = rows_of(folder, job(folder, net=net))
    assert schema.field("text").type.value_type == pa.string()
    assert rows[0]["text"] == ["é" * (of % 4) + str(of) for of in pieces_of(rows[0])]


def test_a_job_without_rows_has_the_same_columns(folder: Path) -> None:
    schema, rows = rows_of(folder, job(folder, source={"paths": "docs.parquet", "where": "raw.lengths > 5"}))
    assert rows == []
    assert schema == rows_of(folder, job(folder, output={"path": "all"}))[0]


def test_text_comes_out_of_a_loader_as_text(folder: Path) -> None:
    loader = sf.Loader(folder / "docs.parquet", batch=sf.Packed(8, rows=3, columns=["tokens"]))
    assert pa.table(loader).schema.field("text").type == pa.list_(pa.string())
