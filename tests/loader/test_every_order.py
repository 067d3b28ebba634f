"""Random mixes and runs against slow oracles that are written like the docs: which batches a rank gets, and when it ends."""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqflow as sf

RUNS = {12: 5, 16: 40, 200: 2000}
"""Examples by the profile's own number: each has the runs of up to 5 ranks, and those that go on: 10 in the mean."""
SOME = settings(max_examples=RUNS[settings.default.max_examples])
TAILS = st.sampled_from(["drop", "pad", "repeat"])
WEIGHTS = st.one_of(
    st.sampled_from([1, 2, 0.3]),
    st.builds(
        lambda first, second, at: sf.Schedule({0: first, at: second}),
        st.sampled_from([1, 0.5, 3]), st.sampled_from([0, 0.2, 1, 4]), st.integers(1, 12),
    ),
)  # fmt: skip


@st.composite
def skipped(draw, most=40):
    """Spans of batches; the last may be longer than any epoch."""
    spans, start = [], 0
    for before, length in draw(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 5)), max_size=3)):
        spans.append((start + before, start + before + length))
        start = spans[-1][1]
    if draw(st.integers(0, 4)) == 0:
        spans.append((start + draw(st.integers(1, most)), 10**15))
    return spans


def kept(total, skip):
    return [number for number in range(total) if not any(start <= number < stop for start, stop in skip)]


def dealt(total, skip, rank, world_size, tail, worker=0, workers=1):
    """The batches of a rank, or of one of its workers, by the sentence of the docs: in turn, round by round."""
    numbers, found = kept(total, skip), []
    for turn, first in enumerate(range(0, len(numbers), world_size)):
        one = numbers[first : first + world_size]
        if turn % workers != worker or (len(one) < world_size and tail == "drop"):
            continue
        if rank < len(one):
            found.append(one[rank])
        else:
            found.append(None if tail == "pad" else numbers[(first + rank) % len(numbers)])
    return found


# Mixes: sources of so many batches, each of one row with the numbers of the source and of the batch


def mix_of(counts, weights, stop, **options):
    sources = {str(at): {"t": [[at, n] for n in range(count)]} for at, count in enumerate(counts)}
    plan = sf.TokenBudget(2)  # so that no number of batches is known before reading
    weights = {str(at): weight for at, weight in enumerate(weights)}
    return sf.Mix(sources, weights=weights, stop=stop, seed=4, batch=plan, threads=0, **options)


def rows_of(mix):
    return [tuple(batch["t.values"].tolist()) or None for batch in mix]


def mixed(counts, weights, stop):
    """The batches of an epoch of a mix, one after the other; the source of each is that of a mix of long sources."""
    ends = [isinstance(one, sf.Schedule) and one.points[-1][1] == 0 and one.points[-1][0] for one in weights]
    order = (int(batch["t.values"][0]) for batch in mix_of([400] * len(counts), weights, "first"))
    passes, inside, found = [0] * len(counts), [0] * len(counts), []
    for number, source in enumerate(order):
        if inside[source] == counts[source]:
            passes[source], inside[source] = passes[source] + 1, 0
            if stop == "first" or all(passes):
                return found
        if stop == "all" and all(
            done or (end and end <= number) for done, end in zip(passes, ends, strict=True)
        ):
            return found
        found.append((source, inside[source]))
        inside[source] += 1
    raise AssertionError("the order is too short")


