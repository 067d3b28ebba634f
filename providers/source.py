"""Source: the interface of each kind of source of rows; Block: a part of a source that is read at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeGuard, runtime_checkable

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.files.place import Range
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


class Source(Protocol):
    """The interface of each kind of source. `schema` is the schema it was opened with, or a part of it."""

    @property
    def num_rows(self) -> int | None:
        """Number of rows in all blocks; None if it is not known before reading."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are read; empty for sources in memory and streams."""
        ...

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        """Return all blocks, in order."""
        ...

    def read(self, block: Block, schema: pa.Schema, bad_rows: list[BadRow] | None) -> Table:
        """Return the block's rows with the columns and fields of `schema`.

        A row that can't be read is an error if `bad_rows` is None; otherwise it is null, and added to `bad_rows`.
        """
        ...


@runtime_checkable
class SlicedSource(Protocol):
    """A source that can read a few rows of a block, without having the whole block in memory."""

    def read_rows(
        self, block: Block, schema: pa.Schema, rows: range, bad_rows: list[BadRow] | None = None
    ) -> Table:
        """Return consecutive rows of the block with the columns and fields of `schema`; bad rows as in `read`."""
        ...


@runtime_checkable
class BoundedSource(Protocol):
    """A source whose rows may be larger than its files say; it stops reading at a limit of bytes."""

    def read_within(
        self,
        block: Block,
        schema: pa.Schema,
        rows: range | None,
        max_bytes: int,
        bad_rows: list[BadRow] | None = None,
    ) -> Table:
        """Return all rows of the block, or some; raise ProviderError if they exceed `max_bytes` in memory.

        Rows whose size is known before reading are read whatever it is.
        """
        ...


@runtime_checkable
class FetchedSource(Protocol):
    """A source that can tell which bytes of a block will be read, so that a store's are fetched ahead."""

    def ranges(self, block: Block, schema: pa.Schema) -> Collection[Range]:
        """Return the ranges of files that `read` of all rows of a block reads; empty if they are not known."""
        ...


@runtime_checkable
class CountedSource(Protocol):
    """A source that can tell the rows of a block whose number is not relied on, because it may be damaged."""

    def rows_of(self, block: Block) -> int | None:
        """Return the number of rows of a block; None if it is not known before reading."""
        ...


@runtime_checkable
class JoinedSource(CountedSource, Protocol):
    """A source that can read several small blocks of a file faster together than one by one."""

    def read_joined(self, blocks: Sequence[Block], schema: pa.Schema, max_bytes: int) -> Table | None:
        """Return the rows of these blocks of one file, in order; None if they must be read one by one.

        Raise ProviderError if one of them is damaged, or has a row that can't be read.
        """
        ...


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


def reads_within(source: object) -> TypeGuard[BoundedSource]:
    """Return whether a source is a BoundedSource. isinstance with a protocol is too slow to call for each block."""
    return hasattr(source, "read_within")


@runtime_checkable
class DividedSource(Protocol):
    """A source of many files that has data for each, and can be reduced to some of them."""

    def of_files(self, paths: Collection[str]) -> Source:
        """Return the source with these files only; it reads their blocks as before."""
        ...


def of_files(source: Source, paths: Collection[str]) -> Source:
    """Return the source with these files only if it can be divided, else all of it."""
    if not isinstance(source, DividedSource):
        return source
    found: Any = source.of_files(paths)
    if "store" in getattr(found, "__dataclass_fields__", ()):
        found = replace(found, store=found.store.of(paths))
    divided: Source = found
    return divided


@runtime_checkable
class VersionedSource(Protocol):
    """A source that can tell whether a later one holds the same rows."""

    def content(self, schema: pa.Schema) -> Any:
        """Return JSON-compatible values that are equal if the rows are."""
        ...
