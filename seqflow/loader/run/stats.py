"""Counts and times of one iteration."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field, fields

from seqflow.drawing.tables import html_table
from seqflow.loader.plans.balance import StepCosts


@dataclass(slots=True, repr=False)
class Stats:
    """Counts of one iteration so far, and where its time went.

    Where `prepare` keeps the number of rows, `rows + rows_left + dropped + skipped + bad_rows` are all rows of the
    windows so far: after an epoch of one rank all rows of the source, with nothing left.
    """

    rows: int = 0
    """Rows handed out; one that is cut into pieces counts with its first."""
    rows_read: int = 0
    """Rows of the source in the windows so far, without those that `where` left out or could not be prepared."""
    rows_left: int = 0
    """Rows of these windows, as `prepare` made them, that are for later batches, or for those of other ranks."""
    tokens: int = 0
    """Elements of the planned column in the batches so far."""
    cells: int = 0
    """Elements of these batches when dense: of packed rows, or of rows padded to the longest."""
    batches: int = 0
    bad_rows: int = 0
    dropped: int = 0
    """Rows of short batches that `drop_last` left out, and of the last round that `tail="drop"` left out."""
    skipped: int = 0
    """Rows that `where` left out, and those that the batch plan left out by their lengths."""
    filtered: int = 0
    """Those of them that `where` left out; of files that names of folders exclude nothing is counted."""
    repeated: int = 0
    """Rows of the epoch's first batches that were handed out again, to fill the last round."""
    seconds_reading: float = 0.0
    """In all threads together, as are the next three."""
    seconds_preparing: float = 0.0
    seconds_planning: float = 0.0
    seconds_making: float = 0.0
    seconds_waiting: float = 0.0
    """Time for which the consumer waited for data."""
    bytes_in_flight: int = 0
    """Bytes of windows read ahead or in use, of at most `memory`."""
    costs: StepCosts = field(default_factory=StepCosts)
    """What the ranks of each step cost, where the plan has a `Balance`."""
    without: Counter[str] = field(default_factory=Counter)
    """For each of `totals` the rows, or pieces of rows, of which it is 0, as those whose labels are all masked. The
    first piece of a row may rightly be one: `require` judges whole rows."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def prepared(self) -> int:
        """Rows that `prepare` has made, or left as they are, and that are not bad."""
        return self.rows + self.rows_left + self.dropped + self.skipped - self.filtered

    @property
    def rows_done(self) -> int:
        """Rows of the source that need no more work: the progress of an epoch, also inside a large window."""
        left = min(1.0, max(0, self.rows_left) / self.prepared) if self.prepared else 0.0
        return self.rows_read - round(self.rows_read * left)

    @property
    def fill(self) -> float | None:
        """The part of all cells that holds tokens; None before there are any."""
        return self.tokens / self.cells if self.cells else None

    def lines(self) -> list[tuple[str, str]]:
        """What it shows, name and value: rows, tokens and batches always, of the others those that are not 0."""
        always = {"rows", "tokens", "batches"}
        found = [
            (one.name.replace("_", " "), _shown(one.name, value))
            for one in fields(self)
            if one.repr and isinstance(value := getattr(self, one.name), int | float)
            if value or one.name in always
        ]
        at = next(i for i, (name, _) in enumerate(found) if name == "batches")
        if self.fill is not None:
            found.insert(at, ("fill", f"{self.fill:.2%}"))
        if self.costs.steps:
            found.append(("imbalance of ranks", f"{self.costs.imbalance:.3f}"))
        found += [
            (f"rows without {name}", f"{count:,}") for name, count in sorted(self.without.items()) if count
        ]
        return found

    def __repr__(self) -> str:
        """A table, a line for each count or time."""
        lines = self.lines()
        names, values = (max(len(line[i]) for line in lines) for i in (0, 1))
        return "\n".join(["Stats", *(f"  {name:{names}}  {value:>{values}}" for name, value in lines)])

    def _repr_html_(self) -> str:
        return html_table("Stats", (), self.lines())

    def add_making(self, seconds: float) -> None:
        with self._lock:
            self.seconds_making += seconds


def _shown(name: str, value: float) -> str:
    return f"{value:.3f}" if name.startswith("seconds") else f"{value:,}"
