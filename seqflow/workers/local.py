"""Workers as processes of this machine."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from seqflow.workers.engine import Ended
from seqflow.workers.worker import Outcome, Setup, run_task

_START = (
    "import sys; sys.path[:] = {path!r}; from seqflow.workers.local import work; work({descriptor}, {parent})"
)


class _Process:
    """A worker process and the pipe to it."""

    def __init__(self, setup: bytes) -> None:
        self.pipe, theirs = Pipe()
        start = _START.format(path=sys.path, descriptor=theirs.fileno(), parent=os.getpid())
        # a new interpreter: a fork would copy the locks of this process's threads, and multiprocessing's spawn would
        # run the user's main module again
        self._process = subprocess.Popen(
            [sys.executable, "-c", start], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
        )
        # with a copy of the worker's end open here, `recv_bytes` would not end when the worker dies
        theirs.close()
        self.number: int | None = None
        """Number of the task that it runs."""
        with suppress(OSError):  # the worker has died: `ended` reports it
            self.pipe.send_bytes(setup)

    def run(self, number: int, task: bytes) -> None:
        self.number = number
        with suppress(OSError):
            self.pipe.send_bytes(task)

    def ended(self) -> Ended:
        """Return how its task has ended; the pipe must be ready."""
        number = self.number
        assert number is not None
        try:
            outcome: Outcome = pickle.loads(self.pipe.recv_bytes())
        except (EOFError, OSError):
            return Ended(number, died=_how_it_ended(self._process.wait()))
        self.number = None
        return Ended(number, outcome.result, outcome.error, seconds=outcome.seconds)

    def end(self) -> None:
        """End the process at once: it writes only under its own names, so no file is damaged."""
        self._process.kill()
        self._process.wait()
        self.pipe.close()


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"it exited with {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"


class ProcessEngine:
    """At most `workers` processes, started as they are needed; a process that dies is replaced."""

    def __init__(self, workers: int, setup: Setup) -> None:
        self.workers = workers
        self._setup = pickle.dumps(setup)
        self._processes: list[_Process] = []
        self._waiting: deque[tuple[int, bytes]] = deque()

    def __enter__(self) -> "ProcessEngine":
        return self

    def submit(self, number: int, task: Any) -> None:
        """Run a task in the first free process."""
        self._waiting.append((number, pickle.dumps(task)))
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting:
            free = next((one for one in self._processes if one.number is None), None)
            if free is None:
                if len(self._processes) >= self.workers:
                    return
                free = _Process(self._setup)
                self._processes.append(free)
            free.run(*self._waiting.popleft())

    def forget(self, number: int) -> None:
        """Do not start a task that still waits."""
        self._waiting = deque(one for one in self._waiting if one[0] != number)

    def wait(self, seconds: float) -> list[Ended]:
        """Return the tasks that have ended since the last call; wait for one, at most `seconds`."""
        by_pipe: dict[Any, _Process] = {one.pipe: one for one in self._processes if one.number is not None}
        found = []
        for pipe in wait(list(by_pipe), seconds):
            process = by_pipe[pipe]
            ended = process.ended()
            found.append(ended)
            if ended.died:
                process.end()
                self._processes.remove(process)
        self._hand_out()
        return found

    def __exit__(self, *exception: object) -> None:
        for process in self._processes:
            process.end()
        self._processes = []


def work(descriptor: int, parent: int) -> None:
    """Run the tasks that arrive through a pipe, until it closes or the parent process ends."""
    # Ctrl-C reaches the whole process group; the parent ends this process
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    pipe = Connection(descriptor)
    with suppress(EOFError, OSError):
        setup: Setup = pickle.loads(pipe.recv_bytes())
        while True:
            pipe.send_bytes(run_task(setup, pickle.loads(pipe.recv_bytes())))


def _end_with(parent: int) -> None:
    """End this process at once when its parent has ended."""
    import time

    # polled: Linux's PR_SET_PDEATHSIG would act when the starting thread ends, and other systems do not have it
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
