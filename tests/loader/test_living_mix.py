"""Mixes whose weights and sources change while they run: all ranks, resumes and look-ups agree on every batch."""

import json
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from marks import THOROUGH, slow, thorough

import seqflow as sf
from seqflow.errors import BatchPlanError
from seqflow.loader.epoch.history import Change
from seqflow.loader.epoch.mix import Picks

NAMES = ("web", "code", "math", "books", "news")


def table_of(number, rows):
    """Rows whose ids tell the source; lists of 1 to 5 elements."""
    ids = range(1000 * number, 1000 * number + rows)
    return pa.table({"id": pa.array(ids), "tokens": pa.array([[one] * (one % 5 + 1) for one in ids])})


class Case:
    """A drawn mix, its history, and the ranks on which it runs."""

    def __init__(self, seed, folder):
        self.folder = folder
        self.rng = rng = random.Random(seed)
        self.rows = {name: rng.randint(15, 90) for name in NAMES}
        self.stop = rng.choice(["first", "first", "all"])
        balance = (
            sf.Balance(group=2, pool=rng.choice([1, 2]), cost="id * 0 + 1") if rng.random() < 0.3 else None
        )
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
        self.has_index = not self.is_rows and rng.random() < 0.4
        if self.has_index:
            self.streams = rng.choice([1, 2]) if self.window == 300 else 1
        self.first = {name: self.weight() for name in NAMES[: rng.randint(1, 3)]}
        self.changes = self.drawn()

    def weight(self):
        # a rare source makes an epoch that ends with the last one long
        return self.rng.choice([0.05 if self.stop == "first" else 0.5, 0.3, 1.0, 1.0, 4.0])

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
        table = table_of(NAMES.index(name), self.rows[name])
        if not self.has_index:
            return table
        return sf.Loader(table, index=self.folder / f"{name}.arrow", **self.options)

    def mix(self, rank=0, world_size=1, tail="drop", first=None):
        first = self.first if first is None else first
        self.options = {
            "batch": self.plan, "shuffle": self.shuffle, "window": self.window, "streams": self.streams,
            "batch_bytes": 200, "threads": self.threads, "rank": rank, "world_size": world_size, "tail": tail,
        }  # fmt: skip
        sources = {name: self.source(name) for name in first}
        options = {} if self.has_index else self.options
        return sf.Mix(sources, weights=first, stop=self.stop, seed=7, skip=self.skip, **options)

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


