"""Provider: the schema and the blocks of a source of rows; Source: what each kind of source implements."""

import os
from collections import abc
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from seqflow.printable import printable_line
from seqflow.providers.dictionaries import SharedDictionaries, has_dictionaries
from seqflow.providers.paths import Search
from seqflow.record import BadRow, Fill, Record, Valid, from_arrow
from seqflow.record.buffers import chunks_of
from seqflow.record.record import Tensor
from seqflow.record.selection import Table, select_schema
from seqflow.sequence import Sequence


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


@runtime_checkable
class VersionedSource(Protocol):
    """A source that knows by what a later one can be told to hold the same rows."""

    def content(self, schema: pa.Schema) -> Any:
        """JSON-compatible values that are equal where the rows are."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Provider:
    """A source of records: its Arrow `schema`, its blocks in order, and `read(block, columns)`.

    `provider["tokens"]` reads a whole column; a column of lists is a Sequence.
    Threads may share a provider, because it keeps no state between reads. A stream can be read only once.
    """

    kind: str
    origin: str
    schema: pa.Schema
    source: Source
    dictionaries: SharedDictionaries = field(default_factory=SharedDictionaries)
    left_out: str = ""
    """How many files of the source are of other kinds, and are not read."""
    inferred: str = ""
    """Which lines of which file the schema is inferred from; empty where it is declared, or known from the source."""
    search: Search | None = None
    """Where its files were looked for; None for what is no path."""
    fill: Fill = None
    """What nulls become where tensors are made of the rows."""
    valid: Valid = False
    """Which columns have masks of what is not null, where tensors are made of the rows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.schema.names)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are read; empty for sources in memory and streams."""
        return self.source.paths

    def finds(self, path: str | os.PathLike[str]) -> bool:
        """Whether a file of this path would belong to the source when it is opened again, by its folder or glob."""
        return self.search is not None and self.search.finds(path)

    @property
    def num_rows(self) -> int | None:
        """The number of rows in all blocks; None where it is not known before reading."""
        return self.source.num_rows

    def blocks(self) -> Iterator[Block]:
        """All blocks, in order."""
        return self.source.blocks(self.schema)

    @property
    def is_stream(self) -> bool:
        """Whether nobody knows its blocks before they come."""
        return self.read_once or getattr(self.source, "is_stream", False)

    @property
    def read_once(self) -> bool:
        """Whether this is a stream whose blocks come once; a stream that can be had again has them in each pass."""
        return getattr(self.source, "read_once", False)

    @property
    def slices_blocks(self) -> bool:
        """Whether a few rows of a block can be read without all the others."""
        return isinstance(self.source, SlicedSource)

    def read(
        self,
        block: Block,
        columns: abc.Sequence[str] | None = None,
        *,
        bad_rows: list[BadRow] | None = None,
        rows: range | None = None,
        max_bytes: int | None = None,
    ) -> Table:
        """One block as a record batch or table, with all columns or some, or fields of them (`docs.title`).

        `rows` are consecutive rows of it, for sources that can slice their blocks. Rows that turn out to take more
        than `max_bytes` in memory, though nothing said so before, are an error.

        Raises UnknownColumnError, and ProviderError for a file that is damaged. Where `bad_rows` is a list, a
        row that can't be read (a file that is not text) becomes null and is added to it instead.

        All blocks of a dictionary column share one dictionary. To find its values, the first read of such a column
        goes through it once; the dictionary of a stream grows as it is read.
        """
        schema = self.schema if columns is None else select_schema(self.schema, columns)
        return self._read(block, schema, bad_rows, rows, max_bytes)

    def __getitem__(self, column: str) -> Sequence | Tensor | Record:
        """The whole column, as `from_arrow` gives it: lists and texts are a Sequence, numbers an array."""
        if not isinstance(column, str):
            raise TypeError(f"a provider is indexed by a column's name, not by {type(column).__name__}")
        schema = select_schema(self.schema, [column])
        name = schema.names[0]
        chunks: list[pa.Array] = []
        for block in self.source.blocks(schema):
            chunks += chunks_of(self._read(block, schema, None).column(name))
        read: Sequence | Tensor | Record = from_arrow(pa.chunked_array(chunks, schema.field(name).type))
        return read

    def _read(
        self,
        block: Block,
        schema: pa.Schema,
        bad_rows: list[BadRow] | None,
        rows: range | None = None,
        max_bytes: int | None = None,
    ) -> Table:
        if max_bytes is not None and isinstance(self.source, BoundedSource):
            table = self.source.read_within(block, schema, rows, max_bytes)
        elif rows is None:
            table = self.source.read(block, schema, bad_rows)
        else:
            assert isinstance(self.source, SlicedSource)
            table = self.source.read_rows(block, schema, rows)
        coded = [column.name for column in schema if has_dictionaries(column.type)]
        if not coded:
            return table
        if self.source.num_rows is None:
            self.dictionaries.grow(table)
        else:
            self.dictionaries.find(coded, self._read_everywhere)
        return self.dictionaries.apply(table)

    def _read_everywhere(self, columns: list[str]) -> Iterator[Table]:
        schema = pa.schema([self.schema.field(name) for name in columns])
        return (self.source.read(block, schema, None) for block in self.source.blocks(schema))

    def __contains__(self, column: object) -> bool:
        return column in self.schema.names

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        if self.num_rows is None:
            raise TypeError(f"the number of rows of {self.origin} is not known before it is read")
        return self.num_rows

    def __repr__(self) -> str:
        rows = "" if self.num_rows is None else f", {self.num_rows} row{'s' * (self.num_rows != 1)}"
        lines = [
            f"Provider of {self.kind}, {self.origin}{rows}",
            *(f"  {message}" for message in (self.left_out, self.inferred) if message),
            *(f"  {field.name}: {field.type}" for field in self.schema),
        ]
        return "\n".join(map(printable_line, lines))


def origin_of(paths: abc.Sequence[str]) -> str:
    """A short name for one file or many."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
