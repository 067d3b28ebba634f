"""Run a job: from its source through the loader to its output."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, cast

import numpy as np

from seqflow.byte_sizes import parse_bytes
from seqflow.errors import JobError, NetError, ProviderError
from seqflow.job.job import Job
from seqflow.job.modules import import_modules
from seqflow.job.record import Counts, describe, earlier_run
from seqflow.job.sections import NetSection
from seqflow.job.targets import check_targets
from seqflow.loader import Loader, Shuffle, Stats
from seqflow.loader.bad_rows import BadRowHandler
from seqflow.net import Net
from seqflow.output import OutputFile, OutputWriter, Sizes, open_output
from seqflow.vocabulary import Vocabulary

BYTES_SUFFIXES = (".json", ".txt")
"""Constants from files with these suffixes are the bytes of the file."""
Outcome = Literal["new", "resumed", "complete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Counts, times and files of a run."""

    rows: int
    """Rows of the source, without bad ones."""
    tokens: int
    fill: float | None
    """The part of the elements of all batches that are tokens; None without a list column to count."""
    batches: int
    bad_rows: int
    seconds: float
    peak_memory: int
    """The most bytes that the process had in memory."""
    files: tuple[Path, ...]
    output_bytes: int

    outcome: Outcome = "new"
    """Whether the run began anew, went on behind a killed one, or found that everything was done."""


Progress = Callable[[Stats, int | None], None]


def run(
    job: Job, progress: Progress | None = None, *, resume: bool = False, overwrite: bool = False
) -> Report:
    """Run a job. Its files get their final names at the end, all or none.

    About every `output.part_bytes`, at the end of a window, parts are finished under hidden names and noted in a
    progress file. Where a run was killed, or has failed, `resume` goes on behind the last of them, and the output
    becomes what it would have been. Where the same job has written the output before, nothing is done; JobError
    where another has, unless `overwrite` replaces what is there.

    `progress(stats, total_rows)` is called after each batch; the total is None where the source does not know.
    A job without rows writes an empty file with the columns that its batches would have.
    Raises the errors of the loader and the output, and removes what was not committed.
    """
    if resume and overwrite:
        raise JobError("resume goes on with what is there, overwrite removes it: expected one of them")
    started = perf_counter()
    loader = open_loader(job)
    check_targets(job, loader)
    with open_job_output(job) as output:
        described = describe(job, loader)
        earlier = None
        if output.target is not None:
            earlier = earlier_run(output.target, described, resume=resume, overwrite=overwrite)
        if earlier is not None and earlier.is_complete:
            BadRowHandler(job.bad_rows, loader.source.files).leave()  # what a killed run has left is removed
            files = output.found(earlier.content)
            counts = Counts.from_json(earlier.content["counts"])
        else:
            task = _Run(job, loader, output, described, None if earlier is None else earlier.content)
            files, counts = task.run(progress), task.counts
    outcome: Outcome = "new" if earlier is None else "complete" if earlier.is_complete else "resumed"
    return Report(
        rows=counts.rows,
        tokens=counts.tokens,
        fill=counts.stats().fill,
        batches=counts.batches,
        bad_rows=counts.bad_rows,
        seconds=perf_counter() - started,
        peak_memory=peak_memory(),
        files=tuple(file.path for file in files),
        output_bytes=sum(file.nbytes for file in files),
        outcome=outcome,
    )


