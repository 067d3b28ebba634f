"""Packing windows of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import LodError, OpError, ops
from seqflow.loader.packing import Packed, packed_batches, windows
from seqflow.record import Record


def record(lengths, first=0, **columns):
    lengths = np.array(lengths, np.int64)
    values = np.arange(first, first + lengths.sum())
    tensors = {"x.lengths": lengths, "x.values": values, **columns}
    parents = {"x.lengths": None, "x.values": "x.lengths", **dict.fromkeys(columns)}
    return Record(tensors, parents, len(lengths), None)


@given(
    st.lists(st.lists(st.integers(0, 12), max_size=8), max_size=4),
    st.integers(1, 10),
    st.sampled_from(["best_fit", "first_fit", "concat"]),
    st.sampled_from([1, 200, 10**6]),
    st.integers(1, 3),
)
def test_every_token_is_packed_once_whatever_the_window(blocks, capacity, strategy, window, rows):
    flat = [length for lengths in blocks for length in lengths]
    records, first = [], 0
    for lengths in blocks:
        records.append(record(lengths, first))
        first += sum(lengths)
    found = list(packed_batches(records, Packed(capacity, strategy, rows), "x.lengths", window))
    assert all(batch.num_rows == rows for batch in found[:-1])
    seen = {}
    for batch in found:
        assert batch["x"].shape == batch["segment_ids"].shape == (batch.num_rows, capacity)
        one = ops.unpack_rows(
            batch["x"], batch["sources"], batch["piece_lengths"], batch["pieces"], num_sequences=len(flat)
        )
        offset = 0
        for i, length in enumerate(one.lengths.tolist()):
            seen.setdefault(i, []).extend(one.values[offset : offset + length].tolist())
            offset += length
    starts = np.concatenate([[0], np.cumsum(flat)]).astype(int)
    for i, length in enumerate(flat):
        assert seen.get(i, []) == list(range(starts[i], starts[i] + length))


def test_columns_with_the_same_lengths_share_one_plan_and_others_come_along():
    window = record([2, 3, 1], label=np.array([7, 8, 9]))
    both = Record(
        {**window.tensors, "y.values": window["x.values"] * 10},
        {**window.parents, "y.values": "x.lengths"},
        3,
        None,
    )
    (batch,) = packed_batches([both], Packed(3, value=0), "x.lengths", 10**6)
    np.testing.assert_array_equal(batch["y.values"] if "y.values" in batch else batch["y"], batch["x"] * 10)
    assert batch["label"].tolist() == [8, 7, 9]
    assert batch.parents["label"] == "pieces"
    assert batch["sources"].tolist() == [1, 0, 2]


def test_windows_hold_as_many_bytes_as_they_are_given():
    records = [record([4]) for _ in range(5)]
    assert [window.num_rows for window in windows(records, 100)] == [2, 2, 1]


def test_deeper_levels_are_refused():
    deep = Record(
        {"x.lengths": np.array([1]), "x.values.lengths": np.array([2]), "x.values.values": np.array([1, 2])},
        {"x.lengths": None, "x.values.lengths": "x.lengths", "x.values.values": "x.values.lengths"},
        1,
        None,
    )
    with pytest.raises(LodError, match="expected one level of values to pack"):
        list(packed_batches([deep], Packed(4), "x.lengths", 100))


def test_an_unknown_strategy_is_refused():
    with pytest.raises(OpError, match="strategy is 'best', expected 'best_fit', 'first_fit' or 'concat'"):
        Packed(4, "best")
