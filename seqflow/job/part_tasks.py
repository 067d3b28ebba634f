"""Parts of a job as tasks: the data that is sent to a worker, its work, and its results."""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import finalize

import pyarrow as pa

from seqflow.errors import JobError, ProviderError
from seqflow.files.uris import absolute as whole_path
from seqflow.files.uris import is_uri
from seqflow.job.counts import counts_of, peak_memory
from seqflow.job.job import Job
from seqflow.job.opening import import_job_modules, open_job_output, open_loader, owner_of_bad_rows
from seqflow.job.sections import NetSection
from seqflow.job.step_totals import with_totals
from seqflow.kernels.arrays import Array
from seqflow.loader import Loader, Stats
from seqflow.loader.order.index import Measured, SliceKey
from seqflow.loader.order.windows import Parts
from seqflow.loader.parts import PlannedPart, make_part, origins_of, plan_parts
from seqflow.loader.run.ledger import BadRowHandler
from seqflow.output import OutputFile
from seqflow.output.attempt_folders import new_name
from seqflow.output.attempts import Attempt
from seqflow.output.file_writer import FileWriter
from seqflow.output.quarantine import encoding_of, owned
from seqflow.output.stores.store_attempts import StoreAttempts
from seqflow.providers import Provider
from seqflow.providers.bad_files import BadFileList
from seqflow.record import Record
from seqflow.workers import Setup


@dataclass(frozen=True, slots=True)
class PartTask:
    """A part as it is sent, with the source's facts about the files of the part."""

    part: PlannedPart
    source: bytes | None
    """The pickled source with these files alone; None if it cannot be divided."""
    first_file: int = 0
    """Number of its first file in the output, if each part before it that is not committed has as many files as
    threads write."""

    @property
    def name(self) -> str:
        """Name of the part in errors: its number, windows and files."""
        first, last = self.part.windows[0].number, self.part.windows[-1].number
        windows = f"window {first}" if first == last else f"windows {first} to {last}"
        files = origins_of(self.part.windows)
        more = f" and {len(files) - 1} more files" if len(files) > 1 else ""
        return f"part {self.part.number}, {windows} of {files[0]}{more}"


@dataclass(frozen=True, slots=True)
class MadePart:
    """Result of a part: paths and numbers; its rows are in files."""

    files: tuple[OutputFile, ...]
    """Files under the names of this attempt; row groups are numbered within the part."""
    schema: bytes | None
    """Serialized schema of its batches; None if it had none."""
    counts: Mapping[str, Any]
    num_batches: int
    """Number of its batches, including skipped ones."""
    last_batches: int
    """Batches of its last window."""
    bad_rows: OutputFile | None
    first_bad: str
    """Description of its first bad row."""
    lengths: Mapping[SliceKey, Array]
    """Lengths of its rows by slice, 8 bytes a row, if they go into an index; else none."""
    peak_memory: int


