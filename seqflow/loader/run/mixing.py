"""The pipeline of a mix: batches of several sources, in an order that their weights and a seed decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqflow.errors import BatchPlanError, OpError, OpIndexError
from seqflow.json_form import is_count, numbered
from seqflow.loader.plans.balance import StepCosts
from seqflow.loader.plans.permutation import key_of
from seqflow.loader.run.bad_rows import BadRowHandler
from seqflow.loader.run.iterator import BatchIterator
from seqflow.loader.run.making import Turn
from seqflow.loader.run.pipeline import Pipeline, behind_epoch
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.tracing import Trace, num_rows, trace_turn
from seqflow.loader.run.workers import Workers
from seqflow.loader.schedule.picks import Picks
from seqflow.loader.schedule.skips import Skips, Span
from seqflow.loader.schedule.state import (
    MixPosition,
    Position,
    Progress,
    check_changes,
    check_form,
    check_same_source,
    check_settings,
    check_start,
    check_streams,
)
from seqflow.loader.schedule.streams import Checkpoint
from seqflow.loader.schedule.weights import Schedule, Weight
from seqflow.record import Record, concat_records, slice_rows

_PASS = 1 << 32
"""The second pass over a source in an epoch has the order of an epoch that far away."""
_FORM = {
    "settings": Mapping, "sources": [{"settings": Mapping, "data": Mapping}], "epoch": is_count, "batch": is_count,
    "ranks": is_count, "ended": bool,
    "members": [{"passes": [is_count], "windows": numbered((is_count, is_count, is_count))}],
}  # fmt: skip
_SUMMED = (
    "rows", "rows_read", "rows_left", "tokens", "cells", "bad_rows", "dropped", "skipped", "filtered",
    "bytes_in_flight",
    "seconds_reading", "seconds_preparing", "seconds_planning", "seconds_making", "seconds_waiting",
)  # fmt: skip
"""Counts of a mix that are those of its sources together."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MixedRecord(Record):
    """A batch of a mix, which knows the names of the sources that its rows come from."""

    sources: tuple[str, ...] = ()


