"""Refuse results larger than the free memory, before allocating them."""

import math
import os.path
from collections.abc import Iterator, Sequence
from typing import Any

from seqflow.kernels.error import MAX_INT64, beyond_memory

LARGE = 1 << 28
"""Results of fewer bytes are not checked: asking for the free memory takes longer than it saves."""
_CGROUPS = "/sys/fs/cgroup"


def check_memory(shape: Sequence[int], dtype: Any) -> None:
    """Raise KernelMemoryError when an array of this shape and dtype needs more bytes than are free."""
    needed = math.prod(shape) * dtype.itemsize
    if needed >= LARGE:
        free = free_bytes()
        if needed > (MAX_INT64 if free is None else free):
            raise beyond_memory(needed, free)


def free_bytes() -> int | None:
    """Return how many bytes this process can still get without swapping; None if the system does not tell."""
    found = [*_free_in_machine(), *_free_in_cgroup()]
    return min(found) if found else None


def _free_in_machine() -> Iterator[int]:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _free_in_cgroup() -> Iterator[int]:
    """Yield the remaining memory of the limited groups (cgroups) of this process."""
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            group = os.path.join(_CGROUPS, "memory", path.lstrip("/"))
            yield from _left(group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        elif not controllers:
            yield from _left(
                os.path.join(_CGROUPS, path.lstrip("/")), "memory.max", "memory.current", "inactive_file"
            )


def _left(group: str, limit: str, used: str, reclaimable: str) -> Iterator[int]:
    limits, uses = _lines(f"{group}/{limit}"), _lines(f"{group}/{used}")
    if limits and uses and limits[0].isdigit():
        cached = [
            line.split()[1] for line in _lines(f"{group}/memory.stat") if line.startswith(f"{reclaimable} ")
        ]
        # cached file pages count as used by a group, but the system can drop the inactive ones
        yield max(int(limits[0]) - int(uses[0]) + sum(map(int, cached)), 0)


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except OSError:
        return []
