"""Open the parts of a job: its loader, with the nets and constants, and the writer of its output."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from seqflow import providers
from seqflow.byte_sizes import parse_bytes
from seqflow.errors import JobError, NetError, OpError, ProviderError
from seqflow.files.uris import is_uri
from seqflow.hidden import hidden
from seqflow.identity.differences import listed
from seqflow.job.curated import columns_of_batches, curated, opened_columns
from seqflow.job.job import Job
from seqflow.job.modules import import_modules
from seqflow.job.reading import share_argument
from seqflow.job.sections import NetSection, ServedSection, SourceSection, StoreSection, keys_of
from seqflow.loader import Loader, Mix, Shuffle
from seqflow.loader.epochs import EpochBatches
from seqflow.logs import log
from seqflow.net import Net
from seqflow.output import FileSizes, OutputWriter, open_output
from seqflow.printable import printable, printable_line
from seqflow.providers import Provider
from seqflow.providers.formats.options import FORMATS
from seqflow.providers.own_kinds import module_of
from seqflow.vocabulary import Vocabulary

OF_SERVERS = "give it the job of the servers"
_BYTES_SUFFIXES = (".json", ".txt")
"""Suffixes of files whose bytes are the constant."""


def open_job_output(job: Job) -> OutputWriter:
    """Open the output of a job."""
    settings = job.output
    sizes = FileSizes(
        parse_bytes(settings.row_group_bytes), parse_bytes(settings.part_bytes), settings.rows_per_file
    )
    return open_output(
        settings.path, settings.kind, settings.columns, settings.compression, settings.threads, sizes,
        settings.sort_by, settings.partition_by, settings.storage_options, settings.single_writer,
    )  # fmt: skip


def open_batches(job: Job) -> EpochBatches:
    """Return the batches of a job, after importing its modules: a Loader, a Mix of several sources, or those of the
    servers that its source names.

        for batch in open_batches(Job.read("trainer.toml")): ...
    """
    if job.source.served is not None:
        return _served(job, job.source.served)
    if job.mix is None:
        return open_loader(job)
    import_job_modules(job)
    sources = {one.name: open_source(one.source, job) for one in job.mix.sources}
    return Mix(
        sources,
        weights={one.name: one.weight for one in job.mix.sources},
        seed=job.mix.seed,
        stop=job.mix.stop,
        column=job.mix.column or None,
        **_loader_options(job),
        **_totals(job),
    )


def _served(job: Job, keys: ServedSection) -> EpochBatches:
    from seqflow.serving import served  # pyarrow.flight takes time to import

    options = {one.name: getattr(keys, one.name) for one in keys_of(ServedSection)}
    token = read_token("source.token_file", options.pop("token_file"))
    return served(options.pop("served"), token=token, skip=job.skip or None, **options)


def read_token(name: str, file: str | None) -> str | None:
    """Return the token in the file that a setting names; None without one."""
    try:
        return None if file is None else Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise JobError(f"{name}: cannot read {file!r}: {error}") from None


def open_loader(job: Job, source: Provider | None = None) -> Loader:
    """Make the loader of a job after importing its modules; `source` replaces its source, as its rules leave it."""
    if job.mix is not None:
        raise JobError(
            "mix: this takes a job of one source, and [mix] has several\n  give it a job with [source]"
        )
    if job.source.served is not None:
        raise JobError(f"source.served: this takes a job that reads rows\n  {OF_SERVERS}")
    import_job_modules(job)
    index = job.order.index if source is None else None
    if source is None:
        source = open_source(replace(job.source, columns=opened_columns(job)), job)
        source = curated(job, source) if job.rules else source
    options = {**_loader_options(job), **_totals(job)}
    return Loader(source, columns=columns_of_batches(job, source), index=index, **options)


def _totals(job: Job) -> dict[str, Any]:
    return {"totals": job.totals or None, "steps_of": job.steps_of}


def loaders_of(loader: EpochBatches) -> dict[str, Loader]:
    """Return the loader of each source by its name; the name is empty if there is only one source. Servers have them
    if the batches are served.
    """
    if isinstance(loader, Loader):
        return {"": loader}
    return dict(loader.by_name) if isinstance(loader, Mix) else {}


def warn_of_empty(loader: Loader) -> None:
    """Log a warning that names the files of a source that have no rows."""
    files = zip(loader.source.files, loader.pipeline.identity.files, strict=True)
    empty = [name for name, (_, size, rows, _) in files if rows == 0 or size == 0]
    if empty and loader.source.source_reads_columns:  # else each file is a row
        log.warning("without rows: %s", listed([*map(printable_line, empty)]))


def files_of(loader: EpochBatches) -> tuple[str, ...]:
    """Return the files of all sources."""
    return tuple(file for one in loaders_of(loader).values() for file in one.source.files)


def owner_of_bad_rows(job: Job) -> str:
    """Return the output that the quarantine file of a job belongs to, seen from the folder of that file."""
    output, bad = job.output.path, job.bad_rows.path
    if output is None or bad is None:
        return ""
    if is_uri(output):
        return hidden(output)
    place = os.path.realpath(os.path.expanduser(output))
    folder = os.path.dirname(os.path.realpath(os.path.expanduser(bad)))
    return place if is_uri(str(bad)) else os.path.relpath(place, folder)


def open_source(section: SourceSection, job: Job) -> Provider:
    """Open a source of a job. The bound on damaged files holds for a run, which may be an append to other files."""
    opened = providers.open(**{**open_options(section, job), "bad_files": replace(job.bad_files, max=None)})
    return replace(opened, bad_files=job.bad_files) if opened.bad_files.leaves_out else opened


def open_options(section: SourceSection, job: Job) -> dict[str, Any]:
    """Return the arguments of `sf.open` for a source."""
    options = {field.name: getattr(section, field.name) for field in keys_of(SourceSection)}
    options |= {field.name: getattr(section.store, field.name) for field in keys_of(StoreSection)}
    paths = options.pop("paths")
    options["bad_files"] = job.bad_files
    if section.format:
        options["format"] = FORMATS[section.format](**section.given)
    return {"source": paths if isinstance(paths, str) else list(paths) or None, **options}


def _loader_options(job: Job) -> dict[str, Any]:
    """Return the options of a loader, except its source."""
    sections = [job.source] if job.mix is None else [one.source for one in job.mix.sources]
    memory_map = all(section.given.get("memory_map") is not False for section in sections)
    constants = {
        name: _constant(f"constants.{name}", file, memory_map) for name, file in job.constants.items()
    }
    return {
        "prepare": _net(job.prepare, "prepare", job.folder, constants),
        "net": _net(job.net, "net", job.folder, constants),
        "batch": job.batch,
        "constants": constants,
        "shuffle": Shuffle(job.order.seed or 0, job.order.by) if job.order.shuffle else None,
        "window": job.order.window,
        "memory": job.order.memory,
        "threads": job.order.threads,
        "rank": 0,
        "world_size": 1,
        "bad_rows": job.bad_rows,
        "keep": job.keep or None,
        "require": job.require or None,
        "skip": job.skip or None,
        "share": share_argument(job.share) or None,
    }


def import_job_modules(job: Job) -> None:
    """Import the modules of a job, and those that define its sources and batch plans."""
    sections = [job.source] if job.mix is None else [one.source for one in job.mix.sources]
    own_kinds = (module_of(section.kind or "") for section in sections)
    import_modules((*job.modules, *filter(None, own_kinds)), job.folder)


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
        error.add_note(
            printable(f"in [{section}] of the job" + (f", {transform.file}" if transform.file else ""))
        )
        raise


def _constant(name: str, file: str, memory_map: bool) -> np.ndarray[Any, Any]:
    """Load a constant: the array of a `.npy` file, a vocabulary, or the bytes of a text file."""
    if Path(file).suffix.lower() in _BYTES_SUFFIXES:
        try:
            return np.fromfile(file, np.uint8)
        except OSError as error:
            raise JobError(f"{name}: cannot read {file}: {error.strerror}") from None
    if file.endswith(".arrow"):
        try:
            return Vocabulary.load(file).freeze().table
        except (OpError, ProviderError) as error:
            raise JobError(f"{name}: {error}") from None
    try:
        found = np.load(file, mmap_mode="r" if memory_map else None)
    except Exception as error:  # a damaged header is read as Python, and raises whatever that does
        raise JobError(f"{name}: {file} is not a .npy file of numbers: {error}") from None
    if not isinstance(found, np.ndarray):
        raise JobError(f"{name}: {file} has several arrays, expected one\n  save it with np.save, as .npy")
    return found
