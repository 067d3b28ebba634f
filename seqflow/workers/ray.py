"""Workers as tasks of a Ray cluster."""

import os
import pickle
import signal
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from seqflow.byte_sizes import format_bytes, parse_bytes
from seqflow.errors import JobError
from seqflow.workers.engine import Ended, EngineSettings
from seqflow.workers.worker import Outcome, Setup, run_task

_OBJECT_STORE_BYTES = 128 << 20
"""Size of Ray's object store: parts travel through files, so the store holds almost nothing."""
_PROBE_SECONDS = 3.0
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # the monitor ends workers when other processes fill the memory
    "RAY_worker_niceness": "0",  # 15 by default: workers would get no CPU next to other processes
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


def import_ray() -> Any:
    """Import Ray without its messages; raise JobError when it is not installed."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise JobError(
            f"engine: Ray cannot be imported: {error}\n  pip install '.[ray]' in a clone of seqflow"
        ) from None
    return ray


class RayEngine:
    """Workers as tasks of a cluster, each with some CPUs; a cluster that was started here is also ended here."""

    def __init__(self, settings: EngineSettings, setup: Setup) -> None:
        self._ray = import_ray()
        self._settings, self._setup = settings, setup
        self._refs: dict[Any, int] = {}
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._is_own = False
        self.workers = 0

    def __enter__(self) -> "RayEngine":
        ray = self._ray
        if not ray.is_initialized():
            self._connect()
        try:
            self.workers = self._workers()
            # no retries by Ray: `in_order` counts attempts and reports the last death
            options: dict[str, Any] = {"num_cpus": self._settings.cpus, "max_retries": 0}
            if self._settings.memory is not None:
                options["memory"] = parse_bytes(self._settings.memory)
            self._task = ray.remote(**options)(_run)
            self._setup_ref = ray.put(pickle.dumps(self._setup))
        except BaseException:
            self.__exit__()
            raise
        return self

    def _connect(self) -> None:
        settings = self._settings
        address = settings.address or "local"
        if settings.address in (None, "auto"):  # the variable takes precedence, as in Ray
            address = os.environ.get("RAY_ADDRESS") or address
        options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "ERROR"}
        if address == "local":
            workers = settings.workers
            options |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
            options["num_cpus"] = None if workers is None else workers * settings.cpus
        else:
            _probe(address)
        try:
            with _own_signals():
                self._ray.init(**options)
        except Exception as error:  # Ray has no class of its own for a node that starts too late
            raise JobError(f"engine: Ray cannot be reached at {address!r}: {_first_line(error)}") from None
        self._is_own = True

    def _workers(self) -> int:
        """Return the number of tasks that run at once; raise JobError when a worker needs more than any node has."""
        cpus, memory = self._settings.cpus, self._settings.memory
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        most = max((int(node.get("CPU", 0)) for node in nodes), default=0)
        if most < cpus:
            raise JobError(
                f"engine: a worker needs {cpus} CPUs, but no node of the cluster has more than {most}"
            )
        if memory is not None:
            largest = max(int(node.get("memory", 0)) for node in nodes)
            if largest < (needed := parse_bytes(memory)):
                raise JobError(
                    f"engine: a worker needs {format_bytes(needed)}, but no node of the cluster has more than "
                    f"{format_bytes(largest)}"
                )
        there = sum(int(node.get("CPU", 0)) // cpus for node in nodes)
        return min(there, self._settings.workers or there)

    def submit(self, number: int, task: Any) -> None:
        """Run a task on the cluster, as soon as fewer than the requested number of workers run."""
        self._waiting.append((number, pickle.dumps(task)))
        self._hand_out()

    def _hand_out(self) -> None:
        # without a number of workers, Ray holds the waiting tasks, so a growing cluster takes more of them
        while self._waiting and (self._settings.workers is None or len(self._refs) < self.workers):
            number, task = self._waiting.popleft()
            self._refs[self._task.remote(self._setup_ref, self._setup.name, task)] = number

    def forget(self, number: int) -> None:
        """Do not start a task that still waits."""
        self._waiting = deque(one for one in self._waiting if one[0] != number)

    def wait(self, seconds: float) -> list[Ended]:
        """Return the tasks that have ended since the last call; wait for one, at most `seconds`."""
        ready, _ = self._ray.wait(list(self._refs), num_returns=1, timeout=seconds)
        ended = [self._ended(ref, self._refs.pop(ref)) for ref in ready]
        self._hand_out()
        return ended

    def _ended(self, ref: Any, number: int) -> Ended:
        exceptions = self._ray.exceptions
        try:
            outcome: Outcome = pickle.loads(self._ray.get(ref))
        except exceptions.RayTaskError as before:  # raised by our own code: the worker itself has not died
            return Ended(number, error=_not_started(before))
        except exceptions.RayError as lost:
            return Ended(number, died=_first_line(lost))
        return Ended(number, outcome.result, outcome.error, seconds=outcome.seconds)

    def __exit__(self, *exception: object) -> None:
        """Cancel the tasks, wait until they no longer write, and end the cluster if it was started here."""
        for ref in self._refs:
            self._ray.cancel(ref, force=True)
        if self._refs:
            self._ray.wait(list(self._refs), num_returns=len(self._refs), timeout=10)
        self._refs = {}
        if self._is_own:
            self._ray.shutdown()


def _run(setup: bytes, name: str, task: bytes) -> bytes:
    """Run a task in a worker of Ray; its error is returned, not raised."""
    return run_task(_setup(setup, name), pickle.loads(task))


_setups: dict[str, Setup] = {}


def _setup(setup: bytes, name: str) -> Setup:
    """Return the setup of a run, cached while this worker serves that run."""
    if name not in _setups:
        _setups.clear()
        _setups[name] = pickle.loads(setup)
    return _setups[name]


def _not_started(error: Exception) -> JobError:
    cause = getattr(error, "cause", None) or error
    return JobError(
        f"engine: a worker of Ray cannot run tasks of seqflow: {type(cause).__name__}: {_first_line(cause)}\n"
        "  the same packages have to be installed on all machines"
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]


def _probe(address: str) -> None:
    """Raise JobError when nothing listens at the address: Ray would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECONDS).close()
    except OSError as error:
        raise JobError(f"engine: there is no Ray cluster at {address!r}: {error.strerror or error}") from None


@contextmanager
def _own_signals() -> Iterator[None]:
    """Set our signal handlers again after Ray has set its own."""
    try:
        before = {number: signal.getsignal(number) for number in _SIGNALS}
    except ValueError:
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            try:
                signal.signal(number, handler)
            except ValueError:  # not in the main thread: Ray could not set its own there
                break
