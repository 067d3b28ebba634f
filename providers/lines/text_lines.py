"""Text files with one row in each line, read in blocks of whole lines."""

import os
import re
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.errors import LEAVE_OUT, DamagedFileError, ProviderError
from seqflow.files.ahead import Span
from seqflow.files.interface import Entry, Files, Range
from seqflow.files.uris import is_uri
from seqflow.printable import without_values
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.suffixes import is_json
from seqflow.providers.lines.decompressed import Decompressed, compression_of, decompressed, reading
from seqflow.providers.lines.documents import Layout, RowFinder, layout_of
from seqflow.providers.lines.inflated_files import InflatedFiles
from seqflow.providers.lines.line_faults import Malformed
from seqflow.providers.lines.quotes import newline_finder, row_ends
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Wanted, unfit_rows
from seqflow.record import BadRow
from seqflow.record.buffers import INT32_MAX
from seqflow.record.record import Tensor
from seqflow.record.selection import Selection, Table

T = TypeVar("T")

BLOCK_BYTES = 4 << 20
SAMPLE_BYTES = 64 << 10
_SAMPLED_FILES, _FETCHED_FILES = 16, 64
_CHUNK = 64 << 10
_NEWLINE, _LINE_END = b"\n", re.compile(rb"\n")
BOM = b"\xef\xbb\xbf"
"""Byte order mark, which a file may begin with; it does not belong to the first line."""


