"""Refuse a job whose outputs would overwrite its inputs, or each other."""

from __future__ import annotations

import os
from pathlib import Path

from seqflow.errors import JobError
from seqflow.job.job import Job
from seqflow.loader import Loader
from seqflow.net import Net
from seqflow.output.overwriting import overwritten


def check_targets(job: Job, loader: Loader) -> None:
    """JobError where the run would write over a file it reads, or two outputs over each other."""
    nets = [section.file for section in (job.prepare, job.net) if section.file is not None]
    named = [file for net in (loader.prepare, loader.net) if isinstance(net, Net) for file in net.files]
    inputs = [*sorted(loader.source.files), *job.constants.values(), *nets, *named]
    output = (
        None if job.output.path is None or job.output.kind == "none" else Path(job.output.path).expanduser()
    )
    if output is not None:
        _check("output.path", output, inputs, "leave the output out of the source with exclude")
    if job.bad_rows.path is not None:
        bad = Path(job.bad_rows.path).expanduser()
        _check("bad_rows.path", bad, inputs, "choose a new name")
        if output is not None and _contains(os.path.realpath(output), os.path.realpath(bad)):
            raise JobError(f"bad_rows.path: {str(job.bad_rows.path)!r} belongs to the output")


def _check(setting: str, target: Path, inputs: list[str], advice: str) -> None:
    found = overwritten(target, inputs)
    if found is not None:
        raise JobError(
            f"{setting}: {str(target)!r} is or holds {found!r}, a file that the job reads\n"
            f"  write somewhere else, or {advice}"
        )


def _contains(target: str, file: str) -> bool:
    return file == target or file.startswith(target.rstrip(os.sep) + os.sep)
