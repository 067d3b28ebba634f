"""`seqflow bench JOB`."""

from __future__ import annotations

import re
from contextlib import closing
from itertools import islice
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqflow.arguments import LONGEST_WAIT, is_wait
from seqflow.cli import job_options
from seqflow.cli.printing import print_json, say
from seqflow.cli.progress_line import progress_line
from seqflow.errors import JobError
from seqflow.progress import Stage, stage

if TYPE_CHECKING:
    from pathlib import Path

    from seqflow.loader import Verdict

_UNITS = {"ms": 1e-3, "s": 1.0}


def bench(
    job: job_options.JobPath,
    consumer: Annotated[
        str, typer.Option(help="Time that a step of the consumer takes, such as 20ms or 0.5s.")
    ] = "0ms",
    threads: Annotated[
        str | None,
        typer.Option(help="Numbers of threads to compare, such as 1,2,4 (default: those of the job)."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Most batches of each setting.")] = 200,
    input: job_options.JobInput = None,
    set_: job_options.JobSettings = None,
    json: job_options.AsJson = False,
) -> None:
    """Show what the batches of a job wait for, and what to change.

    The loader runs against a consumer that sleeps; nothing is written. The verdict of each setting has the limit,
    the work of each stage, and what would change it.
    """
    seconds, found = _seconds_of(consumer), []
    for count in _threads_of(threads):
        overrides = job_options.overrides_of(set_, input)
        if count is not None:
            overrides |= {"order.threads": count}
        with progress_line(show=not json):
            verdict = _measured(job, overrides, seconds, steps)
        if json:
            found.append({"threads": count, "consumer_seconds": seconds, **verdict.to_json()})
            continue
        if count is not None:
            say(f"threads {count}")
        say(repr(verdict))
    if json:
        print_json(found)


def _measured(path: Path, overrides: dict[str, Any], seconds: float, steps: int) -> Verdict:
    """Return the verdict of the first steps of a job's loader."""
    from seqflow.job.opening import open_batches

    loader = open_batches(job_options.read_job(path, overrides).without_rules().without_quarantine())
    with stage(Stage("steps", steps)) as here, closing(iter(loader)) as batches:
        for _ in islice(batches, steps):
            sleep(seconds)
            here.done += 1
    return loader.verdict()


def _seconds_of(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s)", text.strip())
    seconds = 0.0 if found is None else float(found[1]) * _UNITS[found[2]]
    if found is None or (seconds and not is_wait(seconds)):
        raise JobError(
            f"--consumer is {text!r}, expected a time such as 20ms or 0.5s, at most {LONGEST_WAIT}s"
        )
    return seconds


def _threads_of(text: str | None) -> list[int | None]:
    if text is None:
        return [None]
    try:
        return [int(one) for one in text.split(",")]
    except ValueError:
        raise JobError(f"--threads is {text!r}, expected numbers such as 1,2,4") from None
