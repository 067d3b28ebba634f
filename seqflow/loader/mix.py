"""Mix: several sources as one sequence of batches, in fixed proportions."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from inspect import signature
from itertools import islice
from typing import Any

import numpy as np

from seqflow.byte_sizes import format_bytes, parse_bytes
from seqflow.errors import BatchPlanError, OpError, OpMemoryError, OpTypeError
from seqflow.json_form import is_count, numbered
from seqflow.kernels.arrays import Array
from seqflow.kernels.error import KernelMemoryError
from seqflow.kernels.memory import check_memory
from seqflow.loader.converted import Converted, converted
from seqflow.loader.loader import Loader
from seqflow.loader.plans.permutation import key_of
from seqflow.loader.plans.plan import batch_plan
from seqflow.loader.plans.rows import Rows
from seqflow.loader.run.bad_rows import BadRowHandler
from seqflow.loader.run.batches import Run
from seqflow.loader.run.stats import Stats
from seqflow.loader.run.workers import Workers
from seqflow.loader.schedule.dealing import Deal
from seqflow.loader.schedule.state import (
    FORMAT,
    Position,
    check_changes,
    check_form,
    check_same,
    check_same_source,
    check_start,
    check_streams,
)
from seqflow.loader.schedule.streams import Checkpoint
from seqflow.ops.shared.random_bits import sequence_bits, uniform
from seqflow.record import Record, concat_records, slice_rows

_PASS = 1 << 32
"""The second pass over a source in an epoch has the order of an epoch that far away."""
_FORM = {
    "settings": Mapping, "sources": [{"settings": Mapping, "data": Mapping}], "epoch": is_count, "batch": is_count,
    "ranks": is_count, "ended": bool,
    "members": [{"passes": [is_count], "windows": numbered((is_count, is_count, is_count))}],
}  # fmt: skip


class Mix:
    """Batches of several sources as one sequence, which is the same for all ranks and after a resume.

        mix = sf.Mix({"web/*.parquet": 0.7, "books/*.parquet": 0.3}, seed=1, batch=256, shuffle=True)
        for batch in mix: ...

    The keys are sources, whose loaders have the `options`, or Loaders; the values are weights. Where batches have a
    number of rows, and all are sources whose rows are known, each batch has rows of every source, in quotas: 256 rows
    in proportions of 0.7 and 0.3 are 179 and 77. Otherwise each batch comes from one source; after any number of
    batches no source is more than one batch away from its share, and `seed` decides who comes first. The column
    `source` has the number of the source that each row came from; `column` gives it another name, None leaves it out.

    An epoch ends with the source that is exhausted `"first"`, or, with `stop="all"`, with the last; until then those
    exhausted earlier begin again, in a new order. `rank`, `world_size` and `tail` are those of a Loader. `memory` is
    divided equally among the sources; without it each has four windows.
    """

    def __init__(
        self,
        sources: Mapping[Any, float],
        *,
        seed: int = 0,
        stop: str = "first",
        column: str | None = "source",
        **options: Any,
    ) -> None:
        self.weights = _weights(sources)
        if stop not in ("first", "all"):
            raise OpError(f"Mix: stop is {stop!r}, expected 'first' or 'all'")
        self.seed, self.stop, self.column = seed, stop, column
        options = _divided(options, len(sources))
        quotas = None if any(isinstance(one, Loader) for one in sources) else _quotas(self.weights, options)
        if quotas is None:
            self.loaders = [_loader(source, options) for source in sources]
        else:
            lengths = batch_plan(options.get("batch", 256)).lengths
            self.loaders = [
                _loader(source, {**options, "batch": Rows(quota, True, lengths)})
                for source, quota in zip(sources, quotas, strict=True)
            ]
            if any(not loader.counts_rows() for loader in self.loaders):
                quotas, self.loaders = None, [_loader(source, options) for source in sources]
        self.quotas = quotas
        self.deal = self.loaders[0].deal
        self._check_members()
        self.epoch = 0
        self._stats = Stats()
        self._start: Mapping[str, Any] | None = None
        self._place: Mapping[str, Any] | None = None

    @property
    def rank(self) -> int:
        return self.deal.rank

    @property
    def world_size(self) -> int:
        return self.deal.world_size

    def __getstate__(self) -> dict[str, Any]:
        """What it was made from, and where it is; not what it has read."""
        return vars(self) | {"_stats": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _stats=Stats())

    @property
    def is_resuming(self) -> bool:
        """Whether the next iteration goes on from a state that was loaded."""
        return self._start is not None

    @property
    def epochs_differ(self) -> bool:
        """Whether batches of one epoch are others than those of the next, by their order or by random ops."""
        return len(self.loaders) > 1 or any(loader.epochs_differ for loader in self.loaders)

    def set_epoch(self, epoch: int) -> None:
        """Begin the next iteration with the first batch of an epoch."""
        for loader in self.loaders:
            loader.set_epoch(epoch)
        self.epoch, self._start, self._place = epoch, None, None

    def stats(self) -> Stats:
        """Counts of the last iteration so far, of all sources together."""
        return self._stats

    def to(
        self,
        library: str,
        *,
        pin_memory: bool = False,
        int64: bool | Collection[str] = False,
        cu_seqlens: bool = False,
    ) -> Converted:
        """The same batches as dicts of PyTorch tensors; see `Loader.to`."""
        return converted(self, library, pin_memory=pin_memory, int64=int64, cu_seqlens=cu_seqlens)

    def take(self, n: int) -> list[Record]:
        """The first n batches of the coming epoch; the mix stays where it is."""
        before = self.epoch, self._start, self._place
        try:
            with closing(iter(self)) as batches:
                return list(islice(batches, n))
        finally:
            self.epoch, self._start, self._place = before

    def state_dict(self) -> dict[str, Any]:
        """The place behind the last batch that was handed out, as JSON-compatible values."""
        place = self._place or self._start or self.beginning(self.epoch)
        members = [loader.state_dict() for loader in self.loaders]
        return {
            "format": FORMAT, **place, "settings": self._settings(),
            "sources": [{name: state[name] for name in ("settings", "data")} for state in members],
        }  # fmt: skip

    def load_state_dict(self, state: Mapping[str, Any], *, changes: str = "refuse") -> None:
        """Go on behind the batch that was the last when the state was taken, on any number of ranks and threads.

        `changes="accept"` is that of a Loader; another `prepare` is accepted at the beginning of an epoch only.
        """
        check_changes(changes)
        check_form("a Mix", state, _FORM)
        check_same("load_state_dict: ", state["settings"], self._settings())
        now = self.state_dict()["sources"]
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
            check_streams(state["members"][number]["windows"], self.loaders[number].streams)
        self._start = self._place = {
            name: state[name] for name in ("epoch", "batch", "ranks", "ended", "members")
        }
        self.epoch = int(state["epoch"])

    def __iter__(self) -> Generator[Record, None, None]:
        start = self._start or self.beginning(self.epoch)
        self._start = None
        self._stats = Stats()
        workers = Workers(self.loaders[0].threads)
        handlers = [
            BadRowHandler(loader.bad_rows.marked(f"source{number}", *self.deal.marks), loader.source.files)
            for number, loader in enumerate(self.loaders)
        ]
        self._place = start
        finished = False
        try:
            run = _MixRun(self, start, workers, handlers)
            if not start["ended"]:
                yield from run
            if self._place is start and start["batch"]:
                run.check_start(int(start["ranks"]))
            finished = True
            self.set_epoch(int(start["epoch"]) + 1)
        finally:
            workers.close()
            for handler in handlers:
                handler.close(keep=finished)

    def beginning(self, epoch: int) -> Mapping[str, Any]:
        """The place before the first batch of an epoch."""
        members: list[dict[str, Any]] = [{"passes": [], "windows": {}} for _ in self.loaders]
        return {"epoch": epoch, "batch": 0, "ranks": self.world_size, "ended": False, "members": members}

    def _settings(self) -> dict[str, Any]:
        return {
            "weights": self.weights, "seed": self.seed, "stop": self.stop, "column": self.column,
            "quotas": self.quotas,
        }  # fmt: skip

    def _check_members(self) -> None:
        """OpError unless all members have the same ranks and batches of the same tensors."""
        first, expected = self.loaders[0], self.loaders[0].empty_batch()
        for number, loader in enumerate(self.loaders[1:], 1):
            if loader.deal != first.deal:
                raise OpError(f"Mix: source {number} is loaded as {loader.deal}, source 0 as {first.deal}")
            found = loader.empty_batch()
            if expected is None or found is None:
                continue
            one, other = _described(expected), _described(found)
            for name in dict.fromkeys([*one, *other]):
                if one.get(name) != other.get(name):
                    raise OpError(
                        f"Mix: {name} is {other.get(name, 'missing')} in batches of source {number}, and "
                        f"{one.get(name, 'missing')} in those of source 0\n"
                        "  make them alike in prepare, or choose columns that all have"
                    )
        if expected is not None and self.column in expected:
            raise OpError(f"Mix: batches have a tensor {self.column!r} already\n  choose another column=")


_SUMMED = (
    "rows", "rows_read", "rows_left", "tokens", "cells", "bad_rows", "dropped", "skipped", "bytes_in_flight",
    "seconds_reading", "seconds_preparing", "seconds_planning", "seconds_making", "seconds_waiting",
)  # fmt: skip
"""Counts of a mix that are those of its sources together."""


class _MixRun:
    """One iteration over a mix, or what makes batch `only` of it."""

    def __init__(
        self,
        mix: Mix,
        start: Mapping[str, Any],
        workers: Workers,
        handlers: list[BadRowHandler],
        only: int | None = None,
    ) -> None:
        self.mix, self.deal, self.only = mix, mix.deal, only
        self._workers = workers
        self.epoch, self.first = int(start["epoch"]), int(start["batch"])
        self.picks = Picks(mix, self.epoch)
        self.members = [
            _Member(mix, number, self.epoch, start, self, workers, handlers[number])
            for number in range(len(mix.loaders))
        ]

    def __iter__(self) -> Iterator[Record]:
        first = self.deal.first(self.first)
        while (count := self._round(first)) and not (count < self.deal.world_size and self._dropped(first)):
            if self.deal.rank < count:
                batch = self._batch(first + self.deal.rank)
            elif self.deal.tail == "pad":
                batch = self._empty()
            else:
                batch = self._repeated((self.deal.rank - count) % (first + count))
            first += self.deal.stride
            self._hand_out(first - self.deal.first(0), batch, is_last=count < self.deal.world_size)
            yield batch
            if count < self.deal.world_size:  # behind it only batches of sources that are not exhausted
                break
        self._sum_counts()

    def _round(self, first: int) -> int:
        """How many batches there are from `first` on, up to those of a round."""
        for number in range(first, first + self.deal.world_size):
            if not all(self.members[member].has(one) for member, one in self.picks.of(number)):
                return number - first
        return self.deal.world_size

    def _dropped(self, first: int) -> bool:
        if self.deal.tail == "drop" and first == 0:
            raise BatchPlanError(
                f"Mix: an epoch has fewer batches than world_size = {self.deal.world_size}, and tail='drop' "
                "leaves none"
            )
        return self.deal.tail == "drop"

    def _repeated(self, number: int) -> Record:
        """One of the epoch's first batches, made again. Neither places nor other counts know of it."""
        loaders = self.mix.loaders
        before = [(loader.stats(), loader.place) for loader in loaders]
        handlers = [BadRowHandler(loader.bad_rows.uncounted()) for loader in loaders]
        again = _MixRun(self.mix, self.mix.beginning(self.epoch), self._workers, handlers, number)
        try:
            for earlier in range(number + 1):  # passes end where their batches do
                assert all(again.members[member].has(one) for member, one in self.picks.of(earlier))
            batch = again._batch(number)
            self.mix._stats.repeated += sum(member.stats.rows for member in again.members)
            return batch
        finally:
            for loader, (stats, place) in zip(loaders, before, strict=True):
                loader.begin(place, stats)

    def _empty(self) -> Record:
        """A batch without rows, to fill the last round."""
        empty = self.mix.loaders[0].empty_batch()
        if empty is None:
            raise BatchPlanError(
                "Mix: tail='pad' needs nets: nobody knows the empty batch of a Python function"
            )
        return self._labelled(slice_rows(empty, 0, 0), np.zeros(0, np.int64))

    def _batch(self, number: int) -> Record:
        made = [(member, self.members[member].take(one)) for member, one in self.picks.of(number)]
        counts = [batch.num_rows for _, batch in made]
        joined = concat_records([batch for _, batch in made])
        return self._labelled(joined, np.repeat(np.array([member for member, _ in made], np.int64), counts))

    def _labelled(self, batch: Record, sources: Array) -> Record:
        """The batch, and the source of each of its rows."""
        name = self.mix.column
        if name is None:
            return batch
        return replace(batch, tensors={**batch.tensors, name: sources}, parents={**batch.parents, name: None})

    def _sum_counts(self) -> None:
        """The counts of the mix are those of its sources together."""
        stats, parts = self.mix._stats, [member.stats for member in self.members]
        for name in _SUMMED:
            setattr(stats, name, sum(getattr(part, name) for part in parts))

    def _hand_out(self, following: int, batch: Record, *, is_last: bool) -> None:
        self._sum_counts()
        self.mix._stats.batches += 1
        members = [member.state() for member in self.members]
        self.mix._place = {
            "epoch": self.epoch, "batch": following, "ranks": self.deal.world_size, "ended": is_last,
            "members": members,
        }  # fmt: skip

    def check_start(self, ranks: int) -> None:
        """OpError where a state of so many ranks lies behind the end of the epoch: members lack batches before it."""
        for number, member in enumerate(self.members):
            batch = self.picks.before(number, self.first)
            if member.has_ended(batch):
                check_start(batch, ranks, member.num_batches())


