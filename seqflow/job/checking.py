"""Check a job without reading rows or writing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from seqflow.errors import JobError, NetError
from seqflow.job.dated_paths import dated
from seqflow.job.earlier_run import describe, earlier_run
from seqflow.job.inference import JobSpecs, infer
from seqflow.job.job import Job
from seqflow.job.opening import loaders_of, open_batches, open_job_output
from seqflow.job.step_totals import empty_batch
from seqflow.job.targets import check_targets
from seqflow.loader import Loader, Mix
from seqflow.net import Net, NetInference
from seqflow.record import to_arrow


def check(job: Job, show: Callable[[JobSpecs], object] = lambda found: None) -> JobSpecs:
    """Infer every tensor of a job; the errors are those that `run` would raise, before any data is read.

    The results of Python functions cannot be inferred, so the check of a job that has one ends there. `show`
    gets the tensors before the output is looked at: an output that exists already does not hide them. For a mix
    they are shown for each source, and those of the last source are returned.
    """
    job = dated(job)
    loader = open_batches(job.without_rules())
    loaders = loaders_of(loader)
    for name, one in loaders.items():
        found = infer(one, name)
        check_tables(job, one, found)
        check_workers(job, one)
        one.pipeline.check_rows()
        show(found)
    _check_output(job, loader)
    return found


def _check_output(job: Job, loader: Loader | Mix) -> None:
    """Raise JobError when the output could not be written, or its columns are not those of the batches."""
    for one in loaders_of(loader).values():
        check_targets(job, one)
    if job.output.path is None:  # the run may be given one
        return
    output = open_job_output(job)
    batch = empty_batch(loader)
    output.check(None if batch is None else to_arrow(batch).schema)
    if output.target is not None:
        earlier_run(output.target, describe(job, loader), resume=True, overwrite=False, accept_changes=False)


def check_tables(job: Job, loader: Loader, found: JobSpecs) -> None:
    """Raise NetError when the outputs of `prepare`, or the written outputs of `net`, are not columns of one table."""
    if isinstance(loader.prepare, Net) and found.prepare is not None:
        _check_columns("prepare", found.prepare, loader.prepare.outputs(tuple(found.source)))
    is_written = job.output.path is not None and job.output.kind != "none"
    if is_written and isinstance(loader.net, Net) and found.net is not None:
        _check_columns("net", found.net, loader.net.outputs(tuple(found.batch)))


def check_workers(job: Job, loader: Loader) -> None:
    """Raise JobError when workers would have to skip batches whose numbers are not known before reading."""
    if job.skip and job.engine.has_workers and not loader.pipeline.table(loader.epoch)[1].counted:
        raise JobError(
            "skip: workers make parts by themselves, and batches of this plan are not counted before reading\n"
            '  give [order] index = "lengths.arrow", made by `seqflow index JOB`; or run without workers'
        )


def _check_columns(section: str, inferred: NetInference, outputs: Iterable[str]) -> None:
    """Raise NetError when two outputs have different row spaces, so that their rows do not belong together."""
    found = inferred.rows.unrelated(tuple(outputs))
    if found is not None:
        raise NetError(
            f"[{section}]: {found.one!r} holds {found.rows}, {found.other!r} {found.other_rows}: they are not "
            f"columns of one table\n  return only one of them, or lists with their lengths; {found.advice}"
        )