class _Run:
    """One run of a job, from its beginning or behind what a progress file notes."""

    def __init__(
        self, job: Job, loader: Loader, output: OutputWriter, described: dict[str, Any], record: Any
    ) -> None:
        self._loader, self._output, self._described = loader, output, described
        self.counts = Counts()
        self._is_sealed = False
        pieces: list[str] = []
        if record is not None:
            self.counts, pieces = Counts.from_json(record["counts"]), record["bad_rows"]
            self._is_sealed = record["sealed"]
        self._bad_rows = BadRowHandler(
            job.bad_rows, loader.source.files, count=self.counts.bad_rows, pieces=pieces
        )
        if record is not None and not self._is_sealed:
            self._bad_rows.check()
            loader.load_state_dict(record["loader"])
            output.resume(record)
        elif record is None:
            output.begin()

    def run(self, progress: Progress | None) -> list[OutputFile]:
        """The files of the output; what is committed stays, whatever happens."""
        try:
            if not self._is_sealed:
                self._write(progress)
                self._output.seal(self._note())
            self._bad_rows.install()
            return self._output.install()
        except BaseException as error:
            if self._output.has_progress:
                error.add_note("what is finished is kept: --resume goes on behind it")
            raise
        finally:
            self._bad_rows.leave()

    def _write(self, progress: Progress | None) -> None:
        loader, output, stats = self._loader, self._output, self.counts.stats()
        with closing(loader.batches(self._bad_rows, stats)) as batches:
            for batch in batches:
                output.write(batch)
                del batch  # its memory is the output's now
                if progress is not None:
                    progress(stats, loader.num_rows)
                if loader.at_window_end and output.is_full:
                    self.counts = Counts.of(stats)
                    output.commit({**self._note(), "loader": loader.state_dict()})
        if not stats.batches and (empty := loader.empty_batch()) is not None:
            output.write(empty)
        self.counts = Counts.of(stats)

    def _note(self) -> dict[str, Any]:
        return {"job": self._described, "counts": asdict(self.counts), "bad_rows": self._bad_rows.commit()}


def open_job_output(job: Job) -> OutputWriter:
    """The writer that a job describes."""
    settings = job.output
    sizes = Sizes(
        parse_bytes(settings.row_group_bytes), parse_bytes(settings.part_bytes), settings.rows_per_file
    )
    return open_output(
        settings.path, settings.kind, settings.columns, settings.compression, settings.threads, sizes,
        settings.sort_by, settings.partition_by,
    )  # fmt: skip


def open_loader(job: Job) -> Loader:
    """The loader a job describes, its modules imported first."""
    import_modules(job.imports, job.folder)
    constants = {
        name: _constant(name, file, job.source.memory_map is not False)
        for name, file in job.constants.items()
    }
    source = {field.name: getattr(job.source, field.name) for field in fields(job.source)}
    paths = source.pop("paths")
    if job.source.batch_bytes is not None:
        source["batch_bytes"] = parse_bytes(job.source.batch_bytes)
    return Loader(
        paths if isinstance(paths, str) else list(paths),
        prepare=_net(job.prepare, "prepare", job.folder, constants),
        net=_net(job.net, "net", job.folder, constants),
        batch=job.batch,
        constants=constants,
        shuffle=Shuffle(job.order.seed or 0) if job.order.shuffle else None,
        window=job.order.window,
        memory=job.order.memory,
        threads=job.order.threads,
        index=job.order.index,
        rank=0,
        world_size=1,
        bad_rows=job.bad_rows,
        **source,
    )


def _net(transform: NetSection, section: str, folder: Path, constants: Mapping[str, Any]) -> Net | None:
    text = transform.net
    try:
        if transform.file is not None:
            text = Path(transform.file).read_text(encoding="utf-8")
        if text is None:
            return None
        net = Net(text, folder=folder)
        net.check_files(constants)
        return net
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"{section}.file: cannot read {transform.file!r}: {error}") from None
    except NetError as error:
        error.add_note(f"in [{section}] of the job" + (f", {transform.file}" if transform.file else ""))
        raise


def _constant(name: str, file: str, memory_map: bool) -> np.ndarray[Any, Any]:
    """The array in a `.npy` file, a vocabulary, or the bytes of a file that ends as text does."""
    if Path(file).suffix.lower() in BYTES_SUFFIXES:
        try:
            return np.fromfile(file, np.uint8)
        except OSError as error:
            raise JobError(f"constants.{name}: cannot read {file}: {error.strerror}") from None
    if file.endswith(".arrow"):
        try:
            return Vocabulary.load(file).freeze().table
        except ProviderError as error:
            raise JobError(f"constants.{name}: {error}") from None
    try:
        return cast("np.ndarray[Any, Any]", np.load(file, mmap_mode="r" if memory_map else None))
    except Exception as error:  # a damaged header is read as Python, and raises whatever that does
        raise JobError(f"constants.{name}: {file} is not a .npy file of numbers: {error}") from None


def peak_memory() -> int:
    """The most bytes that this process had in memory."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
