"""Conditions that rows have to fulfil."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import NetError, OpTypeError, ProviderError
from seqflow.loader import BadRows

RNG = np.random.default_rng(8)
LABELS = [np.where(RNG.random(n) < 0.3, 5, -100) for n in RNG.integers(0, 5, 300)]
TABLE = pa.table({"id": np.arange(300), "labels": LABELS})
TRAINED = "lengths_any(labels.values != -100, labels.lengths)"
GOOD = [i for i, labels in enumerate(LABELS) if (labels != -100).any()]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "in.parquet"
    pq.write_table(TABLE, path, row_group_size=50)
    return path


def ids(loader):
    return [int(one) for batch in loader for one in batch["id"]]


@pytest.mark.parametrize("plan", [sf.Rows(7), sf.TokenBudget(20, lengths="labels")])
@pytest.mark.parametrize("threads", [0, 2])
def test_rows_that_do_not_are_bad_rows(path, tmp_path, plan, threads):
    bad = tmp_path / "bad.parquet"
    loader = sf.Loader(
        str(path), batch=plan, require=TRAINED, bad_rows=BadRows("quarantine", str(bad)), threads=threads,
        rank=0, world_size=1,
    )  # fmt: skip
    assert ids(loader) == GOOD
    stats = loader.stats()
    assert (stats.rows, stats.bad_rows, stats.rows_left) == (len(GOOD), 300 - len(GOOD), 0)
    written = pq.read_table(bad)
    assert written["id"].to_pylist() == sorted(set(range(300)) - set(GOOD))
    reasons = written["bad"].to_pylist()
    assert {one["reason"] for one in reasons} == {f"require: {TRAINED} is false"}
    assert {one["column"] for one in reasons} == {"labels.values, labels"}


def test_the_first_is_an_error_where_bad_rows_are(path):
    first = min(set(range(300)) - set(GOOD))
    loader = sf.Loader(str(path), batch=7, require=TRAINED)
    with pytest.raises(
        ProviderError, match=rf"block 0, row {first}, column .*: require: lengths_any\(.*\) is false"
    ):
        list(loader)


def test_several_conditions_and_prepared_rows(path):
    loader = sf.Loader(
        str(path), batch=7, prepare="n = labels.lengths + 0\nreturn id, n", bad_rows="skip",
        require=["n > 1", "(id < 200) | (id == 250)"], rank=0, world_size=1,
    )  # fmt: skip
    assert ids(loader) == [i for i in range(300) if len(LABELS[i]) > 1 and (i < 200 or i == 250)]
    assert loader.stats().bad_rows == 300 - loader.stats().rows


def test_a_resumed_run_leaves_out_the_same(path):
    def loader():
        return sf.Loader(
            str(path), batch=7, require=TRAINED, bad_rows="skip", shuffle=True, rank=0, world_size=1
        )

    whole, first = ids(loader()), loader()
    batches = iter(first)
    seen = [int(one) for _ in range(9) for one in next(batches)["id"]]
    state = first.state_dict()
    again = loader()
    again.load_state_dict(state)
    assert seen + ids(again) == whole
    with pytest.raises(sf.OpError, match=r"require was .* and is None now"):
        sf.Loader(str(path), batch=7, bad_rows="skip", shuffle=True, rank=0, world_size=1).load_state_dict(
            state
        )


def test_an_index_measures_the_rows_that_are_left(path, tmp_path):
    options = {"batch": sf.TokenBudget(20, lengths="labels"), "bad_rows": "skip", "rank": 0, "world_size": 1}
    loader = sf.Loader(str(path), require=TRAINED, index=tmp_path / "lengths.arrow", **options)
    assert len(loader) == len(list(loader))
    with pytest.raises(sf.OpError, match=r"the lengths index .* is stale: require was"):
        len(sf.Loader(str(path), index=tmp_path / "lengths.arrow", **options))


def test_rows_that_a_function_makes(path):
    def prepare(rows):
        return {"id": np.repeat(rows["id"], 2)}

    loader = sf.Loader(
        str(path), batch=7, prepare=prepare, require="id != 3", bad_rows="skip", rank=0, world_size=1
    )
    assert ids(loader) == [i for i in range(300) for _ in range(2) if i != 3]
    assert loader.stats().bad_rows == 2


@pytest.mark.parametrize(
    ("require", "error", "text"),
    [
        ("labels.values != -100", sf.OpError, "require: .* is bool.*, expected one truth value for each"),
        ("id + 1", sf.OpError, r"require: id \+ 1 is int64.*, expected one truth value"),
        ("nothing > 3", NetError, "nothing assigns 'nothing'"),
        ("id >", NetError, "net, line 1"),
        (3, OpTypeError, "require is 3, expected a condition"),
        ([], OpTypeError, r"require is \[\]"),
    ],
)
def test_what_is_no_condition_is_an_error_before_reading(path, require, error, text):
    with pytest.raises(error, match=text):
        next(iter(sf.Loader(str(path), batch=7, require=require)))
