"""The footer of a Parquet file: its row groups and column chunks.

pyarrow ends the process when it is asked for a column chunk whose entry in the footer is damaged, so the entries are
read here.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.errors import DamagedFileError, ProviderError
from seqflow.files.ahead import Span
from seqflow.files.interface import Entry, Files
from seqflow.files.uris import is_uri
from seqflow.fork_locks import ForkLock
from seqflow.kernels.arrays import Array
from seqflow.kernels.files.footers import footer_in

_TAIL, _TAIL_BYTES = 8, 64 << 10
"""Bytes at the end of a file, the size of the footer and a magic word; bytes that are read at once."""
_NUM_VALUES, _UNCOMPRESSED_BYTES, _TEXT_BYTES, _ENCODINGS, _NULL_COUNT, _START, _STORED_BYTES = range(7)
_TOGETHER = 256
"""Files whose footers are read at once: each takes 64 KiB of its file at most."""
_MINIMUM_SIZE = 7
"""Column of the bytes of the smallest value; that of the largest one follows."""

DICTIONARY_ENCODINGS, PREFIX_ENCODING = 1 << 2 | 1 << 8, 1 << 7
"""Encodings that write the common parts of texts once: equal texts (dictionaries), or equal beginnings."""


class Statistics(NamedTuple):
    """Statistics of the values of a column chunk, as the format stores them; None if they are missing."""

    minimum: bytes | None
    """No value is smaller, except NaN."""
    maximum: bytes | None
    null_count: int | None


@dataclass(frozen=True)
class ColumnChunks:
    """Leaf columns of each row group of a file: int64 [row groups, leaves]."""

    chunks: Array
    """int64 [row groups, leaves, 9], as `kernels.read_footer` returns them."""
    limits: bytes = b""
    """Smallest and largest values of all column chunks, concatenated."""

    @property
    def num_values(self) -> Array:
        """Number of values, nulls included, plus one for each empty list."""
        return self.chunks[..., _NUM_VALUES]

    @property
    def uncompressed_bytes(self) -> Array:
        return self.chunks[..., _UNCOMPRESSED_BYTES]

    @property
    def text_bytes(self) -> Array:
        """Bytes of all texts; -1 for other types, and if the writer has not counted them."""
        return self.chunks[..., _TEXT_BYTES]

    @property
    def has_prefixes(self) -> Array:
        """bool: whether texts are stored without the prefix that they share with the text before."""
        prefixed: Array = self.chunks[..., _ENCODINGS] & PREFIX_ENCODING != 0
        return prefixed

    @cached_property
    def tells_text_bytes(self) -> Array:
        """bool: whether texts take at most as many bytes as `uncompressed_bytes` or `text_bytes` says.

        If texts are stored without shared prefixes, `text_bytes` counts only the rest of each.
        """
        is_plain = self.chunks[..., _ENCODINGS] & DICTIONARY_ENCODINGS == 0
        told: Array = ~self.has_prefixes & ((self.text_bytes >= 0) | is_plain)
        return told

    def spans(self, group: int, leaves: Any, size: int) -> list[Span]:
        """Return where column chunks of a row group lie in a file of this size; raise DamagedFileError."""
        starts, stored = self.chunks[group, leaves, _START], self.chunks[group, leaves, _STORED_BYTES]
        if ((starts < 0) | (stored < 0) | (stored > size - starts)).any():
            raise DamagedFileError(f"a damaged footer: a chunk of row group {group} lies outside the file")
        return list(zip(starts.tolist(), (starts + stored).tolist(), strict=True))

    @property
    def serialized_size(self) -> int:
        """Bytes that a cache counts."""
        return self.chunks.nbytes + len(self.limits)

    @cached_property
    def _starts(self) -> Array:
        """int64 [row groups, leaves, 2]: positions of each column chunk's minimum and maximum in `limits`."""
        sizes = np.maximum(self.chunks[..., _MINIMUM_SIZE:], 0)
        starts: Array = (np.cumsum(sizes) - sizes.reshape(-1)).reshape(sizes.shape)
        return starts

    def statistics(self, group: int, leaf: int) -> Statistics:
        """Return the statistics of a column chunk."""
        nulls, sizes = (
            self.chunks[group, leaf, _NULL_COUNT],
            self.chunks[group, leaf, _MINIMUM_SIZE:].tolist(),
        )
        starts = self._starts[group, leaf].tolist()
        low, high = (
            None if size < 0 else self.limits[start : start + size]
            for start, size in zip(starts, sizes, strict=True)
        )
        return Statistics(low, high, None if nulls < 0 else int(nulls))


