"""Progress of what takes long: whoever does it counts what is done, and whoever watches looks when it likes.

Nothing is called back, so that counting costs an addition for each block, and nothing at all is shown unless the
command watches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Stage:
    """Work of which so much is done, of a total that is known before, or None."""

    unit: str
    """What is counted: rows, blocks."""
    total: int | None = None
    name: str = ""
    """What of the work this is, such as a window; empty for all of it."""
    done: int = 0
    """Added to by one thread at a time."""
    before: int = 0
    """What of it an earlier run has done: it says nothing about how long the rest takes."""
    note: Callable[[], str] | None = None
    """What else to show."""
    after: str = ""
    """What goes on once all is counted."""
    is_over: bool = False


@dataclass(slots=True)
class Watch:
    """The work that goes on: the outermost stage, and the latest inside it."""

    outer: Stage | None = None
    inner: Stage | None = None
    _open: list[Stage] = field(default_factory=list)

    def begin(self, stage: Stage) -> None:
        """A stage begins; behind the end of the outermost one, the next is outermost."""
        if not self._open:
            self.outer, self.inner = stage, None
        else:
            self.inner = stage
        self._open.append(stage)

    def end(self, stage: Stage) -> None:
        """A stage ends; an inner one is shown until the next begins."""
        self._open.remove(stage)
        stage.is_over = True


_watch: Watch | None = None


@contextmanager
def watched() -> Iterator[Watch]:
    """Stages that begin inside of this context are seen."""
    global _watch
    _watch = watch = Watch()
    try:
        yield watch
    finally:
        _watch = None


@contextmanager
def stage(of: Stage) -> Iterator[Stage]:
    """The stage goes on inside of this context. Threads that the work is divided among begin none."""
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
    """The items, each of which is done when the next is asked for. The total is asked for where somebody watches."""
    if _watch is None:
        yield from items
        return
    with stage(Stage(unit, total())) as here:
        for item in items:
            yield item
            here.done += 1
