"""Check a job without reading rows or writing anything."""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import permutations

from seqflow.errors import JobError, NetError, asked_by
from seqflow.files.uris import is_uri, join
from seqflow.hidden import shown
from seqflow.job.curating import check_rules
from seqflow.job.earlier_run import describe, earlier_run
from seqflow.job.inference import JobSpecs, infer
from seqflow.job.job import Job
from seqflow.job.opening import files_of, loaders_of, open_batches, open_job_output, owner_of_bad_rows
from seqflow.job.part_tasks import check_sendable
from seqflow.job.step_totals import empty_batch
from seqflow.loader import Loader, Mix
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.mix_plan import PlannedSource
from seqflow.loader.order.windows import rows_not_counted
from seqflow.net import Net, NetInference
from seqflow.output import OutputWriter
from seqflow.output.overwriting import belongs_to, check_new_file, normal
from seqflow.output.quarantine import check_quarantine
from seqflow.record import to_arrow
from seqflow.record.to_arrow import plain_lists


@asked_by("job")
def check(job: Job, show: Callable[[JobSpecs], object] = lambda found: None) -> JobSpecs | None:
    """Infer every tensor of a job; the errors are those that `run` would raise, before any data is read.

    The results of Python functions cannot be inferred, so the check of a job that has one ends there. `show`
    gets the tensors before the output is looked at: an output that exists already does not hide them. For a mix
    they are shown for each source, and those of the last source are returned; None if servers make the batches.
    """
    loader = open_batches(job.without_rules())
    found, output = refuse(job, loader, show)
    if output is not None and output.target is not None:
        earlier_run(output.target, describe(job, loader), resume=True, overwrite=False, accept_changes=False)
    return found


@asked_by("job")
def plan_of_job(job: Job, steps: int) -> list[PlannedSource]:
    """Return rows and passes of each source of a mix after so many steps; raise JobError for a job of one source."""
    mix = open_batches(job.without_rules())
    if not isinstance(mix, Mix):
        raise JobError("check: steps: the job has one source, expected [mix]")
    return mix.plan(steps=steps)


def refuse(
    job: Job,
    loader: EpochBatches,
    show: Callable[[JobSpecs], object] = lambda found: None,
    *,
    append: bool = False,
) -> tuple[JobSpecs | None, OutputWriter | None]:
    """Raise the errors of a job that need no data: `check`, a dry run and `run` refuse the same.

    `show` gets the tensors of each source; those of the last are returned, None without one, and the output, which
    is not checked if it is not given. An append has damaged files of its own, which are known later.
    """
    loaders = loaders_of(loader)
    for one in loaders.values():
        check_rules(job, one.source)
    found = None
    for name, one in loaders.items():
        found = infer(one, name)
        check_tables(job, one, found)
        _check_workers(job, one)
        show(found)
    for one in loaders.values():
        if one.shuffle is not None:
            one.pipeline.listing.slices()  # raises for a block that does not fit into a window
        check_targets(job, one)
        if not append:
            one.source.bad_files.check(one.source.damaged)
    if job.bad_rows.path is not None:
        path = os.path.expanduser(job.bad_rows.path)
        check_quarantine(path, files_of(loader), job.bad_rows.storage_options, owner_of_bad_rows(job))
    output = None if job.output.path is None else open_job_output(job)
    if output is not None:
        batch = empty_batch(loader)
        output.check(None if batch is None else plain_lists(to_arrow(batch)).schema)
        # a mix counts rows of batches, and an arrangement cuts its files at the end
        counts = job.output.rows_per_file is not None and not output.arrangement
        for one in loaders.values() if counts and isinstance(loader, Loader) else ():
            if not replace(one.source, where=None).counts_rows:
                raise rows_not_counted(one.source.origin)
    return found, output


def check_tables(job: Job, loader: Loader, found: JobSpecs) -> None:
    """Raise NetError when the outputs of `prepare`, or the written outputs of `net`, are not columns of one table."""
    if isinstance(loader.prepare, Net) and found.prepare is not None:
        _check_columns("prepare", found.prepare, loader.prepare.outputs(tuple(found.source)))
    is_written = job.output.path is not None and job.output.kind != "none"
    if is_written and isinstance(loader.net, Net) and found.net is not None:
        outputs = loader.net.outputs(tuple(found.batch))
        # lists that rows share are written as those of each row, if their index is there
        shared = tuple(
            f"{name}."
            for one in loader.recipe.shares
            for name in one.columns
            if one.index in outputs and not {one.index, f"{name}.lengths"} & {*loader.net.assigned}
        )
        _check_columns("net", found.net, [name for name in outputs if not name.startswith(shared)])


def _check_workers(job: Job, loader: Loader) -> None:
    """Raise JobError when workers cannot read the source, or would have to skip batches whose numbers are not known
    before reading.
    """
    if job.engine.has_workers:
        check_sendable(loader.source)
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


def check_targets(job: Job, loader: Loader) -> None:
    """Raise JobError when an output would overwrite an input, or another output."""
    nets = [section.file for section in (job.prepare, job.net) if section.file is not None]
    named = [file for net in (loader.prepare, loader.net) if isinstance(net, Net) for file in net.files]
    targets = _targets(job, loader)
    for setting, target in targets.items():
        _check_uri(setting, target)
        parts: list[str] = []
        if setting == "output.path" and not os.path.splitext(target)[1]:
            suffix = "arrow" if job.output.kind == "arrow" else "parquet"
            parts = [join(target, f"{folder}part-00000.{suffix}") for folder in ("", "key=value/")]
        check_new_file(setting, target, loader.source, [*job.constants.values(), *nets, *named], parts)
    for (setting, target), (other, owner) in permutations(targets.items(), 2):
        if belongs_to(_real(target), _real(owner)):
            raise JobError(f"{setting}: {target!r} belongs to {other}, {owner!r}\n  choose a new name")


def _real(target: str) -> str:
    return normal(target) if is_uri(target) else os.path.realpath(target)


def _check_uri(setting: str, target: str) -> None:
    """Raise JobError when an output is a URI that cannot be written."""
    if is_uri(target) and setting == "order.index":
        raise JobError(
            f"{setting}: {shown(normal(target))!r} is a URI, expected a path: an index is a local file"
        )
    if "://" in target and not is_uri(target):
        raise JobError(f"{setting}: {target!r} is a URI whose scheme can't be written, expected a path")


def _targets(job: Job, loader: Loader) -> dict[str, str]:
    """Return the paths that a run writes, by the setting that names them."""
    output = None if job.output.kind == "none" else job.output.path
    paths = {"output.path": output, "bad_rows.path": job.bad_rows.path, "order.index": loader.index}
    return {setting: os.path.expanduser(path) for setting, path in paths.items() if path is not None}
