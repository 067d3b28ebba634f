"""Random ops in a loader are a function of seed, epoch and row: not of batch size, plan, window, order or rank."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf

NET = """
m, labels, chosen = mask_tokens(x.values, x.lengths, ratio=0.5, mask=9, vocabulary_size=10, seed=3)
shuffled = shuffle_within(x.values, x.lengths, seed=1)
y, kept = dropout(cast(id, dtype="float64"), seed=2)
cut, n = truncate(x.values, x.lengths, max_length=3)
kept_ids = dropout_ids(cut, n, ratio=0.5, seed=4)
return id, m, shuffled, y, x.lengths, kept_ids, n
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    lengths = np.random.default_rng(0).integers(0, 9, 200)
    lists = pa.array([list(range(n)) for n in lengths], pa.list_(pa.int64()))
    table = pa.table({"id": np.arange(200), "x": lists})
    file = tmp_path_factory.mktemp("draws") / "rows.parquet"
    pq.write_table(table, file, row_group_size=40)
    return file


def drawn(loader):
    """The numbers that each row drew."""
    found = {}
    for batch in loader:
        ends = pairwise([0, *np.cumsum(batch["x.lengths"])])
        short = pairwise([0, *np.cumsum(batch["n"])])
        for i, row, (a, b), (c, d) in zip(
            range(len(batch["id"])), batch["id"].tolist(), ends, short, strict=True
        ):
            lists = (batch["m"][a:b], batch["shuffled"][a:b], batch["kept_ids"][c:d])
            found[row] = ([one.tolist() for one in lists], batch["y"][i])
    return found


@pytest.mark.parametrize("stage", ["net", "prepare"])
def test_a_row_draws_the_same_in_any_batch(path, stage):
    first = drawn(sf.Loader(path, batch=7, **{stage: NET}))
    others = [
        {"batch": 64},
        {"batch": sf.TokenBudget(50, lengths="x.lengths")},
        {"batch": 7, "shuffle": True, "window": 2000},
    ]
    assert len(first) == 200
    for options in others:
        assert drawn(sf.Loader(path, **options, **{stage: NET})) == first


def test_a_row_draws_the_same_on_any_number_of_ranks(path):
    alone = drawn(sf.Loader(path, batch=10, net=NET))
    for rank in range(2):
        shared = drawn(sf.Loader(path, batch=10, net=NET, rank=rank, world_size=2))
        assert shared == {row: alone[row] for row in shared}


def test_each_epoch_draws_again(path):
    loader = sf.Loader(path, batch=50, net=NET)
    first, second = drawn(loader), drawn(loader)
    assert first.keys() == second.keys()
    assert first != second


def test_a_row_that_is_taken_twice_draws_twice():
    net = sf.Net("""
    values, lengths = gather_sequences(x.values, cast(id, dtype="int64") * 0, x.lengths)
    shuffled = shuffle_within(values, lengths, seed=1)
    return shuffled, lengths
    """)
    table = pa.table({"id": [0, 1], "x": [list(range(50)), [1]]})
    (batch,) = sf.Loader(table, batch=2, net=net)
    assert batch["lengths"].tolist() == [50, 50]
    assert batch["shuffled"][:50].tolist() != batch["shuffled"][50:].tolist()
