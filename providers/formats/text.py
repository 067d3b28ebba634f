"""Text files and source trees: each file is a row, and a block is a few MiB of files."""

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa

from seqflow.arguments import ByteSize
from seqflow.errors import DamagedFileError, ProviderError, ProviderOptionError
from seqflow.files.interface import LOCAL, Files, Range
from seqflow.files.uris import is_uri
from seqflow.printable import printable_line, without_values
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.provider import Block, Provider, origin_of
from seqflow.providers.source import Source, Wanted
from seqflow.record import BadRow
from seqflow.record.buffers import INT32_MAX, offsets_of, validity
from seqflow.record.record import Tensor
from seqflow.record.selection import Selection, Table


@dataclass(frozen=True, slots=True)
class TextSource(Source):
    """Files in order; block i holds the files `limits[i]` … `limits[i + 1] - 1`."""

    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    limits: tuple[int, ...]
    selection: Selection
    encoding: str | None
    errors: str
    file_per_row = True

    @property
    def num_rows(self) -> int:
        return len(self.paths)

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        for index in range(len(self.limits) - 1):
            start, stop = self.limits[index : index + 2]
            yield Block(origin_of(self.paths[start:stop]), index, stop - start, sum(self.sizes[start:stop]))

    def paths_of(self, block: Block) -> Sequence[str]:
        """Return the file of each row of a block."""
        return self.paths[self.limits[block.index] : self.limits[block.index + 1]]

    def ranges(self, block: Block, schema: pa.Schema) -> Sequence[Range]:
        if 1 not in self.selection.to(schema).present:
            return ()
        entries = map(self.store.entry, filter(is_uri, self.paths_of(block)))
        return [(one.path, 0, one.size) for one in entries if one is not None]

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema, bad_rows = wanted.block, wanted.schema, wanted.bad_rows
        paths = self.paths_of(block)
        chosen = self.selection.to(schema)
        columns = []
        for position, field in zip(chosen.present, chosen.of_source, strict=True):
            read = _names if position == 0 else self._contents
            columns.append(read(paths, field, bad_rows))
        yield chosen.label(pa.RecordBatch.from_arrays(columns, schema=chosen.of_source))

    def _contents(self, paths: Sequence[str], field: pa.Field, bad_rows: list[BadRow] | None) -> pa.Array:
        reasons: dict[int, str] = {}
        data, offsets = read_files(paths, reasons, self.store)
        if self.encoding is not None:
            data, offsets = _to_utf8(data, offsets, self.encoding, self.errors, reasons)
        for row, reason in sorted(reasons.items()):
            if bad_rows is None:
                raise ProviderError(f"{paths[row]}: {reason}")
            shown = printable_line(f"{paths[row]}: {reason}")
            bad_rows.append(BadRow(row, field.name, shown, without_values(reason)))
        return _bytes_array(field.type, data, offsets, sorted(reasons))


@file_format("text")
class Text(Format):
    """Options of text files; each file is a row."""

    encoding: str | None = None
    """Encoding of the files, for a column `text`; None reads their bytes as a column `bytes`."""
    errors: Literal["strict", "replace", "ignore"] = "strict"
    """Bytes that are not text: "strict" makes a bad row, "replace" writes U+FFFD, "ignore" drops them."""
    batch_bytes: ByteSize = "2 MiB"
    """Bytes of the files of a block, which are read, and prepared, together."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of files: columns `path` and `bytes`, or, with an encoding, `path` and `text`."""
        encoding, paths = self.encoding, files.paths
        if encoding is not None:
            _check_encoding(encoding)
        sizes = [_size(path, row, {}, files.store) for row, path in enumerate(paths)]
        limits = _limits(sizes, byte_count(self.batch_bytes))
        largest = max(sum(sizes[start:stop]) for start, stop in pairwise(limits))
        wide = largest > INT32_MAX // 4  # decoding may make a text up to four times as long
        if encoding is None:
            content = pa.field("bytes", pa.large_binary() if wide else pa.binary())
        else:
            content = pa.field("text", pa.large_string() if wide else pa.string())
        schema = pa.schema([pa.field("path", pa.string()), content])
        chosen = files.selections(dict.fromkeys(paths, schema))[paths[0]]
        source = TextSource(
            tuple(paths), tuple(sizes), tuple(limits), chosen, encoding, self.errors, store=files.store
        )
        return files.provider("text", source)


def _names(paths: Sequence[str], field: pa.Field, bad_rows: list[BadRow] | None) -> pa.Array:
    """Return the column of paths; a path that is not UTF-8 is a bad row."""
    names: list[str | None] = list(paths)
    for row, path in enumerate(paths):
        try:
            path.encode()
        except UnicodeEncodeError:
            reason = printable_line(f"{path}: the name of the file is not UTF-8")
            if bad_rows is None:
                raise ProviderError(f"{reason}\nrename it, or read the other columns only") from None
            bad_rows.append(BadRow(row, field.name, reason, "the name of the file is not UTF-8"))
            names[row] = None
    return pa.array(names, pa.string())


