"""Provider: the schema and the blocks of a source of rows, with the selection of what is read."""

import os
from collections import abc
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from seqflow.errors import DamagedFileError, ProviderError
from seqflow.files.interface import Files, Range
from seqflow.printable import printable_line
from seqflow.providers.bad_files import RAISE, BadFile, BadFiles
from seqflow.providers.block_columns import BlockColumns
from seqflow.providers.block_slices import SliceReaders
from seqflow.providers.dictionaries import SharedDictionaries
from seqflow.providers.fetching import FetchAhead
from seqflow.providers.filter.dropped_rows import DroppedRows
from seqflow.providers.filter.row_filter import ALL, RecentNumbers, RowFilter
from seqflow.providers.paths import Search
from seqflow.providers.reader import KeptRows, Reader
from seqflow.providers.source import Block, Source
from seqflow.record import BadRow, Fill, Record, Valid, column_from_arrow
from seqflow.record.buffers import chunks_of
from seqflow.record.record import Tensor
from seqflow.record.selection import Table, select_schema
from seqflow.sequence import Sequence

__all__ = [
    "Block",
    "Provider",
    "Source",
    "origin_of",
]


class OpenedBy(NamedTuple):
    """Kind whose function made a source, and the options that it was given, as JSON."""

    kind: str
    options: str


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
    """Message that counts the files of other kinds, which are not read."""
    inferred: str = ""
    """Message about the lines that the schema is inferred from; empty if it is declared or known."""
    search: Search | None = None
    """Places where its files were searched; None if the source is not a path."""
    fill: Fill = None
    """Values that replace nulls when the rows become tensors."""
    valid: Valid = False
    """Columns that get masks of their values that are not null when the rows become tensors."""
    where: RowFilter | None = None
    """Filter of the rows; None keeps all."""
    opened_by: OpenedBy | None = None
    """Kind of the user's own that opened it."""
    bad_files: BadFiles = RAISE
    """Policy for damaged files. If it omits them, numbers of rows are not known before blocks are read."""
    damaged: tuple[BadFile, ...] = ()
    """Damaged files that were omitted when it was opened."""
    notes: tuple[str, ...] = ()
    """Sentences about columns that differ between its files."""
    _schemas: dict[tuple[str, ...], pa.Schema] = field(default_factory=dict, compare=False)
    """Schemas by the names of the columns that were read: selections are cached for the same object."""
    _slices: SliceReaders = field(default_factory=SliceReaders, compare=False)
    """The blocks that are being read in slices."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.schema.names)

    @property
    def files(self) -> tuple[str, ...]:
        """Files that are read; empty for sources in memory and streams."""
        return self.source.paths

    @property
    def store(self) -> Files:
        """Where its files lie: this machine, or object stores."""
        return self.source.store

    def finds(self, path: str | os.PathLike[str]) -> bool:
        """Return whether a file at this path would belong to the source if its folder or glob were opened again."""
        return self.search is not None and self.search.finds(path)

    @property
    def num_rows(self) -> int | None:
        """Number of rows in all blocks; None if it is not known before reading.

        With a filter, the first call counts the rows by reading the filter's columns.
        """
        if not self.counts_rows:
            return None
        if self.where is None:
            return self.source.num_rows
        counts = self.where.counts
        if ALL not in counts:
            counts[ALL] = sum(block.num_rows or 0 for block in self.blocks(counted=True))
        return counts[ALL]

    @property
    def num_blocks(self) -> int | None:
        """Number of blocks; None for a stream, whose blocks are not known before they are read."""
        return None if self.is_stream else len(self.block_columns())

    @property
    def counts_rows(self) -> bool:
        """Return whether the rows of a block can be known or counted before all of its columns are read."""
        if self.source.num_rows is None or self.bad_files.leaves_out:
            return False
        return self.where is None or self.source_reads_columns

    @property
    def source_reads_columns(self) -> bool:
        """Return whether reading few columns costs less than reading all; if each row is a file, it does not."""
        return not self.source.file_per_row

    def blocks(self, *, counted: bool = False, max_bytes: int | None = None) -> Iterator[Block]:
        """Return all blocks, in order. With a filter their rows are those that it keeps.

        Their number is then known if the smallest and largest values of a block tell it, or if rows are `counted`,
        by reading the filter's columns in about `max_bytes` of memory.
        """
        blocks = self._blocks(self.schema)
        return (self.counted(block, max_bytes) for block in blocks) if counted else blocks

    def block_columns(self, *, counted: bool = False, max_bytes: int | None = None) -> BlockColumns:
        """Return the blocks of `blocks` in columns, for sources with millions of them."""
        if self.where is None and isinstance(found := self._reader.blocks(self.schema), BlockColumns):
            return found.uncounted() if self.bad_files.leaves_out else found
        return BlockColumns.of(self.blocks(counted=counted, max_bytes=max_bytes))

    def counted(self, block: Block, max_bytes: int | None = None) -> Block:
        """Return the block with its rows counted, if `counts_rows` says that they can be."""
        if block.of is not None and block.num_rows is None and self.counts_rows:
            return self._reader.counted(block, max_bytes)
        return block

    def _blocks(self, schema: pa.Schema) -> Iterator[Block]:
        blocks = iter(self._reader.blocks(schema))
        if not self.bad_files.leaves_out:
            return blocks
        # a damaged block has no rows, so none of its numbers can be relied on
        return (replace(one, num_rows=None) if one.num_rows else one for one in blocks)

    @property
    def _reader(self) -> Reader:
        return Reader(self.source, self.where, self._slices)

    def without(self, dropped: DroppedRows) -> "Provider":
        """Return the provider without some rows, which are counted among all rows, also those that `where` omits."""
        where = self.where or RowFilter.of_all(self.schema)
        return replace(self, where=replace(where, dropped=dropped, counts={}, numbers=RecentNumbers()))

    @property
    def condition(self) -> str:
        """Text of `where`; empty without a condition."""
        return "" if self.where is None else self.where.text

    @property
    def dropped(self) -> abc.Mapping[str, int]:
        """Number of rows that are left out because of their places, by reason."""
        return {} if self.where is None else self.where.dropped.counts

    @property
    def too_short(self) -> abc.Mapping[str, int]:
        """Number of rows that are too short to compare with others, by the reason for which these are left out."""
        return {} if self.where is None else self.where.dropped.too_short

    def unfiltered(self, block: Block) -> tuple["Provider", Block]:
        """Return the provider without its filter, and its block that this block belongs to."""
        return replace(self, where=None), block.of_source

    @property
    def content(self) -> Any | None:
        """JSON-compatible values that are equal if the rows of the source are; None if it has none."""
        return self.source.content(
            self.schema if self.where is None else self.where.with_columns(self.schema)
        )

    @property
    def is_stream(self) -> bool:
        """Return whether its blocks are not known before they are read."""
        return self.source.read_once or self.source.is_stream

    @property
    def read_once(self) -> bool:
        """Return whether this is a stream that can be read only once; a re-readable one has blocks in each pass."""
        return self.source.read_once

    @property
    def slices_blocks(self) -> bool:
        """Return whether some rows of a block can be read without the others."""
        return self.source.slicing != "none" and not self.bad_files.leaves_out

    def read(
        self,
        block: Block,
        columns: abc.Sequence[str] | None = None,
        *,
        bad_rows: list[BadRow] | None = None,
        rows: range | None = None,
        max_bytes: int | None = None,
    ) -> Table:
        """Return a block as a record batch or table, with all columns or some, or fields of them (`docs.title`).

        `rows` are consecutive rows of it, for sources that can slice their blocks. It is an error if rows turn out
        to take more than `max_bytes` in memory and the source did not tell so before.

        Raise UnknownColumnError, or ProviderError for a damaged file. If `bad_rows` is a list, a row that can't be
        read (such as a file that is not text) becomes null and is added to it instead.

        All blocks of a dictionary column share one dictionary. To find its values, the first read of such a column
        goes through it once; the dictionary of a stream grows as it is read.
        """
        return self.read_kept(block, columns, bad_rows=bad_rows, rows=rows, max_bytes=max_bytes).table

    def read_kept(
        self,
        block: Block,
        columns: abc.Sequence[str] | None = None,
        *,
        bad_rows: list[BadRow] | None = None,
        rows: range | None = None,
        max_bytes: int | None = None,
    ) -> KeptRows:
        """Read as `read` does; add the positions of the rows in the block, and the number of rows left out.

        A damaged block has no rows if `bad_files` omits such blocks; then `damage` describes it.
        """
        schema = self._chosen(columns)
        try:
            found = self._reader.read(block, schema, bad_rows, rows, max_bytes)
            table = self._with_shared_dictionaries(found.table, schema)
            return found if table is found.table else found._replace(table=table)
        except DamagedFileError as error:
            if not self.bad_files.leaves_out:
                raise
            damage = BadFile.of(block.origin, block.index, error, self.source.rows_of(block.of_source))
            return KeptRows(schema.empty_table(), range(0), 0, damage)

    def read_together(
        self, blocks: abc.Sequence[Block], columns: abc.Sequence[str] | None, max_bytes: int
    ) -> tuple[Table, list[int]] | None:
        """Return the rows of several small blocks of one file, and how many each has; None if `read` must read them.

        Raise ProviderError or ArrowException if they cannot be read together: `read` tells which is the cause.
        """
        schema = self._chosen(columns)
        found = self._reader.together(blocks, schema, max_bytes)
        return None if found is None else (self._with_shared_dictionaries(found[0], schema), found[1])

    def ranges(self, block: Block, columns: abc.Sequence[str] | None = None) -> abc.Collection[Range]:
        """Return what reading a block of a store will fetch, as far as that is known before."""
        schema = self._chosen(columns)
        if self.where is not None:
            schema, block = self.where.with_columns(schema), self.unfiltered(block)[1]
        return self._reader.ranges(block, schema)

    def ahead(self, blocks: abc.Iterable[Block], columns: abc.Sequence[str] | None = None) -> Iterator[Block]:
        """Yield blocks that are read one by one; a store fetches the next ones meanwhile."""
        return FetchAhead(self.store, blocks, lambda block: (self.ranges(block, columns),)).each()

    def of_files(self, paths: abc.Collection[str]) -> "Provider":
        """Return the provider with these files only if its source can be divided, else with all of them."""
        return replace(self, source=self.source.of_files(paths))

    def find_dictionaries(self, columns: abc.Sequence[str] | None) -> None:
        """Find all values of the dictionary columns among these, so that codes mean the same in each process.

        Raise ProviderError if they cannot be known before reading.
        """
        coded = self.dictionaries.columns_in(self._chosen(columns))
        if coded and self.source.num_rows is None:
            raise ProviderError(
                f"column {coded[0]!r} of {self.origin} is a dictionary that grows as the source is read: several "
                "processes would number its values differently\n  read it as text, or run in one process"
            )
        if coded:
            self.dictionaries.find(coded, self._read_everywhere)

    def __getitem__(self, column: str) -> Sequence | Tensor | Record:
        """Return the whole column as `from_arrow` does: lists and texts as a Sequence, numbers as an array.

        Nulls are replaced by `fill`. Masks (`valid`) are made only by loaders and `from_arrow`.
        """
        if not isinstance(column, str):
            raise TypeError(f"a provider is indexed by a column's name, not by {type(column).__name__}")
        schema = select_schema(self.schema, [column])
        name = schema.names[0]
        chunks: list[pa.Array] = []
        for block in self.ahead(self._blocks(schema), [column]):
            chunks += chunks_of(self.read(block, [column]).column(name))
        return column_from_arrow(
            name, pa.chunked_array(chunks, (chunks[0] if chunks else schema.field(name)).type), self.fill
        )

    def _chosen(self, columns: abc.Sequence[str] | None) -> pa.Schema:
        """Return the schema of some columns and fields, the same object each time."""
        if columns is None:
            return self.schema
        if isinstance(columns, list | tuple) and all(isinstance(name, str) for name in columns):
            names = tuple(columns)
            if names not in self._schemas:
                self._schemas[names] = select_schema(self.schema, names)
            return self._schemas[names]
        return select_schema(self.schema, columns)

    def _with_shared_dictionaries(self, table: Table, schema: pa.Schema) -> Table:
        coded = self.dictionaries.columns_in(schema)
        if not coded:
            return table
        # a source whose rows are not known is read forwards only, so its dictionary grows with what is read
        if self.source.num_rows is None:
            self.dictionaries.grow(table)
        else:
            self.dictionaries.find(coded, self._read_everywhere)
        return self.dictionaries.apply(table)

    def _read_everywhere(self, columns: list[str]) -> Iterator[Table]:
        schema = pa.schema([self.schema.field(name) for name in columns])
        everything = replace(self, where=None)
        for block in everything.ahead(everything._blocks(schema), columns):
            try:
                # rows with a value that does not fit are reported when they are read
                yield everything._reader.read(block, schema, []).table
            except DamagedFileError:
                if not self.bad_files.leaves_out:
                    raise

    def __contains__(self, column: object) -> bool:
        return column in self.schema.names

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        rows = self.num_rows
        if rows is None:
            raise TypeError(f"the number of rows of {self.origin} is not known before it is read")
        return rows

    def __repr__(self) -> str:
        known = None if self.bad_files.leaves_out else self.source.num_rows
        rows = "" if known is None else f", {known} row{'s' * (known != 1)}"
        notes = (*self.notes, *self.source.notes)
        lines = [
            f"Provider of {self.kind}, {self.origin}{rows}",
            *([f"  where {self.condition}"] if self.condition else []),
            *(f"  without {count:,} rows: {reason}" for reason, count in self.dropped.items()),
            *(f"  {message}" for message in (self.left_out, self.inferred, *notes) if message),
            *(f"  damaged: {one}" for one in self.damaged),
            *(f"  {field.name}: {field.type}" for field in self.schema),
        ]
        return "\n".join(map(printable_line, lines))


def origin_of(paths: abc.Sequence[str]) -> str:
    """Return a short name for one file or many."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
