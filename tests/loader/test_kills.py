"""Runs that are killed again and again, and go on with other numbers of ranks: nothing is lost, nothing comes twice."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf

pytestmark = pytest.mark.slow
ROWS = 600
LENGTHS = np.minimum(np.random.default_rng(9).lognormal(2.5, 1.1, ROWS).astype(np.int64) + 1, 150)
TABLE = pa.table({"id": np.arange(ROWS), "tokens": [np.full(n, i) for i, n in enumerate(LENGTHS)]})
BALANCE = sf.Balance(group=4, steps_of=2, pool=2, linear=20)
PLANS = {
    "packed": sf.Packed(48, ("tokens",), rows=2, balance=BALANCE),
    "rows": sf.Rows(5, lengths="tokens", balance=BALANCE),
    "best fit": sf.TokenBudget(150, lengths="tokens", strategy="best_fit", linear=50),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("docs")
    for number in range(6):
        pq.write_table(TABLE.slice(100 * number, 100), path / f"{number}.parquet", row_group_size=25)
    return path


def loader_of(folder, plan, mixed, rank, world_size):
    options = {
        "batch": PLANS[plan],
        "shuffle": sf.Shuffle(2),
        "window": "16 kB",
        "threads": 0,
        "skip": [(8, 16)],
    }
    options |= {"rank": rank, "world_size": world_size, "tail": "pad"}
    if not mixed:
        return sf.Loader(str(folder / "*.parquet"), **options)
    sources = {"a": str(folder / "[0-2].parquet"), "b": str(folder / "[3-5].parquet")}
    weights = {"a": sf.Schedule({0: 0.8, 20: 0.2}), "b": sf.Schedule({0: 0.2, 20: 0.8})}
    return sf.Mix({sources[name]: weights[name] for name in sources}, seed=1, **options)


def content(batch):
    values = batch["tokens"][batch["segment_ids"] > 0] if "segment_ids" in batch else batch["tokens.values"]
    return values.tolist()


@pytest.mark.each_choice
@pytest.mark.filterwarnings("ignore:Balance. world_size")
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("mixed", [False, True])
def test_the_sequence_of_batches_is_that_of_a_run_that_is_not_killed(folder, plan, mixed):
    whole = {batch.number: content(batch) for batch in loader_of(folder, plan, mixed, 0, 1)}
    assert not whole.keys() & set(range(8, 16))
    rng = np.random.default_rng(len(plan))
    kills = 0
    while kills < 20:
        found, state = {}, None
        while True:
            world_size = int(rng.choice([1, 2, 4, 3]))
            rounds, ended, states = int(rng.integers(1, 6)), False, []
            for rank in range(world_size):
                loader = loader_of(folder, plan, mixed, rank, world_size)
                if state is not None:
                    loader.load_state_dict(json.loads(state))
                batches = iter(loader)
                for _ in range(rounds):
                    batch = next(batches, None)
                    if batch is None:
                        ended = True
                        break
                    if batch.num_rows:
                        assert batch.number not in found
                        found[batch.number] = content(batch)
                states.append(json.dumps(loader.state_dict()))
                batches.close()
            kills += 1
            if ended:
                break
            state = states[0]
        assert found == whole
