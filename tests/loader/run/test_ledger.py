"""Each row of a window is in one column of its ledger."""

from hypothesis import given
from hypothesis import strategies as st

from seqflow.loader.run.ledger import Ledger, Rejected, Stats, add_columns, move
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
