"""Results in order, whatever the workers do: real processes that fail, die and dawdle."""

import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from seqflow.errors import JobError, ProviderError
from seqflow.workers import EngineSettings, Setup, engine, in_order, open_engine
from seqflow.workers.worker import versions


def prepared(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return function


def results(function: Callable[[Any], Any], tasks: Any, workers: int = 2) -> Iterator[tuple[Any, Any]]:
    setup = Setup("a run", pickle.dumps(partial(prepared, function)), 1)
    with open_engine(EngineSettings(workers=workers), setup) as opened:
        yield from in_order(opened, tasks, lambda task: f"task {task}")


def square_slowly(number: int) -> int:
    time.sleep(0.02 * (number % 3 == 0))
    return number * number


@pytest.mark.slow
def test_results_are_in_the_order_of_the_tasks() -> None:
    assert list(results(square_slowly, range(30), 3)) == [(n, n * n) for n in range(30)]


def test_no_task_is_no_result() -> None:
    assert list(results(square_slowly, [])) == []


def fail_at_five(number: int) -> int:
    if number == 5:
        error = ProviderError("file.parquet is damaged\n  write it again")
        error.add_note("preparing file.parquet")
        raise error
    return number


@pytest.mark.slow
def test_an_error_is_itself_with_its_notes_and_comes_in_its_turn() -> None:
    found: list[int] = []
    running = results(fail_at_five, range(100))
    with pytest.raises(ProviderError, match=r"file\.parquet is damaged") as caught:
        found.extend(number for number, _ in running)
    assert found == [0, 1, 2, 3, 4]
    assert caught.value.__notes__ == ["preparing file.parquet"]


class OddError(Exception):
    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def fail_oddly(number: int) -> int:
    raise OddError(number, 2)


@pytest.mark.slow
def test_an_error_that_cannot_be_sent_has_its_text() -> None:
    with pytest.raises(JobError, match="OddError: 0 and 2"):
        list(results(fail_oddly, range(2)))


def die_sometimes(folder: str, number: int) -> int:
    """Each task dies with its worker at the first attempts: as many as its number says."""
    mark = Path(folder) / f"{number}"
    attempts = int(mark.read_text()) if mark.exists() else 0
    mark.write_text(str(attempts + 1))
    if attempts < number % 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.slow
def test_a_task_whose_worker_dies_is_begun_again(tmp_path: Path) -> None:
    found = list(results(partial(die_sometimes, str(tmp_path)), range(8)))
    assert found == [(n, n) for n in range(8)]


def die(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    return number


@pytest.mark.slow
def test_a_task_that_always_ends_its_worker_ends_the_run_with_an_error_that_names_it() -> None:
    with pytest.raises(
        JobError, match=r"engine: task 1: its worker has died 6 times: it was ended by SIGSEGV"
    ):
        list(results(die, range(3)))


def dawdle_once(folder: str, number: int) -> str:
    mark = Path(folder) / f"{number}"
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return "the second"
    if number == 2:
        time.sleep(2000)  # a test that waits for it hangs
    return "the first"


@pytest.mark.slow
def test_a_straggler_is_started_twice_and_one_result_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "SLOW_SECONDS", 0.2)
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.1)
    found = list(results(partial(dawdle_once, str(tmp_path)), range(5)))
    assert found == [(n, "the second" if n == 2 else "the first") for n in range(5)]


def sleep_and_count(folder: str, number: int) -> int:
    with (Path(folder) / "begun").open("a") as file:
        file.write(f"{number}\n")
    time.sleep(1.2 if number == 1 else 0.01)
    return number


def test_a_task_that_waits_to_be_begun_twice_is_not_begun_when_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only worker cannot begin it again before it has ended."""
    monkeypatch.setattr(engine, "SLOW_SECONDS", 0.2)
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(engine, "SHARE", 1)
    found = list(results(partial(sleep_and_count, str(tmp_path)), range(6), workers=1))
    assert found == [(n, n) for n in range(6)]
    assert (tmp_path / "begun").read_text().split() == [str(n) for n in range(6)]


@pytest.mark.slow
def test_results_that_wait_for_an_earlier_one_are_bounded(tmp_path: Path) -> None:
    """While the first task runs the others go on, but only so far."""
    begun = []

    def tasks() -> Iterator[int]:
        for number in range(1000):
            begun.append(number)
            yield number

    for number, _ in results(partial(wait_for, str(tmp_path)), tasks()):
        if number == 0:
            assert len(begun) <= 4 * (2 * 2 + 1)
        if number == 50:
            break


def wait_for(folder: str, number: int) -> int:
    if number == 0:
        time.sleep(1.0)
    return number


@pytest.mark.slow
def test_workers_end_with_their_engine() -> None:
    pids = [pid for _, pid in results(own_number, range(6))]
    for pid in set(pids):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def own_number(number: int) -> int:
    return os.getpid()


def threads_here(number: int) -> tuple[int, int, int]:
    import pyarrow as pa

    from seqflow import kernels

    return kernels.num_threads(), pa.cpu_count(), pa.io_thread_count()


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_worker_keeps_to_the_threads_of_its_cpus(cpus: int) -> None:
    setup = Setup("a run", pickle.dumps(partial(prepared, threads_here)), cpus)
    with open_engine(EngineSettings(workers=1, cpus=cpus), setup) as opened:
        ((_, found),) = in_order(opened, [0], str)
    assert found == (cpus, cpus, cpus)


def folder_here(number: int) -> str:
    return os.getcwd()


def test_a_worker_is_in_the_folder_from_which_the_run_was_started(tmp_path: Path) -> None:
    function = pickle.dumps(partial(prepared, folder_here))
    for folder in (tmp_path, tmp_path / "gone"):
        setup = Setup("a run", function, 1, folder=str(folder))
        with open_engine(EngineSettings(workers=1), setup) as opened:
            found = in_order(opened, [0], str)
            if folder == tmp_path:
                assert list(found) == [(0, str(tmp_path))]
            else:
                with pytest.raises(
                    JobError, match=r"the current folder, '.*gone', is not there on .*: No such file"
                ):
                    list(found)


def test_a_worker_with_other_packages_is_refused() -> None:
    others = {**versions(), "pyarrow": "1.0"}
    setup = Setup("a run", pickle.dumps(partial(prepared, own_number)), 1, versions=others)
    with (
        open_engine(EngineSettings(workers=1), setup) as opened,
        pytest.raises(JobError, match=r"a worker on '.*' has other packages: pyarrow is .*, and 1\.0 where"),
    ):
        list(in_order(opened, [0], str))
