"""Re-readable streams: a frame, a query or a function makes a new one for each pass."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from seqflow.errors import ProviderError, ProviderOptionError
from seqflow.providers.dictionaries import SharedDictionaries, has_dictionaries
from seqflow.providers.other_packages import foreign_errors
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Wanted
from seqflow.record import convert
from seqflow.record.decoded_sizes import decoded_nbytes, row_bytes
from seqflow.record.record import Tensor
from seqflow.record.selection import ALL, Picked, Selection, Table, selection
from seqflow.record.validation import validated

BLOCK_BYTES = 8 << 20


class StreamMaker(Protocol):
    """Protocol: make streams of the same rows."""

    def schema(self) -> pa.Schema:
        """Return the schema of the streams, without reading one if possible."""
        ...

    def stream(self, columns: Sequence[str]) -> Any:
        """Return a new reader of record batches with at least these columns; it has `close` if it must be closed."""
        ...


@dataclass(slots=True)
class Held:
    """Rows of a block, until they are read."""

    table: pa.Table | None
    columns: pa.Schema
    """Columns of the pass that the block belongs to: they decide where it ends."""


@dataclass(frozen=True, slots=True)
class StreamBlock(Block):
    """Block of a stream, with its rows."""

    held: Held = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ReplayableSource(Source):
    """Streams of the same rows, one for each pass. Where a block ends depends only on its rows.

    Streams may cut their rows into different batches, so these do not decide where blocks end. The order of rows
    cannot be verified in full; the first block of each pass must equal that of the first pass.
    """

    streams: StreamMaker
    selection: Selection
    origin: str
    batch_bytes: int
    first: dict[tuple[str, ...], str] = field(default_factory=dict, compare=False)
    """Digest of the first block, by the columns that were read."""
    is_stream: ClassVar[bool] = True
    paths: ClassVar[tuple[str, ...]] = ()
    slicing = "any"

    def content(self, schema: pa.Schema) -> str:
        """Return the digest of the first block, which states compare."""
        if tuple(schema.names) not in self.first:
            tables = self._tables(schema)
            self._check_first(schema, next(tables, None))
            tables.close()
        return self.first[tuple(schema.names)]

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        tables = self._tables(schema)
        table = next(tables, None)
        self._check_first(schema, table)
        index = 0
        while table is not None:
            yield StreamBlock(
                self.origin, index, table.num_rows, decoded_nbytes(table), held=Held(table, schema)
            )
            index, table = index + 1, next(tables, None)

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema, rows = wanted.block, wanted.schema, wanted.rows
        assert isinstance(block, StreamBlock)
        held = block.held
        table = held.table
        if table is None:
            table = self._again(block)
        # released with its last rows, so that a window does not hold the rows of its blocks twice
        if rows is None or rows.stop >= table.num_rows:
            held.table = None
        found = table if rows is None else table.slice(rows.start, len(rows))
        yield Selection(table.schema, table.schema, schema).apply(found)

    def _again(self, block: StreamBlock) -> pa.Table:
        """Return the rows of a block that was read before, from a new stream."""
        tables = self._tables(block.held.columns)
        try:
            for index, table in enumerate(tables):
                if index == block.index and table.num_rows == block.num_rows:
                    return table
        finally:
            tables.close()
        raise ProviderError(f"{self.origin}: a new stream has other rows than the one before{_ORDER}")

    def _check_first(self, schema: pa.Schema, table: pa.Table | None) -> None:
        found = "no rows" if table is None else digest_of_rows(table)
        before = self.first.setdefault(tuple(schema.names), found)
        if found != before:
            what = "no rows" if table is None else "other rows, or in another order,"
            raise ProviderError(f"{self.origin}: a new stream has {what} than the first one{_ORDER}")

    def _tables(self, schema: pa.Schema) -> Any:
        """Yield the rows of a new stream in tables of about `batch_bytes`. Closing it closes the stream."""
        chosen = self.selection.to(schema)
        reader = self._open(chosen.of_source.names)
        dictionaries = SharedDictionaries()
        coded = any(has_dictionaries(field.type) for field in schema)
        try:
            batches = (chosen.apply(one, chosen.present) for one in self._batches(reader, chosen))
            for table in cut(batches, self.batch_bytes):
                # codes are numbered in the order of the stream, whichever block is read first
                if coded:
                    dictionaries.grow(table)
                    table = dictionaries.apply(table)
                yield table
        finally:
            if hasattr(reader, "close"):
                reader.close()

    def _open(self, names: Sequence[str]) -> Any:
        with foreign_errors(f"{self.origin} gives no stream"):
            return self.streams.stream(names)

    def _batches(self, reader: Any, chosen: Selection) -> Iterator[pa.RecordBatch]:
        index = 0
        while True:
            place = f"{self.origin}, batch {index}"
            try:
                with foreign_errors(f"{place} can't be read"):
                    batch = next(reader)
            except StopIteration:
                return
            # if all columns are there, they are chosen by position: two renamed ones may share a name
            is_whole = validated(batch, place).schema.equals(self.selection.source)
            yield batch.select(chosen.present) if is_whole else with_columns(batch, chosen.of_source, place)
            index += 1


_ORDER = (
    "\na second epoch and resume need the same rows in the same order: sort the query (ORDER BY), and make a new "
    "stream each time; or collect it into a table first"
)


def with_columns(batch: pa.RecordBatch, source: pa.Schema, place: str) -> pa.RecordBatch:
    """Return the columns of a batch by name, in the order of `source`; raise ProviderError if a type differs."""
    for expected in source:
        at = batch.schema.get_all_field_indices(expected.name)
        found = batch.schema.field(at[0]).type if len(at) == 1 else None
        if found != expected.type:
            what = f"is {found}" if len(at) == 1 else "is there twice" if at else "is not there"
            raise ProviderError(f"{place}: column {expected.name!r} {what}, expected {expected.type}")
    return batch.select(source.names)


def cut(batches: Iterable[pa.RecordBatch], nbytes: int) -> Iterator[pa.Table]:
    """Yield the rows in tables of at most `nbytes`, or of one row: as many as fit, however the batches are cut."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        ends = np.append(0, np.cumsum(_row_bytes(batch)))
        start = 0
        while start < batch.num_rows:
            stop = int(np.searchsorted(ends, ends[start] + nbytes - size, side="right")) - 1
            if stop <= start and not held:  # a row above nbytes is a table by itself
                stop = start + 1
            if stop > start:
                held.append(batch.slice(start, stop - start))
                size += int(ends[stop] - ends[start])
                start = stop
            if start < batch.num_rows:
                yield pa.Table.from_batches(held)
                held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _row_bytes(batch: pa.RecordBatch) -> Tensor:
    """Return int64[rows]: bytes of each row, from its values; a column of a type without tensors counts 0."""
    total = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        try:
            total += row_bytes(column, with_dictionaries=False)
        except ValueError:
            continue
    return total


