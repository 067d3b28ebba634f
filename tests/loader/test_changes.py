"""Files added in the middle of an epoch: it ends with the files of the state, and new ones join at the next."""

import json
import pickle
import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf

KINDS = {"crossing": 1, "counted while read": 1, "crossing streams": 2, "indexed": 1, "indexed streams": 2}


class Data:
    """A folder of Parquet files whose ids count up from 0."""

    def __init__(self, folder):
        self.folder, self.rows = folder, 0
        folder.mkdir()

    def add(self, name, rows):
        ids = np.arange(self.rows, self.rows + rows)
        tokens = pa.array([[int(n)] * (int(n) % 7 + 1) for n in ids], pa.list_(pa.int32()))
        pq.write_table(
            pa.table({"id": ids, "tokens": tokens}), self.folder / f"{name}.parquet", row_group_size=20
        )
        self.rows += rows


def loader_of(
    data, kind="counted while read", *, size=20, window=700, shuffle=True, rank=0, world_size=1, pool=0
):
    options = {"shuffle": shuffle, "window": window, "streams": KINDS[kind], "threads": 0}
    if kind.startswith("indexed"):
        options["index"] = data.folder.with_suffix(".index")
    batch = sf.Rows(7) if kind.startswith("crossing") else sf.TokenBudget(size)
    if pool:
        batch = replace(batch, balance=sf.Balance(group=2, steps_of=2, pool=pool, linear=3))
    return sf.Loader(data.folder, batch=batch, rank=rank, world_size=world_size, tail="pad", **options)


def ids_of(batches):
    return [int(one) for batch in batches for one in batch["id"]]


def state_behind(loader, steps):
    batches = iter(loader)
    found = ids_of(next(batches) for _ in range(steps))
    state = json.loads(json.dumps(loader.state_dict()))
    batches.close()
    return state, found


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_runs_that_are_killed_see_each_row_of_their_epoch_once_though_files_were_added(tmp_path, kind, seed):
    drawn = random.Random(seed)
    data = Data(tmp_path / "data")
    for number in range(3):
        data.add(f"m{number}", drawn.randint(50, 150))
    shuffle, state, found, known = drawn.choice([True, None]), None, [], data.rows
    for life in range(5):
        world_size = drawn.choice([1, 2, 3])
        loaders = [
            loader_of(data, kind, shuffle=shuffle, rank=rank, world_size=world_size)
            for rank in range(world_size)
        ]
        for loader in loaders if state else ():
            loader.load_state_dict(state, changes="accept")
        runs = [iter(loader) for loader in loaders]
        for _ in range(drawn.randint(1, 5) if life < 3 else 10**6):
            step = [next(run, None) for run in runs]
            if step[0] is None:
                break
            found += ids_of(step)
        state = json.loads(json.dumps(drawn.choice(loaders).state_dict()))
        for run in runs:
            run.close()
        if life < 3:
            data.add(f"{drawn.choice('amz')}{life}new", drawn.randint(1, 90))
        else:
            assert sorted(found) == list(range(known))
            found, known = [], data.rows  # the next epoch has all files


def resumed_from(data, state, kind="counted while read", **options):
    loader = loader_of(data, kind, **options)
    loader.load_state_dict(state, changes="accept")
    return loader


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pool", [0, 2])
@pytest.mark.parametrize("made", [False, True])
def test_the_epoch_ends_as_it_was_planned_and_the_next_is_that_of_all_files(tmp_path, kind, pool, made):
    """With an index made before the epoch, or while it runs; all of it also after another resume."""
    data = Data(tmp_path / "data")
    data.add("b", 100)
    data.add("d", 60)
    first = loader_of(data, kind, pool=pool)
    if (made and kind != "counted while read") or kind == "indexed streams":
        len(first)
    planned = [batch["id"].tolist() for batch in first]
    assert sorted(one for batch in planned for one in batch) == list(range(160))
    state, _ = state_behind(loader_of(data, kind, pool=pool), 5)
    data.add("a", 40)  # before, between and after those of the state
    data.add("c", 30)
    data.add("e", 20)
    whole = resumed_from(data, state, kind, pool=pool)
    assert [batch["id"].tolist() for batch in whole] == planned[5:]
    resumed = resumed_from(data, state, kind, pool=pool)
    later, some = state_behind(resumed, 2)
    again = resumed_from(data, later, kind, pool=pool)
    assert some + ids_of(again) == [one for batch in planned[5:] for one in batch]
    expected = loader_of(data, kind, pool=pool)
    expected.set_epoch(1)
    all_files = [batch["id"].tolist() for batch in expected]
    assert sorted(one for batch in all_files for one in batch) == list(range(250))
    for loader in (whole, again):
        assert loader.epoch == 1
        assert [batch["id"].tolist() for batch in loader] == all_files


