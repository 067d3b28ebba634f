"""Exit codes: bad usage, bad data, signals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import seqflow
from killed_jobs import start, write_slow_job
from marks import slow


@pytest.mark.parametrize("number", [signal.SIGTERM, *slow(signal.SIGINT, signal.SIGHUP)])
def test_a_signal_stops_the_run_and_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    write_slow_job(tmp_path, "out", part_bytes='"1 MiB"', bad_rows="bad.parquet", files=1, rows=3000)
    before = sorted(tmp_path.glob("*.*"))
    run = start(tmp_path, WAIT="0.1")  # it would take 10 seconds
    while not any((tmp_path / "out").glob(".part*")):
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    run.send_signal(number)
    run.send_signal(number)  # an impatient user
    _, stderr = run.communicate()
    assert run.returncode == 128 + number
    assert stderr == f"seqflow: stopped by {number.name}\n"
    assert sorted(tmp_path.glob("*.*")) == before
    assert not (tmp_path / "out").exists()


HANGS = """
import os, threading, time
def forever():
    while True:
        try:
            print("hanging", flush=True)
            with open("pipe"):  # which nobody writes to
                pass
        except BaseException:
            continue
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["forever()", "threading.Thread(target=forever).start()\ntime.sleep(1000)"])
def test_the_second_signal_ends_a_run_that_hangs(folder: Path, where: str) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "hangs.py").write_text(HANGS + where)
    (folder / "job.toml").write_text('imports = ["hangs"]\n' + (folder / "job.toml").read_text())
    command = [sys.executable, "-m", "seqflow", "run", "job.toml"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "hanging\n"
        run.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(timeout=1)
        run.send_signal(signal.SIGINT)
        _, stderr = run.communicate()
    assert run.returncode == 128 + signal.SIGINT
    assert stderr == "seqflow: stopped by SIGINT\n"


@pytest.mark.slow
def test_a_run_under_nohup_goes_on_when_its_terminal_is_closed(folder: Path) -> None:
    program = "import signal, os; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execvp({0!r}, {1!r})"
    command = [sys.executable, "-m", "seqflow", "run", "job.toml"]
    (folder / "hup.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGHUP)")
    (folder / "job.toml").write_text('imports = ["hup"]\n' + (folder / "job.toml").read_text())
    done = subprocess.run(
        [sys.executable, "-c", program.format(sys.executable, command)], cwd=folder, check=False
    )
    assert done.returncode == 0


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error_worth_a_traceback() -> None:
    listing = subprocess.Popen(
        [sys.executable, "-m", "seqflow", "ops", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert listing.stdout is not None
    listing.stdout.close()
    assert listing.stderr is not None
    assert listing.stderr.read() == b""
    listing.stderr.close()
    listing.wait()


def test_bad_usage_is_2_and_bad_data_1(folder: Path) -> None:
    usage = seqflow("run", "nowhere.toml", folder=folder)
    assert (usage.returncode, usage.stdout) == (2, "")
    assert usage.stderr == "seqflow: there is no job file 'nowhere.toml'\n"
    (folder / "docs.parquet").write_bytes(b"PAR1 and nothing else")
    data = seqflow("run", "job.toml", folder=folder)
    assert data.returncode == 1
    assert data.stderr.startswith("seqflow: docs.parquet is not a Parquet file, or damaged")


def last_event(stderr: str) -> dict[str, object]:
    """The last line of a log of JSON; each line must be an object with a level."""
    events = [json.loads(line) for line in stderr.splitlines()]
    assert all(event["level"] in ("info", "warning", "error") and event["time"] for event in events)
    assert [event["event"] for event in events].count("end") == 1
    last: dict[str, object] = events[-1]
    return {name: last[name] for name in ("event", "level", "outcome", "exit_code")}


def ended(level: str, outcome: str, code: int) -> dict[str, object]:
    return {"event": "end", "level": level, "outcome": outcome, "exit_code": code}


@pytest.mark.parametrize("log", [("--log", "json"), ("--log=json",)])
def test_a_log_of_json_ends_with_outcome_and_exit_code(folder: Path, log: tuple[str, ...]) -> None:
    for arguments, expected in (
        ((), ended("info", "new", 0)),
        ((), ended("info", "complete", 0)),
        (("--dry-run",), ended("info", "done", 0)),
        (("--set", "batch.max_tokens=5"), ended("error", "failed", 2)),
        (("--bogus",), ended("error", "failed", 2)),
        (("--set", "batch.nonsense=5"), ended("error", "failed", 2)),
    ):
        done = seqflow("run", "job.toml", *log, *arguments, folder=folder)
        assert done.returncode == expected["exit_code"], done.stderr
        assert last_event(done.stderr) == expected
    missing = seqflow("run", "nowhere.toml", *log, folder=folder)
    assert (missing.returncode, last_event(missing.stderr)) == (2, ended("error", "failed", 2))
    (folder / "docs.parquet").write_bytes(b"PAR1 and nothing else")
    damaged = seqflow("run", "job.toml", *log, "--overwrite", folder=folder)
    assert (damaged.returncode, last_event(damaged.stderr)) == (1, ended("error", "failed", 1))


@pytest.mark.parametrize("number", [signal.SIGTERM, *slow(signal.SIGINT)])
@pytest.mark.parametrize("times", [1, 2])
def test_a_log_of_json_ends_so_when_a_signal_stops_the_run(
    tmp_path: Path, number: signal.Signals, times: int
) -> None:
    write_slow_job(tmp_path, "out", part_bytes='"1 MiB"', bad_rows="bad.parquet", files=1, rows=3000)
    run = start(tmp_path, "--log", "json", WAIT="0.1")
    while not any((tmp_path / "out").glob(".part*")):
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    for _ in range(times):
        run.send_signal(number)
    _, stderr = run.communicate()
    assert run.returncode == 128 + number
    assert last_event(stderr) == ended("error", "stopped", 128 + number)
    assert f"stopped by {number.name}" in stderr
