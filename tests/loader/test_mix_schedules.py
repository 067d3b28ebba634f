"""Mixes whose weights change with the number of the batch."""

import json

import numpy as np
import pytest

import seqflow as sf

PLANS = {"rows": sf.Rows(5), "tokens": sf.TokenBudget(20), "packed": sf.Packed(16, rows=2)}
SCHEDULES = {
    "steps": [sf.Schedule({0: 0.8, 20: 0.1, 31: 0.5}), 0.3, sf.Schedule({0: 0.0, 17: 0.2, 40: 0.0})],
    "ramps": [sf.Schedule({0: 1, 45: 0}, linear=True), sf.Schedule({0: 0, 45: 1}, linear=True), 0.1],
}


def mix_of(paths, weights, **options):
    return sf.Mix(dict(zip(paths, weights, strict=True)), shuffle=sf.Shuffle(5), window=700, **options)


def sequence(mix):
    return [tuple((name, batch[name].tolist()) for name in batch) for batch in mix]


def picked(mix):
    return [int(batch["source"][0]) for batch in mix if batch.num_rows]


def test_each_batch_comes_from_one_source(paths):
    mix = mix_of(paths[:2], [sf.Schedule({0: 0.5, 10: 0.1}), 0.5], batch=10)
    batches = list(mix)
    assert {len(set(batch["source"].tolist())) for batch in batches} == {1}
    assert {batch.num_rows for batch in batches} == {10}
    assert [len(batch.sources) for batch in batches] == [1] * len(batches)


def test_shares_follow_the_schedule(paths):
    found = np.array(
        picked(
            mix_of(paths[:2], [sf.Schedule({0: 0.75, 20: 0.25}), sf.Schedule({0: 0.25, 20: 0.75})], batch=5)
        )
    )
    assert abs(np.count_nonzero(found[:20] == 0) - 15) <= 1
    assert abs(np.count_nonzero(found[20:40] == 0) - 5) <= 1


