"""The pages about a source and about a job."""

from dataclasses import replace
from typing import Any, NamedTuple

from seqflow.errors import DamagedFileError
from seqflow.hidden import shown
from seqflow.job import Job
from seqflow.job.opening import open_loader
from seqflow.providers.bad_files import BadFiles
from seqflow.report.job import sections_of_job
from seqflow.report.page import page, paragraph, section
from seqflow.report.source import (
    Policy,
    SurveyedSource,
    first_line,
    sections_of,
    summary_of,
    survey_of,
    survey_of_path,
)

_FIRST = ("Where a run stops", "The run", "The last run", "The first batches", "Bad rows of these batches")
"""Sections about a job that matter most, before its nets and shapes."""


class ReportPage(NamedTuple):
    """A page, and what was found in its source."""

    page: str
    found: SurveyedSource
    is_accepted: bool
    """Whether policies accept all faults of the source."""


def report_of_path(
    path: str,
    *,
    batch: int = 256,
    capacity: int = 2048,
    bad_rows: Policy = None,
    bad_files: Policy = None,
    **options: Any,
) -> ReportPage:
    """Return the page of a source: its tensors, lengths, waste of padding, its first rows. Reads all of it.

    `bad_rows` and `bad_files` are as in `survey_of`, `options` are those of `sf.open`.
    """
    found = survey_of_path(path, batch, bad_rows=bad_rows, bad_files=bad_files, **options)
    text = page(shown(path), [summary_of(found, batch), *sections_of(found, batch, capacity)])
    return ReportPage(text, found, found.is_accepted(bad_rows, bad_files))


def report_of_job(job: Job, name: str, batch: int = 256, capacity: int = 2048) -> ReportPage:
    """Return the page of a job: shapes and bounds, the sizes of a run, a sample of batches, lengths of the prepared
    rows, and its source.
    """
    read = job = job.without_rules()  # the page is made before rows are compared
    stops = []
    try:
        recipe = open_loader(job.without_quarantine()).recipe
    except DamagedFileError as error:
        stops = [section("Where a run stops", paragraph(first_line(error)))]
        read = replace(job, bad_files=BadFiles("skip"))
        recipe = open_loader(read.without_quarantine()).recipe
    found = survey_of(recipe.source, batch, recipe.columns, recipe.fill, recipe.valid)
    made = [*sections_of_job(read, batch, capacity), *sections_of(found, batch, capacity)]
    sections = [summary_of(found, batch), *stops, *sorted(made, key=lambda one: one.heading not in _FIRST)]
    bad_files = "raise" if stops else job.bad_files.policy
    return ReportPage(page(name, sections), found, found.is_accepted(job.bad_rows.policy, bad_files))
