"""Each row of a window is in one column of its ledger."""

import json
from dataclasses import asdict, make_dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import OpError, ProviderError
from seqflow.loader.run.ledger import BadRows, Ledger, Reasons, Rejected, Stats, add_columns, move
from seqflow.providers import Block
from seqflow.record import BadRow

COLUMNS = ("rows_left", "dropped", "skipped")
MOVES = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(COLUMNS), st.sampled_from(COLUMNS)))


def rejected(count):
    """Rows that are bad in two columns each."""
    bad = tuple(BadRow(row, column, "wrong") for row in range(count) for column in "ab")
    return Rejected(bad, (None,) * len(bad), Block("x", 0, 100, 0), lambda: None)


def sum_of(ledger):
    return ledger.rows_left + ledger.dropped + ledger.skipped + ledger.bad_rows


@given(st.integers(0, 99), st.integers(0, 99), MOVES, st.lists(st.integers(0, 9)))
def test_rows_that_have_come_in_stay_in_the_ledger(rows, filtered, moves, refusals):
    ledger = Ledger.of_source(rows, filtered)
    for count in refusals:
        ledger.reject(rejected(count))
    for count, source, target in moves:
        move(ledger, count, source, target)
    assert sum_of(ledger) == rows + filtered
    assert ledger.rows_read == rows - ledger.bad_rows


def test_rows_that_are_refused_after_prepare_were_read():
    ledger = Ledger.of_source(5, 0)
    ledger.reject(rejected(2), is_prepared=True)
    assert (ledger.rows_read, ledger.rows_left, ledger.bad_rows) == (5, 3, 2)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 3))))
def test_the_ledger_of_a_window_is_the_sum_of_those_of_its_slices(slices):
    window, stats = Ledger(), Stats()
    for rows, filtered, refused in slices:
        one = Ledger.of_source(rows, filtered)
        one.reject(rejected(refused))
        window.add(one)
    assert sum_of(window) == sum(rows + filtered for rows, filtered, _ in slices)
    assert window.bad_rows == sum(refused for *_, refused in slices)
    add_columns(stats, window)
    assert stats.rows_left + stats.skipped == sum_of(window) - window.bad_rows


def reasons_of(*texts):
    rows = tuple(BadRow(row, "a", text, kind) for row, (text, kind) in enumerate(texts))
    return Rejected(rows, (None,) * len(rows), Block("x", 0, 100, 0), lambda: None).reasons


def test_bad_rows_are_counted_by_column_and_reason_without_values():
    assert reasons_of(("null", ""), ("7 is odd", "… is odd"), ("9 is odd", "… is odd")) == {
        "a: null": 1,
        "a: … is odd": 2,
    }


def test_a_row_that_is_bad_in_two_columns_counts_with_the_first():
    assert rejected(3).reasons == {"a: wrong": 3}


@given(st.lists(st.dictionaries(st.integers(0, 40).map(str), st.integers(1, 9))))
def test_reasons_after_the_first_twenty_count_together(parts):
    found = sum(parts, Reasons())
    assert found.total() == sum(sum(part.values()) for part in parts)
    known = list(dict.fromkeys(reason for part in parts for reason in part))[:20]
    assert [*found] == known + ["other"] * (len({name for part in parts for name in part}) > 20)


def test_reasons_survive_json_and_copies_of_dataclasses():
    stats = Stats(reasons=Reasons({"a: null": 3}))
    assert Reasons(json.loads(json.dumps(stats.reasons))) == stats.reasons
    assert asdict(make_dataclass("Saved", ["counts"])({"reasons": stats.reasons})) == {
        "counts": {"reasons": {"a: null": 3}}
    }
    assert "bad rows, a: null" in repr(stats)


def test_the_option_that_left_rows_out_is_counted():
    assert Stats(filtered=5, filtered_by_keep=2).filtered_by == {"where": 3, "keep": 2}
    assert Stats(filtered=2, filtered_by_keep=2).filtered_by == {"keep": 2}


def holes(rows: int, each: int) -> dict[str, list[int | None]]:
    return {"x": [None if row % each == each - 1 else row for row in range(rows)]}


def test_an_epoch_stops_with_the_batch_after_which_too_many_rows_are_bad() -> None:
    loader = sf.Loader(holes(1000, 10), batch=10, window=800, bad_rows=BadRows("skip", max=20))
    with pytest.raises(
        ProviderError, match=r"bad_rows: \d+ of \d+ are bad, expected at most 20 \(max\)"
    ) as caught:
        list(loader)
    assert 100 <= loader.stats().rows <= 500
    assert "x: null value in x; the first: " in str(caught.value)
    assert len(list(sf.Loader(holes(200, 10), batch=10, bad_rows=BadRows("skip", max=20)))) == 18


def test_the_share_of_bad_rows_is_that_of_the_epoch() -> None:
    data = {"x": [None] * 10 + list(range(990))}
    assert list(sf.Loader(data, batch=10, window=800, bad_rows=BadRows("skip", max_share=0.01)))
    with pytest.raises(
        ProviderError, match=r"10 of 1,000 are bad, expected at most 0\.009 of them \(max_share\)"
    ):
        list(sf.Loader(data, batch=10, window=800, bad_rows=BadRows("skip", max_share=0.009)))
    mix = sf.Mix(
        {"a": holes(100, 10), "b": holes(100, 5)}, weights={"a": 1, "b": 1}, batch=10, stop="all",
        bad_rows=BadRows("skip", max=25),
    )  # fmt: skip
    with pytest.raises(ProviderError, match=r"expected at most 25 \(max\)"):
        list(mix)


@pytest.mark.parametrize(
    ("policy", "bounds", "message"),
    [
        ("raise", {"max": 3}, "BadRows: max is given, expected policy 'skip' or 'quarantine'"),
        ("skip", {"max": -1}, "BadRows: max is -1, expected 0 or more"),
        ("skip", {"max_share": 1.5}, "BadRows: max_share is 1.5, expected 0 to 1"),
        ("skip", {"max_share": float("nan")}, "BadRows: max_share is nan, expected 0 to 1"),
    ],
)
def test_bounds_that_mean_nothing_are_refused(policy: str, bounds: dict[str, float], message: str) -> None:
    with pytest.raises(OpError, match=message):
        BadRows(policy, **bounds)  # type: ignore[arg-type]