class Picks:
    """Which batches of the members each batch of a mix is made of."""

    def __init__(self, mix: Mix, epoch: int) -> None:
        self._mix = mix
        self._phases = uniform(sequence_bits(key_of(mix.seed, epoch), len(mix.weights)))
        self._members = np.zeros(0, np.int64)
        self._numbers = np.zeros(0, np.int64)

    def of(self, number: int) -> list[tuple[int, int]]:
        """Pairs of a member and the number of its batch."""
        if self._mix.quotas is not None:
            return [(member, number) for member in range(len(self._mix.loaders))]
        if number >= len(self._members):
            self._members, self._numbers = self._merged(2 * number + 1024)
        return [(int(self._members[number]), int(self._numbers[number]))]

    def from_batch(self, member: int, start: int, deal: Deal) -> Iterator[int]:
        """The batches of a member that a rank, or its worker, needs from batch `start` of the mix on."""
        number = deal.first(start) + deal.rank
        while True:
            yield from (one for of, one in self.of(number) if of == member)
            number += deal.stride

    def before(self, member: int, batch: int) -> int:
        """How many batches of a member come before a batch of the mix."""
        if self._mix.quotas is not None:
            return batch
        self.of(batch)
        return int(np.count_nonzero(self._members[:batch] == member))

    def _merged(self, count: int) -> tuple[Array, Array]:
        """For each batch the member, and the number of its batch: batch j is due at (j + phase) / weight."""
        try:
            check_memory((4, count), np.dtype(np.int64))
        except KernelMemoryError as error:
            raise OpMemoryError(f"Mix: the order of {count} batches: {error}") from None
        shares = np.array(self._mix.weights) / sum(self._mix.weights)
        each = [np.arange(int(count * share) + 2) for share in shares]
        due = np.concatenate(
            [(ones + phase) / share for ones, phase, share in zip(each, self._phases, shares, strict=True)]
        )
        members = np.repeat(np.arange(len(each)), [len(ones) for ones in each])
        order = np.lexsort((members, due))[:count]
        return members[order], np.concatenate(each)[order]


