"""The recipe of an epoch: all settings that decide its batches, and the blocks they are made from."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyarrow import types

from seqflow.byte_sizes import format_bytes
from seqflow.errors import BatchPlanError, OpError, OpTypeError, ProviderError
from seqflow.expression import Expression
from seqflow.files.interface import LOCAL, Files
from seqflow.files.uris import is_uri
from seqflow.kernels.arrays import Array
from seqflow.loader.order.conditions import RowCondition
from seqflow.loader.order.groups import order_of_groups
from seqflow.loader.order.windows import NO_SLICES, BlockSlice, Slices, Window, Windows, slices_of
from seqflow.loader.plans.plan import BatchPlan, WindowBatches, key_of, permutation
from seqflow.loader.plans.selection import lengths_of, planned_lengths
from seqflow.loader.plans.shares import Share
from seqflow.loader.plans.window_rows import Pad, WindowRows
from seqflow.net import Net
from seqflow.providers import Block, Provider
from seqflow.providers.formats.options import smaller_blocks
from seqflow.record import Record, Valid
from seqflow.record.from_arrow.reader import is_read
from seqflow.record.selection import leaf_types, select_schema

BLOCKS, ROWS, BATCHES, PREPARE, NET, STEPS, MEMBERS = range(7)
"""Purposes of random numbers, mixed into the keys so that no two purposes share numbers. Do not renumber them: the
order of rows would change, and saved states would resume at other rows."""


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Blocks in a random order each epoch, and rows in a random order inside each window.

    The order depends on `seed` and the epoch alone. A window that holds all rows is shuffled exactly. With `by`, not
    rows but groups are in a random order: the rows of a block with one value of this column follow each other, in
    their order. The end of a batch, or of a window, may divide a group.

    Args:
        seed: Seed of the order, from 0 to 2**64 - 1.
        by: Column of the source whose equal values make a group; null is a value like others. `prepare` must keep
            rows, and the batch plan their order. None shuffles single rows.
    """

    seed: int = 0
    by: str | None = None

    def __post_init__(self) -> None:
        check_seed("Shuffle", self.seed)
        if self.by is not None and not isinstance(self.by, str):
            raise OpTypeError(f"Shuffle: by is {self.by!r}, expected the name of a column")


