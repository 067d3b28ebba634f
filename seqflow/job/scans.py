"""Scan all blocks of a source once with the workers of an engine: lengths for an index, counts of keys."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa

from seqflow.errors import JobError, nearest
from seqflow.job.job import Job
from seqflow.job.opening import import_job_modules, open_loader
from seqflow.job.part_tasks import absolute, sendable_source
from seqflow.loader import Loader
from seqflow.loader.order.index import Measured
from seqflow.loader.order.recipe import Listing, Stamps
from seqflow.loader.order.windows import BlockSlice
from seqflow.loader.run.reading import fetched_ahead
from seqflow.loader.run.windows import WindowMaker
from seqflow.output.attempt_folders import new_name
from seqflow.progress import Stage, stage
from seqflow.providers import Provider
from seqflow.providers.lenient import LenientReader
from seqflow.record import Record
from seqflow.vocabulary.counting import added, count, keys_of_blocks, keys_of_column
from seqflow.vocabulary.keys import as_keys, strings_of
from seqflow.workers import EngineSettings, Setup, in_order, open_engine

_TASK_BYTES, _TASK_BLOCKS = 64 << 20, 1000
"""Approximate planned bytes, and blocks, of a task."""


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Consecutive blocks of a scan, in slices if they are read so."""

    slices: tuple[BlockSlice, ...]
    stamps: Stamps
    """Size and modification time of their files, when they were listed."""
    source: bytes | None
    """The pickled source with these files alone; None if it cannot be divided."""

    @property
    def name(self) -> str:
        """Name of the blocks in errors."""
        first, last = self.slices[0].block, self.slices[-1].block
        return f"blocks from {first.origin}, block {first.index}, to {last.origin}, block {last.index}"


Look = Callable[[Provider, ScanTask], Any]
"""Function that examines the blocks of a task, read from a provider."""


@dataclass(frozen=True, slots=True)
class ScanWorker:
    """Setup that prepares a worker for the blocks of a source."""

    job: Job | None
    """Job whose modules are imported first."""
    source: bytes
    prepare: Callable[[Provider], Look]

    def __call__(self) -> Callable[[ScanTask], Any]:
        if self.job is not None:
            import_job_modules(self.job)
        provider: Provider = pickle.loads(self.source)
        return partial(_run, provider, self.prepare(provider))


def _run(provider: Provider, look: Look, task: ScanTask) -> Any:
    if task.source is not None:
        provider = replace(provider, source=pickle.loads(task.source))
    return look(provider, task)


def _scan(
    loader: Loader,
    job: Job | None,
    prepare: Callable[[Provider], Look],
    settings: EngineSettings,
    slices: Sequence[BlockSlice],
) -> Iterator[Any]:
    """Yield the results of the workers for the blocks of a loader's source, in order."""
    if not slices:
        return
    source = sendable_source(loader.source, loader.columns)
    worker = ScanWorker(job, source, prepare)
    with open_engine(settings, Setup(new_name(), pickle.dumps(worker), settings.cpus)) as engine:
        tasks = _tasks(loader.source, loader.pipeline.listing, slices)
        with stage(Stage("blocks", len({one.number for one in slices}))) as here:
            for task, found in in_order(engine, tasks, lambda task: task.name):
                here.done += len({one.number for one in task.slices})
                yield found


def _tasks(provider: Provider, listing: Listing, slices: Sequence[BlockSlice]) -> Iterator[ScanTask]:
    is_divided = provider.of_files(()).source is not provider.source
    for together in _together(slices):
        files = tuple(dict.fromkeys(one.block.origin for one in together))
        source = pickle.dumps(provider.of_files(files).source) if is_divided else None
        yield ScanTask(tuple(together), listing.stamps_of(files), source)


def _together(slices: Sequence[BlockSlice]) -> Iterator[list[BlockSlice]]:
    """Yield the slices of each task: as many whole blocks as make a task of some size."""
    together: list[BlockSlice] = []
    size = blocks = 0
    for _, of_block in groupby(slices, key=lambda one: one.number):
        block = list(of_block)
        together += block
        size, blocks = size + sum(one.nbytes for one in block), blocks + 1
        if size >= _TASK_BYTES or blocks == _TASK_BLOCKS:
            yield together
            together, size, blocks = [], 0, 0
    if together:
        yield together


