"""Steps whose rows are dealt so that ranks cost alike: nothing is lost, and all ranks see one sequence."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import BatchPlanError, OpTypeError
from seqflow.loader import Balance

ROWS = 900
LENGTHS = np.minimum(np.random.default_rng(5).lognormal(2.0, 1.1, ROWS).astype(np.int64) + 1, 200)
TABLE = pa.table(
    {"id": np.arange(ROWS), "tokens": [np.full(n, i) for i, n in enumerate(LENGTHS)]},
)
BALANCE = {"group": 4, "steps_of": 2, "linear": 10}
PLANS = {
    "packed": lambda balance: sf.Packed(64, ("tokens",), rows=3, balance=balance),
    "one packed row": lambda balance: sf.Packed(64, ("tokens",), rows=1, balance=balance),
    "rows": lambda balance: sf.Rows(5, lengths="tokens", balance=balance),
    "tokens": lambda balance: sf.TokenBudget(200, lengths="tokens", balance=balance),
    "buckets": lambda balance: sf.Buckets(3, sf.Rows(5, lengths="tokens"), balance=balance),
}
UNEQUAL = pytest.mark.filterwarnings("ignore:Balance. world_size")
EACH_PLAN = pytest.mark.parametrize("plan", PLANS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("docs")
    for number in range(9):
        pq.write_table(TABLE.slice(100 * number, 100), path / f"{number}.parquet", row_group_size=25)
    return path


def loader_of(folder, plan, pool=1, balance=True, **options):
    found = Balance(pool=pool, **BALANCE) if balance else None
    options = {
        "shuffle": sf.Shuffle(3),
        "window": "16 kB",
        "threads": 0,
        "rank": 0,
        "world_size": 1,
        **options,
    }
    return sf.Loader(str(folder / "*.parquet"), batch=PLANS[plan](found), **options)


def elements(batch):
    """How often each document's number stands in a batch."""
    tokens = batch["tokens.values"] if "tokens.values" in batch else batch["tokens"][batch["segment_ids"] > 0]
    return Counter(tokens.tolist())


def all_elements(batches):
    found = Counter()
    for batch in batches:
        found.update(elements(batch))
    return found


WHOLE = Counter(dict(enumerate(LENGTHS.tolist())))


@pytest.mark.each_choice
@EACH_PLAN
@pytest.mark.parametrize("pool", [1, 3, None])
@pytest.mark.parametrize("index", [False, True])
def test_every_element_comes_once(folder, tmp_path, plan, pool, index):
    options = {"index": tmp_path / "lengths.arrow"} if index else {}
    loader = loader_of(folder, plan, pool, **options)
    for _ in range(2):
        assert all_elements(loader) == WHOLE
        stats = loader.stats()
        assert (stats.rows, stats.rows_left, stats.rows_read) == (ROWS, 0, ROWS)
        assert stats.costs.imbalance < stats.costs.imbalance_undealt


@EACH_PLAN
def test_a_step_keeps_what_the_shuffle_gave_it(folder, plan):
    plain, dealt = (list(loader_of(folder, plan, balance=balance)) for balance in (False, True))
    assert len(plain) == len(dealt)
    assert [batch["id"].tolist() for batch in plain] != [batch["id"].tolist() for batch in dealt]
    for start in range(0, len(plain), 8):
        assert all_elements(plain[start : start + 8]) == all_elements(dealt[start : start + 8])


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@UNEQUAL
@EACH_PLAN
@pytest.mark.parametrize("pool", [1, 3, None])
@pytest.mark.parametrize("streams", [1, 3])
def test_ranks_see_one_sequence_and_resume_in_it(folder, tmp_path, plan, pool, streams):
    options = {"streams": streams, "index": tmp_path / "lengths.arrow"} if streams > 1 else {}
    whole = {batch.number: dict(elements(batch)) for batch in loader_of(folder, plan, pool, **options)}
    assert sum((Counter(one) for one in whole.values()), Counter()) == WHOLE
    first = [
        loader_of(folder, plan, pool, rank=rank, world_size=4, tail="pad", **options) for rank in range(4)
    ]
    seen, states = {}, []
    for rank in first:
        batches = iter(rank)
        for _ in range(5):
            batch = next(batches)
            seen[batch.number] = dict(elements(batch))
        states.append(rank.state_dict())
        batches.close()
    assert seen == {number: whole[number] for number in range(20)}
    for rank in range(3):
        resumed = loader_of(folder, plan, pool, rank=rank, world_size=3, tail="pad", **options)
        resumed.load_state_dict(states[rank])
        found = {batch.number: dict(elements(batch)) for batch in resumed if batch.num_rows}
        assert not found.keys() & seen.keys()
        seen |= found
    assert seen == whole


