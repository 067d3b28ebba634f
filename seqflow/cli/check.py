"""`seqflow check JOB`."""

from seqflow.cli.job_options import AsJson, JobInput, JobPath, JobSettings, overrides_of
from seqflow.cli.printing import print_json, say

EXAMPLES = (
    ("seqflow check job.toml", "Each tensor, its shape, and its largest size in bytes."),
    ("seqflow check job.toml --set batch.capacity=64", "The same with another setting."),
    ("seqflow check job.toml --json", "One JSON object, for CI: a source without rows is enough."),
)


def check(job: JobPath, input: JobInput = None, set_: JobSettings = None, json: AsJson = False) -> None:
    """Check a job before data: tensors, nets, shapes and bytes.

    The schema of the source is enough; no row is read.
    """
    from seqflow.job import Job
    from seqflow.job.checking import check as check_job
    from seqflow.job.inference import JobSpecs

    found: list[JobSpecs] = []
    check_job(
        Job.read(job, overrides_of(set_, input)), show=found.append if json else lambda one: say(str(one))
    )
    if json:
        print_json({"sources": [one.facts() for one in found]})
