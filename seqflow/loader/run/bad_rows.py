"""Rows that cannot be used: raise an error, skip and count them, or write them to a quarantine file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seqflow import providers
from seqflow.errors import JobError, OpError, ProviderError, SeqflowError
from seqflow.json_form import has_form
from seqflow.kernels.arrays import Array
from seqflow.output.committed_files import committed_path, join, locate, piece_path, remove_committed
from seqflow.output.durable_files import remove_temporaries, sync_folder
from seqflow.output.file_writer import KIND_OF_SUFFIX, FileWriter, Format
from seqflow.output.lock import Lock
from seqflow.output.output_file import FORM, Batches, OutputFile
from seqflow.output.overwriting import overwritten
from seqflow.printable import printable_line
from seqflow.record import BadRow
from seqflow.record.run_ends import take_table

if TYPE_CHECKING:
    import pyarrow as pa

    from seqflow.loader.run.provenance import RowNumbers
    from seqflow.providers import Block

Policy = Literal["raise", "skip", "quarantine"]


@dataclass(frozen=True, slots=True)
class BadRows:
    """The policy for rows that cannot be used.

    "raise" stops with an error that names file, block, row, column and reason; "skip" leaves the row out and
    counts it; "quarantine" also writes it, with those five, to the file `path`, in Parquet or Arrow format as its
    suffix says. Each of several ranks writes a file of its own, such as `bad.rank3.parquet` for `bad.parquet`, with
    the bad rows of the windows that it read; so does each source of a Mix (`bad.source0.parquet`).
    """

    policy: Policy = "raise"
    path: str | Path | None = None

    def __post_init__(self) -> None:
        if self.policy not in ("raise", "skip", "quarantine"):
            raise OpError(f"BadRows: policy is {self.policy!r}, expected 'raise', 'skip' or 'quarantine'")
        if (self.policy == "quarantine") != (self.path is not None):
            raise OpError(
                f"BadRows: policy {self.policy!r} {'needs a' if self.path is None else 'takes no'} path"
            )
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


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows that cannot be used, and why."""

    rows: pa.Table
    """One for each entry of `bad`."""
    bad: tuple[BadRow, ...]
    numbers: tuple[int | None, ...]
    """Their numbers in the block; None where `prepare` made new rows."""
    block: Block
    in_prepare: int
    """How many of them were read and converted, but not prepared, or not put into a batch."""

    @classmethod
    def of(
        cls,
        batch: pa.RecordBatch | pa.Table,
        bad: Sequence[BadRow],
        numbers: RowNumbers | None,
        block: Block,
        *,
        in_prepare: int,
    ) -> Rejected:
        """The bad rows of a batch, whose numbers in the block are `numbers`."""
        rows = [one.row for one in bad]
        table = take_table(batch, np.array(rows, np.int64))
        in_block = tuple(None if numbers is None else int(numbers[row]) for row in rows)
        return cls(table, tuple(bad), in_block, block, in_prepare)

    @property
    def count(self) -> int:
        """How many rows they are: one may be bad in several columns."""
        return len({one.row for one in self.bad})

    def table(self) -> pa.Table:
        """The rows as a quarantine file has them, with a column that says why."""
        import pyarrow as pa

        rows, bad = self.rows, self.bad
        reasons = pa.StructArray.from_arrays(
            [
                pa.array([printable_line(self.block.origin)] * len(bad), pa.string()),
                pa.array([self.block.index] * len(bad), pa.int64()),
                pa.array(self.numbers, pa.int64()),
                pa.array([row.column for row in bad], pa.string()),
                pa.array([row.reason for row in bad], pa.string()),
            ],
            names=REASON_FIELDS,
        )
        name = "bad"
        while name in rows.schema.names:
            name += "_"
        return pa.table({name: reasons, **dict(zip(rows.schema.names, rows.columns, strict=True))})

    def error(self) -> ProviderError:
        """The error for the first of them, where bad rows are errors."""
        return bad_row_error(self.bad[0], self.numbers[0], self.block)


def bad_row_error(bad: BadRow, number: int | None, block: Block) -> ProviderError:
    """The error for a bad row, which has this number in its block, or was made by `prepare`."""
    row = "a row that prepare made" if number is None else f"row {number}"
    return ProviderError(
        f"{block.origin}, block {block.index}, {row}, column {bad.column!r}: {bad.reason}\n"
        "  bad_rows= says what becomes of such rows, fill= and valid= of nulls"
    )


def refused_row(row: int, names: Iterable[str], error: Exception) -> BadRow:
    """The bad row for the error of a net on this row alone. The statement that failed stands for its column."""
    statement = error.statement if isinstance(error, SeqflowError) else ""
    return BadRow(row, statement or ", ".join(names), str(error).split("\n")[0])


def keep_rows(num_rows: int, bad: Sequence[BadRow]) -> Array:
    """bool[num_rows]: the rows that are not bad."""
    keep = np.ones(num_rows, bool)
    keep[[row.row for row in bad]] = False
    return keep


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
        path = None if policy.path is None else Path(policy.path).expanduser()
        self._file = None if path is None else Quarantine(path, files, pieces)

    def add(self, rejected: Rejected) -> None:
        self.count += rejected.count
        if self._file is not None:
            self._file.write(rejected)

    @property
    def keeps_rows(self) -> bool:
        """Whether bad rows are written; else they are counted."""
        return self._file is not None

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

    def close(self, *, keep: bool) -> None:
        """End the run: the quarantine file gets its final name, or is removed where the run failed."""
        if self._file is not None:
            self._file.close(keep=keep)

    def leave(self) -> None:
        """End the run with what was committed; another may go on."""
        if self._file is not None:
            self._file.leave()


