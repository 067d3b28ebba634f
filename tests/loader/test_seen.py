"""Ledgers and found rows: what batches hold is known from numbers, lengths and counts, without making them."""

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.loader.seen import batches_of_rows

PLANS = {
    "rows": sf.Rows(7),
    "dropped": sf.Rows(7, drop_last=True),
    "tokens": sf.TokenBudget(20, lengths="t.lengths"),
    "omitted": sf.TokenBudget(20, lengths="t.lengths", max_length=4, oversize="skip"),
    "buckets": sf.Buckets(3, sf.TokenBudget(20, lengths="t.lengths")),
    "packed": sf.Packed(8, columns=["t"], rows=2),
    "balanced": sf.Packed(8, columns=["t"], rows=2, balance=sf.Balance(2, 2, linear=0)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three files of 100 rows, in blocks of 17; ids are 1,000 times the number of the file, plus the row."""
    folder = tmp_path_factory.mktemp("seen")
    for number in range(3):
        ids = range(1000 * number, 1000 * number + 100)
        table = pa.table({"id": pa.array(ids), "t": [[row] * (row % 6) for row in ids]})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=17)
    return folder


def loader(folder, plan, index=True, **options):
    columns = ["t"] if isinstance(plan, sf.Packed) else None
    found = sf.Loader(
        [folder / f"{number}.parquet" for number in range(3)], plan, columns=columns, shuffle=sf.Shuffle(1),
        window=700, index=folder / f"{type(plan).__name__}.arrow" if index else None, **options,
    )  # fmt: skip
    if index:
        found.lengths_index(update=True)
    return found


def traced(of, numbers):
    """Rows by file, tokens, and places of rows, by making and tracing each batch."""
    rows, tokens, places = Counter(), 0, {}
    for number in numbers:
        for one in of.trace(number):
            tokens += one.elements or 0
            rows[one.file] += not one.element
            places.setdefault((one.file, 17 * one.block + one.row), set()).add(number)
        batch = of.batch_at(number)
        tokens += (
            int(batch["t.lengths"].sum())
            if "t.lengths" in batch and not isinstance(of.batch, sf.Packed)
            else 0
        )
    return rows, tokens, places


@pytest.mark.parametrize("index", [True, False], ids=["index", "read"])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_ledger_has_the_rows_and_tokens_that_batches_have(folder, plan, index, caplog):
    of = loader(folder, plan, index, skip=[(2, 4)])
    numbers = [batch.number for batch in of.take(12)]
    rows, tokens, places = traced(of, numbers)
    caplog.clear()
    found = of.ledger(numbers[-1] + 1)
    assert ("windows are read" in caplog.text) == (not of.pipeline.plans_by_lengths) == (not index)
    assert {one.file: one.rows for one in found.by_file if one.rows} == rows
    assert (found.batches, [one.tokens for one in found.by_source]) == (12, [tokens])
    assert [one.rows / 300 for one in found.by_source] == [one.epochs for one in found.by_source]
    for file, row in list(places)[::20]:
        batches = {one.batch for one in of.find(file, row) if one.batch <= numbers[-1]}
        assert batches == places[file, row]
    assert found.digest == loader(folder, plan, skip=[(2, 4)]).ledger(numbers[-1] + 1).digest
    assert found.digest != loader(folder, plan).ledger(numbers[-1] + 1).digest


def test_nothing_is_read_where_lengths_are_known(folder, tmp_path):
    files = []
    for name in ("0.parquet", "1.parquet", "2.parquet"):
        files.append(tmp_path / name)
        files[-1].write_bytes((folder / name).read_bytes())
    index = tmp_path / "index.arrow"
    of = sf.Loader(files, PLANS["tokens"], window=700, shuffle=sf.Shuffle(1), index=index)
    of.lengths_index()
    end = sum(1 for _ in of)
    whole = of.ledger(0)
    assert [one.rows for one in whole.by_source] == [300]
    stats = {path: path.stat() for path in files}
    again = sf.Loader(files, PLANS["tokens"], window=700, shuffle=sf.Shuffle(1), index=index)
    again.ledger(1)  # files are looked at once
    for path in files:
        size = stats[path].st_size
        path.write_bytes(bytes(size))
    assert again.ledger(end).digest == whole.digest


def test_a_batch_after_the_end_of_an_epoch_is_an_error_that_says_the_last(folder):
    of = [loader(folder, PLANS["rows"], rank=rank, world_size=4) for rank in range(2)]
    end = len(of[0]) * 4 + 3  # a last round is not full
    assert of[0].ledger(end).batches == of[1].ledger(end + 1).batches
    for ask in (lambda: of[0].ledger(end + 2), lambda: batches_of_rows(of[0].pipeline, [], 0, end + 2)):
        with pytest.raises(
            sf.OpError, match=rf"upto is {end + 2}, expected {end + 1} or less: epoch 0 has no more"
        ):
            ask()


def test_earlier_epochs_count_and_a_dropped_round_does_not(folder):
    ranks = [loader(folder, PLANS["rows"], rank=rank, world_size=4) for rank in range(4)]
    for of in ranks:
        list(of)
        batches = iter(of)
        next(batches)
        next(batches)
        batches.close()
    found = [of.ledger() for of in ranks]
    # 43 batches: 10 rounds of 4, and two rounds of the next epoch
    assert {(one.epoch, one.upto, one.batches) for one in found} == {(1, 8, 48)}
    assert len({one.digest for one in found}) == 1
    assert found[0].by_source[0].rows == 48 * 7


def test_files_are_found_by_their_paths_and_rows_inside_them(folder, monkeypatch):
    of = loader(folder, PLANS["rows"])
    monkeypatch.chdir(folder)
    assert of.find("0.parquet", 99) == of.find(folder / "0.parquet", 99) != []
    with pytest.raises(sf.OpError, match="find: row is 100, expected 0 to 99, the rows of"):
        of.find("0.parquet", 100)
    with pytest.raises(sf.OpError, match=r"find: '9\.parquet' is not a file of the source"):
        of.find("9.parquet", 0)
    made = sf.Loader(folder / "0.parquet", sf.Rows(4), prepare=halved)
    with pytest.raises(sf.OpError, match="find: halved makes new rows, which are not known in the source"):
        made.find("0.parquet", 0)


def halved(record):
    return {"id": record["id"][::2]}


def test_a_mix_plans_its_passes(folder):
    sources = {"a": folder / "0.parquet", "b": folder / "1.parquet"}
    mix = sf.Mix(sources, weights={"a": 3, "b": 1}, batch=10, stop="all", world_size=2, rank=0)
    a, b = mix.plan(steps=10)
    assert (a.share, a.rows, a.passes) == (0.75, 150, 1.5)
    assert (b.share, b.rows, b.passes, b.ends) == (0.25, 50, 0.5, ())
    (end,) = a.ends
    counts = Counter(one // 1000 for batch in mix_of_all(mix, end) for one in batch)
    assert 95 <= counts[0] <= 107
    assert "a: 75.00%, 20 batches, 150 rows, 1.50 passes, which end before batches 1" in str(a)


def mix_of_all(mix, stop):
    return [mix.batch_at(number)["id"].tolist() for number in range(stop)]


def test_a_plan_goes_on_with_the_next_epoch(folder):
    sources = {"a": folder / "0.parquet", "b": folder / "1.parquet"}
    mix = sf.Mix(sources, weights={"a": 1, "b": 1}, batch=10)
    length = len(mix)
    a, b = mix.plan(steps=3 * length)
    assert (round(a.rows + b.rows), a.batches) == (30 * length, 3 * length)
    assert 2.7 <= a.passes <= 3


def test_a_plan_of_sources_with_unknown_rows_has_shares_alone(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text('{"x": 1}\n' * 20)
    mix = sf.Mix({name: tmp_path / f"{name}.jsonl" for name in "ab"}, weights={"a": 3, "b": 1}, batch=2)
    assert [(one.batches, one.rows, one.passes) for one in mix.plan(steps=8)] == [
        (6, None, None),
        (2, None, None),
    ]


def test_stats_of_a_mix_have_its_sources(folder):
    sources = {"a": folder / "0.parquet", "b": folder / "1.parquet"}
    mix = sf.Mix(sources, weights={"a": 3, "b": 1}, batch=10, stop="all")
    rows = Counter("ab"[one // 1000] for batch in mix for one in batch["id"].tolist())
    found = mix.stats().sources
    assert {name: one.rows for name, one in found.items()} == rows
    assert found["a"].passes >= 2
    assert "a: rows, tokens, passes" in repr(mix.stats())
