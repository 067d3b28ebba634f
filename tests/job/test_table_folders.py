"""Jobs over the folder of a table, which its package opens."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqflow.errors import JobError
from seqflow.job import Job, run

deltalake = pytest.importorskip("deltalake")

JOB = """
imports = ["dying"]
[source]
paths = "table"
[order]
shuffle = true
window = "4 KiB"
[batch]
kind = "rows"
n = 16
[net]
net = "row = die(id)\\nreturn row, tokens.values, tokens.lengths"
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
def folder(tmp_path: Path) -> Path:
    for start in range(0, 1000, 50):
        rows = range(start, start + 50)
        table = pa.table({"id": rows, "tokens": [[row] * (row % 5) for row in rows]})
        deltalake.write_deltalake(tmp_path / "table", table, mode="append")
    deltalake.DeltaTable(tmp_path / "table").delete("id < 10")
    (tmp_path / "dying.py").write_text(DYING)
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def run_again(folder: Path, dies_at: int = 0) -> int:
    """The exit code of the job, which goes on where it was."""
    command = [sys.executable, "-m", "seqflow", "run", "job.toml", "--resume"]
    environment = os.environ | {"DIES_AT": str(dies_at)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").glob("*.parquet")}


@pytest.mark.slow
def test_a_job_that_is_killed_at_five_points_writes_what_an_undisturbed_one_does(folder: Path) -> None:
    assert run_again(folder) == 0
    expected = files(folder)
    assert sorted(pq.read_table(folder / "out")["row"].to_pylist()) == list(range(10, 1000))
    subprocess.run(["rm", "-r", folder / "out"], check=True)
    assert [run_again(folder, dies_at) for dies_at in (5, 20, 12, 9, 15)] == [9] * 5
    assert run_again(folder) == 0
    assert files(folder) == expected


def test_a_job_writes_into_no_table_that_it_reads(folder: Path) -> None:
    job = {"source": {"paths": "table"}, "output": {"path": "table/out"}}
    with pytest.raises(JobError, match="would be a file of the source"):
        run(Job.from_dict(job, folder))
