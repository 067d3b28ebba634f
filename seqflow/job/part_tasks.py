"""The parts of a job as tasks: what is sent to a worker, what it does, and what comes back."""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from seqflow.engine import Setup
from seqflow.errors import JobError, ProviderError
from seqflow.job.counts import counts_of, peak_memory
from seqflow.job.job import Job
from seqflow.job.opening import import_job_modules, open_job_output, open_loader
from seqflow.job.step_totals import with_totals
from seqflow.loader import Loader, Stats
from seqflow.loader.order.index import Measured
from seqflow.loader.order.windows import Parts
from seqflow.loader.parts import PlannedPart, make_part, origins_of, plan_parts
from seqflow.loader.run.ledger import BadRowHandler
from seqflow.output import OutputFile
from seqflow.output.attempt_folders import new_name
from seqflow.output.attempts import Attempt
from seqflow.output.quarantine import QuarantinePiece
from seqflow.providers import Provider
from seqflow.record import Record


@dataclass(frozen=True, slots=True)
class PartTask:
    """A part, as it is sent: with what the source knows of the files of the part."""

    part: PlannedPart
    source: bytes | None
    """The pickled source with these files alone; None where it cannot be divided."""

    @property
    def name(self) -> str:
        """The part, its windows and its files, for errors."""
        first, last = self.part.windows[0].number, self.part.windows[-1].number
        windows = f"window {first}" if first == last else f"windows {first} to {last}"
        files = origins_of(self.part.windows)
        more = f" and {len(files) - 1} more files" if len(files) > 1 else ""
        return f"part {self.part.number}, {windows} of {files[0]}{more}"


@dataclass(frozen=True, slots=True)
class MadePart:
    """What comes back of a part: paths and numbers; its rows are in files."""

    files: tuple[OutputFile, ...]
    """Under the names of this attempt; row groups are numbered in the part."""
    schema: bytes | None
    """That of its batches, serialized; None where it had none."""
    counts: Mapping[str, Any]
    num_batches: int
    """Its batches, those that are skipped with them."""
    last_batches: int
    """The batches of its last window."""
    bad_rows: OutputFile | None
    lengths: Path | None
    """A file of the lengths of its rows, where an index is made of them."""
    peak_memory: int


def tasks_of(loader: Loader, parts: Parts, first: int) -> Iterator[PartTask]:
    """The parts of a run, from part `first` on, each when it is asked for. Nothing is read."""
    provider = loader.source
    is_divided = provider.of_files(()).source is not provider.source
    for part in plan_parts(loader, parts, first):
        if not part.windows:
            continue
        source = None
        if is_divided:
            files = origins_of((*part.windows, *part.following))
            source = pickle.dumps(provider.of_files(files).source)
        yield PartTask(part, source)


@dataclass(frozen=True, slots=True)
class Folders:
    """Where workers write: none where there is nothing of a kind to write."""

    parts: Path | None
    bad_rows: Path | None
    lengths: Path | None


def setup_of(job: Job, loader: Loader, run: str, folders: Folders) -> Setup:
    """What each worker gets once. JobError for a source that other processes cannot read."""
    source = sendable_source(loader.source, job.source.columns)
    cpus = job.engine.cpus
    worker = PartWorker(
        absolute(job, cpus), source, folders.parts, folders.bad_rows, folders.lengths, cpus == 1
    )
    return Setup(run, pickle.dumps(worker), cpus)


def sendable_source(provider: Provider, columns: Sequence[str] | None) -> bytes:
    """A provider as other processes can have it, without its files where it can be divided.

    JobError, or ProviderError, for one that only this process can read.
    """
    if provider.is_stream:
        raise JobError(
            f"engine: {provider.origin} is a stream of this process, which no other can read\n"
            '  write it to files first, or run with kind = "local" and no workers'
        )
    try:
        provider.find_dictionaries(columns)
        return pickle.dumps(provider.of_files(()))
    except ProviderError:
        raise
    except Exception as error:
        raise JobError(
            f"engine: {provider.origin} cannot be sent to other processes: {type(error).__name__}: {error}"
        ) from None


def absolute(job: Job, cpus: int) -> Job:
    """The job with paths that mean the same wherever a worker runs, and with a worker's threads."""
    folder = job.folder.resolve()

    def place(path: str | None) -> str | None:
        return None if path is None else str(Path(path).expanduser().absolute())

    return replace(
        job,
        folder=folder,
        constants={name: str(place(file)) for name, file in job.constants.items()},
        prepare=replace(job.prepare, file=place(job.prepare.file)),
        net=replace(job.net, file=place(job.net.file)),
        output=replace(job.output, path=place(job.output.path)),
        bad_rows=replace(
            job.bad_rows, path=place(None if job.bad_rows.path is None else str(job.bad_rows.path))
        ),
        order=replace(job.order, threads=cpus - 1, index=None),
    )


