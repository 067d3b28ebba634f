"""Refuse a job whose outputs would overwrite its inputs, or each other."""

from __future__ import annotations

import os
import re
from itertools import permutations
from pathlib import Path

from seqflow.errors import JobError
from seqflow.job.job import Job
from seqflow.loader import Loader
from seqflow.net import Net
from seqflow.output.overwriting import belongs_to, overwritten


def check_targets(job: Job, loader: Loader) -> None:
    """Raise JobError when an output would overwrite an input, or another output."""
    nets = [section.file for section in (job.prepare, job.net) if section.file is not None]
    named = [file for net in (loader.prepare, loader.net) if isinstance(net, Net) for file in net.files]
    inputs = [*sorted(loader.source.files), *job.constants.values(), *nets, *named]
    targets = _targets(job, loader)
    for setting, target in targets.items():
        found = overwritten(target, inputs)
        if found is not None:
            advice = (
                "leave the output out of the source with exclude"
                if setting == "output.path"
                else "choose a new name"
            )
            raise JobError(
                f"{setting}: {str(target)!r} is or holds {found!r}, a file that the job reads\n"
                f"  write somewhere else, or {advice}"
            )
        _check_place(setting, target, job, loader)
    for (setting, target), (other, owner) in permutations(targets.items(), 2):
        if belongs_to(os.path.realpath(target), os.path.realpath(owner)):
            raise JobError(
                f"{setting}: {str(target)!r} belongs to {other}, {str(owner)!r}\n  choose a new name"
            )


def _check_place(setting: str, target: Path, job: Job, loader: Loader) -> None:
    """Raise JobError when the next run would find an output as a file of the source, or the output is a URI."""
    if "://" in str(target) or (":/" in str(target) and not target.is_absolute()):
        uri = re.sub(":/+", "://", str(target), count=1)  # a Path has folded its slashes
        raise JobError(f"{setting}: {uri!r} is a URI, which can't be written, expected a path")
    files = [target]
    if setting == "output.path" and not target.suffix:
        suffix = "arrow" if job.output.kind == "arrow" else "parquet"
        files += [target / f"part-00000.{suffix}", target / f"key=value/part-00000.{suffix}"]
    if (found := next((file for file in files if loader.source.finds(file)), None)) is not None:
        raise JobError(
            f"{setting}: {str(found)!r} would be a file of the source: its paths find it\n"
            "  write somewhere else, or leave it out of the source with exclude"
        )


def _targets(job: Job, loader: Loader) -> dict[str, Path]:
    """Return the paths that a run writes, by the setting that names them."""
    output = None if job.output.kind == "none" else job.output.path
    paths = {"output.path": output, "bad_rows.path": job.bad_rows.path, "order.index": loader.index}
    return {setting: Path(path).expanduser() for setting, path in paths.items() if path is not None}
