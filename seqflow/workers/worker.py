"""A worker: prepares for a run once, and then runs its tasks."""

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
    """Return the versions of Python, seqflow and the packages that affect its results."""
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
    """The data sent once to each worker of a run; `prepare()` returns the function that runs a task."""

    name: str
    """Name of the run; each run has a different one."""
    prepare: bytes
    """A pickled function without arguments."""
    threads: int
    needs_folder: bool = True
    """Whether tasks may read or write files in folders of the machine that has started the run."""
    folder: str = field(default_factory=os.getcwd)
    """The current folder: paths in tasks may be relative."""
    versions: Mapping[str, str] = field(default_factory=versions)

    def enter_folder(self) -> None:
        """Make the folder the current one of this process; raise JobError when it does not exist here."""
        try:
            os.chdir(self.folder)
        except OSError as error:
            if not self.needs_folder:
                return
            raise JobError(
                f"engine: the current folder, {self.folder!r}, is not there on {socket.gethostname()!r}: "
                f"{error.strerror}\n  workers on other machines need a file system that all of them share"
            ) from None

    def function(self) -> Callable[..., Any]:
        """Return the function that runs a task here; raise JobError when this worker's packages differ from the
        sender's.
        """
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
        prepare: Callable[[], Callable[..., Any]] = pickle.loads(self.prepare)
        return prepare()


def keep_to_threads(count: int) -> None:
    """Limit kernels, pyarrow and tokenizers to this many threads in this process."""
    for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[name] = str(count)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if count > 1 else "false"
    import pyarrow as pa

    from seqflow import kernels

    kernels.set_num_threads(count)
    pa.set_cpu_count(count)
    pa.set_io_thread_count(count)


class Outcome(NamedTuple):
    """Result or error of a task in a worker."""

    result: Any
    error: BaseException | None
    seconds: float


_ready: dict[str, Callable[..., Any]] = {}
"""Function of the run for which this process is prepared."""


def prepared(setup: Setup) -> Callable[..., Any]:
    """Return the function of a run, and prepare for the run if necessary."""
    if setup.name not in _ready:
        _ready.clear()
        _ready[setup.name] = setup.function()
    return _ready[setup.name]


def run_task(setup: Setup, task: Any) -> bytes:
    """Run a task in this process, in the run's folder; return its pickled `Outcome`."""
    started = monotonic()
    try:
        if setup.name not in _ready:
            setup.enter_folder()
        return pickle.dumps(Outcome(prepared(setup)(task), None, monotonic() - started))
    except Exception as error:
        return pickle.dumps(Outcome(None, sendable(error), monotonic() - started))


def sendable(error: BaseException) -> BaseException:
    """Return an error that can be sent to another process: itself, or a JobError with its text if it cannot be
    pickled.
    """
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
