"""Ops that sort and count work on a few sequences at a time, and need little memory beside their results."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import ops
from seqflow.ops.shared import slices as slices_module
from seqflow.ops.shared.slices import PORTION, portions

LENGTHS = np.random.default_rng(1).integers(0, 40, 40_000)
DATA = np.random.default_rng(2).integers(0, 10**6, int(LENGTHS.sum()))


def peak_over_result(call):
    """The most memory in use while a call runs, results included, over the size of the results."""
    call()
    tracemalloc.start()
    found = call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / sum(array.nbytes for array in (found if isinstance(found, tuple) else (found,)))


@pytest.mark.parametrize("ties", ["first", "min", "max", "dense"])
def test_ranks_need_little_more_than_their_own_memory(ties):
    assert peak_over_result(lambda: ops.rank_within(DATA, LENGTHS, ties=ties)) < 2


def test_shuffling_needs_little_more_than_its_own_memory():
    assert peak_over_result(lambda: ops.shuffle_within(DATA, LENGTHS, seed=3)) < 2


@pytest.mark.parametrize("order", ["sorted", "first"])
def test_distinct_values_need_twice_their_own_memory(order):
    assert peak_over_result(lambda: ops.unique_within(DATA, LENGTHS, order=order)) < 2.4


@given(st.lists(st.sampled_from([0, 1, 7, PORTION // 2, PORTION, PORTION + 1]), max_size=12))
def test_portions_are_all_sequences_in_order(lengths):
    sizes = np.array(lengths, np.int64)
    found = list(portions(sizes))
    assert [i for sequences, _ in found for i in range(len(lengths))[sequences]] == list(range(len(lengths)))
    assert found[-1][1].stop == sizes.sum()
    for sequences, rows in found:
        assert rows.stop - rows.start == sizes[sequences].sum()
        assert rows.stop - rows.start <= PORTION or sequences.stop - sequences.start == 1


@given(st.lists(st.integers(0, 6), max_size=9), st.integers(1, 8), st.integers(0, 2**64 - 1))
def test_results_do_not_depend_on_the_portions(lengths, portion, seed):
    sizes = np.array(lengths, np.int64)
    data = np.random.default_rng(seed).integers(0, 4, int(sizes.sum()))

    def results():
        yield ops.shuffle_within(data, sizes, seed=seed)
        yield from ops.unique_within(data, sizes)
        yield from ops.unique_within(data, sizes, order="first")
        for ties in ("first", "min", "max", "dense"):
            yield ops.rank_within(data, sizes, ties=ties)

    whole = list(results())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices_module, "PORTION", portion)
        for ours, expected in zip(results(), whole, strict=True):
            np.testing.assert_array_equal(ours, expected)
