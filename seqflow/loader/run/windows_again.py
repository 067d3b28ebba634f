"""Windows that are planned a second time, from the first one on."""

from __future__ import annotations

from seqflow.loader.plans.dealt import Span
from seqflow.loader.run.making import PlannedBatches, Turn
from seqflow.loader.run.windows import OpenWindow, WindowMaker
from seqflow.loader.schedule.streams import BatchAddress, Rotation, Stream, WindowAddress


class WindowsAgain:
    """The batches of streams as their windows plan them, which are read when they are asked for."""

    def __init__(self, maker: WindowMaker, rotation: Rotation, epoch: int) -> None:
        self.rotation = rotation
        self._maker, self._epoch = maker, epoch
        self._opened: dict[WindowAddress, OpenWindow] = {}

    def turn(self, batch: int) -> Turn | None:
        """A batch by its number in the epoch; None behind the last."""
        stream, number = self.rotation.turn(batch)
        found = self.planned(stream, number, number + 1, wait=True)
        if found is None:
            return None
        batches, at, _ = found.span
        return Turn(batch, found.address, found.windows, batches, at, batches.size(at))

    def planned(self, stream: Stream, number: int, stop: int, *, wait: bool) -> PlannedBatches | None:
        """Batch `number` of a stream, and those before batch `stop` in the same window; None behind the last."""
        address = self._located(stream, number)
        if address is None:
            return None
        own = self._opened[address.window]
        last = min(len(own.batches), address.number + stop - number)
        return PlannedBatches(address, (own,), Span(own.batches, address.number, last))

    def window_of(self, stream: Stream, number: int, *, wait: bool) -> range | None:
        """The batches of a stream that are in the window of one of them; None behind the last."""
        address = self._located(stream, number)
        if address is None:
            return None
        at = stream.checkpoint(address.position)
        return range(at.first, at.first + at.batches)

    def following(self, address: BatchAddress) -> list[WindowAddress]:
        """Batches that run across windows are counted before they are read: none of them is planned here."""
        return []

    def _located(self, stream: Stream, number: int) -> BatchAddress | None:
        while not isinstance(found := stream.locate(number), BatchAddress):
            if found is None:
                return None
            address = stream.number, found
            opened = self._opened[address] = self._maker.make(self.rotation.window(address), self._epoch)
            stream.count(found, len(opened.batches))
        return found