def digest_of_rows(table: pa.Table) -> str:
    """Return 32 hexadecimal digits for the values of all rows, however they are cut into chunks."""
    digest = hashlib.blake2b(str(table.num_rows).encode(), digest_size=16)
    for name in table.schema.names:
        try:
            record, _ = convert(table.select([name]), valid=True)
        except ProviderError:  # a type without tensors
            continue
        for tensor, values in record.tensors.items():
            digest.update(f"{tensor} {values.dtype} {values.shape}".encode())
            digest.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        for tensor, values in record.dictionaries.items():
            digest.update(f"{tensor} {values.to_pylist()!r}".encode())
    return digest.hexdigest()


def open_rereadable(
    streams: StreamMaker, origin: str, picked: Picked = ALL, *, batch_bytes: int | None = None
) -> Provider:
    """Return a provider of re-readable streams, in blocks of about `batch_bytes` (8 MiB)."""
    with foreign_errors(f"{origin} can't be opened"):
        schema = streams.schema()
    chosen = selection(schema, *picked)
    source = ReplayableSource(streams, chosen, origin, batch_bytes or BLOCK_BYTES)
    return Provider("stream", origin, chosen.schema, source)


@dataclass(frozen=True, slots=True)
class Scans:
    """Scans of a `pyarrow.dataset.Dataset` with a filter."""

    dataset: Any

    def schema(self) -> pa.Schema:
        return self.dataset.schema

    def stream(self, columns: Sequence[str]) -> Any:
        return self.dataset.scanner(columns=list(columns), use_threads=False).to_reader()


@dataclass(frozen=True, slots=True)
class LazyFrames:
    """Batches of a `polars.LazyFrame`, which Polars computes again in each pass."""

    frame: Any

    def schema(self) -> pa.Schema:
        return pa.RecordBatchReader.from_stream(self.frame.head(0).collect()).schema

    def stream(self, columns: Sequence[str]) -> Any:
        frame = self.frame.select(list(columns))
        if not hasattr(frame, "collect_batches"):
            raise ProviderOptionError(
                "this version of Polars gives no batches of a LazyFrame\n"
                "collect it, frame.collect(), or sink it to Parquet"
            )
        return pa.RecordBatchReader.from_stream(frame.collect_batches(maintain_order=True))


@dataclass(frozen=True, slots=True)
class Relations:
    """Results of a DuckDB relation; each stream runs its query again. Its connection serves one stream at a time."""

    relation: Any

    def schema(self) -> pa.Schema:
        return pa.RecordBatchReader.from_stream(self.relation.limit(0)).schema

    def stream(self, columns: Sequence[str]) -> Any:
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        return pa.RecordBatchReader.from_stream(self.relation.project(names))


def open_lazy_frame(frame: Any, picked: Picked, **options: Any) -> Provider:
    """Return a provider of a `polars.LazyFrame`, which Polars computes in batches, again in each pass."""
    return open_rereadable(LazyFrames(frame), "a LazyFrame", picked, **options)


def open_relation(relation: Any, picked: Picked, **options: Any) -> Provider:
    """Return a provider of a DuckDB relation, whose query runs in each pass; it is not collected."""
    return open_rereadable(Relations(relation), "a DuckDB relation", picked, **options)
