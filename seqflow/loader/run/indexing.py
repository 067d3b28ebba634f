"""The lengths index of a loader: made during an epoch or by a pass over the data, kept in a file, read again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.loader.order.index import (
    FileBlocks,
    LengthsIndex,
    Measured,
    SliceKey,
    check_is_index,
    read_index,
    reusable_lengths,
    write_index,
)
from seqflow.loader.order.recipe import Listing, Recipe
from seqflow.loader.order.windows import BlockSlice
from seqflow.loader.run.windows import WindowMaker
from seqflow.loader.run.workers import Task, Workers
from seqflow.net import Net
from seqflow.progress import Stage, stage


class Indexing:
    """The lengths index in a file. `key` gives what the lengths depend on, when it is first needed."""

    def __init__(
        self,
        path: Path,
        recipe: Recipe,
        listing: Listing,
        threads: int,
        key: Callable[[], dict[str, Any]],
        files: Callable[[], list[FileBlocks] | None],
    ) -> None:
        self.path = path
        self._recipe, self._listing, self._threads, self._key = recipe, listing, threads, key
        self._files = files
        """Gives the files of the data with their blocks, by which a later index knows them again."""
        self.num_read_blocks = 0
        """Blocks that were read for the index, since no older one had their lengths."""
        self.lengths: LengthsIndex | None = None
        """The lengths of all prepared rows, once they were read."""
        self._measured: Measured | None = None
        """The lengths of what was read so far, where there is no file yet."""

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"lengths": None, "_measured": None}

    def read(
        self,
        *,
        anew: bool = False,
        update: bool = False,
        measure: Callable[[Measured], None] | None = None,
    ) -> LengthsIndex:
        """The lengths of all prepared rows, from the file, which is made where it is not there.

        `anew` makes it in any case, and takes the place of an older index once it is whole; so does `update`, which
        reads only files that the older one has not, or that have changed. `measure` has others read the data for it.
        OpError where the file is no index, or of other data or settings: it names the difference.
        """
        if self.lengths is None or anew or update:
            self._check_indexable()
            if anew or update:
                check_is_index(self.path)
            if anew or update or not self.path.exists():
                self._measured = Measured(self._listing.slices())
                if update:
                    self._measured.add_measured(self._reusable())
                self.num_read_blocks = len(
                    {one.number for one in self._listing.slices() if self._measured.lacks(one)}
                )
                (measure or self._read_all)(self._measured)
                self.keep()
            self.lengths = read_index(self.path, self._listing.slices(), self._key())
        return self.lengths

    def measured(self) -> Measured:
        """Takes the lengths of what an epoch reads: `keep` makes the index of them."""
        self._check_indexable()
        if self._measured is None:
            self._measured = Measured(self._listing.slices())
        return self._measured

    def keep(self) -> None:
        """Write the index, once all slices were measured."""
        measured = self._measured
        if measured is not None and measured.complete:
            write_index(self.path, self._listing.slices(), measured.lengths, self._key(), self._files())
            self._measured = None

    def _reusable(self) -> dict[SliceKey, Array]:
        """The lengths that an older index has of files that are the same."""
        files = self._files()
        if files is None or not self.path.exists():
            return {}
        return reusable_lengths(self.path, self._key(), files, self._listing.slices())

    def _read_all(self, measured: Measured) -> None:
        """Measure what was not yet, by one pass."""
        slices = [one for one in self._listing.slices() if measured.lacks(one)]
        maker = WindowMaker(self._recipe, self._listing, measured=measured)
        workers = Workers(self._threads)
        try:
            largest = max((one.nbytes for one in slices), default=1)
            ahead = max(1, self._recipe.memory // max(1, largest))
            tasks: deque[Task[None]] = deque()
            with stage(Stage("blocks", len({one.number for one in slices}))) as here:
                for _, of_block in groupby(slices, key=lambda one: one.number):
                    tasks.append(workers.submit(partial(_read_block, maker, list(of_block))))
                    while len(tasks) >= ahead:
                        tasks.popleft().result()
                        here.done += 1
                while tasks:
                    tasks.popleft().result()
                    here.done += 1
        finally:
            workers.close()

    def _check_indexable(self) -> None:
        if self._recipe.source.is_stream:
            raise OpError(
                "Loader: index: the source is a stream, whose blocks are not known before\n  read files instead"
            )
        if isinstance(self._recipe.prepare, Net) and self._recipe.prepare.is_random:
            raise OpError(
                "Loader: index: prepare draws random numbers, so that lengths differ from epoch to epoch"
            )


def _read_block(maker: WindowMaker, slices: Sequence[BlockSlice]) -> None:
    for one in slices:
        maker.read(one, 0)
