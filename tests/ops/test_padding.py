"""Between flat and dense."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import ops

LENGTHS = hnp.arrays("int64", st.integers(0, 6), elements=st.integers(0, 9))
SIDES = st.sampled_from(["right", "left"])
STRATEGIES = st.sampled_from(["best_fit", "first_fit", "concat"])


def data_for(lengths, extra=0, dtype="int64"):
    total = int(lengths.sum())
    return np.arange(1, total * 2**extra + 1).reshape(total, *[2] * extra).astype(dtype)


@given(LENGTHS, SIDES, st.integers(0, 2), st.integers(1, 4))
def test_unpad_takes_away_what_pad_adds(lengths, side, extra, multiple):
    data = data_for(lengths, extra)
    result = ops.pad(data, lengths, side=side, multiple_of=multiple, value=-1)
    assert result.padded.shape[1] % multiple == 0
    np.testing.assert_array_equal(result.mask.sum(axis=1), lengths)
    np.testing.assert_array_equal(result.padded[~result.mask], -1)
    np.testing.assert_array_equal(ops.unpad(result.padded, lengths, side=side), data)


def test_padding_goes_to_the_side_asked_for():
    assert ops.pad([1, 2, 3], [2, 1], side="left").padded.tolist() == [[1, 2], [0, 3]]
    assert ops.pad([1, 2, 3], [2, 1], max_length=3).mask.tolist() == [
        [True, True, False],
        [True, False, False],
    ]


def test_truncating_keeps_the_side_away_from_the_padding():
    assert ops.pad([1, 2, 3], [3], max_length=2, truncate=True).padded.tolist() == [[1, 2]]
    assert ops.pad([1, 2, 3], [3], max_length=2, truncate=True, side="left").padded.tolist() == [[2, 3]]
    with pytest.raises(ValueError, match=r"pad: lengths\[1\] = 3 is longer than 2"):
        ops.pad([9, 1, 2, 3], [1, 3], max_length=2)


def test_pad_writes_into_out():
    padded, mask = np.empty((2, 4)), np.empty((2, 4), bool)
    result = ops.pad(np.array([1.0, 2.0]), [1, 1], max_length=4, out=(padded, mask))
    assert result.padded is padded
    assert result.mask is mask
    assert padded.tolist() == [[1, 0, 0, 0], [2, 0, 0, 0]]
    assert ops.pad(np.array([1.0, 2.0]), [1, 1], max_length=4, out=padded).padded is padded
    flat = np.empty(2)
    assert ops.unpad(padded, [1, 1], out=flat) is flat
    with pytest.raises(ValueError, match="out"):
        ops.pad(np.array([1.0, 2.0]), [1, 1], max_length=3, out=padded)


@given(LENGTHS, st.integers(1, 8), STRATEGIES, st.integers(0, 1))
def test_unpack_rows_is_the_inverse_of_pack_rows(lengths, capacity, strategy, extra):
    data = data_for(lengths, extra)
    packed = ops.pack_rows(data, lengths, capacity=capacity, strategy=strategy, value=-1)
    found = ops.unpack_rows(
        packed.packed, packed.sources, packed.piece_lengths, packed.pieces, num_sequences=len(lengths)
    )
    np.testing.assert_array_equal(found.data, data)
    np.testing.assert_array_equal(found.lengths, lengths)


@given(LENGTHS, st.integers(1, 8), STRATEGIES)
def test_segment_and_position_ids_describe_the_pieces(lengths, capacity, strategy):
    packed = ops.pack_rows(data_for(lengths), lengths, capacity=capacity, strategy=strategy, value=-1)
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
        strategy: len(ops.pack_rows(data_for(lengths), lengths, capacity=capacity, strategy=strategy).pieces)
        for strategy in ("best_fit", "first_fit", "concat")
    }
    assert rows["concat"] == -(-int(lengths.sum()) // capacity)
    assert rows["concat"] <= rows["best_fit"] <= max(1.5 * rows["concat"] + 1, 1)
    assert rows["concat"] <= rows["first_fit"]
