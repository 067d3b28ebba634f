"""Rows, TokenBudget and Packed on one window of rows, beside plain Python."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from windows_of import lists, made, window_of, without

from seqflow.loader import Buckets, Packed, Rows, TokenBudget
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import Record
from seqflow.record.batch_memory import BatchMemory

BLOCKS = st.lists(st.lists(st.integers(0, 12), max_size=8), min_size=1, max_size=4)
KEYS = st.none() | st.integers(0, 2**64 - 1)


def all_rows(rows):
    return lists(rows.take(slice(0, rows.num_rows)))


@given(BLOCKS, KEYS, st.integers(1, 9), st.booleans())
def test_rows_are_cut_every_n(blocks, key, n, drop_last):
    rows = window_of(blocks, key)
    planned = Rows(n, drop_last).of_window(rows, "x.lengths", 5, 0)
    batches = made(planned)
    expected = all_rows(rows)
    expected = [expected[i : i + n] for i in range(0, len(expected), n)]
    if drop_last and expected and len(expected[-1]) < n:
        assert planned.dropped.rows == len(expected.pop())
    assert [lists(batch) for batch in batches] == expected
    numbers = [planned.numbers(number).tolist() for number in range(len(planned))]
    in_order = lists(window_of(blocks).take(slice(0, rows.num_rows)))
    assert [[in_order[row] for row in of] for of in numbers] == expected


@given(
    BLOCKS, KEYS, st.integers(12, 30), st.booleans(), st.none() | st.integers(1, 4), st.booleans(),
    st.integers(1, 4),
)  # fmt: skip
def test_a_budget_takes_as_many_rows_as_fit_and_no_more(
    blocks, key, budget, padded, max_rows, drop_last, multiple_of
):
    multiple_of = multiple_of if padded else 1
    rows = window_of(blocks, key)
    plan = TokenBudget(budget, padded, max_rows, drop_last, multiple_of=multiple_of)
    planned = plan.of_window(rows, "x.lengths", 5, 0)
    batches = made(planned)

    def cells(batch):
        return len(batch) * -(-max(map(len, batch), default=0) // multiple_of) * multiple_of

    def cost(batch):
        return cells(batch) if padded else sum(map(len, batch))

    expected: list = []
    for row in all_rows(rows):
        if not expected or cost([*expected[-1], row]) > budget or len(expected[-1]) == max_rows:
            expected.append([])
        expected[-1].append(row)
    if drop_last and expected and cost(expected[-1]) < budget and len(expected[-1]) != max_rows:
        assert planned.dropped.rows == len(expected.pop())
    assert [lists(batch) for batch in batches] == expected
    assert not planned.bad
    assert planned.skipped == 0
    for number, batch in enumerate(expected):
        assert cost(batch) <= budget
        assert planned.size(number) == (len(batch), sum(map(len, batch)), cells(batch), len(batch), 0)


@given(
    BLOCKS, KEYS, st.integers(1, 10), st.sampled_from(["best_fit", "first_fit", "concat"]), st.integers(1, 3),
    st.integers(0, 99), st.booleans(),
)  # fmt: skip
def test_every_element_is_packed_once(blocks, key, capacity, strategy, per_batch, order_key, drop_last):
    plan = Packed(
        capacity, ("x", "y"), {"x": -1, "y": -2}, strategy=strategy, rows=per_batch, drop_last=drop_last
    )
    rows = window_of(blocks, key, label=range(100))
    planned = plan.of_window(rows, "x.lengths", order_key, 3)
    batches = made(planned)
    assert all(batch.num_rows == per_batch for batch in (batches if drop_last else batches[:-1]))
    expected = lists(window_of(blocks).take(slice(0, 99)))
    found = [[] for _ in expected]
    begun = planned.skipped + planned.dropped.begun
    for number, batch in enumerate(batches):
        assert batch["window"].tolist() == [3] * batch.num_rows
        size = planned.size(number)
        assert size[:3] == (batch.num_rows, batch["piece_lengths"].sum(), batch["x"].size)
        begun += size.begun
        assert planned.numbers(number).tolist() == batch["sources"].tolist() == batch["label"].tolist()
        padding = batch["segment_ids"] == 0
        assert np.array_equal(batch["y"], np.where(padding, -2, batch["x"] * 10))
        piece = 0
        for row, count in enumerate(batch["pieces"].tolist()):
            used = 0
            for of_row in range(count):
                size, source = int(batch["piece_lengths"][piece]), int(batch["sources"][piece])
                part = slice(used, used + size)
                found[source].append(batch["x"][row, part].tolist())
                assert batch["segment_ids"][row, part].tolist() == [of_row + 1] * size
                assert batch["position_ids"][row, part].tolist() == list(range(size))
                piece, used = piece + 1, used + size
            assert (batch["x"][row, used:] == -1).all()
            assert padding[row, used:].all()
    assert begun == len(expected)
    packed = sum(size.tokens for size in map(planned.size, range(len(planned)))) + planned.dropped.tokens
    assert packed == sum(map(len, expected))
    if not planned.dropped.rows:
        assert [list(chain(*sorted(pieces))) for pieces in found] == expected
        if strategy == "concat":
            assert sum(batch.num_rows for batch in batches) == -(-packed // capacity)


def test_packed_rows_come_in_the_order_of_the_key_also_without_shuffle():
    rows = without(window_of([[4] * 20]), "y")
    orders = [
        [batch["sources"].tolist() for batch in made(Packed(4, rows=5).of_window(rows, "x.lengths", key, 0))]
        for key in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(chain(*orders[0])) == list(range(20)) != list(chain(*orders[0]))


def test_a_budget_counts_the_elements_of_any_level():
    record = Record(
        {
            "d.lengths": np.array([2, 0, 1]),
            "d.values.lengths": np.array([3, 4, 5]),
            "d.values.values": np.arange(12),
        },
        {"d.lengths": None, "d.values.lengths": "d.lengths", "d.values.values": "d.values.lengths"},
        3,
    )
    planned = TokenBudget(8).of_window(WindowRows([record]), "d.values.lengths")
    assert [planned.size(i) for i in range(len(planned))] == [(2, 7, 14, 2, 0), (1, 5, 5, 1, 0)]
    assert [batch["d.lengths"].tolist() for batch in made(planned)] == [[2, 0], [1]]


PLANS = [
    Rows(3),
    TokenBudget(14, padded=True),
    TokenBudget(4, oversize="split", columns=("x", "y")),
    Buckets(3, TokenBudget(16)),
    Packed(5, ("x", "y"), rows=2),
]


@pytest.mark.parametrize("plan", PLANS, ids=repr)
@given(BLOCKS, KEYS, st.integers(0, 99), st.randoms(use_true_random=False))
def test_a_window_gives_the_same_batches_in_whatever_order_they_are_made(
    plan, blocks, key, order_key, random
):
    def planned():
        return plan.of_window(window_of(blocks, key), "x.lengths", order_key, 2)

    expected = [dict(batch) for batch in made(planned())]
    again, memory = planned(), BatchMemory()
    numbers = list(range(len(again)))
    random.shuffle(numbers)
    for number in numbers:
        batch = again.make(number, memory)
        assert set(batch) == set(expected[number])
        assert all(np.array_equal(batch[name], expected[number][name]) for name in batch)


@given(BLOCKS, st.sampled_from(PLANS))
def test_batches_are_counted_from_sizes_alone(blocks, plan):
    rows = window_of(blocks)
    planned = plan.of_window(rows, "x.lengths")
    assert plan.count(plan.row_sizes(rows, "x.lengths")) == len(planned)
