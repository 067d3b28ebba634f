"""Datasets of pyarrow, and tables that other packages offer as one: a block is a row group or another piece."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.providers.filter.value_ranges import Path, ValueRange
from seqflow.providers.formats.parquet_ranges import fragment_ranges
from seqflow.providers.memory.rereadable import Scans, open_rereadable, with_columns
from seqflow.providers.memory.tables import BLOCK_BYTES, open_table
from seqflow.providers.other_packages import foreign_errors
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Wanted
from seqflow.record import BadRow
from seqflow.record.selection import (
    ALL,
    Picked,
    Selection,
    Table,
    leaf_types,
    selection,
    value_bytes_of,
)
from seqflow.record.validation import reading

_COUNTED = ("ipc", "feather", "arrow", "orc")
"""Formats besides Parquet whose files tell their number of rows without being read."""
_SLICE_ROWS = 1 << 14
"""Rows that are read at once from a block that is read in slices."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Block of a dataset: a fragment, or some rows of a fragment that can read rows by number."""

    fragment: Any
    origin: str
    num_rows: int | None
    nbytes: int | None
    rows: range | None = None


@dataclass(frozen=True, slots=True)
class DatasetSource(Source):
    """Fragments of a dataset. Each read opens its file, so that threads do not share handles."""

    pieces: tuple[Piece, ...]
    selection: Selection
    files: tuple[str, ...]
    """Paths of its files, if all are on this machine and may be written again."""
    version: str
    """Version of a table, which states compare if its files do not tell it; else empty."""
    slicing = "forward"

    @property
    def paths(self) -> tuple[str, ...]:
        return self.files

    @property
    def num_rows(self) -> int | None:
        rows = [piece.num_rows for piece in self.pieces]
        return None if None in rows else sum(rows)  # type: ignore[arg-type]

    def content(self, schema: pa.Schema) -> list[Any]:
        """Return the version of the table and the rows of each block, which states compare."""
        return [self.version, *([piece.origin, piece.num_rows] for piece in self.pieces)]

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        names = self._names(schema)
        for index, piece in enumerate(self.pieces):
            yield Block(piece.origin, index, piece.num_rows, _num_bytes(piece, names))

    def ranged_blocks(
        self, schema: pa.Schema, paths: Sequence[Path]
    ) -> Iterator[tuple[Block, Sequence[ValueRange]]]:
        wanted = [self.selection.leaves_of_source.get(path) for path in paths]
        for block in self.blocks(schema):
            yield block, fragment_ranges(self.pieces[block.index].fragment, wanted)

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema, steps = wanted.block, wanted.schema, wanted.steps
        fragment, scan = self.pieces[block.index].fragment, self._scan(block, schema)
        with reading(f"{self.place(block)} can't be read"):
            if steps is None:
                yield fragment.to_table(**scan)
            else:
                yield from fragment.to_batches(**scan, batch_size=_SLICE_ROWS)

    def _scan(self, block: Block, schema: pa.Schema) -> dict[str, Any]:
        """Return the arguments of a scan of the columns that are read."""
        piece, names = self.pieces[block.index], self._names(schema)
        if piece.rows is not None:
            return {"columns": names, "offset": piece.rows.start, "limit": len(piece.rows)}
        return {"columns": names, "schema": self.selection.source, "use_threads": False}

    def finish(self, block: Block, schema: pa.Schema, table: Table, bad_rows: list[BadRow] | None) -> Table:
        """Return the chosen columns of a table; Lance's blobs are refused, since a scan reads only their places."""
        chosen = self.selection.to(schema)
        found = with_columns(table, chosen.of_source, self.place(block))
        return chosen.apply(found, chosen.present)

    def _names(self, schema: pa.Schema) -> list[str]:
        return list(self.selection.to(schema).of_source.names)


def open_dataset(dataset: Any, picked: Picked = ALL, *, kind: str = "dataset", version: str = "") -> Provider:
    """Return a provider of a `pyarrow.dataset.Dataset`; reads the footers of its Parquet files.

    A dataset in memory is a table. A dataset with a filter has no fragments, and is scanned again in each pass.
    """
    chosen = selection(dataset.schema, *picked)
    in_memory = type(dataset).__name__ == "InMemoryDataset"
    origin = "a Dataset in memory" if in_memory else _origin_of(dataset)
    with reading(f"{origin} can't be opened"):
        if in_memory:
            return open_table(dataset.to_table(), picked, origin=origin)
        try:
            fragments = list(dataset.get_fragments())
        except ValueError:  # pyarrow's error for a dataset with a filter
            return open_rereadable(Scans(dataset), f"{origin}, filtered", picked)
        pieces = tuple(piece for fragment in fragments for piece in _pieces(fragment))
    files = () if version else _local_files(dataset)
    if files:
        pieces = tuple(replace(piece, origin=os.path.abspath(piece.origin)) for piece in pieces)
    return Provider(kind, origin, chosen.schema, DatasetSource(pieces, chosen, files, version))


