"""Refuse a job whose outputs would overwrite its inputs, or each other."""

import os
from itertools import permutations

from seqflow.errors import JobError
from seqflow.files.place import is_uri, join
from seqflow.hidden import shown
from seqflow.job.job import Job
from seqflow.loader import Loader
from seqflow.net import Net
from seqflow.output.overwriting import belongs_to, normal, overwritten


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
                f"{setting}: {target!r} is or holds {found!r}, a file that the job reads\n"
                f"  write somewhere else, or {advice}"
            )
        _check_place(setting, target, job, loader)
    for (setting, target), (other, owner) in permutations(targets.items(), 2):
        if belongs_to(_real(target), _real(owner)):
            raise JobError(f"{setting}: {target!r} belongs to {other}, {owner!r}\n  choose a new name")


def _real(target: str) -> str:
    return normal(target) if is_uri(target) else os.path.realpath(target)


def _check_place(setting: str, target: str, job: Job, loader: Loader) -> None:
    """Raise JobError when the next run would find an output as a file of the source, or the output is a URI that
    cannot be written.
    """
    if is_uri(target) and setting == "order.index":
        raise JobError(
            f"{setting}: {shown(normal(target))!r} is a URI, expected a path: an index is a local file"
        )
    if "://" in target and not is_uri(target):
        raise JobError(f"{setting}: {target!r} is a URI whose scheme can't be written, expected a path")
    files = [target]
    if setting == "output.path" and not os.path.splitext(target)[1]:
        suffix = "arrow" if job.output.kind == "arrow" else "parquet"
        names = f"part-00000.{suffix}", f"key=value/part-00000.{suffix}"
        files += [join(target, name) for name in names]
    if (found := next((file for file in files if loader.source.finds(file)), None)) is not None:
        raise JobError(
            f"{setting}: {found!r} would be a file of the source: its paths find it\n"
            "  write somewhere else, or leave it out of the source with exclude"
        )


def _targets(job: Job, loader: Loader) -> dict[str, str]:
    """Return the paths that a run writes, by the setting that names them."""
    output = None if job.output.kind == "none" else job.output.path
    paths = {"output.path": output, "bad_rows.path": job.bad_rows.path, "order.index": loader.index}
    return {setting: os.path.expanduser(path) for setting, path in paths.items() if path is not None}
