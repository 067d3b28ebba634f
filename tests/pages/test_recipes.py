"""Files that other packages read are sources, in loaders and jobs: the module of docs/formats.md reads what was written."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pages import code_of
from pyarrow import orc

import seqflow as sf
from seqflow.job import Job, run

ROWS = [{"id": n, "text": "é" * (n % 5), "x": n / 2} for n in range(300)]
QUERY = "SELECT id, text, x FROM t ORDER BY id"


def write_sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (id INTEGER, text TEXT, x REAL)")
        connection.executemany("INSERT INTO t VALUES (:id, :text, :x)", ROWS)


WRITERS: dict[str, Any] = {
    "orc": lambda path: orc.write_table(pa.Table.from_pylist(ROWS), path, stripe_size=500, batch_size=50),
    "avro": lambda path: pl.DataFrame(ROWS).write_avro(path),
    "sqlite": write_sqlite,
}
each_format = pytest.mark.parametrize("form", WRITERS)


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "my_formats.py").write_text(code_of("docs/formats.md", "# my_formats.py"))
    (tmp_path / "read_svm.py").write_text(code_of("docs/formats.md", "# read_svm.py"))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("my_formats", "read_svm"):
        sys.modules.pop(name, None)


def written(form: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return a file of this format, and the keywords that open it."""
    path = folder / f"a.{form}"
    WRITERS[form](path)
    options = {"options": {"query": QUERY}} if form == "sqlite" else {}
    return path, {"kind": f"my_formats:{form}", **options}


def rows_of(provider: Any) -> list[dict[str, Any]]:
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


@each_format
def test_the_rows_are_those_that_were_written(tmp_path: Path, form: str) -> None:
    path, options = written(form, tmp_path)
    assert rows_of(sf.open(str(path), **options)) == ROWS
    assert sf.open(str(path), columns=["x"], where="id >= 298", **options)["x"].tolist() == [149, 149.5]  # type: ignore[union-attr]


@each_format
def test_a_loader_has_epochs_and_resumes(tmp_path: Path, form: str) -> None:
    path, options = written(form, tmp_path)

    def loader() -> sf.Loader:
        return sf.Loader(str(path), columns=["id"], batch=7, shuffle=True, **options)

    first = loader()
    epochs = [[n for batch in first for n in batch["id"].tolist()] for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(300))] * 2
    begun = loader()
    batches = iter(begun)
    start = [n for _ in range(9) for n in next(batches)["id"].tolist()]
    after = loader()
    after.load_state_dict(begun.state_dict())
    assert start + [n for batch in after for n in batch["id"].tolist()] == epochs[0]


@each_format
def test_a_job_reads_them(tmp_path: Path, form: str) -> None:
    path, options = written(form, tmp_path)
    job = {"source": {"paths": path.name, **options}, "output": {"path": str(tmp_path / "out")}}
    assert run(Job.from_dict(job, tmp_path)).rows == len(ROWS)
    found = pq.read_table(tmp_path / "out").to_pylist()
    assert [row["id"] for row in found] == [row["id"] for row in ROWS]


def test_files_of_a_store_are_read_in_a_job(
    tmp_path: Path, own: Any, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.options.items():
        monkeypatch.setenv(name.upper(), str(value))
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    names = ["x/a.avro", "x/b.avro"]
    for at, name in enumerate(names):
        pl.DataFrame(ROWS[150 * at : 150 * at + 150]).write_avro(tmp_path / "part.avro")
        bucket.put(name, tmp_path / "part.avro")
    job = {
        "source": {"kind": "my_formats:avro_of_store", "paths": bucket.uri, "options": {"names": names}},
        "output": {"path": str(tmp_path / "out")},
    }
    assert run(Job.from_dict(job, tmp_path)).rows == len(ROWS)
    assert pq.read_table(tmp_path / "out")["id"].to_pylist() == list(range(300))


def test_lines_of_libsvm_are_read_in_a_job(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    (tmp_path / "train.svm").write_text("1 qid:7 1:0.5 3:2\n-1 qid:7\n0.5 qid:8 2:-1e3 # a comment\n")
    rows = [
        {"label": 1.0, "query": 7, "ids": [0, 2], "weights": [0.5, 2.0]},
        {"label": -1.0, "query": 7, "ids": [], "weights": []},
        {"label": 0.5, "query": 8, "ids": [1], "weights": [-1000.0]},
    ]
    path, kind = tmp_path / "train.svm", "read_svm:rows_of"
    assert rows_of(sf.open(str(path), kind=kind)) == rows
    job = {"source": {"paths": path.name, "kind": kind}, "output": {"path": str(tmp_path / "out")}}
    run(Job.from_dict(job, tmp_path))
    assert pq.read_table(tmp_path / "out").to_pylist() == rows