class Footer(NamedTuple):
    """The contents of a footer, as `kernels.read_footer` returns them."""

    path: str
    description: bytes
    """Files with equal ones have equal schemas and metadata; empty if pyarrow may refuse the footer."""
    rows: Array
    """int64: rows of each row group."""
    counts: list[int]
    """Columns of each row group."""
    chunks: Array
    limits: bytes

    def column_chunks(self, num_row_groups: int, num_leaves: int) -> ColumnChunks:
        """Return the column chunks of each row group; raise ProviderError for other counts than expected."""
        if self.counts != [num_leaves] * num_row_groups:
            raise ProviderError(
                f"{self.path} has a damaged footer: "
                f"not every one of its {num_row_groups} row groups has {num_leaves} columns"
            )
        return ColumnChunks(
            self.chunks.reshape(num_row_groups, num_leaves, self.chunks.shape[1]), self.limits
        )


def read_footer(path: str, tail: bytes | pa.Buffer) -> Footer:
    """Return what the footer at the end of a file says; raise ProviderError if it is damaged."""
    try:
        found = kernels.read_footer(footer_in(tail))
    except (OSError, ValueError) as error:
        raise ProviderError(f"{path} has a damaged footer: {error}") from error
    description, rows, counts, chunks, limits = found
    return Footer(path, description, rows, counts.tolist(), chunks, limits)


def read_footers(paths: Sequence[str]) -> Iterator[Footer | None]:
    """Yield the footer of each file of this machine, read many at a time; None for one that must be read alone."""
    for at in range(0, len(paths), _TOGETHER):
        some = paths[at : at + _TOGETHER]
        descriptions, sizes, rows, chunks, limits = kernels.read_footers([*map(os.fsencode, some)])
        row = chunk = limit = 0
        for path, (kind, groups, leaves, size) in zip(some, sizes.tolist(), strict=True):
            if kind < 0:
                yield None
                continue
            of_rows, row = rows[row : row + groups], row + groups
            of_chunks, chunk = chunks[chunk : chunk + groups * leaves], chunk + groups * leaves
            of_limits, limit = limits[limit : limit + size], limit + size
            yield Footer(path, descriptions[kind], of_rows, [leaves] * groups, of_chunks, of_limits)


def footer_tail(store: Files, path: str) -> bytes | pa.Buffer:
    """Return the end of a file with its footer; raise DamagedFileError for one that is gone from a store."""
    if not is_uri(path):
        return _local_tail(path)
    entry = store.entry(path)
    if entry is None:
        raise DamagedFileError(f"{path} is gone")
    tail = store.read(path, tail_of(entry), entry.size)
    needed = _needed(tail, entry.size)
    return tail if tail.size >= needed else store.read(path, entry.size - needed, entry.size)


def _local_tail(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        needed = _needed(tail, size)
        if len(tail) < needed:
            file.seek(size - needed)
            tail = file.read()
        return tail


def _needed(tail: bytes | pa.Buffer, size: int) -> int:
    """Return the number of bytes at the end of a file of this size that have its footer."""
    return min(size, _TAIL + int.from_bytes(bytes(tail[-_TAIL:])[:-4], "little"))


def tail_of(entry: Entry) -> int:
    """Return the first byte of the part of a store's file that is read when it is opened."""
    return max(0, entry.size - _TAIL_BYTES)


MOST_BYTES = 64 << 20
"""Approximate limit of the bytes of cached footers."""
_GROWTH = 8
"""Approximate bytes in memory for each byte of a footer in the file, as pyarrow keeps it."""
CHUNKS_GROWTH = 2
"""Approximate bytes in memory for each byte of `ColumnChunks` of a small file."""


class FooterCache:
    """Footers of files, by path. Threads may share it; another process starts with an empty one.

    `growth` is the bytes that a footer takes in memory for each of its `serialized_size`.
    """

    def __init__(self, growth: int = _GROWTH) -> None:
        self._growth = growth
        self._footers: OrderedDict[str, Any] = OrderedDict()
        self._bytes = 0
        self._lock = ForkLock()

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return FooterCache, (self._growth,)

    def get(self, path: str, read: Callable[[], Any]) -> Any:
        """Return the footer of a file; `read` it if it is not cached."""
        found = self.find(path)
        if found is None:
            # without the lock: threads read different footers at once, and reading one twice does no harm
            found = read()
            self.keep(path, found)
        return found

    def find(self, path: str) -> Any:
        """Return the footer of a file; None if it is not cached."""
        with self._lock:
            found = self._footers.get(path)
            if found is not None:
                self._footers.move_to_end(path)
            return found

    def keep(self, path: str, footer: Any) -> None:
        """Keep a footer, and drop those that were not used for the longest time if there are too many."""
        with self._lock:
            if path not in self._footers:
                self._bytes += footer.serialized_size * self._growth
            self._footers[path] = footer
            # the newest stays even if it is larger than the limit: the caller is about to use it
            while self._bytes > MOST_BYTES and len(self._footers) > 1:
                _, oldest = self._footers.popitem(last=False)
                self._bytes -= oldest.serialized_size * self._growth
