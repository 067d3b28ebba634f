"""The counts of a run, and the memory of a process."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from seqflow.loader import Stats

COUNTED = (
    "rows", "tokens", "cells", "shared", "batches", "bad_rows", "rows_read", "rows_left", "dropped", "skipped",
    "filtered", "filtered_by_keep", "filtered_by_condition", "reasons", "bad_files",
)  # fmt: skip
"""Fields of the loader's Stats that are saved with the progress of a run."""


def counts_of(stats: Stats) -> dict[str, Any]:
    """Return the counts of a run in the form in which they are saved."""
    return {name: getattr(stats, name) for name in COUNTED}


def counts_in(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts in a progress file or manifest; nothing for those that older runs did not save."""
    found = record["counts"]
    return {name: type(none)(found.get(name, none)) for name, none in counts_of(Stats()).items()}


def add_counts(stats: Stats, counts: Mapping[str, Any]) -> None:
    """Add the counts of a part to those of a run."""
    for name in COUNTED:
        setattr(stats, name, getattr(stats, name) + counts[name])


def sum_of(some: Iterable[Mapping[str, Any]]) -> Stats:
    """Return the sum of the counts of parts."""
    stats = Stats()
    for counts in some:
        add_counts(stats, counts)
    return stats


def set_counts(stats: Stats, before: Mapping[str, Any], since: Stats) -> None:
    """Set the counts of a run to the sum of its own and those of the runs before it."""
    for name in COUNTED:
        setattr(stats, name, before[name] + getattr(since, name))


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    import resource  # Windows has none, and no jobs

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def resident_memory() -> int:
    """Return the memory of this process in bytes; its peak where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak_memory()
    return pages * os.sysconf("SC_PAGE_SIZE")
