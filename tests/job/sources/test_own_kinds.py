"""Jobs over sources that a function of the user's makes: what they compare, and runs that are killed."""

import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command import seqflow
from killed_jobs import write_dying_job, written_though_killed
from marks import thorough

from seqflow.errors import JobError
from seqflow.job import Job, run
from seqflow.job.checking import check
from seqflow.job.planning import plan

SOURCES = """
import pyarrow as pa
from seqflow.providers import Block

class Days:
    schema = pa.schema([("day", pa.int64()), ("ids", pa.list_(pa.int64()))])

    def __init__(self, days):
        self.days = days

    def blocks(self):
        return [Block("days", day, 10, 400) for day in range(self.days)]

    def read(self, block, columns):
        rows = range(block.index * 10, block.index * 10 + 10)
        return pa.table({"day": list(rows), "ids": [[n] * (n % 4) for n in rows]}, schema=self.schema)

def days(days=100):
    return Days(days)

def lazy():
    import polars as pl
    frame = pl.LazyFrame({"day": range(1000)}).filter(pl.col("day") % 7 != 3)
    return frame.with_columns(ids=pl.concat_list(pl.col("day"), pl.col("day") * 2))

def query(path, below):
    import duckdb
    return duckdb.connect().sql(f"SELECT day, [day, day * 2] AS ids FROM '{path}' WHERE day < {below} ORDER BY -day")

def table(path):
    from deltalake import DeltaTable
    return DeltaTable(path).to_pyarrow_dataset()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    (tmp_path / "my_sources.py").write_text(SOURCES)
    yield tmp_path
    sys.modules.pop("my_sources", None)


def job_of(folder: Path, **source: Any) -> Job:
    return Job.from_dict({"source": source, "output": {"path": str(folder / "out")}}, folder)


def test_a_job_reads_what_a_function_makes_of_its_options(folder: Path) -> None:
    job = job_of(folder, kind="my_sources:days", options={"days": 5})
    assert "ids.lengths" in str(check(job))
    assert plan(job).rows == 50
    assert run(job).rows == 50
    assert pq.read_table(folder / "out")["day"].to_pylist() == list(range(50))
    assert run(job).outcome == "complete"
    with pytest.raises(JobError, match=r"source\.options\.days was 5 and is 6"):
        run(job_of(folder, kind="my_sources:days", options={"days": 6}))
    (folder / "my_sources.py").write_text(SOURCES + "\nmore = 5\n")
    with pytest.raises(JobError, match="code of its kind"):
        run(job)


@pytest.mark.parametrize(("source", "message"), [
    ({"kind": "parqet", "paths": "x"}, "kind is 'parqet' .did you mean 'parquet'"),
    ({"kind": "text", "paths": "x", "options": {"a": 1}}, "options are passed to a function"),
    ({"kind": "text"}, "needs 'paths'"),
    ({"kind": "their_sources:days"}, "there is no module 'their_sources'"),
])  # fmt: skip
def test_what_is_no_kind_of_a_job_is_refused(folder: Path, source: Any, message: str) -> None:
    with pytest.raises(JobError, match=message):
        check(job_of(folder, **source))


def test_commands_take_kinds_of_the_current_folder(folder: Path) -> None:
    (folder / "job.toml").write_text(
        '[source]\nkind = "my_sources:days"\n[source.options]\ndays = 3\n[output]\npath = "out"\n'
    )
    assert "rows:0..10" in seqflow("check", "job.toml", folder=folder).stdout
    done = seqflow("run", "job.toml", "--set", "source.options.days=4", folder=folder)
    assert done.returncode == 0, done.stderr
    assert len(pq.read_table(folder / "out")) == 40
    (folder / "words.py").write_text("def words(path):\n    return {'word': open(path).read().split()}\n")
    (folder / "a.txt").write_text("the cat sat")
    shown = seqflow("inspect", "a.txt", "--kind", "words:words", folder=folder)
    assert "3 rows" in shown.stdout, shown.stderr
    assert "megatron" in seqflow("info", folder=folder).stdout


@pytest.mark.slow
@pytest.mark.parametrize(("package", "source", "rows"), [
    ("pyarrow", '[source]\nkind = "my_sources:days"', set(range(1000))),
    ("deltalake", '[source]\nkind = "my_sources:table"\npaths = "table"\nwhere = "day >= 100"', set(range(100, 1000))),
    *thorough(
        ("polars", '[source]\nkind = "my_sources:lazy"\nbatch_bytes = 2000', {n for n in range(1000) if n % 7 != 3}),
        ("duckdb", '[source]\nkind = "my_sources:query"\npaths = "days.parquet"\nbatch_bytes = 2000\n[source.options]\nbelow = 900', set(range(900))),
    ),
])  # fmt: skip
def test_a_job_over_an_object_that_is_killed_at_five_points_writes_what_an_undisturbed_one_does(
    folder: Path, package: str, source: str, rows: set[int]
) -> None:
    pytest.importorskip(package)
    import pyarrow as pa

    table = pa.table({"day": range(1000), "ids": [[n] * (n % 3) for n in range(1000)]})
    pq.write_table(table, folder / "days.parquet")
    if package == "deltalake":
        from deltalake import write_deltalake

        for start in range(0, 1000, 100):
            write_deltalake(folder / "table", table.slice(start, 100), mode="append")
    write_dying_job(folder, source)
    found = written_though_killed(folder)
    assert (len(found), set(found)) == (len(rows), rows)
