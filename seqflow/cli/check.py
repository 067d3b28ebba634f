"""`seqflow check JOB`."""

from __future__ import annotations

from seqflow.cli.job_options import JobInput, JobPath, JobSettings, overrides_of
from seqflow.cli.printing import say

EXAMPLES = (
    ("seqflow check job.toml", "Each tensor, its shape, and its largest size in bytes."),
    ("seqflow check job.toml --set batch.capacity=64", "The same with another setting."),
)


def check(job: JobPath, input: JobInput = None, set_: JobSettings = None) -> None:
    """Check a job before data: tensors, nets, shapes and bytes.

    The schema of the source is enough; no row is read.
    """
    from seqflow.job import Job
    from seqflow.job.checking import check as check_job

    check_job(Job.read(job, overrides_of(set_, input)), show=lambda found: say(str(found)))
