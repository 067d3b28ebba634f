"""The pipeline of a mix: batches of several sources, in an order that their weights and a seed decide."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from seqflow.errors import BatchPlanError, OpError
from seqflow.json_schema import is_count, matches_schema, numbered
from seqflow.loader.epoch.assign_ranks import ALL_BATCHES, NO_SKIPS, Skips, SkipSpan
from seqflow.loader.epoch.history import Change, Choice, History
from seqflow.loader.epoch.mix import MixRow, MixTable, Picks
from seqflow.loader.epoch.state import (
    MixPosition,
    Progress,
    check_changes,
    check_schema,
    check_settings,
    check_step,
    check_streams,
)
from seqflow.loader.epoch.table import Missing
from seqflow.loader.order.identity import FORMAT
from seqflow.loader.plans.balance import StepCosts
from seqflow.loader.plans.balanced_pools import Span, Totals
from seqflow.loader.plans.plan import BatchSize, key_of
from seqflow.loader.run.derived import Derived
from seqflow.loader.run.iterator import Iteration, RunOptions, task_at
from seqflow.loader.run.ledger import BadRowHandler, Counts, Reasons, SourceCounts, Stats
from seqflow.loader.run.making import BatchResult, LoadedBatch
from seqflow.loader.run.pipeline import Pipeline
from seqflow.loader.run.source_run import SourceRun
from seqflow.loader.run.steps import HandedOut
from seqflow.loader.run.tasks import BatchTask
from seqflow.providers.bad_files import BadFileList
from seqflow.record import Record, concat_records, slice_rows
from seqflow.record.batch_memory import BatchMemory

_SOURCE = {"settings": Mapping, "data": Mapping}
_FORM = {
    "settings": Mapping, "sources": [lambda one: one is None or matches_schema(one, _SOURCE)], "epoch": is_count,
    "batch": is_count, "ranks": is_count, "ended": bool,
    "members": [{"passes": [is_count], "windows": numbered((is_count, is_count, is_count))}],
}  # fmt: skip
_SUMMED = (
    "rows", "rows_read", "rows_left", "tokens", "cells", "shared", "bad_rows", "dropped", "skipped", "filtered",
    "filtered_by_keep", "bytes_in_flight",
    "seconds_reading", "seconds_preparing", "seconds_planning", "seconds_making",
)  # fmt: skip
"""Counts of a mix that are sums over its sources."""
ORDER = 2
"""Number of the meaning of seeds and weights in a mix, in its records: it rises when one of them changes."""


def _other_order(order: Any) -> str:
    return (
        f"the record of a mix has order {order}, expected {ORDER}: another version of seqflow made it, which puts "
        "the rows of the sources in another order"
    )


def check_mix_state(state: Any) -> None:
    """Raise OpError when a state is not that of a mix, or of one that orders rows in another way."""
    check_schema("a Mix", state, _FORM)
    if (order := state["settings"].get("order", 1)) != ORDER:
        raise OpError(
            f"load_state_dict: {_other_order(order)}\n  go on with that one, or begin the epoch again"
        )


@dataclass(eq=False, repr=False)
class MixPipeline:
    """Makes the batches of any epoch of a mix of pipelines."""

    members: list[Pipeline | None]
    """Sources by number; None for one that was removed, and is not a source of this mix."""
    history: History
    is_named: bool
    """Whether sources were given with names; others are found in a state by their numbers, in any folder."""
    rows: int | None
    """Rows of a batch if each has rows of all sources; None if each comes from one source."""
    seed: int
    stop: str
    column: str | None
    """Name of the column with the source of each row."""
    skip: Sequence[SkipSpan]
    totals: Totals | None
    """Totals over all batches of a step."""
    steps_of: int
    """Number of batches of each rank in a step, if the plans have no balance."""

    def __post_init__(self) -> None:
        self._one = self.present[0]
        self.assignment, self.threads = self._one.assignment, self._one.threads
        self.empty = self._one.empty_batch()
        for number in range(len(self.members)):
            self._check_member(number)
        if self.empty is not None and self.column in self.empty:
            raise OpError(f"Mix: batches have a tensor {self.column!r} already\n  choose another column=")

    @property
    def present(self) -> list[Pipeline]:
        """Sources that are not removed."""
        return [one for one in self.members if one is not None]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all sources, by number."""
        return self.history.names

    def member(self, number: int) -> Pipeline:
        """Return a source; raise OpError when it was removed, and is not a source of this mix."""
        if (found := self.members[number]) is None:
            raise OpError(
                f"Mix: source {self.names[number]!r} was removed, and is not among the sources\n"
                "  give it, with a weight of 0, to have its batches again"
            )
        return found

    @property
    def epochs_differ(self) -> bool:
        return len(self.members) > 1 or self._one.epochs_differ

    def beginning(self, epoch: int) -> MixPosition:
        """Return the place before the first batch of an epoch."""
        return MixPosition(epoch, 0, self.assignment.world_size, False, [_begun() for _ in self.members])

    def empty_batch(self) -> LoadedBatch | None:
        """Return a batch without rows; None if Python functions make the batches."""
        return None if self.empty is None else self.labelled(slice_rows(self.empty, 0, 0), [], [])

    def labelled(
        self, batch: Record, members: list[int], counts: list[int], number: int | None = None
    ) -> LoadedBatch:
        """Return the batch with its number, the source of each of its rows, and the names of these sources."""
        tensors, parents = batch.tensors, batch.parents
        if self.column is not None:
            tensors = {**tensors, self.column: np.repeat(np.array(members, np.int64), counts)}
            parents = {**parents, self.column: None}
        names = (self.names[member] for member, rows in zip(members, counts, strict=True) if rows)
        return LoadedBatch(
            tensors, parents, batch.num_rows, batch.schema, batch.dictionaries, number, shares=batch.shares,
            sources=tuple(dict.fromkeys(names)),
        )  # fmt: skip

    def step_size(self) -> int | None:
        """Return the number of batches of a step; None if steps are not used."""
        return None if self.totals is None else self._balanced or self.assignment.world_size * self.steps_of

    @property
    def _balanced(self) -> int | None:
        """Number of batches of a step, by the balance of the plans."""
        balance = self._one.recipe.batch.balance
        return None if balance is None else balance.step

    def next_change(self, batch: int) -> int:
        """Return the first batch, not before this one, at which weights may change: where a step and all pools
        begin.
        """
        size = self.step_size() or 1
        for balance in filter(None, (one.recipe.batch.balance for one in self.present)):
            if balance.steps_in_pool is None:
                raise OpError(
                    'Mix: weights cannot change inside an epoch with Balance(pool="window"), whose pools end where '
                    "windows do\n  give pool=, a number of steps"
                )
            size = math.lcm(size, balance.step * balance.steps_in_pool)
        return -(-batch // size) * size

    def handlers(self) -> list[BadRowHandler]:
        """Return the receiver of the bad rows of each source."""
        return [self.handler(number) for number in range(len(self.members))]

    def handler(self, number: int) -> BadRowHandler:
        """Return the receiver of the bad rows of a source."""
        member = self.members[number]
        return BadRowHandler() if member is None else member.handlers(f"source{number}")[0]

    def run(self, start: MixPosition, run_options: RunOptions) -> "MixRun":
        """Return a run of one epoch from a place on."""
        size = self.step_size()
        if size is not None:
            check_step(start, self.assignment.world_size, size)
        # windows that this rank opens for the batches of others count, too
        skips = Skips(self.skip, start.epoch)
        run = MixRun(self, start, replace(run_options, at_once=not run_options.counts_on, skips=skips))
        if not (start.ended or run_options.at_once):
            run.table.check_end()
        return run

    def parts_of(self, task: "MixTask", epoch: int) -> list[tuple[str | None, Pipeline, BatchTask]]:
        """Return the batches of sources that a batch consists of, each with the name of its source."""
        return [
            (self.names[member], self.member(member).of_epoch(epoch), part) for member, *_, part in task.parts
        ]

    @property
    def derived(self) -> Mapping[str, Derived]:
        """Tensors of its batches that follow from lengths, by name; none if sources differ in them."""
        first, *others = (one.derived for one in self.present)
        return first if all(one == first for one in others) else {}

    def all_batches(self, size: int = 1) -> "MixPipeline":
        """Return the same mix for all batches of its epochs, as `Pipeline.all_batches` does."""
        found = copy(self)
        found.members = [None if one is None else one.all_batches() for one in self.members]
        found.assignment, found.skip, found.steps_of = ALL_BATCHES, (), size
        found.totals = None if self.totals is None else Totals(self.totals.texts, apart=True)
        return found

    def end_epoch(self) -> None:
        """Do nothing at the end of an epoch: sources that were read in part make no index."""

    def num_batches(self, epoch: int) -> int | None:
        """Return the number of batches of an epoch; None if that of some source is not known before reading."""
        picks = self.picks(epoch)
        counts = [
            0 if picks.end(number) == 0 else None if member is None else member.num_batches(epoch)
            for number, member in enumerate(self.members)
        ]
        if None in counts:
            return None
        total = picks.total({number: count for number, count in enumerate(counts) if count}, self.stop)
        for number, count in enumerate(counts):
            if count == 0 and picks.would_come(number, total):
                self.refuse_empty(number)
        return Skips(self.skip, epoch).kept_before(total)

    def refuse_empty(self, number: int, read: int = 0) -> NoReturn:
        """Raise the error for a source without batches, of which so many rows were read."""
        why = (
            f"none of the {read:,} rows that were read is left" if read else "it has no rows, or none is left"
        )
        raise BatchPlanError(
            f"Mix: source {self.names[number]!r} has no batch: {why}\n"
            "  conditions, filters of the plan and policies for bad rows and files leave rows out; "
            "a source with a weight of 0 may be empty"
        )

    def picks(self, epoch: int) -> Picks:
        """Return the assignment of batches of the sources to the batches of an epoch."""
        return Picks(self.history.pieces(epoch), self.rows, key_of(self.seed, epoch))

    def fingerprint(self, epoch: int) -> dict[str, Any]:
        """Return the entries of a state in an epoch besides the place."""
        sources = [None if one is None else one.fingerprint(epoch) for one in self.members]
        return {"settings": self._settings(), "sources": sources, "history": self.history.to_json()}

    def _settings(self) -> dict[str, Any]:
        return {
            "seed": self.seed, "stop": self.stop, "column": self.column, "rows": self.rows, "order": ORDER,
            **({"skip": [list(span) for span in self.skip]} if self.skip else {}),
        }  # fmt: skip

    def start_of(self, state: Mapping[str, Any], changes: str) -> MixPosition:
        """Return the place of a saved state; raise OpError when it does not fit."""
        check_changes(changes)
        check_mix_state(state)
        settings = {name: value for name, value in state["settings"].items() if name != "weights"}
        check_settings(settings, self._settings(), changes)
        saved = replace(self.history, changes=self.history.changes[:1])
        if "history" in state:  # not of versions whose weights did not change
            saved = History.from_json(state["history"], self.history.changes[-1].weights)
            own = () if self.is_named else self.names
            saved = replace(saved, names=(*own, *saved.names[len(own) :])[: len(saved.names)])
        for name in ("sources", "members"):
            if len(state[name]) != len(saved.names):
                raise OpError(
                    f"load_state_dict: the state has {len(state[name])} {name}, expected {len(saved.names)}"
                )
        history = self._continued(saved, state, changes)
        more = len(history.names) - len(state["members"])
        start = MixPosition(
            int(state["epoch"]), state["batch"], state["ranks"], state["ended"],
            [*state["members"], *[_begun() for _ in range(more)]],
        )  # fmt: skip
        # restored below: a source that refuses must not leave the others changed
        before = self.history, self.members, [(one, one.earlier) for one in self.present]
        self.members, self.history = self._numbered(history), history
        try:
            picks = self.picks(start.epoch)
            for number, source in enumerate(state["sources"]):
                of, member = start.members[number], self.members[number]
                if member is None or source is None:
                    continue
                check_streams(of["windows"], member.recipe.streams)
                done = sum(of["passes"])
                place = start.of_member(number, len(of["passes"]), picks.before(number, start.batch) - done)
                of_member = {"format": FORMAT, "by_rows": False, **source, **place.to_json()}
                what = f"load_state_dict: source {number}: "
                member.start_of(of_member, changes, what, begun=start.batch > 0)
        except BaseException:
            self.history, self.members, earlier = before
            for one, files in earlier:
                one.earlier = files
            raise
        return start

    def _continued(self, saved: History, state: Mapping[str, Any], changes: str) -> History:
        """Return the history `saved` in a state, continued with the weights of this mix if changes are accepted."""
        own, place = self.history, (int(state["epoch"]), int(state["batch"]))
        names = (*saved.names, *(name for name in own.names if name not in saved.names))
        then, now = (saved.by_name(saved.at(*place)), own.by_name(own.changes[-1].weights))
        kept, of_own = saved.to_json(), own.to_json()
        later = own.changes[len(kept) :]
        if of_own[: len(kept)] == kept and all(one[:2] >= place for one in later):
            return own  # what it has more comes after the state
        if of_own != kept[: len(of_own)] and (len(own.changes) > 1 or then != now):
            if len(own.changes) > 1:
                raise OpError(
                    f"load_state_dict: the history of the state has digest {saved.digest}, and that of this mix "
                    f"{own.digest}: {saved}\n  this mix: {own}\n"
                    "  all ranks change weights at the same batches; make the mix again, or set_epoch(…)"
                )
            shown = [{"weights": one if isinstance(one, dict) else str(one)} for one in (then, now)]
            check_settings(shown[0], shown[1], changes, also=("weights",))
            if self.next_change(place[1]) != place[1]:
                raise OpError(
                    f"load_state_dict: weights change at batch {place[1]} of the state, which is inside a step or a "
                    f"pool, expected a state at batch {self.next_change(place[1])}"
                )
            weights = own.changes[-1].weights
            if not isinstance(weights, Choice):
                weights = tuple(now.get(name, 0.0) for name in names)
            elif names != own.names:
                raise OpError(
                    f"load_state_dict: weights is a function that chooses from {', '.join(own.names)}, and the state "
                    f"has {', '.join(names)}, expected the same sources in the same order"
                )
            before = (
                tuple(one.get("before", 0) for one in state["members"]) if isinstance(then, Choice) else None
            )
            earlier = tuple(one for one in saved.changes if one[:2] < place)
            saved = replace(saved, changes=(*earlier, Change(*place, weights, before)))
        missing = [name for name in names if name not in own.names]
        for change in [Change(*place, saved.at(*place)), *(one for one in saved.changes if one[:2] > place)]:
            needed = saved.names if isinstance(change.weights, Choice) else saved.by_name(change.weights)
            if found := [name for name in missing if name in needed]:
                raise OpError(
                    f"load_state_dict: source {found[0]!r} of the state is missing, expected one of that name\n"
                    f"  the state: {saved}"
                )
        return replace(saved, names=names)

    def _numbered(self, history: History) -> list[Pipeline | None]:
        """Return the sources with their numbers in a history."""
        found = dict(zip(self.names, self.members, strict=True))
        return [
            one
            if one is None or one.recipe.member == number
            else one.as_member(number, (), of_rows=one.recipe.of_rows)
            for number, one in enumerate(map(found.get, history.names))
        ]

    def _check_member(self, number: int) -> None:
        """Raise OpError unless a source has the ranks of the others, and batches of the same tensors."""
        member = self.members[number]
        if member is None:
            return
        if member.assignment != self.assignment:
            raise OpError(
                f"Mix: source {number} is loaded as {member.assignment.ranks}, source 0 as {self.assignment.ranks}"
            )
        found = member.empty_batch()
        if self.empty is not None and found is not None:
            one, other = _tensor_types(self.empty), _tensor_types(found)
            for name in dict.fromkeys([*one, *other]):
                if one.get(name) != other.get(name):
                    raise OpError(
                        f"Mix: {name} is {other.get(name, 'missing')} in batches of source {number}, and "
                        f"{one.get(name, 'missing')} in those of source 0\n"
                        "  make them alike in prepare, or choose columns that all have"
                    )
        if self.totals is None:
            return
        if member.totals is not None:
            raise OpError(f"Mix: source {number} has totals of its own\n  give totals= to the Mix, not to it")
        balance = member.recipe.batch.balance
        if self._balanced != (None if balance is None else balance.step):
            raise OpError(
                f"Mix: totals of steps, which are not the same in the balance of sources 0 and {number}\n"
                "  give all the same group and steps_of"
            )
        member.check_totals(self.totals)

    def add(self, member: Pipeline) -> None:
        """Add a source, which has weights after the next change of the history."""
        self.members = [*self.members, member]
        try:
            self._check_member(len(self.members) - 1)
        except BaseException:
            self.members = self.members[:-1]
            raise


def _begun() -> dict[str, Any]:
    """Return the entry in a place of a source of which no batch has come."""
    return {"passes": [], "windows": {}}


Part = tuple[int, int, SourceRun, BatchTask]
"""A member, its pass, the run of the pass, and the batch that it makes."""


class MixTask(NamedTuple):
    """A batch of a mix to be made."""

    row: MixRow
    parts: tuple[Part, ...]
    size: BatchSize
    next: int
    """Row of the table at which a run goes on after it."""
    fill: str = ""
    """"pad" or "repeat" if it only fills the last round of the ranks."""
    passed: int = 0
    """Number of rows in the batches that are skipped before it."""
    step: int | None = None
    """Number of its step, if totals are counted."""
    totals: Mapping[str, int | float] | None = None
    """Totals over all batches of its step."""

    @property
    def batch(self) -> int | None:
        """Number in the epoch; that of the batch that it repeats; None if it is empty."""
        return None if self.fill == "pad" else self.row.number


class MadeMix(NamedTuple):
    """The batches that a batch of a mix consists of, or the error raised when making them."""

    task: MixTask
    parts: tuple[BatchResult, ...]
    error: BaseException | None = None


class MixRun:
    """One epoch of a mix: the runs of its members, pass after pass, and the batches made from theirs."""

    def __init__(self, mix: MixPipeline, start: MixPosition, run_options: RunOptions) -> None:
        self.mix, self.start, self.assignment, self.progress = mix, start, mix.assignment, Progress(start)
        self._run_options, self._stats, self.skips = run_options, run_options.stats, run_options.skips
        self._of_members = [Stats(timings=self._stats.timings) for _ in mix.members]
        """For each member, the counts of all passes."""
        self.without: Counter[str] = Counter()
        """For each of the totals, the rows for which it is 0."""
        self.picks = mix.picks(start.epoch)
        ended = [list(saved["passes"]) for saved in start.members]
        self.begun = start.batch
        """First batch that this process has not begun."""
        self.table = MixTable(
            self.picks, lambda *of: self.run(*of).table, ended, mix.stop, self._refuse, start.batch
        )
        if start.ended:
            self.table.total = start.batch
        self._runs: defaultdict[int, dict[int, SourceRun]] = defaultdict(dict)
        """Runs of each member by their pass."""
        self._first: MixRun | None = None
        self._step: tuple[int, Mapping[str, int | float]] = -1, {}
        """The last requested step, and the totals over its batches."""

    def _refuse(self, member: int) -> NoReturn:
        """Raise the error for a source without batches."""
        stats = self._of_members[member]
        for run in self._runs[member].values():
            run.count_rest(None)
        self._run_options.handlers[member].check(stats)
        self.mix.refuse_empty(member, stats.rows_read)

    def run(self, member: int, number: int) -> SourceRun:
        """Return the run of a pass of a member."""
        if number not in self._runs[member]:
            done = sum(self.table.counts[member][:number])
            place = self.start.of_member(member, number, self.picks.before(member, self.start.batch) - done)
            # ranks and skips are applied by the mix: a member makes every batch that it is asked for
            run_options = replace(
                self._run_options, handlers=[self._run_options.handlers[member]], stats=self._of_members[member],
                assignment=ALL_BATCHES, skips=NO_SKIPS, numbering=self.picks.numbering(member, done),
                stop=None,
            )  # fmt: skip
            self._runs[member][number] = self.mix.member(member).run(place, run_options)
        return self._runs[member][number]

    def change(self, change: Change) -> None:
        """Go on with other weights from a batch on that is not begun."""
        for number in range(len(self._of_members), len(self.mix.members)):
            self._of_members.append(Stats(timings=self._stats.timings))
            self._run_options.handlers.append(self.mix.handler(number))
            self.start.members.append(_begun())
        self.table.change(change)
        if self._first is not None:
            self._first.close()
            self._first = None

    def plan(self, window: Missing, *, wait: bool) -> bool:
        return self.run(window.member, window.number).plan(window, wait=wait)

    def of(self, row: MixRow, following: int, *, wait: bool) -> MixTask | None:
        parts = self._parts_of(row, wait=wait)
        if parts is None:
            return None
        sizes = [task.size for *_, task in parts]
        size = sizes[0] if len(sizes) == 1 else BatchSize(*map(sum, zip(*sizes, strict=True)))
        task = MixTask(row, parts, size, following)
        of_step = self.mix.step_size()
        if of_step is None:
            self.begun = max(self.begun, following)
            return task
        step = row.number // of_step
        if step != self._step[0]:
            totals = self._totals_of(step, of_step, wait=wait)
            if totals is None:
                return None
            self._step = step, totals
        self.begun = max(self.begun, following)
        return task._replace(step=step, totals=self._step[1])

    def _parts_of(self, row: MixRow, *, wait: bool) -> tuple[Part, ...] | None:
        """Return the parts of a row; None if that requires waiting."""
        parts = []
        for member, number, start, stop in row.parts:
            run = self.run(member, number)
            of_rows = self.mix.rows is not None
            tasks = [run.of(one, stop, wait=wait) for one in run.table.parts(start, stop)] if of_rows else []
            for task in tasks if of_rows else [task_at(run, start, wait=wait)]:
                if task is None:
                    return None
                parts.append((member, number, run, task))
        return tuple(parts)

    def _totals_of(self, step: int, size: int, *, wait: bool) -> dict[str, int | float] | None:
        """Return the totals over all batches of a step; None if that requires waiting."""
        if step * size < self.start.batch:  # its first batches lie before the place where the run went on
            return self.first()._totals_of(step, size, wait=True)
        totals, mix = self.mix.totals, self.mix
        assert totals is not None
        numbers: list[int] = []
        counts: list[int] = []
        tasks: list[BatchTask] = []
        for number in range(step * size, (step + 1) * size):
            while isinstance(row := self.table.find(number), Missing):
                if not self.plan(row, wait=wait):
                    return None
            if row is None:
                break
            parts = self._parts_of(row, wait=wait)
            if parts is None:
                return None
            numbers.append(row.number)
            counts.append(len(parts))
            tasks += [task for *_, task in parts]
        spans = [Span(task.batches, task.number, task.number + 1) for task in tasks]
        of_spans = [totals.of(span, self.without, of_rows=False) for span in spans]
        handed = HandedOut(totals, self.skips, self.skips.kept_before(self.start.batch))
        while isinstance(kept := handed.are(np.array(numbers), mix.assignment.ranks, self.table), Missing):
            if not self.plan(kept, wait=wait):
                return None
        steps = np.full(len(numbers), step)
        return handed.sums(of_spans, steps, np.array(counts), np.arange(len(tasks)), kept)[step]

    def rows_passed(self, number: int) -> None:
        """Return None: to count the rows of a skipped batch, it is planned."""

    def first(self) -> "MixRun":
        """Return a run that makes the first rows of the epoch again. It changes neither places nor counts."""
        if self._first is None:
            others = RunOptions.of_some(len(self.mix.members))
            self._first = self.mix.run(self.mix.beginning(self.start.epoch), others)
        return self._first

    def make(self, tasks: list[MixTask]) -> list[MadeMix]:
        """Return the batches, up to the first error."""
        found = []
        for task in tasks:
            parts: list[BatchResult] = []
            for _, _, run, part in () if task.fill == "pad" else task.parts:
                parts += run.make([part])
            error = next((one.error for one in parts if one.error is not None), None)
            found.append(MadeMix(task, tuple(parts), error))
            if error is not None:
                break
        return found

    def finished(self, made: MadeMix) -> LoadedBatch:
        """Return the batch, with the source of each of its rows."""
        task, mix = made.task, self.mix
        members = [member for member, *_ in task.parts]
        if task.fill == "pad":
            batch = mix.empty_batch()
            if batch is None:
                raise BatchPlanError(
                    "Mix: tail='pad' needs nets: the empty batch of a Python function is not known"
                )
            return batch if task.totals is None else batch.of_step(task.step, task.totals)
        runs = [run for _, _, run, _ in task.parts]
        finished = [run.maker.finish(one) for run, one in zip(runs, made.parts, strict=True)]
        for run, one in () if task.fill else zip(runs, finished, strict=True):
            run.count(one)
        batches = [one.batch for one in finished if one.batch is not None]
        counts = [batch.num_rows for batch in batches]
        batch = mix.labelled(concat_records(batches), members, counts, task.batch)
        return batch if task.totals is None else batch.of_step(task.step, task.totals)

    def _members_before(self, row: int) -> list[dict[str, Any]]:
        """Return, for each member, its passes that ended before a row, and the window of the current pass, as JSON.

        The windows of passes that have ended are counted.
        """
        found = []
        for member, saved in enumerate(self.start.members):
            passes = self.table.passes_before(member, row)
            self._count_rest(member, len(passes))
            run = self._runs[member].get(len(passes))
            windows: Mapping[str, Any] = saved["windows"] if len(passes) == len(saved["passes"]) else {}
            if run is not None:
                at = run.checkpoint
                windows = {} if at is None else {"0": [at.position, at.first, at.batches]}
            of_member: dict[str, Any] = {"passes": passes, "windows": windows}
            if isinstance(self.picks.weights, Choice):  # a later run may have another function
                of_member["before"] = self.picks.before(member, row)
            found.append(of_member)
        return found

    def _count_rest(self, member: int, number: int) -> None:
        """Count all windows of the earlier passes of a member: they have ended."""
        for before, run in self._runs[member].items():
            if before < number:
                run.count_rest(None)

    def release(self, task: MixTask) -> None:
        """Release the passes before those of a batch that was handed out."""
        for member, number, *_ in task.parts:
            for before in [before for before in self._runs[member] if before < number]:
                self._runs[member].pop(before).count_rest(None)

    def fill(self) -> None:
        for run in [run for of_member in self._runs.values() for run in of_member.values()]:
            run.fill()

    def free(self, memory: BatchMemory) -> None:
        """Do nothing: batches of a mix are joined from others, so none lies in memory that is used again."""

    def close(self) -> None:
        for of_member in self._runs.values():
            for run in of_member.values():
                run.close()
        if self._first is not None:
            self._first.close()

    def hand_out(self, made: MadeMix) -> tuple[Record, None]:
        task, stats = made.task, self._stats
        batch = self.finished(made)
        if task.fill == "repeat":
            stats.repeated += task.size.begun
        self.release(task)
        stats.batches += 1
        last = self.skips.number(
            self.skips.kept_before(task.row.number) - self.assignment.rank + self.assignment.world_size - 1
        )
        total = self.table.total
        is_last = bool(task.fill) or (total is not None and last >= total)
        # the state is after the whole round: all ranks save the same one
        looked = last if total is None else min(last, total)
        self.progress.position = MixPosition(
            self.start.epoch, task.next, self.assignment.world_size, is_last, self._members_before(looked + 1)
        )
        return batch, None

    def end(self, iteration: Iteration) -> None:
        for member, counts in enumerate(self.table.counts):
            self._count_rest(member, len(counts) + 1)

    def sum_counts(self) -> None:
        """Set the counts of the mix to the sums over its members."""
        for name in _SUMMED:
            setattr(self._stats, name, sum(getattr(one, name) for one in self._of_members))
        self._stats.reasons = sum((one.reasons for one in self._of_members), Reasons())
        self._stats.filtered_by_condition = sum(
            (one.filtered_by_condition for one in self._of_members), Counts()
        )
        self._stats.bad_files = sum((one.bad_files for one in self._of_members), BadFileList())
        self._stats.sources = {
            name: SourceCounts(one.rows, one.tokens, len(passes))
            for name, one, passes in zip(self.mix.names, self._of_members, self.table.counts, strict=True)
        }
        self._stats.without = self.without
        self._stats.costs = StepCosts.of(one.costs for one in self._of_members)


def _tensor_types(batch: Record) -> dict[str, str]:
    """Return dtype and sizes of each tensor, as text."""
    return {name: f"{tensor.dtype}{list(tensor.shape[1:])}" for name, tensor in batch.items()}
