"""Progress of long work: the worker counts, and an observer reads the counts when it likes.

There are no callbacks: counting costs one addition for each block, and nothing is shown unless the command watches.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Stage:
    """A part of the work: its progress, and its total if that is known beforehand."""

    unit: str
    """The unit that is counted: rows, blocks."""
    total: int | None = None
    name: str = ""
    """Name of the part of the work, such as a window; empty for the whole work."""
    done: int = 0
    """Units done; only one thread at a time adds to it."""
    before: int = 0
    """Units done by an earlier run, which are ignored when the remaining time is estimated."""
    note: Callable[[], str] | None = None
    """Function that returns more text to show."""
    after: str = ""
    """Name of the work that follows after all units are counted."""
    is_over: bool = False


@dataclass(slots=True)
class Watch:
    """The work in progress: the outermost stage, and the latest one inside it."""

    outer: Stage | None = None
    inner: Stage | None = None
    _open: list[Stage] = field(default_factory=list)

    def begin(self, stage: Stage) -> None:
        """Begin a stage; after the end of the outermost one, the next one is outermost."""
        if not self._open:
            self.outer, self.inner = stage, None
        else:
            self.inner = stage
        self._open.append(stage)

    def end(self, stage: Stage) -> None:
        """End a stage; an inner one is shown until the next one begins."""
        self._open.remove(stage)
        stage.is_over = True


_watch: Watch | None = None


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch the stages that begin inside this context."""
    global _watch
    _watch = watch = Watch()
    try:
        yield watch
    finally:
        _watch = None


@contextmanager
def stage(of: Stage) -> Iterator[Stage]:
    """Run the stage inside this context. Threads that share its work begin no stages of their own."""
    watch = _watch
    if watch is None:
        yield of
        return
    watch.begin(of)
    try:
        yield of
    finally:
        watch.end(of)


def over(items: Iterable[T], unit: str, total: Callable[[], int | None]) -> Iterator[T]:
    """Yield the items, each of which counts as done when the next is requested. `total` is called only if the work is
    watched.
    """
    if _watch is None:
        yield from items
        return
    with stage(Stage(unit, total())) as here:
        for item in items:
            yield item
            here.done += 1