def open_fragment(fragment: Any, picked: Picked = ALL) -> Provider:
    """Return a provider of one fragment of a dataset: the columns of its file, without those of folders."""
    with reading("the Fragment can't be opened"):
        chosen = selection(fragment.physical_schema, *picked)
        pieces = tuple(_pieces(fragment))
    return Provider("dataset", "a Fragment", chosen.schema, DatasetSource(pieces, chosen, (), ""))


def open_delta(table: Any, picked: Picked = ALL) -> Provider:
    """Return a provider of a `deltalake.DeltaTable` in the version that it is loaded in."""
    place = f"the Delta Lake table {table.table_uri}"
    with foreign_errors(f"{place} can't be opened"):
        mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
        if mapping != "none":
            raise ProviderError(
                f"{place} has a column mapping by {mapping}, expected none: its files have other names\n"
                "pass pyarrow.table(deltalake.QueryBuilder().register('t', table).execute('SELECT * FROM t'))"
            )
        dataset = table.to_pyarrow_dataset()
    version = f"{table.table_uri} version {table.version()}"
    opened = open_dataset(dataset, picked, kind="delta", version=version)
    return replace(opened, origin=str(table.table_uri))


def open_lance(dataset: Any, picked: Picked = ALL) -> Provider:
    """Return a provider of a `lance.LanceDataset`, at the version that the dataset object refers to."""
    version = f"{dataset.uri} version {dataset.version}"
    opened = open_dataset(dataset, picked, kind="lance", version=version)
    return replace(opened, origin=str(dataset.uri))


def _pieces(fragment: Any) -> Iterator[Piece]:
    """Yield the blocks of a fragment; a row group each for Parquet."""
    if hasattr(fragment, "split_by_row_group"):
        for part in fragment.split_by_row_group():
            for group in part.row_groups:
                yield Piece(part, part.path, group.num_rows, group.total_byte_size)
    elif hasattr(fragment, "fragment_id"):
        yield from _lance_pieces(fragment)
    elif hasattr(fragment, "format"):
        is_counted = fragment.format.default_extname in _COUNTED
        rows = fragment.count_rows() if is_counted else None
        yield Piece(fragment, fragment.path, rows, _file_bytes(fragment))
    else:
        yield Piece(fragment, "a fragment in memory", fragment.count_rows(), None)


def _lance_pieces(fragment: Any) -> Iterator[Piece]:
    """Yield ranges of rows of a Lance fragment, which may be a file of many GB."""
    rows = fragment.count_rows()
    stored = sum(file.file_size_bytes or 0 for file in fragment.data_files())
    row_bytes = max(1, stored // max(1, fragment.physical_rows))
    step = max(1, BLOCK_BYTES // row_bytes)
    for start in range(0, rows, step):
        stop = min(rows, start + step)
        origin = f"fragment {fragment.fragment_id}"
        yield Piece(fragment, origin, stop - start, (stop - start) * row_bytes, range(start, stop))


def _num_bytes(piece: Piece, names: Sequence[str]) -> int | None:
    """Return the bytes of these columns in memory, from the footer of Parquet; else those of the whole fragment."""
    fragment = piece.fragment
    if not hasattr(fragment, "split_by_row_group"):
        return piece.nbytes
    (group,) = fragment.row_groups
    found = fragment.metadata.row_group(group.id)
    size = 0
    for leaf, (path, kind) in enumerate(leaf_types(fragment.physical_schema)):
        if path[0] in names:
            chunk = found.column(leaf)
            width = value_bytes_of(kind)
            size += (
                chunk.num_values * width if width else chunk.total_uncompressed_size + 4 * chunk.num_values
            )
    return size


def _file_bytes(fragment: Any) -> int | None:
    try:
        size: int | None = fragment.filesystem.get_file_info(fragment.path).size
    except (OSError, AttributeError):
        return None
    return size


def _local_files(dataset: Any) -> tuple[str, ...]:
    """Return the absolute paths of the files of a dataset on this machine; empty if they lie elsewhere."""
    from pyarrow import fs

    if not isinstance(getattr(dataset, "filesystem", None), fs.LocalFileSystem):
        return ()
    return tuple(dict.fromkeys(map(os.path.abspath, dataset.files)))


def _origin_of(dataset: Any) -> str:
    files = getattr(dataset, "files", None)
    if not files:
        return f"a {type(dataset).__name__}"
    return f"a dataset of {len(files)} file{'s' * (len(files) != 1)}, {files[0]}{', …' * (len(files) > 1)}"