@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=3), weights=st.lists(WEIGHTS, min_size=3, max_size=3),
    stop=st.sampled_from(["first", "all"]), skip=skipped(), world_size=st.integers(1, 8), tail=TAILS,
    workers=st.integers(1, 3), rank=st.integers(0, 7), worker=st.integers(0, 2), steps=st.integers(1, 6),
    after=st.integers(1, 3),
)  # fmt: skip
@SOME
def test_a_mix_is_dealt_like_its_sequence(
    counts, weights, stop, skip, world_size, tail, workers, rank, worker, steps, after
):
    weights = [1, *weights[1:]][: len(counts)]  # at least one weight stays above 0
    rows = mixed(counts, weights, stop)
    if not dealt(len(rows), skip, 0, world_size, tail):
        return
    rank, worker = rank % world_size, worker % workers
    ranks = {"rank": rank, "world_size": world_size, "tail": tail, "skip": skip}
    mix = mix_of(counts, weights, stop, **ranks)
    mix.assignment = replace(mix.assignment, worker=worker, workers=workers)
    expected = dealt(len(rows), skip, rank, world_size, tail, worker, workers)
    if expected or worker == 0:
        assert rows_of(mix) == [None if one is None else rows[one] for one in expected]
    stopped = mix_of(counts, weights, stop, **ranks)
    handed_out = sum(1 for _ in zip(range(steps), stopped, strict=False))
    if stopped.epoch:
        return
    state = json.loads(json.dumps(stopped.state_dict()))
    left = kept(len(rows), skip)[handed_out * world_size :]
    for at in range(after):
        mix = mix_of(counts, weights, stop, skip=skip, rank=at, world_size=after, tail="pad")
        mix.load_state_dict(state)
        assert [one for one in rows_of(mix) if one] == [rows[number] for number in left[at::after]]


# Mixes of rows: batches of n rows, each with rows of all sources


def mix_of_rows(counts, weights, n, stop, **options):
    sources = {f"s{at}": {"t": [[at, row] for row in range(count)]} for at, count in enumerate(counts)}
    weights = {f"s{at}": weight for at, weight in enumerate(weights[: len(counts)])}
    batch = sf.Rows(n, balance=options.pop("balance", None))
    return sf.Mix(
        sources,
        weights=weights,
        stop=stop,
        seed=4,
        batch=batch,
        threads=0,
        window=150,
        batch_bytes=99,
        **options,
    )


def pairs(batch):
    return [tuple(row) for row in batch["t.values"].reshape(-1, 2).tolist()]


def quotas(weights, n, batches):
    """The rows of each source in each of the first batches: those of a mix of long sources, held against the law."""
    shares = [Fraction(weight) / sum(map(Fraction, weights)) for weight in weights]
    taken, found = [0] * len(weights), []
    for number, batch in enumerate(
        mix_of_rows([batches * n] * len(weights), weights, n, "all").take(batches)
    ):
        of_batch = Counter(source for source, _ in pairs(batch))
        assert batch.num_rows == n
        for at, share in enumerate(shares):
            taken[at] += of_batch[at]
            assert abs(taken[at] - share * n * (number + 1)) < 1
        found.append([of_batch[at] for at in range(len(weights))])
    return found


def mixed_rows(counts, weights, n, stop):
    """The batches of an epoch of a mix of rows: each source gives its rows in turn, and begins again."""
    taken, found = [0] * len(counts), []
    for quota in quotas(weights, n, 60):
        over = [
            weight == 0 or had >= count for had, count, weight in zip(taken, counts, weights, strict=True)
        ]
        if stop == "all" and all(over):
            return found
        if stop == "first" and any(
            had + q > count for had, q, count in zip(taken, quota, counts, strict=True)
        ):
            return found
        rows = []
        for at, (q, count) in enumerate(zip(quota, counts, strict=True)):
            rows += [(at, row % count) for row in range(taken[at], taken[at] + q)]
            taken[at] += q
        found.append(rows)
    return None


