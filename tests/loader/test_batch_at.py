"""Any batch by its number."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf

RNG = np.random.default_rng(7)
LISTS = pa.table({"id": np.arange(600), "tokens": [np.arange(n) % 97 for n in RNG.integers(1, 40, 600)]})
PLANS = [
    sf.Rows(7),
    sf.TokenBudget(200, lengths="tokens"),
    sf.Packed(64, ("tokens",), rows=4),
    sf.Buckets([10, 20], sf.Rows(8, lengths="tokens")),
]


def _same(one, other):
    assert one.number == other.number
    assert list(one) == list(other)
    for name in one:
        assert one[name].dtype == other[name].dtype
        np.testing.assert_array_equal(one[name], other[name])


@pytest.fixture
def folder(tmp_path):
    for number in range(6):
        pq.write_table(LISTS.slice(100 * number, 100), tmp_path / f"{number}.parquet")
    return tmp_path


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: type(plan).__name__)
@pytest.mark.parametrize("index", [False, True])
def test_it_is_the_batch_of_the_epoch(folder, plan, index):
    options = {"batch": plan, "shuffle": sf.Shuffle(5), "window": 24_000}
    if index:
        options["index"] = folder.parent / f"{type(plan).__name__}.arrow"
    loader = sf.Loader(str(folder / "*.parquet"), **options)
    loader.set_epoch(1)
    batches = list(loader)
    assert [batch.number for batch in batches] == list(range(len(batches)))
    before = loader.state_dict()
    for number in (0, len(batches) // 2, len(batches) - 1):
        _same(loader.batch_at(number, epoch=1), batches[number])
    assert loader.state_dict() == before
    with pytest.raises(
        sf.OpError, match=f"number is {len(batches)}, expected less than {len(batches)}, the batches of"
    ):
        loader.batch_at(len(batches), epoch=1)


def test_ranks_have_numbers_of_the_whole_epoch():
    loaders = [sf.Loader(LISTS, batch=50, rank=rank, world_size=3) for rank in range(3)]
    found = [[batch.number for batch in loader] for loader in loaders]
    assert found == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    _same(loaders[0].batch_at(8), list(loaders[2])[2])


def test_functions_see_the_number_of_the_batch():
    def net(batch):
        return {"number": np.array([batch.number])}

    assert [int(batch["number"][0]) for batch in sf.Loader(LISTS, batch=100, net=net)] == list(range(6))


def test_random_nets_draw_the_same():
    loader = sf.Loader(
        LISTS,
        batch=50,
        columns=["id"],
        net="x, kept = dropout(cast(id, dtype='float32'), seed=3)",
        shuffle=True,
    )
    batches = list(loader)
    _same(loader.batch_at(5, 0), batches[5])


def test_of_a_mix():
    mix = sf.Mix(
        {"a": LISTS, "b": LISTS.slice(0, 100)}, weights={"a": 2, "b": 1}, batch=10, stop="all", shuffle=True
    )
    batches = list(mix)
    assert [batch.number for batch in batches] == list(range(len(batches)))
    for number in (0, 30, len(batches) - 1):
        _same(mix.batch_at(number), batches[number])
    with pytest.raises(sf.OpError, match=f"expected less than {len(batches)}, the batches of epoch 0"):
        mix.batch_at(len(batches))


@pytest.mark.parametrize("number", [-1, 1.5, True, "3"])
def test_what_is_no_number_is_an_error(number):
    with pytest.raises(sf.OpError, match="batch_at: number is"):
        sf.Loader(LISTS, batch=10).batch_at(number)


def test_batches_for_torch_have_their_number():
    pytest.importorskip("torch")
    found = [batch.number for batch in sf.Loader(LISTS, batch=100).to("torch")]
    assert found == list(range(6))