def check(seed, folder):
    """Check one drawn history against properties that are computed from its rows alone."""
    case = Case(seed, folder)
    first = case.changed()
    whole = seen(first)
    # the next epoch is the same, whether the first one was iterated or not
    other = case.changed()
    other.set_epoch(1)
    assert seen(first) == seen(other), seed
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
    except BatchPlanError:  # fewer batches than ranks, of which a drop leaves none
        assert len(whole) < world_size
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
    first = (
        weights
        if not coming
        else {name: weights.get(name, 0.0) for name in {**weights, **dict.fromkeys(needed)}}
    )
    first = {name: one for name, one in first.items() if one or name in needed}
    resumed = []
    for rank in range(after):
        one = case.mix(rank, after, "pad", first)
        one.load_state_dict(state)
        assert one.pipeline.history.changes == mix.pipeline.history.changes
        resumed.append([batch for batch in seen(one) if batch[0] is not None])
    rest = [batch for step in zip(*padded(resumed), strict=True) for batch in step if batch is not None]
    assert rest == whole[done * world_size :], seed
    # the ledger counts each row as often as it came, and rows are found in the batches that have them
    mix = case.changed(world_size - 1, world_size)
    upto = whole[rounds * world_size - 1][0] + 1
    came = Counter(NAMES[one // 1000] for _, ids in whole[: rounds * world_size] for one in ids)
    ledger = mix.ledger(upto)
    assert {one.source: one.rows for one in ledger.by_source if one.rows} == came, seed
    assert ledger.digest == case.changed().ledger(upto).digest, seed
    number, ids = rng.choice(whole[: rounds * world_size])
    at = rng.randrange(len(ids))
    (trace,) = mix.trace(number, row=at)
    places = mix.find(trace.file, ids[at] % 1000)
    assert (number, at) in [(one.batch, one.row) for one in places if one.source == trace.source], seed
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
            each = Counter(
                {1000 * number + row: counts[1000 * number + row] for row in range(case.rows[name])}
            )
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


BLOCKS = range(2500 if THOROUGH else 6)
"""Of four histories each: one is quick, three are slow, the others thorough."""


@pytest.mark.parametrize("block", [0, *slow(1, 3, 4), *thorough(2, *BLOCKS[5:])])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_drawn_histories(block, tmp_path_factory):
    for seed in range(4 * block, 4 * block + 4):
        check(seed, tmp_path_factory.mktemp("drawn"))


def mix_of(sources=("web", "code"), weights=(3, 1), plan=8, rows=400, **options):
    found = {name: table_of(NAMES.index(name), rows) for name in sources}
    options = {
        "batch": plan,
        "seed": 2,
        "shuffle": sf.Shuffle(1),
        "window": 900,
        "batch_bytes": 300,
        **options,
    }
    weights = weights if callable(weights) else dict(zip(sources, weights, strict=True))
    return sf.Mix(found, weights=weights, **options)


TOKENS = sf.TokenBudget(20, lengths="tokens.lengths")


@pytest.mark.parametrize("rows", [None, 256], ids=["batches", "rows"])
def test_a_batch_after_changes_is_found_without_the_batches_before_it(rows):
    """Walking to it would take hours."""
    weights = [(0, (7, 2, 1)), (3 * 10**9, (2, 7, 1)), (6 * 10**9, (2, 5, 1, 2)), (9 * 10**9, (0, 5, 3, 2))]
    picks = Picks([Change(0, at, one) for at, one in weights], rows, 5)
    for number in (3 * 10**9, 10**10 + 7):
        counts = picks.counts(number)
        assert sum(counts) == number * (rows or 1)
        for member, start, stop in picks.spans(number):
            assert (picks.before(member, number), picks.before(member, number + 1)) == (start, stop)
            assert picks.row(member, start) == picks.row(member, stop - 1) == number


@pytest.mark.parametrize("plan", [8, TOKENS], ids=["rows", "tokens"])
def test_the_same_weights_again_change_nothing(plan):
    plain, mix = seen(mix_of(plan=plan)), mix_of(plan=plan)
    mix.reweigh({"web": 3, "code": 1}, at=11)
    mix.reweigh({"web": 6, "code": 2}, at=29)
    assert seen(mix) == plain


@pytest.mark.parametrize("plan", [1, TOKENS], ids=["rows", "tokens"])
def test_a_rare_source_comes_although_weights_change_at_each_batch(plan):
    mix, count, rare = mix_of(weights=(39, 1), plan=plan, rows=1500), 0, 0
    for at in range(0, 200, 2):
        mix.reweigh({"web": 39 + at % 4, "code": 1}, at=at)
    for batch in mix.take(200):
        count, rare = count + 1, rare + ("code" in batch.sources)
    assert count == 200
    assert 3 <= rare <= 7


def test_a_source_that_is_added_begins_with_its_first_batch_and_keeps_its_number():
    mix = mix_of(plan=TOKENS)
    mix.add("math", table_of(2, 400), weight=4, at=10)
    mix.remove("web", at=20)
    batches = list(mix)
    alone = [batch["id"].tolist() for batch in mix_of(("web", "code", "math"), (0, 0, 1), TOKENS)]
    found = [batch["id"].tolist() for batch in batches if batch.sources == ("math",)]
    assert found == alone[: len(found)]
    assert min(batch.number for batch in batches if batch.sources == ("math",)) >= 10
    assert max(batch.number for batch in batches if batch.sources == ("web",)) < 20
    assert {batch["source"][0] for batch in batches if batch.sources == ("math",)} == {2}
    assert mix.names == ("web", "code", "math")


def test_a_state_goes_on_without_a_source_that_was_removed():
    mix = mix_of(plan=TOKENS)
    mix.remove("web", at=10)
    batches = iter(mix)
    for _ in range(12):
        next(batches)
    state, rest = mix.state_dict(), seen(batches)
    other = mix_of(("code",), (1,), TOKENS)
    other.load_state_dict(state)
    assert seen(other) == rest
    assert other.names == ("web", "code")
    with pytest.raises(sf.OpError, match="source 'web' was removed, and is not among the sources"):
        [other.batch_at(number) for number in range(10)]


def test_what_was_done_is_in_the_state_and_in_the_text():
    mix = mix_of()
    mix.reweigh({"web": 1, "code": 4}, at=5)
    mix.add("math", table_of(2, 400), weight=5, at=9)
    assert [(one["epoch"], one["batch"], one["weights"]) for one in mix.state_dict()["history"]] == [
        (0, 0, [["web", 3.0], ["code", 1.0]]),
        (0, 5, [["web", 1.0], ["code", 4.0]]),
        (0, 9, [["web", 1.0], ["code", 4.0], ["math", 5.0]]),
    ]
    assert repr(mix) == (
        "Mix of 'web' 0.75, 'code' 0.25; from batch 5 of epoch 0 on 'web' 0.2, 'code' 0.8; "
        "from batch 9 of epoch 0 on 'web' 0.1, 'code' 0.4, 'math' 0.5, epoch 0, batch 0"
    )


def test_the_next_epoch_begins_with_the_last_weights():
    mix = mix_of(weights=(1, 0))
    mix.reweigh({"web": 0, "code": 1}, at=10**6)
    assert {batch.sources for batch in mix} == {("web",)}
    assert {batch.sources for batch in mix} == {("code",)}


def test_changes_begin_where_this_process_has_begun_no_batch():
    mix = mix_of(plan=TOKENS, threads=2)
    for batch in mix:
        if batch.number == 4:
            mix.reweigh({"web": 0, "code": 1})
    at = mix.pipeline.history.changes[-1].batch
    assert 5 <= at < 60
    mix.set_epoch(0)
    assert {batch.sources for batch in mix if batch.number >= at} == {("code",)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda mix: mix.reweigh({"web": 1, "code": 1}, at=3),
            "at is 3, expected a batch that is not begun: \\d+ or later",
        ),
        (
            lambda mix: mix.reweigh({"web": 1, "code": 1}, at=5.5),
            "at is 5.5, expected a batch that is not begun",
        ),
        (lambda mix: mix.reweigh({"web": 1}), "weights has no number for 'code', expected one"),
        (lambda mix: mix.reweigh({"web": 1, "cod": 1}), "there is no source 'cod' .did you mean 'code'"),
        (lambda mix: mix.reweigh({"web": 0, "code": 0}), "all weights are 0, expected one above 0"),
        (
            lambda mix: mix.reweigh({"web": -1, "code": 0}),
            "the weight of source 'web' is -1, expected a number",
        ),
        (
            lambda mix: mix.reweigh({"web": sf.Schedule({0: 1}), "code": 0}),
            "weights has a Schedule, expected num",
        ),
        (lambda mix: mix.reweigh([1, 2]), r"weights is \[1, 2\], expected a dict of numbers by name"),
        (lambda mix: mix.add("web", table_of(2, 9), weight=1), "'web' is the name of a source already"),
        (lambda mix: mix.add("x", {"x": [1]}, weight=1), "id is missing in batches of source 2"),
        (lambda mix: mix.add("x", table_of(2, 9), weight=-1), "the weight of source 'x' is -1"),
        (lambda mix: mix.remove("wep"), "there is no source 'wep' .did you mean 'web'"),
    ],
)
def test_changes_that_make_no_sense_are_refused_and_change_nothing(change, message):
    mix, plain = mix_of(rows=80), seen(mix_of(rows=80))
    batches = iter(mix)
    first = [next(batches) for _ in range(4)]
    with pytest.raises((sf.OpError, TypeError), match=message):
        change(mix)
    assert seen([*first, *batches]) == plain


