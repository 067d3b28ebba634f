"""Damaged files: the policy for them, and the record of each that was left out."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from seqflow.arguments import checked
from seqflow.errors import DamagedFileError, ProviderOptionError
from seqflow.printable import printable_line


class BadFile(NamedTuple):
    """A damaged file that was left out, or a damaged block of it."""

    path: str
    block: int | None
    """Number of the block (row group, record batch) that was left out; None for the whole file."""
    reason: str
    rows: int | None
    """Number of rows that are lost; None if it is not known."""

    @staticmethod
    def of(path: str, block: int | None, error: DamagedFileError, rows: int | None = None) -> "BadFile":
        """Return the record of an error, without its advice and without the path at its beginning."""
        reason = error.message.partition("\n")[0].removeprefix(path).lstrip(" ,:")
        return BadFile(path, block, reason, rows)

    def __str__(self) -> str:
        place = self.path if self.block is None else f"{self.path}, block {self.block}"
        lost = "" if self.rows is None else f" ({self.rows:,} rows)"
        return printable_line(f"{place}{lost}: {self.reason}")


class BadFileList(list[BadFile]):
    """Damaged files and blocks, each once; a sum of lists keeps that. It is made from entries or from their JSON."""

    def __init__(self, found: Iterable[Iterable[Any]] = ()) -> None:
        super().__init__(dict.fromkeys(BadFile(*one) for one in found))

    def __add__(self, other: Iterable[Iterable[Any]]) -> "BadFileList":  # type: ignore[override]
        return BadFileList([*self, *other])

    @property
    def num_files(self) -> int:
        """Number of files, of which several blocks may be damaged."""
        return len({one.path for one in self})

    def facts(self) -> list[dict[str, Any]]:
        """Return the entries for JSON."""
        return [one._asdict() for one in self]


@checked(ProviderOptionError, methods=False)
@dataclass(frozen=True, slots=True)
class BadFiles:
    """Policy for files that are damaged, or gone, when they are opened or read; not the files themselves.

    "raise" stops with an error that names the file; "skip" leaves out the file, or, of a file whose metadata can be
    read, the damaged block with all its columns, and counts it; "quarantine" also writes an entry for it to the
    quarantine file of `bad_rows`, with nulls in place of its rows. A network that fails, a permission that is missing
    and a full memory are always errors.
    """

    policy: Literal["raise", "skip", "quarantine"] = "raise"
    """Treatment of a damaged file: an error, omitted, or omitted and entered in the quarantine file of bad rows."""
    max: int | None = None
    """Largest number of damaged files; one more is an error. None omits any number."""

    def __post_init__(self) -> None:
        if self.max is not None and (self.max < 0 or self.policy == "raise"):
            expected = "None with 'raise', which allows none" if self.policy == "raise" else "0 or more"
            raise ProviderOptionError.of("BadFiles.max", f"is {self.max}, expected {expected}")

    @staticmethod
    def of(value: Any) -> "BadFiles":
        """Return the policy of this name, or the policy itself."""
        return value if isinstance(value, BadFiles) else BadFiles(value)

    @property
    def leaves_out(self) -> bool:
        """Return whether damaged files are left out."""
        return self.policy != "raise"

    def check(self, found: Iterable[BadFile]) -> None:
        """Raise DamagedFileError if these are more files than allowed."""
        files = {one.path: one for one in found}
        if self.max is not None and len(files) > self.max:
            shown = "".join(f"\n  {one}" for one in list(files.values())[: self.max + 1][-4:])
            raise DamagedFileError(
                f"{len(files):,} files are damaged, and bad_files allows max={self.max}:{shown}"
            )


RAISE = BadFiles()
