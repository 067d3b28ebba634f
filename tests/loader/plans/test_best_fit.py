"""Batches of a token budget that are packed: by tokens, or by what they cost."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqflow as sf

LENGTHS = np.minimum(np.random.default_rng(2).lognormal(4, 1.1, 3000).astype(np.int64) + 1, 1024)
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int32)
TABLE = pa.table(
    {
        "id": np.arange(3000),
        "tokens": pa.ListArray.from_arrays(OFFSETS, np.repeat(np.arange(3000), LENGTHS).astype(np.int32)),
    }
)


def batches_of(plan, table=TABLE, **options):
    return list(sf.Loader(table, batch=plan, shuffle=True, threads=0, rank=0, world_size=1, **options))


def lengths_of(batch):
    return batch["tokens.lengths"].astype(np.int64)


def test_batches_are_full_and_hold_each_row_once():
    batches = batches_of(sf.TokenBudget(1024, strategy="best_fit"))
    assert sorted(np.concatenate([batch["id"] for batch in batches])) == list(range(3000))
    assert all(lengths_of(batch).sum() <= 1024 for batch in batches)
    assert len(batches) == -(-LENGTHS.sum() // 1024)
    in_order = batches_of(sf.TokenBudget(1024))
    assert len(in_order) > 1.05 * len(batches)
    lengths = np.array([lengths_of(batch).max() for batch in batches])
    assert (np.diff(lengths) > 0).any()  # in a random order, not the longest first


@pytest.mark.parametrize("linear", [200, 3600.5])
def test_batches_of_a_cost_cost_alike_at_any_number_of_ranks(linear):
    budget = 1024 * (1024 + linear)
    batches = batches_of(sf.TokenBudget(1024, strategy="best_fit", linear=linear))
    assert sorted(np.concatenate([batch["id"] for batch in batches])) == list(range(3000))
    costs = np.array([(lengths_of(batch) * (lengths_of(batch) + linear)).sum() for batch in batches])
    assert costs.max() <= budget * (1 + 1e-9)
    tokens = np.array([lengths_of(batch).sum() for batch in batches])
    assert tokens.max() <= 1024 * (1 + 1024 / linear)
    for ranks in (8, 64):
        steps = costs[: len(costs) // ranks * ranks].reshape(-1, ranks)
        assert steps.max(axis=1).sum() / steps.mean(axis=1).sum() < 1.02


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.sampled_from([None, 7]), st.integers(0, 3))
def test_counts_of_an_index_are_those_of_the_batches(lengths, linear, seed):
    table = pa.table(
        {"id": np.arange(len(lengths)), "tokens": pa.array([[1] * n for n in lengths], pa.list_(pa.int32()))}
    )
    plan = sf.TokenBudget(12, strategy="best_fit", linear=linear)
    loader = sf.Loader(table, batch=plan, shuffle=sf.Shuffle(seed), threads=0, rank=0, world_size=1)
    batches = list(loader)
    assert len(batches) == plan.count(np.array(lengths))
    assert sorted(np.concatenate([batch["id"] for batch in batches]).tolist()) == list(range(len(lengths)))


def test_long_rows_are_split():
    plan = sf.TokenBudget(256, strategy="best_fit", oversize="split")
    batches = batches_of(plan)
    assert sum(int(lengths_of(batch).sum()) for batch in batches) == LENGTHS.sum()
    assert max(int(lengths_of(batch).sum()) for batch in batches) <= 256


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"strategy": "worst_fit"}, "strategy is 'worst_fit', expected 'in_order' or 'best_fit'"),
        (
            {"strategy": "best_fit", "padded": True},
            "padded is True, which strategy='best_fit' cannot hold to",
        ),
        ({"strategy": "best_fit", "drop_last": True}, "drop_last is True"),
        ({"linear": 5}, "linear is 5, which needs strategy='best_fit'"),
        ({"linear": 0, "strategy": "best_fit"}, "linear is 0, with which short rows"),
        ({"linear": -1, "strategy": "best_fit"}, "linear is -1, expected a number"),
    ],
)
def test_what_cannot_be_packed_is_an_error(options, text):
    with pytest.raises(sf.OpError, match=text):
        sf.TokenBudget(64, **options)


def test_padded_rows_and_buckets_are_refused():
    with pytest.raises(sf.OpError, match=r"pad with TokenBudget\(linear=…\)"):
        sf.Loader(TABLE, batch=sf.TokenBudget(1024, strategy="best_fit", linear=9), pad={"tokens": 0})
    with pytest.raises(sf.OpError, match="Buckets: strategy is 'best_fit'"):
        sf.Buckets(4, sf.TokenBudget(1024, strategy="best_fit"))
