"""What a worker does: it prepares itself for a run once, and then runs task after task."""

from __future__ import annotations

import os
import pickle
import platform
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from time import monotonic
from typing import Any, NamedTuple

from seqflow.errors import JobError

_PACKAGES = ("numpy", "pyarrow", "tokenizers")


def versions() -> dict[str, str]:
    """The versions of Python, seqflow and the packages that decide what it computes."""
    from seqflow.version import __version__

    found = {"python": platform.python_version(), "seqflow": __version__}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


@dataclass(frozen=True, slots=True)
class Setup:
    """What is sent to each worker of a run once: `prepare()` gives the function that runs a task."""

    name: str
    """No two runs have the same."""
    prepare: bytes
    """A pickled function without arguments."""
    threads: int
    folder: str = field(default_factory=os.getcwd)
    """The current folder: paths in tasks may be relative."""
    versions: Mapping[str, str] = field(default_factory=versions)

    def enter_folder(self) -> None:
        """Make the folder the current one of this process; JobError where it is not there."""
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise JobError(
                f"engine: the current folder, {self.folder!r}, is not there on {socket.gethostname()!r}: "
                f"{error.strerror}\n  workers on other machines need a file system that all of them share"
            ) from None

    def function(self) -> Callable[[Any], Any]:
        """The function that runs a task here; JobError where this worker is not like the process that sent it."""
        differing = [
            f"{name} is {versions()[name]}, and {theirs} where the run was started"
            for name, theirs in self.versions.items()
            if versions()[name] != theirs
        ]
        if differing:
            raise JobError(
                f"engine: a worker on {socket.gethostname()!r} has other packages: {'; '.join(differing)}\n"
                "  install the same on all machines"
            )
        keep_to_threads(self.threads)
        prepare: Callable[[], Callable[[Any], Any]] = pickle.loads(self.prepare)
        return prepare()


def keep_to_threads(count: int) -> None:
    """Let kernels, pyarrow and tokenizers have so many threads in this process."""
    for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[name] = str(count)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if count > 1 else "false"
    import pyarrow as pa

    from seqflow import kernels

    kernels.set_num_threads(count)
    pa.set_cpu_count(count)
    pa.set_io_thread_count(count)


class Outcome(NamedTuple):
    """How a task has ended in a worker."""

    result: Any
    error: BaseException | None
    seconds: float


_ready: dict[str, Callable[[Any], Any]] = {}
"""The function of the run that this process was prepared for."""


def prepared(setup: Setup) -> Callable[[Any], Any]:
    """The function of a run, after preparing for it where that was not done yet."""
    if setup.name not in _ready:
        _ready.clear()
        _ready[setup.name] = setup.function()
    return _ready[setup.name]


def run_task(setup: Setup, task: Any) -> bytes:
    """Run a task of a run in a process of its own, which enters the run's folder: its `Outcome`, pickled."""
    started = monotonic()
    try:
        if setup.name not in _ready:
            setup.enter_folder()
        return pickle.dumps(Outcome(prepared(setup)(task), None, monotonic() - started))
    except Exception as error:
        return pickle.dumps(Outcome(None, sendable(error), monotonic() - started))


def sendable(error: BaseException) -> BaseException:
    """An error that another process can have: itself, or one with its text where it cannot be pickled."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception:
        again = None
    if type(again) is type(error) and str(again) == str(error):
        return error
    sent = JobError(f"{type(error).__name__}: {error}")
    for note in getattr(error, "__notes__", []):
        sent.add_note(note)
    return sent
