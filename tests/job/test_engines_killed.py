"""Workers and drivers that are killed, at any moment: the output is that of an undisturbed run, byte for byte."""

import os
import random
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from command import Process
from killed_jobs import start, workers_of, write_slow_job
from marks import THOROUGH

ENGINES = {"workers": ["--workers", "2"], "ray": ["--engine", "ray", "--workers", "2"]}
pytestmark = pytest.mark.slow


@pytest.fixture(params=ENGINES if THOROUGH else ["workers"])
def engine(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "ray":
        pytest.importorskip("ray")
    return ENGINES[request.param]


FILES = 4 if THOROUGH else 2
PARTS = 40 * FILES
"""There are a few more, of one window each."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """The folder of a job, and what an undisturbed run in one process leaves."""
    folder = tmp_path_factory.mktemp("job")
    write_slow_job(folder, "o/out", part_bytes="1", bad_rows="o/bad.parquet", files=FILES, rows=3000)
    done(start(folder))
    found = files(folder)
    assert sum("part-" in name for name in found) > PARTS
    return folder, found


@pytest.fixture
def folder(made: tuple[Path, dict[str, bytes]]) -> Path:
    """The folder without what a run has left."""
    shutil.rmtree(made[0] / "o", ignore_errors=True)
    return made[0]


@pytest.fixture
def expected(made: tuple[Path, dict[str, bytes]]) -> dict[str, bytes]:
    return made[1]


def done(process: Process) -> None:
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def files(folder: Path) -> dict[str, bytes]:
    """Everything that a run leaves."""
    found = [path for path in (folder / "o").rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def finished(folder: Path) -> int:
    return len(list((folder / "o" / "out").glob(".*.done")))


def wait_for(process: Process, folder: Path, parts: int) -> None:
    """Wait until a run has finished so many parts."""
    while finished(folder) < parts:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def kill_worker(process: Process, draw: random.Random) -> None:
    while process.poll() is None:
        with suppress(IndexError, ProcessLookupError):  # there is none yet, or it has ended
            return os.kill(draw.choice(workers_of(process)), signal.SIGKILL)
    raise AssertionError("the run ended before a worker was seen")


def test_workers_and_drivers_are_killed(folder: Path, engine: list[str], expected: dict[str, bytes]) -> None:
    """A worker after each fourteenth part, a driver at two places; in thorough tests, after each seventh, and at five."""
    draw = random.Random(5)
    process = start(folder, *engine, WAIT="0.05")
    workers = {*range(1, PARTS - 8, 7 if THOROUGH else 14)}
    for parts in sorted({*workers, *range(25, PARTS - 8, 30)}):
        wait_for(process, folder, parts)
        if parts in workers:
            kill_worker(process, draw)
        else:
            process.send_signal(draw.choice([signal.SIGKILL, signal.SIGTERM]))
            process.communicate()
            process = start(folder, *engine, "--resume", WAIT="0.05")
    done(process)
    assert files(folder) == expected


def test_a_driver_that_is_killed_while_it_gives_names_goes_on(
    folder: Path, engine: list[str], expected: dict[str, bytes]
) -> None:
    """At some moments of the commits, and of the end."""
    moments = (3, 100, 230, 240, 300, 390) if THOROUGH else (50, 190)
    for moment in moments:
        process = start(folder, *engine, "--overwrite", KILL_AT=str(moment))
        process.communicate()
        assert process.returncode == -signal.SIGKILL, moment
        done(start(folder, *engine, "--resume"))
        assert files(folder) == expected, moment


def test_runs_that_are_killed_go_on_with_other_engines(
    folder: Path, engine: list[str], expected: dict[str, bytes]
) -> None:
    now, later = engine, [[], engine, []]
    for number, next_one in enumerate(later, 1):
        process = start(folder, *now, "--resume", WAIT="0.05")
        wait_for(process, folder, number * PARTS // 4)
        process.kill()
        process.communicate()
        now = next_one
    done(start(folder, *now, "--resume"))
    assert files(folder) == expected


def test_a_driver_that_is_stopped_leaves_no_workers_and_no_attempts(folder: Path, engine: list[str]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process = start(folder, *engine, "--overwrite", WAIT="0.05")
        # the parts of the previous run are there until this one has removed them
        while not (workers := workers_of(process)) or finished(folder) < 3:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate()
        assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            time.sleep(0.05)
        if number != signal.SIGKILL:
            assert not list((folder / "o" / "out").glob(".tasks-*"))
    done(start(folder, *engine, "--overwrite"))
    assert not list((folder / "o").rglob(".*"))


def test_a_second_driver_at_the_same_output_is_refused(folder: Path, engine: list[str]) -> None:
    first = start(folder, *engine)
    wait_for(first, folder, 1)
    (folder / "hold").touch()
    second = start(folder, *engine, "--resume")
    _, errors = second.communicate()
    assert second.returncode == 2
    assert "is writing to" in errors, errors
    (folder / "hold").unlink()
    done(first)
