"""Dates in the path of an output: fixed when the run starts, and found again when it is resumed."""

import re
from dataclasses import replace
from datetime import date
from glob import escape

from seqflow.errors import JobError
from seqflow.job.job import Job
from seqflow.job.opening import open_job_output
from seqflow.output.target import Target

_DATE = "{date}"


def dated(job: Job, *, resume: bool = False, append: bool = False) -> Job:
    """Return the job with today's date in place of `{date}` in the path of its output.

    With `resume` it is the date of the first run that has not ended, or today if there is none. Raise JobError when
    `append` has no fixed output to add to.
    """
    path = job.output.path or ""
    for other in set(re.findall(r"\{\w*\}", path)) - {_DATE}:
        raise JobError(f"output.path: {other} in {path!r} stands for nothing, expected {_DATE}")
    if _DATE not in path:
        return job
    if append:
        raise JobError(f"append: {path!r} is a new output each day\n  name the one to add to: --output PATH")
    today = _at(job, path, date.today().isoformat())
    if not resume or _is_unfinished(today):
        return today
    any_day = _target(_at(job, escape(path), "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"))
    found = " ".join(() if any_day is None else any_day.find_unfinished())
    earlier = [_at(job, path, day) for day in sorted({*re.findall(r"\d{4}-\d\d-\d\d", found)})]
    return next(filter(_is_unfinished, earlier), today)


def _at(job: Job, path: str, day: str) -> Job:
    return replace(job, output=replace(job.output, path=path.replace(_DATE, day)))


def _is_unfinished(job: Job) -> bool:
    target = _target(job)
    return target is not None and target.is_unfinished


def _target(job: Job) -> Target | None:
    return open_job_output(job).target