class _Member:
    """One source of a mix, pass after pass."""

    def __init__(
        self,
        mix: Mix,
        number: int,
        epoch: int,
        start: Mapping[str, Any],
        run: _MixRun,
        workers: Workers,
        handler: BadRowHandler,
    ) -> None:
        saved = start["members"][number]
        self._mix, self._number, self._epoch = mix, number, epoch
        self._of, self._workers, self._handler = run, workers, handler
        self._first = int(start["batch"])
        self._passes: list[int] = list(saved["passes"])
        """The batches of each pass that has ended."""
        self._loader = mix.loaders[number]
        self.stats = Stats()
        """The counts of all passes."""
        self._windows = {int(stream): Checkpoint(*at) for stream, at in saved["windows"].items()}
        self._run: Run | None = None
        self._batches: list[Iterator[Record]] = [iter(())] * len(self._passes)
        """The batches of each pass: those of one that has ended are still to be taken by the round that ended it."""

    def has(self, batch: int) -> bool:
        """Whether there is a batch, counted over the passes; it begins the next pass where the mix goes on."""
        while True:
            run = self._begun()
            inside = batch - sum(self._passes)
            if run.has(inside):
                return True
            if self._mix.stop == "first" or inside == 0:
                return False
            self._passes.append(run.num_batches())
            self._run, self._windows = None, {}
            if all(member._passes for member in self._of.members):
                return False

    def has_ended(self, batch: int) -> bool:
        """Whether the pass that has begun is known to end before a batch."""
        return self._run is not None and not self._run.has(batch - sum(self._passes))

    def num_batches(self) -> int:
        """The batches of all passes, the last of which has ended."""
        assert self._run is not None
        return sum(self._passes) + self._run.num_batches()

    def take(self, batch: int) -> Record:
        self._begun()
        at = int(np.searchsorted(np.cumsum(self._passes), batch, side="right"))
        return next(self._batches[at])

    def state(self) -> dict[str, Any]:
        place = self._loader.place
        windows = {} if place is None or place.epoch != self._pass_epoch else place.windows
        return {
            "passes": self._passes,
            "windows": {str(at): [one.position, one.first, one.batches] for at, one in windows.items()},
        }

    def _begun(self) -> Run:
        if self._run is None:
            done = sum(self._passes)
            before = self._of.picks.before(self._number, self._first)
            start = Position(self._pass_epoch, max(0, before - done), self._windows, 1)
            self._loader.begin(start, self.stats)
            picks, only = self._of.picks, self._of.only
            if only is None:
                numbers = picks.from_batch(self._number, self._first, self._of.deal)
            else:
                numbers = (one for of, one in picks.of(only) if of == self._number)
            inside = (number - done for number in numbers if number >= done)
            self._run = self._loader.run(start, self._workers, self._handler, inside)
            self._batches.append(iter(self._run))
        return self._run

    @property
    def _pass_epoch(self) -> int:
        return self._epoch + _PASS * len(self._passes)


