"""Jobs whose processes are killed: by an op, or by calls of `os`; and their runs, which go on."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from command import Process, seqflow
from command import start as start_command

DYING_JOB = """
imports = ["dying"]
{source}
[order]
shuffle = true
window = "{window}"
[batch]
kind = "rows"
n = 16
[net]
net = "row = die({row})\\nreturn row, {lists}.values, {lists}.lengths"
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


def write_dying_job(
    folder: Path, source: str, *, row: str = "day", lists: str = "ids", window: str = "2 KiB"
) -> None:
    """Write a job whose output has the number of each row as `row`."""
    (folder / "dying.py").write_text(DYING)
    (folder / "job.toml").write_text(DYING_JOB.format(source=source, row=row, lists=lists, window=window))


def written_though_killed(folder: Path) -> list[int]:
    """The rows that an undisturbed run writes, after five that were killed and one that went on wrote the same."""
    assert _run_again(folder) == 0
    expected = _parts(folder)
    rows: list[int] = pq.read_table(folder / "out")["row"].to_pylist()
    shutil.rmtree(folder / "out")
    assert [_run_again(folder, dies_at) for dies_at in (5, 20, 12, 9, 15)] == [9] * 5
    assert _run_again(folder) == 0
    assert _parts(folder) == expected
    return rows


def _run_again(folder: Path, dies_at: int = 0) -> int:
    """The exit code of the job, which goes on where it was."""
    done = seqflow("run", "job.toml", "--resume", folder=folder, DIES_AT=str(dies_at))
    assert done.returncode in (0, 9), done.stderr
    return done.returncode


def _parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").glob("*.parquet")}


SLOW_JOB = """
imports = ["slowly"]
[source]
paths = "docs*.parquet"
[order]
shuffle = true
seed = 3
window = "8 KiB"
[prepare]
net = "a = wait_a_little(tokens.values)\\nb = truncate(a, tokens.lengths, max_length=30)\\nreturn b.values, b.lengths, label"
[batch]
kind = "packed"
capacity = 32
rows = 16
[net]
net = "kept = refuse_some(label)"
[output]
path = "{output}"
part_bytes = {part_bytes}
row_group_bytes = "4 KiB"
{arranged}
[bad_rows]
policy = "quarantine"
path = "{bad_rows}"
"""
KILLING = """
import os, signal, sys

def killing(function, count=[0]):
    def call(*arguments, **options):
        if count[0] == int(os.environ["KILL_AT"]):
            if "FULL_DISK" in os.environ:
                raise OSError(28, "No space left on device")
            os.kill(os.getpid(), signal.SIGKILL)
        count[0] += 1
        return function(*arguments, **options)
    return call
"""
SLOWLY = f"""
{KILLING}
import time
from seqflow import OpError, op

@op("x[N] -> y[N]")
def wait_a_little(x):
    \"\"\"The same, as soon as there is no file `hold`, and after the seconds that WAIT says.\"\"\"
    while len(x) and os.path.exists("hold"):
        time.sleep(0.01)
    time.sleep(float(os.environ.get("WAIT", 0)))
    return x

@op("x[N] -> y[N]")
def refuse_some(x):
    \"\"\"The same, without some numbers.\"\"\"
    if (x % 211 == 3).any():
        raise OpError("a number that is refused")
    return x

if "KILL_AT" in os.environ and "seqflow" in sys.argv[0]:  # the driver, no worker
    os.replace = killing(os.replace)
    if "FULL_DISK" not in os.environ:
        os.rename, os.unlink = killing(os.rename), killing(os.unlink)
"""


def write_slow_job(
    folder: Path, output: str, *, part_bytes: str, bad_rows: str, arranged: str = "", files: int, rows: int
) -> None:
    """Write a job that is slow where WAIT says so, and files of its rows, of which some are bad."""
    draw = np.random.default_rng(0)
    for file in range(files):
        lists = [
            [None] if i % 97 == 5 else [*map(int, draw.integers(0, 99, n))]
            for i, n in enumerate(draw.integers(0, 40, rows))
        ]
        table = pa.table({"tokens": pa.array(lists, pa.list_(pa.int32())), "label": np.arange(rows)})
        pq.write_table(table, folder / f"docs{file}.parquet", row_group_size=50)
    (folder / "slowly.py").write_text(SLOWLY)
    (folder / "job.toml").write_text(
        SLOW_JOB.format(output=output, part_bytes=part_bytes, bad_rows=bad_rows, arranged=arranged)
    )


def start(folder: Path, *arguments: str, **environment: str) -> Process:
    """A run of the job in a process of its own."""
    return start_command("run", "job.toml", "--quiet", *arguments, folder=folder, **environment)


def workers_of(process: Process) -> list[int]:
    """The processes below a driver that run tasks."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
                commands[int(entry.name)] = (entry / "cmdline").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = []
    for pid, command in commands.items():
        above = pid
        while above and above != process.pid:
            above = parents.get(above, 0)
        if (
            above
            and pid != process.pid
            and ("seqflow.workers.local" in command or command.startswith(("ray::_run", "ray::IDLE")))
        ):
            found.append(pid)
    return found
