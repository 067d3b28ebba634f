"""The plan of an epoch for Ray Data: made once, and divided into as many tasks as Ray asks for."""

import pickle
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from itertools import accumulate, groupby

from seqflow.job.part_tasks import PartTask
from seqflow.loader import Loader
from seqflow.loader.epoch.assign_ranks import Skips
from seqflow.loader.order.windows import Parts
from seqflow.loader.parts import PlannedPart, joined, origins_of, plan_parts
from seqflow.providers import Provider


@dataclass(frozen=True, slots=True)
class EpochTasks:
    """The windows of an epoch, each as a part, and their source."""

    provider: Provider
    parts: tuple[PlannedPart, ...]
    deals_steps: bool
    """Whether batches of one step, in several windows, exchange rows."""
    skips: bool
    """Whether some batches are skipped."""

    @property
    def nbytes(self) -> int:
        """Bytes of all windows, as far as the source can tell."""
        return sum(map(_bytes_of, self.parts))

    def tasks(self, most: int, *, in_order: bool = False) -> Iterator[PartTask]:
        """Yield at most `most` tasks of consecutive windows, with about equally many bytes each.

        All windows are one task if a part alone cannot tell which batches to skip or, with `in_order`, the rows of a
        step.
        """
        is_counted = all(part.counts_batches for part in self.parts)
        if (self.skips and (self.deals_steps or not is_counted)) or (self.deals_steps and in_order):
            most = 1
        sizes = [max(1, _bytes_of(part)) for part in self.parts]
        total = sum(sizes)
        turns = [before * most // total for before in accumulate(sizes[:-1], initial=0)]
        for _, some in groupby(zip(turns, self.parts, strict=True), key=lambda pair: pair[0]):
            part = joined([part for _, part in some])
            yield PartTask(part, self._source_of(part))

    def _source_of(self, part: PlannedPart) -> bytes | None:
        """Return the pickled source with the files of a part; None if it cannot be divided."""
        source = self.provider.of_files(origins_of((*part.windows, *part.following))).source
        return None if source is self.provider.source else pickle.dumps(source)


def plan_epoch(loader: Loader, epoch: int) -> EpochTasks:
    """Plan an epoch of a loader, without changing its position. Only footers are read."""
    of_epoch = copy(loader)
    of_epoch.set_epoch(epoch)
    parts = tuple(part for part in plan_parts(of_epoch, Parts(0)) if part.windows)
    skips = Skips(loader.pipeline.skip, epoch)
    return EpochTasks(loader.source, parts, loader.batch.balance is not None, bool(skips))


def _bytes_of(part: PlannedPart) -> int:
    return sum(window.nbytes for window in part.windows)
