"""Mixes whose weights and sources change while they run: all ranks, resumes and look-ups agree on every batch."""

import json
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf

NAMES = ("web", "code", "math", "books", "news")


def table_of(number, rows):
    """Rows whose ids tell the source; lists of 1 to 5 elements."""
    ids = range(1000 * number, 1000 * number + rows)
    return pa.table({"id": pa.array(ids), "tokens": pa.array([[one] * (one % 5 + 1) for one in ids])})


class Case:
    """A drawn mix, its history, and the ranks on which it runs."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.rows = {name: rng.randint(15, 90) for name in NAMES}
        self.stop = rng.choice(["first", "first", "all"])
        balance = sf.Balance(group=2, pool=rng.choice([1, 2]), cost="id * 0 + 1") if rng.random() < 0.3 else None
        self.plan = rng.choice(
            [
                sf.Rows(rng.randint(1, 7), balance=balance),
                sf.Rows(rng.randint(1, 7), balance=balance),
                sf.TokenBudget(rng.randint(6, 20), lengths="tokens.lengths", balance=balance),
            ]
        )
        self.is_rows = isinstance(self.plan, sf.Rows)
        self.unit = 1 if balance is None else balance.step * balance.steps_in_pool
        self.skip = [(3, 3 + rng.randint(1, 5))] if rng.random() < 0.3 else None
        self.shuffle, self.window = sf.Shuffle(rng.randint(0, 99)), rng.choice([300, 900, "1 MiB"])
        self.streams = rng.choice([1, 1, 2]) if self.is_rows and self.window == 300 else 1
        self.threads = rng.choice([0, 0, 2])
        self.first = {name: self.weight() for name in NAMES[: rng.randint(1, 3)]}
        self.changes = self.drawn()

    def weight(self):
        return self.rng.choice([0.05, 0.3, 1.0, 1.0, 4.0])

    def drawn(self):
        """Draw changes: batch, and the weights after it; a name that is new is added, one that is gone is removed."""
        rng, weights, at, changes = self.rng, dict(self.first), 0, []
        had = list(weights)
        for _ in range(rng.randint(0, 4)):
            at += rng.choice([0, 1, 2, 7, 20]) * self.unit
            kind = rng.choice(["reweigh", "reweigh", "add", "remove"])
            free = [name for name in NAMES if name not in had]
            if kind == "add" and free:
                weights = {**weights, free[0]: self.weight()}
                had.append(free[0])
                changes.append((kind, at, free[0], weights))
            elif kind == "remove" and sum(one > 0 for one in weights.values()) > 1:
                name = rng.choice([name for name, one in weights.items() if one > 0])
                weights = {**weights, name: 0.0}
                changes.append((kind, at, name, weights))
            else:
                drawn = {name: self.weight() if one else one for name, one in weights.items()}
                weights = {**drawn, rng.choice([n for n, one in drawn.items() if one]): self.weight()}
                changes.append(("reweigh", at, None, weights))
        return changes

    def source(self, name):
        return table_of(NAMES.index(name), self.rows[name])

    def mix(self, rank=0, world_size=1, tail="drop", first=None):
        first = self.first if first is None else first
        return sf.Mix(
            {name: self.source(name) for name in first}, weights=first, stop=self.stop, seed=7, batch=self.plan,
            shuffle=self.shuffle, window=self.window, streams=self.streams, skip=self.skip, batch_bytes=200,
            threads=self.threads, rank=rank, world_size=world_size, tail=tail,
        )  # fmt: skip

    def change(self, mix, change):
        kind, at, name, weights = change
        if kind == "reweigh":
            mix.reweigh({name: one for name, one in weights.items() if one}, at=at)
        elif kind == "add":
            mix.add(name, self.source(name), weight=weights[name], at=at)
        else:
            mix.remove(name, at=at)

    def changed(self, *args):
        mix = self.mix(*args)
        for change in self.changes:
            self.change(mix, change)
        return mix


def seen(batches):
    return [(batch.number, batch["id"].tolist()) for batch in batches]


def check(seed):
    """Check one drawn history against properties that are computed from its rows alone."""
    case = Case(seed)
    whole = seen(case.changed())
    rng = case.rng
    # a run that changes weights while it goes on has the same batches
    running, found, left = case.mix(), [], list(case.changes)
    ahead = 40 * case.unit
    for batch in running:
        found.append((batch.number, batch["id"].tolist()))
        while left and left[0][1] <= batch.number + ahead and left[0][1] >= running._run.begun:
            case.change(running, left.pop(0))
    if not left:
        assert found == whole, seed
    check_shares(case, whole, seed)
    check_rows(case, whole, seed)
    # ranks, and a resume on other ranks from the state of any of them
    world_size, after = rng.randint(1, 3), rng.randint(1, 3)
    try:
        ranks = [seen(case.changed(rank, world_size)) for rank in range(world_size)]
    except sf.BatchPlanError as error:
        assert "fewer batches than world_size" in str(error)
        return
    rounds = min(map(len, ranks))
    assert [one for round in zip(*ranks, strict=True) for one in round] == whole[: rounds * world_size], seed
    done = rng.randint(1, rounds) if rounds else 0
    if not done:
        return
    mix = case.changed(world_size - 1, world_size)
    with_state = iter(mix)
    for _ in range(done):
        next(with_state)
    state = json.loads(json.dumps(mix.state_dict()))
    with_state.close()
    weights = next((one for _, at, _, one in reversed(case.changes) if at <= state["batch"]), case.first)
    coming = [one for _, at, _, one in case.changes if at > state["batch"]]
    needed = {name for one in (weights, *coming) for name, weight in one.items() if weight}
    first = weights if not coming else {name: weights.get(name, 0.0) for name in {**weights, **dict.fromkeys(needed)}}
    first = {name: one for name, one in first.items() if one or name in needed}
    resumed = []
    for rank in range(after):
        one = case.mix(rank, after, "pad", first)
        one.load_state_dict(state)
        assert one.pipeline.history.changes == mix.pipeline.history.changes
        resumed.append([batch for batch in seen(one) if batch[0] is not None])
    rest = [batch for step in zip(*padded(resumed), strict=True) for batch in step if batch is not None]
    assert rest == whole[done * world_size :], seed
    # any batch by its number
    for number, ids in rng.sample(whole, min(3, len(whole))):
        assert mix.batch_at(number)["id"].tolist() == ids, seed


def padded(lists):
    longest = max(map(len, lists))
    return [[*one, *[None] * (longest - len(one))] for one in lists]


def check_rows(case, whole, seed):
    """Each row comes once in each pass over its source; skipped batches omit some."""
    if case.skip:
        return
    for number, name in enumerate(NAMES):
        counts = Counter(one for _, ids in whole for one in ids if one // 1000 == number)
        if not counts:
            continue
        if case.stop == "first":
            assert set(counts.values()) == {1}, seed
        else:
            each = Counter({1000 * number + row: counts[1000 * number + row] for row in range(case.rows[name])})
            assert max(each.values()) - min(each.values()) <= 1, seed


def check_shares(case, whole, seed):
    """After any number of batches of any piece each source is near its share, counted from the first batch on."""
    if case.skip:
        return
    share, count, at = np.zeros(len(NAMES)), np.zeros(len(NAMES)), 0
    pieces = [(0, case.first), *((at, weights) for _, at, _, weights in case.changes)]
    for number, ids in whole:
        while at + 1 < len(pieces) and pieces[at + 1][0] <= number:
            at += 1
        weights = np.array([pieces[at][1].get(name, 0.0) for name in NAMES])
        of_batch = np.bincount(np.array(ids) // 1000, minlength=len(NAMES))
        if case.is_rows:
            # a short last batch ends the epoch
            share += weights / weights.sum() * case.plan.n
            count += of_batch
            if sum(ids is not None for ids in ids) < case.plan.n:
                return
        else:
            share += weights / weights.sum()
            count += of_batch > 0
        assert np.abs(share - count).max() < (2 if case.is_rows else 2.5), (seed, number)


@pytest.mark.parametrize("block", range(6))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_drawn_histories(block):
    for seed in range(10 * block, 10 * block + 10):
        check(seed)
