"""One line on a terminal that shows progress, in plain text: it needs neither colours nor escape codes."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from shutil import get_terminal_size
from time import perf_counter

from seqflow.cli import printing
from seqflow.printable import printable_line
from seqflow.progress import Stage, Watch, watched

_FIRST, _EACH = 0.3, 0.1
"""Seconds until the line is shown, and between two updates."""
SECONDS_BETWEEN_LINES, _LOG_WIDTH = 30.0, 200
"""Seconds between two lines of a log, and the width of each."""
_LEAST_BAR, _WIDEST_BAR = 4, 24


@contextmanager
def progress_line(*, show: bool = True) -> Iterator[None]:
    """Show the progress of the work inside the context, if both streams are a terminal that can return to the start
    of its line.
    """
    if not show or not is_terminal():
        yield
        return
    with watched() as watch:
        line = ProgressLine(watch)
        try:
            yield
        finally:
            line.end()


@contextmanager
def log_lines(write: Callable[[str, float], None]) -> Iterator[None]:
    """Call `write` with a line about the work inside the context and the seconds since its beginning, every 30 s."""
    with watched() as watch:
        stop, started = threading.Event(), perf_counter()

        def run() -> None:
            while not stop.wait(SECONDS_BETWEEN_LINES):
                if watch.outer is not None:
                    seconds = perf_counter() - started
                    write(line_of(watch.outer, watch.inner, seconds, _LOG_WIDTH, bar=""), seconds)

        thread = threading.Thread(target=run, name="seqflow-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@contextmanager
def progress_or_log(*, show: bool = True) -> Iterator[None]:
    """Show the progress of the work inside the context: a line of a terminal, or else lines of a log on stderr."""
    as_lines = show and not is_terminal()
    with (
        log_lines(lambda line, _: printing.say(f"seqflow: {line}", err=True))
        if as_lines
        else progress_line(show=show)
    ):
        yield


def is_terminal() -> bool:
    """Return whether both streams are a terminal that can return to the start of its line."""
    plain = os.environ.get("TERM") in ("dumb", "unknown")
    return sys.stderr.isatty() and sys.stdout.isatty() and not plain


class ProgressLine:
    """Writes the line from its own thread, and removes it before anything else is printed."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._width = watch, 0
        self._outer: Stage | None = None
        self._started = 0.0
        """Time at which the outermost stage was first seen."""
        self._lock, self._stop = threading.RLock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="seqflow-progress", daemon=True)
        printing.before_text = self.hidden
        self._thread.start()

    def end(self) -> None:
        """Remove the line for good."""
        self._stop.set()
        self._thread.join()
        printing.before_text = nullcontext
        self.clear()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Remove the line, and do not write it inside the context."""
        with self._lock:
            self.clear()
            yield

    def clear(self) -> None:
        """Write spaces over the line."""
        if self._width:
            self._write(" " * self._width + "\r")
            self._width = 0

    def _run(self) -> None:
        wait = _FIRST
        while not self._stop.wait(wait):
            wait = _EACH
            with self._lock:
                if self._watch.outer is not None and not self._stop.is_set():
                    self._draw(self._watch.outer, self._watch.inner)

    def _draw(self, outer: Stage, inner: Stage | None) -> None:
        if outer is not self._outer:
            self._outer, self._started = outer, perf_counter() - _FIRST
        width = get_terminal_size().columns - 1
        text = line_of(outer, inner, perf_counter() - self._started, width, bar=self._bar())
        self._write(text.ljust(self._width) + "\r")
        self._width = len(text)

    def _bar(self) -> str:
        return "━╌" if (sys.stderr.encoding or "").lower().startswith("utf") else "#-"

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:  # the terminal was closed
            self._stop.set()


def line_of(outer: Stage, inner: Stage | None, seconds: float, width: int, bar: str = "━╌") -> str:
    """Return rows done and time left of the whole work; then the progress of the current stage.

    The whole work has a bar; until it makes progress, the current stage has one instead.
    """
    times = [_time(outer, seconds)]
    notes = [note] if outer.note is not None and (note := outer.note()) else []
    begin, end = _counted(outer), [_counted(inner)] if inner is not None else []
    while len(text := "  ".join([begin, *times, *notes, *end])) + _LEAST_BAR + 2 > width and (notes or times):
        (notes or times).pop()
    size = min(_WIDEST_BAR, width - len(text) - 2)
    bar_of_inner = inner is not None and bool(inner.total) and outer.done == outer.before
    measured = inner if bar_of_inner else outer
    drawn: list[str] = []
    if bar and measured is not None and measured.total and size >= _LEAST_BAR:
        full = round(min(1.0, measured.done / measured.total) * size)
        drawn = [bar[0] * full + bar[1] * (size - full)]
    parts = [begin, *times, *notes, *end, *drawn] if bar_of_inner else [begin, *drawn, *times, *notes, *end]
    return printable_line("  ".join(parts))[:width]


def _counted(stage: Stage) -> str:
    if not stage.unit:
        return stage.name
    if stage.name and stage.done == stage.total:
        return stage.name if stage.is_over or not stage.after else f"{stage.after} {stage.name}"
    name = f"{stage.name}: " if stage.name else ""
    of = "" if stage.total is None else f" of {stage.total:,}"
    return f"{name}{stage.done:,}{of} {stage.unit}"


def _time(stage: Stage, seconds: float) -> str:
    done = stage.done - stage.before
    if stage.total is None or done <= 0:
        return f"{_clock(seconds)} so far"
    return f"{_clock(seconds * max(0, stage.total - stage.done) / done)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
