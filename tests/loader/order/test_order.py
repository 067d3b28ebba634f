"""Order, ranks and resume: one sequence of batches, whoever makes it and wherever it begins."""

import itertools
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import BatchPlanError
from seqflow.loader.order.identity import FORMAT
from seqflow.loader.plans.plan import key_of, permutation

ROWS = 240
PLANS = {
    "rows": sf.Rows(7),
    "rows, drop_last": sf.Rows(7, drop_last=True),
    "tokens": sf.TokenBudget(40),
    "padded tokens": sf.TokenBudget(60, padded=True),
    "packed": sf.Packed(16, rows=4),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four files of six row groups of ten rows: a number, and a list of as many of it as its remainder by 9."""
    path = tmp_path_factory.mktemp("docs")
    for i in range(4):
        ids = np.arange(i * 60, i * 60 + 60)
        lists = pa.array([[int(n)] * (int(n) % 9 + 1) for n in ids], pa.list_(pa.int32()))
        pq.write_table(pa.table({"id": ids, "tokens": lists}), path / f"{i}.parquet", row_group_size=10)
    return path


def content(batch):
    """A batch as plain values, to be compared."""
    return tuple((name, batch[name].tolist()) for name in batch)


def sequence(loader):
    return [content(batch) for batch in loader]


def ids(batches):
    found = []
    for batch in batches:
        tensors = dict(batch)
        if "pieces" in tensors:
            found += [n for row in tensors["tokens"] for n in row]
        else:
            found += tensors["id"]
    return found


WINDOWS = [300, 700, "64 MiB"]
"""Bytes: a block each, two blocks each, everything."""


def splitmix(state, k):
    z = (state + (k + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def test_a_permutation_is_sorted_by_splitmix_numbers_and_so_the_same_on_every_machine():
    key = splitmix(splitmix(0, 7), 3)
    assert key_of(7, 3) == key
    expected = sorted(range(100), key=lambda i: splitmix(splitmix(key, 0), i) >> 7 << 7 | i)
    assert permutation(100, key).tolist() == expected
    assert sorted(permutation(1000, key_of(7, 1)).tolist()) == list(range(1000))


@pytest.mark.each_choice
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("window", WINDOWS)
def test_every_row_comes_once_an_epoch_in_an_order_of_its_own(folder, plan, window):
    loader = sf.Loader(folder, shuffle=sf.Shuffle(3), window=window, batch=PLANS[plan])
    first, second = sequence(loader), sequence(loader)
    assert first != second
    expected = [n for n in range(ROWS) for _ in range(n % 9 + 1 if plan == "packed" else 1)]
    for epoch in (first, second):
        found = ids(epoch)
        if plan == "packed":
            found = [n for n in found if n]
            expected = [n for n in expected if n]
        if "drop" in plan:
            assert len(found) == ROWS // 7 * 7
            assert len(set(found)) == len(found)
        else:
            assert sorted(found) == expected
    loader.set_epoch(0)
    assert sequence(loader) == first


def test_without_shuffle_rows_come_in_the_order_of_the_list(folder):
    paths = [folder / f"{i}.parquet" for i in (2, 0, 3, 1)]
    found = ids(sequence(sf.Loader(paths, window=300, batch=7)))
    assert found == [n for i in (2, 0, 3, 1) for n in range(i * 60, i * 60 + 60)]


def test_a_number_of_rows_runs_across_windows(folder):
    sizes = [batch.num_rows for batch in sf.Loader(folder, shuffle=True, window=300, batch=7)]
    assert sizes == [7] * 34 + [2]


def test_prepare_that_makes_other_rows_ends_batches_with_its_windows(folder):
    loader = sf.Loader(
        folder,
        columns=["tokens"],
        prepare="t.values, t.lengths, _ = split_sequences(tokens.values, tokens.lengths, chunk=3)\n"
        "return t.values, t.lengths",
        window=300,
        batch=7,
    )
    sizes = [batch.num_rows for batch in loader]
    assert sum(sizes) == sum(-(-(n % 9 + 1) // 3) for n in range(ROWS))
    assert max(sizes) == 7
    assert len([size for size in sizes if size < 7]) > 1


@pytest.mark.each_choice
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(("window", "streams"), [(300, 1), (700, 1), (300, 4), ("64 MiB", 1)])
@pytest.mark.parametrize("world_size", [2, 3, 8])
def test_ranks_share_one_sequence(folder, tmp_path, plan, window, streams, world_size):
    options = {"shuffle": True, "window": window, "batch": PLANS[plan], "streams": streams}
    if streams > 1 and not plan.startswith("rows"):
        options |= {"steps_per_epoch": 2, "index": tmp_path / "lengths.arrow"}
    alone = sequence(
        sf.Loader(
            folder,
            **options | {"steps_per_epoch": 2 * world_size} if "steps_per_epoch" in options else options,
        )
    )
    ranks = [
        sequence(sf.Loader(folder, **options, rank=rank, world_size=world_size, threads=rank % 3))
        for rank in range(world_size)
    ]
    assert len({len(rank) for rank in ranks}) == 1
    assert [batch for step in zip(*ranks, strict=True) for batch in step] == alone[
        : len(ranks[0]) * world_size
    ]
    assert len(alone) - len(ranks[0]) * world_size < world_size


@pytest.mark.parametrize("tail", ["pad", "repeat"])
def test_a_tail_is_filled(folder, tail):
    options = {"shuffle": True, "batch": sf.Rows(100), "tail": tail, "world_size": 2}
    alone = sequence(sf.Loader(folder, shuffle=True, batch=sf.Rows(100)))
    ranks = [list(sf.Loader(folder, **options, rank=rank)) for rank in range(2)]
    assert [len(rank) for rank in ranks] == [2, 2]
    last = ranks[1][1]
    assert [content(ranks[0][0]), content(ranks[1][0]), content(ranks[0][1])] == alone
    if tail == "pad":
        assert last.num_rows == 0
        assert {name: last[name].dtype for name in last} == {name: ranks[0][0][name].dtype for name in last}
    else:
        assert content(last) == alone[0]


@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("window", [300, "64 MiB"])
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 3), (3, 1), (1, 4)])
def test_resume_goes_on_behind_the_last_batch_on_any_number_of_ranks(folder, plan, window, before, after):
    options = {"shuffle": sf.Shuffle(5), "window": window, "batch": PLANS[plan]}
    alone = sequence(sf.Loader(folder, **options))
    for steps in (0, 1, 3, len(alone) // before):
        loader = sf.Loader(folder, **options, rank=before - 1, world_size=before)
        batches = iter(loader)
        for _ in range(steps):
            next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
        batches.close()
        ranks = []
        for rank in range(after):
            resumed = sf.Loader(folder, **options, rank=rank, world_size=after, threads=rank % 2)
            resumed.load_state_dict(state)
            if len(alone) - steps * before < after and steps == 0:
                break
            ranks.append(sequence(resumed))
            assert resumed.epoch == 1
        joined = [batch for step in zip(*ranks, strict=True) for batch in step]
        rest = alone[steps * before :]
        assert joined == rest[: len(rest) // after * after]


def test_the_state_after_an_epoch_is_the_start_of_the_next(folder):
    loader = sf.Loader(folder, shuffle=True, batch=50)
    list(loader)
    assert (loader.epoch, loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (1, 1, 0)
    next_epoch = sequence(loader)
    other = sf.Loader(folder, shuffle=True, batch=50)
    other.set_epoch(1)
    assert sequence(other) == next_epoch


def test_an_abandoned_epoch_begins_again(folder):
    loader = sf.Loader(folder, shuffle=True, batch=50)
    first = content(next(iter(loader)))
    assert loader.epoch == 0
    assert content(next(iter(loader))) == first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 8}, r"batch\.n was 7 and is 8 now"),
        ({"shuffle": sf.Shuffle(4)}, "shuffle was 3 and is 4 now"),
        ({"window": 1000}, "window was 300 and is 1000 now"),
        ({"columns": ["id"]}, "columns was None and is"),
    ],
)
def test_a_state_of_other_settings_names_the_difference(folder, change, message):
    options = {"shuffle": sf.Shuffle(3), "batch": 7, "window": 300}
    state = sf.Loader(folder, **options).state_dict()
    with pytest.raises(sf.OpError, match=message):
        sf.Loader(folder, **options | change).load_state_dict(state)


def test_a_state_of_other_data_names_the_file(folder, tmp_path):
    for name in ("0.parquet", "1.parquet"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    state = sf.Loader(tmp_path).state_dict()
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(sf.OpError, match=r"the data have changed: .*1\.parquet"):
        sf.Loader(tmp_path / "*.parquet").load_state_dict(state)
    pq.write_table(
        pa.table({"id": [1], "tokens": pa.array([[1]], pa.list_(pa.int32()))}), tmp_path / "1.parquet"
    )
    with pytest.raises(sf.OpError, match=r"1.parquet had \d+ bytes and 60 rows, and has \d+ and 1 now"):
        sf.Loader(tmp_path).load_state_dict(state)


def test_the_text_of_a_state_is_to_be_read_first(folder):
    text = json.dumps(sf.Loader(folder).state_dict())
    with pytest.raises(sf.OpError, match=r"not the state of a loader.*\n  found text: json\.loads"):
        sf.Loader(folder).load_state_dict(text)


def test_an_order_of_rows_is_named_by_its_seed(folder):
    with pytest.raises(sf.OpError, match=r"shuffle was 3 and is None now"):
        sf.Loader(folder).load_state_dict(sf.Loader(folder, shuffle=sf.Shuffle(3)).state_dict())


@pytest.mark.parametrize("state", [None, 3, {}, {"format": FORMAT}])
def test_what_is_no_state_is_refused(folder, state):
    with pytest.raises(sf.OpError, match="this is not the state of a loader"):
        sf.Loader(folder).load_state_dict(state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format": 1},
            f"the state has format 1, expected {FORMAT}\n  it was taken by another version of seqflow",
        ),
        ({"epoch": 0.5}, "not the state of a loader"),
        ({"epoch": True}, "not the state of a loader"),
        ({"batch": -1}, "not the state of a loader"),
        ({"windows": None}, "not the state of a loader"),
        ({"windows": {"x": {}}}, "not the state of a loader"),
        ({"windows": {"0": {"window": 1, "first_batch": {}, "batches": 1}}}, "not the state of a loader"),
        (
            {"windows": {"1": {"window": 0, "first_batch": 0, "batches": 1}}},
            "a window of stream 1, of 1 streams",
        ),
        ({"settings": 3}, "not the state of a loader"),
        ({"data": {"x": None}}, "the data have changed: kind is new: 'parquet'"),
        (
            {"data": {"files": [1, 2]}},
            r"(.|\n)*the data have changed: files\[0\] was 1 and is \['0\.parquet', ",
        ),
    ],
)
def test_a_damaged_state_is_refused(folder, change, message):
    loader = sf.Loader(folder, batch=sf.TokenBudget(40), window=300)
    with pytest.raises(sf.OpError, match=f"load_state_dict: .*{message}"):
        loader.load_state_dict({**loader.state_dict(), **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window": 99}, r"the state is in window 99 of stream 0, which has \d+"),
        ({"first_batch": 50}, r"batch \d+ of stream 0 lies before its window, which begins with batch 50"),
        ({"batches": 9}, r"window 1 of stream 0 has \d batches, and 9 by the lengths index or the state"),
    ],
)
def test_a_state_of_places_that_are_not_there_is_refused(folder, change, message):
    options = {"batch": sf.TokenBudget(40), "window": 300, "threads": 0}
    loader = sf.Loader(folder, **options)
    batches = iter(loader)
    while loader.state_dict()["windows"].get("0", {}).get("window") != 1:
        next(batches)
    state = loader.state_dict()
    state["windows"]["0"].update(change)
    again = sf.Loader(folder, **options)
    again.load_state_dict(state)
    with pytest.raises(sf.OpError, match=message):
        list(again)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 2, "world_size": 2}, "rank is 2, expected 0 or more and less than world_size = 2"),
        ({"world_size": 0}, "world_size is 0, expected 1 or more"),
        ({"tail": "pads"}, r"tail is 'pads', expected 'drop' or 'pad' or 'repeat' \(did you mean 'pad'\?\)"),
        ({"streams": 0}, "streams is 0, expected an integer, 1 to 65,536"),
        ({"window": "2 GiB", "memory": "1 GiB"}, "window is 2.0 GiB, expected no more than memory, 1.0 GiB"),
        ({"prepare": 3}, "prepare is 3, expected Net or text or a function"),
        ({"constants": [1]}, r"constants is \[1\], expected a dict of values"),
        ({"bad_rows": None}, "bad_rows is None, expected text or BadRows"),
        ({"index": 3}, "index is 3, expected a path or True or False"),
        ({"shuffle": 7}, "shuffle is 7, expected Shuffle or True or False"),
        (
            {"shuffle": True, "window": 100},
            r"rows are shuffled in windows of 100 B\n  raise window to \d+ bytes",
        ),
        ({"streams": 100, "window": 300}, "streams = 100 needs as many windows, but the data are 24"),
        ({"streams": 2, "window": 300, "batch": sf.Packed(8)}, "give index="),
        (
            {"steps_per_epoch": 1000},
            "stream 0 of 1 ends after 1 batches, but an epoch of 1000 batches needs more",
        ),
        (
            {"steps_per_epoch": 2**63},
            f"steps_per_epoch is {2**63}, expected an integer, 1 or more, of 64 bits",
        ),
        ({"world_size": 1000, "rank": 3}, "fewer batches than world_size = 1000"),
        ({"threads": -1}, "threads is -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(folder, options, message):
    with pytest.raises(sf.OpError, match=message):
        list(sf.Loader(folder, **options))


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"rank": 1, "world_size": 2}, {"skip": [(0, 2)]}])
def test_an_epoch_of_any_number_of_steps_ends_where_the_batches_do(folder, options, threads):
    batches = iter(sf.Loader(folder, batch=16, steps_per_epoch=2**62, threads=threads, **options))
    with pytest.raises(BatchPlanError, match=r"stream 0 of 1 ends after \d+ batches"):
        for _ in batches:
            pass


def test_rank_and_world_size_come_from_the_environment(folder, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = sf.Loader(folder)
    assert (loader.rank, loader.world_size) == (1, 2)


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("batch_size", "write batch=n"),
        ("num_workers", "write threads=n"),
        ("colums", "did you mean 'columns'"),
        ("exclud", "did you mean 'exclude'"),
    ],
)
def test_an_option_that_a_loader_has_not_says_what_to_write(folder, option, advice):
    with pytest.raises(TypeError, match=advice):
        sf.Loader(folder, **{option: 1})


@given(st.integers(1, 9), st.integers(1, 5), st.sampled_from(["drop", "pad", "repeat"]), st.booleans())
def test_len_is_the_number_of_batches(folder, n, world_size, tail, drop_last):
    loader = sf.Loader(
        folder,
        batch=sf.Rows(n, drop_last),
        world_size=world_size,
        rank=0,
        tail=tail,
        window=300,
        shuffle=True,
        threads=0,
    )
    assert len(loader) == sum(1 for _ in loader)


def test_len_is_a_type_error_where_nobody_knows(folder):
    loader = sf.Loader(folder, batch=sf.TokenBudget(50))
    with pytest.raises(TypeError, match=r'give index="lengths\.arrow", steps_per_epoch'):
        len(loader)
    assert loader


def test_random_ops_follow_the_epoch_and_not_the_rank(folder):
    options = {
        "net": "y, kept = dropout(x, seed=1)\nreturn y, id",
        "prepare": "x = id * 1.0\nreturn x, id",
        "window": 300,
        "batch": 30,
    }
    loader = sf.Loader(folder, **options)
    first, second = sequence(loader), sequence(loader)
    assert first != second
    assert [dict(batch)["id"] for batch in first] == [dict(batch)["id"] for batch in second]
    ranks = [sequence(sf.Loader(folder, **options, rank=rank, world_size=2)) for rank in range(2)]
    assert [batch for step in zip(*ranks, strict=True) for batch in step] == first
    zeros = [np.array(dict(batch)["y"]) == 0 for batch in first]
    assert any(not np.array_equal(a, b) for a, b in itertools.pairwise(zeros[1:]))


def test_large_row_groups_are_read_in_slices(tmp_path):
    table = pa.table({"id": np.arange(1000), "x": pa.array([[1] * 20] * 1000, pa.list_(pa.int64()))})
    pq.write_table(table, tmp_path / "x.parquet")
    loader = sf.Loader(tmp_path / "x.parquet", window=40_000, batch=64)
    assert ids(sequence(loader)) == list(range(1000))
    assert loader.stats().bytes_in_flight <= loader.memory


def test_a_stream_is_read_once(folder):
    table = pq.read_table(folder / "0.parquet")
    loader = sf.Loader(table.to_reader(max_chunksize=7), shuffle=True, window=300, batch=9)
    found = ids(sequence(loader))
    assert sorted(found) == list(range(60))
    assert found != list(range(60))
    with pytest.raises(sf.ProviderError, match="can be read once"):
        next(iter(loader))
    with pytest.raises(sf.OpError, match="the source is a stream"):
        loader.load_state_dict({})


def test_take_leaves_the_loader_where_it_is(folder):
    loader = sf.Loader(folder, shuffle=True, batch=50)
    some = [content(batch) for batch in loader.take(2)]
    assert sequence(loader)[:2] == some
    assert len(loader.take(100)) == 5
    assert loader.epoch == 1


@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("plan", ["rows", "tokens"])
def test_padded_batches_may_share_memory(folder, threads, plan):
    options = {
        "shuffle": True,
        "batch": PLANS[plan],
        "pad": {"tokens": sf.Pad(-1, dtype="int64")},
        "window": 700,
    }
    fresh = list(sf.Loader(folder, **options))
    seen = []
    for batch, expected in zip(sf.Loader(folder, **options, reuse=True, threads=threads), fresh, strict=True):
        assert content(batch) == content(expected)
        assert batch["tokens"].dtype == np.int64
        assert batch["tokens"].flags.writeable
        assert np.array_equal(batch["tokens.mask"], batch["tokens"] != -1)
        seen.append(batch["tokens"].ctypes.data)
    assert len(set(seen)) < len(seen)


def test_streams_that_are_not_counted_ask_for_an_index(folder, tmp_path):
    options = {"shuffle": True, "window": 300, "batch": PLANS["tokens"], "streams": 4}
    with pytest.raises(sf.OpError, match=r"streams = 4 needs the number of batches.*\n  give index="):
        next(iter(sf.Loader(folder, **options, steps_per_epoch=16)))
    counted = sf.Loader(folder, **options, steps_per_epoch=16, index=tmp_path / "lengths.arrow")
    assert len(sequence(counted)) == 16


def test_a_file_that_changes_during_a_run_is_an_error(folder, tmp_path):
    for name in ("0.parquet", "1.parquet"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    batches = iter(sf.Loader(tmp_path, window=300, memory=700, batch=5, threads=0))
    next(batches)
    (tmp_path / "1.parquet").write_bytes((folder / "2.parquet").read_bytes())
    with pytest.raises(sf.ProviderError, match=r"1\.parquet changed while it was read"):
        list(batches)
    batches = iter(sf.Loader(tmp_path, window=300, memory=700, batch=5, threads=0))
    next(batches)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(sf.ProviderError, match=r"1\.parquet changed while it was read: it is gone"):
        list(batches)


def test_a_message_of_a_changed_file_never_has_one_size_twice(folder, tmp_path):
    path = tmp_path / "1.parquet"
    path.write_bytes((folder / "1.parquet").read_bytes())
    for content in (path.read_bytes(), path.read_bytes() + b"PAR1"):
        batches = iter(sf.Loader(tmp_path, window=300, memory=700, batch=5, threads=0))
        next(batches)
        had = path.stat().st_size
        path.write_bytes(content)
        os.utime(path, (1, 1))
        with pytest.raises(sf.ProviderError, match="changed while it was read") as error:
            list(batches)
        same = f"it was written again, with {had} bytes as before"
        other = f"it had {had} bytes and has {len(content)} now"
        assert (same if had == len(content) else other) in str(error.value)


def test_a_file_of_other_rows_and_as_many_bytes_is_named_by_its_rows(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(4, np.int16))
    state = sf.Loader(path).state_dict()
    size = path.stat().st_size
    np.save(path, np.zeros(8, np.int8))
    assert path.stat().st_size == size
    with pytest.raises(sf.OpError, match=r"x\.npy had 4 rows, and has 8 now"):
        sf.Loader(path).load_state_dict(state)
    np.save(path, np.zeros(5, np.int16))
    with pytest.raises(
        sf.OpError, match=rf"x\.npy had {size} bytes and 4 rows, and has {size + 2} and 5 now"
    ):
        sf.Loader(path).load_state_dict(state)


def test_a_forked_child_begins_anew(folder):
    loader = sf.Loader(folder, shuffle=True, batch=20, threads=2)
    batches = iter(loader)
    next(batches)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            try:
                list(batches)
            except sf.OpError as error:
                status = 0 if "began in another process" in str(error) and len(list(loader)) == 12 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(batches)) == 11


def test_the_spec_of_batches_is_known_before_reading(folder):
    loader = sf.Loader(
        folder, batch=8, pad={"tokens": sf.Pad(dtype="int64")}, net="y = tokens * 2\nreturn y, id"
    )
    spec = loader.spec
    assert (spec["y"].dtype, spec["id"].dtype) == (np.int64, np.int64)
    assert len(spec["y"].shape.dimensions) == 2
    assert not spec["y"].shape.dimensions[1].is_static
    packed = sf.Loader(folder, batch=sf.Packed(16)).spec
    assert packed["tokens"].shape.dimensions[1] == 16
    with pytest.raises(sf.OpError, match=r"Loader.spec: the result of"):
        _ = sf.Loader(folder, net=lambda batch: {}).spec
