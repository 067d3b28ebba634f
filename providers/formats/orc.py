"""ORC files: a block is a stripe, whose number of rows is in the footer."""

import io
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, file_format
from seqflow.providers.formats.row_files import open_row_files
from seqflow.providers.provider import Provider
from seqflow.record.selection import Table

_FOOTER, _COMPRESSION = 1, 2
"""Fields of the postscript of an ORC file."""
_STRIPES, _ROWS_OF_STRIPE = 3, 5
"""Fields of its footer, and of a stripe in that."""
_LARGEST = 64 << 20
"""Largest footer in bytes, compressed or not."""


@dataclass(frozen=True, slots=True)
class OrcFile:
    """The columns of a file, and the rows and bytes of each stripe."""

    schema: pa.Schema
    sizes: tuple[tuple[int, int], ...]

    def read(self, path: str, index: int, columns: Sequence[str]) -> Table:
        from pyarrow import orc

        if not columns:
            columns = self.schema.names[:1]
        return orc.ORCFile(path).read_stripe(index, columns=list(columns))


_READ_STRIPES = """
from pyarrow import orc
def read(path):
    file = orc.ORCFile(path)
    for stripe in range(file.nstripes):
        file.read_stripe(stripe).validate(full=True)
"""


@file_format("orc")
class Orc(Format):
    """Options of ORC files."""

    untrusted: bool = False
    """Read files in a child process first: a file that would crash pyarrow is then an error."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of ORC files, in blocks of their stripes."""
        if self.untrusted:
            files.check_in_child(_READ_STRIPES)
        return open_row_files("orc", files, _open_file)


def _open_file(path: str) -> OrcFile:
    from pyarrow import orc

    file = orc.ORCFile(path)
    rows = _rows_of_stripes(path)
    if rows is None:
        # reading the cheapest column is the only other way: pyarrow does not tell the rows of a stripe
        column = min(file.schema, key=lambda field: not pa.types.is_primitive(field.type)).name
        rows = [file.read_stripe(stripe, columns=[column]).num_rows for stripe in range(file.nstripes)]
    if len(rows) != file.nstripes or sum(rows) != file.nrows:
        raise ProviderError(
            f"its footer has {file.nrows} rows in {file.nstripes} stripes, but its stripes have {rows}"
        )
    row_bytes = max(1, os.path.getsize(path) // max(1, file.nrows))
    return OrcFile(file.schema, tuple((count, count * row_bytes) for count in rows))


def _rows_of_stripes(path: str) -> list[int] | None:
    """Return the rows of each stripe, from the footer; None if its compression is not supported here."""
    with open(path, "rb") as file:
        end = file.seek(0, io.SEEK_END)
        # the last byte is the length of the postscript, which is below 256
        file.seek(max(0, end - 256))
        tail = file.read()
        length = tail[-1]
        postscript = dict(_fields(tail[-1 - length : -1]))
        size = postscript.get(_FOOTER, 0)
        if not isinstance(size, int) or size > min(_LARGEST, end):
            raise ProviderError(f"its footer says that it has {size!r} bytes")
        file.seek(end - 1 - length - size)
        footer = _inflated(file.read(size), postscript.get(_COMPRESSION, 0))
    if footer is None:
        return None
    stripes = [
        dict(_fields(value))
        for number, value in _fields(footer)
        if number == _STRIPES and isinstance(value, bytes)
    ]
    return [rows if isinstance(rows := stripe.get(_ROWS_OF_STRIPE, 0), int) else -1 for stripe in stripes]


def _inflated(data: bytes, compression: object) -> bytes | None:
    """Return the decompressed bytes of a footer; None if the compression is not supported here."""
    if compression == 0:
        return data
    if compression not in (1, 5):  # zlib and zstd
        return None
    pieces, at = [], 0
    while at < len(data):
        # the length of the piece, and in the lowest bit whether it is stored as it is
        head = int.from_bytes(data[at : at + 3], "little")
        piece = data[at + 3 : at + 3 + (head >> 1)]
        at += 3 + (head >> 1)
        if not head & 1 and compression == 1:
            # bounded: a damaged or malicious footer may inflate to any size
            piece = zlib.decompressobj(-15).decompress(piece, _LARGEST)
        elif not head & 1:
            with pa.CompressedInputStream(pa.BufferReader(piece), "zstd") as stream:
                piece = stream.read(_LARGEST)
        pieces.append(piece)
    return b"".join(pieces)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message of Protocol Buffers: their numbers, with values as integers or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            number, at = _varint(data, at)
            yield key >> 3, number
            continue
        if key & 7 not in (1, 2, 5):
            raise ProviderError("its footer is not a message of Protocol Buffers")
        size, at = _varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
    raise ProviderError("its footer ends in a number")
