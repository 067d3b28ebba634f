"""Prefetching: how much is read and made ahead, by how many threads."""

from __future__ import annotations

import os
from dataclasses import dataclass

from seqflow.byte_sizes import format_bytes, parse_bytes
from seqflow.errors import OpError
from seqflow.output import MAX_THREADS


@dataclass(frozen=True, slots=True)
class Prefetch:
    """How windows are read, and batches made, ahead of whoever takes them. It changes no batch.

        sf.Loader(path, prefetch=sf.Prefetch(threads=2, memory="1 GiB"))

    `threads` read and make batches, by default one for each core but one, from 1 to 4, since the thread that iterates
    helps while it waits; 0 does everything there. `memory` bounds the bytes of windows read ahead and in use, by
    default four windows. With `reuse` a batch is valid until the next one is asked for, which may have its memory.

    Raises OpError for a number of threads that is none, and for `memory` that is no number of bytes.
    """

    threads: int = None  # type: ignore[assignment]
    memory: int | str | None = None
    reuse: bool = False

    def __post_init__(self) -> None:
        threads: object = self.threads
        if threads is None:
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            threads = max(1, min(4, cores - 1))
        if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads <= MAX_THREADS:
            raise OpError(f"Prefetch: threads is {threads!r}, expected an integer, 0 to {MAX_THREADS}")
        object.__setattr__(self, "threads", threads)
        if self.memory is not None:
            object.__setattr__(self, "memory", byte_count("Prefetch: memory", self.memory))

    def bytes_for(self, window: int, streams: int) -> int:
        """The bytes of windows of this size that may be in memory; OpError where one does not fit."""
        if self.memory is None:
            return window * max(4, streams + 2)
        assert isinstance(self.memory, int)  # since it was checked
        if window > self.memory:
            raise OpError(
                f"Loader: window is {format_bytes(window)}, expected no more than memory, "
                f"{format_bytes(self.memory)}"
            )
        return self.memory


def byte_count(what: str, size: int | str) -> int:
    """Bytes of a number or a text such as "64 MiB"."""
    try:
        return parse_bytes(size)
    except ValueError as error:
        raise OpError(f"{what}: {error}") from None
