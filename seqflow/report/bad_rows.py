"""Bad rows in a report: their number, the places of the first ones, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from seqflow.loader.run.ledger import Rejected
from seqflow.report.page import paragraph, table

_SHOWN = 10


class Place(NamedTuple):
    """Place of a bad row: the same five fields as in a quarantine file."""

    file: str
    block: int
    row: int | None
    column: str
    reason: str


class BadRowList:
    """Counts bad rows and keeps the places of the first; takes the place of a quarantine piece, and writes
    nothing.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: list[Place] = []

    @property
    def is_full(self) -> bool:
        return len(self.first) >= _SHOWN

    def write(self, rejected: Rejected) -> None:
        self.count += rejected.count
        for bad, number in zip(rejected.bad, rejected.numbers, strict=True):
            if not self.is_full:
                block = rejected.block
                self.first.append(Place(block.origin, block.index, number, bad.column, bad.reason))

    def parts(self) -> Iterator[str]:
        """Yield a table of the first bad rows; rows that `prepare` has made have no number in the source."""
        yield table(Place._fields, self.first, stacks=True)
        left = self.count - len({place[:3] for place in self.first})
        if left > 0:
            yield paragraph(f"… and {left:,} more.")
