"""Read a block in consecutive slices, each of which continues where the last one ended."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from seqflow.fork_locks import ForkLock

Batches = Iterator[pa.RecordBatch]


@dataclass(slots=True)
class SliceReader:
    """The batches of one block, and the position up to which they were read."""

    batches: Batches | None = None
    row: int = 0
    """The first row of `rest`."""
    rest: pa.RecordBatch | None = None
    """Rows that were read and not yet returned."""
    lock: Any = field(default_factory=threading.Lock)


class SliceReaders:
    """The blocks that are being read in slices."""

    def __init__(self) -> None:
        self._readers: dict[Any, SliceReader] = {}
        self._lock = ForkLock(self._forget)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return SliceReaders, ()

    def _forget(self) -> None:
        self._readers = {}

    def forget(self, block: Any) -> None:
        """Forget what is left of a block, the first part of its keys."""
        with self._lock:
            for key in [key for key in self._readers if key[0] == block]:
                del self._readers[key]

    def read(
        self, block: Any, start: Callable[[], Batches], rows: range, num_rows: int
    ) -> list[pa.RecordBatch]:
        """Return some rows of a block of `num_rows`, fewer if it ends earlier; `start()` begins to read it."""
        # the lock of all readers is held for the look-up only: threads read different blocks at the same time
        with self._lock:
            reader = self._readers.setdefault(block, SliceReader())
        with reader.lock:
            # rows before the position are gone: a reader only goes forward, so the block is read from its start
            if reader.batches is None or reader.row > rows.start:
                reader.batches, reader.row, reader.rest = start(), 0, None
            try:
                found = list(_take(reader, rows))
            except BaseException:
                # some batches may be lost: the next slice must not continue here
                reader.batches = None
                raise
            if rows.stop >= num_rows:
                reader.batches = reader.rest = None
        if reader.batches is None:
            with self._lock:
                self._readers.pop(block, None)
        return found


def _take(reader: SliceReader, rows: range) -> Iterator[pa.RecordBatch]:
    while reader.row < rows.stop:
        batch = next(reader.batches, None) if reader.rest is None else reader.rest  # type: ignore[arg-type]
        if batch is None:
            return
        end = reader.row + batch.num_rows
        low, high = max(rows.start, reader.row), min(rows.stop, end)
        if low < high:
            yield batch.slice(low - reader.row, high - low)
        reader.rest = batch.slice(high - reader.row) if end > rows.stop else None
        reader.row = min(end, max(rows.stop, reader.row))