def read_files(paths: Sequence[str], reasons: dict[int, str], store: Files = LOCAL) -> tuple[Tensor, Tensor]:
    """Return the bytes of all files in one buffer, and int64 offsets[F+1]; a file that can't be read is empty.

    The reason is added to `reasons`, by row.
    """
    sizes = [_size(path, row, reasons, store) for row, path in enumerate(paths)]
    data = np.empty(sum(sizes), np.uint8)
    offsets = np.zeros(len(paths) + 1, np.int64)
    memory = memoryview(data)  # type: ignore[arg-type]  # 3.11 has no Buffer
    end = 0
    for row, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        if row not in reasons:
            target = memory[end : end + size]
            end += (
                _fetch_into(target, path, row, reasons, store)
                if is_uri(path)
                else _read_into(target, path, row, reasons)
            )
        offsets[row + 1] = end
    return data[:end], offsets


def _fetch_into(target: memoryview, path: str, row: int, reasons: dict[int, str], store: Files) -> int:
    """Read an object of a store into `target` and return the number of bytes; one that was replaced is a bad row."""
    try:
        target[:] = memoryview(store.read(path, 0, len(target))).cast("B")
    except DamagedFileError as error:
        reasons[row] = error.message.removeprefix(path).lstrip(" ,:")
        return 0
    return len(target)


def _read_into(target: memoryview, path: str, row: int, reasons: dict[int, str]) -> int:
    """Read a file into `target` and return the number of bytes: fewer if it has shrunk since its size was read."""
    done = 0
    try:
        with open(path, "rb", buffering=0) as file:
            while done < len(target):  # a system call may read less than it was asked for
                count = file.readinto(target[done:])
                if not count:
                    break
                done += count
            # files of /proc and the like have a size of 0, and would be read as empty
            if not target and file.read(1):
                reasons[row] = "has bytes, but its size is 0: copy what it gives to a file"
    except OSError as error:
        reasons[row] = f"can't be read: {error.strerror}"
        return 0
    return done


def _to_utf8(
    data: Tensor, offsets: Tensor, encoding: str, errors: str, reasons: dict[int, str]
) -> tuple[Tensor, Tensor]:
    """Return the files' bytes as UTF-8; they are not copied if they are UTF-8 already."""
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    if is_utf8 and _valid_utf8(data, offsets):
        return data, offsets
    pieces = []
    for row, (start, stop) in enumerate(pairwise(offsets.tolist())):
        pieces.append(_decoded(data[start:stop].tobytes(), encoding, errors, row, reasons))
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    return np.frombuffer(b"".join(pieces), np.uint8), offsets_of(lengths, wide=True)


def _decoded(data: bytes, encoding: str, errors: str, row: int, reasons: dict[int, str]) -> bytes:
    try:
        return data.decode(encoding, errors).encode("utf-8")
    except UnicodeDecodeError as error:
        wrong = data[error.start : error.start + 1].hex()
        reasons[row] = f"not {encoding} at byte {error.start} (0x{wrong}): {error.reason}"
    except UnicodeError as error:
        reasons[row] = f"not {encoding}: {error}"
    return b""


def _valid_utf8(data: Tensor, offsets: Tensor) -> bool:
    try:
        _bytes_array(pa.large_string(), data, offsets, []).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _bytes_array(kind: pa.DataType, data: Tensor, offsets: Tensor, null_rows: list[int]) -> pa.Array:
    wide = kind in (pa.large_binary(), pa.large_string())
    if not wide and len(data) > INT32_MAX:
        raise ProviderError(
            f"a block of files has {len(data)} bytes\nopen them with format=sf.Text(batch_bytes=…)"
        )
    nulls = np.zeros(len(offsets) - 1, np.bool_)
    nulls[null_rows] = True
    positions = offsets if wide else offsets.astype(np.int32)
    buffers = [validity(nulls), pa.py_buffer(positions), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _limits(sizes: Sequence[int], batch_bytes: int) -> list[int]:
    """Return the first file of each block, then the number of files. A block is full at `batch_bytes`."""
    limits, held = [0], 0
    for row, size in enumerate(sizes):
        # a file above batch_bytes is a block by itself
        if row > limits[-1] and held + size > batch_bytes:
            limits.append(row)
            held = 0
        held += size
    return [*limits, len(sizes)]


def _size(path: str, row: int, reasons: dict[int, str], store: Files) -> int:
    if is_uri(path):
        entry = store.entry(path)
        return 0 if entry is None else entry.size
    try:
        return os.stat(path).st_size
    except OSError as error:
        reasons[row] = f"can't be read: {error.strerror}"
        return 0


def _check_encoding(encoding: str) -> None:
    try:
        b"a".decode(encoding, "ignore")
    except UnicodeError:
        pass  # an encoding that exists but cannot decode this byte, such as UTF-16
    except (LookupError, ValueError) as error:
        raise ProviderOptionError(f"encoding={encoding!r}: {error}") from None
