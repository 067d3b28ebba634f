"""Jobs over sources that a function of the user's makes: what they compare, and runs that are killed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command import seqflow

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
JOB = """
imports = ["dying"]
{source}
[order]
shuffle = true
window = "2 KiB"
[batch]
kind = "rows"
n = 16
[net]
net = "row = die(day)\\nreturn row, ids.values, ids.lengths"
[output]
path = "out"
part_bytes = 2048
"""
DYING = """
import os
from seqflow import op

calls = 0

@op("x[N] -> y[N]")
def die(x):
    \"\"\"The same; a call that the environment names ends the process.\"\"\"
    global calls
    calls += 1
    if calls == int(os.environ.get("DIES_AT", 0)):
        os._exit(9)
    return x
"""


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    (tmp_path / "my_sources.py").write_text(SOURCES)
    (tmp_path / "dying.py").write_text(DYING)
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
    with pytest.raises(JobError, match=r"source.options was .*5.* and is .*6"):
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
    assert "criteo" in seqflow("info", folder=folder).stdout


def run_again(folder: Path, dies_at: int = 0) -> int:
    """The exit code of the job, which goes on where it was."""
    command = [sys.executable, "-m", "seqflow", "run", "job.toml", "--resume"]
    environment = os.environ | {"DIES_AT": str(dies_at)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 9), done.stderr
    return done.returncode


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").glob("*.parquet")}


@pytest.mark.slow
@pytest.mark.parametrize(("package", "source", "rows"), [
    ("pyarrow", '[source]\nkind = "my_sources:days"', set(range(1000))),
    ("polars", '[source]\nkind = "my_sources:lazy"\nbatch_bytes = 2000', {n for n in range(1000) if n % 7 != 3}),
    ("duckdb", '[source]\nkind = "my_sources:query"\npaths = "days.parquet"\nbatch_bytes = 2000\n[source.options]\nbelow = 900', set(range(900))),
    ("deltalake", '[source]\nkind = "my_sources:table"\npaths = "table"\nwhere = "day >= 100"', set(range(100, 1000))),
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
    (folder / "job.toml").write_text(JOB.replace("{source}", source))
    assert run_again(folder) == 0
    expected = files(folder)
    found = pq.read_table(folder / "out")["row"].to_pylist()
    assert (len(found), set(found)) == (len(rows), rows)
    subprocess.run(["rm", "-r", folder / "out"], check=True)
    assert [run_again(folder, dies_at) for dies_at in (5, 20, 12, 9, 15)] == [9] * 5
    assert run_again(folder) == 0
    assert files(folder) == expected