@EACH_PLAN
def test_any_batch_of_it_by_its_number(folder, tmp_path, plan):
    loader = loader_of(folder, plan, pool=3, index=tmp_path / "lengths.arrow")
    for number, batch in enumerate(list(loader)):
        if number % 7 == 0:
            assert elements(loader.batch_at(number)) == elements(batch)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing(folder, threads):
    one, other = loader_of(folder, "packed", 3), loader_of(folder, "packed", 3, threads=threads)
    for batch, again in zip(one, other, strict=True):
        for name in batch:
            np.testing.assert_array_equal(batch[name], again[name])


@pytest.mark.slow
@UNEQUAL
@pytest.mark.parametrize("tail", ["drop", "repeat"])
@pytest.mark.parametrize("plan", ["packed", "tokens"])
def test_tails_of_ranks(folder, plan, tail):
    whole = [elements(batch) for batch in loader_of(folder, plan, 3)]
    count = len(whole) // 7 if tail == "drop" else -(-len(whole) // 7)
    for rank in range(7):
        loader = loader_of(folder, plan, 3, rank=rank, world_size=7, tail=tail)
        batches = iter(loader)
        found = [elements(next(batches)) for _ in range(count - 1)]
        state = loader.state_dict()
        found += [elements(batch) for batch in batches]
        assert found == [whole[(7 * step + rank) % len(whole)] for step in range(count)]
        resumed = loader_of(folder, plan, 3, rank=rank, world_size=7, tail=tail)
        resumed.load_state_dict(state)
        assert [elements(batch) for batch in resumed] == found[-1:]


def test_a_cost_may_be_an_expression_or_a_column(folder):
    for cost in (
        "minimum(length, 8) * (2 * length - minimum(length, 8))",
        "id + 1",
        "longest ** 2",
        "length / 3",
    ):
        plan = sf.Rows(5, lengths="tokens", balance=Balance(group=4, steps_of=2, cost=cost))
        loader = sf.Loader(str(folder / "*.parquet"), batch=plan, shuffle=True, threads=0)
        assert all_elements(loader) == WHOLE
        assert loader.stats().costs.imbalance < loader.stats().costs.imbalance_undealt


def test_a_state_names_the_balance_that_differs(folder):
    state = loader_of(folder, "packed").state_dict()
    with pytest.raises(sf.OpError, match=r"batch\.balance\.\S+ was \S+ and is "):
        loader_of(folder, "packed", 2).load_state_dict(state)


def test_ranks_that_do_not_divide_the_group_are_warned_once(folder):
    loader = loader_of(folder, "packed", world_size=3)
    with pytest.warns(
        UserWarning, match=r"world_size = 3 does not divide group = 4: .* costs \d\.\d+ times"
    ) as found:
        for _ in loader:
            pass
    assert len(found) == 1


@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("cost", ["length", "length * 0"])
def test_a_warning_has_figures_or_none(group, cost):
    plan = sf.Rows(1, balance=sf.Balance(group=group, cost=cost))
    with pytest.warns(UserWarning, match=f"world_size = 5 does not divide group = {group}") as found:
        list(sf.Loader({"t": [[1] * n for n in range(1, 20)]}, batch=plan, rank=0, world_size=5))
    assert len(found) == 1
    assert "nan" not in str(found[0].message)


