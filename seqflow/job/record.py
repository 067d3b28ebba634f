"""What a job says of itself in progress files and manifests, and whether an earlier run's record is its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqflow.errors import JobError
from seqflow.job.job import Job
from seqflow.loader import Loader, Stats
from seqflow.loader.state import first_difference
from seqflow.output.folder import Target, read_record

_ACCESS = ("paths", "memory_map", "untrusted")
"""Keys of [source] that say how files are found and read, not what is read."""


@dataclass(slots=True)
class Counts:
    """What a run has counted when its progress was noted."""

    rows: int = 0
    tokens: int = 0
    cells: int = 0
    batches: int = 0
    bad_rows: int = 0

    @classmethod
    def of(cls, stats: Stats) -> Counts:
        return cls(stats.rows, stats.tokens, stats.cells, stats.batches, stats.bad_rows)

    def stats(self) -> Stats:
        """Stats that count on."""
        return Stats(**asdict(self))


def describe(job: Job, loader: Loader) -> dict[str, Any]:
    """Everything that decides what the output is, as JSON."""
    folder = Path(job.output.path or "").expanduser().absolute().parent
    bad = job.bad_rows.path
    settings = {
        **{f"source.{key}": value for key, value in asdict(job.source).items() if key not in _ACCESS},
        **loader.settings(),
        "bad_rows.path": None if bad is None else os.path.relpath(Path(bad).expanduser(), folder),
        **{f"output.{key}": value for key, value in asdict(job.output).items() if key != "path"},
        "data": loader.data(),
    }
    described: dict[str, Any] = json.loads(json.dumps(settings, default=repr))
    return described


@dataclass(frozen=True, slots=True)
class Earlier:
    """The record that an earlier run has left at the output."""

    content: Mapping[str, Any]
    is_complete: bool


def earlier_run(
    target: Target, described: Mapping[str, Any], *, resume: bool, overwrite: bool
) -> Earlier | None:
    """What an earlier run of this job has left; None where the run is to begin anew.

    JobError where the output is not complete and `resume` doesn't ask to go on, or where it is of another job or of
    other data.
    """
    if overwrite:
        return None
    name = str(target.path)
    if target.progress.exists():
        if not resume:
            raise JobError(
                f"output: {name!r} holds the beginning of a run that has not ended\n"
                "  --resume goes on with it, --overwrite begins anew"
            )
        content = read_record(target.progress)
        _check_same(name, content, described)
        assert content is not None
        return Earlier(content, is_complete=False)
    if not (target.path if target.is_file else target.manifest).exists():
        return None
    content = read_record(target.manifest)
    if (
        target.is_file
        and content is not None
        and [target.path.stat().st_size] != [file["bytes"] for file in content["files"]]
    ):
        content = None  # the file has been written by others since
    _check_same(name, content, described)
    assert content is not None
    return Earlier(content, is_complete=True)


def _check_same(name: str, content: Mapping[str, Any] | None, described: Mapping[str, Any]) -> None:
    if content is None or "job" not in content:
        raise JobError(
            f"output: {name!r} is there already, and nothing says that this job has written it\n"
            "  --overwrite replaces it; or choose another output"
        )
    difference = first_difference(content["job"], described)
    if difference is not None:
        raise JobError(
            f"output: {name!r} is of another job or of other data: {difference}\n"
            "  --overwrite replaces it; or choose another output"
        )