@dataclass(frozen=True, slots=True)
class PartWorker:
    """Prepares a worker for the parts of a job."""

    job: Job
    source: bytes
    """The pickled provider, without files where it can be divided."""
    folder: Path | None
    """Where the files of attempts go; None where nothing is written."""
    bad_rows: Path | None
    """Where pieces of the quarantine file go."""
    lengths: Path | None
    """Where lengths for an index go."""
    is_inline: bool
    """Whether row groups are written in the thread that makes the batches."""

    def __call__(self) -> PartMaker:
        return PartMaker(self)

    def check_seen(self) -> None:
        """JobError where this machine does not see the folders of the run, or those of the job."""
        for what, folder in {
            "the output": self.folder,
            "the quarantine file": self.bad_rows,
            "the index": self.lengths,
        }.items():
            if folder is not None and not folder.is_dir():
                host = socket.gethostname()
                raise JobError(
                    f"engine: the folder of {what}, {str(folder.parent)!r}, is another one on {host!r}\n"
                    "  workers on other machines need a file system that all of them share"
                )
        paths = {**{f"constants.{name}": file for name, file in self.job.constants.items()}}
        paths |= {"prepare.file": self.job.prepare.file or "", "net.file": self.job.net.file or ""}
        missing = next((name for name, path in paths.items() if path and not os.path.exists(path)), None)
        if missing is not None:
            raise JobError(f"{missing}: {paths[missing]!r} is not there on {socket.gethostname()!r}")


class PartMaker:
    """Makes parts of a job: it reads, prepares, plans and writes them under names of their own."""

    def __init__(self, worker: PartWorker) -> None:
        self._worker, self._job = worker, worker.job
        worker.check_seen()
        import_job_modules(self._job)  # the source may be one of theirs
        self._provider: Provider = pickle.loads(worker.source)
        self._loader = open_loader(self._job, self._provider)
        self._output = open_job_output(self._job)

    def __call__(self, task: PartTask) -> MadePart:
        part, provider = task.part, self._provider
        if task.source is not None:
            provider = replace(provider, source=pickle.loads(task.source))
        _check_there(part)
        stats, piece = Stats(), self._piece(part.number)
        measured = Measured([one for window in part.windows for one in window.slices])
        try:
            with make_part(
                self._loader,
                part,
                BadRowHandler(
                    write=None if piece is None else lambda rejected: piece.write(rejected.table())
                ),
                stats,
                source=provider,
                measured=None if self._worker.lengths is None else measured,
            ) as batches:
                files, schema = self._write(part.number, batches)
                num_batches, last_batches = batches.num_batches, batches.last_batches
            return MadePart(
                tuple(files),
                None if schema is None else schema.serialize().to_pybytes(),
                counts_of(stats),
                num_batches,
                last_batches,
                None if piece is None else piece.finish(),
                self._saved(part.number, measured),
                peak_memory(),
            )
        finally:
            if piece is not None:
                piece.discard()

    def _piece(self, number: int) -> QuarantinePiece | None:
        folder, path = self._worker.bad_rows, self._job.bad_rows.path
        if folder is None or path is None:
            return None
        return QuarantinePiece(Path(path), folder / f"{number:05}-{new_name()}")

    def _write(self, number: int, batches: Iterable[Record]) -> tuple[list[OutputFile], pa.Schema | None]:
        target, folder = self._output.target, self._worker.folder
        if target is None or folder is None:
            for _ in batches:
                pass
            return [], None
        attempt = Attempt(folder, target.path, target.form, number)
        return attempt.write(self._output.layout, with_totals(batches), inline=self._worker.is_inline)

    def _saved(self, number: int, measured: Measured) -> Path | None:
        """A file of the lengths that an index needs."""
        if self._worker.lengths is None:
            return None
        path = self._worker.lengths / f"{number:05}-{new_name()}.npz"
        measured.save(path)
        return path


def _check_there(part: PlannedPart) -> None:
    """JobError where this machine does not see a file that was there when it was listed."""
    missing = next((path for path in part.stamps if not os.path.exists(path)), None)
    if missing is not None:
        raise JobError(
            f"engine: {missing!r} is not there on {socket.gethostname()!r}\n"
            "  workers on other machines read from a file system that all of them share"
        )
