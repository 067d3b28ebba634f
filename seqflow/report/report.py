"""The pages about a source and about a job, and the machine that made them."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from seqflow import kernels, providers
from seqflow.byte_sizes import format_bytes
from seqflow.job import Job
from seqflow.job.opening import open_loader
from seqflow.loader import BadRows
from seqflow.report.job import sections_of_job
from seqflow.report.page import facts, page, section
from seqflow.report.source import sections_of, survey_of
from seqflow.version import __version__


def machine() -> str:
    """Return processor, cores, memory, the kernels with their instruction set and threads, and versions."""
    found = kernels.info()
    isa = "" if found["isa"] is None else f", {found['isa']}"
    return section("Machine and versions", facts([
        ("processor", _processor()),
        ("cores", f"{_usable_cores()} of {os.cpu_count()}"),
        ("memory", _memory()),
        ("system", platform.platform()),
        ("kernels", f"{found['kernels']}{isa}"),
        ("threads of kernels", str(found["threads"])),
        ("seqflow", __version__),
        ("python", platform.python_version()),
        ("numpy", np.__version__),
        ("pyarrow", pa.__version__),
    ]))  # fmt: skip


def _processor() -> str:
    """Return the name of the processor, if the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> str:
    try:
        return format_bytes(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows, for example
        return "not known"


def report_of_path(
    path: str, *, kind: str | None = None, where: str | None = None, batch: int = 256, capacity: int = 2048
) -> str:
    """Return the page of a source: its tensors, lengths, waste of padding, its first rows. Reads all of it."""
    found = survey_of(providers.open(path, kind=kind, where=where), batch)
    return page(path, [*sections_of(found, batch, capacity), machine()])


def report_of_job(job: Job, name: str, batch: int = 256, capacity: int = 2048) -> str:
    """Return the page of a job: shapes and bounds, the sizes of a run, a sample of batches, and its source."""
    recipe = open_loader(replace(job, bad_rows=BadRows("skip"))).recipe
    found = survey_of(recipe.source, batch, recipe.columns, recipe.fill, recipe.valid)
    return page(name, [*sections_of_job(job), *sections_of(found, batch, capacity), machine()])
