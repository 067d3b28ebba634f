"""The pages: of a source, and of a job."""

from __future__ import annotations

import platform

import numpy as np
import pyarrow as pa

from seqflow import kernels, providers
from seqflow.job import Job
from seqflow.job.opening import open_loader
from seqflow.report.job import sections_of_job
from seqflow.report.page import page, section, table
from seqflow.report.source import sections_of, survey_of
from seqflow.version import __version__


def report_of_path(
    path: str, *, kind: str | None = None, where: str | None = None, batch: int = 256, capacity: int = 2048
) -> str:
    """The page of a source: its tensors, lengths, what padding wastes, its first rows. Reads all of it."""
    survey = survey_of(providers.open(path, kind=kind, where=where), batch)
    return page(path, [*sections_of(survey, batch, capacity), _machine()])


def report_of_job(job: Job, name: str, batch: int = 256, capacity: int = 2048) -> str:
    """The page of a job: shapes and bounds, the sizes of a run, a sample of batches, and its source."""
    source = open_loader(job).pipeline.recipe.source
    survey = survey_of(source, batch)
    return page(name, [*sections_of_job(job), *sections_of(survey, batch, capacity), _machine()])


def _machine() -> str:
    facts = {
        "seqflow": __version__,
        "kernels": kernels.info()["kernels"],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "platform": platform.platform(),
    }
    return section("Made with", table(("what", "version"), facts.items()))