def test_the_last_source_is_not_removed():
    mix = mix_of()
    mix.remove("web", at=4)
    with pytest.raises(sf.OpError, match="all weights are 0, expected one above 0"):
        mix.remove("code", at=9)


def test_changes_are_made_in_order():
    mix = mix_of()
    mix.reweigh({"web": 1, "code": 1}, at=9)
    with pytest.raises(sf.OpError, match="at is 8, expected a batch that is not begun: 9 or later"):
        mix.reweigh({"web": 1, "code": 2}, at=8)


@pytest.mark.parametrize(
    "options",
    [{"totals": {"rows": "rows"}, "steps_of": 4}, {"plan": sf.Rows(8, balance=sf.Balance(2, 2, linear=0))}],
)
def test_weights_change_where_steps_begin(options):
    if "totals" in options:
        options = {**options, "totals": ["tokens.lengths"]}
    mix = mix_of(**options)
    with pytest.raises(sf.OpError, match="batch 6 is inside a step or a pool, expected where one begins: 8"):
        mix.reweigh({"web": 1, "code": 1}, at=6)


def test_pools_of_windows_have_no_place_for_a_change():
    mix = mix_of(plan=sf.Rows(8, balance=sf.Balance(2, pool="window", linear=0)))
    with pytest.raises(
        sf.OpError, match=r'weights cannot change inside an epoch with Balance\(pool="window"\)'
    ):
        mix.reweigh({"web": 1, "code": 1}, at=6)