class MixPipeline:
    """Makes the batches of any epoch of a mix of pipelines."""

    def __init__(
        self,
        members: Sequence[Pipeline],
        names: tuple[str, ...],
        weights: Sequence[Weight],
        quotas: list[int] | None,
        seed: int,
        stop: str,
        column: str | None,
        skip: Sequence[Span] = (),
    ) -> None:
        self.members, self.names, self.weights, self.quotas = members, names, weights, quotas
        self.seed, self.stop, self.column, self.skip = seed, stop, column, skip
        self.deal, self.threads = members[0].deal, members[0].threads
        self.empty = members[0].empty_batch()
        self._check_members()

    @property
    def epochs_differ(self) -> bool:
        return len(self.members) > 1 or self.members[0].epochs_differ

    def beginning(self, epoch: int) -> MixPosition:
        """The place before the first batch of an epoch."""
        members: list[dict[str, Any]] = [{"passes": [], "windows": {}} for _ in self.members]
        return MixPosition(epoch, 0, self.deal.world_size, False, members)

    def empty_batch(self) -> MixedRecord | None:
        """A batch without rows; None where Python functions make the batches."""
        return None if self.empty is None else self.labelled(slice_rows(self.empty, 0, 0), [], [])

    def labelled(
        self, batch: Record, members: list[int], counts: list[int], number: int | None = None
    ) -> MixedRecord:
        """The batch with its number, the source of each of its rows, and the names of these sources."""
        tensors, parents = batch.tensors, batch.parents
        if self.column is not None:
            tensors = {**tensors, self.column: np.repeat(np.array(members, np.int64), counts)}
            parents = {**parents, self.column: None}
        names = tuple(self.names[member] for member, rows in zip(members, counts, strict=True) if rows)
        return MixedRecord(tensors, parents, batch.num_rows, batch.schema, batch.dictionaries, number, names)

    def handlers(self) -> list[BadRowHandler]:
        """What takes the bad rows of each source."""
        return [
            BadRowHandler(
                member.bad_rows.marked(f"source{number}", *self.deal.marks), member.recipe.source.files
            )
            for number, member in enumerate(self.members)
        ]

    def iterate(
        self, start: MixPosition, workers: Workers, handlers: Sequence[BadRowHandler], stats: Stats
    ) -> MixIterator:
        return MixIterator(self, start, workers, handlers, stats)

    def trace(
        self, number: int, epoch: int, row: int | None, element: int | None, column: str | None
    ) -> list[Trace]:
        """Where the rows of a batch come from, the pieces of one of its rows, or one element."""
        workers = Workers(0)
        handlers = [BadRowHandler(member.bad_rows.uncounted()) for member in self.members]
        try:
            mix = MixIterator(self, self.beginning(epoch), workers, handlers, Stats(), number, traced=True)
            return mix.trace(row, element, column)
        finally:
            workers.close()

    def end_epoch(self) -> None:
        """Sources that were read in part make no index."""

    def num_batches(self, epoch: int) -> int | None:
        """The number of batches of an epoch; None where that of some source is not known before reading."""
        counts = [member.num_batches(epoch) for member in self.members]
        if None in counts:
            return None
        picks = self.picks(epoch)
        if self.stop == "all" and self.quotas is None:
            picks.check_end(counts)
        ends = [picks.behind(number, count) for number, count in enumerate(counts) if count is not None]
        first = [end for end, count in zip(ends, counts, strict=True) if end is not None and count == 0]
        if self.stop == "first":
            total = min(end for end in ends if end is not None)
        else:
            done = [[end, picks.end(number)] for number, end in enumerate(ends)]
            total = min([max(min(one for one in of if one is not None) for of in done), *first])
        return Skips(self.skip, epoch).kept_before(total)

    def batch_at(self, number: int, epoch: int) -> Record:
        """A batch of an epoch by its number; OpError where the epoch has none. Bad rows are not written again."""
        workers = Workers(0)
        handlers = [BadRowHandler(member.bad_rows.uncounted()) for member in self.members]
        try:
            return MixIterator(self, self.beginning(epoch), workers, handlers, Stats(), number).only_batch()
        finally:
            workers.close()

    def picks(self, epoch: int) -> Picks:
        """Which batches of the sources each batch of an epoch is made of."""
        return Picks(self.weights, self.quotas, key_of(self.seed, epoch))

    def fingerprint(self) -> dict[str, Any]:
        """What a state says besides the place."""
        sources = [{"settings": one.settings(), "data": one.data_fingerprint()} for one in self.members]
        return {"settings": self._settings(), "sources": sources}

    def _settings(self) -> dict[str, Any]:
        weights = [one.to_json() if isinstance(one, Schedule) else one for one in self.weights]
        return {
            "weights": weights, "seed": self.seed, "stop": self.stop, "column": self.column,
            "quotas": self.quotas,
            **({"skip": [list(span) for span in self.skip]} if self.skip else {}),
        }  # fmt: skip

    def start_of(self, state: Mapping[str, Any], changes: str) -> MixPosition:
        """The place of a saved state; OpError where it does not fit."""
        check_changes(changes)
        check_form("a Mix", state, _FORM)
        check_settings(state["settings"], self._settings(), changes)
        now = self.fingerprint()["sources"]
        for name, found in (("sources", len(state["sources"])), ("members", len(state["members"]))):
            if found != len(now):
                raise OpError(f"load_state_dict: the state has {found} {name}, expected {len(now)}")
        for number, (before, after) in enumerate(zip(state["sources"], now, strict=True)):
            changed = check_same_source(f"load_state_dict: source {number}: ", before, after, changes)
            if "prepare" in changed and state["batch"]:
                raise OpError(
                    f"load_state_dict: source {number}: prepare is another one, and nobody knows which of its rows "
                    "come next\n  begin the epoch anew: set_epoch(…)"
                )
            check_streams(state["members"][number]["windows"], self.members[number].recipe.streams)
        return MixPosition(
            int(state["epoch"]), state["batch"], state["ranks"], state["ended"], state["members"]
        )

    def _check_members(self) -> None:
        """OpError unless all members have the same ranks and batches of the same tensors."""
        for number, member in enumerate(self.members[1:], 1):
            if member.deal != self.deal:
                raise OpError(
                    f"Mix: source {number} is loaded as {member.deal.ranks}, source 0 as {self.deal.ranks}"
                )
            found = member.empty_batch()
            if self.empty is None or found is None:
                continue
            one, other = _tensor_types(self.empty), _tensor_types(found)
            for name in dict.fromkeys([*one, *other]):
                if one.get(name) != other.get(name):
                    raise OpError(
                        f"Mix: {name} is {other.get(name, 'missing')} in batches of source {number}, and "
                        f"{one.get(name, 'missing')} in those of source 0\n"
                        "  make them alike in prepare, or choose columns that all have"
                    )
        if self.empty is not None and self.column in self.empty:
            raise OpError(f"Mix: batches have a tensor {self.column!r} already\n  choose another column=")


