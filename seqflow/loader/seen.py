"""Ledgers of what a model has seen up to a batch, by source and file, and the batches that have a row."""

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from logging import getLogger
from typing import NamedTuple

import numpy as np

from seqflow.errors import OpError, nearest
from seqflow.files.uris import absolute, is_uri
from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.assign_ranks import Skips
from seqflow.loader.run.iterator import Run, RunOptions, task_at
from seqflow.loader.run.ledger import RowRange, places_in
from seqflow.loader.run.mixing import MixPipeline, MixRun
from seqflow.loader.run.pipeline import Pipeline
from seqflow.loader.run.tasks import BatchTask
from seqflow.providers.block_columns import UNKNOWN_SIZE

_log = getLogger(__name__)


class SeenRows(NamedTuple):
    """Rows of a source, or of a file of it, in the batches of a ledger."""

    source: str | None
    """Name of the source in a mix."""
    file: str | None
    """The file; None for all files of the source."""
    rows: int
    """Rows that begin in these batches: a row that is cut counts with its first piece."""
    tokens: int
    """Elements of the planned column."""
    batches: int
    """Batches that have rows of it."""
    epochs: float | None
    """Rows divided by all of its rows; None if these are not known before reading."""

    def __str__(self) -> str:
        epochs = "" if self.epochs is None else f", {self.epochs:.3f} epochs"
        name = ": ".join(filter(None, (self.source, self.file)))
        counts = f"{self.rows:,} rows, {self.tokens:,} tokens, {self.batches:,} batches{epochs}"
        return f"{name}: {counts}" if name else counts


@dataclass(frozen=True)
class SeenLedger:
    """Rows, tokens, batches and epochs by source and by file, of all batches on all ranks before a batch."""

    epoch: int
    upto: int
    """The batch of the epoch before which everything counts; all earlier epochs count."""
    batches: int
    by_source: tuple[SeenRows, ...]
    by_file: tuple[SeenRows, ...]
    digest: str
    """Digest of these batches and the places of their rows: equal in runs that have seen the same, in this order."""

    def __str__(self) -> str:
        first = (
            f"{self.batches:,} batches before batch {self.upto} of epoch {self.epoch}, digest {self.digest}"
        )
        return "\n".join([first, *(f"  {one}" for one in self.by_source)])


class Found(NamedTuple):
    """A place of a row of a file in the batches of an epoch."""

    epoch: int
    batch: int
    row: int
    """Row of the batch; a packed row has several pieces."""
    source: str | None = None


Handed = tuple[int, list[tuple[str | None, Pipeline, BatchTask]]]
"""Number of a batch, and the batches of sources that it consists of."""


