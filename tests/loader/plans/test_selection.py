"""Filters by length, and rows above the budget."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from windows_of import lists, made, window_of, without

import seqflow as sf
from seqflow import OpError
from seqflow.errors import BatchPlanError
from seqflow.loader import Buckets, Packed, Pad, Rows, TokenBudget

BLOCKS = st.lists(st.lists(st.integers(0, 12), max_size=8), min_size=1, max_size=4)
KEYS = st.none() | st.integers(0, 99)


@given(BLOCKS, KEYS, st.integers(1, 6), st.integers(0, 6))
def test_rows_outside_the_lengths_are_left_out_and_counted(blocks, key, least, more):
    limits = {"min_length": least, "max_length": least + more}
    rows = window_of(blocks, key)
    expected = [row for row in lists(rows.take(slice(0, 99))) if least <= len(row) <= least + more]
    for plan in (Rows(3, **limits), TokenBudget(12, **limits), Buckets(2, Rows(3, **limits))):
        planned = plan.of_window(rows, "x.lengths")
        found = [row for batch in made(planned) for row in lists(batch)]
        assert sorted(found) == sorted(expected)
        assert planned.skipped == rows.num_rows - len(expected)
    packed = Packed(4, ("x", "y"), **limits).of_window(rows, "x.lengths")
    assert sum(batch["piece_lengths"].sum() for batch in made(packed)) == sum(map(len, expected))
    assert packed.skipped == rows.num_rows - len(expected)


@given(BLOCKS, KEYS, st.integers(1, 12), st.booleans())
def test_rows_above_the_budget_are_cut_where_asked(blocks, key, budget, padded):
    rows = window_of(blocks, key, label=range(100))
    whole = lists(rows.take(slice(0, 99)))
    labels = rows.take(slice(0, 99))["label"].tolist()
    pieces = {
        "truncate": [[row[:budget]] for row in whole],
        "split": [[row[i : i + budget] for i in range(0, max(len(row), 1), budget)] for row in whole],
        "skip": [[row] if len(row) <= budget else [] for row in whole],
    }
    for oversize, expected in pieces.items():
        columns = ("x", "y") if oversize != "skip" else None
        plan = TokenBudget(budget, padded, oversize=oversize, columns=columns)
        planned = plan.of_window(rows, "x.lengths")
        batches = made(planned)
        assert [row for batch in batches for row in lists(batch)] == [row for of in expected for row in of]
        assert [label for batch in batches for label in batch["label"].tolist()] == [
            label for label, of in zip(labels, expected, strict=True) for _ in of
        ]
        for batch in batches:
            if oversize != "skip":
                assert [[element * 10 for element in row] for row in lists(batch)] == lists(batch, "y")
        assert planned.skipped == sum(not of for of in expected)
        assert not planned.bad


@given(BLOCKS, KEYS, st.integers(1, 12))
def test_rows_above_the_budget_are_bad_rows_by_default(blocks, key, budget):
    rows = without(window_of(blocks, key), "y")
    flat = [length for lengths in blocks for length in lengths]
    for plan in (TokenBudget(budget), Packed(budget, oversize="bad_rows"), Buckets(2, TokenBudget(budget))):
        planned = plan.of_window(rows, "x.lengths")
        name = "capacity" if isinstance(plan, Packed) else "max_tokens"
        assert sorted(planned.bad) == [
            (row, "x", f"{length} elements, expected at most {name} = {budget}")
            for row, length in enumerate(flat)
            if length > budget
        ]
        tokens = sum(planned.size(number).tokens for number in range(len(planned)))
        assert tokens == sum(length for length in flat if length <= budget)


def unequal():
    """Three rows whose second has other lengths in y than in x."""
    rows = window_of([[2, 3, 1]])
    rows.records[0].tensors["y.lengths"][:] = [2, 1, 3]
    return rows


@pytest.mark.parametrize(
    "plan", [Packed(4, ("x", "y")), TokenBudget(2, oversize="split", columns=("x", "y"))]
)
def test_rows_whose_columns_have_different_lengths_are_bad_rows(plan):
    planned = plan.of_window(unequal(), "x.lengths")
    assert planned.bad == [
        (1, "y", "1 elements, but 3 in 'x': they are cut together"),
        (2, "y", "3 elements, but 1 in 'x': they are cut together"),
    ]
    assert sum(planned.size(number).tokens for number in range(len(planned))) == 2
    made(planned)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Packed(4), "Packed: the list column 'y' is neither cut nor left out\n.*columns= to cut it like 'x'"),
        (TokenBudget(4, oversize="split"), "TokenBudget: the list column 'y' is neither cut nor left out"),
        (Packed(4, ("x", "z")), "Packed: columns has 'z', which is not a list column\n  there are x, y"),
        (Packed(4, ("x", "y"), {"x": 0.5}), "has 'x', which is 0.5, which int64 cannot hold"),
        (Packed(4, fills={"z": 1}), "the list column 'y'"),
        (
            Packed(4, ("y",), lengths="x"),
            "lengths are x.lengths, expected those of a column that is cut, y.lengths",
        ),
    ],
)
def test_columns_that_cannot_be_cut_together_are_refused(plan, message):
    with pytest.raises(OpError, match=message):
        plan.of_window(window_of([[2, 3, 1]]), "x.lengths")


def test_a_column_that_is_padded_needs_not_be_cut():
    rows = window_of([[2, 3, 1]])
    planned = Packed(2).of_window(replace(rows, pads={"y": Pad(-1)}), "x.lengths", 0, 0)
    (batch,) = made(planned)
    assert batch.parents["y"] == "pieces"
    assert batch["y"].shape == (4, 3)
    with pytest.raises(BatchPlanError, match="pad has 'x', which is packed"):
        Packed(2).of_window(replace(rows, pads={"x": Pad(), "y": Pad()}), "x.lengths")


def test_rows_are_cut_before_they_are_padded():
    rows = replace(window_of([[2, 5, 1]]), pads={"x": Pad(-1), "y": Pad(-2, mask=False)})
    planned = TokenBudget(4, padded=True, oversize="split", columns=("x",)).of_window(rows, "x.lengths")
    first, second, third = made(planned)
    assert first["x"].tolist() == [[0, 1]]
    assert second["x"].tolist() == [[2, 3, 4, 5]]
    assert third["x"].tolist() == [[6], [7]]
    assert third["x.lengths"].tolist() == [1, 1]
    assert third["y"].tolist() == [[20, 30, 40, 50, 60], [70, -2, -2, -2, -2]]


def test_names_that_packing_makes_are_refused():
    rows = without(window_of([[2, 3]], sources=[1, 2]), "y")
    with pytest.raises(BatchPlanError, match="tensor 'sources', which is the name of one that packing makes"):
        Packed(4).of_window(rows, "x.lengths")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Rows(2, min_length=5, max_length=4),
            "Rows: min_length is 5, expected at most max_length = 4",
        ),
        (lambda: Rows(2, max_length=0), "Rows: max_length is 0, expected an integer, 1 or more"),
        (lambda: Rows(0), "Rows: n is 0, expected an integer, 1 or more"),
        (lambda: Rows(True), "Rows: n is True"),
        (lambda: TokenBudget(-1), "TokenBudget: max_tokens is -1"),
        (lambda: TokenBudget(1, max_rows=0), "TokenBudget: max_rows is 0"),
        (
            lambda: TokenBudget(9, oversize="cut"),
            "oversize is 'cut', expected 'bad_rows' or 'truncate' or 'split' or 'skip'",
        ),
        (lambda: TokenBudget(9, multiple_of=2), "multiple_of is 2, which needs padded=True"),
        (lambda: TokenBudget(9, True, multiple_of=16), "multiple_of is 16, expected at most max_tokens = 9"),
        (lambda: TokenBudget(9, columns=("x",)), 'columns are cut with oversize="truncate" or "split", not'),
        (lambda: Packed(0), "Packed: capacity is 0, expected an integer, 1 or more"),
        (lambda: Packed(2**31), f"Packed: capacity is {2**31}, expected less than {2**31}"),
        (
            lambda: Packed(4, strategy="best"),
            "strategy is 'best', expected 'best_fit' or 'first_fit' or 'concat'",
        ),
        (lambda: Packed(4, rows=0), "Packed: rows is 0"),
        (lambda: Packed(4, ()), r"Packed: columns is \(\), expected the names of one list column or more"),
        (lambda: Packed(4, ("x",), {"y": 1}), "Packed: fills has 'y', which is not one of columns"),
        (lambda: Packed(4, "x"), "Packed: columns is 'x', expected the names of"),
    ],
)
def test_plans_that_make_no_sense_are_refused(make, message):
    with pytest.raises(OpError, match=message):
        make()


def test_text_comes_along_once_a_piece_and_is_nothing_to_plan_on():
    table = pa.table({"path": ["a", "bc"], "x": [[1, 2, 3], [4]]})
    (batch,) = sf.Loader(table, batch=Packed(2))
    assert sorted(lists(batch, "path")) == [[97], [97], [98, 99]]
    assert batch.parents["path.lengths"] == "pieces"
    assert np.array_equal(np.sort(batch["x"].ravel()), [1, 2, 3, 4])


def test_the_names_of_columns_may_come_from_any_iterable():
    assert Packed(4, {"x": 1, "y": 2}.keys()).columns == ("x", "y")
    assert TokenBudget(4, oversize="truncate", columns=iter(["x"])).columns == ("x",)
