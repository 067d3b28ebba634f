"""Jobs that write the keys of the rows of a job with rules: they are run, and resumed, before the job itself."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from seqflow.curation.keyed_rows import check_columns, open_against
from seqflow.curation.rules import NearDuplicates
from seqflow.errors import JobError, ProviderOptionError, UnknownColumnError
from seqflow.files.uris import is_uri
from seqflow.job.curated import keys_path, opened_columns
from seqflow.job.job import Job
from seqflow.job.opening import open_options, open_source
from seqflow.job.reading import place_of
from seqflow.job.sections import OrderSection, OutputSection, SourceSection
from seqflow.loader import BadRows, Rows
from seqflow.providers import Provider
from seqflow.providers.bad_files import RAISE, BadFiles
from seqflow.providers.store_options import STORE_OPTIONS

_KIND = "seqflow.curation.keyed_rows:keyed"
_PART_BYTES = "128 MiB"
"""Bytes of the source after which keys are safe from a kill."""


def keys_jobs(job: Job) -> list[Job]:
    """Return the jobs that write the keys of the rows, and of those that they are compared with."""
    rules: dict[str, dict[str, Any]] = {rule.name: asdict(rule) for rule in job.rules}
    options = {
        name: value for name, value in open_options(job.source, job).items() if value not in (None, ())
    }
    paths = options.pop("source", None)
    options.pop("bad_files")
    if job.bad_files.leaves_out:
        options["bad_files"] = "skip"
    if job.source.format:
        options["format"] = (job.source.format, dict(job.source.given))
    if (columns := opened_columns(job)) is not None:
        options["columns"] = list(columns)
    found = [_keys_job(job, paths, options, rules, keys_path(job), _left_out(job.bad_files))]
    exact = job.deduplicate
    if exact is not None and exact.against:
        of: dict[str, Any] = {}
        if any(map(is_uri, [exact.against] if isinstance(exact.against, str) else exact.against)):
            of |= {name: options[name] for name in options if name in STORE_OPTIONS}
        of["columns"] = list(exact.columns)
        only: dict[str, dict[str, Any]] = {"deduplicate": {"columns": exact.columns}}
        # damage of these files is an error: without their rows, others would stay unnoticed
        found.append(_keys_job(job, exact.against, of, only, keys_path(job, "against"), RAISE))
    return found


def check_rules(job: Job, source: Provider) -> None:
    """Raise JobError, with the line, if a rule names columns or files that are not there, or columns of types that it
    cannot compare; `source` is that of the job without its rules.
    """
    if not job.rules:
        return
    if job.output.path is not None or job.output.kind == "none":  # else `run` will be told the path
        keys_path(job)
    schema = source.schema if job.source.columns is None else _schema_for_rules(job)
    access = {name: one for name, one in open_options(job.source, job).items() if name in STORE_OPTIONS}
    for rule in job.rules:
        try:
            check_columns(rule, schema)
            if not isinstance(rule, NearDuplicates) and rule.against:
                open_against(rule, access)
        except ProviderOptionError as error:
            if not error.argument:
                raise
            place = place_of(job.file, job.overrides, f"{rule.name}.{error.argument}")
            raise JobError(f"{place}: [{rule.name}] {error.told('job')}") from None


def _schema_for_rules(job: Job) -> pa.Schema:
    """Return a schema of the source with the columns that rules read; with all columns if it lacks some of them."""
    try:
        return open_source(replace(job.source, columns=opened_columns(job)), job).schema
    except UnknownColumnError:
        # not at first: other columns may be such that they cannot be read
        return open_source(replace(job.source, columns=None), job).schema


def _left_out(policy: BadFiles) -> BadFiles:
    """Return the policy of keys, which are not entered in the quarantine file: the rows of the job are."""
    return replace(policy, policy="skip") if policy.leaves_out else policy


def _keys_job(
    job: Job,
    paths: Any,
    options: Mapping[str, Any],
    rules: Mapping[str, Mapping[str, Any]],
    path: str,
    bad_files: BadFiles,
) -> Job:
    source = SourceSection(
        paths=paths if isinstance(paths, str) else tuple(paths or ()),
        kind=_KIND,
        options={"source": dict(options), "rules": dict(rules)},
    )
    order = OrderSection(window=job.order.window, memory=job.order.memory, threads=job.order.threads)
    output = OutputSection(
        path=path,
        kind="parquet",
        part_bytes=_PART_BYTES,
        storage_options=job.output.storage_options,
        single_writer=job.output.single_writer,
    )
    return Job(
        source=source,
        order=order,
        batch=Rows(1 << 16),
        output=output,
        bad_rows=BadRows("skip"),
        bad_files=bad_files,
        engine=job.engine,
        imports=job.imports,
        folder=job.folder,
    )