def check_seed(place: str, seed: Any) -> None:
    """Raise OpError unless the seed is an integer of 64 bits."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        raise OpError(f"{place}: seed is {seed!r}, expected an integer from 0 to 2**64 - 1")


Transform = Callable[[Record], Mapping[str, np.ndarray[Any, Any]]]
"""A Python function that prepares the rows of a block, or changes a batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """The settings that decide the batches: those of a window depend only on them, the epoch and the window."""

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
    """Name of the policy for rows that cannot be used."""
    memory: int
    """Largest number of bytes in memory at one time."""
    counted: set[str] = field(default_factory=set)
    """Tensors of prepared rows that totals of steps are made of."""
    keep: tuple[RowCondition, ...] = ()
    """Conditions on prepared rows; rows for which one is false are left out."""
    require: tuple[RowCondition, ...] = ()
    """Conditions on prepared rows that are kept; rows for which one is false are bad rows."""
    member: int | None = None
    """Number of the source in a mix; None if it is not in a mix."""
    of_rows: bool = False
    """Whether the source gives rows, not batches, to a mix."""
    shares: tuple[Share, ...] = ()
    """Columns of batches that rows share."""
    grouped: tuple[str, ...] | None = None
    """Path of the column whose values make groups of rows; None if single rows are shuffled."""

    @property
    def keeps_going(self) -> bool:
        """Whether bad rows are omitted instead of raising an error."""
        return self.bad_rows != "raise"

    @property
    def omits_rows(self) -> bool:
        """Whether rows may be omitted after they are read: bad rows, or rows that `keep` leaves out."""
        return self.keeps_going or bool(self.keep)

    @property
    def functions(self) -> list[Transform]:
        """The Python functions among `prepare` and `net`, whose results are not known before they run."""
        return [one for one in (self.prepare, self.net) if one is not None and not isinstance(one, Net)]

    @property
    def tensors_read(self) -> set[str] | None:
        """The tensors of the source, or columns of them, that nets, plan and conditions read; None if all are read.

        Nulls in others make no row bad.
        """
        plan, found = self.batch, _read_by(self.net, None)
        if found is not None:
            if plan.needs_lengths and plan.lengths is None:
                return None  # the plan takes the only list column, which the rows tell
            of_conditions = {name for one in (*self.keep, *self.require) for name in one.net.inputs}
            of_shares = {
                *(name for one in self.shares for name in (*one.columns, one.key) if name is not None)
            }
            of_plan = {*filter(None, [plan.lengths]), *(plan.columns or ()), *plan.along, *self.pad}
            of_plan |= {*plan.shared_with}
            found |= of_plan | of_conditions | of_shares | self.counted
            if plan.balance is not None and plan.balance.cost is not None:
                found |= {*Expression(plan.balance.cost).inputs}
        return _read_by(self.prepare, found)

    def readable_columns(self) -> Sequence[str] | None:
        """Return the columns, without fields of type null that nothing reads: nothing tells their tensors."""
        schema = self.source.schema
        chosen = schema if self.columns is None else select_schema(schema, self.columns)
        leaves, read = [(".".join(path), kind) for path, kind in leaf_types(chosen)], self.tensors_read
        kept = [
            name
            for name, kind in leaves
            if not types.is_null(kind) or is_read(name.removesuffix(".values"), read)
        ]
        return self.columns if len(kept) == len(leaves) else kept

    def planned_slices(self) -> Slices:
        """Return all blocks in the order of the source in columns, the large ones sliced."""
        blocks = self.source.block_columns(counted=self._needs_counts, max_bytes=self.memory)
        # cutting a block into slices needs its rows, which formats such as CSV do not record
        large = np.flatnonzero(blocks.nbytes > self.window).tolist() if blocks.others else []
        counted = {number: self.source.counted(blocks[number], self.memory) for number in large}
        return Slices.of(blocks.with_others(counted), self.window, sliced=self.slices_large)

    def slices(self) -> Iterator[BlockSlice]:
        """Yield all blocks in the order of the source, the large ones sliced, one by one."""
        blocks = self.source.blocks(counted=self._needs_counts, max_bytes=self.memory)
        for number, block in enumerate(blocks):
            if (block.nbytes or 0) > self.window:
                block = self.source.counted(block, self.memory)
            yield from slices_of(number, block, self.window, sliced=self.slices_large)

    @property
    def _needs_counts(self) -> bool:
        """Whether batches run across windows if the rows of the windows are known."""
        return self.batch.rows_across is not None and not self.omits_rows

    @property
    def slices_large(self) -> bool:
        """Whether blocks that are larger than a window are read in slices."""
        return self.source.slices_blocks and self.shuffle is None

    def is_sliced(self, block: Block) -> bool:
        """Return whether a block is read in slices."""
        return self.slices_large and (block.nbytes or 0) > self.window

    def windows(self, slices: Slices, epoch: int) -> Windows:
        """Return the windows of an epoch: blocks in order, cut when a window is full.

        If rows are shuffled, blocks are in a random order, but inside a window in that of the source, so that a
        file is read forwards: rows are permuted there anyway.
        """
        order = None if self.shuffle is None else permutation(len(slices), self.key(epoch, BLOCKS))
        return Windows.cut(slices, order, self.window)

    def key(self, epoch: int, *numbers: int) -> int:
        """Return the key of random numbers for a purpose; it is independent of rank and thread, so that all
        make the same batches. The sources of a mix do not share numbers.
        """
        seed = 0 if self.shuffle is None else self.shuffle.seed
        return key_of(seed if self.member is None else key_of(seed, MEMBERS, self.member), epoch, *numbers)

    def seed(self, own: int, *, epoch: int, purpose: int, numbers: tuple[int, int]) -> int:
        """Return the seed of a random op of `prepare` or `net`, made from its own."""
        return key_of(own, self.key(epoch, purpose, *numbers))

    def order(self, window: Window, rows: int, epoch: int, groups: Sequence[Array]) -> Array | None:
        """Return the order of a window's rows; None if it is that of the source.

        `groups` are the numbers of the groups of the rows of each block, if groups are shuffled.
        """
        if self.shuffle is None:
            return None
        key = self.key(epoch, ROWS, window.number)
        return permutation(rows, key) if self.grouped is None else order_of_groups(groups, key)

    def planned_lengths(self, record: Record) -> str | None:
        """Return the lengths that batches of such records are planned on; raise BatchPlanError when required
        lengths are missing.
        """
        plan = self.batch
        if plan.columns is not None and plan.lengths == plan.columns[0]:
            # raises an error that names the column
            lengths_of(record, plan.columns, type(plan).__name__, self._elsewhere)
        found = planned_lengths(record, plan.lengths, type(plan).__name__ if plan.needs_lengths else None)
        if plan.cuts_rows and found is not None and found not in record.parents.values():
            raise BatchPlanError(
                f"{type(plan).__name__}: lengths = {found!r} has a number a row, and rows that are cut need a list "
                "column\n  TokenBudget and Buckets that cut nothing plan on such numbers"
            )
        return found

    def _elsewhere(self, column: str) -> str:
        """Return why the records that batches are planned on do not have a column of the source or of `net`."""
        if isinstance(self.net, Net) and column in self.net.assigned:
            return "net makes it, after batches are planned: make it in prepare; before, there are"
        if self.prepare is not None and column in self.source.schema.names:
            return "prepare does not return it, and batches are planned on what it returns:"
        return ""

    def plan(self, rows: WindowRows, lengths: str | None, window: Window, epoch: int) -> WindowBatches:
        """Return the batches of a window whose rows are in order. Only their lengths are read."""
        key = self.key(epoch, BATCHES, window.number)
        return self.batch.of_window(rows, lengths, key, window.number)


