"""Batch plans in a loader: bad rows with their place, counts, the lengths index, streams."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from windows_of import lists

import seqflow as sf

LISTS = [[n] * (n % 9 + 1) for n in range(60)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files of three row groups of ten rows: lists x, y with another length in row 13, and a number."""
    path = tmp_path_factory.mktemp("lists")
    other = [[-value for value in row] for row in LISTS]
    other[13] = other[13][1:]
    kind = pa.list_(pa.int32())
    for i, part in enumerate((slice(0, 30), slice(30, 60))):
        table = pa.table({
            "x": pa.array(LISTS[part], kind), "y": pa.array(other[part], kind), "id": np.arange(60)[part],
        })  # fmt: skip
        pq.write_table(table, path / f"{i}.parquet", row_group_size=10)
    return path


LONG = sf.TokenBudget(8)
TOGETHER = sf.Packed(16, ("x", "y"), {"y": -100}, rows=3)


@pytest.mark.parametrize("window", [300, "64 MiB"])
def test_a_row_above_the_budget_is_an_error_with_its_place(folder, window):
    with pytest.raises(
        sf.ProviderError,
        match=r"0\.parquet, block 0, row 8, column 'x': 9 elements, expected at most max_tokens = 8",
    ):
        list(sf.Loader(folder, columns=["x"], batch=LONG, window=window))


def test_columns_of_different_lengths_are_an_error_with_the_place_of_the_row(folder):
    with pytest.raises(
        sf.ProviderError, match=r"0\.parquet, block 1, row 3, column 'y': 4 elements, but 5 in 'x'"
    ):
        list(sf.Loader(folder, columns=["x", "y"], batch=TOGETHER))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("window", [300, 700, "64 MiB"])
def test_rows_that_cannot_be_planned_with_are_left_out_and_counted(folder, shuffle, window):
    if shuffle and window == 300:
        window = 400
    loader = sf.Loader(folder, columns=["x"], batch=LONG, window=window, shuffle=shuffle, bad_rows="skip")
    found = [row for batch in loader for row in lists(batch)]
    assert sorted(found) == [row for row in LISTS if len(row) <= 8]
    stats = loader.stats()
    assert (stats.bad_rows, stats.rows) == (6, 54)


def test_rows_that_cannot_be_planned_with_go_into_quarantine_as_they_were_read(folder, tmp_path):
    loader = sf.Loader(
        folder,
        prepare="more = x.values + 1\nreturn more, x.lengths",
        batch=LONG,
        bad_rows=sf.BadRows("quarantine", tmp_path / "bad.parquet"),
    )
    assert sum(batch.num_rows for batch in loader) == 54
    bad = pq.read_table(tmp_path / "bad.parquet").to_pylist()
    assert [row["id"] for row in bad] == [8, 17, 26, 35, 44, 53]
    assert bad[1]["x"] == LISTS[17]
    assert bad[3]["bad"]["file"].endswith("1.parquet")
    assert (bad[3]["bad"]["block"], bad[3]["bad"]["row"]) == (0, 5)
    assert bad[3]["bad"]["reason"] == "9 elements, expected at most max_tokens = 8"


def test_rows_that_prepare_made_have_no_place_in_the_block(folder, tmp_path):
    options = {
        "columns": ["x"],
        "prepare": "z.values, z.lengths, _ = split_sequences(x.values, x.lengths, chunk=3)\n"
        "return z.values, z.lengths",
        "batch": sf.TokenBudget(2),
    }
    with pytest.raises(sf.ProviderError, match=r"0\.parquet, block 0, a row that prepare made, column 'z'"):
        list(sf.Loader(folder, **options))
    quarantine = sf.BadRows("quarantine", tmp_path / "bad.arrow")
    loader = sf.Loader(folder, **options, bad_rows=quarantine)
    rows = sum(batch.num_rows for batch in loader)
    bad = sf.open(tmp_path / "bad.arrow")
    assert rows + bad.num_rows == sum(-(-len(row) // 3) for row in LISTS)
    assert loader.stats().bad_rows == bad.num_rows


@pytest.mark.parametrize(
    "plan",
    [
        sf.Rows(7, max_length=6),
        sf.TokenBudget(20, oversize="skip", min_length=3),
        sf.TokenBudget(5, oversize="split", columns=("x",)),
        sf.Buckets(3, sf.Rows(4, drop_last=True)),
        sf.Buckets((3, 6), sf.TokenBudget(30, padded=True, multiple_of=4)),
        TOGETHER,
        sf.Packed(5, ("x", "y"), oversize="truncate", rows=2, strategy="first_fit", drop_last=True),
        sf.Packed(8, ("x", "y"), oversize="bad_rows", rows=2, strategy="concat"),
    ],
    ids=repr,
)
def test_a_lengths_index_counts_the_batches_of_every_plan(folder, tmp_path, plan):
    columns = ["x"] if plan.columns is None or plan.columns == ("x",) else ["x", "y"]
    loader = sf.Loader(
        folder, columns=columns, batch=plan, window=700, shuffle=True, bad_rows="skip",
        index=tmp_path / "lengths.arrow",
    )  # fmt: skip
    expected = len(loader)
    assert sum(1 for _ in loader) == expected > 3


def test_filtered_and_dropped_rows_are_counted(folder):
    loader = sf.Loader(folder, columns=["x"], batch=sf.Rows(8, drop_last=True, max_length=6))
    assert sum(batch.num_rows for batch in loader) == 40
    assert (loader.stats().skipped, loader.stats().dropped) == (18, 2)


def test_a_first_column_that_is_not_there_is_named_as_the_others_are():
    with pytest.raises(
        sf.OpError, match=r"columns has 'token', which is not a list column \(did you mean 'tokens'\?\)"
    ):
        next(iter(sf.Loader(pa.table({"tokens": [[1, 2]]}), batch=sf.Packed(4, ("token",)))))


def test_a_column_that_comes_along_by_itself_is_told_so():
    with pytest.raises(
        sf.OpError,
        match=r"'id', which is not a list column\n  leave it out: .* comes along by itself; there are tokens$",
    ):
        next(iter(sf.Loader(pa.table({"tokens": [[1, 2]], "id": [1]}), batch=sf.Packed(4, ("tokens", "id")))))