class MixIterator:
    """One iteration over a mix, or what makes batch `only` of it."""

    def __init__(
        self,
        mix: MixPipeline,
        start: MixPosition,
        workers: Workers,
        handlers: Sequence[BadRowHandler],
        stats: Stats,
        only: int | None = None,
        *,
        traced: bool = False,
    ) -> None:
        self.traced = traced
        self.progress = Progress(start)
        self.mix, self.deal, self.start, self.only = mix, mix.deal, start, only
        self.workers, self._stats = workers, stats
        self.picks, self.skips = mix.picks(start.epoch), Skips(mix.skip, start.epoch)
        self.number = self._looked = start.batch
        """The batch that is being made, and the one up to which all are known to be in the epoch."""
        self.members = [_Member(self, number, handler) for number, handler in enumerate(handlers)]

    def __iter__(self) -> Iterator[Record]:
        if self.start.ended:
            return
        self.check_end()
        world_size = self.deal.world_size
        first = self.deal.first(self.skips.kept_before(self.start.batch))
        while (count := self._round(first)) and not (count < world_size and self._dropped(first)):
            if self.deal.rank < count:
                self.number = self.skips.number(first + self.deal.rank)
                batch = self._batch(self.number)
            elif self.deal.tail == "pad":
                batch = self._empty()
            else:
                batch = self._repeated(self.skips.number((self.deal.rank - count) % (first + count)))
            is_last = count < world_size  # after it come only batches of sources that are not exhausted
            first += self.deal.stride
            kept = first - self.deal.stride + count if is_last else first - self.deal.first(0)
            self._hand_out(self.skips.number(kept - 1) + 1, is_last=is_last)
            yield batch
            del batch
            if is_last:
                break
        self._sum_counts()

    def check_end(self) -> None:
        """OpError where the epoch has no end in sight, by the numbers of batches that are known so far."""
        if self.mix.stop == "all" and self.mix.quotas is None:
            self.picks.check_end([member.batches_of_pass() for member in self.members])

    def check_start(self) -> None:
        """OpError where the state that was loaded lies behind the end: members lack batches before it."""
        if self.progress.position is self.start and self.start.batch:
            for number, member in enumerate(self.members):
                batch = self.picks.before(number, self.start.batch)
                if member.has_ended(batch):
                    batches = member.num_batches()
                    check_start(batch, self.start.ranks, batches, batch - batches, self.deal.stride)

    def _round(self, first: int) -> int:
        """How many batches there are from `first` on, up to those of a round; skipped ones are not counted.

        All batches before them are looked at, also those that are skipped or of other workers: passes, and the epoch,
        end with any of them.
        """
        stop = self.skips.number(first + self.deal.world_size - 1) + 1
        while self._looked < stop and self._has(self._looked):
            self._looked += 1
        return max(0, self.skips.kept_before(self._looked) - first)

    def _has(self, number: int) -> bool:
        found = all(self.members[member].has(one) for member, one in self.picks.of(number))
        return found and not (self.mix.stop == "all" and self._is_over(number))

    def _is_over(self, number: int) -> bool:
        """Whether each source is exhausted, or has a weight of 0 from a batch on."""
        ends = (self.picks.end(member) for member in range(len(self.members)))
        return all(
            member.passes or (end is not None and end <= number)
            for member, end in zip(self.members, ends, strict=True)
        )

    def _dropped(self, first: int) -> bool:
        if self.deal.tail == "drop" and first == 0:
            raise BatchPlanError(
                f"Mix: an epoch has fewer batches than world_size = {self.deal.world_size}, and tail='drop' "
                "leaves none"
            )
        return self.deal.tail == "drop"

    def _repeated(self, number: int) -> Record:
        """One of the epoch's first batches, made again. Neither places nor other counts know of it."""
        mix = self.mix
        handlers = [BadRowHandler(member.bad_rows.uncounted()) for member in mix.members]
        beginning = mix.beginning(self.start.epoch)
        again = MixIterator(mix, beginning, self.workers, handlers, Stats(), number)
        batch = again.only_batch()
        self._stats.repeated += sum(member.stats.rows for member in again.members)
        return batch

    def only_batch(self) -> Record:
        """Batch `only` of the epoch; OpError where it has none."""
        return self._batch(self._found("batch_at"))

    def trace(self, row: int | None, element: int | None, column: str | None) -> list[Trace]:
        """Where the rows of batch `only` come from, the pieces of one of them, or one element."""
        traces: list[Trace] = []
        before = 0
        for number, batch in self.picks.of(self._found("trace")):
            member = self.members[number]
            turn, rows = member.turn(batch)
            if row is None or before <= row < before + rows:
                own = None if row is None else row - before
                found = trace_turn(turn, self.mix.members[number].prepare_name, own, element, column)
                traces += [replace(one, source=self.mix.names[number]) for one in found]
            before += rows
        if row is not None and not 0 <= row < before:
            raise OpIndexError(
                f"trace: row is {row}, expected 0 to {before - 1}, the rows of batch {self.only}"
            )
        return traces

    def _found(self, what: str) -> int:
        """Batch `only`, up to which all are looked for; OpError where the epoch has none."""
        assert self.only is not None
        for earlier in range(self.only + 1):  # passes end where their batches do
            if not self._has(earlier):
                raise behind_epoch(what, self.only, self.start.epoch, earlier)
        return self.only

    def _empty(self) -> Record:
        """A batch without rows, to fill the last round."""
        empty = self.mix.empty_batch()
        if empty is None:
            raise BatchPlanError(
                "Mix: tail='pad' needs nets: nobody knows the empty batch of a Python function"
            )
        return empty

    def _batch(self, number: int) -> Record:
        made = [(member, self.members[member].take(one)) for member, one in self.picks.of(number)]
        counts = [batch.num_rows for _, batch in made]
        joined = concat_records([batch for _, batch in made])
        return self.mix.labelled(joined, [member for member, _ in made], counts, number)

    def _sum_counts(self) -> None:
        """The counts of the mix are those of its sources together."""
        for name in _SUMMED:
            setattr(self._stats, name, sum(getattr(member.stats, name) for member in self.members))
        self._stats.costs = StepCosts.of(member.stats.costs for member in self.members)

    def _hand_out(self, following: int, *, is_last: bool) -> None:
        self._sum_counts()
        self._stats.batches += 1
        members = [member.state() for member in self.members]
        self.progress.position = MixPosition(
            self.start.epoch, following, self.deal.world_size, is_last, members
        )


