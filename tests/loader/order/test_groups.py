"""Rows shuffled in groups: the rows of one key in one block stay together, and groups come in random order."""

import json
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_jobs import write_dying_job, written_though_killed

import seqflow as sf
from seqflow.errors import OpTypeError
from seqflow.job import Job, run

BY = sf.Shuffle(7, by="session")
KEYS = {
    "numbers": pa.array([3, 1, None, 1], pa.int32()),
    "texts": pa.array(["a", "", None, ""]),
    "floats": pa.array([float("nan"), 0.5, None, 0.5]),
    "times": pa.array([1, 2, None, 2], pa.timestamp("us")),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2], pa.int8()), pa.array(["a", "b", "b"])),
    "bools": pa.array([True, False, None, False]),
}  # fmt: skip


def write(folder, seed=0, rows=120, each=15, files=3):
    """Files with rows of a few sessions, in blocks of `each`; ids count all rows."""
    rng = np.random.default_rng(seed)
    sessions = rng.integers(0, 5, rows).astype(object)
    sessions[sessions == 4] = None
    table = pa.table({
        "id": np.arange(rows),
        "session": pa.array(sessions, pa.int64()),
        "tokens": [np.full(n, i) for i, n in enumerate(rng.integers(0, 9, rows))],
    })  # fmt: skip
    size = -(-rows // files)
    for number in range(files):
        pq.write_table(table.slice(size * number, size), folder / f"{number}.parquet", row_group_size=each)
    return table


def groups_of(table, each, files):
    """The group of each row, by its number: block and key."""
    size = -(-len(table) // files)
    keys = table["session"].to_pylist()
    return [(i // size, i % size // each, key) for i, key in enumerate(keys)]


def ids(batches):
    return [batch["id"].tolist() for batch in batches]


def options(folder, **more):
    return {"source": str(folder / "*.parquet"), "shuffle": BY, "valid": ["session"], "batch": 7} | more


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("clicks")
    write(path)
    return path


@given(
    seed=st.integers(0, 9), window=st.sampled_from([4_000, 8_000, 1 << 20]), each=st.sampled_from([4, 15]),
    batch=st.sampled_from([sf.Rows(7), sf.TokenBudget(40, lengths="tokens")]),
    keep=st.sampled_from([None, "id % 3 != 1"]), prepare=st.sampled_from([None, "x = id * 1\nreturn x, id, tokens.values, tokens.lengths"]),
)  # fmt: skip
@settings(max_examples=20)
def test_rows_of_a_group_follow_each_other(tmp_path_factory, seed, window, each, batch, keep, prepare):
    folder = tmp_path_factory.mktemp("drawn")
    table = write(folder, seed, each=each)
    groups = groups_of(table, each, 3)
    more = {"batch": batch, "window": window, "keep": keep, "prepare": prepare, "threads": 0}
    loader = sf.Loader(**options(folder, **more))
    orders = []
    for _ in range(2):
        rows = [row for batch in ids(loader) for row in batch]
        assert sorted(rows) == [i for i in range(len(table)) if keep is None or i % 3 != 1]
        runs = [[*run] for _, run in groupby(rows, key=groups.__getitem__)]
        assert len(runs) == len({groups[row] for row in rows})  # each group is one run
        assert all(run == sorted(run) for run in runs)
        orders.append([groups[run[0]] for run in runs])
    assert orders[0] != orders[1]


def test_each_group_is_as_often_the_first_as_others(tmp_path):
    sessions = [1, 1, 1, 1, 2, None, 3, 3]
    pq.write_table(pa.table({"id": range(8), "session": sessions}), tmp_path / "a.parquet")
    loader = sf.Loader(tmp_path / "a.parquet", batch=8, shuffle=BY, valid=True)
    firsts = [sessions[ids(loader)[0][0]] for _ in range(400)]
    counts = [firsts.count(key) for key in (1, 2, 3, None)]
    assert sum(counts) == 400
    assert min(counts) > 70


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_any_type_and_null_make_groups(kind):
    keys = pa.chunked_array([KEYS[kind], KEYS[kind].slice(0, 3)])
    table = pa.table({"id": range(7), "session": keys})
    for seed in range(5):
        loader = sf.Loader(
            table.combine_chunks(), batch=7, shuffle=sf.Shuffle(seed, by="session"), columns=["id", "session"],
            net="return id",
        )  # fmt: skip
        (rows,) = ids(loader)
        same = [[0, 4], [1, 3, 5], [2, 6]]
        assert sorted(rows[rows.index(group[0]) :][: len(group)] == group for group in same) == [True] * 3


def test_a_key_inside_of_a_struct(tmp_path):
    users = pa.array([{"name": "a"}, {"name": "b"}, None, {"name": "a"}], pa.struct({"name": pa.string()}))
    table = pa.table({"id": range(4), "user": users})
    (rows,) = ids(sf.Loader(table, batch=4, shuffle=sf.Shuffle(1, by="user.name"), net="return id"))
    assert rows.index(3) == rows.index(0) + 1


@pytest.mark.parametrize("batch", [sf.Rows(7), sf.TokenBudget(30, lengths="tokens")], ids=["rows", "tokens"])
@pytest.mark.parametrize("window", [2_000, 1 << 20])
def test_ranks_resume_and_batch_at(folder, batch, window):
    more = {"batch": batch, "window": window, "threads": 0}
    alone = ids(sf.Loader(**options(folder, **more)))
    for world_size in range(1, 5):
        ranks = [
            sf.Loader(**options(folder, **more), rank=r, world_size=world_size, tail="pad")
            for r in range(world_size)
        ]
        found = [batch for step in zip(*map(ids, ranks), strict=True) for batch in step]
        assert found[: len(alone)] == alone
        assert not any(found[len(alone) :])
    loader = sf.Loader(**options(folder, **more))
    for number in (0, 3, len(alone) - 1):
        assert loader.batch_at(number)["id"].tolist() == alone[number]
    for steps in (1, 5):
        loader = sf.Loader(**options(folder, **more))
        for _ in zip(range(steps), loader, strict=False):
            pass
        state = json.loads(json.dumps(loader.state_dict()))
        again = sf.Loader(**options(folder, **more))
        again.load_state_dict(state)
        assert ids(again) == alone[steps:]


def test_traces_name_the_rows(folder):
    loader = sf.Loader(**options(folder, window=2_000))
    for number, batch in enumerate(ids(loader)):
        for place, found in zip(loader.trace(number), batch, strict=True):
            assert pq.ParquetFile(place.file).read_row_group(place.block)["id"][place.row].as_py() == found


@pytest.mark.parametrize("keep", [None, "id % 3 != 1"])
def test_an_index_has_the_groups(folder, tmp_path, keep):
    more = {
        "batch": sf.TokenBudget(30, lengths="tokens"),
        "window": 2_000,
        "index": tmp_path / "i.arrow",
        "keep": keep,
    }
    loader = sf.Loader(**options(folder, **more))
    for _ in range(3):
        assert len(loader) == len([*loader])
    index = pa.ipc.open_file(tmp_path / "i.arrow").read_all()
    assert index.schema.names == ["file", "block", "start", "rows", "lengths", "groups"]
    alone = ids(sf.Loader(**options(folder, **more), streams=2))
    ranks = [ids(sf.Loader(**options(folder, **more), streams=2, rank=r, world_size=2)) for r in range(2)]
    assert [batch for step in zip(*ranks, strict=True) for batch in step] == alone[: len(alone) // 2 * 2]
    loader.lengths_index(update=True)
    with pytest.raises(sf.OpError, match="is stale"):
        len(sf.Loader(**options(folder, **more | {"shuffle": True})))


@pytest.mark.parametrize("engine", ["", "part_bytes = 2000\n[engine]\nworkers = 2"], ids=["alone", "workers"])
def test_a_job_writes_groups(folder, tmp_path, engine):
    text = f"""
        [source]
        paths = "{folder}/*.parquet"
        valid = ["session"]
        [order]
        shuffle = true
        seed = 7
        by = "session"
        window = 2000
        [batch]
        kind = "rows"
        n = 7
        [net]
        net = "return id"
        [output]
        path = "{tmp_path / "out"}"
        {engine}
    """
    (tmp_path / "job.toml").write_text("\n".join(line.strip() for line in text.splitlines()))
    run(Job.read(tmp_path / "job.toml"))
    expected = [row for batch in ids(sf.Loader(**options(folder, window=2_000))) for row in batch]
    assert pq.read_table(tmp_path / "out")["id"].to_pylist() == expected


@pytest.mark.slow
def test_a_killed_job_writes_the_same_groups(tmp_path):
    table = write(tmp_path)
    write_dying_job(
        tmp_path,
        '[source]\npaths = "?.parquet"\nvalid = ["session"]',
        row="id",
        lists="tokens",
        window="2 kB",
    )
    job = tmp_path / "job.toml"
    job.write_text(
        job.read_text().replace("shuffle = true", 'shuffle = true\nby = "session"').replace("n = 16", "n = 4")
    )
    rows = written_though_killed(tmp_path)
    assert sorted(rows) == list(range(len(table)))
    groups = groups_of(table, 15, 3)
    assert len([*groupby(rows, key=groups.__getitem__)]) == len(set(groups))


def test_bad_rows_leave_their_groups():
    table = pa.table({"id": [0, None, 2, 3, 4], "session": ["a", "b", "b", "a", "b"]})
    (rows,) = ids(sf.Loader(table, batch=5, shuffle=BY, bad_rows="skip"))
    assert rows in ([0, 3, 2, 4], [2, 4, 0, 3])


def test_a_state_belongs_to_its_groups(folder):
    loader = sf.Loader(**options(folder))
    next(iter(loader))
    other = sf.Loader(**options(folder, shuffle=sf.Shuffle(7)))
    with pytest.raises(sf.OpError, match=r"by was 'session', and is not there now|by"):
        other.load_state_dict(loader.state_dict())


@pytest.mark.parametrize("batch", [
    sf.Packed(8, ("tokens",)), sf.Packed(8, ("tokens",), strategy="concat"), sf.Buckets(2, sf.Rows(4)),
    sf.TokenBudget(8, strategy="best_fit"),
])  # fmt: skip
def test_plans_that_reorder_rows_are_refused(folder, batch):
    expected = r"^Shuffle: by is 'session', and \w+ puts rows in an order of its own, which parts the rows of a group\n"
    with pytest.raises(sf.OpError, match=expected):
        sf.Loader(**options(folder, batch=batch))


def test_a_balance_is_refused(folder):
    with pytest.raises(
        sf.OpError, match=r"^Shuffle: by is 'session', and a balance deals the rows of a group"
    ):
        sf.Loader(
            **options(folder, batch=sf.Rows(4, lengths="tokens", balance=sf.Balance(group=2, linear=1)))
        )


def test_columns_that_are_no_keys_are_refused(folder):
    for by, expected in (
        ("sesion", "which is not a column that is read .did you mean 'session'.*; there are id, session"),
        ("tokens", "which has no single number, text or time in each row; there are id, session"),
        ("tokens.values", "which is not a column"),
    ):
        with pytest.raises(sf.OpError, match=rf"^Shuffle: by is '{by}', {expected}"):
            sf.Loader(**options(folder, shuffle=sf.Shuffle(1, by=by)))
    with pytest.raises(sf.OpError, match=r"'session', which is not a column that is read; there are id"):
        sf.Loader(**options(folder, columns=["id"], valid=False))
    with pytest.raises(OpTypeError, match=r"by is 3"):
        sf.Shuffle(1, by=3)


@pytest.mark.parametrize(
    "prepare",
    ["x, _ = boolean_mask(id, id > 5)\nreturn x", lambda record: {"id": record["id"][:3]}],
    ids=["net", "function"],
)
def test_prepare_must_keep_rows(folder, prepare):
    with pytest.raises(
        sf.OpError, match=r"Shuffle: by is 'session', and prepare made \d+ rows of 15, expected the same"
    ):
        ids(sf.Loader(**options(folder, prepare=prepare)))
