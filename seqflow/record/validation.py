"""Guard against damaged data: translate errors of pyarrow, and validate Arrow buffers before they are used."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

from seqflow.errors import DamagedFileError, ProviderError, ProviderOptionError, UnknownColumnError

A = TypeVar("A", pa.Array, pa.ChunkedArray, pa.RecordBatch, pa.Table)

_DAMAGE = (OSError, pa.ArrowException, UnicodeError, OverflowError)
"""Errors that pyarrow raises for damaged data, except MemoryError."""


_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
"""Numbers of errors of the system that tell that a file is not there any more."""


def kind_of_error(error: BaseException) -> type[ProviderError]:
    """Return DamagedFileError for an error that tells that a file is damaged or gone, else ProviderError.

    pyarrow passes on the number of an error of the system, such as that of a failing device or a missing permission;
    errors of damaged data have none.
    """
    is_of_system = isinstance(error, OSError) and error.errno is not None and error.errno not in _GONE
    others = (MemoryError, ImportError, ProviderOptionError, UnknownColumnError)
    return ProviderError if is_of_system or isinstance(error, others) else DamagedFileError


class reading:  # noqa: N801  # used as a function; a generator takes three times as long, for each small block
    """Translate errors of pyarrow and the system for damaged data into a ProviderError that names the place.

    `advice` is that for a damaged file which is none of a source: the policy of its files does not leave it out.
    """

    def __init__(self, place: str, advice: str = "") -> None:
        self.place, self.advice = place, advice

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        # MemoryError passes: it may be the machine's fault, not that of the data
        if isinstance(error, _DAMAGE) and not isinstance(error, ProviderError | MemoryError):
            kind = kind_of_error(error)
            advice = self.advice if kind is DamagedFileError else ""
            raise kind(f"{self.place}: {error}", advice=advice) from error


@contextmanager
def opening(path: str, kind: str) -> Iterator[None]:
    """Translate errors of opening a file: it must not be read, or is not of this kind."""
    with reading(f"{path} is not {kind}, or damaged"):
        try:
            yield
        except PermissionError:
            raise ProviderError(f"{path} cannot be read: permission denied") from None


def validated(data: A, place: str) -> A:
    """Check every offset, size, index and text of Arrow data, and return it; raise ProviderError for an invalid one.

    Used for buffers that pyarrow has not decoded itself: those of memory maps, IPC messages and other libraries.
    """
    with reading(f"{place} is not valid Arrow data"):
        data.validate(full=True)
    return data
