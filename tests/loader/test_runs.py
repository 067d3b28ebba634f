"""Batches from a number to another, runs of windows, and what a service of batches needs of a loader."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.loader.run.derived import derived_tensors, lengths_of_mask, lengths_of_segments

ROWS = 400
LENGTHS = np.minimum(np.random.default_rng(3).lognormal(2.5, 1.0, ROWS).astype(np.int64) + 1, 60)
TABLE = pa.table(
    {
        "id": np.arange(ROWS),
        "tokens": [np.random.default_rng(n).integers(0, 1 << 30, n, np.int32) for n in LENGTHS],
    }
)
BALANCE = sf.Balance(group=2, steps_of=2, pool=2, linear=20)
PLANS = {
    "rows": sf.Rows(7),
    "packed": sf.Packed(64, ("tokens",), rows=2),
    "budget": sf.TokenBudget(150, lengths="tokens"),
    "balance": sf.TokenBudget(150, lengths="tokens", balance=BALANCE),
    "balanced windows": sf.TokenBudget(
        150, lengths="tokens", balance=sf.Balance(group=2, pool=None, linear=20)
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("docs")
    for number in range(4):
        pq.write_table(TABLE.slice(100 * number, 100), path / f"{number}.parquet", row_group_size=10)
    return path


def loader_of(folder, plan="packed", *, index=True, tmp="", **options):
    return sf.Loader(
        str(folder / "*.parquet"), PLANS[plan], shuffle=sf.Shuffle(5), window="6 kB",
        index=folder / f"{plan}{tmp}.arrow" if index else None,
        **{"threads": 1, "rank": 0, "world_size": 1, **options},
    )  # fmt: skip


def content(batch):
    return batch.number, {name: tensor.tolist() for name, tensor in batch.items()}


@pytest.mark.each_choice
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("index", [True, False])
def test_batches_at_are_those_of_the_epoch(folder, plan, index):
    loader = loader_of(folder, plan, index=index)
    whole = [content(batch) for batch in loader_of(folder, plan, index=index)]
    state = loader.state_dict()
    for start, stop, step in ((0, None, 1), (5, 12, 1), (9, 30, 4), (3, 3, 1), (len(whole) + 5, None, 1)):
        assert [content(one) for one in loader.batches_at(start, stop, step=step)] == whole[start:stop:step]
    assert loader.state_dict() == state
    assert content(next(loader.batches_at(2, epoch=1))) == content(loader.batch_at(2, epoch=1))


def test_batches_at_of_a_mix_and_with_totals(folder):
    def mix():
        names = {"a": str(folder / "[01].parquet"), "b": str(folder / "[23].parquet")}
        return sf.Mix(
            names, weights={"a": 3, "b": 1}, batch=sf.TokenBudget(150, lengths="tokens"), shuffle=True,
            window="6 kB", stop="all", rank=0, world_size=1, totals={"n": "tokens.lengths"}, steps_of=3,
        )  # fmt: skip

    whole = [(content(batch), batch.totals, batch.sources) for batch in mix()]
    for start, stop in ((0, None), (4, 9), (40, None)):
        found = [(content(one), one.totals, one.sources) for one in mix().batches_at(start, stop)]
        assert found == whole[start:stop]


@pytest.mark.filterwarnings("ignore:totals. n of step")
def test_batches_at_count_the_totals_of_batch_at(folder):
    loader = loader_of(folder, totals={"n": "tokens.lengths"}, rank=1, world_size=3)
    total = loader.pipeline.num_batches(0)
    for batch in loader.batches_at(total - 6):
        assert batch.totals == loader.batch_at(batch.number).totals


def test_wrong_places_of_batches_are_errors(folder):
    with pytest.raises(sf.OpError, match="start is -1"):
        next(loader_of(folder).batches_at(-1))
    with pytest.raises(sf.OpError, match="step is 0"):
        next(loader_of(folder).batches_at(0, step=0))


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("windows", [1, 3, 100])
def test_runs_of_windows_have_all_batches_once_and_read_their_windows_alone(folder, plan, windows):
    loader = loader_of(folder, plan)
    runs = loader.runs(windows, epoch=1)
    numbers = [number for run in runs for number in run]
    loader.set_epoch(1)
    assert numbers == list(range(len(loader)))
    if plan == "balance":
        assert all(run.start % (BALANCE.step * BALANCE.steps_in_pool) == 0 for run in runs)
    if plan in ("packed", "budget"):
        assert len(runs) == -(-6 // windows)


def test_a_run_reads_no_other_windows(folder, monkeypatch):
    loader = loader_of(folder, threads=2)
    whole = [content(batch) for batch in loader_of(folder)]
    run = loader.runs(2)[2]
    opened = []
    from seqflow.loader.run.windows import WindowMaker

    of = WindowMaker.open
    monkeypatch.setattr(WindowMaker, "open", lambda self, window, *rest: opened.append(window.number) or of(self, window, *rest))  # fmt: skip
    found = [content(one) for one in loader.batches_at(run.start, run.stop)]
    assert found == whole[run.start : run.stop]
    assert sorted(opened) == [4, 5]


def test_runs_need_counted_batches(folder):
    with pytest.raises(sf.OpError, match="are not known before reading"):
        loader_of(folder, index=False).runs()
    with pytest.raises(sf.OpError, match="windows is 0"):
        loader_of(folder).runs(0)


def test_windows_and_counts_of_an_epoch_are_found_once(folder, monkeypatch):
    from seqflow.loader.order.index import LengthsIndex

    calls = []
    of = LengthsIndex.counts
    monkeypatch.setattr(LengthsIndex, "counts", lambda self, *rest: calls.append(rest[-1]) or of(self, *rest))
    loader = loader_of(folder)
    for _ in range(3):
        first = [content(one) for one in loader.batches_at(0, 3)]
    assert calls == [0]
    assert first == [content(one) for one in loader_of(folder).take(3)]
    len(loader), loader.take(1), loader.runs(epoch=1)
    loader.set_epoch(2)
    assert len(loader) > 10
    assert calls[1:] == [0, 1, 2]  # the second 0 is of the loader to compare with


@pytest.mark.parametrize("plan", ["packed", "rows", "budget"])
@pytest.mark.parametrize("world_size", [1, 3])
def test_windows_that_are_skipped_are_counted_without_reading(folder, plan, world_size):
    skip = [(0, 20), (24, 33)]
    read, counts = 0, []
    for rank in range(world_size):
        loader = loader_of(folder, plan, skip=skip, rank=rank, world_size=world_size, tail="pad", threads=0)
        whole = [
            batch for batch in loader_of(folder, plan) if not (batch.number < 20 or 24 <= batch.number < 33)
        ]
        found = [content(one) for one in loader if one.num_rows]
        assert found == [content(one) for one in whole[rank::world_size]]
        stats = loader.stats()
        counts.append(stats)
        read += stats.seconds_reading > 0
    total = sum(one.rows + one.skipped for one in counts)
    assert total + sum(one.dropped for one in counts) == ROWS
    if world_size == 1:
        assert (counts[0].rows_left, counts[0].rows_read) == (0, ROWS)


@pytest.mark.parametrize("plan", [sf.Packed(64, ("tokens",), rows=2), sf.Packed(64, ("tokens",), rows=3, drop_last=True), sf.Rows(8)])  # fmt: skip
def test_a_long_skip_opens_no_window_of_it(folder, plan, tmp_path, monkeypatch):
    from seqflow.loader.run.windows import WindowMaker

    opened = []
    of = WindowMaker.open
    monkeypatch.setattr(WindowMaker, "open", lambda self, window, *rest: opened.append(window.number) or of(self, window, *rest))  # fmt: skip
    options = {"shuffle": sf.Shuffle(5), "window": "6 kB", "index": tmp_path / "i.arrow"}
    options |= {"rank": 0, "world_size": 1, "threads": 0}
    full = sf.Loader(str(folder / "*.parquet"), plan, **options)
    full.lengths_index()
    total = len(full)
    assert sum(1 for _ in full) == total
    rows = full.stats().dropped
    opened.clear()
    loader = sf.Loader(str(folder / "*.parquet"), plan, **options, skip=[(0, total - 3)])
    assert [one.number for one in loader] == [total - 3, total - 2, total - 1]
    assert 0 < len(opened) <= 4
    stats = loader.stats()
    assert (stats.dropped, stats.rows_left, stats.rows + stats.skipped) == (rows, 0, ROWS - rows)


NETS = {
    "none": None,
    "passes": "return tokens, segment_ids, position_ids, piece_lengths, pieces",
    "passes ids": "return tokens, segment_ids, position_ids",
    "changes": "segment_ids = cast(tokens, dtype='int32')\nreturn tokens, segment_ids, position_ids",
}


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("multiple_of", [1, 8])
def test_ids_of_packed_rows_follow_from_lengths_unless_a_net_changes_them(folder, net, multiple_of):
    plan = sf.Packed(64, ("tokens",), rows=3, multiple_of=multiple_of)
    loader = sf.Loader(str(folder / "*.parquet"), plan, net=NETS[net], window="20 kB", rank=0, world_size=1)
    derived = derived_tensors(loader.recipe)
    assert set(derived) == {"position_ids"} | ({"segment_ids"} if net != "changes" else set())
    for batch in loader.take(5) if net != "changes" else ():
        lengths = lengths_of_segments(batch["segment_ids"])
        if "pieces" in batch:
            assert [one.tolist() for one in lengths] == [
                batch["pieces"].tolist(),
                batch["piece_lengths"].tolist(),
            ]
        for name, how in derived.items():
            made = how.make(batch[name].shape, *lengths)
            assert made.dtype == batch[name].dtype
            assert np.array_equal(made, batch[name])


@pytest.mark.parametrize("side", ["left", "right"])
def test_masks_follow_from_lengths(folder, side):
    pad = {"tokens": sf.Pad(0, side=side, max_length=20, truncate=True)}
    loader = sf.Loader(str(folder / "*.parquet"), 7, pad=pad, rank=0, world_size=1)
    derived = derived_tensors(loader.recipe)
    for batch in loader.take(4):
        (lengths,) = lengths_of_mask(batch["tokens.mask"])
        assert lengths.tolist() == batch["tokens.lengths"].tolist()
        made = derived["tokens.mask"].make(batch["tokens.mask"].shape, lengths)
        assert (made.dtype, made.tolist()) == (np.dtype(bool), batch["tokens.mask"].tolist())
    function = sf.Loader(str(folder / "*.parquet"), 7, pad=pad, net=lambda batch: batch, rank=0, world_size=1)
    assert derived_tensors(function.recipe) == {}


@pytest.mark.parametrize("plan", ["packed", "balance"])
def test_totals_of_all_batches_are_kept_apart_for_any_step(folder, plan):
    totals = {"n": "tokens.lengths", "x": "tokens.values * 0.1"}
    loader = loader_of(folder, plan, totals=totals)
    size = 4 if plan == "balance" else 6
    pipeline = loader.pipeline.all_batches(size)
    loader.pipeline = pipeline
    apart = {batch.number: batch for batch in loader}
    other = loader_of(folder, plan, totals=totals, **({} if plan == "balance" else {"steps_of": 6}))
    for batch in other:
        assert batch.step == batch.number // size
        for name, total in batch.totals.items():
            of_batches = apart[batch.number].totals[name]
            assert len(of_batches) == min(size, len(apart) - batch.step * size)
            found = 0
            for value in (value for values in of_batches for value in values):
                found += value
            assert found == total
    assert json.loads(json.dumps(apart[0].totals)) == apart[0].totals
