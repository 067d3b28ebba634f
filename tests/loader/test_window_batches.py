"""Every batch plan on one window of rows, beside plain Python."""

from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqflow.loader import Packed, Rows, TokenBudget
from seqflow.loader.order import permutation
from seqflow.loader.window_rows import WindowRows
from seqflow.record import Record

BLOCKS = st.lists(st.lists(st.integers(0, 12), max_size=8), min_size=1, max_size=4)
KEYS = st.none() | st.integers(0, 2**64 - 1)


def window(blocks, key=None):
    """Rows whose elements are consecutive numbers over all blocks, permuted where there is a key."""
    records, first = [], 0
    for lengths in blocks:
        lengths = np.array(lengths, np.int64)
        values = np.arange(first, first + lengths.sum())
        first += int(lengths.sum())
        tensors = {"x.lengths": lengths, "x.values": values}
        records.append(Record(tensors, {"x.lengths": None, "x.values": "x.lengths"}, len(lengths)))
    return WindowRows(records, None if key is None else permutation(sum(map(len, blocks)), key))


def as_lists(record):
    return [part.tolist() for part in np.split(record["x.values"], np.cumsum(record["x.lengths"])[:-1])][
        : record.num_rows
    ]


def made(planned):
    batches = [planned.make(i) for i in range(len(planned))]
    assert all(planned.size(i).rows == batch.num_rows for i, batch in enumerate(batches))
    assert planned.empty().num_rows == 0
    return batches


@given(BLOCKS, KEYS, st.integers(1, 9), st.booleans())
def test_rows_are_cut_every_n(blocks, key, n, drop_last):
    rows = window(blocks, key)
    planned = Rows(n, drop_last).of_window(rows, "x.lengths", 5, key is not None, 0)
    batches = made(planned)
    expected = as_lists(rows.take(slice(0, rows.num_rows)))
    expected = [expected[i : i + n] for i in range(0, len(expected), n)]
    if drop_last and expected and len(expected[-1]) < n:
        assert planned.dropped.rows == len(expected.pop())
    assert [as_lists(batch) for batch in batches] == expected


@given(BLOCKS, KEYS, st.integers(12, 30), st.booleans(), st.none() | st.integers(1, 4), st.booleans())
def test_a_budget_takes_as_many_rows_as_fit_and_no_more(blocks, key, budget, padded, max_rows, drop_last):
    rows = window(blocks, key)
    plan = TokenBudget(budget, padded, max_rows, drop_last)
    planned = plan.of_window(rows, "x.lengths", 5, key is not None, 0)
    batches = made(planned)

    def cost(rows):
        return (len(rows) * max(map(len, rows)) if padded else sum(map(len, rows))) if rows else 0

    expected: list = []
    for row in as_lists(rows.take(slice(0, rows.num_rows))):
        if not expected or cost([*expected[-1], row]) > budget or len(expected[-1]) == max_rows:
            expected.append([])
        expected[-1].append(row)
    if drop_last and expected and cost(expected[-1]) < budget and len(expected[-1]) != max_rows:
        assert planned.dropped.rows == len(expected.pop())
    assert [as_lists(batch) for batch in batches] == expected
    for i, batch in enumerate(expected):
        tokens, longest = sum(map(len, batch)), max(map(len, batch))
        assert planned.size(i) == (len(batch), tokens, len(batch) * longest)


@given(
    BLOCKS,
    KEYS,
    st.integers(1, 10),
    st.sampled_from(["best_fit", "first_fit", "concat"]),
    st.integers(1, 3),
    st.integers(0, 99),
)
def test_every_element_is_packed_once(blocks, key, capacity, strategy, rows, order_key):
    planned = Packed(capacity, strategy, rows).of_window(
        window(blocks, key), "x.lengths", order_key, False, 3
    )
    batches = made(planned)
    assert all(batch.num_rows == rows for batch in batches[:-1])
    lists = as_lists(window(blocks).take(slice(0, 99)))
    found = [[] for _ in lists]
    for i, batch in enumerate(batches):
        assert batch["window"].tolist() == [3] * batch.num_rows
        assert planned.size(i) == (batch.num_rows, batch["piece_lengths"].sum(), batch["x"].size)
        piece = 0
        for row, count in enumerate(batch["pieces"].tolist()):
            used = 0
            for number in range(count):
                size, source = int(batch["piece_lengths"][piece]), int(batch["sources"][piece])
                part = slice(used, used + size)
                found[source].append(batch["x"][row, part].tolist())
                assert batch["segment_ids"][row, part].tolist() == [number + 1] * size
                assert batch["position_ids"][row, part].tolist() == list(range(size))
                piece, used = piece + 1, used + size
            assert not batch["x"][row, used:].any()
            assert not batch["segment_ids"][row, used:].any()
    assert [list(chain(*sorted(pieces))) for pieces in found] == lists
    if strategy == "concat":
        tokens = sum(map(len, lists))
        assert sum(batch.num_rows for batch in batches) == -(-tokens // capacity)


def test_packed_rows_come_in_the_order_of_the_key_also_without_shuffle():
    rows = window([[4] * 20])
    orders = [
        [
            batch["sources"].tolist()
            for batch in made(Packed(4, rows=5).of_window(rows, "x.lengths", key, False, 0))
        ]
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
    planned = TokenBudget(8).of_window(WindowRows([record]), "d.values.lengths", 0, False, 0)
    assert [planned.size(i) for i in range(len(planned))] == [(2, 7, 14), (1, 5, 5)]
    assert [batch["d.lengths"].tolist() for batch in made(planned)] == [[2, 0], [1]]
