"""Which rows make a batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import LodError, OpError
from seqflow.errors import BatchPlanError
from seqflow.loader.batching import Rows, TokenBudget, batches
from seqflow.loader.plan_options import planned_lengths
from seqflow.record import Record

LENGTHS = st.lists(st.lists(st.integers(0, 6), max_size=8), max_size=5)


def record(lengths, first=0):
    lengths = np.array(lengths, np.int64)
    values = np.arange(first, first + lengths.sum())
    return Record(
        {"x.lengths": lengths, "x.values": values},
        {"x.lengths": None, "x.values": "x.lengths"},
        len(lengths),
        None,
    )


def stream(blocks):
    first = 0
    for lengths in blocks:
        yield record(lengths, first)
        first += sum(lengths)


@given(LENGTHS, st.integers(1, 9), st.booleans())
def test_rows_are_cut_every_n_across_the_borders_of_blocks(blocks, n, drop_last):
    flat = [length for lengths in blocks for length in lengths]
    found = list(batches(stream(blocks), Rows(n, drop_last), "x.lengths"))
    expected = [flat[i : i + n] for i in range(0, len(flat), n)]
    if drop_last and expected and len(expected[-1]) < n:
        expected.pop()
    assert [batch["x.lengths"].tolist() for batch in found] == expected
    values = [value for batch in found for value in batch["x.values"].tolist()]
    assert values == list(range(sum(sum(lengths) for lengths in expected)))


@given(LENGTHS, st.integers(6, 20), st.booleans(), st.none() | st.integers(1, 4))
def test_a_budget_takes_as_many_rows_as_fit_and_no_more(blocks, budget, padded, max_rows):
    flat = [length for lengths in blocks for length in lengths]
    found = [
        batch["x.lengths"].tolist()
        for batch in batches(stream(blocks), TokenBudget(budget, padded, max_rows), "x.lengths")
    ]
    assert [length for batch in found for length in batch] == flat

    def cost(rows):
        return len(rows) * max(rows) if padded else sum(rows)

    for batch, following in zip(found, [*found[1:], None], strict=False):
        assert cost(batch) <= budget
        assert max_rows is None or len(batch) <= max_rows
        if following and (max_rows is None or len(batch) < max_rows):
            assert cost([*batch, following[0]]) > budget


def test_a_row_longer_than_the_budget_is_an_error_that_says_what_to_do():
    with pytest.raises(
        LodError, match=r"row 1 has 7 tokens, expected at most max_tokens = 5\n.*truncate or split"
    ):
        list(batches([record([1, 7])], TokenBudget(5), "x.lengths"))


@pytest.mark.parametrize(
    "make", [lambda: Rows(0), lambda: Rows(True), lambda: TokenBudget(-1), lambda: TokenBudget(1, max_rows=0)]
)
def test_counts_are_one_or_more(make):
    with pytest.raises(OpError, match="expected an integer, 1 or more"):
        make()


def test_the_only_list_column_of_numbers_is_planned_on():
    two = Record(
        {
            "x.lengths": np.array([1]),
            "x.values": np.array([5]),
            "s.lengths": np.array([1]),
            "s.values": np.array(["a"]),
        },
        {"x.lengths": None, "x.values": "x.lengths", "s.lengths": None, "s.values": "s.lengths"},
        1,
        None,
    )
    assert planned_lengths(two, None) == "x.lengths"
    assert planned_lengths(record([1]), "x.lengths") == "x.lengths"
    with pytest.raises(
        LodError, match=r"'y' are not the lengths of a list column of numbers\n  there are x.lengths"
    ):
        planned_lengths(record([1]), "y")
    none = Record({"a": np.array([1])}, {"a": None}, 1)
    assert planned_lengths(none, None) is None
    with pytest.raises(BatchPlanError, match="Packed: there is not just one list column of numbers"):
        planned_lengths(none, None, needed_by="Packed")
