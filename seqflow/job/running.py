"""Run a job: from its source through the loader to its output."""

from __future__ import annotations

import importlib
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import numpy as np

from seqflow.byte_sizes import parse_bytes
from seqflow.errors import JobError, NetError, ProviderError
from seqflow.job.job import Job
from seqflow.job.sections import NetSection
from seqflow.job.targets import check_targets
from seqflow.loader import Loader, Stats
from seqflow.net import Net
from seqflow.output import open_output
from seqflow.vocabulary import Vocabulary

BYTES_SUFFIXES = (".json", ".txt")
"""Constants from files with these suffixes are the bytes of the file."""


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


Progress = Callable[[Stats, int | None], None]


def run(job: Job, progress: Progress | None = None) -> Report:
    """Run a job. Its files get their final names at the end, all or none.

    `progress(stats, total_rows)` is called after each batch; the total is None where the source does not know.
    A job without rows writes an empty file with the columns that its batches would have.
    Raises the errors of the loader and the output, and removes what was written.
    """
    started = perf_counter()
    loader = open_loader(job)
    check_targets(job, loader)
    settings = job.output
    with open_output(
        settings.path, settings.kind, settings.columns, settings.compression, settings.threads
    ) as output:
        with closing(cast("Any", iter(loader))) as batches:
            for batch in batches:
                output.write(batch)
                del batch  # its memory is the output's now
                if progress is not None:
                    progress(loader.stats(), loader.num_rows)
        if not loader.stats().batches and (empty := loader.empty_batch()) is not None:
            output.write(empty)
        files = output.finish()
    stats = loader.stats()
    return Report(
        rows=stats.rows,
        tokens=stats.tokens,
        fill=stats.fill,
        batches=stats.batches,
        bad_rows=stats.bad_rows,
        seconds=perf_counter() - started,
        peak_memory=peak_memory(),
        files=tuple(file.path for file in files),
        output_bytes=sum(file.nbytes for file in files),
    )


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
        window=job.order.window,
        memory=job.order.memory,
        bad_rows=job.bad_rows,
        **source,
    )


def import_modules(names: tuple[str, ...], folder: Path) -> None:
    """Import modules by name, from `folder` too; JobError where there is none."""
    with _on_path(folder):
        for name in names:
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name != name.partition(".")[0]:
                    raise JobError(f"imports: the module {name!r} needs another: {error}") from error
                raise JobError(
                    f"imports: there is no module {name!r}, neither in {str(folder.resolve())!r} nor installed"
                ) from None
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
                raise JobError(f"imports: the module {name!r} cannot be imported: {what}") from error


@contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)


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