def test_the_seed_decides_who_comes_first_among_equals(paths):
    weights = [sf.Schedule({0: 1}), sf.Schedule({0: 1}), sf.Schedule({0: 1})]
    firsts = {picked(mix_of(paths, weights, batch=5, seed=seed))[0] for seed in range(8)}
    assert len(firsts) > 1


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("weights", SCHEDULES)
@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("stop", ["first", "all"])
def test_ranks_and_resumes_see_the_same_sequence(paths, plan, weights, world_size, stop):
    options = {"seed": 3, "stop": stop, "batch": PLANS[plan]}
    alone = sequence(mix_of(paths, SCHEDULES[weights], **options))
    for steps in (0, 19, 20, 21, len(alone) // 2):
        mix = mix_of(paths, SCHEDULES[weights], **options)
        batches = iter(mix)
        for _ in range(steps):
            next(batches)
        state = json.loads(json.dumps(mix.state_dict()))
        batches.close()
        resumed = []
        for rank in range(world_size):
            one = mix_of(paths, SCHEDULES[weights], **options, rank=rank, world_size=world_size)
            one.load_state_dict(state)
            resumed.append(sequence(one))
        rest = alone[steps:]
        joined = [batch for step in zip(*resumed, strict=True) for batch in step]
        assert joined == rest[: len(rest) // world_size * world_size]


def test_a_state_holds_no_more_than_with_weights_that_stay(paths):
    fixed = mix_of(paths, [1, 1, 1], batch=sf.TokenBudget(20)).state_dict()
    changing = mix_of(paths, SCHEDULES["steps"], batch=sf.TokenBudget(20)).state_dict()
    assert changing.keys() == fixed.keys()
    assert changing["settings"].keys() == fixed["settings"].keys()
    assert [one["batch"] for one in changing["history"]] == [one["batch"] for one in fixed["history"]] == [0]


def test_another_schedule_is_named(paths):
    state = mix_of(paths[:2], [sf.Schedule({0: 1, 9: 2}), 1], batch=5).state_dict()
    with pytest.raises(sf.OpError, match=r"was Schedule\(\{0: 1\.0, 9: 2\.0\}\) and is .* 9: 3"):
        mix_of(paths[:2], [sf.Schedule({0: 1, 9: 3}), 1], batch=5).load_state_dict(state)


@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize(
    "weights",
    [
        *SCHEDULES.values(),
        [sf.Schedule({0: 1, 7: 0}), sf.Schedule({0: 0, 7: 1}), sf.Schedule({0: 0.5, 30: 0})],
        [1, sf.Schedule({0: 1, 3: 0}), sf.Schedule({0: 0, 5: 1, 6: 0})],
        [sf.Schedule({0: 1, 500: 0}), sf.Schedule({0: 0.1, 500: 1}), 0.5],
    ],
)
def test_a_mix_knows_its_number_of_batches(paths, weights, stop):
    mix = mix_of(paths, weights, batch=5, stop=stop)
    assert len(mix) == len(list(mix))


def test_a_source_without_a_weight_does_not_delay_the_end(paths):
    weights = [sf.Schedule({0: 1, 10: 0}), sf.Schedule({0: 1, 10: 0}), sf.Schedule({0: 0, 10: 1})]
    found = picked(mix_of(paths, weights, batch=5, stop="all"))
    assert found.count(2) == 10
    assert set(found[12:]) == {2}


@pytest.mark.parametrize("first", [sf.Schedule({0: 1.0, 5: 0.2}), 1.0])
def test_a_source_that_never_comes_is_balanced_with_the_others(paths, first):
    plan = sf.Rows(4, lengths="tokens.lengths", balance=sf.Balance(2, 1, "window", linear=10))
    options = {"batch": plan, "stop": "all", "skip": [(0, 1), (4, 9)], "tail": "repeat"}
    with_it = mix_of(paths, [0, first, sf.Schedule({0: 0, 10: 1})], **options)
    assert sequence(with_it)
    assert not {0} & {int(n) for batch in with_it for n in batch["source"]}


def test_batches_are_found_by_their_numbers(paths):
    batches = sequence(mix_of(paths, SCHEDULES["steps"], batch=5))
    mix = mix_of(paths, SCHEDULES["steps"], batch=5)
    for number in (0, 20, len(batches) - 1):
        one = mix.batch_at(number)
        assert tuple((name, one[name].tolist()) for name in one) == batches[number]


def test_weights_that_stay_keep_their_order(paths):
    mix = mix_of(paths, [0.5, 0.3, 0.2], batch=sf.TokenBudget(40), seed=3)
    assert picked(mix)[:12] == [0, 1, 0, 2, 0, 1, 0, 2, 1, 0, 0, 1]


def test_a_mix_without_a_source_at_some_batch_is_refused_before_reading(tmp_path):
    weights = [sf.Schedule({0: 1, 10: 0}), sf.Schedule({0: 0, 12: 1})]
    with pytest.raises(sf.OpError, match="all sources have a weight of 0 for batch 10"):
        sf.Mix({tmp_path / "none": weights[0], tmp_path / "neither": weights[1]})


def test_a_mix_shows_its_schedules(paths):
    text = repr(mix_of(paths[:2], [sf.Schedule({0: 1, 9: 2}), 1], batch=5))
    assert "Schedule({0: 1.0, 9: 2.0})" in text


@pytest.mark.parametrize("weight", [1e-9, 1e-300, sf.Schedule({0: 1e-12}), sf.Schedule({0: 1, 3: 1e-9})])
def test_a_weight_without_an_end_in_sight_is_an_error(weight):
    def mix(stop):
        sources = {"a": {"t": [[1]] * 20}, "b": {"t": [[2]] * 20}}
        return sf.Mix(sources, weights={"a": weight, "b": 1}, batch=sf.TokenBudget(2), stop=stop)

    with pytest.raises(
        sf.OpError, match=r"the weight of source 0 is .*, so small that .* would have more than"
    ):
        list(mix("all"))
    assert 10 <= len(list(mix("first"))) <= 14


def test_weights_whose_sum_is_beyond_float64_are_an_error(paths):
    with pytest.raises(sf.OpError, match="the sum of the weights is inf"):
        mix_of(paths[:2], [1e308, 1e308], batch=5)


def test_a_weight_beyond_floats_is_refused():
    with pytest.raises(sf.OpError, match=r"Schedule: the weight from batch 0 on is 10+, expected"):
        sf.Schedule({0: 10**400})
