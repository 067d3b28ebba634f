"""What becomes of rows that cannot be used: an error, left out and counted, or written to a quarantine file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from seqflow.errors import OpError, ProviderError
from seqflow.loader.run.quarantine import Quarantine
from seqflow.loader.run.rejected import Rejected
from seqflow.loader.run.stats import Stats
from seqflow.output.file_writer import KIND_OF_SUFFIX
from seqflow.output.output_file import Batches, OutputFile

Policy = Literal["raise", "skip", "quarantine"]


@dataclass(frozen=True, slots=True)
class BadRows:
    """The policy for rows that cannot be used.

    "raise" stops with an error that names file, block, row, column and reason; "skip" leaves the row out and
    counts it; "quarantine" also writes it, with those five and the line that could not be read, to the file `path`,
    in Parquet or Arrow format as its suffix says. Each of several ranks writes a file of its own, such as
    `bad.rank3.parquet` for `bad.parquet`, with the bad rows of the windows that it read; so does each source of a Mix
    (`bad.source0.parquet`).
    """

    policy: Policy = "raise"
    path: str | Path | None = None

    def __post_init__(self) -> None:
        if self.policy not in ("raise", "skip", "quarantine"):
            raise OpError(f"BadRows: policy is {self.policy!r}, expected 'raise', 'skip' or 'quarantine'")
        if (self.policy == "quarantine") != (self.path is not None):
            what = "needs a path" if self.path is None else "takes no path: only 'quarantine' writes a file"
            raise OpError(f"BadRows: policy {self.policy!r} {what}")
        if self.path is not None and Path(self.path).suffix.lower() not in KIND_OF_SUFFIX:
            raise OpError(
                f"BadRows: path is {str(self.path)!r}, expected a name that ends in .parquet or .arrow"
            )

    def marked(self, *marks: str) -> BadRows:
        """The same policy, with these in the name of the file."""
        if self.path is None or not marks:
            return self
        path = Path(self.path)
        return replace(self, path=path.with_name(".".join([path.stem, *marks]) + path.suffix))

    def uncounted(self) -> BadRows:
        """The policy for rows that are read a second time: they are not written again."""
        return self if self.policy == "raise" else BadRows("skip")


class RejectedWriter(Protocol):
    """Takes bad rows, as a piece of a quarantine file does."""

    def write(self, rejected: Rejected, /) -> None: ...


class BadRowHandler:
    """Counts the bad rows of one run, and writes them where the policy says so.

    A run that goes on behind an earlier one gives its `count` and its committed `pieces`.
    """

    def __init__(
        self,
        policy: BadRows,
        files: Sequence[str] = (),
        *,
        count: int = 0,
        pieces: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.count = count
        self.first = ""
        """What is wrong with the first bad row."""
        path = None if policy.path is None else Path(policy.path).expanduser()
        self._file = None if path is None else Quarantine(path, files, pieces)
        self._piece: RejectedWriter | None = None

    @classmethod
    def of_piece(cls, piece: RejectedWriter | None) -> BadRowHandler:
        """A handler of the bad rows of one part, which are counted, and written where there is a piece."""
        handler = cls(BadRows("skip"))
        handler._piece = piece
        return handler

    def add(self, rejected: Rejected) -> None:
        self.count += rejected.count
        self.first = self.first or str(rejected.error()).partition("\n")[0]
        if (file := self._file or self._piece) is not None:
            file.write(rejected)

    @property
    def keeps_rows(self) -> bool:
        """Whether bad rows are written; else they are counted."""
        return self._file is not None or self._piece is not None

    def attempts_folder(self, run: str) -> Path | None:
        """A new folder in which other processes write pieces of the quarantine file."""
        return None if self._file is None else self._file.attempts_folder(run)

    def damaged(self, joined: Any) -> list[OutputFile]:
        """The committed pieces that are gone or changed, unless they are `joined` already, as was noted."""
        return [] if self._file is None else self._file.damaged(joined)

    def again(self, piece: OutputFile | None) -> BadRowHandler:
        """A handler of rows that are counted already; up to the next `commit` it writes those of a damaged piece."""
        handler = BadRowHandler(BadRows("skip"))
        if piece is not None and self._file is not None:
            self._file.write_again(piece)
            handler._file = self._file
        return handler

    def commit(self, batches: Batches | None = None) -> None:
        """Finish what is written so far as a piece of the quarantine file."""
        if self._file is not None:
            self._file.commit(batches)

    def adopt(self, piece: OutputFile, batches: Batches) -> None:
        """Take a finished piece of the quarantine file from where another process has written it."""
        assert self._file is not None
        self._file.adopt(piece, batches)

    @property
    def num_pieces(self) -> int:
        """The committed pieces of the quarantine file."""
        return 0 if self._file is None else self._file.num_pieces

    def pieces(self, first: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """The entries of the committed pieces of the quarantine file, or of some of them."""
        return [] if self._file is None else self._file.entries(first, stop)

    def install(self, note: Callable[[OutputFile], None] = lambda file: None) -> None:
        """Make the quarantine file of its pieces. What it will be is told to `note` before."""
        if self._file is not None:
            self._file.install(note)

    def check(self, stats: Stats) -> None:
        """ProviderError where all rows of a source, two or more, were left out, and only a count would tell."""
        if stats.bad_rows > 1 and not (stats.batches or stats.prepared or self.keeps_rows):
            raise ProviderError(
                f"bad_rows: 'skip' leaves out all {stats.bad_rows:,} rows of a source, the first for: {self.first}\n"
                "  check schema=, columns= and nets; bad_rows='raise' stops at the first row"
            )

    def publish(self) -> None:
        """Add the bad rows of windows that have ended to the quarantine file."""
        if self._file is not None:
            self._file.publish()

    def close(self, *, finished: bool) -> None:
        """End an epoch, which is finished or left early: what was seen is in the quarantine file."""
        if self._file is not None:
            self._file.close(finished=finished)

    def leave(self) -> None:
        """End the run with what was committed; another may go on."""
        if self._file is not None:
            self._file.leave()
