"""Files added in the middle of an epoch: each row comes exactly once."""

import json
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
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_runs_that_are_killed_see_each_row_once_though_files_were_added(tmp_path, kind, seed):
    drawn = random.Random(seed)
    data = Data(tmp_path / "data")
    for number in range(3):
        data.add(f"m{number}", drawn.randint(50, 150))
    shuffle, state, found = drawn.choice([True, None]), None, []
    for life in range(4):
        world_size = drawn.choice([1, 2, 3])
        loaders = [
            loader_of(data, kind, shuffle=shuffle, rank=rank, world_size=world_size)
            for rank in range(world_size)
        ]
        for loader in loaders if state else ():
            loader.load_state_dict(state, changes="accept")
        runs = [iter(loader) for loader in loaders]
        for _ in range(drawn.randint(0, 5) if life < 3 else 10**6):
            step = [next(run, None) for run in runs]
            if step[0] is None:
                break
            found += ids_of(step)
        state = json.loads(json.dumps(drawn.choice(loaders).state_dict()))
        for run in runs:
            run.close()
        if life < 3:
            data.add(f"{drawn.choice('amz')}{life}new", drawn.randint(1, 90))
    assert sorted(found) == list(range(data.rows))


def test_the_sequence_is_a_function_of_the_changes(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    state, _ = state_behind(loader_of(data), 5)
    data.add("a", 60)
    resumed = loader_of(data)
    resumed.load_state_dict(state, changes="accept")
    later, first = state_behind(resumed, 4)
    whole, again = loader_of(data), loader_of(data)
    whole.load_state_dict(state, changes="accept")
    again.load_state_dict(later)
    assert first + ids_of(again) == ids_of(whole)


def test_windows_that_were_begun_go_on_as_they_were_planned(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    before = [batch["id"].tolist() for batch in loader_of(data, window=1 << 20)]
    state, _ = state_behind(loader_of(data, window=1 << 20), 5)
    data.add("a", 60)
    resumed = loader_of(data, window=1 << 20)
    resumed.load_state_dict(state, changes="accept")
    rest = [batch["id"].tolist() for batch in resumed]
    assert rest[: len(before) - 5] == before[5:]
    assert {one for batch in rest[len(before) - 5 :] for one in batch} == set(range(200, 260))


def test_the_state_says_what_changed_when(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    state, _ = state_behind(loader_of(data), 5)
    data.add("a", 60)
    resumed = loader_of(data)
    resumed.load_state_dict(state, changes="accept")
    (change,) = resumed.state_dict()["changes"]
    assert (change["epoch"], change["batch"], change["added"]) == (0, 5, ["a.parquet"])
    assert "changes" not in state


def test_added_files_are_refused_unless_changes_are_accepted(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    state, _ = state_behind(loader_of(data), 5)
    data.add("a", 60)
    with pytest.raises(sf.OpError, match=r'a\.parquet is new(.|\n)*changes="accept"'):
        loader_of(data).load_state_dict(state)


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


def test_a_state_in_which_sizes_changed_says_how_to_go_on(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    state, _ = state_behind(loader_of(data), 5)
    change = {"epoch": 0, "batch": 5, "begun": [1], "added": [], "was": {"window": 1500}}
    with pytest.raises(sf.OpError, match="changed their size in the middle of the epoch"):
        loader_of(data).load_state_dict({**state, "changes": [change]})


@pytest.mark.parametrize("fields", [{"begun": []}, {"added": [1]}, {"epoch": -1}])
def test_damaged_parts_of_changes_are_named(tmp_path, fields):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    state, _ = state_behind(loader_of(data), 5)
    change = {"epoch": 0, "batch": 5, "begun": [1], "added": []}
    with pytest.raises(sf.OpError, match="the changes of the state are damaged"):
        loader_of(data).load_state_dict({**state, "changes": [{**change, **fields}]})


@pytest.mark.parametrize(
    "changes", [1, [1], [{"epoch": 0}], [{"epoch": -1, "batch": 0, "begun": [], "added": []}]]
)
def test_damaged_changes_are_named(tmp_path, changes):
    data = Data(tmp_path / "data")
    data.add("b", 200)
    state, _ = state_behind(loader_of(data), 5)
    with pytest.raises(sf.OpError, match="the changes of the state are damaged"):
        loader_of(data).load_state_dict({**state, "changes": changes})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["crossing", "crossing streams", "indexed", "indexed streams"])
@pytest.mark.parametrize("pool", [1, 3])
@pytest.mark.parametrize("before", range(1, 20, 3))
def test_steps_that_exchange_rows_end_before_a_change(tmp_path, kind, pool, before):
    data = Data(tmp_path / "data")
    data.add("b", 600)
    first = loader_of(data, kind, pool=pool)
    planned = [batch["id"].tolist() for batch in first]
    first = loader_of(data, kind, pool=pool)
    state, found = state_behind(first, before)
    data.add("a", 60)
    resumed = loader_of(data, kind, pool=pool)
    resumed.load_state_dict(state, changes="accept")
    (change,) = resumed.state_dict()["changes"]
    assert change["batch"] == -(-before // (4 * pool)) * 4 * pool
    rest = [batch["id"].tolist() for batch in resumed]
    assert rest[: change["batch"] - before] == planned[before : change["batch"]]
    assert sorted([*found, *(one for batch in rest for one in batch)]) == list(range(660))


def test_a_change_needs_steps_that_end(tmp_path):
    data = Data(tmp_path / "data")
    data.add("b", 40)
    state, _ = state_behind(loader_of(data, "crossing", pool=3), 5)
    window, _ = state_behind(loader_of(data, "crossing", pool="window"), 5)
    data.add("a", 60)
    with pytest.raises(sf.OpError, match="batch 5 is in the last pool of steps of its epoch"):
        loader_of(data, "crossing", pool=3).load_state_dict(state, changes="accept")
    with pytest.raises(sf.OpError, match="all steps of a window exchange rows"):
        loader_of(data, "crossing", pool="window").load_state_dict(window, changes="accept")


@pytest.mark.parametrize("kind", ["crossing", "counted while read", "indexed"])
def test_totals_of_steps_behind_a_change_count_what_they_have(tmp_path, kind):
    data = Data(tmp_path / "data")
    data.add("b", 300)

    def loader(**sizes):
        made = loader_of(data, kind, **sizes)
        return sf.Loader(
            data.folder, batch=made.pipeline.recipe.batch, shuffle=True, window=700, threads=0, steps_of=4,
            totals={"rows": "id >= 0"}, index=data.folder.with_suffix(".index") if kind == "indexed" else None,
        )  # fmt: skip

    list(loader())  # makes the index
    state, found = state_behind(loader(), 5)
    data.add("a", 60)
    resumed = loader()
    if kind == "counted while read":
        with pytest.raises(sf.OpError, match="that is not known"):
            resumed.load_state_dict(state, changes="accept")
        return
    resumed.load_state_dict(state, changes="accept")
    batches = list(resumed)
    assert sorted([*found, *ids_of(batches)]) == list(range(360))
    for step in range(2, max(batch.step for batch in batches)):
        of_step = [batch for batch in batches if batch.step == step]
        assert {int(batch["step.rows"]) for batch in of_step} == {sum(len(batch["id"]) for batch in of_step)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "pool"),
    [("crossing", 0), ("crossing", 2), ("counted while read", 0), ("indexed", 0), ("indexed", 2)],
)
@pytest.mark.parametrize("before", [1, 7, 20])
def test_a_mix_takes_files_that_were_added(tmp_path, kind, before, pool):
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
    again.load_state_dict(json.loads(json.dumps(resumed.state_dict())))
    assert sorted(found + of_data(again)) == list(range(360))
