"""RowFiles: files whose blocks and rows are known before they are read, but not the ranges of their values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import pyarrow as pa

from seqflow.errors import StoreError
from seqflow.files.ahead import SMALL_FILE
from seqflow.providers.file_set import FileSet
from seqflow.providers.memory.rereadable import with_columns
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Wanted, unfit_rows
from seqflow.record.selection import Selection, Table, check_once
from seqflow.record.validation import kind_of_error, validated

T = TypeVar("T")


class RowFile(Protocol):
    """One file: its columns, the rows and bytes of its blocks, and how to read one. It can be pickled."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def sizes(self) -> Sequence[tuple[int | None, int]]:
        """Rows of each block, None if they are not known, and its approximate bytes in memory."""
        ...

    def read(self, path: str, index: int, columns: Sequence[str]) -> Table:
        """Return the rows of a block, with these columns at least. `path` is that of the file, or of a local copy."""
        ...


@dataclass(frozen=True, slots=True)
class RowFileSource(Source):
    """Files by path, each with the columns to read."""

    files: Mapping[str, RowFile]
    selections: Mapping[str, Selection]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files, each followed by the files next to it that it needs."""
        return tuple(
            one for path, file in self.files.items() for one in (path, *getattr(file, "other_files", ()))
        )

    def of_files(self, paths: Collection[str]) -> Self:
        return self.reduced(paths, files={path: self.files[path] for path in paths if path in self.files})

    @property
    def num_rows(self) -> int | None:
        rows = [rows for file in self.files.values() for rows, _ in file.sizes]
        return None if None in rows else sum(rows)  # type: ignore[arg-type]

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        for path, file in self.files.items():
            for index, (rows, nbytes) in enumerate(file.sizes):
                yield Block(path, index, rows, nbytes)

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema, bad_rows = wanted.block, wanted.schema, wanted.bad_rows
        chosen = self.selections[block.origin].to(schema)
        expected = chosen.of_source
        place = self.place(block)
        path = self.store.local_copy(block.origin)
        with errors_at(f"{place} can't be read"):
            table = self.files[block.origin].read(path, block.index, expected.names)
        table = with_columns(validated(table, place), expected, place)
        yield chosen.apply(table, chosen.present, unfit_rows(block, bad_rows))

    def rows_of(self, block: Block) -> int | None:
        """Return the number of rows of a block; None if it is not known before reading."""
        return self.files[block.origin].sizes[block.index][0]


@contextmanager
def errors_at(place: str) -> Iterator[None]:
    """Raise any error as a ProviderError that names the place: damaged data may cause errors of every type."""
    try:
        yield
    except (MemoryError, StoreError):
        raise
    except Exception as error:
        # an error without a text, such as an AssertionError, is named by its type
        raise kind_of_error(error)(f"{place}: {str(error) or type(error).__name__}") from error


def open_row_files(kind: str, files: FileSet, open_file: Callable[[str], RowFile]) -> Provider:
    """Return a provider of files of one kind; raise DamagedFileError for a damaged one, or leave it out."""

    opened = open_copies(files, lambda _, copy: open_file(copy), f"file of kind {kind}")
    return provider_of_row_files(kind, files, opened)


def open_copies(files: FileSet, open_file: Callable[[str, str], T], what: str) -> dict[str, T]:
    """Open each file by its path and that of its local copy; raise DamagedFileError for a damaged one, or omit it."""
    files.plan(lambda one: 0 if one.size <= SMALL_FILE else one.size)

    def open_one(path: str) -> T:
        copy = files.store.local_copy(path)
        with errors_at(f"{path} is not a {what}, or damaged"):
            return open_file(path, copy)

    return files.each(open_one)


def provider_of_row_files(kind: str, files: FileSet, opened: Mapping[str, RowFile]) -> Provider:
    """Return a provider of files that are open."""
    selections = files.selections({path: file.schema for path, file in opened.items()})
    for one in {id(one): one for one in selections.values()}.values():
        check_once(one.source, one.of_source.names)  # columns are read by name, so a name must be unique
    source = RowFileSource(opened, selections, store=files.store)
    return files.provider(kind, source)


def row_ranges(num_rows: int, row_bytes: int, batch_bytes: int) -> tuple[range, ...]:
    """Divide all rows into ranges of about `batch_bytes`."""
    step = max(1, batch_bytes // max(1, row_bytes))
    return tuple(range(start, min(num_rows, start + step)) for start in range(0, num_rows, step))
