"""`seqflow check JOB`."""

from typing import Annotated

import typer

from seqflow.cli.job_options import AsJson, JobInput, JobPath, JobSettings, overrides_of, read_job
from seqflow.cli.printing import print_json, say


def check(
    job: JobPath,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="For a [mix]: print rows and passes of its sources after N steps."),
    ] = None,
    input: JobInput = None,
    set_: JobSettings = None,
    json: AsJson = False,
) -> None:
    """Check a job before data: tensors, nets, shapes and bytes.

    The schema of the source is enough; no row is read.
    """
    from seqflow.job.checking import check as check_job
    from seqflow.job.checking import plan_of_job
    from seqflow.job.inference import JobSpecs

    found: list[JobSpecs] = []
    read = read_job(job, overrides_of(set_, input))
    check_job(read, show=found.append if json else lambda one: say(str(one)))
    if read.source.served is not None and not json:
        say("the servers answer; `seqflow check` of their job shows the tensors")
    plan = [] if steps is None else plan_of_job(read, steps)
    if json:
        planned = {} if steps is None else {"plan": [one._asdict() for one in plan]}
        print_json({"sources": [one.facts() for one in found], **planned})
        return
    for one in plan:
        say(str(one))
