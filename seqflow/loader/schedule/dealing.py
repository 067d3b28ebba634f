"""Dealing: the one sequence of batches of an epoch, from its streams to the ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import gcd

import numpy as np

from seqflow.errors import BatchPlanError
from seqflow.kernels.arrays import Array
from seqflow.loader.schedule.streams import Place, Stream

TAILS = ("drop", "pad", "repeat")


@dataclass(frozen=True, slots=True)
class Deal:
    """Which batches a rank gets, and what happens to an incomplete last round.

    Batch k of all goes to rank `k mod world_size`.
    """

    rank: int = 0
    world_size: int = 1
    tail: str = "drop"
    worker: int = 0
    workers: int = 1
    """A rank may have several workers, to which its batches go in turn."""

    @property
    def stride(self) -> int:
        """From one batch of a worker to its next."""
        return self.world_size * self.workers

    def first(self, start: int) -> int:
        """The first batch of a worker's first round, where batch `start` is the first that nobody has."""
        return start + self.world_size * self.worker

    @property
    def marks(self) -> tuple[str, ...]:
        """What tells apart the files that the ranks write, and their workers; empty where there is one."""
        rank = (f"rank{self.rank}",) if self.world_size > 1 else ()
        return (*rank, f"worker{self.worker}") if self.workers > 1 else rank

    def rounds(self, batches: int) -> int:
        """The number of batches that each rank gets."""
        return batches // self.world_size if self.tail == "drop" else -(-batches // self.world_size)


class Rotation:
    """Batch k of the epoch comes from stream `k mod C`; a stream that has run out is skipped."""

    def __init__(self, streams: Sequence[Stream], total: int | None) -> None:
        self.streams = streams
        counts = [stream.num_batches for stream in streams]
        self.counted = None not in counts
        self.total = total
        self._order: Array | None = None
        if self.counted:
            self.total = sum(counts) if total is None else total  # type: ignore[arg-type]
            if len(streams) > 1:
                self._order = _rotation([count or 0 for count in counts])

    @property
    def has_one_window(self) -> bool:
        """Whether a window holds everything."""
        return len(self.streams) == 1 and self.streams[0].window(1) is None

    def turn(self, batch: int) -> tuple[Stream, int]:
        """The stream of a batch, and its number in the stream."""
        if self._order is not None and batch < len(self._order):
            number, stream = divmod(int(self._order[batch]), len(self.streams))
        else:
            number, stream = divmod(batch, len(self.streams))
        return self.streams[stream], number

    def locate(self, batch: int) -> Place | tuple[int, int] | None:
        """The place of a batch; stream and position of the window to plan first; None behind the last batch."""
        if self.total is not None and batch >= self.total:
            return None
        stream, number = self.turn(batch)
        found = stream.locate(number)
        if found is None and self.total is not None:
            raise BatchPlanError(
                f"Loader: stream {stream.number} of {len(self.streams)} ends after {number} batches, but an epoch "
                f"of {self.total} batches needs more of it\n  lower steps_per_epoch"
            )
        return (stream.number, found) if isinstance(found, int) else found

    def upcoming(
        self, deal: Deal, start: int, following: Callable[[Place], list[tuple[int, int]]] | None = None
    ) -> Iterator[tuple[int, int]]:
        """Stream and position of the windows that a rank will need from batch `start` on, in order.

        `following` are the windows behind its own from which a batch takes rows.
        """
        if self.counted:
            yield from self._known(deal, start, following or (lambda place: []))
        else:
            yield from self._unknown(deal, start)

    def _known(
        self, deal: Deal, start: int, following: Callable[[Place], list[tuple[int, int]]]
    ) -> Iterator[tuple[int, int]]:
        seen: dict[int, int] = {}
        for batch in range(deal.first(start) + deal.rank, self.total or 0, deal.stride):
            place = self.locate(batch)
            if not isinstance(place, Place):
                continue
            empty = [
                (place.stream, position) for position in self.streams[place.stream].without_batches(place)
            ]
            own = (place.stream, place.position)
            for stream, position in sorted([*empty, own, *following(place)]):
                if seen.get(stream, -1) < position:
                    seen[stream] = position
                    yield stream, position

    def from_its_start(self) -> Rotation:
        """The same streams, all windows of which were found, with nothing counted."""
        return Rotation([stream.from_its_start() for stream in self.streams], None)

    def streams_of(self, deal: Deal, start: int) -> list[Stream]:
        """The streams from which a rank gets batches."""
        step = gcd(deal.stride, len(self.streams))
        first = deal.first(start) + deal.rank
        return [stream for stream in self.streams if (stream.number - first) % step == 0]

    def _unknown(self, deal: Deal, start: int) -> Iterator[tuple[int, int]]:
        open_streams = self.streams_of(deal, start)
        firsts = {stream.number: stream.first_open for stream in open_streams}
        for ahead in count():
            found = False
            for stream in open_streams:
                position = firsts[stream.number] + ahead
                if stream.window(position) is not None:
                    found = True
                    yield stream.number, position
            if not found:
                return


def _rotation(counts: Sequence[int]) -> Array:
    """int64[sum(counts)]: for each batch its number in its stream times the streams, plus its stream."""
    streams = len(counts)
    codes = [np.arange(count, dtype=np.int64) * streams + stream for stream, count in enumerate(counts)]
    return np.sort(np.concatenate(codes))
