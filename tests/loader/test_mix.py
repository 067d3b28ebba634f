"""Mix: several sources as one sequence of batches."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import BatchPlanError, OpMemoryError
from seqflow.loader.epoch.history import Change
from seqflow.loader.epoch.mix import Picks
from seqflow.loader.epoch.quotas import Quotas
from seqflow.loader.order.identity import FORMAT

PLANS = {"rows": sf.Rows(10), "tokens": sf.TokenBudget(40), "packed": sf.Packed(16, rows=4)}


def content(batch):
    return tuple((name, batch[name].tolist()) for name in batch)


def sequence(mix):
    return [content(batch) for batch in mix]


def test_rows_come_in_fixed_quotas(paths):
    mix = sf.Mix({paths[0]: 0.6, paths[1]: 0.4}, seed=1, batch=10, shuffle=True)
    batches = list(mix)
    assert [batch.num_rows for batch in batches] == [10] * 50
    for batch in batches:
        assert batch["source"].tolist() == [0] * 6 + [1] * 4
        assert (batch["id"] // 1000).tolist() == batch["source"].tolist()
    found = np.concatenate([batch["id"] for batch in batches])
    assert len(set(found.tolist())) == 500
    assert mix.epoch == 1
    assert mix.stats().rows == 500


@pytest.mark.parametrize("plan", ["tokens", "packed"])
def test_batches_come_in_their_proportions(paths, plan):
    mix = sf.Mix({paths[0]: 3, paths[1]: 1}, seed=1, batch=PLANS[plan], shuffle=True, window=700)
    picked = np.array([batch["source"][0] for batch in mix])
    shares = np.cumsum(picked == 1) - 0.25 * np.arange(1, len(picked) + 1)
    assert np.abs(shares).max() <= 1
    other = np.array(
        [batch["source"][0] for batch in sf.Mix({paths[0]: 3, paths[1]: 1}, seed=2, batch=PLANS[plan])]
    )
    assert len(picked) > 20
    assert picked[:4].tolist() != other[:4].tolist() or picked[0] == other[0]


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("stop", ["first", "all"])
def test_ranks_and_resumes_see_the_same_sequence(paths, plan, world_size, stop):
    options = {"seed": 3, "stop": stop, "batch": PLANS[plan], "shuffle": sf.Shuffle(5), "window": 700}
    sources = {paths[0]: 0.5, paths[1]: 0.3, paths[2]: 0.2}
    alone = sequence(sf.Mix(sources, **options))
    ranks = [
        sequence(sf.Mix(sources, **options, rank=rank, world_size=world_size)) for rank in range(world_size)
    ]
    joined = [batch for step in zip(*ranks, strict=True) for batch in step]
    assert joined == alone[: len(alone) // world_size * world_size]
    for steps in (0, 1, len(alone) // 2):
        mix = sf.Mix(sources, **options)
        batches = iter(mix)
        for _ in range(steps):
            next(batches)
        state = json.loads(json.dumps(mix.state_dict()))
        batches.close()
        resumed = []
        for rank in range(world_size):
            one = sf.Mix(sources, **options, rank=rank, world_size=world_size)
            one.load_state_dict(state)
            resumed.append(sequence(one))
        rest = alone[steps:]
        joined = [batch for step in zip(*resumed, strict=True) for batch in step]
        assert joined == rest[: len(rest) // world_size * world_size]


def test_all_sources_are_exhausted_where_asked_for(paths):
    mix = sf.Mix({paths[0]: 1, paths[2]: 1}, stop="all", batch=10, shuffle=True)
    found = np.concatenate([batch["id"] for batch in mix])
    counts = {int(n): int(c) for n, c in zip(*np.unique(found, return_counts=True), strict=True)}
    assert {counts[n] for n in range(1, 301)} == {1}
    assert {counts[n] for n in range(2001, 2051)} == {6}
    second_pass = [n for n in found.tolist() if n > 2000][50:100]
    assert second_pass != [n for n in found.tolist() if n > 2000][:50]


def test_loaders_may_be_mixed(paths):
    first = sf.Loader(paths[0], batch=sf.TokenBudget(30))
    second = sf.Loader(paths[1], batch=sf.TokenBudget(60), shuffle=True)
    picked = [int(batch["source"][0]) for batch in sf.Mix({first: 1, second: 1})]
    assert set(picked) == {0, 1}


def test_the_column_may_have_another_name_or_none(paths):
    sources = {paths[0]: 1, paths[1]: 1}
    assert "from" in sf.Mix(sources, column="from", batch=10).take(1)[0]
    assert set(sf.Mix(sources, column=None, batch=10).take(1)[0]) == {"id", "tokens.lengths", "tokens.values"}


@pytest.mark.parametrize(
    ("sources", "options", "message"),
    [
        ({}, {}, "expected a dict of sources or loaders"),
        ({0: -1}, {}, "the weight of source 0 is -1, expected a number, 0 or more"),
        ({0: 0, 1: 0}, {}, "all weights are 0, expected one above 0"),
        ({0: 10**400}, {}, "the weight of source 0 is 10+, expected a number, 0 or more"),
        ({0: 1, 1: 1}, {"stop": "last"}, "stop is 'last', expected 'first' or 'all'"),
        ({0: 1, 1: 1}, {"column": "id"}, "batches have a tensor 'id' already"),
    ],
)
def test_mixes_that_make_no_sense_are_refused(paths, sources, options, message):
    with pytest.raises(sf.OpError, match=message):
        sf.Mix({paths[key]: weight for key, weight in sources.items()}, **options)


def test_sources_must_make_the_same_tensors(paths, tmp_path):
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "tokens": [[1]]}), tmp_path / "x.parquet")
    with pytest.raises(
        sf.OpError, match=r"id is int32\[\] in batches of source 1, and int64\[\] in those of source 0"
    ):
        sf.Mix({paths[0]: 1, tmp_path / "x.parquet": 1}, columns=["id"])


def test_a_state_of_another_mix_names_the_difference(paths):
    state = sf.Mix({paths[0]: 1, paths[1]: 1}, batch=10).state_dict()
    with pytest.raises(sf.OpError, match="seed was 0 and is 4 now"):
        sf.Mix({paths[0]: 1, paths[1]: 1}, batch=10, seed=4).load_state_dict(state)
    with pytest.raises(sf.OpError, match="source 1: the data have changed: "):
        sf.Mix({paths[0]: 1, paths[2]: 1}, batch=10).load_state_dict(state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 0}, f"the state has format 0, expected {FORMAT}"),
        ({"members": None}, "this is not the state of a Mix"),
        ({"members": []}, "the state has 0 members, expected 2"),
        ({"members": [{"passes": [-1], "windows": {}}] * 2}, "this is not the state of a Mix"),
        ({"members": [{"passes": [], "windows": {"0": [1, 2]}}] * 2}, "this is not the state of a Mix"),
        (
            {"members": [{"passes": [], "windows": {"7": [0, 0, 1]}}] * 2},
            "the state has a window of stream 7, of 1 streams",
        ),
        ({"sources": []}, "the state has 0 sources, expected 2"),
        ({"sources": [{}, {}]}, "this is not the state of a Mix"),
        ({"batch": 1.5}, "this is not the state of a Mix"),
    ],
)
def test_a_damaged_state_is_refused(paths, change, message):
    mix = sf.Mix({paths[0]: 1, paths[1]: 1}, batch=10)
    with pytest.raises(sf.OpError, match=f"load_state_dict: {message}"):
        mix.load_state_dict({**mix.state_dict(), **change})


def test_a_state_beyond_all_memory_says_so(paths):
    weights = {"a": 1.0, "b": sf.Schedule({0: 1.0, 7: 2.0})}
    mix = sf.Mix({"a": paths[0], "b": paths[1]}, weights=weights, batch=sf.TokenBudget(40))
    with pytest.raises(OpMemoryError, match=r"Mix: the order of \d+ batches: the result needs [\d,]+ bytes"):
        mix.load_state_dict({**mix.state_dict(), "batch": 2**50})


def test_a_state_after_the_end_of_all_epochs_says_so(paths):
    mix = sf.Mix({paths[0]: 1, paths[1]: 1}, batch=sf.TokenBudget(40))
    mix.load_state_dict({**mix.state_dict(), "batch": 2**61})
    with pytest.raises(sf.OpError, match=r"the epoch has \d+ batches"):
        next(iter(mix))


def picks_of(weights, rows=None):
    return Picks([Change(0, 0, weights)], rows, 5)


@pytest.mark.parametrize("weights", [(0.7, 0.3), (1e-9, 1.0, 3.0), (2.0,) * 7])
def test_any_batch_of_fixed_weights_is_found_without_those_before_it(weights):
    picks = picks_of(weights)
    found = [pick[:2] for number in range(5000) for pick in picks.spans(number)]
    counts = [0] * len(weights)
    for number, (member, of_member) in enumerate(found):
        assert of_member == counts[member]
        assert picks.row(member, of_member) == number
        assert picks.before(member, number) == counts[member]
        counts[member] += 1
    far = picks_of(weights)
    for number in (10**7, 2**31, 123_456_789):
        ((member, of_member, _),) = far.spans(number)
        assert far.row(member, of_member) == number
        assert sum(far.before(one, number) for one in range(len(weights))) == number


@pytest.mark.each_choice
@pytest.mark.parametrize("plan", ["rows", "tokens"])
@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize(("world_size", "tail"), [(3, "pad"), (2, "repeat"), (7, "repeat")])
def test_a_tail_is_filled(paths, plan, stop, world_size, tail):
    options = {"seed": 3, "stop": stop, "batch": PLANS[plan], "shuffle": sf.Shuffle(5), "window": 700}
    sources = {paths[0]: 0.5, paths[1]: 0.3, paths[2]: 0.2}
    alone = sequence(sf.Mix(sources, **options))
    ranks = [
        sf.Mix(sources, **options, rank=rank, world_size=world_size, tail=tail, threads=rank % 2)
        for rank in range(world_size)
    ]
    batches = [list(rank) for rank in ranks]
    assert {len(found) for found in batches} == {-(-len(alone) // world_size)}
    joined = [batch for step in zip(*batches, strict=True) for batch in step]
    assert [content(batch) for batch in joined[: len(alone)]] == alone
    filled = joined[len(alone) :]
    if tail == "pad":
        assert [batch.num_rows for batch in filled] == [0] * len(filled)
    else:
        assert [content(batch) for batch in filled] == alone[: len(filled)]
    assert all(rank.epoch == 1 for rank in ranks)
    assert sum(rank.stats().batches for rank in ranks) == len(joined)


def test_a_tail_repeats_batches_where_there_are_fewer_than_ranks(paths):
    sources, options = {paths[0]: 1, paths[1]: 1}, {"batch": 100, "tail": "repeat", "world_size": 8}
    alone = sequence(sf.Mix(sources, batch=100))
    ranks = [sequence(sf.Mix(sources, **options, rank=rank)) for rank in range(8)]
    assert [batch for (batch,) in ranks] == [alone[number % len(alone)] for number in range(8)]


def test_memory_is_divided_among_the_sources(paths):
    mix = sf.Mix({paths[0]: 1, paths[1]: 1}, batch=10, window=1000, memory=8000)
    assert [loader.memory for loader in mix.loaders] == [4000, 4000]
    with pytest.raises(sf.OpError, match=r"memory is 8.0 kB|memory is 7.8 KiB for 2 sources"):
        sf.Mix({paths[0]: 1, paths[1]: 1}, batch=10, window=5000, memory=8000)
    with pytest.raises(sf.OpError, match="memory"):
        sf.Mix({paths[0]: 1, paths[1]: 1}, batch=10, memory="much")


def test_each_source_has_a_quarantine_file(tmp_path):
    for number in (0, 1):
        table = pa.table({"tokens": pa.array([[1, None], [3], [4]], pa.list_(pa.int64()))})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    bad_rows = sf.BadRows("quarantine", tmp_path / "bad.arrow")
    list(sf.Mix({tmp_path / "0.parquet": 1, tmp_path / "1.parquet": 1}, batch=2, bad_rows=bad_rows))
    for number in (0, 1):
        assert pa.ipc.open_file(tmp_path / f"bad.source{number}.arrow").read_all().num_rows == 1


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("tail", ["drop", "pad", "repeat"])
@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize("batch", [sf.Rows(3), sf.TokenBudget(8, lengths="tok.lengths")], ids=repr)
def test_a_state_after_each_batch_goes_on_with_what_is_left(tmp_path, batch, stop, tail):
    """Also after the last one, which may be in an incomplete round: then nothing is left."""
    table = pa.table({"id": list(range(25)), "tok": [[i] * (i % 4) for i in range(25)]})
    paths = [str(tmp_path / f"{name}.parquet") for name in "ab"]
    for path in paths:
        pq.write_table(table, path, row_group_size=3)

    def mix(rank):
        return sf.Mix(
            dict(zip(paths, (0.7, 0.3), strict=True)), batch=batch, stop=stop, threads=0, rank=rank, world_size=2,
            tail=tail, window=200,
        )  # fmt: skip

    for rank in range(2):
        whole = [one["id"].tolist() for one in mix(rank)]
        for steps in range(1, len(whole) + 1):
            stopped = mix(rank)
            batches = iter(stopped)
            for _ in range(steps):
                next(batches)
            resumed = mix(rank)
            resumed.load_state_dict(json.loads(json.dumps(stopped.state_dict())))
            assert [one["id"].tolist() for one in resumed] == whole[steps:], (rank, steps)


@pytest.mark.parametrize("counts", [(1,), (3,), (3, 3), (2, 7)])
def test_a_state_after_the_last_batch_has_no_more_batches(counts):
    def mix():
        sources = {str(at): [{"id": row} for row in range(n)] for at, n in enumerate(counts)}
        return sf.Mix(sources, weights=dict.fromkeys(sources, 1), batch=4, stop="all")

    first, after = mix(), mix()
    assert len(list(first))
    iterator = iter(first)
    for _ in range(len(first)):
        next(iterator)
    after.load_state_dict(first.state_dict())
    assert list(after) == []


def test_batches_have_the_names_of_their_sources(paths):
    mix = sf.Mix({paths[0]: 3, str(paths[1]): 1}, seed=1, batch=PLANS["tokens"])
    assert mix.names == (str(paths[0]), str(paths[1]))
    for batch in mix.take(20):
        assert batch.sources == (mix.names[batch["source"][0]],)
        assert repr(batch).startswith(f"Record of {batch.num_rows} rows\n")
    quotas = sf.Mix({paths[0]: 3, str(paths[1]): 1}, batch=8)
    assert {batch.sources for batch in quotas} == {quotas.names}


def test_names_are_given_with_weights(paths):
    options = {"seed": 1, "batch": PLANS["tokens"], "shuffle": True}
    named = sf.Mix(
        {"web": paths[0], "books": paths[1]}, weights={"books": 1, "web": 3}, column=None, **options
    )
    assert (named.names, named.weights) == (("web", "books"), (3, 1))
    batches = list(named)
    plain = list(sf.Mix({paths[0]: 3, paths[1]: 1}, **options))
    assert [batch["id"].tolist() for batch in batches] == [batch["id"].tolist() for batch in plain]
    assert [batch.sources for batch in batches] == [(named.names[batch["source"][0]],) for batch in plain]
    loaders = sf.Mix(
        {"web": sf.Loader(paths[0]), "books": sf.Loader(paths[1])}, weights={"web": 3, "books": 1}
    )
    assert loaders.names == ("web", "books")
    assert sf.Mix({sf.Loader(paths[0]): 3, sf.Loader(paths[1]): 1}).names == tuple(map(str, paths[:2]))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"web": 1}, r"weights is \{'web': 1\}, expected a number for each of web, books"),
        ({"web": 1, "books": -2}, "the weight of source 1 is -2, expected a number, 0 or more"),
        (None, r"weight of source 0 is .*\n  a dict of names and sources needs weights"),
    ],
)
def test_weights_of_other_names_are_errors(paths, weights, message):
    with pytest.raises(sf.OpError, match=message):
        sf.Mix({"web": str(paths[0]), "books": str(paths[1])}, weights=weights)


def test_tensors_have_the_names_of_their_sources(paths):
    pytest.importorskip("torch")
    mix = sf.Mix({"web": paths[0], "books": paths[1]}, weights={"web": 3, "books": 1}, batch=PLANS["tokens"])
    expected = [batch.sources for batch in mix.take(20)]
    assert [batch.sources for batch in mix.to("torch")][:20] == expected


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize("tail", ["drop", "pad", "repeat"])
@pytest.mark.parametrize("plan", ["rows", "tokens", "packed"])
def test_a_mix_knows_its_number_of_batches(paths, tmp_path, plan, tail, stop):
    for world_size in (1, 3):
        loaders = [
            sf.Loader(path, batch=PLANS[plan], index=tmp_path / f"{number}.arrow", shuffle=True,
                      ranks=sf.Ranks(0, world_size, tail))
            for number, path in enumerate(paths)
        ]  # fmt: skip
        mix = sf.Mix(dict(zip(loaders, (3, 2, 1), strict=True)), seed=2, stop=stop)
        for _ in range(2):
            assert len(mix) == len(list(mix))


def test_the_number_of_batches_in_quotas_is_known(paths):
    for stop in ("first", "all"):
        mix = sf.Mix({paths[0]: 0.6, paths[1]: 0.4}, batch=10, stop=stop)
        assert len(mix) == len(list(mix))


def test_a_mix_of_sources_that_nobody_has_counted_has_no_length(paths):
    with pytest.raises(TypeError, match="the number of batches is not known before reading"):
        len(sf.Mix({paths[0]: 0.6, paths[1]: 0.4}, batch=PLANS["tokens"]))


@pytest.mark.parametrize(
    ("weights", "n"),
    [
        ((0.7, 0.3), 2),
        ((0.97, 0.03), 20),
        ((1, 1, 1), 1),
        ((0.4, 0.4, 0.1, 0.1), 3),
        ((5, 1, 0, 1e-4, 2, 2), 7),
    ],
)
def test_each_source_is_less_than_a_row_from_its_share_after_any_batch(weights, n):
    shares = [Fraction(weight) / sum(map(Fraction, weights)) for weight in weights]
    quotas = Quotas(weights, n, range(len(weights)))
    before = [0] * len(weights)
    for batch in range(1, 600):
        rows = quotas.counts(batch)
        assert sum(rows) == n * batch
        assert all(now >= then for now, then in zip(rows, before, strict=True))
        assert all(abs(now - share * n * batch) < 1 for now, share in zip(rows, shares, strict=True))
        before = rows
    for batch in (599, 1000, 10**8):  # also without the batches before it
        assert Quotas(weights, n, range(len(weights))).counts(batch) == quotas.counts(batch)


@pytest.mark.each_choice
@pytest.mark.parametrize("batch", [sf.Rows(4), sf.TokenBudget(20)], ids=repr)
@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize("options", [{}, {"where": "id < 1000"}, {"keep": "id < 1000"}])
def test_a_source_without_rows_is_named(paths, tmp_path, options, stop, batch):
    sources = {"full": paths[0], "empty": paths[1]}
    if not options:
        sources["empty"] = tmp_path / "empty.parquet"
        pq.write_table(pq.read_table(paths[0]).slice(0, 0), sources["empty"])
    weights = {"full": 9, "empty": 1}
    with pytest.raises(BatchPlanError, match="Mix: source 'empty' has no batch"):
        list(sf.Mix(sources, weights=weights, stop=stop, batch=batch, threads=0, **options))
    unused = sf.Mix(sources, weights={"full": 1, "empty": 0}, stop=stop, batch=batch, threads=0, **options)
    assert np.concatenate([one["id"] for one in unused]).tolist() == list(range(1, 301))
    later = sf.Schedule({0: 0, 3: 1})
    with pytest.raises(BatchPlanError, match="Mix: source 'empty' has no batch"):
        list(sf.Mix(sources, weights={"full": 1, "empty": later}, stop=stop, batch=batch, **options))


def test_each_source_has_an_order_of_its_own(paths):
    options = {"shuffle": True, "batch": sf.TokenBudget(40), "threads": 0}
    mix = sf.Mix({"a": paths[0], "b": paths[0]}, weights={"a": 1, "b": 1}, **options)
    ids = {0: [], 1: []}
    for batch in mix.take(40):
        ids[int(batch["source"][0])] += batch["id"].tolist()
    assert ids[0][:50] != ids[1][:50]
    loader = sf.Loader(paths[0], **options)
    again = sf.Mix({"a": loader, "b": loader}, weights={"a": 1, "b": 1})
    assert [one["id"].tolist() for one in again.take(9)] == [one["id"].tolist() for one in mix.take(9)]
    assert sf.Loader(paths[0], **options).take(1)[0]["id"].tolist() == loader.take(1)[0]["id"].tolist()
    assert [source["settings"]["member"] for source in mix.state_dict()["sources"]] == [0, 1]
    assert "member" not in loader.state_dict()["settings"]


def test_a_state_of_another_order_of_mixes_is_refused(paths):
    mix = sf.Mix({paths[0]: 1, paths[1]: 1}, batch=10)
    state = mix.state_dict()
    older = {name: value for name, value in state["settings"].items() if name != "order"}
    with pytest.raises(
        sf.OpError, match="load_state_dict: the record of a mix has order 1, expected 2: another"
    ):
        mix.load_state_dict({**state, "settings": older})


def test_a_mix_is_shown_with_its_shares(paths):
    mix = sf.Mix({"web": paths[0], "books": paths[1]}, weights={"web": 3, "books": 1}, rank=1, world_size=2)
    assert repr(mix) == "Mix of 'web' 0.75, 'books' 0.25, epoch 0, batch 0, rank 1 of 2"
