"""Dates in the path of an output: fixed when the run starts, and found again when it is resumed."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from glob import escape, glob

from seqflow.errors import JobError
from seqflow.job.job import Job
from seqflow.job.opening import open_job_output
from seqflow.output.target import Target

_DATE = "{date}"


def dated(job: Job, *, resume: bool = False, append: bool = False) -> Job:
    """Return the job with today's date in place of `{date}` in the path of its output.

    With `resume` it is the date of the only run that has not ended, or today if there is none. Raise JobError when
    there are several, or when `append` has no fixed output to add to.
    """
    path = job.output.path or ""
    if _DATE not in path or job.output.kind == "none":
        return job
    if append:
        raise JobError(f"append: {path!r} is a new output each day\n  name the one to add to: --output PATH")
    today = _at(job, path, date.today().isoformat())
    if not resume or _target_of(today).is_unfinished:
        return today
    any_day = _target_of(_at(job, escape(path), "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"))
    found = " ".join(one for record in (any_day.progress, any_day.lock) for one in glob(str(record)))
    earlier = [_at(job, path, day) for day in sorted({*re.findall(r"\d{4}-\d\d-\d\d", found)})]
    unfinished = [one for one in earlier if _target_of(one).is_unfinished]
    if len(unfinished) > 1:
        names = ", ".join(repr(one.output.path) for one in unfinished)
        raise JobError(
            f"output: several runs have not ended: {names}\n"
            "  --output PATH --resume goes on with one, --output PATH --overwrite begins it again"
        )
    return unfinished[0] if unfinished else today


def _at(job: Job, path: str, day: str) -> Job:
    return replace(job, output=replace(job.output, path=path.replace(_DATE, day)))


def _target_of(job: Job) -> Target:
    target = open_job_output(job).target
    assert target is not None
    return target
