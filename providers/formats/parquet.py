"""Parquet files: a block is a row group, whose size is in the footer."""

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import DamagedFileError, ProviderError
from seqflow.files.ahead import SMALL_FILE, Span, split_spans
from seqflow.files.interface import Files, Range
from seqflow.files.uris import is_uri
from seqflow.kernels.arrays import Array
from seqflow.providers.block_columns import BlockColumns
from seqflow.providers.file_set import FileSet
from seqflow.providers.filter.value_ranges import UNKNOWN, Path, ValueRange, range_of_value
from seqflow.providers.formats.idle_readers import IdleReaders
from seqflow.providers.formats.options import Format, file_format
from seqflow.providers.formats.parquet_footers import (
    CHUNKS_GROWTH,
    ColumnChunks,
    FooterCache,
    footer_tail,
    read_footer,
    read_footers,
    tail_of,
)
from seqflow.providers.formats.parquet_ranges import stored_limits, value_range
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Steps, Wanted, unfit_rows
from seqflow.record import BadRow
from seqflow.record.arrow_types import TEXTS, is_any
from seqflow.record.selection import Selection, Table, leaf_types, readable
from seqflow.record.validation import opening, reading

_BUFFER = 1 << 18
"""Bytes of each column that are read at once if a row group is read in slices."""


_WHOLE = 1 << 30
"""Bytes up to which a row group is read at once: pyarrow cannot join nested texts of 2 GiB."""
_COUNTED_ROWS, _FEW_ROWS = 1 << 16, 64
"""Most and fewest rows that are read at once if the footer does not tell how large texts are."""


class TextChunk(NamedTuple):
    """A column chunk of text whose size the footer does not bound."""

    leaf: int
    num_values: int
    uncompressed_bytes: int
    has_prefixes: bool


Uncounted = Mapping[int, Sequence[TextChunk]]
"""Column chunks of text whose size is not known before they are read, by row group."""
_NO_TEXTS: Uncounted = {}
_SMALL_BLOCK = 1 << 20
"""Bytes of row groups that are read through a map that stays open."""
_LARGE_BLOCK = 64 << 20
"""Bytes of row groups for which a file is opened each time: half a millisecond, and without a copy of their bytes."""
_MOST_KNOWN = 1 << 10
"""Schemas and metadata that are known by their bytes; those of further files are read by pyarrow."""
_DESCRIBED_GROUPS = 256
"""Row groups of small files that are described at once; a file with more of them is described alone."""


@dataclass(frozen=True, slots=True, eq=False)
class ParquetFile:
    """One file: the part of its footer that plans need, and the columns to read."""

    rows: Array
    """int64: rows of each row group."""
    num_leaves: int
    selection: Selection

    @property
    def num_rows(self) -> int:
        return int(self.rows.sum())

    def uncounted(self, chunks: ColumnChunks) -> Uncounted:
        """Return the column chunks of text whose size the footer does not bound, by row group."""
        texts = self.selection.texts
        if not texts or chunks.tells_text_bytes[:, texts].all():
            return _NO_TEXTS
        found: dict[int, list[TextChunk]] = {}
        for group, at in np.argwhere(~chunks.tells_text_bytes[:, texts]).tolist():
            leaf = texts[at]
            values, size = chunks.num_values[group, leaf], chunks.uncompressed_bytes[group, leaf]
            text = TextChunk(leaf, int(values), int(size), bool(chunks.has_prefixes[group, leaf]))
            found.setdefault(group, []).append(text)
        return found

    def bytes_of_groups(self, chunks: ColumnChunks, schema: pa.Schema) -> Array:
        """Return int64: about the bytes that the columns of `schema` take in memory, for each row group.

        Counts are added as floats: sums below 2**53 are exact, and larger ones do not overflow.
        """
        leaves, fixed = self.selection.to(schema).leaves, self.selection.value_bytes
        values = chunks.num_values[:, leaves].astype(np.float64)
        texts = np.maximum(chunks.uncompressed_bytes, chunks.text_bytes)[:, leaves] + 4 * values
        sizes = np.where(fixed[leaves] > 0, values * fixed[leaves], texts)
        capped: Array = np.minimum(sizes.sum(axis=1), 2.0**62).astype(np.int64)
        return capped