def _read_by(net: Net | Transform | None, later: set[str] | None) -> set[str] | None:
    """Return what is read before a net if `later` is read after it; None is all tensors."""
    if net is None:
        return later
    if not isinstance(net, Net):
        return None
    if net.returned is not None:
        return {*net.inputs}
    # without `return`, tensors that no step uses pass through
    return None if later is None else {*net.inputs, *later} - {*net.assigned}


Stamp = tuple[int, int]
"""Size of a file, and its modification time in nanoseconds."""


Stamps = Mapping[str, Stamp]
"""Size and modification time of files when their blocks were listed."""


def check_unchanged(stamps: Stamps, path: str, may_be_gone: bool) -> None:
    """Raise ProviderError when a file has changed since its blocks were listed, or is gone and may not be."""
    then = None if is_uri(path) else stamps.get(path)
    if then is not None and (now := stamp_of(path)) != then and not (now is None and may_be_gone):
        what = f"was written again, with {then[0]} bytes as before"
        if now is None or now[0] != then[0]:
            what = "is gone" if now is None else f"had {then[0]} bytes and has {now[0]} now"
        raise ProviderError(
            f"{path} changed while it was read: it {what}\n  make a new loader, and run again"
        )


class Listing:
    """The blocks of a source, listed once, in slices that fit into a window; size and modification time of its files.

    A stream has no listing: its blocks are not known before they come.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._slices: Slices | None = None
        self.stamps: dict[str, Stamp] = {}
        """Size and modification time of the files, once the blocks are listed."""

    def __reduce__(self) -> "tuple[type[Listing], tuple[Recipe]]":
        """Let another process list the blocks itself: its files may differ."""
        return Listing, (self._recipe,)

    def slices(self) -> Slices:
        """Return all blocks in the order of the source; raise OpError when rows are shuffled in windows smaller
        than a block.
        """
        if self._slices is None:
            recipe = self._recipe
            # before the blocks are listed: a file that changes in between is noticed when it is read
            stamps = {path: stamp_of(path, recipe.source.store) for path in recipe.source.files}
            self.stamps.update({path: stamp for path, stamp in stamps.items() if stamp is not None})
            slices = NO_SLICES if recipe.source.is_stream else recipe.planned_slices()
            if recipe.shuffle is not None:
                _check_fit(slices, recipe.window, recipe.source.kind)
            self._slices = slices
        return self._slices

    @property
    def is_known(self) -> bool:
        """Whether the blocks have been listed, so that asking for them costs nothing."""
        return self._slices is not None

    @property
    def file_sizes(self) -> dict[str, int]:
        """Bytes of each file when it was listed."""
        self.slices()
        return {path: size for path, (size, _) in self.stamps.items()}

    def stamps_of(self, paths: Iterable[str]) -> Stamps:
        """Return size and modification time of some files, to send to a worker."""
        self.slices()
        return {path: self.stamps[path] for path in paths if path in self.stamps}


def stamp_of(path: str, store: Files = LOCAL) -> Stamp | None:
    """Return size and modification time of a file; None if it does not exist.

    An object of a store has no time: each request for it names the version that was listed.
    """
    if is_uri(path):
        entry = store.entry(path)
        return None if entry is None else (entry.size, 0)
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _check_fit(slices: Slices, window: int, kind: str) -> None:
    """Raise OpError for a block of a source of this kind that does not fit into a window."""
    largest = slices[int(slices.nbytes.argmax())] if len(slices) else None
    if largest is not None and largest.nbytes > window:
        raise OpError(
            f"Loader: {largest.block.origin}, block {largest.block.index} has "
            f"{format_bytes(largest.nbytes)}, but rows are shuffled in windows of {format_bytes(window)}",
            advice=f"raise window to {largest.nbytes} bytes or more, or {smaller_blocks(kind)}",
        )
