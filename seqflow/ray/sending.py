"""Data sent once to workers of Ray Data, and the readers that workers make from them."""

import importlib
import pickle
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from seqflow.errors import OpError, ProviderError, SeqflowError
from seqflow.job import Job
from seqflow.job.counts import counts_of, sum_of
from seqflow.job.opening import import_job_modules, open_loader
from seqflow.job.part_tasks import PartTask, absolute
from seqflow.loader import Loader, Stats
from seqflow.loader.order.recipe import Stamps, check_unchanged
from seqflow.loader.parts import loader_for_workers, make_part
from seqflow.loader.run.ledger import BadRowHandler
from seqflow.net import Net
from seqflow.output.attempt_folders import new_name
from seqflow.providers.own_kinds import module_of
from seqflow.record import to_arrow
from seqflow.record.one_schema import of_schema
from seqflow.workers import Setup
from seqflow.workers.worker import sendable

Report = Callable[[Mapping[str, Any]], Stats]
"""Function that takes the counts of a task, and returns the sum of all tasks so far."""
Pickle = Callable[[Any], bytes]
"""Function that pickles objects, including functions of `__main__`."""


def setup_of_loader(loader: Loader, schema: pa.Schema, dumps: Pickle) -> Setup:
    """Return the setup for a loader: its arguments are sent. Raise OpError for objects that cannot be sent."""
    return _setup(
        LoaderReader(_own_modules(loader), _sent("the loader", loader_for_workers(loader), dumps), schema)
    )


def setup_of_job(job: Job, loader: Loader, schema: pa.Schema, dumps: Pickle) -> Setup:
    """Return the setup for a job: its sections and paths are sent, and its source with the list of files."""
    source = _sent("the source", loader_for_workers(loader).source, dumps)
    return _setup(JobReader(absolute(job, 1), source, schema))


def _setup(reader: "LoaderReader | JobReader") -> Setup:
    return Setup(new_name(), pickle.dumps(reader), threads=1)


def _sent(what: str, value: Any, dumps: Pickle) -> bytes:
    try:
        return dumps(value)
    except Exception as error:
        raise OpError(
            f"seqflow.ray.dataset: {what} cannot be sent to other processes: {type(error).__name__}: {error}"
        ) from None


def _own_modules(loader: Loader) -> tuple[str, ...]:
    """Return the modules of the user's own ops and source; raise OpError when other processes cannot import them."""
    found = {module_of(loader.source.opened_by.kind): "the source"} if loader.source.opened_by else {}
    for net in (loader.prepare, loader.net):
        for op in {step.op for step in net.steps} if isinstance(net, Net) else ():
            if op.family is None and not op.function.__module__.startswith("seqflow."):
                found[op.function.__module__] = f"the op {op.name!r}"
    if "__main__" in found:
        raise OpError(
            f"seqflow.ray.dataset: {found['__main__']} is defined in the main program, which workers do not import\n"
            "  put it into a module"
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class LoaderReader:
    """Prepares a worker for the windows of a loader."""

    modules: tuple[str, ...]
    loader: bytes
    schema: pa.Schema

    def __call__(self) -> "SentWindowReader":
        try:
            for name in self.modules:
                importlib.import_module(name)
            return SentWindowReader(pickle.loads(self.loader), self.schema)
        except SeqflowError:
            raise
        except Exception as error:
            raise OpError(
                f"seqflow.ray.dataset: a worker cannot open the loader: {type(error).__name__}: {error}\n"
                "  workers import what it uses: install it there, or send it by py_modules of Ray's runtime_env"
            ) from error


@dataclass(frozen=True, slots=True)
class JobReader:
    """Prepares a worker for the windows of a job."""

    job: Job
    source: bytes
    schema: pa.Schema

    def __call__(self) -> "SentWindowReader":
        import_job_modules(self.job)  # the source may be defined in one of these modules
        return SentWindowReader(open_loader(self.job, pickle.loads(self.source)), self.schema)


def _alone(counts: Mapping[str, Any]) -> Stats:
    return sum_of([counts])


@dataclass(frozen=True, slots=True)
class SentWindowReader:
    """Makes the batches of some windows, as tables of one schema; without batches, one table without rows."""

    loader: Loader
    schema: pa.Schema

    def __call__(self, task: PartTask, report: Report = _alone) -> Iterator[pa.Table]:
        is_empty = True
        try:
            for batch in self._batches(task, report):
                is_empty = False
                yield pa.Table.from_batches([batch])
        except Exception as error:
            raise sendable(error) from None
        if is_empty:
            yield self.schema.empty_table()

    def _batches(self, task: PartTask, report: Report) -> Iterator[pa.RecordBatch]:
        source = self.loader.source
        _check_unchanged(task.part.stamps, source.bad_files.leaves_out)
        if task.source is not None:
            source = replace(source, source=pickle.loads(task.source))
        # bad rows that are errors have been raised before a handler gets them
        handler, stats = BadRowHandler(self.loader.bad_rows), Stats()
        with make_part(self.loader, task.part, handler, stats, source=source) as batches:
            for batch in batches:
                yield of_schema(to_arrow(batch), self.schema)
        handler.check_bounds(report(counts_of(stats)), at_end=False)


def _check_unchanged(stamps: Stamps, may_be_gone: bool) -> None:
    """Raise ProviderError when a file on this machine differs from the listed one."""
    for path in stamps:
        try:
            check_unchanged(stamps, path, may_be_gone)
        except ProviderError as error:
            error.add_note(
                f"seen on {socket.gethostname()!r}; workers on other machines need a file system that all share"
            )
            raise
