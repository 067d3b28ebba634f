"""`seqflow check JOB`."""

from __future__ import annotations

from seqflow.cli.job_options import JobInput, JobPath, JobSettings, overrides_of
from seqflow.cli.printing import say


def check(job: JobPath, input: JobInput = None, set_: JobSettings = None) -> None:
    """Check a job without reading data: the tensors of its source, nets and batches, from the schema alone."""
    from seqflow.job import Job
    from seqflow.job.checking import check as check_job

    say(str(check_job(Job.read(job, overrides_of(set_, input)))))
