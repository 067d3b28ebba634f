"""Stats: counts and times of one iteration."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Stats:
    """Counts of one iteration so far, and where its time went."""

    rows: int = 0
    """Rows of the source, without bad ones, in the windows so far."""
    tokens: int = 0
    """Elements of the planned column in the batches so far."""
    cells: int = 0
    """Elements of these batches when dense: of packed rows, or of rows padded to the longest."""
    batches: int = 0
    bad_rows: int = 0
    dropped: int = 0
    """Rows of short batches that `drop_last` left out."""
    skipped: int = 0
    """Rows that the batch plan left out by their lengths."""
    seconds_reading: float = 0.0
    """In all threads together, as are the next three."""
    seconds_preparing: float = 0.0
    seconds_planning: float = 0.0
    seconds_making: float = 0.0
    seconds_waiting: float = 0.0
    """Time for which the consumer waited for data."""
    bytes_in_flight: int = 0
    """Bytes of windows read ahead or in use, of at most `memory`."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def fill(self) -> float | None:
        """The part of all cells that holds tokens; None before there are any."""
        return self.tokens / self.cells if self.cells else None

    def add_making(self, seconds: float) -> None:
        with self._lock:
            self.seconds_making += seconds
