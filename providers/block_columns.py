"""Blocks in columns: a few bytes for each of millions; a Block is made when one is asked for."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, overload

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.providers.source import Block

UNKNOWN_SIZE = -1
# sizes above it are kept in `others`: a damaged footer may claim more bytes than an int64 holds
_MOST = 1 << 62
_AT_ONCE = 1 << 12
"""Number of blocks that are made together."""


T = TypeVar("T")


class LazySequence(Sequence[T]):
    """Items that are made when they are asked for."""

    __slots__ = ()

    @abstractmethod
    def item(self, at: int) -> T:
        """Make an item."""

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...

    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        return (
            [self.item(one) for one in range(*at.indices(len(self)))]
            if isinstance(at, slice)
            else self.item(at)
        )

    def __iter__(self) -> Iterator[T]:
        return map(self.item, range(len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class BlockColumns(LazySequence[Block]):
    """The blocks of a source, in order."""

    origins: tuple[str, ...]
    """The files."""
    file: Array
    """int32: index of each block's file in `origins`."""
    indices: Array
    """int32: index of each block in its file."""
    rows: Array
    """int64: rows, or `UNKNOWN_SIZE`."""
    nbytes: Array
    """int64: bytes in memory, or `UNKNOWN_SIZE`."""
    others: dict[int, Block] = field(default_factory=dict)
    """Blocks that do not fit into these columns, by their number: of a subclass, or too large."""

    @staticmethod
    def of(blocks: Iterable[Block]) -> BlockColumns:
        """Collect blocks into columns."""
        if isinstance(blocks, BlockColumns):
            return blocks
        files: dict[str, int] = {}
        file, index, rows, nbytes = array("i"), array("i"), array("q"), array("q")
        others: dict[int, Block] = {}
        for number, block in enumerate(blocks):
            file.append(files.setdefault(block.origin, len(files)))
            index.append(block.index)
            rows.append(UNKNOWN_SIZE if block.num_rows is None else block.num_rows)
            nbytes.append(UNKNOWN_SIZE if block.nbytes is None else min(block.nbytes, _MOST))
            if type(block) is not Block or block.of is not None or (block.nbytes or 0) > _MOST:
                others[number] = block
        return BlockColumns(
            tuple(files),
            np.array(file, np.int32),
            np.array(index, np.int32),
            np.array(rows, np.int64),
            np.array(nbytes, np.int64),
            others,
        )

    @staticmethod
    def of_files(files: Iterable[tuple[str, Array, Array]]) -> BlockColumns:
        """Return the blocks of files, from each file's path with the rows and the bytes of all its blocks."""
        origins, rows, nbytes = [], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for path, of_rows, of_bytes in files:
            origins.append(path)
            rows.append(of_rows)
            nbytes.append(of_bytes)
        counts = np.array([len(one) for one in rows[1:]], np.int64)
        # the number of each file's first block, so that subtracting it counts the blocks of each file from 0
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        return BlockColumns(
            tuple(origins),
            np.repeat(np.arange(len(origins), dtype=np.int32), counts),
            (np.arange(counts.sum()) - starts).astype(np.int32),
            np.concatenate(rows),
            np.concatenate(nbytes),
        )

    def __len__(self) -> int:
        return len(self.file)

    def item(self, at: int) -> Block:
        if self.others and (other := self.others.get(at)) is not None:
            return other
        rows, nbytes = int(self.rows[at]), int(self.nbytes[at])
        return Block(
            self.origins[self.file[at]],
            int(self.indices[at]),
            None if rows == UNKNOWN_SIZE else rows,
            None if nbytes == UNKNOWN_SIZE else nbytes,
        )

    def __iter__(self) -> Iterator[Block]:
        if self.others:
            yield from LazySequence.__iter__(self)
            return
        # some at a time: taking numbers out of an array one by one takes twice as long
        for start in range(0, len(self), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            columns = self.file[part], self.indices[part], self.rows[part], self.nbytes[part]
            for file, index, rows, nbytes in zip(*(column.tolist() for column in columns), strict=True):
                yield Block(
                    self.origins[file],
                    index,
                    None if rows == UNKNOWN_SIZE else rows,
                    None if nbytes == UNKNOWN_SIZE else nbytes,
                )

    def uncounted(self) -> BlockColumns:
        """Return these blocks with unknown numbers of rows, except empty ones."""
        return replace(self, rows=np.where(self.rows > 0, UNKNOWN_SIZE, self.rows))

    def with_others(self, others: dict[int, Block]) -> BlockColumns:
        """Return these blocks with some of them replaced, by their number."""
        if not others:
            return self
        rows, nbytes = self.rows.copy(), self.nbytes.copy()
        for number, block in others.items():
            rows[number] = UNKNOWN_SIZE if block.num_rows is None else block.num_rows
            nbytes[number] = UNKNOWN_SIZE if block.nbytes is None else min(block.nbytes, _MOST)
        return BlockColumns(self.origins, self.file, self.indices, rows, nbytes, {**self.others, **others})
