"""Data from outside: the errors of damaged data as ours, and Arrow buffers checked before they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

from seqflow.errors import ProviderError

A = TypeVar("A", pa.Array, pa.ChunkedArray, pa.RecordBatch, pa.Table)

_DAMAGE = (OSError, pa.ArrowException, UnicodeError, OverflowError)
"""What pyarrow raises for damaged data, its MemoryError aside."""


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Raise what pyarrow and the system raise for damaged data as a ProviderError: `place: what they say`."""
    try:
        yield
    except (ProviderError, MemoryError):
        raise
    except _DAMAGE as error:
        raise ProviderError(f"{place}: {error}") from error


def validated(data: A, place: str) -> A:
    """The data itself, every offset, size, index and text in it checked; ProviderError where one is wrong.

    For buffers that pyarrow has not decoded itself: of memory maps, IPC messages and other libraries.
    """
    with reading(f"{place} is no valid Arrow data"):
        data.validate(full=True)
    return data
