"""Exit codes of the command, and its error messages."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from seqflow.errors import (
    BatchPlanError,
    JobError,
    MissingSourceError,
    NetError,
    ProviderOptionError,
    SeqflowError,
    UnknownColumnError,
)

BAD_DATA, BAD_USAGE = 1, 2
_USAGE = (BatchPlanError, JobError, MissingSourceError, NetError, ProviderOptionError, UnknownColumnError)
_STOPPING = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """A signal asked the command to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def exit_cleanly() -> Iterator[None]:
    """Exit 2 for a bad job or bad usage, 1 for bad data, 128 + n for signal n; without a traceback."""
    for number in _STOPPING:
        signal.signal(number, _stop)
    try:
        yield
    except Stopped as stopped:
        print(f"seqflow: stopped by {signal.Signals(stopped.number).name}", file=sys.stderr)
        raise SystemExit(128 + stopped.number) from None
    except _USAGE as error:
        _exit(error, BAD_USAGE)
    except Exception as error:
        if not isinstance(error, (SeqflowError, OSError, MemoryError)) and not _is_of_arrow(error):
            raise
        _exit(error, BAD_DATA)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Unwind once, so that everything is cleaned up; further signals wait for that."""
    for stopping in _STOPPING:
        signal.signal(stopping, signal.SIG_IGN)
    raise Stopped(number)


def _exit(error: BaseException, code: int) -> NoReturn:
    print("\n  ".join([f"seqflow: {_message(error)}", *getattr(error, "__notes__", [])]), file=sys.stderr)
    raise SystemExit(code) from None


def _is_of_arrow(error: Exception) -> bool:
    arrow = sys.modules.get("pyarrow")  # whoever has not imported it raises none of its errors
    return arrow is not None and isinstance(error, arrow.ArrowException)


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and not isinstance(error, SeqflowError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}" if error.filename is not None else error.strerror
    return str(error) or type(error).__name__
