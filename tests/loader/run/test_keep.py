"""Rows that `keep` leaves out are counted as filtered, on every path by which batches are made."""

import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import OpTypeError
from seqflow.loader.run.ledger import BadRows

ROWS = 240
KEEP = "hash(id) % 3 == 0"
TABLE = pa.table(
    {
        "id": np.arange(ROWS),
        "name": [f"user_{i}" for i in range(ROWS)],
        "tokens": pa.array([[i] * (i % 7) for i in range(ROWS)], pa.list_(pa.int32())),
    }
)
KEPT = [i for i in range(ROWS) if sf.ops.hash([i])[0] % 3 == 0]
PLANS = {"rows": sf.Rows(7), "tokens": sf.TokenBudget(20), "packed": sf.Packed(12, rows=2)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("keep")
    for number in range(4):
        part = TABLE.slice(number * 60, 60)
        pq.write_table(part, path / f"{number}.parquet", row_group_size=10)
    return path


def loader_of(source, plan="rows", **options):
    options = {"rank": 0, "world_size": 1, "threads": 0, "window": 900, **options}
    return sf.Loader(source, batch=PLANS[plan], keep=options.pop("keep", KEEP), **options)


def ids_of(batches):
    return [np.unique(batch["id"]).tolist() for batch in batches]


def joined(batches):
    return sorted(number for ids in ids_of(batches) for number in ids)


@pytest.mark.parametrize("plan", ["rows", "tokens"])
def test_the_rows_are_those_of_the_same_filter_of_the_source(folder, plan):
    loader = loader_of(folder, plan)
    assert joined(loader) == joined(loader_of(folder, plan, keep=None, where=KEEP)) == KEPT
    stats = loader.stats()
    assert (stats.rows, stats.filtered, stats.bad_rows) == (len(KEPT), ROWS - len(KEPT), 0)
    assert stats.filtered_by == {"keep": ROWS - len(KEPT)}
    assert stats.rows + stats.rows_left + stats.dropped + stats.skipped == ROWS
    assert stats.rows_read == stats.rows_done == stats.prepared == ROWS


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("plan", ["rows", "tokens"])
@pytest.mark.parametrize(("world_size", "streams"), [(1, 1), (2, 1), (3, 4), (4, 2)])
@pytest.mark.parametrize("shuffle", [None, True])
def test_all_ranks_together_have_the_kept_rows(folder, tmp_path, plan, world_size, streams, shuffle):
    options = {"streams": streams, "shuffle": shuffle, "index": tmp_path / "i.arrow", "tail": "pad"}
    whole = loader_of(folder, plan, **options)
    expected = ids_of(whole)
    assert len(whole) == len(expected)
    ranks = [
        ids_of(loader_of(folder, plan, rank=rank, world_size=world_size, threads=2, **options))
        for rank in range(world_size)
    ]
    assert [ranks[k % world_size][k // world_size] for k in range(len(expected))] == expected


@pytest.mark.slow
@pytest.mark.parametrize("plan", list(PLANS))
@pytest.mark.parametrize("indexed", [False, True])
def test_a_resumed_run_goes_on_with_the_same_rows(folder, tmp_path, plan, indexed):
    options = {"shuffle": True, "index": tmp_path / "i.arrow" if indexed else None}
    whole = ids_of(loader_of(folder, plan, **options))
    for stop in range(0, len(whole), 3):
        first = loader_of(folder, plan, **options)
        batches = iter(first)
        seen = ids_of(next(batches) for _ in range(stop))
        again = loader_of(folder, plan, **options)
        again.load_state_dict(json.loads(json.dumps(first.state_dict())))
        assert seen + ids_of(again) == whole


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["rows", "tokens"])
def test_a_batch_is_found_again_and_traced_to_its_rows(folder, plan):
    loader = loader_of(folder, plan, shuffle=True)
    for number, ids in enumerate(ids_of(loader)):
        assert sorted(loader.batch_at(number, epoch=0)["id"].tolist()) == ids
        places = [
            int(Path(place.file).stem) * 60 + place.block * 10 + place.row
            for place in loader.trace(number, epoch=0)
        ]
        assert sorted(places) == ids


def test_a_mix_counts_the_rows_of_its_sources(folder):
    sources = {folder / "0.parquet": 0.5, folder / "1.parquet": 0.5}
    mix = sf.Mix(sources, batch=sf.TokenBudget(20), keep=KEEP, stop="all", rank=0, world_size=1)
    found = {number for batch in mix for number in batch["id"].tolist()}
    assert found == {number for number in KEPT if number < 120}
    stats = mix.stats()
    assert stats.filtered_by == {"keep": stats.filtered}
    assert stats.filtered == stats.filtered_by_keep > 0

    assert stats.filtered_by_condition == {KEEP: stats.filtered}


def test_a_condition_on_a_column_that_is_not_there_is_refused_when_the_loader_is_made(folder):
    for options in ({"keep": "idd > 0"}, {"require": "idd > 0"}, {"totals": {"n": "idd"}}):
        with pytest.raises(sf.SeqflowError, match="idd"):
            sf.Loader(folder, **options)


def test_each_condition_counts_the_rows_that_it_is_the_first_to_refuse(folder):
    loader = loader_of(folder, keep=["id % 2 == 0", "id % 3 == 0", "id >= 0"], where="id < 60")
    rows = sum(batch.num_rows for batch in loader)
    assert rows == 10
    assert loader.stats().filtered_by_condition == {"id % 2 == 0": 30, "id % 3 == 0": 20}
    assert ("filtered by id % 2 == 0", "30") in loader.stats().lines()


def test_the_same_rows_are_left_out_in_each_epoch(folder):
    """One window holds everything, and its rows are kept in memory."""
    loader = loader_of(folder, shuffle=True, window="1 MiB")
    assert joined(loader) == joined(loader) == KEPT
    assert loader.stats().filtered == ROWS - len(KEPT)


def test_another_process_leaves_out_the_same(folder):
    drop = np.array(KEPT[:5])
    loader = loader_of(folder, keep=[KEEP, "find(drop, id) < 0"], constants={"drop": drop})
    assert joined(pickle.loads(pickle.dumps(loader))) == joined(loader) == KEPT[5:]


def test_require_judges_the_rows_that_are_kept(folder):
    loader = loader_of(folder, require="hash(id) % 3 != 1", where="id >= 60")
    assert joined(loader) == [number for number in KEPT if number >= 60]
    assert loader.stats().filtered_by == {"where": 60, "keep": 180 - loader.stats().rows}
    bad = loader_of(folder, require="tokens.lengths > 1", bad_rows="skip")
    assert joined(bad) == [number for number in KEPT if number % 7 > 1]
    assert bad.stats().reasons == {
        "tokens: require: tokens.lengths > 1 is false": len(KEPT) - bad.stats().rows
    }


def test_conditions_see_what_prepare_has_made(folder):
    loader = loader_of(folder, prepare="n = tokens.lengths * 2\nreturn id, n", keep=["n > 6", "n < 12"])
    assert joined(loader) == [i for i in range(ROWS) if i % 7 in (4, 5)]


def test_a_function_may_make_rows(folder):
    loader = loader_of(folder, prepare=lambda rows: {"id": np.repeat(rows["id"], 2)}, keep="id < 5")
    assert sorted(number for batch in loader for number in batch["id"].tolist()) == [
        i for i in range(5) for _ in range(2)
    ]
    assert loader.stats().filtered == 2 * ROWS - 10


def test_texts_and_masks_are_judged(folder):
    loader = loader_of(folder, keep="hash_text(name.values, name.lengths) % 2 == 0")
    assert joined(loader) == joined(loader_of(folder, keep=None, where="hash(name) % 2 == 0"))
    table = pa.table({"id": [1, 2, 3], "n": [5, None, 7]})
    assert joined(loader_of(table, keep="n.valid", valid=["n"])) == [1, 3]


def test_texts_keep_their_type():
    (batch,) = loader_of(TABLE.slice(0, 20), keep="id == 3")
    assert sf.to_arrow(batch).schema.types == TABLE.schema.types


def test_no_row_may_be_left(folder):
    loader = loader_of(folder, keep="id < 0")
    assert list(loader) == []
    assert loader.stats().filtered == ROWS
    all_bad = loader_of(
        TABLE, keep="id == 3", prepare="y = gather(c, id * 9)\nreturn id", constants={"c": np.zeros(9)},
        bad_rows=BadRows("skip"),
    )  # fmt: skip
    assert joined(all_bad) == []
    assert (all_bad.stats().filtered, all_bad.stats().bad_rows) == (1, ROWS - 1)


def test_a_state_names_a_condition_that_has_changed(folder):
    constants = {"drop": np.array([3])}
    loader = loader_of(folder, keep="find(drop, id) < 0", constants=constants)
    next(iter(loader))
    state = loader.state_dict()
    again = loader_of(folder, keep="find(drop, id) < 0", constants={"drop": np.array([3])})
    again.load_state_dict(state)
    for options, text in [
        (
            {"keep": "find(drop, id) < 0", "constants": {"drop": np.array([4])}},
            r"keep\[0\].constants.drop has other content",
        ),
        ({"keep": "find(drop, id) <= 0", "constants": constants}, r"keep\[0\].*find\(drop, id\) <= 0"),
        ({"keep": None}, r"keep was \[.*find\(drop, id\) < 0; .*\] and is None now"),
    ]:
        with pytest.raises(sf.OpError, match=text):
            loader_of(folder, **options).load_state_dict(state)
    assert "keep" not in loader_of(folder, keep=None).state_dict()["settings"]


def test_constants_of_require_are_compared_and_its_text_alone_is_as_before(folder):
    def state(**options):
        return loader_of(folder, keep=None, bad_rows="skip", **options).state_dict()

    assert state(require="id > 3")["settings"]["require"] == ["id > 3"]
    one = state(require="find(drop, id) < 0", constants={"drop": np.array([3])})
    other = loader_of(
        folder, keep=None, bad_rows="skip", require="find(drop, id) < 0", constants={"drop": np.array([4])}
    )
    with pytest.raises(sf.OpError, match=r"require\[0\].constants.drop has other content"):
        other.load_state_dict(one)


def test_an_index_belongs_to_the_condition(folder, tmp_path):
    options = {"index": tmp_path / "i.arrow"}
    assert len(loader_of(folder, "tokens", **options)) == len(list(loader_of(folder, "tokens", **options)))
    with pytest.raises(
        sf.OpError,
        match=r"the lengths index .* is stale: .*columns\.id is gone: it was 'int64'\n(.*\n)*.*keep was",
    ):
        len(loader_of(folder, "tokens", keep=None, **options))


@pytest.mark.parametrize(
    ("keep", "error", "text"),
    [
        ("tokens.values > 3", sf.OpError, "keep: .* is bool.*, expected one truth value for each"),
        ("id + 1", sf.OpError, r"keep: id \+ 1 is int64.*, expected one truth value"),
        ("hash(name.values) % 2 == 0", sf.OpError, r"keep: .*\n.*hash_text one hash of the bytes of a text"),
        ("hash(score) == 0", sf.OpError, "hash: x is float64, expected integers"),
        ("nothing > 1", sf.NetError, "nothing assigns 'nothing'"),
        ("id >", sf.NetError, "found the end"),
        ([], OpTypeError, r"Loader: keep is \[\], expected a condition"),
        (7, OpTypeError, "Loader: keep is 7, expected a condition"),
    ],
)
def test_what_is_not_a_condition_is_an_error_before_anything_is_read(keep, error, text):
    table = TABLE.slice(2, 3).append_column("score", pa.array([0.5, 1.5, 2.5]))
    with pytest.raises(error, match=text):
        next(iter(loader_of(table, keep=keep)))


def test_a_constant_that_nothing_reads_is_an_error(folder):
    with pytest.raises(sf.NetError, match="nothing uses the constant 'drop'"):
        loader_of(folder, constants={"drop": np.array([1])})


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.booleans(), min_size=1, max_size=40),
    st.sampled_from(list(PLANS)),
    st.integers(1, 3),
    st.booleans(),
)
def test_each_row_is_kept_or_counted(kept, plan, world_size, shuffle):
    table = pa.table({"id": np.arange(len(kept)), "k": kept, "tokens": [[i] * 3 for i in range(len(kept))]})
    loaders = [
        loader_of(
            table, plan, keep="k", rank=rank, world_size=world_size, tail="pad", shuffle=shuffle or None
        )
        for rank in range(world_size)
    ]
    found = [number for loader in loaders for ids in ids_of(loader) for number in ids]
    if plan == "packed":
        found = [number for number in found if number]  # cells without tokens are 0
    assert sorted(set(found) - {0}) == [at for at in np.flatnonzero(kept).tolist() if at]
    assert loaders[0].stats().filtered == len(kept) - sum(kept)
