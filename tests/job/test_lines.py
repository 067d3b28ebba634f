"""Jobs over files of lines that are killed and go on write what an undisturbed one does."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

JOB = """
imports = ["dying"]
[source]
{source}
batch_bytes = 1024
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
ROWS = 1000


def write_json(path: Path) -> None:
    path.write_text("".join(json.dumps({"day": n, "ids": [n] * (n % 4)}) + "\n" for n in range(ROWS)))


def write_csv(path: Path) -> None:
    lines = [f"{n},{' '.join([str(n)] * (n % 4))}\n" for n in range(ROWS)]
    path.write_bytes(gzip.compress("".join(["day,ids\n", *lines]).encode()))


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
@pytest.mark.parametrize(
    ("write", "name", "options"),
    [
        (write_json, "a.jsonl", "[source.jsonl]"),
        (write_csv, "a.csv.gz", 'fill = {ids = []}\n[source.csv]\nlist_delimiter = " "'),
    ],
    ids=["json", "csv"],
)
def test_a_job_that_is_killed_at_five_points_writes_what_an_undisturbed_one_does(
    tmp_path: Path, write: object, name: str, options: str
) -> None:
    write(tmp_path / name)  # type: ignore[operator]
    schema = 'schema = {day = "int64", ids = "list<int64>"}'
    (tmp_path / "dying.py").write_text(DYING)
    (tmp_path / "job.toml").write_text(JOB.format(source=f'paths = "{name}"\n{options}\n{schema}'))
    assert run_again(tmp_path) == 0
    expected = files(tmp_path)
    assert sorted(pq.read_table(tmp_path / "out")["row"].to_pylist()) == list(range(ROWS))
    subprocess.run(["rm", "-r", tmp_path / "out"], check=True)
    assert [run_again(tmp_path, dies_at) for dies_at in (5, 20, 12, 9, 15)] == [9] * 5
    assert run_again(tmp_path) == 0
    assert files(tmp_path) == expected
