"""Source: what each kind of source of rows implements; Block: a part of one that is read at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

import pyarrow as pa

from seqflow.record import BadRow
from seqflow.record.selection import Table


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a source that is read at once: a row group, a record batch or a group of text files.

    `origin` names the file, `index` is the number of the block in it. `nbytes` estimates its size in memory.
    """

    origin: str
    index: int
    num_rows: int | None
    nbytes: int | None


class Source(Protocol):
    """The interface of each kind of source. `schema` is always all or part of the schema it was opened with."""

    @property
    def num_rows(self) -> int | None:
        """The number of rows in all blocks; None where it is not known before reading."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are read; empty for sources in memory and streams."""
        ...

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        """All blocks, in order."""
        ...

    def read(self, block: Block, schema: pa.Schema, bad_rows: list[BadRow] | None) -> Table:
        """The block's rows with the columns and fields of `schema`.

        Where `bad_rows` is None, a row that can't be read is an error; else it is null, and added to `bad_rows`.
        """
        ...


@runtime_checkable
class SlicedSource(Protocol):
    """A source that can read a few rows of a block, without having the whole block in memory."""

    def read_rows(self, block: Block, schema: pa.Schema, rows: range) -> Table:
        """Consecutive rows of the block with the columns and fields of `schema`."""
        ...


@runtime_checkable
class BoundedSource(Protocol):
    """A source whose rows may be larger than its files say, and which stops reading at a limit of bytes."""

    def read_within(self, block: Block, schema: pa.Schema, rows: range | None, max_bytes: int) -> Table:
        """All rows of the block, or some; ProviderError where they take more than `max_bytes` in memory.

        Rows whose size is known before are read whatever it is.
        """
        ...


def reads_within(source: object) -> TypeGuard[BoundedSource]:
    """Whether a source is a BoundedSource: asked for each block, of which isinstance would take a good part."""
    return hasattr(source, "read_within")


@runtime_checkable
class DividedSource(Protocol):
    """A source of many files that knows something of each, and can be had with some of them alone."""

    def of_files(self, paths: Collection[str]) -> Source:
        """The same source with these files only: it reads their blocks as before."""
        ...


def of_files(source: Source, paths: Collection[str]) -> Source:
    """The source with these files only, where it can be divided; else all of it."""
    return source.of_files(paths) if isinstance(source, DividedSource) else source


@runtime_checkable
class VersionedSource(Protocol):
    """A source that knows by what a later one can be told to hold the same rows."""

    def content(self, schema: pa.Schema) -> Any:
        """JSON-compatible values that are equal where the rows are."""
        ...
