"""Reducing rows that say by an id which segment they belong to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from segmented import FLOATS, NUMBERS, segmented

import seqflow as sf
from seqflow import ops

IDS = ["int64", "int32", "uint8", "uint64"]


def by_ids(op, data, ids, weights, **attributes):
    weighted = (weights,) if "weighted" in op else ()
    return getattr(ops, op)(data, *weighted, ids, **attributes)


@given(segmented(NUMBERS + FLOATS), st.sampled_from(IDS))
@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "prod", "logsumexp", "weighted_sum"])
def test_sorted_ids_give_what_their_lengths_give(kind, drawn, dtype):
    data, lengths = drawn
    lengths = lengths[lengths > 0]
    ids = np.repeat(np.arange(len(lengths)), lengths).astype(dtype)
    weights = np.arange(len(data), dtype=np.float32)
    found = by_ids(f"sorted_segment_{kind}", data, ids, weights)
    expected = by_ids(f"lengths_{kind}", data, lengths, weights)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@given(segmented(FLOATS, special=False))
def test_logmeanexp_is_logsumexp_without_the_log_of_the_count(drawn):
    data, lengths = drawn
    lengths = lengths[lengths > 0]
    ids = np.repeat(np.arange(len(lengths)), lengths)
    found = ops.sorted_segment_logmeanexp(data, ids)
    expected = np.log(ops.lengths_mean(np.exp(data.astype(float)), lengths))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@given(segmented(NUMBERS + FLOATS), st.sampled_from(IDS), st.randoms(use_true_random=False))
@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "weighted_sum"])
def test_ids_in_any_order_give_what_sorted_rows_give(kind, drawn, dtype, random):
    data, lengths = drawn
    ids = np.repeat(np.arange(len(lengths)), lengths).astype(dtype)
    weights = np.arange(len(data), dtype=np.float32)
    order = list(range(len(data)))
    random.shuffle(order)
    found = by_ids(
        f"unsorted_segment_{kind}",
        data[order],
        ids[order],
        weights[order],
        num_segments=len(lengths),
        empty=1,
    )
    expected = by_ids(f"lengths_{kind}", data, lengths, weights, empty=1)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_without_a_number_of_segments_the_largest_id_is_the_last():
    assert ops.unsorted_segment_sum(np.ones(2), [3, 1]).tolist() == [0, 1, 0, 1]
    assert ops.unsorted_segment_sum(np.ones(0), []).tolist() == []
    assert ops.unsorted_segment_max(np.ones(1), [1], num_segments=4, empty=-np.inf).tolist() == [
        -np.inf,
        1,
        *[-np.inf] * 2,
    ]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 1], r"ids\[0\] = 1, expected 0: "),
        ([-1, 0], r"ids\[0\] = -1, expected 0: "),
        ([0, 2], r"ids\[1\] = 2, expected 0 as before or one more: "),
        ([0, 1, 0], r"ids\[2\] = 0, expected 1 as before or one more: "),
        (np.array([0, 2**64 - 1], np.uint64), r"ids\[1\] = 18446744073709551615, expected 0 as before"),
    ],
)
def test_sorted_ids_count_up_from_0(ids, message):
    with pytest.raises(sf.OpError, match="^sorted_segment_sum: " + message):
        ops.sorted_segment_sum(np.ones(len(ids)), ids)


@pytest.mark.parametrize("ids", [[0, -1], [0, 5], np.array([0, 2**64 - 1], np.uint64)])
def test_an_id_outside_the_segments_is_an_error_that_names_it(ids):
    with pytest.raises(sf.OpError, match=rf"^unsorted_segment_sum: ids\[1\] = {ids[1]} "):
        ops.unsorted_segment_sum(np.ones(2), ids, num_segments=5)
    with pytest.raises(sf.OpError, match=r"^unsorted_segment_mean: "):
        ops.unsorted_segment_mean(np.ones(1), [-1])


@pytest.mark.parametrize("count", [2**62, 2**63, 2**70])
def test_a_size_that_no_array_has_is_an_error_of_the_op(count):
    with pytest.raises(sf.OpError, match=r"^unsorted_segment_sum: "):
        ops.unsorted_segment_sum(np.ones(1), [0], num_segments=count)
    with pytest.raises(sf.OpError, match=r"^lengths_topk: "):
        ops.lengths_topk(np.ones(1), [1], k=count)
    assert ops.lengths_var(np.ones(1), [1], ddof=count).tolist() == [0]
