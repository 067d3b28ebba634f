"""The source of a job without the rows that its rules leave out, by keys that `run` writes next to the output."""

from dataclasses import replace

from pyarrow import types

from seqflow import providers
from seqflow.curation.rules import columns_of
from seqflow.curation.verdicts import find_verdicts
from seqflow.errors import JobError, ProviderError
from seqflow.job.counts import counts_in
from seqflow.job.job import Job
from seqflow.logs import log
from seqflow.output import open_output
from seqflow.printable import printable
from seqflow.providers import Provider
from seqflow.providers.filter.dropped_rows import DroppedRows
from seqflow.record.arrow_types import is_any_level
from seqflow.record.selection import select_schema


def keys_path(job: Job, of: str = "keys") -> str:
    """Return the place of the keys of a job, or of those `against` which it is compared."""
    if job.output.path is None or job.output.kind == "none":
        raise JobError(
            f"{job.rules[0].name}: the job has no output, next to which the keys of its rows are written\n"
            "  give one: --output PATH"
        )
    return f"{job.output.path.rstrip('/')}.curation/{of}"


def opened_columns(job: Job) -> tuple[str, ...] | None:
    """Return the columns that the source is opened with, for keys and for batches: its blocks may depend on them."""
    chosen = job.source.columns
    if chosen is None:
        return None
    return (*dict.fromkeys((*chosen, *columns_of(job.rules))),)


def columns_of_batches(job: Job, source: Provider) -> tuple[str, ...] | None:
    """Return the columns that batches have; None for all.

    Rules compare decimals, which batches cannot have: they are left out, with a warning, if columns are not given.
    """
    # partial: what a rule misspells is told later, with its line
    read = {*select_schema(source.schema, columns_of(job.later_rules), partial=True).names}
    only = [one for one in source.schema if one.name in read and is_any_level(one.type, types.is_decimal)]
    if job.source.columns is not None or not only:
        return job.source.columns
    if job.before_rules:  # said once
        shown = ", ".join(f"{one.name!r} is {one.type}" for one in only)
        log.warning(printable(f"{shown}: rules compare it, the output does not have it"))
    return tuple(name for name in source.schema.names if name not in {one.name for one in only})


def curated(job: Job, opened: Provider) -> Provider:
    """Return the source of a job, which was opened with `opened_columns`, without the rows that its rules leave out.

    Raise JobError if the keys of its rows are not there.
    """
    exact = job.deduplicate
    against = _keys(job, "against") if exact is not None and exact.against else None
    verdicts = find_verdicts(_keys(job, "keys"), job.rules, against)
    blocks = replace(opened, where=None).blocks()
    counts = {rule: len(places) for rule, places in verdicts.by_rule.items()}
    dropped = DroppedRows.of_places(verdicts.places, blocks, counts, verdicts.too_short, _damaged(job))
    source = opened.without(dropped)
    if job.source.columns is None:
        return source
    return replace(source, schema=select_schema(source.schema, job.source.columns))


def _keys(job: Job, of: str) -> Provider:
    path = keys_path(job, of)
    try:
        return providers.open(path, storage_options=job.output.storage_options)
    except ProviderError as error:
        raise JobError(
            f"{job.rules[0].name}: the keys of the rows cannot be read: {error}\n"
            "  `seqflow run` writes them before it writes the output"
        ) from None


def _damaged(job: Job) -> dict[tuple[str, int], str]:
    """Return the blocks whose keys could not be read, which the rules have not compared, and why."""
    if not job.bad_files.leaves_out:
        return {}
    output = job.output
    target = open_output(
        keys_path(job), storage_options=output.storage_options, single_writer=output.single_writer
    ).target
    record = None if target is None else target.read_manifest()
    found = [] if record is None else counts_in(record)["bad_files"]
    return {(one.path, one.block): one.reason for one in found if one.block is not None}