def tasks_of(loader: Loader, parts: Parts, first: int) -> Iterator[PartTask]:
    """Yield the parts of a run from part `first` on, each when it is requested. Nothing is read."""
    provider = loader.source
    is_divided = provider.of_files(()).source is not provider.source
    for part in plan_parts(loader, parts, first):
        if not part.windows:
            continue
        source = None
        if is_divided:
            # only the files of the part: a list of all files would be sent with each task
            files = origins_of((*part.windows, *part.following))
            source = pickle.dumps(provider.of_files(files).source)
        yield PartTask(part, source)


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders in which workers write; None for a kind of file that is not written.

    If the output lies in a store, workers leave all files there.
    """

    parts: Path | StoreAttempts | None
    bad_rows: Path | None

    def on(self, folder: Path) -> Folders:
        """Return one folder in place of each."""
        return Folders(*(None if one is None else folder for one in (self.parts, self.bad_rows)))


def setup_of(job: Job, loader: Loader, run: str, folders: Folders, *, measures: bool) -> Setup:
    """Return the setup that each worker gets once; workers may measure the lengths of rows.

    Raise JobError when other processes cannot read the source.
    """
    source = sendable_source(loader.source, job.source.columns)
    cpus = job.engine.cpus
    worker = PartWorker(absolute(job, cpus), source, folders, measures, is_inline=cpus == 1)
    return Setup(run, pickle.dumps(worker), cpus, needs_folder=not isinstance(folders.parts, StoreAttempts))


def sendable_source(provider: Provider, columns: Sequence[str] | None) -> bytes:
    """Return a provider for other processes, without its files if it can be divided.

    Raise JobError or ProviderError when only this process can read it.
    """
    check_sendable(provider)
    try:
        # a worker has the files of its part only: values of dictionary columns come from all files
        provider.find_dictionaries(columns)
        return pickle.dumps(provider.of_files(()))
    except ProviderError:
        raise
    except Exception as error:
        raise JobError(
            f"engine: {provider.origin} cannot be sent to other processes: {type(error).__name__}: {error}"
        ) from None


def check_sendable(provider: Provider) -> None:
    """Raise JobError for a stream, which only this process can read."""
    if provider.is_stream:
        raise JobError(
            f"engine: {provider.origin} is a stream of this process, which no other can read\n"
            '  write it to files first, or run with kind = "local" and no workers'
        )


def absolute(job: Job, cpus: int) -> Job:
    """Return the job with paths that mean the same wherever a worker runs, and with the threads of a worker."""
    folder = job.folder.resolve()

    def place(path: str | None) -> str | None:
        return None if path is None else whole_path(os.path.expanduser(path))

    return replace(
        job,
        folder=folder,
        constants={name: str(place(file)) for name, file in job.constants.items()},
        prepare=_with_text(job.prepare),
        net=_with_text(job.net),
        output=replace(job.output, path=place(job.output.path)),
        bad_rows=replace(
            job.bad_rows, path=place(None if job.bad_rows.path is None else str(job.bad_rows.path))
        ),
        # the calling thread works too; this process makes the index, from the lengths of all parts
        order=replace(job.order, threads=cpus - 1, index=None),
    )


def _with_text(section: NetSection) -> NetSection:
    """Return the section of a net with its text in place of its file, which other machines need not have."""
    if section.file is None:
        return section
    return replace(section, file=None, net=Path(section.file).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class PartWorker:
    """Setup that prepares a worker for the parts of a job."""

    job: Job
    source: bytes
    """The pickled provider, without files if it can be divided."""
    folders: Folders
    measures: bool
    """Whether an index needs the lengths of all rows."""
    is_inline: bool
    """Whether row groups are written in the thread that makes the batches."""

    def __call__(self) -> PartMaker:
        return PartMaker(self)

    def check_seen(self) -> None:
        """Raise JobError when this machine does not see the folders of the run, or files of the job."""
        folders = self.folders
        shared = {"the output": folders.parts, "the quarantine file": folders.bad_rows}
        for what, folder in {} if isinstance(folders.parts, StoreAttempts) else shared.items():
            if isinstance(folder, Path) and not folder.is_dir():
                host = socket.gethostname()
                raise JobError(
                    f"engine: the folder of {what}, {str(folder.parent)!r}, differs on {host!r}\n"
                    "  workers on other machines need a file system that all of them share"
                )
        paths = {f"constants.{name}": file for name, file in self.job.constants.items()}
        missing = next((name for name, path in paths.items() if not os.path.exists(path)), None)
        if missing is not None:
            raise JobError(f"{missing}: {paths[missing]!r} is not there on {socket.gethostname()!r}")


class PartMaker:
    """Makes parts of a job: reads, prepares, plans and writes them under names of their own."""

    def __init__(self, worker: PartWorker) -> None:
        self._worker, self._job = worker, worker.job
        worker.check_seen()
        import_job_modules(self._job)  # the source may be one of theirs
        self._provider: Provider = pickle.loads(worker.source)
        self._loader = open_loader(self._job, self._provider)
        self._output = open_job_output(self._job)
        self._folders, self._attempts = worker.folders, None
        if isinstance(worker.folders.parts, StoreAttempts):
            self._attempts = worker.folders.parts
            spool = self._attempts.open_spool()
            self._folders = worker.folders.on(spool.folder)
            finalize(self, spool.close)

    def __call__(self, task: PartTask) -> MadePart:
        part, provider = task.part, self._provider
        if task.source is not None:
            provider = replace(provider, source=pickle.loads(task.source))
        _check_there(part)
        # the first part enters the files that could not be opened in the quarantine file
        stats = Stats(bad_files=BadFileList(provider.damaged if part.number else ()))
        piece, owner = self._piece(part.number), owner_of_bad_rows(self._job)
        measured = Measured([one for window in part.windows for one in window.slices])
        handler = BadRowHandler(
            write=None
            if piece is None
            else lambda rejected: piece.write(owned(rejected.table(), owner), len(piece.groups))
        )
        try:
            with make_part(
                self._loader,
                part,
                handler,
                stats,
                source=provider,
                measured=measured if self._worker.measures else None,
            ) as batches:
                files, schema = self._write(part.number, batches)
                num_batches, last_batches = batches.num_batches, batches.last_batches
            found = piece.finish(piece.piece) if piece is not None and piece.groups else None
            return MadePart(
                self._sent(files, task.first_file),
                None if schema is None else schema.serialize().to_pybytes(),
                counts_of(stats),
                num_batches,
                last_batches,
                found if found is None or self._attempts is None else self._attempts.send(found),
                handler.first,
                measured.lengths,
                peak_memory(),
            )
        finally:
            if piece is not None:
                piece.discard()

    def _piece(self, number: int) -> FileWriter | None:
        """Return a writer of a piece of the quarantine file, under a name of its own."""
        folder, path = self._folders.bad_rows, self._job.bad_rows.path
        if folder is None or path is None:
            return None
        return FileWriter(Path(path), encoding_of(Path(path)), folder / f"{number:05}-{new_name()}")

    def _write(self, number: int, batches: Iterable[Record]) -> tuple[list[OutputFile], pa.Schema | None]:
        target, folder = self._output.target, self._folders.parts
        if target is None or not isinstance(folder, Path):
            # nothing is written, but rows are read, checked and counted
            for _ in batches:
                pass
            return [], None
        attempt = Attempt(folder, target.names.path, target.names.encoding, number)
        return attempt.write(self._output.layout, with_totals(batches), inline=self._worker.is_inline)

    def _sent(self, files: Sequence[OutputFile], first: int) -> tuple[OutputFile, ...]:
        """Upload the files of a part if the output lies in a store; a sorted run or a piece gets a hidden name."""
        output, attempts = self._output, self._attempts
        if attempts is None or output.target is None:
            return tuple(files)
        names = output.target.names
        is_merged = names.is_file or bool(output.arrangement)
        finals = [
            None if is_merged else names.file(number).name for number in range(first, first + len(files))
        ]
        return tuple(attempts.send(file, final) for file, final in zip(files, finals, strict=True))


def _check_there(part: PlannedPart) -> None:
    """Raise JobError when this machine does not see a file that existed when files were listed."""
    missing = next((path for path in part.stamps if not is_uri(path) and not os.path.exists(path)), None)
    if missing is not None:
        raise JobError(
            f"engine: {missing!r} is not there on {socket.gethostname()!r}\n"
            "  workers on other machines read from a file system that all of them share"
        )