@given(
    counts=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    weights=st.lists(st.sampled_from([0, 0.05, 0.3, 0.7, 1, 2, 1e-5]), min_size=4, max_size=4),
    n=st.sampled_from([1, 2, 3, 5, 8]), stop=st.sampled_from(["first", "all"]), skip=skipped(),
    world_size=st.integers(1, 4), tail=TAILS, steps=st.integers(0, 5), after=st.integers(1, 3),
)  # fmt: skip
@SOME
def test_a_mix_of_rows_is_dealt_like_its_sequence(
    counts, weights, n, stop, skip, world_size, tail, steps, after
):
    weights = [*weights[: len(counts) - 1], 1]
    expected = mixed_rows(counts, weights, n, stop)
    if expected is None or not dealt(len(expected), skip, 0, world_size, tail):
        return

    def mix(skip=skip, streams=1, **options):
        return mix_of_rows(counts, weights, n, stop, skip=skip, streams=streams, **options)

    numbers = kept(len(expected), skip)
    for rank in range(world_size):
        one = mix(
            rank=rank,
            world_size=world_size,
            tail=tail,
            totals={"rows": "t.lengths"} if tail != "repeat" else None,
        )
        own = dealt(len(expected), skip, rank, world_size, tail)
        assert len(one) == len(own)
        batches = list(one)
        assert [pairs(batch) or None for batch in batches] == [
            None if k is None else expected[k] for k in own
        ]
        rounds = len(numbers) // world_size * world_size if tail == "drop" else len(numbers)
        for batch in [batch for batch in batches if batch.num_rows and tail != "repeat"]:
            of_step = [k for k in numbers[:rounds] if k // world_size == batch.step]
            assert batch["step.rows"] == 2 * n * len(of_step)
    whole = mix()
    for k in {0, len(expected) - 1, len(expected) // 2}:
        assert pairs(whole.batch_at(k)) == expected[k]
        assert [int(trace.source[1:]) for trace in whole.trace(k)] == [source for source, _ in expected[k]]
    stopped = mix(rank=0, world_size=world_size, tail=tail)
    handed_out = sum(1 for _ in zip(range(steps), stopped, strict=False))
    if not stopped.epoch:
        state = json.loads(json.dumps(stopped.state_dict()))
        left = numbers[handed_out * world_size :]
        for at in range(after):
            one = mix(rank=at, world_size=after, tail="pad")
            one.load_state_dict(state)
            assert [pairs(batch) for batch in one if batch.num_rows] == [expected[k] for k in left[at::after]]
    if min(counts) < 12:
        return
    # with streams, a source gives its rows in another order
    of_streams = [Counter(source for source, _ in pairs(batch)) for batch in mix(skip=None, streams=2)]
    assert of_streams == [Counter(source for source, _ in rows) for rows in expected]


@given(
    rows=st.booleans(), counts=st.lists(st.integers(4, 20), min_size=2, max_size=3),
    weights=st.lists(WEIGHTS, min_size=3, max_size=3), stop=st.sampled_from(["first", "all"]),
    balance=st.sampled_from([(2, 1, 1), (2, 1, 2), (2, 1, "window"), (3, 2, "window"), (4, 1, "window")]),
    skip=skipped(), world_size=st.integers(1, 8), tail=TAILS, steps=st.integers(0, 5), after=st.integers(1, 3),
)  # fmt: skip
@SOME
@pytest.mark.filterwarnings("ignore:Balance:UserWarning")
def test_a_mix_that_is_balanced_is_dealt_like_its_sequence(
    rows, counts, weights, stop, balance, skip, world_size, tail, steps, after
):
    weights = [1, *weights[1 : len(counts)]]
    group, steps_of, pool = balance
    dealing = sf.Balance(group=group, steps_of=steps_of, pool=pool, cost="length")

    def mix(balance=dealing, **options):
        sources = {
            f"s{at}": {"t": [[at, row] * (1 + row % 3) for row in range(count)]}
            for at, count in enumerate(counts)
        }
        batch = sf.Rows(3, balance=balance) if rows else sf.TokenBudget(6, balance=balance)
        return sf.Mix(
            sources, weights=dict(zip(sources, weights, strict=True)), stop=stop, batch=batch, batch_bytes=99,
            window=150, threads=0, **options,
        )  # fmt: skip

    def content(batch):
        return batch["source"].tolist(), batch["t.values"].tolist(), batch.sources

    def of_step(batches, first):
        steps = batches[first : first + group * steps_of]
        return Counter(value for batch in steps for value in batch["t.values"].tolist())

    alone, plain = list(mix()), list(mix(None))
    assert [batch.number for batch in alone] == list(range(len(plain)))
    assert [batch.sources for batch in alone] == [batch.sources for batch in plain]
    size = group * steps_of
    for first in range(0, len(plain) // size * size if pool == 1 else 0, size):
        assert of_step(alone, first) == of_step(plain, first)
    expected = [content(batch) for batch in alone]
    if not dealt(len(expected), skip, 0, world_size, tail):
        return
    for rank in range(world_size):
        own = dealt(len(expected), skip, rank, world_size, tail)
        found = list(mix(rank=rank, world_size=world_size, tail=tail, skip=skip))
        assert [content(batch) if batch.num_rows else None for batch in found] == [
            None if k is None else expected[k] for k in own
        ]
    for k in {0, len(expected) - 1}:
        assert content(mix().batch_at(k)) == expected[k]
    stopped = mix(rank=0, world_size=world_size, tail=tail, skip=skip)
    handed_out = sum(1 for _ in zip(range(steps), stopped, strict=False))
    if stopped.epoch:
        return
    state = json.loads(json.dumps(stopped.state_dict()))
    left = kept(len(expected), skip)[handed_out * world_size :]
    for at in range(after):
        one = mix(rank=at, world_size=after, tail="pad", skip=skip)
        one.load_state_dict(state)
        assert [content(batch) for batch in one if batch.num_rows] == [expected[k] for k in left[at::after]]


# Loaders: each row once, whatever the plan, the ranks and the place where files are added

PLANS = {
    "rows": lambda balance: sf.Rows(3, balance=balance),
    "tokens": lambda balance: sf.TokenBudget(9, balance=balance),
    "packed": lambda balance: sf.Packed(8, ("t",), rows=2, balance=balance),
    "buckets": lambda balance: sf.Buckets((2, 4), sf.TokenBudget(9), balance=balance),
}


def write(folder, number, rows):
    table = pa.table({"t": [[100 * number + n + 1] * (n % 5 + 1) for n in range(rows)]})
    pq.write_table(table, folder / f"{number}.parquet", row_group_size=3)


def ids_of(batch):
    tensor = batch["t"] if "t" in batch else batch["t.values"]
    return {int(n) for n in tensor.ravel() if n}


@given(
    plan=st.sampled_from(sorted(PLANS)), streams=st.integers(1, 3), world_size=st.integers(1, 8), tail=TAILS,
    balance=st.sampled_from([None, None, (1, 1), (2, 1), (2, 3), (3, "window")]), steps=st.integers(1, 6),
    after=st.integers(1, 3), added=st.integers(0, 2), shuffle=st.booleans(), sizes=st.lists(st.integers(9, 14), min_size=1, max_size=3),
)  # fmt: skip
@SOME
@pytest.mark.filterwarnings("ignore:Balance:UserWarning")
def test_each_row_comes_once_and_those_of_added_files_in_the_next_epoch(
    tmp_path_factory, plan, streams, world_size, tail, balance, steps, after, added, shuffle, sizes
):
    folder = tmp_path_factory.mktemp("order")
    for number, rows in enumerate(sizes):
        write(folder, number, rows)
    group, pool = balance or (None, None)
    made = PLANS[plan](balance and sf.Balance(group=group, pool=pool, linear=2))

    def loader(**ranks):
        options = {"shuffle": sf.Shuffle(3) if shuffle else None, "window": 150, "threads": 0}
        return sf.Loader(
            folder, batch=made, streams=min(streams, len(sizes)) if plan == "rows" else 1, **options, **ranks
        )

    total = sum(1 for _ in loader(rank=0, world_size=1))
    if tail == "drop" and total < world_size:
        return
    ranks = [loader(rank=rank, world_size=world_size, tail=tail) for rank in range(world_size)]
    iterators = [iter(one) for one in ranks]
    seen = Counter()
    for step in range(min(steps, ranks[0].assignment.ranks.rounds(total))):
        for rank, iterator in enumerate(iterators):
            batch = next(iterator)
            if step * world_size + rank < total:  # else it fills the last round
                seen.update(ids_of(batch))
    state = json.loads(json.dumps(ranks[0].state_dict()))
    following = set()
    for number in range(added):
        write(folder, 5 + number, 7)
    for rank in range(after):
        one = loader(rank=rank, world_size=after, tail="pad")
        one.load_state_dict(state, changes="accept" if added else "refuse")
        for batch in one:
            seen.update(ids_of(batch))
        for batch in one:
            following.update(ids_of(batch))
    rows = {100 * at + n + 1 for at, count in enumerate(sizes) for n in range(count)}
    assert set(seen) == rows
    assert following == rows | {100 * (5 + at) + n + 1 for at in range(added) for n in range(7)}
    assert plan == "packed" or max(seen.values()) == 1