@pytest.mark.parametrize("quotas", [True, False])
@pytest.mark.parametrize("stop", ["first", "all"])
def test_a_mix_deals_the_steps_of_its_own_batches(quotas, stop):
    def mix(balance, **options):
        plan = PLANS["rows" if quotas else "packed"](balance)
        sources = {"a": TABLE.slice(0, 600), "b": TABLE.slice(600)}
        given = {"weights": {"a": 2, "b": 1}, "shuffle": True, "stop": stop, "threads": 0, **options}
        return sf.Mix(sources, batch=plan, **given)

    plain, dealt = list(mix(None)), list(mix(Balance(**BALANCE)))
    assert len(plain) == len(dealt)
    for start in range(0, len(plain) // 8 * 8, 8):
        assert all_elements(plain[start : start + 8]) == all_elements(dealt[start : start + 8])
    ranks = {}
    for rank in range(2):
        loader = mix(Balance(**BALANCE), rank=rank, world_size=2)
        batches = iter(loader)
        ranks |= {batch.number: elements(batch) for batch in (next(batches), next(batches), next(batches))}
        state = loader.state_dict()
        again = mix(Balance(**BALANCE), rank=rank, world_size=2)
        again.load_state_dict(state)
        ranks |= {batch.number: elements(batch) for batch in again}
    assert ranks == {number: elements(batch) for number, batch in enumerate(dealt[: len(ranks)])}
    assert len(ranks) in (len(dealt), len(dealt) - 1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"group": 0, "linear": 1}, "Balance: group is 0"),
        ({"group": 1, "linear": 10**400}, "Balance: linear is 10+, expected a number, 0 or more"),
        ({"group": 4, "steps_of": -1, "linear": 1}, "Balance: steps_of is -1"),
        ({"group": 4, "pool": 0, "linear": 1}, "Balance: pool is 0"),
        ({"group": 4}, "neither linear nor cost is given"),
        ({"group": 4, "linear": 1, "cost": "length"}, "both linear and cost are given"),
        ({"group": 4, "linear": -1}, "Balance: linear is -1"),
        ({"group": 4, "linear": float("nan")}, "Balance: linear is nan"),
    ],
)
def test_what_is_no_balance_is_an_error(options, text):
    with pytest.raises(sf.OpError, match=text):
        Balance(**options)


def test_a_cost_of_what_is_not_there_is_an_error_before_reading(folder):
    plan = sf.Rows(5, lengths="tokens", balance=Balance(group=4, cost="length * price"))
    with pytest.raises(BatchPlanError, match="cost names 'price', expected length, longest or a tensor"):
        sf.Loader(str(folder / "*.parquet"), batch=plan)
    with pytest.raises(BatchPlanError, match=r"Balance: the cost of row .* expected a number, 0 or more"):
        next(
            iter(
                sf.Loader(
                    TABLE, batch=sf.Rows(5, lengths="tokens", balance=Balance(group=4, cost="2 - length"))
                )
            )
        )
    with pytest.raises(OpTypeError, match="balance is 4"):
        sf.Rows(5, balance=4)
    with pytest.raises(sf.OpError, match="give balance= to Buckets"):
        sf.Buckets(3, sf.Rows(5, balance=Balance(group=4, linear=0)))


def test_texts_of_plans_are_those_of_earlier_versions():
    assert repr(sf.Rows(5)) == "Rows(n=5, drop_last=False, lengths=None, min_length=None, max_length=None)"
    assert repr(sf.Rows(5, balance=Balance(group=4, linear=0))).endswith(
        "balance=Balance(group=4, steps_of=1, pool=1, linear=0, cost=None))"
    )


@pytest.mark.parametrize("plan", ["rows", "packed", "tokens"])
@pytest.mark.parametrize("pool", [1, 3])
def test_rows_that_the_net_refuses_are_those_of_their_windows(folder, tmp_path, plan, pool):
    def net(batch):
        tokens = batch["tokens"] if "segment_ids" in batch else batch["tokens.values"]
        if (tokens % 97 == 13).any() and (tokens != 0).any():
            raise sf.OpError("97 n + 13")
        return batch

    bad = tmp_path / "bad.parquet"
    policy = sf.BadRows("quarantine", str(bad))
    loader = loader_of(folder, plan, pool, net=net, bad_rows=policy)
    found = all_elements(loader)
    refused = [i for i in range(ROWS) if i % 97 == 13]
    assert found == Counter({i: n for i, n in WHOLE.items() if i % 97 != 13})
    stats = loader.stats()
    assert (stats.bad_rows, stats.rows, stats.rows_left) == (len(refused), ROWS - len(refused), 0)
    assert sorted(pq.read_table(bad)["id"].to_pylist()) == refused


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("plan", ["rows", "packed"])
@pytest.mark.parametrize("pool", [1, 3, None])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("threads", [0, 1])
def test_an_epoch_of_more_batches_than_there_are_is_an_error(folder, tmp_path, plan, pool, index, threads):
    options = {"index": tmp_path / "lengths.arrow"} if index else {}
    if index:
        len(loader_of(folder, plan, pool, **options))
    found = list(loader_of(folder, plan, pool, steps_per_epoch=20, threads=threads, **options))
    assert len(found) == 20
    with pytest.raises(BatchPlanError, match=r"stream 0 of 1 ends after \d+ batches, but an epoch of 5000"):
        list(loader_of(folder, plan, pool, steps_per_epoch=5000, threads=threads, **options))
