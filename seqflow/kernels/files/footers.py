"""Read the footers of Parquet files, in Thrift's compact protocol."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.error import KernelError, damaged
from seqflow.kernels.forms import BYTES

_VARINT_BITS = 70


def read_struct(content: bytes, spans: dict[int, bytes] | None = None) -> dict[int, Any]:
    """Return the struct at the start of the content: values by field number, nested structs likewise, lists as lists.

    The bytes of each value are put into `spans`. Raises ValueError for content that is cut off or malformed.
    """
    try:
        return _ThriftStruct(content).struct(spans)
    except (IndexError, RecursionError) as error:
        raise ValueError(f"a Thrift struct is cut off or nested too deep: {error}") from error


class _ThriftStruct:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def struct(self, spans: dict[int, bytes] | None = None) -> dict[int, Any]:
        """Return the values of a struct by field number; put the bytes of each value into `spans`."""
        fields: dict[int, Any] = {}
        content = self._content
        number = 0
        while head := content[self._at]:
            self._at += 1
            # compact protocol: the upper 4 bits are the difference to the last field number; 0 means that the number
            # follows
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            # a bool field has no value: its type says true (1) or false (2)
            start = self._at
            fields[number] = kind == 1 if kind <= 2 else self._value(kind)
            if spans is not None:
                spans[number] = content[start : self._at]
        self._at += 1
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in (9, 10):
            head = self._byte()
            # the upper 4 bits are the size of a list, 15 means that the size follows
            size = head >> 4 if head >> 4 < 15 else self._unsigned()
            return [self._value(head & 15) for _ in range(size)]
        if kind == 12:
            return self.struct()
        if kind == 7:
            return self._bytes(8)
        if kind in (1, 2, 3):
            return self._byte()
        raise ValueError(f"a Thrift struct has a field of type {kind}")

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        self._at += size
        return self._content[self._at - size : self._at]

    def _unsigned(self) -> int:
        at = self._at
        part = self._content[at]
        if part < 128:
            self._at = at + 1
            return part
        number = shift = 0
        while part >= 128:
            if shift > _VARINT_BITS:
                raise ValueError("a Thrift struct has a number of more than 64 bits")
            number |= (part & 127) << shift
            shift += 7
            at += 1
            part = self._content[at]
        self._at = at + 1
        return number | part << shift

    def _integer(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)


__all__ = ["read_footer", "read_footers"]

_SCHEMA, _NUM_ROWS, _ROW_GROUPS, _METADATA, _WRITER, _COLUMN_ORDERS = range(2, 8)
_COLUMNS, _COLUMN_METADATA, _ROWS_OF_GROUP = 1, 3, 3
_DESCRIBING = (_SCHEMA, _METADATA, _WRITER, _COLUMN_ORDERS)
_ENCODINGS, _NUM_VALUES, _UNCOMPRESSED_BYTES, _STORED_BYTES, _DATA_PAGE, _DICTIONARY_PAGE = 2, 5, 6, 7, 9, 11
_STATISTICS, _SIZE_STATISTICS = 12, 16
_TEXT_BYTES, _DEFINITION_LEVELS = 1, 3
_NULL_COUNT, _MAXIMUM, _MINIMUM = 3, 5, 6
_MOST_ENCODINGS = 63
"""Encodings with numbers below this are distinguished; the format defines ten."""


_KNOWN = frozenset(range(1, 8))
"""Fields of a file that is not encrypted."""
_OF_FILE, _OF_GROUP, _OF_COLUMN, _OF_METADATA = {1, 2, 3, 4}, {1, 2, 3}, {2, 3}, {1, 2, 3, 4, 5, 6, 7, 9}
"""Fields that the format demands."""


@kernel(footer=BYTES)
def read_footer(footer: Array) -> tuple[bytes, Array, Array, Array, bytes]:
    """Return what a footer says of its schema, row groups and column chunks.

    uint8 footer[n] -> bytes description, int64 rows[groups], int64 counts[groups], int64 chunks[sum(counts), 9],
    bytes limits

    Files with equal descriptions have equal schemas, metadata, writers and orders of columns; it is empty for a
    footer that lacks what the format demands, whose row groups have not as many rows as the file, or with keys of
    encryption. `rows` has -1 where a row group does not say its rows. Columns of `chunks`: the number of values,
    including nulls and empty lists; uncompressed bytes; bytes of all texts, or -1 if the writer has not counted them;
    the encodings of its pages, as a bit mask; the number of nulls, or -1; the place of its first byte in the file,
    and its bytes there, negative if unknown; and the bytes of its smallest and largest value, or -1 if they are
    unknown or the order of values is not declared. `limits` has these values, one after another.

    Raises KernelError for a footer in which these numbers are damaged.
    """
    spans: dict[int, bytes] = {}
    try:
        content = read_struct(bytes(footer), spans)
        groups = content.get(_ROW_GROUPS, [])
        columns = [[column[_COLUMN_METADATA] for column in group[_COLUMNS]] for group in groups]
        found = [[_chunk(metadata) for metadata in of_group] for of_group in columns]
        rows = [_integer(group.get(_ROWS_OF_GROUP, -1)) for group in groups]
        num_rows = _integer(content.get(_NUM_ROWS, -1))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged("footer", f"{type(error).__name__}: {error}") from None
    is_complete = (
        _OF_FILE <= content.keys() <= _KNOWN
        and min(rows, default=0) >= 0
        and sum(rows) == num_rows
        and all(group.keys() >= _OF_GROUP for group in groups)
        and all(column.keys() >= _OF_COLUMN for group in groups for column in group[_COLUMNS])
        and all(metadata.keys() >= _OF_METADATA for of_group in columns for metadata in of_group)
    )
    described = [bytes([field]) + spans[field] for field in spans if field in _DESCRIBING]
    counts = np.array([len(group) for group in found], np.int64)
    limits = [
        limit if _COLUMN_ORDERS in content else None
        for group in found
        for _, *ends in group
        for limit in ends
    ]
    sizes = np.array([-1 if limit is None else len(limit) for limit in limits], np.int64).reshape(-1, 2)
    numbers = np.array([chunk for group in found for chunk, *_ in group], np.int64).reshape(-1, 7)
    return (
        b"".join(described) if is_complete else b"",
        np.array(rows, np.int64),
        counts,
        np.concatenate([numbers, sizes], axis=1),
        b"".join(filter(None, limits)),
    )


_TAIL, _TAIL_BYTES = 8, 64 << 10
"""Bytes at the end of a file, the size of the footer and a magic word; bytes that are read of each file."""


@kernel()
def read_footers(paths: Sequence[bytes]) -> tuple[tuple[bytes, ...], Array, Array, Array, bytes]:
    """Return what the footers of many files say, as `read_footer` returns it.

    paths[n] -> bytes descriptions[kinds], int64 sizes[n, 4], int64 rows[groups], int64 chunks[leaves, 9],
    bytes limits

    `descriptions` has each once. Columns of `sizes`: the number of the description, row groups, columns of each row
    group, and bytes of `limits`. The first is -1, and the others are 0, for a file that cannot be read, is damaged,
    has no description, row groups of different numbers of columns, or a footer that is not in its last 64 KiB.
    Several threads read at a time, without Python's lock.
    """
    kinds: dict[bytes, int] = {}
    sizes, found = [], []
    for path in paths:
        try:
            description, rows, counts, chunks, limits = read_footer(_short_footer(path))
        except (OSError, KernelError):
            description = b""
        if not description or len({*counts.tolist()}) > 1:
            sizes.append((-1, 0, 0, 0))
            continue
        sizes.append(
            (kinds.setdefault(description, len(kinds)), len(rows), max(counts, default=0), len(limits))
        )
        found.append((rows, chunks, limits))
    nothing = np.zeros(0, np.int64)
    return (
        tuple(kinds),
        np.array(sizes, np.int64).reshape(-1, 4),
        np.concatenate([nothing, *(rows for rows, _, _ in found)]),
        np.concatenate([nothing.reshape(0, 9), *(chunks for _, chunks, _ in found)]),
        b"".join(limits for _, _, limits in found),
    )


def _short_footer(path: bytes) -> Array:
    """Return the footer that is in the last bytes of a file; empty if it is not."""
    with open(path, "rb", buffering=0) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        tail = file.read()
    return footer_in(tail)


def footer_in(tail: Any) -> Array:
    """Return the footer at the end of a file, without its size and the magic word; empty if these are wrong."""
    content = np.frombuffer(tail, np.uint8)
    size = int.from_bytes(content[-_TAIL:-4].tobytes(), "little")
    start = len(content) - _TAIL - size
    return content[start:-_TAIL] if start >= 0 and content[-4:].tobytes() == b"PAR1" else content[:0]


def _chunk(metadata: dict[int, Any]) -> tuple[tuple[int, ...], bytes | None, bytes | None]:
    """Return the numbers of a column chunk, and its smallest and largest value."""
    sizes = metadata.get(_SIZE_STATISTICS, {})
    for count in sizes.get(_DEFINITION_LEVELS, ()):
        _count(count)  # not used here, but a negative count shows that the footer is damaged
    text_bytes = sizes.get(_TEXT_BYTES)
    encodings = {int(one) for one in metadata.get(_ENCODINGS, ())}
    statistics = metadata.get(_STATISTICS, {})
    nulls = statistics.get(_NULL_COUNT)
    data, dictionary = (_integer(metadata.get(page, -1)) for page in (_DATA_PAGE, _DICTIONARY_PAGE))
    numbers = (
        _count(metadata[_NUM_VALUES]),
        _count(metadata[_UNCOMPRESSED_BYTES]),
        -1 if text_bytes is None else _count(text_bytes),
        sum(1 << one for one in encodings if 0 <= one < _MOST_ENCODINGS),
        -1 if nulls is None else _count(nulls),
        dictionary if 0 < dictionary < data else data,
        _integer(metadata.get(_STORED_BYTES, -1)),
    )
    return numbers, _limit(statistics.get(_MINIMUM)), _limit(statistics.get(_MAXIMUM))


def _limit(value: Any) -> bytes | None:
    if value is not None and not isinstance(value, bytes):
        raise ValueError(f"found {value!r}, expected bytes")
    return value


def _count(number: Any) -> int:
    if _integer(number) < 0:
        raise ValueError(f"found {number!r}, expected a count")
    return int(number)


def _integer(number: Any) -> int:
    if not isinstance(number, int) or not -(2**63) <= number < 2**63:
        raise ValueError(f"found {number!r}, expected an integer")
    return number
