"""Objects of other packages: recognized by the names of their classes, without imports; translation of errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from seqflow.errors import ProviderError, SeqflowError


def is_a(value: Any, package: str, *names: str) -> bool:
    """Return whether the value's class, or a base of it, is in the package and has one of these names."""
    return any(
        cls.__name__ in names and cls.__module__.partition(".")[0].lstrip("_") == package
        for cls in type(value).__mro__
    )


@contextmanager
def foreign_errors(place: str) -> Iterator[None]:
    """Raise errors of other packages as ProviderError: `place: message`."""
    try:
        yield
    except (SeqflowError, MemoryError, StopIteration):
        raise
    except Exception as error:
        advice = _BUSY if type(error).__name__ == "ResourceInUseException" else ""
        raise ProviderError(f"{place}: {error}{advice}") from error


_BUSY = "\nthe connection is busy with another reader: pass a function, such as lambda: connection.cursor().sql(…)"
"""Advice for DuckDB, whose connections give one result at a time."""
