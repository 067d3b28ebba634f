"""One run at a time writes to an output."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from outputs import names, record, write

from seqflow.errors import JobError
from seqflow.output import open_output
from seqflow.output.quarantine import Quarantine

WRITER = """
import sys, time
import numpy as np
from seqflow.output import open_output
from seqflow.record import Record
noise = np.random.default_rng(0).random(6_000_000)
with open_output(sys.argv[1]) as output:
    output.write(Record({"x": noise}, {"x": None}, len(noise), None))
    print("writing", flush=True)
    time.sleep(1000)
"""


@pytest.fixture(params=["out", "x.parquet"])
def busy(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    """A path, and a process that is writing to it."""
    target = tmp_path / request.param
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, target], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        while not any(".tmp-" in name for name in names(target if request.param == "out" else tmp_path)):
            time.sleep(0.01)
        yield target, process
        process.kill()


@pytest.mark.slow
def test_a_second_run_is_refused_and_told_who_writes(busy: tuple[Path, subprocess.Popen[str]]) -> None:
    target, process = busy
    with pytest.raises(JobError, match=rf"process {process.pid} on .*, since .* is writing to '{target}'"):
        write(target, [record(0, 5)])
    assert process.poll() is None


@pytest.mark.slow
def test_the_next_run_removes_what_a_killed_one_left(busy: tuple[Path, subprocess.Popen[str]]) -> None:
    target, process = busy
    process.send_signal(signal.SIGKILL)
    process.wait()
    write(target, [record(0, 5)])
    found = names(target if target.suffix == "" else target.parent)
    assert found == (["_manifest.json", "part-00000.parquet"] if target.suffix == "" else ["x.parquet"])


def test_hidden_files_that_are_not_ours_stay(tmp_path: Path) -> None:
    for name in (".part-0.tmp-x", ".gitignore", ".notes.tmp-1"):
        (tmp_path / name).touch()
    write(tmp_path, [record(0, 5)])
    assert {".part-0.tmp-x", ".gitignore", ".notes.tmp-1"} < set(names(tmp_path))


def _write_and_report(path: Path, barrier: object, results: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    try:
        write(path, [record(0, 1000)])
        results.put("written")  # type: ignore[attr-defined]
    except JobError:
        results.put("refused")  # type: ignore[attr-defined]


@pytest.mark.slow
def test_of_runs_that_start_together_some_succeed_and_the_others_are_refused(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(4), context.Queue()
    workers = [
        context.Process(target=_write_and_report, args=(tmp_path / "out", barrier, results)) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    outcomes = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    assert "written" in outcomes
    assert set(outcomes) <= {"written", "refused"}
    assert names(tmp_path / "out") == ["_manifest.json", "part-00000.parquet"]


def test_a_run_that_is_refused_or_fails_leaves_no_lock(tmp_path: Path) -> None:
    (tmp_path / "foreign.parquet").touch()
    for _ in range(2):
        with pytest.raises(JobError, match=r"foreign.parquet"):
            write(tmp_path, [record(0, 5)])
    assert names(tmp_path) == ["foreign.parquet"]


def test_one_quarantine_file_belongs_to_one_run(tmp_path: Path) -> None:
    first = Quarantine(tmp_path / "bad.parquet")
    with pytest.raises(JobError, match=rf"process {os.getpid()} on .* is writing"):
        Quarantine(tmp_path / "bad.parquet")
    first.leave()
    Quarantine(tmp_path / "bad.parquet").leave()
    assert names(tmp_path) == []


def test_a_folder_is_free_again_after_a_run(tmp_path: Path) -> None:
    for _ in range(2):
        with open_output(tmp_path / "out") as output:
            output.write(record(0, 5))
            output.finish()


WITHOUT_POSIX = """
import importlib, os, pkgutil, signal, sys
import logging, multiprocessing.connection, random, shutil, statistics, tempfile, typer  # which look at the system, too
import pyarrow.dataset

for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
for name in ("register_at_fork", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "pread", "sched_getaffinity"):
    delattr(os, name)
del signal.SIGHUP
import pyarrow as pa
import seqflow as sf
from seqflow.job import Job, run

folder = os.path.dirname(sf.__file__)
for room in ("cli", "engine", "files", "identity", "job", "loader", "output", "providers", "report", "vocabulary"):
    for module in pkgutil.iter_modules([os.path.join(folder, room)], f"seqflow.{room}."):
        importlib.import_module(module.name)
(batch,) = sf.Loader(pa.table({"x": [[1], []]}), batch=2, index="lengths.arrow")
assert batch["x"].to_lists() == [[1], []]
open("text.txt", "w").write("a")
open("job.toml", "w").write('[source]\\npaths = "text.txt"\\n[batch]\\nkind = "rows"\\nn = 1\\n[output]\\npath = "out"')
try:
    run(Job.read("job.toml"))
except sf.JobError as error:
    print(error, os.path.exists("out"))
"""


@pytest.mark.slow
def test_without_posix_all_is_imported_and_a_job_stops_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_POSIX]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.match(
        "output: found .*, expected a POSIX system: .*\n  run jobs on Linux, .* False\n$", done.stdout
    )
