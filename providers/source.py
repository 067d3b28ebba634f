"""Source: the base of each kind of source of rows; Block: a part of a source that is read at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import pyarrow as pa

from seqflow.errors import DamagedFileError, ProviderError
from seqflow.files.interface import LOCAL, Files, Range
from seqflow.providers.filter.value_ranges import Path, ValueRange
from seqflow.providers.folders import Folders
from seqflow.record import BadRow
from seqflow.record.selection import Table, Unfit


@dataclass(frozen=True, slots=True)
class Block:
    """Part of a source that is read at once: a row group, a record batch or a group of text files.

    `origin` names the file, `index` is the block's number in it, `nbytes` estimates its size in memory.
    """

    origin: str
    index: int
    num_rows: int | None
    nbytes: int | None
    of: Block | None = field(default=None, kw_only=True, repr=False)
    """The block of the source if these are the rows of it that a filter keeps, else None."""
    is_whole: bool = field(default=False, kw_only=True, repr=False)
    """Whether the ranges of values tell that a filter keeps all rows."""

    @property
    def of_source(self) -> Block:
        """The block with all rows of the source."""
        return self.of or self

    @property
    def filtered(self) -> int | None:
        """Number of rows that a filter leaves out; None if it is not known."""
        rows, kept = self.of_source.num_rows, self.num_rows
        return None if rows is None or kept is None else rows - kept


class Steps(NamedTuple):
    """How to read a block some rows at a time."""

    rows: int
    coded: tuple[str, ...] = ()
    """Columns that are read as dictionary codes, so that their size can be computed before they become texts."""


class Wanted(NamedTuple):
    """Request to read whole blocks, or rows of one."""

    blocks: Sequence[Block]
    """One, or several of a file for a source that `joins` them."""
    schema: pa.Schema
    bad_rows: list[BadRow] | None = None
    rows: range | None = None
    """Rows of the block, for "any" sources."""
    steps: Steps | None = None
    """Number of rows at a time, for "forward" sources."""

    @property
    def block(self) -> Block:
        return self.blocks[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The base of each kind of source: files of a format, or rows of this process.

    A kind has `num_rows`, `paths`, `blocks` and `stream`; what it says besides differs from the defaults here.
    """

    store: Files = LOCAL
    """Where its files lie."""
    folders: Folders | None = None
    """Further columns, from the names of the folders of its files."""
    slicing: ClassVar[Literal["none", "forward", "any"]] = "none"
    """Whether some rows of a block can be read: those that follow the last ones, or any."""
    joins: ClassVar[bool] = False
    """Whether `stream` takes several blocks of a file."""
    read_once: ClassVar[bool] = False
    """Whether its blocks can be read in one pass only."""
    is_stream: ClassVar[bool] = False
    """Whether its blocks are not known before they are read."""
    file_per_row: ClassVar[bool] = False
    """Whether each row is a file, which `paths_of` names."""

    if TYPE_CHECKING:  # a field of some kinds: an inherited property would be its default

        @property
        def paths(self) -> tuple[str, ...]:
            """The files that are read; empty for sources in memory and streams."""

    @property
    def num_rows(self) -> int | None:
        """Number of rows in all blocks; None if it is not known before reading."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what was found while it was read."""
        return ()

    def blocks(self, schema: pa.Schema) -> Iterable[Block]:
        """Return all blocks, in order."""
        raise NotImplementedError

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        """Yield rows with the columns that `finish` makes those of the schema from.

        A row that can't be read is an error if `bad_rows` is None; otherwise it is null, and added to `bad_rows`.
        """
        raise NotImplementedError

    def finish(self, block: Block, schema: pa.Schema, table: Table, bad_rows: list[BadRow] | None) -> Table:
        """Return rows of `stream` with the columns and fields of `schema`."""
        return table

    def steps(self, block: Block, schema: pa.Schema, max_bytes: int) -> Steps | None:
        """Return how to read rows that may take more memory than the source tells; None if they do not."""
        return None

    def rows_of(self, block: Block) -> int | None:
        """Return the number of rows of a block, also if it may be damaged; None if it is not known."""
        return block.num_rows

    def place(self, block: Block) -> str:
        """Return the name of a block in messages."""
        return f"{block.origin}, block {block.index}"

    def wrong_count(self, block: Block, rows: int) -> ProviderError:
        """Return the error for a block that has another number of rows than expected."""
        return DamagedFileError(f"{self.place(block)} has {rows} rows, expected {self.rows_of(block)}")

    def ranges(self, block: Block, schema: pa.Schema) -> Collection[Range]:
        """Return the ranges of files that reading a block reads; empty if they are not known."""
        return ()

    def ranged_blocks(
        self, schema: pa.Schema, paths: Sequence[Path]
    ) -> Iterator[tuple[Block, Sequence[ValueRange]]] | None:
        """Return all blocks, each with the ranges of some columns or fields of structs; None if none are known."""
        return None

    def paths_of(self, block: Block) -> Sequence[str]:
        """Return the file of each row of a block, for sources with a file for each."""
        raise NotImplementedError

    def of_files(self, paths: Collection[str]) -> Self:
        """Return the source with these files only; itself if it cannot be divided."""
        return self

    def reduced(self, paths: Collection[str], /, **fields: Any) -> Self:
        """Return the source with other `fields`, which are those of some files only."""
        folders = None if self.folders is None else self.folders.of(paths)
        return replace(self, store=self.store.of(paths), folders=folders, **fields)

    def content(self, schema: pa.Schema) -> Any:
        """Return JSON-compatible values that are equal if the rows are; None if the source has none."""
        return None


class UnfitRow(BadRow):
    """A row with a value that the column's type, which is that of several files, does not hold."""


def unfit_rows(block: Block, bad_rows: list[BadRow] | None) -> Unfit:
    """Return the function that adds a row with an unfit value to `bad_rows`, or raises an error if that is None."""

    def add(row: int, column: pa.Field, reason: str) -> None:
        found = UnfitRow(row, column.name, reason, f"not a value of {column.type}")
        if bad_rows is None:
            raise bad_row_error(block, found)
        bad_rows.append(found)

    return add


def bad_row_error(block: Block, bad: BadRow) -> ProviderError:
    """Return the error for a row that cannot be read, if such rows are errors."""
    return ProviderError(
        f"{block.origin}, block {block.index}, row {bad.row}, column {bad.column!r}: {bad.reason}\n"
        "schema= gives columns other types, bad_rows='skip' leaves out such rows"
    )
