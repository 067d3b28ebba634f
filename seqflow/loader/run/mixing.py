"""The pipeline of a mix: batches of several sources, in an order that their weights and a seed decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from seqflow.errors import BatchPlanError, OpError, OpIndexError
from seqflow.json_form import is_count, numbered
from seqflow.loader.epoch.mix import MixRow, MixTable, Passes
from seqflow.loader.epoch.picks import Picks
from seqflow.loader.epoch.table import Missing, Table
from seqflow.loader.plans.balance import StepCosts
from seqflow.loader.plans.batches import BatchSize
from seqflow.loader.plans.permutation import key_of
from seqflow.loader.run.bad_rows import BadRowHandler
from seqflow.loader.run.iterator import BatchIterator
from seqflow.loader.run.making import Made, Turn
from seqflow.loader.run.pipeline import Pipeline, behind_epoch
from seqflow.loader.run.source_run import SourceRun
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.tracing import Trace, num_rows, trace_turn, with_files
from seqflow.loader.run.turns import TurnsOfRank, turn_at
from seqflow.loader.run.workers import Workers
from seqflow.loader.schedule.skips import Skips, Span
from seqflow.loader.schedule.state import (
    Checkpoint,
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
from seqflow.loader.schedule.weights import Schedule, Weight
from seqflow.record import Record, concat_records, slice_rows
from seqflow.record.batch_memory import BatchMemory

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
        self,
        start: MixPosition,
        workers: Workers,
        handlers: Sequence[BadRowHandler],
        stats: Stats,
        counts_on: bool = False,
    ) -> MixIteration:
        """The batches from a place on. Where it `counts_on`, all that is counted belongs to those handed out."""
        return MixIteration(MixRun(self, start, workers, handlers, counts_on=counts_on), stats)

    def trace(
        self, number: int, epoch: int, row: int | None, element: int | None, column: str | None
    ) -> list[Trace]:
        """Where the rows of a batch come from, the pieces of one of its rows, or one element."""
        traces: list[Trace] = []
        before = 0
        with closing(Workers(0)) as workers:
            turn = self._only(workers, epoch, traced=True).turn("trace", number)
            for member, _, part in turn.parts:
                rows = num_rows(part)
                if row is None or before <= row < before + rows:
                    own = None if row is None else row - before
                    of = self.members[member]
                    found = trace_turn(part, of.prepare_name, own, element, column)
                    found = with_files(found, part, of.recipe.source)
                    traces += [replace(one, source=self.names[member]) for one in found]
                before += rows
        if row is not None and not 0 <= row < before:
            raise OpIndexError(f"trace: row is {row}, expected 0 to {before - 1}, the rows of batch {number}")
        return traces

    def _only(self, workers: Workers, epoch: int, *, traced: bool = False) -> MixRun:
        """What makes some batches by their numbers. Their bad rows are not written again."""
        handlers = [BadRowHandler(member.bad_rows.uncounted()) for member in self.members]
        return MixRun(self, self.beginning(epoch), workers, handlers, traced=traced)

    def end_epoch(self) -> None:
        """Sources that were read in part make no index."""

    def num_batches(self, epoch: int) -> int | None:
        """The number of batches of an epoch; None where that of some source is not known before reading."""
        counts = [member.num_batches(epoch) for member in self.members]
        if None in counts:
            return None
        picks = self.picks(epoch)
        if self.stop == "all":
            picks.check_end(counts)
        ends = [picks.row(number, count) for number, count in enumerate(counts) if count is not None]
        first = [end for end, count in zip(ends, counts, strict=True) if end is not None and count == 0]
        if self.stop == "first":
            total = min(end for end in ends if end is not None)
        else:
            done = [[end, picks.end(number)] for number, end in enumerate(ends)]
            total = min([max(min(one for one in of if one is not None) for of in done), *first])
        return Skips(self.skip, epoch).kept_before(total)

    def batch_at(self, number: int, epoch: int) -> Record:
        """A batch of an epoch by its number; OpError where the epoch has none. Bad rows are not written again."""
        with closing(Workers(0)) as workers:
            run = self._only(workers, epoch)
            (made,) = run.make([run.turn("batch_at", number)])
            if made.error is not None:
                raise made.error
            return run.batch_of(made)

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


class MixTurn(NamedTuple):
    """A batch of a mix that is to be made."""

    row: MixRow
    parts: tuple[tuple[int, int, Turn], ...]
    """Member, pass, and the batch of that member."""
    size: BatchSize
    next: int
    """The row of the table at which a run goes on after it."""
    fill: str = ""
    """"pad" or "repeat" where it only fills the last round of the ranks."""
    passed: int = 0
    """The rows of the batches that are skipped before it."""

    @property
    def batch(self) -> int | None:
        """Its number in the epoch; that of the batch that it repeats; None of an empty one."""
        return None if self.fill == "pad" else self.row.number


class MadeMix(NamedTuple):
    """The batches that a batch of a mix is made of, or the error that making them gave."""

    turn: MixTurn
    parts: tuple[Made, ...]
    error: BaseException | None = None


class MixRun:
    """One epoch of a mix: the runs of its members, pass after pass, and what makes batches of theirs."""

    def __init__(
        self,
        mix: MixPipeline,
        start: MixPosition,
        workers: Workers,
        handlers: Sequence[BadRowHandler],
        *,
        traced: bool = False,
        counts_on: bool = False,
    ) -> None:
        self.mix, self.start = mix, start
        self._workers, self._handlers, self._traced, self._counts_on = workers, handlers, traced, counts_on
        self.stats = [Stats() for _ in mix.members]
        """For each member the counts of all passes."""
        self.picks, self.skips = mix.picks(start.epoch), Skips(mix.skip, start.epoch)
        passes = [
            Passes(partial(self._table_of, member), saved["passes"])
            for member, saved in enumerate(start.members)
        ]
        self.table = MixTable(self.picks, passes, mix.stop, start.batch)
        self._runs: dict[tuple[int, int], SourceRun] = {}
        """By member and pass."""
        self._first: MixRun | None = None

    def run(self, member: int, number: int) -> SourceRun:
        """The run of a pass of a member."""
        if (member, number) not in self._runs:
            self.table.members[member].table(number)
        return self._runs[member, number]

    def _table_of(self, member: int, number: int) -> Table:
        """Begin a pass of a member; its table."""
        start, saved = self.start, self.start.members[member]
        done = sum(self.table.members[member].counts[:number])
        at = saved["windows"].get("0") if number == len(saved["passes"]) else None
        place = Position(
            start.epoch + _PASS * number,
            max(0, self.picks.before(member, start.batch) - done),
            None if at is None else Checkpoint(*at),
            1,
        )
        run = self.mix.members[member].run(
            place,
            self._workers,
            self._handlers[member],
            self.stats[member],
            numbering=self.picks.numbering(member, done),
            traced=self._traced,
            at_once=not self._counts_on,
            counts_on=self._counts_on,
        )
        self._runs[member, number] = run
        return run.table

    def plan(self, window: Missing, *, wait: bool) -> bool:
        return self.run(window.member, window.number).turns.plan(window, wait=wait)

    def of(self, row: MixRow, following: int, *, wait: bool) -> MixTurn | None:
        parts = []
        for member, number, inside in row.parts:
            turn = turn_at(self.run(member, number).turns, inside, wait=wait)
            if turn is None:
                return None
            parts.append((member, number, turn))
        sizes = [turn.size for *_, turn in parts]
        size = sizes[0] if len(sizes) == 1 else BatchSize(*map(sum, zip(*sizes, strict=True)))
        return MixTurn(row, tuple(parts), size, following)

    def turn(self, what: str, number: int) -> MixTurn:
        """A batch by its number; OpError where the epoch has none."""
        found: MixTurn | None = turn_at(self, number, wait=True)
        if found is None:
            raise behind_epoch(what, number, self.start.epoch, self.table.num_known)
        return found

    def first(self) -> MixRun:
        """What makes the first rows of the epoch again. Neither places nor counts know of it."""
        if self._first is None:
            self._first = self.mix._only(self._workers, self.start.epoch)
        return self._first

    def make(self, turns: list[MixTurn]) -> list[MadeMix]:
        """The batches, up to the first error."""
        found = []
        for turn in turns:
            parts: list[Made] = []
            if turn.fill != "pad":
                for member, number, part in turn.parts:
                    maker = self if turn.fill != "repeat" else self.first()
                    parts += maker.run(member, number).maker.make([part])
            error = next((one.error for one in parts if one.error is not None), None)
            found.append(MadeMix(turn, tuple(parts), error))
            if error is not None:
                break
        return found

    def batch_of(self, made: MadeMix) -> MixedRecord:
        """The batch, with the source of each of its rows."""
        turn, mix = made.turn, self.mix
        members = [member for member, *_ in turn.parts]
        if turn.fill == "pad":
            empty = mix.empty_batch()
            if empty is None:
                raise BatchPlanError(
                    "Mix: tail='pad' needs nets: nobody knows the empty batch of a Python function"
                )
            return empty
        of = self if turn.fill != "repeat" else self.first()
        finished = [
            of.run(member, number).maker.finish(one)
            for (member, number, _), one in zip(turn.parts, made.parts, strict=True)
        ]
        if not turn.fill:
            for (member, number, _), one in zip(turn.parts, finished, strict=True):
                self.run(member, number).hand_out(one)
        batches = [one.batch for one in finished if one.batch is not None]
        counts = [batch.num_rows for batch in batches]
        return mix.labelled(concat_records(batches), members, counts, turn.batch)

    def members_before(self, row: int) -> list[dict[str, Any]]:
        """For each member its passes that have ended before a row, and the window of the one that goes on, as JSON.

        Runs of earlier passes are let go of.
        """
        found = []
        for member, saved in enumerate(self.start.members):
            passes = self.table.passes_before(member, row)
            self.count_rest(member, len(passes))
            run = self._runs.get((member, len(passes)))
            windows: Mapping[str, Any] = saved["windows"] if len(passes) == len(saved["passes"]) else {}
            if run is not None:
                at = run.checkpoint
                windows = {} if at is None else {"0": [at.position, at.first, at.batches]}
            found.append({"passes": passes, "windows": windows})
        return found

    def count_rest(self, member: int, number: int) -> None:
        """Count all windows of the passes of a member before one: they have ended."""
        for (of, before), run in self._runs.items():
            if of == member and before < number:
                run.count_rest(None)

    def release(self, turn: MixTurn) -> None:
        """Let go of the passes before those of a batch that was handed out."""
        for member, number, _ in turn.parts:
            for key in [key for key in self._runs if key[0] == member and key[1] < number]:
                del self._runs[key]


class MixIteration:
    """An iteration over a mix: the batches of a rank in order."""

    def __init__(self, run: MixRun, stats: Stats) -> None:
        self.run, self._stats = run, stats
        self.progress = Progress(run.start)
        self._deal = run.mix.deal
        self._of_rank = TurnsOfRank(run, run.start.batch, self._deal, run.skips)

    def __iter__(self) -> Iterator[Record]:
        if self.run.start.ended:
            return iter(())
        self.run.table.check_end()
        return iter(BatchIterator(self, self._of_rank, self.run._workers, self._stats))

    def close(self) -> None:
        """Let go of what is in memory."""
        for run in self.run._runs.values():
            run.close()

    def check_start(self) -> None:
        """OpError where nothing was handed out because the state that was loaded lies after the end of the epoch."""
        start = self.run.start
        if self.progress.position is start and not start.ended:
            check_start(start, self.run.table.num_known, self._deal, self.run.skips)

    def fill(self) -> None:
        for run in list(self.run._runs.values()):
            run.reader.fill()

    def make(self, turns: list[MixTurn]) -> list[MadeMix]:
        return self.run.make(turns)

    def free(self, memory: BatchMemory) -> None:
        """Batches of a mix are joined from others: none lies in memory that is used again."""

    def hand_out(self, made: MadeMix) -> tuple[Record, None]:
        turn, run, stats = made.turn, self.run, self._stats
        batch = run.batch_of(made)
        if turn.fill == "repeat":
            stats.repeated += turn.size.begun
        run.release(turn)
        self._sum_counts()
        stats.batches += 1
        last = self._last_of_round(turn)
        total = run.table.total
        is_last = bool(turn.fill) or (total is not None and last >= total)
        looked = last if total is None else min(last, total)
        self.progress.position = MixPosition(
            run.start.epoch, turn.next, self._deal.world_size, is_last, run.members_before(looked + 1)
        )
        return batch, None

    def end(self) -> None:
        for member, passes in enumerate(self.run.table.members):
            self.run.count_rest(member, len(passes.counts) + 1)
        self._sum_counts()
        for member, stats in enumerate(self.run.stats):
            if self.run.table.members[member].table(0).total == 0:  # a source without batches ends the mix
                self.run._handlers[member].check(stats)

    def _last_of_round(self, turn: MixTurn) -> int:
        """The last row of the round of all ranks that a batch is in."""
        skips, deal = self.run.skips, self._deal
        return skips.number(skips.kept_before(turn.row.number) - deal.rank + deal.world_size - 1)

    def _sum_counts(self) -> None:
        """The counts of the mix are those of its members together."""
        for name in _SUMMED:
            setattr(self._stats, name, sum(getattr(one, name) for one in self.run.stats))
        self._stats.costs = StepCosts.of(one.costs for one in self.run.stats)


def _tensor_types(batch: Record) -> dict[str, str]:
    """Dtype and sizes of each tensor, as text."""
    return {name: f"{tensor.dtype}{list(tensor.shape[1:])}" for name, tensor in batch.items()}
