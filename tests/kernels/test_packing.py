"""Laws of packing, whichever kernels plan and fill."""

import numpy as np
import numpy_kernels
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow import kernels

some_lengths = st.lists(st.integers(0, 30), max_size=60).map(lambda values: np.array(values, np.int64))
capacities = st.integers(1, 25)
strategies = st.sampled_from(["best_fit", "first_fit", "concat"])
each_kernel = settings(max_examples=60, deadline=None)


def rows_of(plan):
    """The pieces of each row, as (source, start, length)."""
    pieces = list(zip(plan.sources.tolist(), plan.starts.tolist(), plan.piece_lengths.tolist(), strict=True))
    ends = np.cumsum(plan.pieces).tolist()
    return [pieces[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@each_kernel
@given(lengths=some_lengths, capacity=capacities, strategy=strategies)
def test_every_element_is_in_exactly_one_piece(any_kernels, lengths, capacity, strategy):
    plan = kernels.plan_packing(lengths, capacity, strategy)
    placed = [
        (source, start + i)
        for source, start, length in zip(plan.sources, plan.starts, plan.piece_lengths, strict=True)
        for i in range(length)
    ]
    assert sorted(placed) == [(source, i) for source, length in enumerate(lengths) for i in range(length)]


@each_kernel
@given(lengths=some_lengths, capacity=capacities, strategy=strategies)
def test_no_row_is_empty_or_too_full(any_kernels, lengths, capacity, strategy):
    used = [
        sum(length for _, _, length in row)
        for row in rows_of(kernels.plan_packing(lengths, capacity, strategy))
    ]
    assert all(1 <= total <= capacity for total in used)


@each_kernel
@given(lengths=some_lengths, capacity=capacities, strategy=strategies)
def test_pieces_of_a_sequence_are_in_order_and_only_long_ones_are_cut(
    any_kernels, lengths, capacity, strategy
):
    plan = kernels.plan_packing(lengths, capacity, strategy)
    for source in np.unique(plan.sources):
        assert (np.diff(plan.starts[plan.sources == source]) > 0).all()
    if strategy != "concat":
        counts = np.bincount(plan.sources, minlength=len(lengths))
        np.testing.assert_array_equal(counts, -(-lengths // capacity))


@each_kernel
@given(lengths=some_lengths, capacity=capacities)
def test_concat_leaves_room_in_the_last_row_only(any_kernels, lengths, capacity):
    plan = kernels.plan_packing(lengths, capacity, "concat")
    assert len(plan.pieces) == -(-lengths.sum() // capacity)


@each_kernel
@given(lengths=some_lengths, capacity=capacities)
def test_first_fit_never_opens_a_row_where_an_earlier_one_has_room(any_kernels, lengths, capacity):
    lengths = np.minimum(lengths, capacity)
    room = []
    for row in rows_of(kernels.plan_packing(lengths, capacity, "first_fit")):
        for source, _, length in row:
            assert all(earlier < length or last > source for earlier, last in room)
        room.append((capacity - sum(length for _, _, length in row), max(source for source, _, _ in row)))


@each_kernel
@given(lengths=some_lengths, capacity=capacities)
def test_best_fit_leaves_no_two_rows_that_would_fit_together(any_kernels, lengths, capacity):
    used = sorted(
        sum(n for _, _, n in row) for row in rows_of(kernels.plan_packing(lengths, capacity, "best_fit"))
    )
    assert len(used) < 2 or used[0] + used[1] > capacity


def test_best_fit_takes_the_longest_first_into_the_least_room_that_is_enough(any_kernels):
    plan = kernels.plan_packing(np.array([2, 7, 5, 3, 3]), 10, "best_fit")
    assert rows_of(plan) == [[(1, 0, 7), (3, 0, 3)], [(2, 0, 5), (4, 0, 3), (0, 0, 2)]]


def test_of_equal_rooms_best_fit_takes_the_row_that_changed_last(any_kernels):
    plan = kernels.plan_packing(np.array([6, 6, 6, 4]), 10, "best_fit")
    assert rows_of(plan) == [[(0, 0, 6)], [(1, 0, 6)], [(2, 0, 6), (3, 0, 4)]]


def test_full_pieces_of_long_sequences_come_first_in_best_fit(any_kernels):
    plan = kernels.plan_packing(np.array([3, 9, 4]), 4, "best_fit")
    assert rows_of(plan) == [[(1, 0, 4)], [(1, 4, 4)], [(2, 0, 4)], [(0, 0, 3), (1, 8, 1)]]


def test_a_cut_sequence_opens_rows_of_its_own_in_first_fit(any_kernels):
    plan = kernels.plan_packing(np.array([1, 5, 2]), 4, "first_fit")
    assert rows_of(plan) == [[(0, 0, 1), (2, 0, 2)], [(1, 0, 4)], [(1, 4, 1)]]


def test_best_fit_of_a_large_capacity_is_the_same(any_kernels):
    lengths = np.random.default_rng(3).integers(0, 3_000_000, 60)
    plan = kernels.plan_packing(lengths, 4_000_000, "best_fit")
    for found, expected in zip(plan, numpy_kernels.plan_packing(lengths, 4_000_000, "best_fit"), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_best_fit_fills_rows_of_many_short_sequences(any_kernels):
    lengths = np.clip(np.random.default_rng(5).lognormal(4, 1, 2000), 1, 512).astype(np.int64)
    plan = kernels.plan_packing(lengths, 512, "best_fit")
    assert lengths.sum() / (len(plan.pieces) * 512) > 0.99


@each_kernel
@given(lengths=some_lengths, capacity=capacities, strategy=strategies)
def test_filled_rows_hold_the_pieces_and_their_ids(any_kernels, lengths, capacity, strategy):
    plan = kernels.plan_packing(lengths, capacity, strategy)
    data = np.arange(1, lengths.sum() + 1)
    offsets = kernels.lengths_to_offsets(lengths)
    packed, segment_ids, position_ids = kernels.fill_packed(data, lengths, plan, capacity, -1)
    for r, row in enumerate(rows_of(plan)):
        at = 0
        for number, (source, start, length) in enumerate(row, 1):
            here = slice(at, at + length)
            begin = offsets[source] + start
            np.testing.assert_array_equal(packed[r, here], data[begin : begin + length])
            assert (segment_ids[r, here] == number).all()
            np.testing.assert_array_equal(position_ids[r, here], np.arange(length))
            at += length
        assert (packed[r, at:] == -1).all()
        assert not segment_ids[r, at:].any()
        assert not position_ids[r, at:].any()


@pytest.mark.parametrize(
    ("capacity", "strategy"), [(0, "best_fit"), (-1, "concat"), (2**62, "concat"), (4, "worst")]
)
def test_capacity_and_strategy_are_checked(any_kernels, capacity, strategy):
    with pytest.raises(ValueError, match=r"(capacity|strategy) is"):
        kernels.plan_packing(np.array([1]), capacity, strategy)


@pytest.mark.parametrize("power", [15, 16, 31, 47, 48, 53])
@pytest.mark.parametrize("strategy", ["best_fit", "first_fit"])
def test_large_pieces_are_placed_as_small_ones(any_kernels, power, strategy):
    small = np.random.default_rng(0).integers(0, 30, 30)
    expected = kernels.plan_packing(small, 32, strategy)
    found = kernels.plan_packing(small << power, 32 << power, strategy)
    assert found.sources.tolist() == expected.sources.tolist()
    assert found.pieces.tolist() == expected.pieces.tolist()
