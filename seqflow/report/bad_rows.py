"""What a report says of rows that cannot be used: how many there are, where the first ones are, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from seqflow.loader.run.ledger import Rejected
from seqflow.report.page import paragraph, table

_SHOWN = 10


class Place(NamedTuple):
    """A row that cannot be used: the five facts that a quarantine file has."""

    file: str
    block: int
    row: int | None
    column: str
    reason: str


class BadRowList:
    """Counts bad rows, and keeps the places of the first: a piece of a quarantine that nobody writes."""

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
        """A table of the first; what `prepare` made of other rows has no number."""
        yield table(Place._fields, self.first, stacks=True)
        left = self.count - len({place[:3] for place in self.first})
        if left > 0:
            yield paragraph(f"… and {left:,} more.")
