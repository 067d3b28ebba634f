"""Exit codes of the command, and its error messages."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from traceback import format_exc
from types import FrameType
from typing import Any, NoReturn

from seqflow.cli import printing
from seqflow.cli.printing import say
from seqflow.errors import (
    BatchPlanError,
    JobError,
    MissingSourceError,
    NetError,
    ProviderOptionError,
    SeqflowError,
    UnknownColumnError,
)
from seqflow.logs import log

BAD_DATA, BAD_USAGE = 1, 2
_USAGE = (BatchPlanError, JobError, MissingSourceError, NetError, ProviderOptionError, UnknownColumnError)
_STOPPING = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class Stopped(BaseException):
    """A signal asked the command to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def exit_cleanly() -> Iterator[None]:
    """Exit 2 for a bad job or bad usage, 1 for bad data, 128 + n for signal n; without a traceback.

    The first signal raises an exception, so that everything is cleaned up. The second ends the process immediately.
    """
    arguments = sys.argv[1:]
    if "--log=json" in arguments or ("--log", "json") in pairwise(arguments):  # also if others are malformed
        printing.begin_json_log()
    stop = SignalHandler()
    stop.listen()
    log.addHandler(PrintHandler())
    log.setLevel(logging.INFO)
    try:
        yield
        printing.end_log("done", 0)
    except Stopped as stopped:
        stop.say(stopped.number)
        for note in getattr(stopped, "__notes__", []):
            say(f"  {note}", err=True)
        _leave(128 + stopped.number, "stopped")
    except _USAGE as error:
        _exit(error, BAD_USAGE)
    except Exception as error:
        if hasattr(error, "format_message"):
            _exit_usage(error)
        if not isinstance(error, (SeqflowError, OSError, MemoryError)) and not _is_of_arrow(error):
            say(format_exc().rstrip(), err=True, level="error")
            _leave(1)
        _exit(error, BAD_DATA)


class PrintHandler(logging.Handler):
    """Prints log messages on stderr, each once."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        message = record.getMessage()
        if message not in self._said:
            self._said.add(message)
            say(f"seqflow: {message}", err=True)


class SignalHandler:
    """Stops the process at a signal: the first unwinds the main thread; at the second, another thread ends the
    process.
    """

    def __init__(self) -> None:
        self._raised = False
        self._said = False

    def listen(self) -> None:
        """Handle signals from now on."""
        for number in _STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores it: it stays ignored
                signal.signal(number, self._raise)
        received, sent = os.pipe()
        os.set_blocking(sent, False)
        signal.set_wakeup_fd(sent, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(received,), name="seqflow-signals", daemon=True).start()

    def say(self, number: int) -> None:
        """Tell the user once that the command stops."""
        if not self._said:
            self._said = True
            text = printing.error_form(f"seqflow: stopped by {signal.Signals(number).name}", "error")
            os.write(sys.stderr.fileno(), f"{text}\n".encode())

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if not self._raised:
            self._raised = True
            raise Stopped(number)

    def _watch(self, received: int) -> None:
        """Wait for signals: Python writes the number of each one to a socket at once, even while the main thread is
        busy.
        """
        seen = 0
        while numbers := os.read(received, 16):
            for number in numbers:
                seen += number in _STOPPING
                if seen > 1:
                    self._end(number)

    def _end(self, number: int) -> NoReturn:
        """End without waiting for any thread; remove unfinished files."""
        unfinished = sys.modules.get("seqflow.output.unfinished")
        try:
            if unfinished is not None:
                unfinished.remove_all()
            self.say(number)
            if line := printing.end_line("stopped", 128 + number):
                os.write(sys.stderr.fileno(), f"{line}\n".encode())
        finally:
            os._exit(128 + number)


def _exit(error: BaseException, code: int) -> NoReturn:
    lines = "\n".join([_message(error), *getattr(error, "__notes__", [])]).split("\n")
    text = "\n  ".join(["seqflow: " + lines[0], *(line.removeprefix("  ") for line in lines[1:])])
    say(text, err=True, level="error")
    _leave(code)


def _leave(code: int, outcome: str = "failed") -> NoReturn:
    printing.end_log(outcome, code)
    raise SystemExit(code) from None


def _exit_usage(error: Any) -> NoReturn:
    """Exit for a usage error of click, naming the command."""
    context = getattr(error, "ctx", None)
    command = "seqflow" if context is None else context.command_path
    say(
        f"{command}: {error.format_message()}\n  {command} --help shows what it takes",
        err=True,
        level="error",
    )
    _leave(error.exit_code)


def _is_of_arrow(error: Exception) -> bool:
    arrow = sys.modules.get("pyarrow")  # a module that is not imported has raised none of its errors
    return arrow is not None and isinstance(error, arrow.ArrowException)


def _message(error: BaseException) -> str:
    if isinstance(error, SeqflowError):
        error.asker = error.asker or printing.asked
    if isinstance(error, OSError) and not isinstance(error, SeqflowError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}" if error.filename is not None else error.strerror
    return str(error) or type(error).__name__