def test_several_ranks_agree_on_at():
    mix = mix_of(rank=1, world_size=4)
    with pytest.raises(
        sf.OpError, match=r"at is None on 4 ranks, expected a batch that no rank has begun(.|\n)*batch 0"
    ):
        mix.reweigh({"web": 1, "code": 1})


def test_a_mix_of_rows_has_rows_of_all_sources_in_each_batch(tmp_path):
    mix = mix_of(weights=(1, 1), plan=10, batch_bytes=None, window="1 MiB")
    mix.add("math", table_of(2, 400), weight=2, at=5)
    assert [batch.sources for batch in mix.take(8)] == [("web", "code")] * 5 + [("web", "code", "math")] * 3
    lines = [json.dumps({"id": row, "tokens": [row]}) + "\n" for row in range(4000, 4050)]
    (tmp_path / "news.jsonl").write_text("".join(lines))
    with pytest.raises(
        sf.OpError, match="the rows of 'news' are not known before reading, expected a source with"
    ):
        mix.add("news", tmp_path / "news.jsonl", weight=1, at=9)


def test_schedules_have_no_share_for_a_new_source():
    mix = mix_of(weights=(sf.Schedule({0: 1, 9: 2}), 1))
    with pytest.raises(sf.OpError, match=r"weights change by a Schedule(.|\n)*with reweigh first"):
        mix.add("math", table_of(2, 400), weight=2, at=5)
    mix.reweigh({"web": 1, "code": 2}, at=4)
    mix.add("math", table_of(2, 400), weight=2, at=5)
    assert {batch.sources for batch in mix} == {("web",), ("code",), ("math",)}


def state_at(mix, count):
    batches = iter(mix)
    for _ in range(count):
        next(batches)
    state = json.loads(json.dumps(mix.state_dict()))
    batches.close()
    return state


@pytest.mark.parametrize("plan", [8, TOKENS], ids=["rows", "tokens"])
def test_weights_and_sources_of_a_new_mix_hold_from_the_state_on_if_changes_are_accepted(plan):
    state = state_at(mix_of(plan=plan), 10)
    other = mix_of(("math", "code"), (1, 3), plan)
    with pytest.raises(
        sf.OpError,
        match=r"weights.math is new: 1.0\n  also weights.code was 1.0 and is 3.0 now\n  also weights.web is gone: it was 3",
    ):
        other.load_state_dict(state)
    other.load_state_dict(state, changes="accept")
    assert other.names == ("web", "code", "math")
    same = mix_of(plan=plan)
    same.add("math", table_of(2, 400), weight=1, at=10)
    same.reweigh({"web": 0, "code": 3, "math": 1}, at=10)
    assert seen(other) == seen(same)[10:]


def test_a_state_with_a_source_that_is_missing_names_it():
    mix = mix_of()
    mix.add("math", table_of(2, 400), weight=1, at=20)
    state = state_at(mix, 10)
    with pytest.raises(sf.OpError, match=r"source 'math' of the state is missing, expected one of that name"):
        mix_of().load_state_dict(state)


def test_another_history_is_refused_by_its_digest():
    one, other = mix_of(), mix_of()
    one.reweigh({"web": 1, "code": 1}, at=4)
    other.reweigh({"web": 1, "code": 1}, at=5)
    digests = "[0-9a-f]+, and that of this mix [0-9a-f]+"
    with pytest.raises(
        sf.OpError, match=f"the history of the state has digest {digests}: 'web' 0.75(.|\n)*batch 5 of"
    ):
        other.load_state_dict(state_at(one, 6))


def test_changes_after_the_state_stay():
    mix = mix_of()
    state = state_at(mix, 6)
    mix.set_epoch(0)
    mix.reweigh({"web": 1, "code": 1}, at=9)
    whole = seen(mix)
    mix.load_state_dict(state)
    assert seen(mix) == whole[6:]
    mix.set_epoch(0)
    with pytest.raises(sf.OpError, match="the history of the state has digest"):
        mix.load_state_dict(state_at(mix_of(), 12))