REASON_FIELDS = ("file", "block", "row", "column", "reason")


class Quarantine:
    """A Parquet or Arrow file of bad rows: their own columns, and a struct column `bad` that says why.

    The fields of `bad` are `file`, `block`, `row`, `column` and `reason`. The column is called `bad_` where the rows
    have a column `bad` themselves. The file replaces that of an earlier run, and no other: ProviderError where
    something else has its name, or it is one of `files`, from which the rows come. No other run may write
    it meanwhile.

    It is written in pieces: `commit` finishes one under a hidden name, `install` joins them, and may be repeated by
    another process that knows their names.
    """

    def __init__(
        self, path: Path, files: Sequence[str] = (), pieces: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        if (source := overwritten(path, files)) is not None:
            raise ProviderError(f"quarantine: {str(path)!r} is {source!r}, from which the rows come")
        if path.exists() and not _is_quarantine(path):
            raise ProviderError(
                f"quarantine: {str(path)!r} exists and is no quarantine file of an earlier run\n"
                "  choose a new name"
            )
        self._path = path
        self._form = Format(KIND_OF_SUFFIX[path.suffix.lower()])
        own = re.compile(rf"{re.escape(path.name)}\.part-\d+")
        names = [piece["name"] for piece in pieces]
        if (foreign := next((name for name in names if not own.fullmatch(name)), None)) is not None:
            raise JobError(
                f"quarantine: {foreign!r} is no piece of {str(path)!r}: the progress file is damaged"
            )
        self._pieces = [OutputFile.from_json(path.parent, piece) for piece in pieces]
        self._number: int | None = None
        """The place of the piece that is written again."""
        self._writer: FileWriter | None = None
        self._lock = Lock(path.with_name(f".{path.name}.lock"), path)
        if path.parent.is_dir():
            self._acquire()

    def _acquire(self) -> None:
        self._lock.acquire()
        name = re.escape(self._path.name)
        remove_temporaries(self._path.parent, rf"{name}(?:\.part-\d+)?")
        remove_committed(self._path.parent, rf"{name}\.part-\d+", {piece.path.name for piece in self._pieces})

    def write(self, rejected: Rejected) -> None:
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._acquire()
            number = len(self._pieces) if self._number is None else self._number
            piece = piece_path(self._path, number)
            self._writer = FileWriter(self._path, self._form, piece)
        self._writer.write(rejected.table(), len(self._writer.groups))

    def adopt(self, piece: OutputFile, batches: Batches) -> None:
        """Give a finished piece, with the bad rows of these batches, the next hidden name."""
        self._acquire()
        path = piece_path(self._path, len(self._pieces))
        piece.path.replace(committed_path(path))
        sync_folder(path.parent)
        self._pieces.append(replace(piece, path=path, batches=batches))

    @property
    def num_pieces(self) -> int:
        return len(self._pieces)

    def entries(self, first: int, stop: int | None) -> list[dict[str, Any]]:
        """The entries of some committed pieces."""
        return [piece.to_json(self._path.parent) for piece in self._pieces[first:stop]]

    def commit(self, batches: Batches | None = None) -> None:
        """Finish a piece, with the bad rows of these batches."""
        if self._writer is not None:
            self._writer.close()
            piece = self._writer.output_file(self._writer.piece, batches)
            self._writer.rename(committed_path(piece.path))
            sync_folder(self._path.parent)
            at = (
                slice(len(self._pieces), None)
                if self._number is None
                else slice(self._number, self._number + 1)
            )
            self._pieces[at] = [piece]
            self._writer = None
        self._number = None

    def damaged(self, joined: Any) -> list[OutputFile]:
        """The committed pieces that are gone or changed, unless they are `joined` already, as was noted."""
        folder = self._path.parent
        if has_form(joined, FORM) and OutputFile.from_json(folder, joined).is_at(self._path):
            return []
        found = locate(self._pieces, folder)
        return [piece for piece, path in zip(self._pieces, found, strict=True) if path is None]

    def write_again(self, piece: OutputFile) -> None:
        """Write a committed piece that is damaged again, up to the next `commit`."""
        self._number = self._pieces.index(piece)

    def install(self, note: Callable[[OutputFile], None] = lambda file: None) -> None:
        """Make the file of its committed pieces; none of an earlier run is left where there are no bad rows."""
        join(self._pieces, self._path, self._form, note)
        if not self._pieces:
            self._path.unlink(missing_ok=True)

    def leave(self) -> None:
        """Remove what is not committed, and let others write the file."""
        if self._writer is not None:
            self._writer.discard()
        self._lock.release()

    def close(self, *, keep: bool) -> None:
        try:
            if keep:
                self.commit()
                self.install()
        finally:
            self.leave()


def _is_quarantine(path: Path) -> bool:
    import pyarrow.types as types

    try:
        schema = providers.open(path).schema
    except ProviderError:
        return False
    return any(
        field.name.rstrip("_") == "bad" and tuple(part.name for part in field.type) == REASON_FIELDS
        for field in schema
        if types.is_struct(field.type)
    )