class _Member:
    """One source of a mix, pass after pass."""

    def __init__(self, of: MixIterator, number: int, handler: BadRowHandler) -> None:
        saved = of.start.members[number]
        self._of, self._number, self._handler = of, number, handler
        self.passes: list[int] = list(saved["passes"])
        """The batches of each pass that has ended."""
        self._pipeline = of.mix.members[number]
        self.stats = Stats()
        """The counts of all passes."""
        self._windows = {int(stream): Checkpoint(*at) for stream, at in saved["windows"].items()}
        self._iteration: BatchIterator | None = None
        self._batches: list[Iterator[Record]] = [iter(())] * len(self.passes)
        """The batches of each pass: those of one that has ended are still to be taken by the round that ended it."""

    def has(self, batch: int) -> bool:
        """Whether there is a batch, counted over the passes; it begins the next pass where the mix goes on."""
        while True:
            iteration = self._begun()
            inside = batch - sum(self.passes)
            if iteration.has(inside):
                return True
            if self._of.mix.stop == "first" or inside == 0:
                return False
            self.passes.append(iteration.num_batches())
            if len(self.passes) == 1:
                self._of.check_end()
            self._iteration, self._windows = None, {}
            if all(member.passes for member in self._of.members):
                return False

    def batches_of_pass(self) -> int | None:
        """The batches of a pass; None where they are not known yet."""
        return self.passes[0] if self.passes else self._begun().rotation.total

    def has_ended(self, batch: int) -> bool:
        """Whether the pass that has begun is known to end before a batch."""
        inside = batch - sum(self.passes)
        return self._iteration is not None and inside >= 0 and not self._iteration.has(inside)

    def num_batches(self) -> int:
        """The batches of all passes, the last of which has ended."""
        assert self._iteration is not None
        return sum(self.passes) + self._iteration.num_batches()

    def turn(self, batch: int) -> tuple[Turn, int]:
        """A batch of the pass that has begun, as it is planned, and its rows."""
        found = self._begun().turn(batch - sum(self.passes))
        assert found is not None
        return found, num_rows(found)

    def take(self, batch: int) -> Record:
        self._begun()
        at = int(np.searchsorted(np.cumsum(self.passes), batch, side="right"))
        return next(self._batches[at])

    def state(self) -> dict[str, Any]:
        """The passes and windows as JSON."""
        windows = self._windows if self._iteration is None else self._iteration.checkpoints
        return {
            "passes": [*self.passes],
            "windows": {str(at): [one.position, one.first, one.batches] for at, one in windows.items()},
        }

    def _begun(self) -> BatchIterator:
        if self._iteration is None:
            of, done = self._of, sum(self.passes)
            before = of.picks.before(self._number, of.start.batch)
            epoch = of.start.epoch + _PASS * len(self.passes)
            start = Position(epoch, max(0, before - done), self._windows, 1)
            numbers: Iterator[int | None]
            if of.only is None:
                numbers = of.picks.from_batch(
                    self._number, done, of.start.batch, of.deal, of.skips, lambda: of.number
                )
            else:
                numbers = (one for member, one in of.picks.of(of.only) if member == self._number)
            inside = (None if number is None else number - done for number in numbers)
            self._iteration = self._pipeline.iterate(
                start, of.workers, [self._handler], self.stats, inside,
                numbering=of.picks.numbering(self._number, done), traced=of.traced,
            )  # fmt: skip
            self._batches.append(iter(self._iteration))
        return self._iteration


def _tensor_types(batch: Record) -> dict[str, str]:
    """Dtype and sizes of each tensor, as text."""
    return {name: f"{tensor.dtype}{list(tensor.shape[1:])}" for name, tensor in batch.items()}
