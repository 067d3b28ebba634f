"""The pages: of a source, and of a job."""

from __future__ import annotations

from dataclasses import replace

from seqflow import providers
from seqflow.job import Job
from seqflow.job.opening import open_loader
from seqflow.loader import BadRows
from seqflow.report.job import sections_of_job
from seqflow.report.machine import machine
from seqflow.report.page import page
from seqflow.report.source import sections_of, survey_of


def report_of_path(
    path: str, *, kind: str | None = None, where: str | None = None, batch: int = 256, capacity: int = 2048
) -> str:
    """The page of a source: its tensors, lengths, what padding wastes, its first rows. Reads all of it."""
    found = survey_of(providers.open(path, kind=kind, where=where), batch)
    return page(path, [*sections_of(found, batch, capacity), machine()])


def report_of_job(job: Job, name: str, batch: int = 256, capacity: int = 2048) -> str:
    """The page of a job: shapes and bounds, the sizes of a run, a sample of batches, and its source."""
    recipe = open_loader(replace(job, bad_rows=BadRows("skip"))).recipe
    found = survey_of(recipe.source, batch, recipe.columns, recipe.fill, recipe.valid)
    return page(name, [*sections_of_job(job), *sections_of(found, batch, capacity), machine()])
