"""Check a job without reading rows or writing anything."""

from __future__ import annotations

from seqflow.job.checking import Check, check_tables, infer
from seqflow.job.declared import check_declared_lengths
from seqflow.job.job import Job
from seqflow.job.record import describe, earlier_run
from seqflow.job.running import open_job_output, open_loader
from seqflow.job.targets import check_targets
from seqflow.loader import Loader
from seqflow.record import to_arrow


def check(job: Job) -> Check:
    """Infer every tensor of a job; the errors are those of `run`, before any data is read.

    Nothing is known of the results of Python functions, so the check of such a job ends there.
    """
    loader = open_loader(job)
    found = infer(loader)
    check_declared_lengths(loader, found.source)
    check_tables(job, loader, found)
    _check_output(job, loader)
    return found


def _check_output(job: Job, loader: Loader) -> None:
    """JobError where the output could not be written, or its columns are not those of the batches."""
    check_targets(job, loader)
    if job.output.path is None:  # the run may be given one
        return
    output = open_job_output(job)
    batch = loader.empty_batch()
    output.check(None if batch is None else to_arrow(batch).schema)
    if output.target is not None and output.target.has_record:
        earlier_run(output.target, describe(job, loader), resume=True, overwrite=False, accept_changes=False)
