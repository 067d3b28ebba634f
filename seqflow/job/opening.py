"""Open what a job describes: its loader, with the nets and constants, and the writer of its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from seqflow.byte_sizes import parse_bytes
from seqflow.errors import JobError, NetError, ProviderError
from seqflow.job.job import Job
from seqflow.job.modules import import_modules
from seqflow.job.sections import NetSection
from seqflow.loader import Loader, Shuffle
from seqflow.net import Net
from seqflow.output import OutputWriter, Sizes, open_output
from seqflow.printable import printable
from seqflow.providers import Provider
from seqflow.providers.own_kinds import module_of
from seqflow.vocabulary import Vocabulary

_BYTES_SUFFIXES = (".json", ".txt")
"""Constants from files with these suffixes are the bytes of the file."""


def open_job_output(job: Job) -> OutputWriter:
    """Open the output of a job."""
    settings = job.output
    sizes = Sizes(
        parse_bytes(settings.row_group_bytes), parse_bytes(settings.part_bytes), settings.rows_per_file
    )
    return open_output(
        settings.path, settings.kind, settings.columns, settings.compression, settings.threads, sizes,
        settings.sort_by, settings.partition_by,
    )  # fmt: skip


def open_loader(job: Job, source: Provider | None = None) -> Loader:
    """Make the loader of a job, after importing its modules; of a source that is open already, where it is given."""
    import_job_modules(job)
    options: dict[str, Any] = {"columns": job.source.columns}
    if source is None:
        options = {field.name: getattr(job.source, field.name) for field in fields(job.source)}
        paths = options.pop("paths")
        if job.source.batch_bytes is not None:
            options["batch_bytes"] = parse_bytes(job.source.batch_bytes)
        options["index"] = job.order.index
    constants = {
        name: _constant(name, file, job.source.memory_map is not False)
        for name, file in job.constants.items()
    }
    return Loader(
        source if source is not None else paths if isinstance(paths, str) else list(paths) or None,
        prepare=_net(job.prepare, "prepare", job.folder, constants),
        net=_net(job.net, "net", job.folder, constants),
        batch=job.batch,
        constants=constants,
        shuffle=Shuffle(job.order.seed or 0) if job.order.shuffle else None,
        window=job.order.window,
        memory=job.order.memory,
        threads=job.order.threads,
        rank=0,
        world_size=1,
        bad_rows=job.bad_rows,
        require=job.require or None,
        skip=job.skip or None,
        totals=job.totals or None,
        steps_of=job.steps_of,
        **options,
    )


def import_job_modules(job: Job) -> None:
    """Import the modules of a job, and that of its own kind of source."""
    own_kind = module_of(job.source.kind or "")
    import_modules((*job.imports, *([own_kind] if own_kind else [])), job.folder)


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
            raise JobError(f"constants.{name}: cannot read {file}: {error.strerror}") from None
    if file.endswith(".arrow"):
        try:
            return Vocabulary.load(file).freeze().table
        except ProviderError as error:
            raise JobError(f"constants.{name}: {error}") from None
    try:
        found = np.load(file, mmap_mode="r" if memory_map else None)
    except Exception as error:  # a damaged header is read as Python, and raises whatever that does
        raise JobError(f"constants.{name}: {file} is not a .npy file of numbers: {error}") from None
    if not isinstance(found, np.ndarray):
        raise JobError(
            f"constants.{name}: {file} has several arrays, expected one\n  save it with np.save, as .npy"
        )
    return found