@dataclass(frozen=True, slots=True)
class ParquetSource(Source):
    """Parquet files, by path. Each read opens its file, so that threads don't share handles."""

    files: dict[str, ParquetFile]
    memory_map: bool
    use_threads: bool
    uncounted: dict[str, Uncounted] = field(default_factory=dict, compare=False)
    """Texts of unknown size by path, for the files whose footers were read so far."""
    footers: FooterCache = field(default_factory=FooterCache, compare=False)
    chunks: FooterCache = field(default_factory=partial(FooterCache, CHUNKS_GROWTH), compare=False)
    """Column chunks, read when a file was opened: they tell the sizes of blocks, and what to fetch from a store."""
    idle: IdleReaders = field(default_factory=IdleReaders, compare=False)
    """Open readers of files with several row groups."""
    maps: IdleReaders = field(default_factory=IdleReaders, compare=False)
    """The same, of files that are mapped, for small row groups."""
    slicing = "forward"
    joins = True

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self.files)

    @property
    def num_rows(self) -> int:
        return sum(file.num_rows for file in self.files.values())

    def of_files(self, paths: Collection[str]) -> Self:
        files = {path: self.files[path] for path in paths if path in self.files}
        uncounted = {path: self.uncounted[path] for path in files if path in self.uncounted}
        return self.reduced(paths, files=files, uncounted=uncounted)

    def blocks(self, schema: pa.Schema) -> BlockColumns:
        return BlockColumns.of_files(
            (path, file.rows, nbytes) for path, file, _, nbytes in self._files(schema)
        )

    def ranged_blocks(
        self, schema: pa.Schema, paths: Sequence[Path]
    ) -> Iterator[tuple[Block, Sequence[ValueRange]]]:
        leaves: list[tuple[int, pa.DataType] | ValueRange] = []
        selection = None
        for path, file, chunks, nbytes in self._files(schema):
            # files of one schema share their selection, so this is computed once for all of them
            if file.selection is not selection:
                selection = file.selection
                leaves = _comparable_leaves(selection, paths)
            names = self._footer(path).schema
            stored = [
                leaf
                if isinstance(leaf, ValueRange)
                else (leaf[0], stored_limits(leaf[1], names.column(leaf[0])))
                for leaf in leaves
            ]
            for group, (rows, size) in enumerate(zip(file.rows.tolist(), nbytes.tolist(), strict=True)):
                ranges = [
                    one
                    if isinstance(one, ValueRange)
                    else value_range(chunks.statistics(group, one[0]), one[1], rows)
                    for one in stored
                ]
                yield Block(path, group, rows, size), ranges

    def _files(self, schema: pa.Schema) -> Iterator[tuple[str, ParquetFile, ColumnChunks, Array]]:
        """Yield all files, each with its column chunks and the bytes of its row groups."""
        for files in _alike(self.files):
            found = [self.chunks_of(path) for path, _ in files]
            # a dozen calls of NumPy take longer than reading a small footer: once for many files
            joined = ColumnChunks(np.concatenate([chunks.chunks for chunks in found]))
            alike, at = files[0][1], 0
            uncounted, nbytes = alike.uncounted(joined), alike.bytes_of_groups(joined, schema)
            for (path, file), chunks in zip(files, found, strict=True):
                groups = range(at, at := at + len(file.rows))
                self.uncounted[path] = (
                    {group - groups.start: uncounted[group] for group in groups if group in uncounted}
                    if uncounted
                    else _NO_TEXTS
                )
                yield path, file, chunks, nbytes[groups.start : groups.stop]

    def chunks_of(self, path: str) -> ColumnChunks:
        """Return the leaf columns of each row group of a file."""
        file = self.files[path]

        def read() -> ColumnChunks:
            footer = read_footer(path, footer_tail(self.store, path))
            return footer.column_chunks(len(file.rows), file.num_leaves)

        found: ColumnChunks = self.chunks.get(path, read)
        return found

    def ranges(self, block: Block, schema: pa.Schema) -> Sequence[Range]:
        return [(block.origin, *one) for one in self._spans(block, schema)]

    def _spans(self, block: Block, schema: pa.Schema) -> Sequence[Span]:
        """Return the bytes of a row group that are read, in a file of a store."""
        entry = self.store.entry(block.origin)
        if entry is None:
            return []
        file = self.files[block.origin]
        if entry.size <= SMALL_FILE and len(file.rows) == 1:  # without the request for its chunks
            return [(0, entry.size)]
        leaves = file.selection.to(schema).leaves if _chooses(file) else slice(None)
        return split_spans(self.chunks_of(block.origin).spans(block.index, leaves, entry.size))

    def rows_of(self, block: Block) -> int:
        """Return the number of rows of a block, from the footer."""
        return int(self.files[block.origin].rows[block.index])

    def place(self, block: Block) -> str:
        return f"{block.origin}, row group {block.index}"

    def wrong_count(self, block: Block, rows: int) -> DamagedFileError:
        return DamagedFileError(
            f"{self.place(block)} has {rows} rows, but its footer says {self.rows_of(block)}"
        )

    def _footer(self, path: str) -> Any:
        """Return the footer of a file; raise ProviderError if it has changed since the file was opened."""
        return self.footers.get(path, lambda: _same_footer(self.store, path, self.files[path]))

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        schema, steps = wanted.schema, wanted.steps
        first = wanted.block
        with reading(f"{self.place(first)} can't be read"):
            if steps is None:
                # each by itself: pyarrow's `read_row_groups` moves rows to others if a damaged page has more
                with self._open(first, schema) as opened:
                    columns = self._columns(first, schema, opened.metadata)
                    for one in wanted.blocks:
                        yield self._read_group(opened, one, columns)
            else:
                with self._open_buffered(first, steps.coded) as opened:
                    columns = self._columns(first, schema, opened.metadata)
                    yield from opened.iter_batches(
                        steps.rows, [first.index], columns, use_threads=self.use_threads
                    )

    def finish(self, block: Block, schema: pa.Schema, table: Table, bad_rows: list[BadRow] | None) -> Table:
        file, unfit = self.files[block.origin], unfit_rows(block, bad_rows)
        selection = file.selection.to(schema)
        if len(selection.leaves) == file.num_leaves or _chooses(file):
            return selection.label(table, unfit)
        return selection.apply(table, unfit=unfit)

    def _read_group(self, opened: Any, block: Block, columns: list[str] | None) -> pa.Table:
        """Read a row group at once, or a large one some rows at a time."""
        options, count = {"columns": columns, "use_threads": self.use_threads}, self.rows_of(block)
        rows = max(1, count // (1 + (block.nbytes or 0) // _WHOLE))
        # halved until it works: where the footer does not bound texts, `rows` may be too many
        while True:
            try:
                if rows >= count:
                    return opened.read_row_group(block.index, **options)
                return pa.Table.from_batches(opened.iter_batches(rows, [block.index], **options))
            except pa.ArrowNotImplementedError:  # nested text of 2 GiB: the footer need not tell its size
                if rows == 1:
                    raise
                rows //= 2

    def steps(self, block: Block, schema: pa.Schema, max_bytes: int) -> Steps | None:
        file = self.files[block.origin]
        if block.origin not in self.uncounted:
            self.uncounted[block.origin] = file.uncounted(self.chunks_of(block.origin))
        leaves, coded, rows = file.selection.to(schema).leaves, [], _COUNTED_ROWS
        for chunk in self.uncounted[block.origin].get(block.index, ()):
            # each value may be the longest that a dictionary of the chunk's bytes could hold
            if chunk.leaf not in leaves or chunk.num_values * chunk.uncompressed_bytes <= max_bytes:
                continue
            if chunk.has_prefixes:
                rows = min(rows, max(_FEW_ROWS, max_bytes // max(1, chunk.uncompressed_bytes)))
            else:
                coded.append(self._footer(block.origin).schema.column(chunk.leaf).path)
        return Steps(rows, tuple(coded)) if coded or rows < _COUNTED_ROWS else None

    def _open(self, block: Block, schema: pa.Schema) -> Any:
        path = block.origin
        if is_uri(path):
            return _reader(self.store.random(path, self._spans(block, schema)), self._footer(path))
        size = block.nbytes or 0
        if len(self.files[path].rows) == 1 or size > _LARGE_BLOCK:
            return self._open_local(path, self.memory_map)
        # a map that stays open keeps what was read through it in memory
        if self.memory_map and size <= _SMALL_BLOCK:
            return self.maps.reader(path, partial(self._open_local, is_mapped=True))
        return self.idle.reader(path, partial(self._open_local, is_mapped=False))

    def _open_local(self, path: str, is_mapped: bool) -> Any:
        """Open a file of this machine, whose footer is read with it unless it is known."""
        metadata = self.footers.find(path)
        # a path would be looked for in all file systems: a fifth of the time of a small file
        reader = _reader(pa.memory_map(path) if is_mapped else pa.OSFile(path), metadata)
        if metadata is None:
            _check_row_groups(path, reader.metadata, self.files[path])
            self.footers.keep(path, reader.metadata)
        return reader

    def _open_buffered(self, block: Block, coded: Sequence[str] = ()) -> Any:
        """Open a file for buffered reading: the pages of a memory map would stay in memory while it is open."""
        from pyarrow.parquet import ParquetFile

        metadata = self._footer(block.origin)
        return ParquetFile(
            self.store.random(block.origin),
            metadata=metadata,
            pre_buffer=False,
            buffer_size=_BUFFER,
            read_dictionary=list(coded),
            page_checksum_verification=True,
        )

    def _columns(self, block: Block, schema: pa.Schema, footer: Any) -> list[str] | None:
        """Return the columns to read, by the footer of the file that is open; None for all."""
        file = self.files[block.origin]
        leaves = file.selection.to(schema).leaves
        if len(leaves) == file.num_leaves or not _chooses(file):
            return None
        return [footer.schema.column(leaf).path for leaf in leaves]


@file_format("parquet")
class Parquet(Format):
    """Options of Parquet files."""

    memory_map: bool = True
    """False reads files, and constants of a job, instead of mapping them; use it for files that may shrink."""
    use_threads: bool = False
    """Decode the columns of a block in several threads."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of Parquet files; reads all footers, and unifies their schemas."""
        footers, chunks, schemas = FooterCache(), FooterCache(CHUNKS_GROWTH), dict[str, pa.Schema]()
        known: dict[bytes, tuple[pa.Schema, int]] = {}
        latest: pa.Schema | None = None

        def read(path: str) -> tuple[Array, int]:
            nonlocal latest
            footer, tail = None if is_uri(path) else next(ahead), None
            if footer is None:
                tail = _tail_of(files.store, path)
                # else left to pyarrow, which says what is wrong; or an error when blocks are listed
                with suppress(ProviderError):
                    footer = read_footer(path, tail)
            if footer and footer.description in known:
                (schema, leaves), rows = known[footer.description], footer.rows
            else:
                metadata, schema, rows = _read_footer(path, tail or _tail_of(files.store, path), latest)
                leaves = metadata.num_columns
                footers.keep(path, metadata)
                if footer and footer.description and len(known) < _MOST_KNOWN:
                    known[footer.description] = schema, leaves
            if footer:
                with suppress(ProviderError):
                    chunks.keep(path, footer.column_chunks(len(rows), leaves))
            # one object for equal schemas: there may be a million files
            latest = schemas[path] = schema
            return rows, leaves

        files.plan(tail_of)
        # in the order in which `each` opens them
        ahead = read_footers([one for one in files.paths if one not in files.damaged and not is_uri(one)])
        found = files.each(read)
        selections = files.selections(schemas)
        opened = {path: ParquetFile(*one, selections[path]) for path, one in found.items()}
        source = ParquetSource(
            opened, self.memory_map, self.use_threads, footers=footers, chunks=chunks, store=files.store
        )
        return files.provider("parquet", source)


def _reader(source: Any, metadata: Any) -> Any:
    from pyarrow.parquet import ParquetFile

    # no pre_buffer: fetching ahead in pyarrow's threads took 2.6 times as long for small files on a disk
    return ParquetFile(source, metadata=metadata, pre_buffer=False, page_checksum_verification=True)


def _same_footer(store: Files, path: str, file: ParquetFile) -> Any:
    """Return the footer of a file that was opened before; raise ProviderError if its row groups have changed."""
    metadata, _, _ = _read_footer(path, _tail_of(store, path))
    _check_row_groups(path, metadata, file)
    return metadata


def _tail_of(store: Files, path: str) -> bytes | pa.Buffer:
    """Return the end of a file with its footer; raise ProviderError if it cannot be read."""
    try:
        return footer_tail(store, path)
    except OSError as error:  # without a context for each of a million files
        with opening(path, "a Parquet file"):
            raise error


def _check_row_groups(path: str, metadata: Any, file: ParquetFile) -> None:
    """Raise ProviderError if a file has other row groups than when it was opened."""
    if metadata.num_columns != file.num_leaves or not np.array_equal(_rows_of(metadata), file.rows):
        raise ProviderError(f"{path} has other row groups than when it was opened: open it again")


def _alike(files: Mapping[str, ParquetFile]) -> Iterator[list[tuple[str, ParquetFile]]]:
    """Yield files one after another, several at once where they have one selection and few row groups."""
    found: list[tuple[str, ParquetFile]] = []
    groups = 0
    for path, file in files.items():
        groups += len(file.rows)
        if found and (
            groups > _DESCRIBED_GROUPS or file.selection is not found[0][1].selection or is_uri(path)
        ):
            yield found
            found, groups = [], len(file.rows)
        found.append((path, file))
    if found:
        yield found


def _chooses(file: ParquetFile) -> bool:
    """Return whether columns are chosen by path: it would be ambiguous if two share a name, so all are read then."""
    return len(set(file.selection.source.names)) == len(file.selection.source)


def _read_footer(
    path: str, tail: bytes | pa.Buffer, known: pa.Schema | None = None
) -> tuple[Any, pa.Schema, Array]:
    """Return the footer of a file, its schema, which is `known` if it equals that, and the rows of each row group.

    `tail` is the end of a file, with its footer.
    """
    from pyarrow.parquet import ParquetFile

    with opening(path, "a Parquet file"), ParquetFile(pa.BufferReader(tail)) as file:
        metadata, schema = file.metadata, file.schema_arrow
        if known is not None and known.equals(schema, check_metadata=True):
            schema = known
        else:
            _check_names(path, schema, metadata)
    rows = _rows_of(metadata)
    if rows.min(initial=0) < 0 or sum(rows.tolist()) != metadata.num_rows:
        raise DamagedFileError(
            f"{path} has a damaged footer: {metadata.num_rows} rows, in row groups of {rows[:8].tolist()}"
        )
    return metadata, schema, rows


def _rows_of(metadata: Any) -> Array:
    """Return the rows of each row group, int64."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return np.array([group.num_rows for group in groups], np.int64)


def _check_names(path: str, schema: pa.Schema, metadata: Any) -> None:
    """Raise DamagedFileError for names that are not UTF-8, or that the two schemas of a footer give differently.

    A damaged name would look like a missing column, which is null.
    """
    stored = (metadata.metadata or {}).get(b"ARROW:schema")
    names = readable(schema).names
    if stored is None:
        return
    of_arrow = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored))).names
    if of_arrow != names:
        one, other = next((pair for pair in zip(of_arrow, names, strict=False) if len({*pair}) > 1), ("", ""))
        raise DamagedFileError(
            f"{path} has a damaged footer: its Arrow schema has the column {one!r}, and its Parquet schema {other!r}"
        )


def _comparable_leaves(
    selection: Selection, paths: Sequence[Path]
) -> list[tuple[int, pa.DataType] | ValueRange]:
    """Return the number and type of each leaf column whose values can be compared as those of all files.

    A column that the file lacks is null; UNKNOWN for a path that is not a leaf, or has a type of another meaning.
    """
    own = {path: (at, kind) for at, (path, kind) in enumerate(leaf_types(selection.renamed))}
    common = dict(leaf_types(selection.schema))
    return [
        range_of_value(None)
        if path[0] not in selection.renamed.names
        else own[path]
        if path in own and path in common and _holds(common[path], own[path][1])
        else UNKNOWN
        for path in paths
    ]


def _holds(common: pa.DataType, own: pa.DataType) -> bool:
    """Return whether the limits of a type are values of another: it is the same, or a wider one of its family."""
    if common == own or (is_any(common, TEXTS) and is_any(own, TEXTS)):
        return True
    if types.is_integer(common) and types.is_integer(own):
        signs = types.is_signed_integer(common), types.is_signed_integer(own)
        return bool(common.bit_width > own.bit_width and signs != (False, True))
    return bool(types.is_floating(common) and types.is_floating(own) and common.bit_width > own.bit_width)
