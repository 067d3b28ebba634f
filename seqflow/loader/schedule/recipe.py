"""The recipe of an epoch: all settings that decide which batches there are, and the windows they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.loader.plans.batches import WindowBatches, no_batches
from seqflow.loader.plans.pad import Pad
from seqflow.loader.plans.permutation import key_of, permutation
from seqflow.loader.plans.plan import BatchPlan
from seqflow.loader.plans.planned_lengths import planned_lengths
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.schedule.order import BATCHES, BLOCKS, ROWS, Shuffle
from seqflow.loader.schedule.windows import BlockSlice, Window, cut_windows, slices_of
from seqflow.net import Net
from seqflow.providers import Block, Provider
from seqflow.record import Record, Valid

Transform = Callable[[Record], Mapping[str, np.ndarray[Any, Any]]]
"""A Python function that prepares the rows of a block, or changes a batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """The settings that decide which batches there are: a window's depend on them, the epoch and the window alone."""

    source: Provider
    columns: Sequence[str] | None
    prepare: Net | Transform | None
    net: Net | Transform | None
    batch: BatchPlan
    pad: Mapping[str, Pad]
    shuffle: Shuffle | None
    window: int
    """Bytes of a window."""
    streams: int
    steps_per_epoch: int | None
    fill: Any
    valid: Valid
    bad_rows: str
    """The name of the policy for rows that cannot be used."""
    memory: int
    """Bytes that may be in memory at once."""

    @property
    def keeps_going(self) -> bool:
        """Whether bad rows are left out; else they are errors."""
        return self.bad_rows != "raise"

    def slices(self) -> Iterator[BlockSlice]:
        """All blocks in the order of the source, the large ones sliced."""
        sliced = self.source.slices_blocks and self.shuffle is None
        for number, block in enumerate(self.source.blocks()):
            yield from slices_of(number, block, self.window, sliced=sliced)

    def is_sliced(self, block: Block) -> bool:
        """Whether a block is read in slices."""
        sliced = self.source.slices_blocks and self.shuffle is None
        return sliced and (block.nbytes or 0) > self.window

    def windows(self, slices: Sequence[BlockSlice], epoch: int) -> list[Window]:
        """The windows of an epoch: blocks in their order, cut where a window is full.

        Where rows are shuffled, blocks are in a random order, but inside a window in that of the source: rows are
        permuted there, and reading goes forward through a file.
        """
        if self.shuffle is None:
            return list(cut_windows(slices, self.window))
        slices = [slices[i] for i in permutation(len(slices), self.key(epoch, BLOCKS))]
        return [window.in_order() for window in cut_windows(slices, self.window)]

    def key(self, epoch: int, *numbers: int) -> int:
        """The key of random numbers for a purpose: never of a rank or thread, so that all make the same batches."""
        return key_of(0 if self.shuffle is None else self.shuffle.seed, epoch, *numbers)

    def seed(self, own: int, *, epoch: int, purpose: int, numbers: tuple[int, int]) -> int:
        """The seed of a random op of `prepare` or `net`, from its own."""
        return key_of(own, self.key(epoch, purpose, *numbers))

    def order(self, window: Window, rows: int, epoch: int) -> Array | None:
        """The order of a window's rows; None where it is that of the source."""
        if self.shuffle is None:
            return None
        return permutation(rows, self.key(epoch, ROWS, window.number))

    def planned_lengths(self, record: Record) -> str | None:
        """The lengths that batches of such records are planned on; BatchPlanError where there must be some."""
        plan = self.batch
        return planned_lengths(record, plan.lengths, type(plan).__name__ if plan.needs_lengths else None)

    def plan(self, rows: WindowRows, lengths: str | None, window: Window, epoch: int) -> WindowBatches:
        """The batches of a window whose rows are in order. Only their lengths are looked at."""
        if not rows.records:
            return no_batches()
        key = self.key(epoch, BATCHES, window.number)
        return self.batch.of_window(rows, lengths, key, self.shuffle is not None, window.number)