def measure(loader: Loader, job: Job | None, settings: EngineSettings, measured: Measured) -> None:
    """Measure the lengths of all rows of a loader with workers."""
    opened = (
        partial(_with_plan, loader.batch, loader.bad_rows.policy)
        if job is None
        else partial(open_loader, absolute(job, settings.cpus))
    )
    left = [one for one in loader.pipeline.listing.slices() if measured.lacks(one)]
    for lengths in _scan(loader, job, partial(_measuring, opened), settings, left):
        measured.add_measured(lengths)


def _with_plan(plan: Any, bad_rows: str, provider: Provider) -> Loader:
    return Loader(provider, batch=plan, bad_rows=bad_rows, threads=0, rank=0, world_size=1)


def _measuring(opened: Callable[[Provider], Loader], provider: Provider) -> Look:
    recipe = opened(provider).recipe

    def look(source: Provider, task: ScanTask) -> Any:
        measured = Measured(task.slices)
        maker = WindowMaker(replace(recipe, source=source), task.stamps, measured=measured)
        for found in fetched_ahead(maker.recipe, task.slices).each():
            for one in found:
                maker.read(one, 0)
        return measured.lengths

    return look


def count_column(
    provider: Provider, column: str, settings: EngineSettings, skips: bool = False
) -> tuple[pa.Table, LenientReader]:
    """Return how often each key of a column occurs, as `vocabulary.counting.count`, and what is left out: bad rows
    if it `skips` them, and damaged files.
    """
    if not settings.has_workers:
        lenient = LenientReader.of(provider, skips)
        return count(keys_of_column(provider, column, lenient)), lenient
    loader = Loader(provider, batch=1, threads=0, rank=0, world_size=1)
    look = partial(_counting, column, skips)
    found = [*_scan(loader, None, look, settings, loader.pipeline.listing.slices())]
    counts = added(of_task for of_task, _ in found)
    return counts, LenientReader.of(provider, skips).add(lenient for _, lenient in found)


def _counting(column: str, skips: bool, provider: Provider) -> Look:
    def look(source: Provider, task: ScanTask) -> tuple[pa.Table, LenientReader]:
        lenient = LenientReader(skips)
        keys = keys_of_blocks(source, column, [one.block for one in task.slices], lenient)
        return count(keys), lenient

    return look


def prepared_loader(job: Job) -> Loader:
    """Return the loader of a job up to `prepare`, whose bad rows go to no file."""
    return open_loader(job.without_quarantine() if job.bad_rows.policy == "quarantine" else job)


def count_prepared(job: Job, loader: Loader, name: str, settings: EngineSettings) -> pa.Table:
    """Return how often each key of the tensor `name` that a job prepares, or of its `values`, occurs.

    Keys are integers, or the strings of bytes. Raise JobError when there is no such tensor.
    """
    if not settings.has_workers:
        return count(_keys_of_record(record, name) for record in loader)
    opened = partial(open_loader, absolute(job, settings.cpus))
    look, slices = partial(_counting_prepared, opened, name), loader.pipeline.listing.slices()
    return added(_scan(loader, job, look, settings, slices))


def _counting_prepared(opened: Callable[[Provider], Loader], name: str, provider: Provider) -> Look:
    recipe = opened(provider).recipe

    def look(source: Provider, task: ScanTask) -> pa.Table:
        maker = WindowMaker(replace(recipe, source=source), task.stamps)
        found = (record for one in task.slices for record in maker.read(one, 0)[0])
        return count(_keys_of_record(record, name) for record in found)

    return look


def _keys_of_record(record: Record, name: str) -> pa.Array:
    tensor = name
    while tensor not in record and any(other.startswith(f"{tensor}.values") for other in record):
        tensor += ".values"
    if tensor not in record:
        guess = nearest(name, [*record, *(other.partition(".")[0] for other in record)])
        raise JobError(f"the job prepares no tensor {name!r}{guess}; it prepares {', '.join(record)}")
    lengths = record.parents[tensor]
    if lengths is not None and record[tensor].dtype == "uint8":
        return strings_of(record[tensor], record[lengths])
    return as_keys(record[tensor])
