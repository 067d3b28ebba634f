"""Verdict of the last run of a job, in a hidden file next to the manifest: the output itself has no times."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seqflow.job.job import Job
from seqflow.job.opening import open_job_output
from seqflow.output.local_target import LocalTarget


def save_verdict(job: Job, facts: Mapping[str, Any]) -> None:
    """Save the verdict of a run whose output is complete; that of an output in a store is not kept."""
    if (paths := _paths(job)) is not None:
        paths[0].write_text(json.dumps(facts) + "\n", encoding="utf-8")


def last_verdict(job: Job) -> dict[str, Any] | None:
    """Return the verdict of the run that wrote the output; None if that run saved none."""
    paths = _paths(job)
    try:
        # an older one belongs to a run before
        if paths is None or paths[0].stat().st_mtime_ns < paths[1].stat().st_mtime_ns:
            return None
        found: dict[str, Any] = json.loads(paths[0].read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _paths(job: Job) -> tuple[Path, Path] | None:
    """Return the file of the verdict, and the manifest; None if the output lies in a store, or there is none."""
    target = open_job_output(job).target
    if not isinstance(target, LocalTarget):
        return None
    return target.names.hidden(".verdict.json"), target.names.manifest
