"""Threads of the output, and the error for a system that refuses to start another thread."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from seqflow.errors import OpError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@contextmanager
def naming_thread_limit(option: str) -> Iterator[None]:
    """Translate the refusal of the system to start a thread into an OpError that names the option."""
    try:
        yield
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        raise OpError(
            f"{option}: the system refuses to start another thread\n"
            "  ask for fewer, or raise the limits of processes and memory (ulimit -u, ulimit -v)"
        ) from None


def in_threads(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Map a function over items, in up to 8 threads."""
    workers = ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="seqflow-verify")
    with naming_thread_limit("output"), workers as threads:
        return list(threads.map(function, items))