def test_the_state_of_the_epoch_is_of_its_files_and_that_of_the_next_of_all(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    state, _ = state_behind(loader_of(data), 5)
    data.add("a", 60)
    resumed = resumed_from(data, state)
    later, _ = state_behind(resumed, 3)
    assert later["data"] == state["data"]
    list(resumed)
    assert [path for path, *_ in resumed.state_dict()["data"]["files"]] == ["a.parquet", "b.parquet"]


def test_numbers_of_the_epoch_are_those_of_its_files(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 100)
    before = loader_of(data, "crossing")
    state, _ = state_behind(before, 5)
    fifth, traced = before.batch_at(4)["id"].tolist(), before.trace(4)
    data.add("a", 60)
    resumed = pickle.loads(pickle.dumps(resumed_from(data, state, "crossing")))
    assert len(resumed) == 15
    assert resumed.batch_at(4)["id"].tolist() == fifth
    assert resumed.trace(4) == traced
    resumed.set_epoch(1)
    assert len(resumed) == 23


def test_random_ops_of_the_epoch_draw_what_they_did(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 100)

    def loader():
        prepare = "r, _ = dropout(id * 1.0, ratio=0.5, seed=1)\nreturn id, r"
        return sf.Loader(data.folder, batch=7, prepare=prepare, shuffle=True, window=700)

    whole = [batch["r"].tolist() for batch in loader()]
    state, _ = state_behind(loader(), 5)
    data.add("a", 60)
    resumed = loader()
    resumed.load_state_dict(state, changes="accept")
    assert [batch["r"].tolist() for batch in resumed] == whole[5:]


def test_files_may_be_added_in_a_folder_above(tmp_path):
    data = Data(tmp_path / "data")
    (data.folder / "x").mkdir()
    data.add("x/b", 100)
    planned = ids_of(loader_of(data))
    state, found = state_behind(loader_of(data), 5)
    (data.folder / "y").mkdir()
    data.add("y/a", 60)
    assert found + ids_of(resumed_from(data, state)) == planned


def test_files_that_were_added_before_an_epoch_begins_are_in_it(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 100)
    state = loader_of(data).state_dict()
    data.add("a", 60)
    assert sorted(ids_of(resumed_from(data, state))) == list(range(160))


def test_added_files_are_refused_unless_changes_are_accepted_and_both_ways_are_told(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    state, _ = state_behind(loader_of(data), 5)
    data.add("a", 60)
    message = (
        r'a\.parquet is new\n.*changes="accept"\) ends .* join at the next\n  set_epoch\(…\) begins it again'
    )
    with pytest.raises(sf.OpError, match=message):
        loader_of(data).load_state_dict(state)


def test_a_refused_state_leaves_the_loader_as_it_was(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 100)
    planned = ids_of(loader_of(data))
    state, found = state_behind(loader_of(data), 5)
    data.add("a", 60)
    resumed = resumed_from(data, state)
    with pytest.raises(sf.OpError, match="seed"):
        resumed.load_state_dict({**state, "settings": {**state["settings"], "seed": 1}}, changes="accept")
    assert found + ids_of(resumed) == planned


@pytest.mark.parametrize("what", ["gone", "rows"])
def test_files_that_are_gone_or_others_stay_an_error_that_names_them(tmp_path, what):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    data.add("c", 50)
    state, _ = state_behind(loader_of(data), 5)
    (data.folder / "c.parquet").unlink()
    if what == "rows":
        data.add("c", 70)
    data.add("a", 60)
    with pytest.raises(sf.OpError, match=rf"c\.parquet .*{what}"):
        loader_of(data).load_state_dict(state, changes="accept")


@pytest.mark.parametrize("other", [{"size": 35}, {"window": 1500}])
def test_other_sizes_are_for_the_next_epoch(tmp_path, other):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    state, _ = state_behind(loader_of(data), 5)
    for changes in ("refuse", "accept"):
        with pytest.raises(sf.OpError, match=r"was .* and is .* now\n  it may change where an epoch begins"):
            loader_of(data, **other).load_state_dict(state, changes=changes)
    first = loader_of(data)
    list(first)
    resumed = loader_of(data, **other)
    with pytest.raises(sf.OpError, match='changes="accept"'):
        resumed.load_state_dict(first.state_dict())
    resumed.load_state_dict(first.state_dict(), changes="accept")
    assert resumed.epoch == 1
    assert sorted(ids_of(resumed)) == list(range(200))


@pytest.mark.parametrize(
    "changes", [1, [1], [{"epoch": 0, "batch": 5, "begun": [1], "added": ["a.parquet"]}]]
)
def test_a_state_of_an_epoch_to_which_files_were_added_before_0_4_says_how_to_go_on(tmp_path, changes):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    state, _ = state_behind(loader_of(data), 5)
    with pytest.raises(
        sf.OpError, match=r"added in the middle of the epoch.*\n  finish the epoch with that version"
    ):
        loader_of(data).load_state_dict({**state, "changes": changes}, changes="accept")


@pytest.mark.parametrize("kind", ["crossing", "counted while read", "indexed"])
def test_totals_of_steps_count_what_they_have(tmp_path, kind):
    data = Data(tmp_path / "data")
    data.add("b", 300)

    def loader(**sizes):
        made = loader_of(data, kind, **sizes)
        return sf.Loader(
            data.folder, batch=made.pipeline.recipe.batch, shuffle=True, window=700, threads=0, steps_of=4,
            totals={"rows": "id >= 0"}, index=data.folder.with_suffix(".index") if kind == "indexed" else None,
        )  # fmt: skip

    planned = [(batch["id"].tolist(), int(batch["step.rows"])) for batch in loader()]
    state, _ = state_behind(loader(), 5)
    data.add("a", 60)
    resumed = loader()
    resumed.load_state_dict(state, changes="accept")
    assert [(batch["id"].tolist(), int(batch["step.rows"])) for batch in resumed] == planned[5:]


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize(
    ("kind", "pool"),
    [("crossing", 0), ("crossing", 2), ("counted while read", 0), ("indexed", 0), ("indexed", 2)],
)
@pytest.mark.parametrize("before", [1, 7, 20])
def test_an_epoch_of_a_mix_ends_with_the_files_of_its_state(tmp_path, kind, before, pool):
    data, other = Data(tmp_path / "data"), Data(tmp_path / "other")
    data.add("b", 300)
    other.add("b", 40)

    def mix():
        loaders = {name: loader_of(of, kind, pool=pool) for name, of in (("data", data), ("other", other))}
        for loader in loaders.values() if kind == "indexed" else ():
            len(loader)  # makes the index, unless there is one
        return sf.Mix(loaders, weights={"data": 1.0, "other": 0.5}, stop="all")

    def of_data(batches):
        return ids_of(batch for batch in batches if batch.sources == ("data",))

    first = mix()
    iterator = iter(first)
    found = of_data(next(iterator) for _ in range(before))
    state = json.loads(json.dumps(first.state_dict()))
    iterator.close()
    data.add("a", 60)
    if kind == "indexed":
        loader_of(data, kind).lengths_index(update=True)
    with pytest.raises(
        sf.OpError, match=r'source 0: the data(.|\n)*a\.parquet is new(.|\n)*changes="accept"'
    ):
        mix().load_state_dict(state)
    resumed = mix()
    resumed.load_state_dict(state, changes="accept")
    rest = iter(resumed)
    found += of_data([next(rest)])
    again = mix()
    again.load_state_dict(json.loads(json.dumps(resumed.state_dict())), changes="accept")
    assert sorted(found + of_data(again)) == list(range(300))
    assert sorted({*of_data(again)}) == list(range(360))  # the next epoch