def handed_out(of: Pipeline | MixPipeline, epoch: int, stop: int | None) -> Iterator[Handed]:
    """Yield the batches of an epoch before batch `stop` that ranks get, as their windows plan them.

    Skipped batches, and a last round that is dropped, are not handed out. Raise OpError when `stop` is after the
    end of the epoch and of its last round.
    """
    if not all(one.plans_by_lengths for _, one in _sources(of)):
        _log.warning(
            "windows are read, because their rows and lengths are not known: index= keeps them in a file"
        )
    options = RunOptions.of_some(len(of.members), traced=True, by_lengths=True)
    ranks, skips, rest = of.assignment.ranks, Skips(of.skip, epoch), list[Handed]()
    run: Run
    with closing(of.run(of.beginning(epoch), options)) as run:  # type: ignore[arg-type]
        index = 0
        while stop is None or skips.number(index) < stop:
            task = task_at(run, skips.number(index), wait=True)
            if task is None:
                last = -(-skips.number(index) // ranks.world_size) * ranks.world_size
                if stop is not None and stop > last:
                    raise OpError(
                        f"upto is {stop}, expected {last} or less: epoch {epoch} has no more batches"
                    )
                break
            rest.append((skips.number(index), of.parts_of(task, epoch)))
            if isinstance(run, MixRun):
                run.release(task)
            index += 1
            if len(rest) == ranks.world_size:
                yield from rest
                rest.clear()
        if stop is not None or ranks.tail != "drop":
            yield from rest


def places_of(task: BatchTask) -> Iterator[tuple[RowRange, Array, Array]]:
    """Yield the ranges of the source that a batch has rows of, with the pieces of the batch from each, and the rows.

    Rows are numbers in the block; -1 if `prepare` made new rows.
    """
    ranges = [one for window in task.windows for one in window.ledger.ranges]
    of, inside = places_in([one.rows for one in ranges], task.batches.numbers(task.number))
    for at in np.unique(of).tolist():
        pieces, numbers = np.flatnonzero(of == at), ranges[at].numbers
        rows = np.full(len(pieces), -1) if numbers is None else np.asarray(numbers)[inside[pieces]]
        yield ranges[at], pieces, rows


def ledger_of(of: Pipeline | MixPipeline, epoch: int, upto: int) -> SeenLedger:
    """Return the ledger of all batches before a batch of an epoch."""
    rows, tokens, batches = (Counter[tuple[str | None, str | None]]() for _ in range(3))
    digest, count = hashlib.sha256(), 0
    for at in range(epoch + 1):
        for number, parts in handed_out(of, at, upto if at == epoch else None):
            count += 1
            digest.update(f"{at} {number}".encode())
            seen: set[tuple[str | None, str | None]] = set()
            for name, _, task in parts:
                pieces = task.batches.pieces_of(task.number)
                for one, here, numbers in places_of(task):
                    begun = int((pieces.starts[here] == 0).sum())
                    for key in ((name, None), (name, one.block.origin)):
                        rows[key] += begun
                        tokens[key] += int(pieces.sizes[here].sum())
                        seen.add(key)
                    place = f"{name} {os.path.basename(one.block.origin)} {one.block.index}"
                    digest.update(place.encode("utf-8", "surrogatepass"))
                    for values in (here, numbers, pieces.starts[here], pieces.sizes[here]):
                        digest.update(values.astype("<i8").tobytes())
            batches.update(seen)
    known = _known_rows(of)
    found = [
        SeenRows(*key, rows[key], tokens[key], batches[key], rows[key] / all_rows if all_rows else None)
        for key in known
        for all_rows in (known[key],)
    ]
    by_source, by_file = ([one for one in found if (one.file is None) == is_all] for is_all in (True, False))
    return SeenLedger(epoch, upto, count, tuple(by_source), tuple(by_file), digest.hexdigest()[:32])


def _known_rows(of: Pipeline | MixPipeline) -> Mapping[tuple[str | None, str | None], int | None]:
    """Return the rows of each source, and of each file, by the name of the source and the file; None is unknown."""
    found: dict[tuple[str | None, str | None], int | None] = {}
    for name, one in _sources(of):
        blocks = one.listing.slices().blocks
        rows = np.where(blocks.rows == UNKNOWN_SIZE, np.nan, blocks.rows)
        sums = np.bincount(blocks.file, rows, minlength=len(blocks.origins)).tolist()
        of_files = [None if np.isnan(count) else int(count) for count in sums]
        known = [count for count in of_files if count is not None]
        found[name, None] = sum(known) if len(known) == len(of_files) else None
        found |= {(name, file): count for file, count in zip(blocks.origins, of_files, strict=True)}
    return found


def batches_of_rows(
    of: Pipeline | MixPipeline, wanted: Collection[tuple[str, int]], epoch: int, upto: int | None = None
) -> dict[tuple[str, int], list[Found]]:
    """Return the places of rows in the batches of an epoch before `upto`, by file and row in it.

    Files have the names of `file_of`. Raise OpError for a row that a file does not have, and where rows are unknown.
    """
    found: dict[tuple[str, int], list[Found]] = {one: [] for one in wanted}
    starts = _block_starts(of, wanted)
    for number, parts in handed_out(of, epoch, upto):
        before = 0
        for name, pipeline, task in parts:
            for one, pieces, rows in places_of(task):
                asked = starts.get((name, one.block.origin, one.block.index))
                if asked is None:
                    continue
                if len(rows) and rows[0] < 0:
                    raise OpError(
                        f"find: {pipeline.prepare_name} makes new rows, which are not known in the source"
                    )
                first, of_file = asked
                for at in np.flatnonzero(np.isin(rows + first, of_file)).tolist():
                    row = int(task.batches.row_of_pieces(task.number)[pieces[at]])
                    key = one.block.origin, int(rows[at]) + first
                    found[key].append(Found(epoch, number, before + row, name))
            before += task.size.rows
    return found


def file_of(of: Pipeline | MixPipeline, file: str) -> str:
    """Return the name by which the sources list a file; raise OpError when it is not one of them."""
    files = [name for _, one in _sources(of) for name in one.listing.slices().blocks.origins]
    same = [name for name in files if name == file or (not is_uri(name) and absolute(name) == absolute(file))]
    if not same:
        raise OpError(f"find: {file!r} is not a file of the source{nearest(file, files)}")
    return same[0]


def _sources(of: Pipeline | MixPipeline) -> list[tuple[str | None, Pipeline]]:
    """Return the sources that are not removed, each with its name in a mix."""
    names = of.names if isinstance(of, MixPipeline) else (None,)
    return [(name, one) for name, one in zip(names, of.members, strict=True) if one is not None]


def _block_starts(
    of: Pipeline | MixPipeline, wanted: Collection[tuple[str, int]]
) -> dict[tuple[str | None, str, int], tuple[int, list[int]]]:
    """Return the first row in its file of each block of a file with wanted rows, and these rows; by the names of
    source and file, and the number of the block in the file.
    """
    by_file: dict[str, list[int]] = {}
    for file, row in wanted:
        by_file.setdefault(file, []).append(row)
    found: dict[tuple[str | None, str, int], tuple[int, list[int]]] = {}
    longest = Counter[str]()
    for name, one in _sources(of):
        ends = Counter[str]()
        # blocks of a file are in order
        for block in one.listing.slices().blocks if by_file else ():
            if block.origin in by_file:
                count = block.of_source.num_rows
                if count is None:
                    raise OpError(f"find: the rows of blocks of {block.origin} are not known before reading")
                found[name, block.origin, block.index] = ends[block.origin], by_file[block.origin]
                ends[block.origin] += count
        longest |= ends
    for file, rows in by_file.items():
        if not 0 <= min(rows) <= max(rows) < longest[file]:
            wrong = min(rows) if min(rows) < 0 else max(rows)
            raise OpError(f"find: row is {wrong}, expected 0 to {longest[file] - 1}, the rows of {file}")
    return found
