"""Rows packed full."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import cut, lengths_arrays, ragged

from seqflow import LodError, OpError, ops
from seqflow.errors import OpIndexError

LENGTHS = lengths_arrays(9)
STRATEGIES = st.sampled_from(["best_fit", "first_fit", "concat"])


@given(LENGTHS, st.integers(1, 8), STRATEGIES, st.integers(0, 1))
def test_unpack_rows_is_the_inverse_of_pack_rows(lengths, capacity, strategy, extra):
    data = np.arange(1, lengths.sum() * 2**extra + 1).reshape(-1, *[2] * extra)
    packed = ops.pack_rows(data, lengths, capacity=capacity, strategy=strategy, fill=-1)
    found = ops.unpack_rows(
        packed.packed, packed.sources, packed.piece_lengths, packed.pieces, num_sequences=len(lengths)
    )
    np.testing.assert_array_equal(found.values, data)
    np.testing.assert_array_equal(found.lengths, lengths)


@given(LENGTHS, st.integers(1, 8), STRATEGIES)
def test_segment_and_position_ids_describe_the_pieces(lengths, capacity, strategy):
    packed = ops.pack_rows(np.arange(lengths.sum()), lengths, capacity=capacity, strategy=strategy, fill=-1)
    pieces = iter(packed.piece_lengths.tolist())
    for r, count in enumerate(packed.pieces):
        sizes = [next(pieces) for _ in range(count)]
        padding = [0] * (capacity - sum(sizes))
        assert (
            packed.segment_ids[r].tolist() == [k + 1 for k, n in enumerate(sizes) for _ in range(n)] + padding
        )
        assert packed.position_ids[r].tolist() == [i for n in sizes for i in range(n)] + padding
    np.testing.assert_array_equal(packed.packed == -1, packed.segment_ids == 0)


@given(LENGTHS, st.integers(1, 8))
def test_no_strategy_needs_fewer_rows_than_concat_and_best_fit_wastes_little(lengths, capacity):
    rows = {
        strategy: len(
            ops.pack_rows(np.arange(lengths.sum()), lengths, capacity=capacity, strategy=strategy).pieces
        )
        for strategy in ("best_fit", "first_fit", "concat")
    }
    assert rows["concat"] == -(-int(lengths.sum()) // capacity)
    assert rows["concat"] <= rows["best_fit"] <= max(1.5 * rows["concat"] + 1, 1)
    assert rows["concat"] <= rows["first_fit"]


@given(ragged(), st.integers(1, 8), STRATEGIES)
def test_every_row_of_data_is_in_a_piece_of_its_sequence(sequences, capacity, strategy):
    data, lengths = sequences
    packed = ops.pack_rows(data, lengths, capacity=capacity, strategy=strategy)
    assert packed.packed.dtype == data.dtype
    gathered = [[] for _ in lengths]
    piece = iter(zip(packed.sources, packed.piece_lengths, strict=True))
    for row, count in zip(packed.packed, packed.pieces, strict=True):
        used = 0
        for _ in range(count):
            source, size = next(piece)
            gathered[source].append(row[used : used + size])
            used += size
        assert used <= capacity
        np.testing.assert_array_equal(row[used:], np.zeros_like(row[used:]))
    for parts, rows in zip(gathered, cut(data, lengths), strict=True):
        np.testing.assert_array_equal(np.concatenate([rows[:0], *parts]), rows)
    found = ops.unpack_rows(*packed[:1], *packed[3:], num_sequences=len(lengths))
    np.testing.assert_array_equal(found.values, data)
    np.testing.assert_array_equal(found.lengths, lengths)


@given(LENGTHS, st.integers(1, 8), STRATEGIES)
def test_packed_offsets_count_the_padding_of_a_row_as_its_last_segment(lengths, capacity, strategy):
    packed = ops.pack_rows(np.arange(lengths.sum()), lengths, capacity=capacity, strategy=strategy)
    found = ops.packed_cu_seqlens(packed.piece_lengths, packed.pieces, capacity=capacity)
    expected, pieces = [0], iter(packed.piece_lengths.tolist())
    for r, count in enumerate(packed.pieces):
        for _ in range(count):
            expected.append(expected[-1] + next(pieces))
        if expected[-1] < (r + 1) * capacity:
            expected.append((r + 1) * capacity)
    assert found.dtype == np.int32
    assert found.tolist() == expected
    assert found[-1] == packed.packed.shape[0] * capacity


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.unpack_rows([[1, 2]], [0, -1], [1, 1], [2]), OpIndexError, r"sources\[1\] = -1 is outside \[0, 1\)"),
        (lambda: ops.unpack_rows([[1, 2]], [0, 3], [1, 1], [2], num_sequences=3), OpIndexError, r"sources\[1\] = 3 is outside \[0, 3\)"),
        (lambda: ops.unpack_rows([[1, 2]], [0], [3], [1]), LodError, "the pieces of row 0 have 3 elements, expected at most 2"),
        (lambda: ops.unpack_rows([[1, 2]], [0], [1], [2]), LodError, r"sum\(pieces\) is 2"),
        (lambda: ops.packed_cu_seqlens([2, 2], [2], capacity=3), LodError, "the pieces of row 0 have 4 elements, expected at most 3"),
        (lambda: ops.packed_cu_seqlens([1], [1], capacity=2**31), OpError, "1 rows of 2147483648 are more elements than int32 can count"),
        (lambda: ops.packed_cu_seqlens([1], [1], capacity=0), OpError, "capacity is 0, expected an integer, 1 or more"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_sources_may_be_of_any_integer_dtype():
    found = ops.unpack_rows([[1, 2, 3]], np.array([1, 0], np.uint64), [2, 1], [2])
    assert found.values.tolist() == [3, 1, 2]
    assert found.lengths.tolist() == [1, 2]
