"""Counts that are shown are true: together they are the rows of the source, in every mode."""

import json
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.job import Job, run
from seqflow.loader.run.ledger import Stats

ROWS = 41
LENGTHS = [(i * 7) % 6 for i in range(ROWS)]
BAD = 13


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Rows of 0 to 5 tokens, of which packing skips the empty ones, in row groups of 4. Row 13 has an index that no table has, so `net` can refuse it."""
    tokens = pa.array([[i] * n for i, n in enumerate(LENGTHS)], pa.list_(pa.int64()))
    table = pa.table(
        {"id": list(range(ROWS)), "tokens": tokens, "at": [9 if i == BAD else 0 for i in range(ROWS)]}
    )
    path = tmp_path_factory.mktemp("counts") / "x.parquet"
    pq.write_table(table, path, row_group_size=4)
    return path


PLANS = {
    "rows": sf.Rows(3),
    "rows, short ones dropped": sf.Rows(3, drop_last=True),
    "rows of some lengths": sf.Rows(3, min_length=1, max_length=4),
    "rows of some lengths, short ones dropped": sf.Rows(3, drop_last=True, min_length=2),
    "budget": sf.TokenBudget(6),
    "budget, short ones dropped": sf.TokenBudget(6, drop_last=True),
    "budget that splits rows": sf.TokenBudget(3, oversize="split"),
    "budget that splits rows, short ones dropped": sf.TokenBudget(3, oversize="split", drop_last=True),
    "budget that truncates rows": sf.TokenBudget(3, oversize="truncate"),
    "budget that skips rows": sf.TokenBudget(3, oversize="skip"),
    "budget that refuses rows": sf.TokenBudget(3, oversize="bad_rows"),
    "buckets": sf.Buckets((2, 4), sf.Rows(3)),
    "buckets, short ones dropped": sf.Buckets((2, 4), sf.Rows(3, drop_last=True)),
    "buckets that split rows": sf.Buckets((2,), sf.TokenBudget(3, oversize="split")),
    "packed": sf.Packed(4, rows=2),
    "packed one after another": sf.Packed(4, rows=2, strategy="concat"),
    "packed, short ones dropped": sf.Packed(4, rows=2, drop_last=True),
    "packed of some lengths": sf.Packed(4, rows=2, min_length=3, oversize="skip"),
}
NETS = {
    "as it is": {},
    "rows are refused by prepare": {
        "prepare": "z = gather(c, at)\nreturn z, id, tokens.lengths, tokens.values"
    },
    "rows are refused by net": {"net": "z = gather(c, at)\nreturn z, id"},
}
WINDOWS = [1, 300, 600, 1 << 20]
ORDERS = [(300, None), (1, None), (600, True), (1 << 20, None)]
DIFFERENT = [
    "rows of some lengths, short ones dropped", "budget, short ones dropped", "budget that splits rows",
    "buckets, short ones dropped", "packed, short ones dropped",
]  # fmt: skip
"""Plans that lose or divide rows, each in its own way."""


def loader_of(path, plan, net, **options):
    constants = {"constants": {"c": np.zeros(2)}} if NETS[net] else {}
    return sf.Loader(
        path, batch=PLANS[plan], bad_rows="skip", **NETS[net], **constants, **{"threads": 0, **options}
    )


def total(stats):
    return stats.rows + stats.rows_left + stats.dropped + stats.skipped + stats.bad_rows


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("net", NETS)
def test_all_rows_of_an_epoch_are_counted_once(path, plan, net, tmp_path):
    for window, shuffle in ORDERS if net == "as it is" else ORDERS[:1]:
        found = []
        for number in range(3):  # without an index, while it is made, and with it
            index = {} if number == 0 else {"index": tmp_path / f"{window}{shuffle}.arrow"}
            loader = loader_of(path, plan, net, window=window, shuffle=shuffle, **index)
            handed_out = set()
            for batch in loader:
                handed_out |= set(batch["id"].tolist())
            stats = loader.stats()
            assert (total(stats), stats.rows_left) == (ROWS, 0), (window, shuffle, number, stats)
            assert stats.rows_done == stats.rows_read
            if "split" not in plan and "packed" not in plan:
                assert stats.rows == len(handed_out)
            found.append((stats.rows, stats.dropped, stats.skipped, stats.bad_rows, sorted(handed_out)))
        assert found[0] == found[1] == found[2], (window, shuffle)


@pytest.mark.each_choice
@pytest.mark.parametrize("plan", DIFFERENT)
@pytest.mark.parametrize("tail", ["drop", "pad", "repeat"])
@pytest.mark.parametrize("indexed", [False, True])
def test_each_of_several_ranks_counts_the_rows_of_all_windows_that_it_reads(
    path, plan, tail, indexed, tmp_path
):
    for window in (300, 1 << 20):
        index = {"index": tmp_path / f"{window}.arrow"} if indexed else {}
        if indexed:
            list(loader_of(path, plan, "as it is", window=window, **index))
        rows = dropped = 0
        for rank in range(3):
            loader = loader_of(
                path, plan, "as it is", window=window, rank=rank, world_size=3, tail=tail, **index
            )
            handed_out = [batch.num_rows for batch in loader]
            stats = loader.stats()
            if not indexed:  # else it reads only windows of which it makes batches
                assert total(stats) == ROWS
            assert stats.batches == len(handed_out)
            rows, dropped = rows + stats.rows, dropped + stats.dropped
        whole = loader_of(path, plan, "as it is", window=window)
        list(whole)
        if tail != "drop":
            assert rows == whole.stats().rows
        assert rows <= whole.stats().rows


PREPARED: list[int] = []


def prepared(record):
    """The record as it is; notes its rows."""
    PREPARED.extend(record["id"].tolist())
    return record


@pytest.mark.parametrize("policy", ["raise", "skip"])
@pytest.mark.parametrize("world_size", [1, 2])
def test_windows_without_batches_are_counted_from_the_index_where_no_row_can_be_bad(
    tmp_path, policy, world_size
):
    """Blocks of 4 rows are windows; rows of every third one are too long, those of the first ones too."""
    lengths = [9 if i // 4 % 3 == 0 or i < 8 or i >= 36 else 2 for i in range(ROWS)]
    tokens = pa.array([[i] * n for i, n in enumerate(lengths)], pa.list_(pa.int64()))
    pq.write_table(pa.table({"id": range(ROWS), "tokens": tokens}), tmp_path / "x.parquet", row_group_size=4)
    options = {
        "batch": sf.Rows(3, max_length=4, drop_last=True), "bad_rows": policy, "window": 200, "threads": 0,
        "prepare": prepared, "version": "1", "tail": "pad",
    }  # fmt: skip
    whole = sf.Loader(tmp_path / "x.parquet", **options)
    expected = [batch["id"].tolist() for batch in whole]
    sf.Loader(tmp_path / "x.parquet", **options, index=tmp_path / "i.arrow").lengths_index()
    PREPARED.clear()
    names = ("rows", "rows_read", "rows_left", "dropped", "skipped", "bad_rows")
    found = []
    for rank in range(world_size):
        loader = sf.Loader(
            tmp_path / "x.parquet", **options, index=tmp_path / "i.arrow", rank=rank, world_size=world_size
        )
        found += [(batch.number, batch["id"].tolist()) for batch in loader if batch.num_rows]
        stats = loader.stats()
        assert total(stats) == stats.rows_read
        if world_size == 1:
            assert [getattr(stats, name) for name in names] == [
                getattr(whole.stats(), name) for name in names
            ]
    assert [ids for _, ids in sorted(found)] == expected
    assert (set(PREPARED) == set(range(ROWS))) == (policy == "skip")


def test_windows_without_batches_are_read_where_their_rows_are_not_known(tmp_path):
    """Lines have no count of rows; a window whose rows are all above the budget is an error, as without an index."""
    path, index = tmp_path / "x.jsonl", tmp_path / "i.arrow"
    lines = [json.dumps({"id": i, "tokens": [i] * (9 if i < 9 else 2)}) + "\n" for i in range(30)]
    path.write_text("".join(lines))
    options = {"window": 1, "threads": 0, "index": index}
    provider = sf.open(path, format=sf.JsonLines(batch_bytes=len(lines[0]) * 2))
    filtered = sf.Loader(provider, batch=sf.Rows(3, max_length=4), **options)
    filtered.lengths_index()
    list(filtered)
    assert (total(filtered.stats()), filtered.stats().skipped, filtered.stats().rows_left) == (30, 9, 0)
    with pytest.raises(sf.ProviderError, match="9 elements, expected at most max_tokens = 8"):
        list(sf.Loader(provider, batch=sf.TokenBudget(8), **options))


@pytest.mark.parametrize("plan", ["rows", "rows, short ones dropped", "budget", "packed"])
def test_counts_are_true_inside_an_epoch(path, plan):
    for window in WINDOWS:
        loader = loader_of(path, plan, "as it is", window=window)
        done = []
        for _ in loader:
            stats = loader.stats()
            done.append(stats.rows_done)
            assert 0 <= stats.rows_done <= ROWS
        assert done == sorted(done)
        assert not done or done[0] < ROWS
        assert loader.stats().rows_done == ROWS


@pytest.mark.each_choice
@pytest.mark.parametrize("plan", DIFFERENT)
@pytest.mark.parametrize("net", NETS)
def test_the_report_of_a_job_adds_up(path, plan, net, tmp_path):
    """Also where it goes on behind a part, and the same with an index."""
    np.save(tmp_path / "c.npy", np.zeros(2))
    reports = []
    for number in range(2):
        plan_of = PLANS[plan]
        job = Job.from_dict(
            {
                "source": {"paths": str(path)},
                "order": {"window": 300, "index": str(tmp_path / "i.arrow")},
                "batch": {"kind": "rows", "n": 1},
                "output": {"path": str(tmp_path / f"out{number}"), "part_bytes": 100},
                "bad_rows": {"policy": "quarantine", "path": str(tmp_path / f"bad{number}.parquet")},
                **({"constants": {"c": str(tmp_path / "c.npy")}} if NETS[net] else {}),
                **{name: {"net": text} for name, text in NETS[net].items()},
            },
            str(tmp_path),
        )
        object.__setattr__(job, "batch", plan_of)
        report = run(job)
        assert report.rows + report.dropped + report.skipped + report.bad_rows == ROWS
        quarantine = tmp_path / f"bad{number}.parquet"
        assert (pq.read_table(quarantine).num_rows if quarantine.exists() else 0) == report.bad_rows
        reports.append((report.rows, report.dropped, report.skipped, report.bad_rows, report.batches))
    assert reports[0] == reports[1]


def test_rows_that_are_done_are_a_part_of_those_that_are_read():
    assert Stats(rows=10, rows_read=100, rows_left=30).rows_done == 25
    assert Stats().rows_done == 0


@pytest.mark.each_choice
@pytest.mark.parametrize("tail", ["pad", "repeat", "drop"])
@pytest.mark.parametrize("plan", ["rows", "budget", "packed"])
def test_each_rank_goes_on_from_the_state_of_any_rank(path, plan, tail):
    def make(rank, world_size):
        return loader_of(path, plan, "as it is", window=300, rank=rank, world_size=world_size, tail=tail)

    def plain(batch):
        return {name: array.tolist() for name, array in batch.items()}

    whole = [[plain(batch) for batch in make(rank, 3)] for rank in range(3)]
    for of in range(3):
        for steps in {1, len(whole[of]) // 2 + 1, len(whole[of])}:
            loader = make(of, 3)
            batches = iter(loader)
            for _ in range(steps):
                next(batches)
            state = json.loads(json.dumps(loader.state_dict()))
            for rank in range(3):
                resumed = make(rank, 3)
                resumed.load_state_dict(state)
                assert [plain(batch) for batch in resumed] == whole[rank][steps:], (of, steps, rank)


@pytest.mark.parametrize("options", [{}, {"world_size": 2, "rank": 0}, {"window": 300}])
@pytest.mark.parametrize("plan", ["rows", "budget"])
def test_a_state_behind_the_end_is_refused(path, plan, options):
    loader = loader_of(path, plan, "as it is", **options)
    state = {**loader.state_dict(), "batch": 10**6}
    resumed = loader_of(path, plan, "as it is", **options)
    resumed.load_state_dict(state)
    with pytest.raises(sf.OpError, match="the epoch has"):
        list(resumed)


def test_a_state_of_a_mix_behind_the_end_is_refused(path):
    mix = sf.Mix({str(path): 1.0}, batch=3)
    resumed = sf.Mix({str(path): 1.0}, batch=3)
    resumed.load_state_dict({**mix.state_dict(), "batch": 10**6})
    with pytest.raises(sf.OpError, match="the epoch has"):
        list(resumed)


@pytest.mark.each_choice
@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize("tail", ["drop", "repeat"])
@pytest.mark.parametrize("plan", ["rows", "rows, short ones dropped", "budget"])
def test_a_mix_counts_what_its_sources_count_in_all_passes(path, plan, tail, stop):
    net = {**NETS["rows are refused by net"], "constants": {"c": np.zeros(2)}, "bad_rows": "skip"}
    for window, rank in product((1, 300), (0, 1)):
        table = pq.read_table(path).slice(0, 17)
        options = {"batch": PLANS[plan], "window": window, "rank": rank, "world_size": 2, "tail": tail, **net}
        sources = [sf.Loader(one, **options) for one in (path, table)]
        mix = sf.Mix(dict.fromkeys(sources, 1.0), stop=stop)
        handed_out, before = 0, 0
        if window == 1 and "dropped" in plan:  # windows of one row have no batch
            with pytest.raises(sf.OpError, match=r"fewer batches than world_size|has no batch"):
                list(mix)
            continue
        for batch in mix:
            handed_out += batch.num_rows
            assert mix.stats().rows + mix.stats().repeated == handed_out
            assert mix.stats().rows_read >= before
            before = mix.stats().rows_read
        assert total(mix.stats()) == mix.stats().rows_read


def test_stats_are_shown_as_a_table_of_what_is_not_0(path):
    loader = sf.Loader(path, columns=["tokens"], batch=sf.TokenBudget(6))
    list(loader)
    stats = loader.stats()
    text, shown = repr(stats), dict(stats.lines())
    assert (shown["rows"], shown["batches"]) == (str(stats.rows), str(stats.batches))
    assert shown["fill"] == f"{stats.fill:.2%}"
    assert text.splitlines()[0] == "Stats"
    assert [line.split()[0] for line in text.splitlines()[1:]] == [name.split()[0] for name in shown]
    assert len({len(line) for line in text.splitlines()[1:]}) == 1
    assert "bad rows" not in shown
    html = stats._repr_html_()
    assert html.count("<tr>") == len(shown)
    assert 'scope="row"' in html


def test_stats_before_there_are_any_show_what_is_counted():
    assert Stats().lines() == [("rows", "0"), ("tokens", "0"), ("batches", "0")]


def test_names_of_totals_are_shown_and_cannot_be_markup():
    stats = Stats()
    stats.without["<b>"] = 1234
    assert stats.lines()[-1] == ("rows without <b>", "1,234")
    assert "<b>" not in stats._repr_html_()