class LineFormat:
    """Parser of a kind of line. Blank lines are skipped."""

    __slots__ = ()
    kind: ClassVar[str]
    schema: pa.Schema
    rows_lack: ClassVar[bool] = False
    """Whether a row need not have all columns."""
    header: bool = False
    """Whether the first line of a file is not a row."""
    newlines: bool = False
    """Whether newlines in quotes do not end a row."""
    layout: Layout = ""
    """Form of a file whose rows are not lines."""

    def reading(self, selection: Selection) -> "LineFormat":
        """Return the parser for a selection of its columns."""
        return self

    def parse(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        """Parse uint8 data that ends with a newline; return the rows, and the malformed lines in order.

        A malformed line also has a row: nulls or empty lists, and 0 for numbers.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class LineVersion:
    """Parser of the lines of some files, and what to read of their columns."""

    format: LineFormat
    selection: Selection


class _File(NamedTuple):
    """A file of lines, and where it lies."""

    path: str
    store: Files

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes `start` … `stop - 1`, decompressed; fewer if the file ends earlier."""
        if compression_of(self.path):
            return _decompressed(self, self.version)[start:stop]
        if is_uri(self.path):
            return bytes(self.store.read(self.path, start, stop))
        with reading(self.path), open(self.path, "rb", buffering=0) as file:
            file.seek(start)
            return file.read(stop - start)

    def read_array(self, start: int, stop: int) -> Tensor:
        """Return the same as uint8, in memory that was used before: new pages take longer than the copy."""
        if is_uri(self.path):
            return np.frombuffer(self.read(start, stop), np.uint8)
        with reading(self.path), open(self.path, "rb", buffering=0) as file:
            file.seek(start)
            data = kernels.empty_bytes(max(min(stop, os.fstat(file.fileno()).st_size) - start, 0))
            return data[: file.readinto(data.data)]

    @property
    def size(self) -> int:
        return self._entry.size

    @property
    def version(self) -> str:
        return self._entry.version

    @property
    def _entry(self) -> Entry:
        if (found := self.store.entry(self.path)) is None:
            raise DamagedFileError(f"{self.path} can't be read: No such file or directory")
        return found


@dataclass(frozen=True, slots=True)
class LineSource(Source):
    """Files of lines: block i of a file holds the lines that start in its i-th range of `batch_bytes` bytes.

    In a compressed file, decompressed bytes are counted.
    """

    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    batch_bytes: int
    versions: dict[str, LineVersion]
    """The version of each file by path; files with the same header share one."""
    inflated: InflatedFiles = field(default_factory=InflatedFiles, compare=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about compressed files that were read, and can only be decompressed from their start."""
        return self.inflated.notes

    def of_files(self, paths: Collection[str]) -> Self:
        sizes = dict(zip(self.paths, self.sizes, strict=True))
        chosen = tuple(path for path in paths if path in sizes)
        versions = {path: self.versions[path] for path in chosen}
        kept = tuple(sizes[path] for path in chosen)
        return self.reduced(paths, paths=chosen, sizes=kept, versions=versions)

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        for path, stored in zip(self.paths, self.sizes, strict=True):
            size = self.inflated.size(path) if stored and compression_of(path) else stored
            if self.versions[path].format.layout and size > INT32_MAX:
                raise ProviderError(
                    f"{path} has more than {INT32_MAX} bytes, and its rows are not lines\n"
                    "write one object in each line, as jq -c '.[]' does of an array"
                )
            for index, start in enumerate(range(0, size, self.batch_bytes)):
                yield Block(path, index, None, min(self.batch_bytes, size - start))

    def ranges(self, block: Block, schema: pa.Schema) -> Sequence[Range]:
        path, version = block.origin, self.versions[block.origin]
        if compression_of(path) or version.format.layout or version.format.newlines:
            return ()
        return [(path, *_bytes_of(block.index * self.batch_bytes, (block.index + 1) * self.batch_bytes))]

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema, bad_rows = wanted.block, wanted.schema, wanted.bad_rows
        path, start, file = block.origin, block.index * self.batch_bytes, _File(block.origin, self.store)
        version = self.versions[path]
        lines_before, newlines = None, version.format.newlines
        if layout := version.format.layout:
            size = self.inflated.size(path) if compression_of(path) else file.size
            starts = _row_starts(file, file.version, self.batch_bytes, layout, size)
            start, stop = starts[block.index :][:2]
            data = np.frombuffer(_ended(path, file.read(start, stop)), np.uint8)
        elif compression_of(path):
            content, start, lines_before = self.inflated.block(path, block.index, self.batch_bytes, newlines)
            data = np.frombuffer(content, np.uint8)
        elif newlines:
            start, stop = _row_starts(file, file.version, self.batch_bytes, "", file.size)[block.index :][:2]
            data = np.frombuffer(_ended(path, file.read(start, stop)), np.uint8)
        else:
            data, start = _read_lines(file, start, start + self.batch_bytes)
        if start == 0:
            start = len(BOM) if data[: len(BOM)].tobytes() == BOM else 0
            if len(data) > start and version.format.header:
                start, lines_before = _after_newline(data, 0, len(data)), 1
            data = data[start:]
        written = data
        if layout and len(data):
            shown = RowFinder(layout, at_start=not block.index)(data.tobytes())
            data = np.frombuffer(shown[:-1] + _NEWLINE, np.uint8)
        selection = version.selection.to(schema)
        batch, malformed = version.format.reading(selection).parse(data)
        # lines before the block are counted only for an error: that reads the file from its start
        first_line = None
        for row, position, column, reason in malformed:
            if first_line is None:
                first_line = 1 + (_newlines_before(file, start) if lines_before is None else lines_before)
                ends_of_lines, ends_of_rows = np.flatnonzero(written == _NEWLINE[0]), row_ends(data, newlines)
            line, line_start, _ = _around(position, ends_of_lines, len(data))
            place = f"{path}, line {first_line + line}, column {position - line_start + 1}"
            if bad_rows is None:
                is_junk = not block.index and batch.num_rows == 1 + sum(1 for _ in malformed)
                advice = "%(bad_rows)s of a loader leaves out such lines" + f"; {LEAVE_OUT}" * is_junk
                raise ProviderError(f"{place}: {reason}", advice=advice)
            _, start_of_row, stop_of_row = _around(position, ends_of_rows, len(data))
            content_of_row = data[start_of_row:stop_of_row].tobytes()
            bad_rows.append(BadRow(row, column, f"{place}: {reason}", without_values(reason), content_of_row))
        yield selection.apply(batch, unfit=unfit_rows(block, bad_rows))


def _around(position: int, ends: Tensor, stop: int) -> tuple[int, int, int]:
    """Return number, start and end of the line at a position; lines end at `ends`, the last one at `stop`."""
    line = int(np.searchsorted(ends, position))
    return line, int(ends[line - 1]) + 1 if line else 0, int(ends[line]) if line < len(ends) else stop


@dataclass(frozen=True, slots=True)
class LineFiles:
    """Files of lines that are there and, if damaged ones are left out, can be decompressed to their end."""

    files: FileSet
    sizes: dict[str, int]
    """Stored bytes of each file."""
    inflated: InflatedFiles
    layouts: dict[str, Layout]
    """Layouts of files whose rows are not lines."""

    @classmethod
    def of(cls, files: FileSet, has_layouts: bool = False) -> "LineFiles":
        """Check the files; raise DamagedFileError if there is none. `has_layouts` looks for those without lines.

        In a store, which takes a request for each file, it looks at the first one, at those called `.json`, and at
        all if one has no lines.
        """
        inflated, layouts = InflatedFiles(files.store), dict[str, Layout]()

        def check(path: str) -> int:
            size = _File(path, files.store).size
            # what a cut file gives before its end depends on the steps of the decoder: it counts as a whole
            if size and files.bad_files.leaves_out and compression_of(path):
                inflated.size(path)
            is_looked_at = layouts or path == files.paths[0] or not is_uri(path) or is_json(path)
            if has_layouts and size and is_looked_at and (layout := _layout(_File(path, files.store), size)):
                layouts[path] = layout
            return size

        return cls(files, files.each(check), inflated, layouts)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path in self.sizes if path not in self.files.damaged)

    def leave_out_unreadable(
        self, is_row: Callable[[bytes], object], read: Callable[[bytes], object]
    ) -> None:
        """Leave out files of whose first lines none can be read, if damaged files are left out.

        `read` raises ValueError for a line that is not of the format, whatever the types of its values.
        """

        def look(path: str, lines: list[bytes]) -> None:
            fault = ""
            for number, line in enumerate(lines, start=1):
                if not is_row(line):
                    continue
                try:
                    read(line)
                    return
                except (ValueError, RecursionError) as error:
                    fault = fault or f"{path}: no line can be read; line {number}: {error}"
            if fault:
                raise DamagedFileError(fault)

        if self.files.bad_files.leaves_out:
            self.each_start(lambda lines: any(map(is_row, lines)), look)

    def each_start(
        self, are_enough: Callable[[list[bytes]], bool], look: Callable[[str, list[bytes]], T]
    ) -> dict[str, T]:
        """Return what `look` finds in the first whole lines of each file: those of its first 64 KiB, and more until
        `are_enough` accepts them or the file ends. Leave out files in which it finds damage, if these are left out.
        """
        with closing(self._fetched(self.paths)) as ahead:
            return self.files.each(lambda path: look(path, self._first_lines(next(ahead), are_enough)))

    def samples(
        self, is_row: Callable[[bytes], object], header: bool = False, of: Sequence[str] | None = None
    ) -> Iterator[tuple[str, list[bytes]]]:
        """Yield the first 16 files with rows, each with its first whole lines: 64 KiB, or more if they have no row.

        The line of a header is not a row. `of` are some of the files.
        """

        def have_rows(lines: Sequence[bytes]) -> bool:
            return any(map(is_row, lines[header:]))

        with closing(self._fetched(self.paths if of is None else of)) as ahead:
            starts = ((path, self._first_lines(path, have_rows)) for path in ahead)
            yield from islice((start for start in starts if have_rows(start[1])), _SAMPLED_FILES)

    def _fetched(self, paths: Sequence[str]) -> Generator[str, None, None]:
        """Yield files; a store fetches the starts of the next ones meanwhile."""
        store, owner = self.files.store, object()
        for at in range(0, len(paths), _FETCHED_FILES):
            some = paths[at : at + _FETCHED_FILES]
            stored = (path for path in some if is_uri(path) and not compression_of(path))
            store.plan(((path, 0, min(SAMPLE_BYTES, self.sizes[path])) for path in stored), owner)
            try:
                yield from some
            finally:  # most often enough files were seen before
                store.drop(owner)

    def _first_lines(self, path: str, are_enough: Callable[[list[bytes]], bool]) -> list[bytes]:
        content, size, file = b"", SAMPLE_BYTES, _File(path, self.files.store)
        with reading(path), ExitStack() as opened:
            is_compressed = compression_of(path) is not None
            stream = (
                opened.enter_context(closing(Decompressed(path, self.files.store))) if is_compressed else None
            )
            while True:
                at = len(content)
                piece = file.read(at, at + size) if stream is None else stream.read(size)
                content = content + piece
                layout = self.layouts.get(path)
                shown = RowFinder(layout, at_start=True)(content) if layout else content
                lines = shown.removeprefix(BOM).split(_NEWLINE)
                if len(piece) < size:
                    return lines
                lines.pop()  # it may go on in the next piece
                if are_enough(lines):
                    return lines
                size = len(content)  # doubled, so a long first line is not split again for each 64 KiB

    def provider(
        self,
        line_format: LineFormat,
        batch_bytes: int,
        inferred: str = "",
        others: Sequence[tuple[LineFormat, Sequence[str]]] = (),
    ) -> Provider:
        """Return a provider of the lines, in blocks of about `batch_bytes`; `others` are formats of some."""
        groups = [(line_format, self.paths), *others]
        schemas: dict[str, pa.Schema] = {}
        for one, paths in groups:
            schemas |= dict.fromkeys(paths, one.schema)
        selections = self.files.selections(schemas, rows_lack=line_format.rows_lack)
        versions: dict[str, LineVersion] = {}
        for one, paths in groups:
            versions |= dict.fromkeys(paths, LineVersion(one, selections[paths[0]]))
        sizes, store = tuple(self.sizes[path] for path in self.paths), self.files.store
        source = LineSource(self.paths, sizes, batch_bytes, versions, self.inflated, store=store)
        return self.files.provider(line_format.kind, source, inferred)


def _bytes_of(start: int, stop: int) -> Span:
    """Return the bytes to read for the lines that start in `start` … `stop - 1`.

    The byte before `start` tells whether a line begins at `start`. The chunk at the end usually holds the rest of the
    last line, so one read is enough.
    """
    return max(start - 1, 0), stop + _CHUNK


def _read_lines(file: _File, start: int, stop: int) -> tuple[Tensor, int]:
    """Return the lines that start in `start` … `stop - 1`, ended by a newline, and the start of the first one."""
    (begin, end_of_read), first = _bytes_of(start, stop), 0
    data = file.read_array(begin, end_of_read)
    if start:
        first = _after_newline(data, 0, stop - start)
        if not first:
            return np.empty(0, np.uint8), start
    end = _after_newline(data, stop - 1 - begin, len(data))
    if not end and data[-1:].tobytes() == _NEWLINE and len(data) <= INT32_MAX:
        end = len(data)
    if not end:
        content = data.tobytes()
        content += _rest_of_line(file, content, begin + len(content))
        data = np.frombuffer(_ended(file.path, content), np.uint8)
        end = len(data)
    return data[first:end], begin + first


def _after_newline(data: Tensor, start: int, stop: int) -> int:
    """Return the position after the first newline in `data[start:stop]`; 0 if there is none."""
    found = _LINE_END.search(data.data, start, stop)
    return found.end() if found else 0


def _ended(path: str, content: bytes) -> bytes:
    """Return lines of a file with a newline after the last one."""
    if content and not content.endswith(_NEWLINE):
        content += _NEWLINE
    if len(content) > INT32_MAX:
        raise ProviderError(
            f"{path}: a line has more than {INT32_MAX} bytes\nsplit it, or leave out the file"
        )
    return content


def _layout(file: _File, size: int) -> Layout:
    if compression_of(file.path) is None:
        return layout_of(
            lambda count: file.read(0, count),
            lambda: file.read(max(size - _CHUNK, 0), size).rstrip(b" \t\r\n")[-1:],
        )

    def head(count: int) -> bytes:
        with reading(file.path), closing(Decompressed(file.path, file.store)) as stream:
            return stream.read(count)

    return layout_of(head, lambda: b"]")  # all of the file would have to be decompressed


@lru_cache(maxsize=1)
def _decompressed(file: _File, version: str) -> bytes:
    """Return all of a file whose rows are not lines, of which only its start tells where a row begins."""
    return b"".join(decompressed(file.path, file.store))


@lru_cache(maxsize=1024)
def _row_starts(file: _File, version: str, batch_bytes: int, layout: Layout, size: int) -> tuple[int, ...]:
    """Return where the first row starts in each range of `batch_bytes`, or after it, and the end of the file.

    A newline ends no row inside quotes, which all bytes before it tell: the file is read once, and the result for a
    large file is kept for later runs, as digests of large files are.
    """
    from seqflow.identity.content import cached_digest

    part = f"rows in ranges of {batch_bytes}{layout}"
    found = cached_digest(file.path, part, size, lambda: _row_starts_text(file, batch_bytes, layout, size))
    return tuple(map(int, found.split(",")))


def _row_starts_text(file: _File, batch_bytes: int, layout: Layout, size: int) -> str:
    rows = RowFinder(layout, at_start=True)
    starts, position, shown = [0], 0, rows if layout else newline_finder(True)
    while piece := file.read(position, position + BLOCK_BYTES):
        piece_shown = shown(piece)
        while (at := piece_shown.find(_NEWLINE, max(0, len(starts) * batch_bytes - 1 - position))) >= 0:
            starts.append(position + at + 1)
        position += len(piece)
    if layout and not rows.is_whole:
        raise DamagedFileError(f"{file.path} can't be read: a bracket or quote is not closed")
    blocks = -(-size // batch_bytes)
    return ",".join(map(str, [*starts[:blocks], *[size] * (blocks + 1 - len(starts[:blocks]))]))


def _rest_of_line(file: _File, content: bytes, position: int) -> bytes:
    """Read from `position`, where `content` ends, to the end of its last line."""
    pieces: list[bytes] = []
    last, size = content, len(content)
    while last and not last.endswith(_NEWLINE) and size <= INT32_MAX:
        last = file.read(position, position + _CHUNK)
        position += len(last)
        end = last.find(_NEWLINE) + 1
        last = last[:end] if end else last
        pieces.append(last)
        size += len(last)
    return b"".join(pieces)


def _newlines_before(file: _File, position: int) -> int:
    count = at = 0
    while at < position:
        piece = file.read(at, min(position, at + BLOCK_BYTES))
        if not piece:
            break
        count += piece.count(_NEWLINE)
        at += len(piece)
    return count
