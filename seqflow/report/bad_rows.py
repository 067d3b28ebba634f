"""Bad rows in a report: their number by reason, and the place of the first row of each."""

from collections.abc import Iterator
from typing import NamedTuple

from seqflow.errors import ProviderError
from seqflow.loader.run.ledger import Reasons, Rejected, reason_of
from seqflow.report.page import table


class Place(NamedTuple):
    """Place of a bad row: the same five fields as in a quarantine file."""

    file: str
    block: int
    row: int | None
    column: str
    reason: str


class BadRowList:
    """Counts bad rows by reason, with the place of the first row of each; takes the place of a quarantine piece, and
    writes nothing.
    """

    def __init__(self) -> None:
        self.count = 0
        self.reasons = Reasons()
        self.first: dict[str, Place] = {}
        """Place of the first row, by reason."""
        self.error: ProviderError | None = None
        """Error for the first row of all."""

    def write(self, rejected: Rejected) -> None:
        self.count += rejected.count
        self.error = self.error or rejected.error()
        self.reasons = self.reasons + rejected.reasons
        for bad, number in zip(rejected.bad, rejected.numbers, strict=True):
            reason = reason_of(bad)
            if reason in self.reasons and reason not in self.first:
                block = rejected.block
                self.first[reason] = Place(block.origin, block.index, number, bad.column, bad.reason)

    def rows(self) -> list[tuple[int, str, int, int | None, str, str]]:
        """Return the number of rows of each reason, and the place of the first; rows that `prepare` has made have no
        number in the source.
        """
        nowhere = Place("", 0, None, "", "")
        return [
            (count, *(self.first.get(reason) or nowhere._replace(reason=reason)))
            for reason, count in self.reasons.most_common()
        ]

    def parts(self) -> Iterator[str]:
        """Yield a table of the reasons."""
        yield table(
            ("rows", *(f"first {name}" for name in Place._fields[:-1]), "reason"), self.rows(), stacks=True
        )
