"""Read what can be read of a source, and count the rows and the damaged files that are left out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from seqflow.errors import ProviderOptionError
from seqflow.providers.bad_files import BadFileList
from seqflow.providers.opening import open
from seqflow.providers.provider import Block, Provider
from seqflow.record import BadRow
from seqflow.record.selection import Table


def open_lenient(source: Any, **options: Any) -> Provider:
    """Open a source without its damaged files; a table or a source of your own, which has no such policy, whole."""
    try:
        return open(source, **options, bad_files="skip")
    except ProviderOptionError:
        return open(source, **options)


@dataclass(slots=True)
class LenientReader:
    """Reads what can be read; counts the bad rows and the damaged files that are left out."""

    skips: bool = False
    """Whether bad rows are left out; otherwise they are errors."""
    rows: int = 0
    files: BadFileList = field(default_factory=BadFileList)

    @classmethod
    def of(cls, provider: Provider, skips: bool) -> "LenientReader":
        """Return the counts before reading: the files that could not be opened."""
        return cls(skips, files=BadFileList(provider.damaged))

    def read(self, provider: Provider, block: Block, columns: Sequence[str]) -> Table:
        """Return columns of a block, in which rows that are left out are null, and count these rows."""
        bad: list[BadRow] = []
        table, _, _, damage = provider.read_kept(block, columns, bad_rows=bad if self.skips else None)
        self.rows += len({one.row for one in bad})
        self.files = self.files + ([] if damage is None else [damage])
        return table

    def facts(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {"bad_rows": self.rows, "bad_files": self.files.facts()}

    def lines(self) -> list[tuple[str, str]]:
        """Return a line for the bad rows, if there are any, and one for each damaged file."""
        rows = [("bad rows", f"{self.rows:,} left out")] if self.rows else []
        return [*rows, *(("damaged", str(one)) for one in self.files)]