def test_a_refused_state_leaves_the_mix_as_it_was():
    mix = mix_of()
    mix.add("math", table_of(2, 400), weight=1, at=3)
    state = state_at(mix, 10)
    state["sources"][1]["data"]["rows"] = 1
    other = mix_of(("web", "code", "math"), (3, 1, 1))
    with pytest.raises(sf.OpError, match="source 1: the data have changed"):
        other.load_state_dict(state)
    assert repr(other) == repr(mix_of(("web", "code", "math"), (3, 1, 1)))


def test_a_damaged_history_is_refused():
    mix = mix_of()
    for history in ([], {}, [{"epoch": 0, "batch": 0, "weights": [["web", -1]]}], [{"epoch": 0}]):
        with pytest.raises(sf.OpError, match="the history of the state is damaged"):
            mix.load_state_dict({**mix.state_dict(), "history": history})


def by_turns(first, count):
    return np.arange(first, first + count) // 3 % 2


def always_code(first, count):
    return np.ones(count, int)


def test_a_function_chooses_the_source_of_each_batch():
    mix = mix_of(weights=by_turns, plan=TOKENS)
    whole = list(mix)
    assert [batch["source"][0] for batch in whole] == by_turns(0, len(whole)).tolist()
    assert len(mix_of(weights=by_turns, plan=8)) == len(list(mix_of(weights=by_turns, plan=8)))
    state, other = state_at(mix_of(weights=by_turns, plan=TOKENS), 10), mix_of(weights=by_turns, plan=TOKENS)
    other.load_state_dict(state)
    assert seen(other) == seen(whole)[10:]
    assert mix.batch_at(20)["id"].tolist() == whole[20]["id"].tolist()


def test_another_function_holds_from_the_state_on_if_changes_are_accepted():
    state = state_at(mix_of(weights=by_turns, plan=TOKENS, version="1"), 10)
    other = mix_of(weights=always_code, plan=TOKENS, version="2")
    with pytest.raises(
        sf.OpError, match=r"weights was .a function of version '1'. and is .a function of version '2'. now"
    ):
        other.load_state_dict(state)
    other.load_state_dict(state, changes="accept")
    rest = list(other)
    code = [ids for number, ids in seen(mix_of(weights=by_turns, plan=TOKENS)) if by_turns(number, 1)[0]]
    assert [batch["id"].tolist() for batch in rest][:3] == code[4:7]
    assert {batch.sources for batch in rest} == {("code",)}
    with pytest.raises(sf.OpError, match="batch 0 was chosen by a function of version '1', which is not the"):
        other.batch_at(3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda first, count: np.full(count, 2), r"returned source 2 for batch 0, expected 0 to 1"),
        (lambda first, count: np.full(count, -1), r"returned source -1 for batch 0, expected 0 to 1"),
        (lambda first, count: np.zeros(count), r"returned float64\[4096\], expected integers\[4096\]"),
        (lambda first, count: [0], r"returned int64\[1\], expected integers\[4096\]"),
    ],
)
def test_functions_that_choose_no_source_are_named(function, message):
    with pytest.raises(sf.OpError, match=message):
        list(mix_of(weights=function, plan=TOKENS))


def test_a_function_excludes_changes_of_weights_and_an_end_with_the_last_source():
    with pytest.raises(sf.OpError, match="a function chooses the sources, and has no weights to change"):
        mix_of(weights=by_turns).reweigh({"web": 1, "code": 1})
    with pytest.raises(sf.OpError, match="stop is 'all' with a function as weights, expected 'first'"):
        mix_of(weights=by_turns, stop="all")


def test_conditions_may_change_where_a_window_ends():
    rows = table_of(0, 60)

    def loader(**options):
        return sf.Loader(rows, batch=TOKENS, batch_bytes=300, window=900, **options)

    whole, one = seen(loader()), loader(require="id >= 0")
    for _ in one:
        if one.at_window_end:
            break
    state = one.state_dict()
    for changed in ({"require": "id >= 0", "keep": "id % 2 == 0"}, {"require": "id >= -1"}, {}):
        other = loader(**changed)
        with pytest.raises(sf.OpError, match=r"(keep|require)\S* (is new|was|is gone)"):
            other.load_state_dict(state)
        other.load_state_dict(state, changes="accept")
        rest = [one for _, ids in seen(other) for one in ids]
        expected = [one for _, ids in whole[state["batch"] :] for one in ids]
        assert rest == ([one for one in expected if one % 2 == 0] if "keep" in changed else expected)
    inside = state_at(loader(), 1)
    with pytest.raises(sf.OpError, match="keep has changed since the state was saved"):
        loader(keep="id > 3").load_state_dict(inside, changes="accept")
