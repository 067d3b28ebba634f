"""Columns that rows of a batch share: each of equal lists once, with the index of each row."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_jobs import write_dying_job, written_though_killed

import seqflow as sf
from seqflow import ops
from seqflow.errors import BatchPlanError, OpTypeError, ProviderError, UnknownColumnError
from seqflow.job import Job, run

INTS = pa.list_(pa.int32())


def clicks(seed=0, rows=200, sessions=30):
    """Rows of sessions that each have one history, and the times of its items; some histories are equal."""
    rng = np.random.default_rng(seed)
    histories = [rng.integers(0, 3, rng.integers(0, 3)) for _ in range(sessions)]
    session = np.sort(rng.integers(0, sessions, rows))
    return pa.table({
        "id": np.arange(rows),
        "session": session,
        "name": [f"s{one}" for one in session],
        "history": pa.array([histories[one] for one in session], INTS),
        "times": pa.array([histories[one] * 0.5 for one in session], pa.list_(pa.float64())),
    })  # fmt: skip


def whole(batch, column):
    """The lists of a column for each row."""
    values, lengths = ops.gather_sequences(
        batch[f"{column}.values"], batch["history.row"], batch[f"{column}.lengths"]
    )
    return [one.tolist() for one in np.split(values, np.cumsum(lengths)[:-1])][: len(lengths)]


def oracle(table, rows, columns, key):
    """For some rows, the lists by content and key in order of first appearance, and the index of each row."""
    lists = [tuple(tuple(table[name][row].as_py()) for name in columns) for row in rows]
    kinds = [
        (one, None if key is None else table[key][row].as_py()) for one, row in zip(lists, rows, strict=True)
    ]
    distinct = list(dict.fromkeys(kinds))
    return [one for one, _ in distinct], [distinct.index(one) for one in kinds]


@given(
    seed=st.integers(0, 99), key=st.sampled_from([None, "session", "name"]), several=st.booleans(),
    shuffle=st.sampled_from([None, sf.Shuffle(2), sf.Shuffle(2, by="session")]), window=st.sampled_from([2_000, 1 << 20]),
    batch=st.sampled_from([sf.Rows(16, lengths="history"), sf.TokenBudget(20, lengths="history")]),
    keep=st.sampled_from([None, "id % 3 != 1"]),
)  # fmt: skip
@settings(max_examples=24)
def test_each_batch_has_each_list_once(tmp_path_factory, seed, key, several, shuffle, window, batch, keep):
    table, path = clicks(seed), tmp_path_factory.mktemp("clicks") / "a.parquet"
    pq.write_table(table, path, row_group_size=40)
    columns = ("history", "times") if several else ("history",)
    options = {"batch": batch, "shuffle": shuffle, "window": window, "keep": keep, "threads": 0}
    loader = sf.Loader(path, **options, share={columns if several else "history": key})
    plain = [*sf.Loader(path, **options)]
    found = [*loader]
    assert len(found) == len(plain)
    for one, other in zip(found, plain, strict=True):
        rows = one["id"].tolist()
        assert rows == other["id"].tolist()
        lists, index = oracle(table, rows, columns, key)
        assert one["history.row"].dtype == np.int64
        assert one["history.row"].tolist() == index
        for at, name in enumerate(columns):
            assert one[f"{name}.lengths"].tolist() == [len(of[at]) for of in lists]
            assert one[f"{name}.values"].tolist() == [element for of in lists for element in of[at]]
            assert one[f"{name}.values"].dtype == other[f"{name}.values"].dtype
        assert one.num_rows == len(rows)
    assert loader.stats().rows == sum(one.num_rows for one in plain)


def test_ranks_resume_and_batch_at(tmp_path):
    pq.write_table(clicks(), tmp_path / "a.parquet", row_group_size=40)
    options = {
        "batch": 16, "shuffle": sf.Shuffle(1, by="session"), "share": {"history": "session"}, "threads": 0, "window": 3_000
    }  # fmt: skip
    names = ["id", "history.values", "history.lengths", "history.row"]

    def shown(batches):
        return [[batch[name].tolist() for name in names] for batch in batches]

    alone = shown(sf.Loader(tmp_path / "a.parquet", **options))
    for world_size in (2, 3):
        ranks = [
            shown(sf.Loader(tmp_path / "a.parquet", **options, rank=r, world_size=world_size, tail="pad"))
            for r in range(world_size)
        ]
        found = [batch for step in zip(*ranks, strict=True) for batch in step]
        assert found[: len(alone)] == alone
        assert not any(any(batch) for batch in found[len(alone) :])
    loader = sf.Loader(tmp_path / "a.parquet", **options)
    assert shown([loader.batch_at(5)]) == [alone[5]]
    for _ in zip(range(4), loader, strict=False):
        pass
    again = sf.Loader(tmp_path / "a.parquet", **options)
    again.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert shown(again) == alone[4:]
    other = sf.Loader(tmp_path / "a.parquet", **options | {"share": {"history": None}})
    with pytest.raises(sf.OpError, match="share"):
        other.load_state_dict(loader.state_dict())


POOLED = "p = sparse_lengths_sum(table, history.values, history.lengths)\n"


def test_nets_get_the_shared_lists():
    table = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    options = {"batch": 32, "constants": {"table": table}}
    plain = sf.Loader(clicks(), **options, net=POOLED + "y = p + 0\nreturn y, id")
    once = sf.Loader(
        clicks(),
        **options,
        net=POOLED + "y = gather(p, history.row) + 0\nreturn y, id",
        share={"history": "session"},
    )
    for one, other in zip(once, plain, strict=True):
        np.testing.assert_array_equal(one["y"], other["y"])
        assert one.num_rows == other.num_rows
        assert not one.shares
    assert str(once.spec["y"].shape) == "{batch,4}"
    lists = sf.Loader(
        clicks(), **options, net=POOLED + "return p, history.row, id", share={"history": "session"}
    )
    assert str(lists.spec["p"].shape) == "{history.lengths.shape[0]:0..32,4}"
    assert (
        lists.spec["history.row"].points == lists.spec["p"].rows
        or str(lists.spec["history.row"].points) == "history.row"
    )
    assert next(iter(lists)).num_rows == 32
    for wrong in ("at = first_of_equal([id])\ny = gather(p, at)", "y = p + id"):
        bad = sf.Loader(clicks(), **options, net=f"{POOLED}{wrong}\nreturn y", share={"history": "session"})
        with pytest.raises(sf.LodError):
            next(iter(bad))


def test_a_function_gets_the_shared_lists():
    seen = []
    loader = sf.Loader(
        clicks(), batch=64, share={"history": None}, net=lambda record: seen.append(record) or record
    )
    next(iter(loader))
    assert len(seen[0]["history.lengths"]) < 64 == len(seen[0]["history.row"])


def test_a_row_that_differs_is_a_bad_row():
    table = pa.table(
        {"session": [1, 1, 2, 1, 2], "history": pa.array([[5], [5], [], [6], []], INTS), "id": range(5)}
    )
    with pytest.raises(
        ProviderError, match=r"row 3, column 'history': differs from that of an earlier row with the same"
    ):
        [*sf.Loader(table, batch=8, share={"history": "session"})]
    loader = sf.Loader(table, batch=2, share={"history": "session"}, bad_rows="skip")
    assert [batch["id"].tolist() for batch in loader] == [[0, 1], [2, 4]]
    assert loader.stats().bad_rows == 1
    # the later one in the order of the window
    shuffled = [
        sf.Loader(table, batch=8, share={"history": "session"}, bad_rows="skip", shuffle=sf.Shuffle(s))
        for s in range(9)
    ]
    kept = {tuple(sorted(batch["id"].tolist())) for loader in shuffled for batch in loader}
    assert kept == {(0, 1, 2, 4), (2, 3, 4)}


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("keys", [[0, None, 1, None, 0], ["", None, "b", None, ""]])
def test_a_row_with_a_null_key_is_a_bad_row(keys, coded):
    session = pa.array(keys).dictionary_encode() if coded else pa.array(keys)
    history = pa.array([[5], [7], [6], [8], [5]], INTS)
    table = pa.table({"session": session, "history": history, "id": range(5)})
    options = {"batch": 8, "share": {"history": "session"}}
    with pytest.raises(ProviderError, match="row 1, column 'session': null value"):
        list(sf.Loader(table, **options))
    with pytest.raises(
        ProviderError, match="row 1, column 'session': is null, and rows with a key share lists"
    ):
        list(sf.Loader(table, **options, valid=["session"]))
    (batch,) = sf.Loader(table, **options, valid=["session"], bad_rows="skip")
    assert batch["id"].tolist() == [0, 2, 4]
    assert batch["history.row"].tolist() == [0, 1, 0]


def test_rows_of_two_windows_are_never_merged_when_they_differ(tmp_path):
    """A batch across the end of a window; each window is judged alone."""
    lists = pa.array([[5], [5], [6], [6]], INTS)
    pq.write_table(
        pa.table({"session": [1, 1, 1, 1], "history": lists}), tmp_path / "a.parquet", row_group_size=2
    )
    (batch,) = sf.Loader(tmp_path / "a.parquet", batch=4, window=1, share={"history": "session"})
    assert batch["history.row"].tolist() == [0, 0, 1, 1]
    assert batch["history.values"].tolist() == [5, 6]


def test_nulls_are_shared_along():
    lists = pa.array([None, [], None, [1], []], INTS)
    table = pa.table({"history": lists, "session": [1, 2, None, None, 2]})
    (batch,) = sf.Loader(table, batch=8, share={"history": None}, valid=True)
    assert batch["history.row"].tolist() == [0, 1, 0, 2, 1]
    assert batch["history.valid"].tolist() == [False, True, True]
    assert sf.to_arrow(batch)["history"].to_pylist() == [None, [], None, [1], []]


def test_a_dictionary_of_lists_is_compacted_to_the_batch():
    lists = pa.array([[1, 2], [], [3], [1, 2]], INTS)
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2, 1, 0, 3], pa.int32()), lists)
    table = pa.table({"history": column, "session": [7, 8, 7, 9, 8, 8]})
    (codes,) = sf.Loader(table, batch=8)
    assert codes["history"].tolist() == [2, 0, 2, 1, 0, 3]
    (batch,) = sf.Loader(table, batch=8, share={"history": None})
    assert batch["history.row"].tolist() == [0, 1, 0, 2, 1, 3]
    assert batch["history.values"].tolist() == [3, 1, 2, 1, 2]
    assert not batch.dictionaries
    (batch,) = sf.Loader(table, batch=8, share={"history": "session"})  # its lists of session 8 are equal
    assert ops.gather_sequences(batch["history.values"], batch["history.row"], batch["history.lengths"]).values.tolist() == [
        3, 1, 2, 3, 1, 2, 1, 2,
    ]  # fmt: skip
    wrong = table.set_column(1, "session", pa.array([7, 8, 8, 9, 8, 8]))
    with pytest.raises(ProviderError, match="row 2, column 'history': differs"):
        [*sf.Loader(wrong, batch=8, share={"history": "session"})]


@pytest.mark.parametrize("alike", [True, False])
def test_files_with_dictionaries(tmp_path, alike):
    for number, lists in enumerate(([[1], [2, 3]], [[1], [2, 3]] if alike else [[4], [2, 3]])):
        column = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), pa.array(lists, INTS))
        table = pa.table({"history": column, "id": [3 * number, 3 * number + 1, 3 * number + 2]})
        with pa.ipc.new_file(tmp_path / f"{number}.arrow", table.schema) as file:
            file.write_table(table)
    loader = sf.Loader(str(tmp_path / "*.arrow"), batch=8, share={"history": None})
    if not alike:
        with pytest.raises(
            ProviderError, match=r"^column 'history' has dictionaries of list.* that differ from block"
        ):
            next(iter(loader))
        return
    (batch,) = loader
    assert batch["history.row"].tolist() == [0, 1, 0, 0, 1, 0]
    assert batch["history.values"].tolist() == [2, 3, 1]


JOB = """
[source]
paths = "*.parquet"
[order]
shuffle = true
by = "session"
window = 3000
[batch]
kind = "rows"
n = 16
[net]
net = "{net}"
[output]
path = "{out}"
kind = "{kind}"
part_bytes = 3000
"""
NET = r"p = lengths_sum(history.values, history.lengths)\ny = {y}\nreturn id, history.values, history.lengths{row}, times.values, times.lengths, y"


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_job_writes_plain_lists(tmp_path, kind, workers):
    pq.write_table(clicks(), tmp_path / "a.parquet", row_group_size=40)
    found = []
    for name, net, share in (
        ("plain", NET.format(y="p + 0", row=""), ""),
        (
            "once",
            NET.format(y="gather(p, history.row)", row=", history.row"),
            'share = {history = "session"}\n',
        ),
    ):
        text = (
            share
            + JOB.format(net=net, out=name, kind=kind)
            + f"[engine]\nworkers = {workers}\n" * bool(workers and share)
        )
        (tmp_path / f"{name}.toml").write_text(text)
        run(Job.read(tmp_path / f"{name}.toml"))
        found.append(written(tmp_path / name))
    assert found[0].schema.field("history").type == found[1].schema.field("history").type
    assert sorted(found[1]["id"].to_pylist()) == list(range(200))
    for name in ("id", "history", "times", "y"):
        assert found[0][name].equals(found[1][name])


def written(folder):
    paths = sorted(path for path in folder.iterdir() if path.suffix in (".parquet", ".arrow"))
    tables = [
        pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
        for path in paths
    ]
    return pa.concat_tables(tables).combine_chunks()


def test_the_check_of_a_job_knows_the_shared_lists(tmp_path):
    pq.write_table(clicks(), tmp_path / "a.parquet", row_group_size=40)
    net = NET.format(y="gather(p, history.row)", row=", history.row")
    (tmp_path / "job.toml").write_text(
        'share = {history = "session"}\n' + JOB.format(net=net, out="o", kind="parquet")
    )
    checked = seqflow("check", "job.toml", folder=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "history.lengths  int64{history.lengths.shape[0]:0..16}" in checked.stdout
    (tmp_path / "job.toml").write_text('share = {history = "session"}\n' + JOB.format(
        net=NET.format(y="p + id", row=""), out="o", kind="parquet",
    ))  # fmt: skip
    assert "holds the rows of" in seqflow("check", "job.toml", folder=tmp_path).stderr


def test_keys_of_a_job_are_checked(tmp_path):
    for share, message in (
        (
            "{history = false}",
            r"job.toml, line 1: share.history is false, expected the name of a column, or true",
        ),
        ("{history = 3}", "share"),
        (
            '{history = "session", "times, history" = true}',
            "job.toml, line 1: share: 'history' is named twice",
        ),
    ):
        (tmp_path / "job.toml").write_text(f"share = {share}\n[source]\npaths = 'a.parquet'\n")
        with pytest.raises(sf.JobError, match=message):
            Job.read(tmp_path / "job.toml")


def test_rows_that_net_refuses_leave_the_shared_lists():
    net = "p = lengths_sum(history.values, history.lengths)\ny = gather(p, where(id == 3, 99, history.row))\nreturn y, id"
    loader = sf.Loader(clicks(), batch=16, share={"history": "session"}, net=net, bad_rows="skip")
    net = "y = lengths_sum(history.values, history.lengths)\nreturn y, id"
    plain = sf.Loader(clicks(), batch=16, net=net, keep="id != 3")
    found, expected = (
        {i: y for batch in one for i, y in zip(batch["id"].tolist(), batch["y"].tolist(), strict=True)}
        for one in (loader, plain)
    )
    assert found == expected
    assert loader.stats().bad_rows == 1


def test_texts_are_shared_too():
    table = pa.table({"prompt": ["one", "two", "one"], "id": [0, 1, 2]})
    (batch,) = sf.Loader(table, batch=3, share={"prompt": None})
    assert batch["prompt.row"].tolist() == [0, 1, 0]
    assert bytes(batch["prompt.values"]) == b"onetwo"


def test_arrow_has_a_dictionary_of_lists():
    table = clicks()
    for batch in sf.Loader(table, batch=64, share={("history", "times"): "session"}):
        arrow = sf.to_arrow(batch)
        assert arrow.schema.names == ["id", "session", "name", "history", "times"]
        assert pa.types.is_dictionary(arrow.schema.field("history").type)
        assert arrow.schema.field("history").type.value_type == INTS
        assert len(arrow["history"].dictionary) == len(batch["history.lengths"])
        rows = table.take(batch["id"])
        for name in arrow.schema.names:
            assert arrow[name].to_pylist() == rows[name].to_pylist()


def test_a_mix_shares_inside_each_source():
    sources = {"a": clicks(1), "b": clicks(2)}
    options = {"weights": {"a": 1, "b": 1}, "batch": 32, "seed": 3}
    mix, plain = sf.Mix(sources, **options, share={"history": "session"}), sf.Mix(sources, **options)
    for one, other in zip(mix, plain, strict=True):
        assert one["id"].tolist() == other["id"].tolist()
        values, lengths = ops.gather_sequences(
            one["history.values"], one["history.row"], one["history.lengths"]
        )
        np.testing.assert_array_equal(values, other["history.values"])
        np.testing.assert_array_equal(lengths, other["history.lengths"])
        assert len(one["history.lengths"]) <= len(other["history.lengths"])
        assert sf.to_arrow(one)["history"].to_pylist() == sf.to_arrow(other)["history"].to_pylist()


def test_totals_count_rows():
    batches = zip(
        sf.Loader(clicks(), batch=32, share={"history": "session"}, totals={"n": "history.values >= 0"}),
        sf.Loader(clicks(), batch=32, totals={"n": "history.values >= 0"}), strict=True,
    )  # fmt: skip
    for one, other in batches:
        assert one["step.n"] == other["step.n"]
        assert one.shares == {"history.lengths": "history.row"}


@pytest.mark.parametrize(
    ("share", "more", "error", "message"),
    [
        ({"histroy": None}, {}, UnknownColumnError, r"^share: 'histroy' is not a list column of the prepared rows .did you"),
        ({"id": None}, {}, UnknownColumnError, r"^share: 'id' has one entry in each row"),
        ({"history": "sesion"}, {}, UnknownColumnError, r"^share: the key 'sesion' is not a column of numbers or texts"),
        ({"history": "nane"}, {}, UnknownColumnError, r"rows \(did you mean 'name'\?\); there are id, session, name, history, times$"),
        ({"history": "times"}, {}, UnknownColumnError, r"^share: the key 'times' is not a column of numbers or texts"),
        ({"history": None, ("times", "history"): None}, {}, BatchPlanError, r"^share: 'history' is named twice"),
        ({"history": "name", "name": None}, {}, BatchPlanError, r"^share: 'name' is a shared column and a key"),
        ({"history": None}, {"pad": {"history": 0}}, BatchPlanError, r"pad them in net: history, mask = pad\(history.values"),
        ({"history": None}, {"batch": sf.Packed(8, ("history",))}, BatchPlanError, r"^share: the rows of Packed hold several"),
        ("history", {}, OpTypeError, r"share is 'history', expected"),
        ({3: None}, {}, OpTypeError, r"share has 3, expected|expected"),
        ({"history": 3}, {}, OpTypeError, r"is 3, expected the name of a column, or None|expected"),
        ({"history": "session"}, {"index": "i.arrow", "bad_rows": "skip"}, sf.OpError, r"share by 'session' with an index"),
    ],
)  # fmt: skip
def test_what_cannot_be_shared_is_refused(share, more, error, message):
    with pytest.raises(error, match=message):
        sf.Loader(clicks(), **{"batch": 8} | more, share=share)


def test_lists_of_lists_are_refused():
    table = pa.table({"x": [[[1]], []], "id": [1, 2]})
    with pytest.raises(BatchPlanError, match=r"^share: 'x' holds lists of lists"):
        sf.Loader(table, share={"x": None})


@pytest.mark.slow
def test_a_killed_job_writes_the_same_lists(tmp_path):
    pq.write_table(clicks(rows=120), tmp_path / "a.parquet", row_group_size=40)
    write_dying_job(tmp_path, '[source]\npaths = "?.parquet"', row="id", lists="history", window="2 kB")
    job = tmp_path / "job.toml"
    text = (
        job.read_text().replace("history.lengths", "history.lengths, history.row").replace("n = 16", "n = 4")
    )
    job.write_text('share = {history = "session"}\n' + text)
    assert sorted(written_though_killed(tmp_path)) == list(range(120))
    found = written(tmp_path / "out")
    assert found["history"].to_pylist() == clicks(rows=120).take(found["row"])["history"].to_pylist()