def _loader(source: Any, options: Mapping[str, Any]) -> Loader:
    if not isinstance(source, Loader):
        return Loader(source, **options)
    if options:
        raise OpTypeError(
            f"Mix: {next(iter(options))} is an option of loaders, expected sources instead of loaders\n"
            "  give it to the loaders themselves"
        )
    return source


def _weights(sources: Any) -> list[float]:
    if not isinstance(sources, Mapping) or not sources:
        raise OpTypeError(
            f"Mix: sources is {sources!r}, expected a dict of sources or loaders, and their weights"
        )
    for number, weight in enumerate(sources.values()):
        if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight < float("inf"):
            raise OpError(f"Mix: the weight of source {number} is {weight!r}, expected a number above 0")
    return [float(weight) for weight in sources.values()]


def _quotas(weights: list[float], options: Mapping[str, Any]) -> list[int] | None:
    """The rows of each source in a batch, by largest remainders; None where batches have no number of rows."""
    plan = batch_plan(options.get("batch", 256))
    if not isinstance(plan, Rows):
        return None
    shares = np.array(weights) / sum(weights) * plan.n
    quotas = np.floor(shares).astype(int)
    for member in np.argsort(quotas - shares, kind="stable")[: plan.n - quotas.sum()]:
        quotas[member] += 1
    if not quotas.all():
        member = int(np.argmin(quotas))
        raise OpError(
            f"Mix: source {member} has a weight of {weights[member] / sum(weights):.3g}, less than a row of a batch "
            f"of {plan.n}\n  use larger batches"
        )
    return [int(quota) for quota in quotas]


def _divided(options: Mapping[str, Any], sources: int) -> dict[str, Any]:
    """The options of each loader: `memory` is that of all together."""
    if options.get("memory") is None:
        return dict(options)
    try:
        memory = parse_bytes(options["memory"])
        window = parse_bytes(options.get("window", signature(Loader).parameters["window"].default))
    except ValueError:
        return dict(options)  # each loader says what is wrong with it
    if memory // sources < window:
        raise OpError(
            f"Mix: memory is {format_bytes(memory)} for {sources} sources, expected a window for each, "
            f"{format_bytes(window * sources)}\n  raise memory, or lower window"
        )
    return {**options, "memory": memory // sources}


def _described(batch: Record) -> dict[str, str]:
    return {name: f"{tensor.dtype}{list(tensor.shape[1:])}" for name, tensor in batch.items()}
