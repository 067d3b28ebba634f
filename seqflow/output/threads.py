"""Threads: how many there may be, and what happens where the system has none."""

from collections.abc import Iterator
from contextlib import contextmanager

from seqflow.errors import OpError


@contextmanager
def threads_to_be_had(option: str) -> Iterator[None]:
    """Inside, threads are started; OpError, which names the option of their number, where the system refuses one."""
    try:
        yield
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        raise OpError(
            f"{option}: the system refuses to start another thread\n"
            "  ask for fewer, or raise the limits of processes and memory (ulimit -u, ulimit -v)"
        ) from None
