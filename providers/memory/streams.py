"""Streams of record batches that can be read once: readers, cursors, objects with `__arrow_c_stream__`."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn
from weakref import WeakValueDictionary

import pyarrow as pa

from seqflow.errors import ProviderError
from seqflow.providers.other_packages import foreign_errors
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Wanted
from seqflow.record.decoded_sizes import decoded_nbytes
from seqflow.record.selection import ALL, Picked, Selection, Table, selection
from seqflow.record.validation import validated


@dataclass(frozen=True, slots=True)
class OneShotSource(Source):
    """Stream that is read once: iterating over blocks fetches each batch, which is kept until it is read."""

    reader: Any
    selection: Selection
    origin: str
    started: set[bool] = field(default_factory=set)
    fetched: dict[int, pa.RecordBatch] = field(default_factory=dict)
    unread: dict[int, int] = field(default_factory=dict)
    """Number of rows not yet read of each fetched batch that is read in slices."""
    read_once: ClassVar[bool] = True
    paths: ClassVar[tuple[str, ...]] = ()
    slicing = "any"

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        if self.started:
            raise ProviderError(f"{self.origin} is a stream, which {_ONCE}")
        self.started.add(True)
        return self._fetch(self.selection.to(schema))

    def _fetch(self, selection: Selection) -> Iterator[Block]:
        index = 0
        while True:
            place = f"{self.origin}, batch {index}"
            try:
                with foreign_errors(f"{place} can't be read"):
                    batch = self.reader.read_next_batch()
            except StopIteration:
                return
            batch = selection.apply(validated(batch, place))
            self.fetched[index] = batch
            yield Block(self.origin, index, batch.num_rows, decoded_nbytes(batch))
            index += 1

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema, rows = wanted.block, wanted.schema, wanted.rows
        if block.index not in self.fetched:
            raise ProviderError(f"batch {block.index} of {self.origin} was read before, and a stream {_ONCE}")
        batch = self.fetched[block.index]
        found = batch if rows is None else batch.slice(rows.start, len(rows))
        self.unread[block.index] = self.unread.get(block.index, batch.num_rows) - found.num_rows
        if self.unread[block.index] <= 0:
            del self.fetched[block.index], self.unread[block.index]
        yield Selection(batch.schema, batch.schema, schema).apply(found)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self.origin} is a stream, which cannot be pickled: it {_ONCE}")


_ONCE = (
    "can be read once\n"
    "collect it into a table first, pyarrow.table(stream), or pass a function that makes a new one each time"
)


def open_stream(obj: Any, picked: Picked = ALL) -> Provider:
    """Return a provider of the batches of an object with `__arrow_c_stream__`, which can be read once."""
    origin = f"a {type(obj).__name__}"
    if hasattr(obj, "__next__"):
        _check_new(obj, origin)
    try:
        reader = pa.RecordBatchReader.from_stream(obj)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ProviderError(f"{origin} is not a stream of record batches: {error}") from error
    return open_reader(reader, origin, picked)


_opened: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""Readers and iterators that were opened, by id: a second stream of one would have no rows, without an error."""


def _check_new(obj: Any, origin: str) -> None:
    # compared by identity, too: an id is used again after its object is gone
    if _opened.get(id(obj)) is obj:
        raise ProviderError(f"{origin} was opened before, and a stream {_ONCE}")
    with suppress(TypeError):  # its type does not allow weak references
        _opened[id(obj)] = obj


def open_reader(reader: Any, origin: str, picked: Picked = ALL) -> Provider:
    """Return a provider of the batches of a reader."""
    chosen = selection(reader.schema, *picked)
    return Provider("stream", origin, chosen.schema, OneShotSource(reader, chosen, origin))
