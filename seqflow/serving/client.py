"""`sf.served`: the batches of servers, as a loader gives them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from operator import add
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, Unpack

import numpy as np

from seqflow.arguments import SECONDS_TO_WAIT, FilePath, checked, is_wait, shown
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.loader import Balance, arguments
from seqflow.loader.epoch.assign_ranks import Assignment, Skips, SkipSpan
from seqflow.loader.epoch.assign_ranks import spans_of as skip_spans_of
from seqflow.loader.epoch.ranks import Ranks
from seqflow.loader.epoch.state import (
    AT_BEGINNING,
    Checkpoint,
    MixPosition,
    Place,
    Position,
    Progress,
    check_changes,
    check_loader_schema,
    check_prepared,
    check_same_source,
    check_settings,
    check_step,
    check_streams,
)
from seqflow.loader.epoch.table import Missing
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.plans.balanced_pools import Totals
from seqflow.loader.plans.plan import BatchSize
from seqflow.loader.run.iterator import Iteration, RunOptions
from seqflow.loader.run.ledger import BadRowHandler, Stats
from seqflow.loader.run.making import LoadedBatch, Trace
from seqflow.loader.run.mixing import check_mix_state
from seqflow.loader.run.steps import HandedOut
from seqflow.loader.run.workers import byte_count
from seqflow.loader.verdicts import Settings, Verdict
from seqflow.record import Record
from seqflow.serving.lanes import Facts, Lane, Servers
from seqflow.serving.tickets import Span, Ticket, spans_of
from seqflow.serving.wire import VERSION
from seqflow.version import __version__

_CELLS = 1 << 19
"""Size of each batch for those who group small ones into a task: each is one alone, as it comes."""
_AT_ONCE = 4096
"""Numbers of batches that are looked up together."""


class ServedTable:
    """The batches of an epoch: known from the beginning, or as far as they have come."""

    what = "served"

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.known = 0

    def has(self, k: int) -> bool | Missing:
        if self.total is not None:
            return k < self.total
        return True if k < self.known else Missing(k)

    def find(self, k: int) -> int | Missing | None:
        found = self.has(k)
        return k if found is True else None if found is False else found

    @property
    def num_known(self) -> int:
        return self.known if self.total is None else self.total


class ServedTask(NamedTuple):
    """A batch to fetch."""

    row: int
    """Its number."""
    next: int
    fill: str = ""
    size: BatchSize = BatchSize(0, 0, _CELLS, 0)
    passed: int = 0


class FetchedBatch(NamedTuple):
    """A batch that came, or the error in its place."""

    task: ServedTask
    facts: Facts = MappingProxyType({})
    batch: Record | None = None
    error: BaseException | None = None


class ServedRun:
    """One epoch, whose batches come from servers."""

    def __init__(self, pipeline: "ServedPipeline", start: Place, run_options: RunOptions) -> None:
        self._pipeline, self._start, self._options = pipeline, start, run_options
        self.progress = Progress(start)
        total, firsts = pipeline.epoch(start.epoch)
        self.table: Any = ServedTable(total)
        self._firsts = None if firsts is None else np.asarray(firsts, np.int64)
        self._lanes: list[Lane] = []
        place = None if firsts is not None else start.to_json()
        self._ticket = Ticket(
            pipeline.info["identity"], start.epoch, (), size=pipeline.ticket_size, place=place
        )
        self._place: Mapping[str, Any] = start.to_json()
        """Place after the last batch, as the server tells it."""
        self._first_index = run_options.skips.kept_before(start.batch)

    # Lanes

    def fill(self) -> None:
        """Begin to read ahead, at the first call: windows, or streams, are dealt to the servers in turn."""
        if self._lanes:
            return
        servers, index = self._pipeline.servers, self._options.assignment.first(self._first_index)
        count = 1 if self._firsts is None else len(servers.addresses)
        most = max(1, self._pipeline.ahead // count)
        self._lanes = [
            Lane(servers, lane, self._ticket, self._spans(lane, count, index), self._low, most)
            for lane in range(count)
        ]

    def _spans(self, lane: int, count: int, index: int) -> Iterator[Span]:
        for numbers in self._numbers(index):
            yield from spans_of(numbers[self._lane_of(numbers, count) == lane])

    def _lane_of(self, numbers: Array, count: int) -> Array:
        streams = self._pipeline.info["streams"]
        if self._firsts is None or streams > 1:
            return np.asarray(numbers % streams % count)
        return np.asarray((np.searchsorted(self._firsts, numbers, side="right") - 1) % count)

    def _low(self, number: int) -> int:
        """Return the first batch of the round of a batch."""
        skips = self._options.skips
        before = skips.kept_before(number) - self._options.assignment.rank
        return skips.number(max(self._first_index, before))

    def _numbers(self, index: int) -> Iterator[Array]:
        """Yield the numbers of the batches of this rank in whole rounds, from kept row `index` on."""
        assignment, skips, total = self._options.assignment, self._options.skips, self.table.total
        stride, size = assignment.stride, assignment.world_size
        stop = None if total is None else skips.kept_before(total)
        if stop is not None and assignment.tail == "drop":
            stop = self._first_index + (stop - self._first_index) // size * size
        first = index + assignment.rank
        while stop is None or first < stop:
            numbers = first + stride * np.arange(_AT_ONCE)
            yield skips.numbers(numbers if stop is None else numbers[numbers < stop])
            first += stride * _AT_ONCE

    # The protocol of a run

    def plan(self, window: Missing, *, wait: bool) -> bool:
        """Learn whether a batch exists, of an epoch whose batches are not counted before reading."""
        if not wait:
            return False
        number, table = window.position, self.table
        ticket = self._ticket._replace(spans=[(number, 1, 1)], place={**self._place, "ranks": 1})
        found = self._pipeline.servers.ask("known", ticket.to_bytes())
        table.known = max(table.known, found["known"])
        table.total = found["total"]
        return True

    def of(self, row: int, following: int, *, wait: bool) -> ServedTask:
        return ServedTask(row, following)

    def rows_passed(self, number: int) -> int:
        """Return 0: the rows of skipped batches are not known here."""
        return 0

    def first(self) -> "ServedRun":
        return self

    def make(self, tasks: list[ServedTask]) -> list[FetchedBatch]:
        """Return the batches, up to the first error."""
        found: list[FetchedBatch] = []
        for task in tasks:
            try:
                found.append(FetchedBatch(task, *self._fetched(task)))
            except BaseException as error:
                found.append(FetchedBatch(task, error=error))
                break
        return found

    def _fetched(self, task: ServedTask) -> tuple[Facts, Record]:
        if self._lanes and not task.fill:
            return self._lanes[int(self._lane_of(np.array([task.row]), len(self._lanes))[0])].take()
        place = self._ticket.place
        if place is not None and place["batch"] > task.row:
            place = None
        ticket = self._ticket._replace(spans=[(task.row, 1, 1)], low=task.row, place=place)
        facts, batch = self._one(ticket)
        if task.fill == "pad":
            empty, batch = self._one(ticket._replace(fill="pad"))
            facts = {**facts, "size": empty["size"]}
        return facts, batch

    def _one(self, ticket: Ticket) -> tuple[Facts, Record]:
        """Return the only batch of a ticket."""
        with closing(Lane(self._pipeline.servers, 0, ticket, ticket.spans, lambda number: number, 1)) as lane:
            return lane.take()

    def finished(self, made: FetchedBatch) -> Record:
        """Return a batch, with the totals of its step over the batches that are handed out."""
        batch, totals = made.batch, self._pipeline.totals
        assert batch is not None
        if totals is None:
            return batch
        assert isinstance(batch, LoadedBatch)
        values: Mapping[str, Any] = batch.totals
        size, step = self._pipeline.step_size, batch.step
        numbers = step * size + np.arange(len(next(iter(values.values()))))
        handed = HandedOut(totals, self._options.skips, self._first_index)
        while isinstance(kept := handed.are(numbers, self._pipeline.assignment.ranks, self.table), Missing):
            self.plan(kept, wait=True)
        sums = {}
        for name, of_batches in values.items():
            chosen = [
                value for one, is_kept in zip(of_batches, kept, strict=True) if is_kept for value in one
            ]
            # one by one, as the loader adds them: `sum` compensates the rounding of floats
            sums[name] = reduce(add, chosen, 0.0 if any(isinstance(one, float) for one in chosen) else 0)
            totals.check_sum(name, step, sums[name])
        return batch.of_step(step, sums)

    def hand_out(self, made: FetchedBatch) -> tuple[Record, None]:
        task, stats = made.task, self._options.stats
        batch = self.finished(made)
        stats.batches += 1
        rows, tokens, cells, shared = made.facts["size"]
        stats.tokens += tokens
        stats.cells += cells
        stats.shared += shared
        if task.fill == "repeat":
            stats.repeated += rows
        else:
            stats.rows += rows
            self._place = self._after(made.facts.get("place", self._place), made.facts)
        self.progress.position = self._position(task)
        self.progress.at_window_end = bool(made.facts.get("at_window_end")) and task.fill != "repeat"
        return batch, None

    def _after(self, place: Mapping[str, Any], facts: Facts) -> Mapping[str, Any]:
        """Return the place after a batch of this rank; the server's is after all batches before it, too.

        A mix that counts batches while it reads them knows the windows of the batches that it handed out itself.
        """
        names = self._pipeline.info["sources"]
        if names is None:
            return place
        members = []
        for name, own, now in zip(names, self._place["members"], place["members"], strict=True):
            windows = own["windows"] if len(own["passes"]) == len(now["passes"]) else {}
            members.append({**now, "windows": now["windows"] if name in facts["sources"] else windows})
        return {**place, "members": members}

    def _position(self, task: ServedTask) -> Place:
        epoch, ranks = self._start.epoch, self._pipeline.assignment.world_size
        if self._pipeline.info["sources"] is None:
            at = self._place["windows"].get("0") if self._firsts is None else None
            window = None if at is None else Checkpoint(at["window"], at["first_batch"], at["batches"])
            return Position(epoch, task.next, window, ranks)
        skips, total = self._options.skips, self.table.total
        last = skips.number(skips.kept_before(task.row) - self._options.assignment.rank + ranks - 1)
        ended = bool(task.fill) or (total is not None and last >= total)
        return MixPosition(epoch, task.next, ranks, ended, self._place["members"])

    def free(self, memory: Any) -> None:
        """Do nothing: each batch has memory of its own."""

    def end(self, iteration: Iteration) -> None:
        """Do nothing: servers count the rows in no batch."""

    def sum_counts(self) -> None:
        """Do nothing: the counts are always up to date."""

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()


class ServedPipeline:
    """Fetches the batches of any epoch, for the ranks of an assignment."""

    threads = 0

    def __init__(
        self,
        servers: Servers,
        info: Mapping[str, Any],
        ranks: Ranks,
        skip: Sequence[SkipSpan] | None,
        ahead: int,
    ) -> None:
        self.servers, self.info, self.ahead = servers, info, ahead
        self.assignment = Assignment(ranks)
        self.skip = skip_spans_of(info["skip"]) if skip is None else skip
        self.totals = None if info["totals"] is None else Totals(info["totals"])
        self.epochs_differ = bool(info["epochs_differ"])
        self._of_mix = info["sources"] is not None
        self.members = [None] * len(info["sources"] or [""])

    @property
    def step_size(self) -> int:
        """Number of batches of a step."""
        balance = self.info["balance"]
        return int(balance[0] * balance[1] if balance else self.assignment.world_size * self.info["steps_of"])

    @property
    def ticket_size(self) -> int:
        return 1 if self.totals is None or self.info["balance"] else self.step_size

    def epoch(self, epoch: int) -> tuple[int | None, Any]:
        """Return the number of batches of an epoch, and the first of each run of windows, if they are known."""
        ticket = Ticket(self.info["identity"], epoch, [(0, 1, 1)])
        found = self.servers.ask("epoch", ticket.to_bytes())
        return found["total"], found["firsts"]

    def beginning(self, epoch: int) -> Place:
        ranks = self.assignment.world_size
        if not self._of_mix:
            return Position(epoch, 0, None, ranks)
        return MixPosition(epoch, 0, ranks, False, [{"passes": [], "windows": {}} for _ in self.members])

    def run(self, start: Place, run_options: RunOptions) -> ServedRun:
        if self.totals is not None:
            check_step(start, self.assignment.world_size, self.step_size)
        if self._of_mix:
            run_options = replace(run_options, skips=Skips(self.skip, start.epoch))
        run = ServedRun(self, start, run_options)
        if isinstance(start, MixPosition) and start.ended:
            run.table.total = start.batch
        return run

    def num_batches(self, epoch: int) -> int | None:
        total = self.epoch(epoch)[0]
        return None if total is None else Skips(self.skip, epoch).kept_before(total)

    def handlers(self) -> list[BadRowHandler]:
        return [BadRowHandler()]

    def end_epoch(self) -> None:
        """Do nothing: servers keep the index."""

    def empty_batch(self) -> None:
        """Return None: the first batch tells the tensors."""

    def fingerprint(self, epoch: int) -> dict[str, Any]:
        found = dict(self.info["fingerprint"])
        if self.skip:
            found["settings"] = {**found["settings"], "skip": [list(span) for span in self.skip]}
        return found

    def start_of(self, state: Mapping[str, Any], changes: str) -> Place:
        """Return the place of a saved state, of these servers or of a loader; raise OpError when it does not fit."""
        check_changes(changes)
        now, what = self.fingerprint(0), "load_state_dict: "
        if not self._of_mix:
            check_loader_schema(state)
            also = AT_BEGINNING if state["batch"] == 0 else ()
            changed = check_same_source(what, state, now, changes, also)
            check_prepared(what, state, changed, counts_rows=self.info["counts_rows"])
            check_streams(state["windows"], self.info["streams"])
            return Position.from_json(state)
        check_mix_state(state)
        then = {name: state[name] for name in ("settings", "history") if name in state}
        check_settings(then, {name: now[name] for name in then}, changes)
        if len(state["sources"]) != len(now["sources"]) or len(state["members"]) != len(self.members):
            raise OpError(
                f"load_state_dict: the state has {len(state['members'])} members, expected {len(self.members)}"
            )
        for number, (then, source) in enumerate(zip(state["sources"], now["sources"], strict=True)):
            changed = check_same_source(f"{what}source {number}: ", then, source, changes)
            check_prepared(f"{what}source {number}: ", {**state, "windows": {}}, changed, counts_rows=False)
        return MixPosition(state["epoch"], state["batch"], state["ranks"], state["ended"], state["members"])


@dataclass(repr=False)
class ServedStats(Stats):
    """Counts of one iteration: batches, tokens and waiting are those of this client, rows read and omitted those of
    the servers.
    """

    asked: Servers | None = field(default=None, repr=False)

    @property
    def servers(self) -> dict[str, dict[str, Any]]:
        """Counts of each server by its address, for all its clients; `error` if it does not answer."""
        return {} if self.asked is None else self.asked.each("stats")

    @property
    def failures(self) -> int:
        """Number of times that a server failed, and another one was asked."""
        return 0 if self.asked is None else self.asked.failures


class ServedLoader(EpochBatches):
    """Batches that servers make, in the order of a loader; `sf.served` makes it."""

    pipeline: Any

    def __repr__(self) -> str:
        return f"Batches of {', '.join(self.pipeline.servers.names)}, {self._where()}"

    @property
    def place(self) -> Place:
        """Place after the last batch handed out; of a mix whose sources begin again, servers tell the passes that
        ended with the round of all ranks.
        """
        found, pipeline = super().place, self.pipeline
        if (
            self._progress is None
            or not isinstance(found, MixPosition)
            or found.ended
            or found.ranks == 1
            or found.batch == 0
            or pipeline.info["fingerprint"]["settings"]["stop"] == "first"
        ):
            return found
        skips = Skips(pipeline.skip, found.epoch)
        last = skips.number(skips.kept_before(found.batch) - 1)
        ticket = Ticket(pipeline.info["identity"], found.epoch, [(last, 1, 1)], place=found.to_json())
        passes = [
            one["passes"] for one in pipeline.servers.ask("known", ticket.to_bytes())["place"]["members"]
        ]
        members = [
            {"passes": now, "windows": one["windows"] if len(now) == len(one["passes"]) else {}}
            for one, now in zip(found.members, passes, strict=True)
        ]
        return found._replace(members=members)

    def trace(
        self,
        number: int,
        *,
        row: int | None = None,
        element: int | None = None,
        column: str | None = None,
        epoch: int = 0,
    ) -> list[Trace]:
        """Return the origin of a batch, as a loader does."""
        pipeline = self.pipeline
        ticket = Ticket(pipeline.info["identity"], epoch, [(number, 1, 1)])
        asked = {"ticket": json.loads(ticket.to_bytes()), "row": row, "element": element, "column": column}
        return [Trace(**one) for one in pipeline.servers.ask("trace", json.dumps(asked).encode())]

    def _refuse(self, *args: object, **options: object) -> NoReturn:
        """Raise OpError: the sources of a mix and their weights are those of the servers."""
        raise OpError(
            "served: a mix's history belongs to the servers' job, expected its weights and sources changed there\n"
            "  servers of the changed job have another identity: connect to them again"
        )

    reweigh = add = remove = choose = _refuse

    def _refuse_rows(self, *args: object, **options: object) -> NoReturn:
        """Raise OpError: a client does not know which rows of files are in batches."""
        raise OpError(
            "served: the rows of the batches are known to their servers\n"
            "  ask a loader of their job: `seqflow ledger JOB`, `seqflow find JOB`"
        )

    ledger = find = _refuse_rows

    def verdict(self) -> Verdict:
        """Return whether the last iteration waited for the servers or for the consumer, as a loader does."""
        found = super().verdict()
        if found.limit in (None, "consumer", "first window"):
            return found
        return Verdict({**found.to_json(), "limit": "servers", "remedies": []})

    def _settings(self) -> Settings:
        # the threads are those of servers: more here change nothing
        return Settings(1, self.pipeline.ahead, rank=self.rank, world_size=self.world_size)

    def stats(self) -> ServedStats:
        """Return the counts of the last iteration so far, and those of the servers."""
        found = super().stats()
        own = {one.name: getattr(found, one.name) for one in fields(Stats) if one.init}
        return ServedStats(**own, asked=self.pipeline.servers)


@checked()
def served(
    url: str | Sequence[str],
    *,
    ranks: Ranks | None = None,
    skip: Iterable[Sequence[int]] | None = None,
    ahead: int | str = "64 MiB",
    timeout: float = 60,
    token: str | None = None,
    tls_root: FilePath | None = None,
    **options: Unpack[arguments.RankOptions],
) -> ServedLoader:
    """Return the batches that servers of one job make, as a loader gives them.

        for batch in sf.served("flight://a:8815,b:8815", rank=0, world_size=8): ...

    It has what a Loader has: iteration, `epoch`, `set_epoch`, `len`, `take`, `batch_at`, `trace`, `state_dict` and
    `load_state_dict`, `to("torch")` and `stats()`. States are those of a local loader with the same job, both ways.
    Servers have no state: any of them may end, and others begin, at any time. The batches of a window come from
    one server as long as it answers, so that it is read once.

    Args:
        url: Servers, `flight://host:port` or with TLS `flight+tls://host:port`, separated by commas or as a list.
            A name with several addresses is all of them.
        ranks: `Ranks(rank, world_size, tail=)`, as in a Loader.
        skip: Spans of batches to omit, as in a Loader; None omits those of the servers' job.
        ahead: Most bytes of batches that are read ahead, as a number or a text such as "64 MiB".
        timeout: Seconds to wait for a server, before the next one is asked; and until an error is raised if none
            answers; at most a day.
        token: Text that the servers expect.
        tls_root: File of the root certificate (PEM); None takes those of the system.
        rank: Field of `ranks`.
        world_size: Field of `ranks`.
        tail: Field of `ranks`.

    Raise OpError when no server answers, with the addresses; the errors of nets and rows are those of a loader.
    """
    given = arguments.grouped("ranks", ranks, Ranks, arguments.RANKS, options)
    if not is_wait(timeout):
        raise OpError(f"served: timeout is {shown(timeout)}, expected {SECONDS_TO_WAIT}")
    spans, most = None if skip is None else skip_spans_of(skip), byte_count("served: ahead", ahead)
    root = None if tls_root is None else Path(tls_root).read_bytes()
    urls = [url] if isinstance(url, str) else list(url)
    servers = Servers(urls, token=token, tls_root=root, timeout=timeout)
    info = servers.ask("info")
    if info["version"] != VERSION or info["seqflow"] != __version__:
        raise OpError(
            f"served: the servers have seqflow {info['seqflow']}, this process {__version__}, expected the same"
        )
    servers.info = info
    pipeline = ServedPipeline(servers, info, given, spans, most)
    balance = (
        None
        if info["balance"] is None
        else Balance(info["balance"][0], steps_of=info["balance"][1], linear=1)
    )
    arguments.check_totals(pipeline.totals, 1, 1, given, balance)
    return ServedLoader(pipeline)
