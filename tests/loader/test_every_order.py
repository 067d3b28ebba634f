"""Random mixes and runs against slow oracles that are written like the docs: which batches a rank gets, and when it ends."""

import json
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqflow as sf

RUNS = {12: 5, 24: 60, 200: 2000}
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
    mix.deal = replace(mix.deal, worker=worker, workers=workers)
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
def test_each_row_comes_once_also_of_files_that_are_added(
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
    for step in range(min(steps, ranks[0].deal.ranks.rounds(total))):
        for rank, iterator in enumerate(iterators):
            batch = next(iterator)
            if step * world_size + rank < total:  # else it fills the last round
                seen.update(ids_of(batch))
    state = json.loads(json.dumps(ranks[0].state_dict()))
    for number in range(added):
        write(folder, 5 + number, 7)
    for rank in range(after):
        one = loader(rank=rank, world_size=after, tail="pad")
        try:
            one.load_state_dict(state, changes="accept" if added else "refuse")
        except sf.OpError:
            if not added:
                raise
            return  # inside a pool of steps
        for batch in one:
            seen.update(ids_of(batch))
    rows = {100 * at + n + 1 for at, count in enumerate(sizes) for n in range(count)}
    rows |= {100 * (5 + at) + n + 1 for at in range(added) for n in range(7)}
    assert set(seen) == rows
    assert plan == "packed" or max(seen.values()) == 1
