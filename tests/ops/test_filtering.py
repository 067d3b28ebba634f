"""Leaving rows and sequences out, and putting them back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import assert_same, assert_sequences, cut, ragged

import seqflow as sf
from seqflow import ops
from seqflow.errors import OpTypeError

INTEGERS = ("int64", "int32", "uint8", "uint64")


def masks(draw, count):
    mask = draw.draw(hnp.arrays(bool, count))
    return np.repeat(mask, 2)[::2] if draw.draw(st.booleans()) else mask


@given(ragged(), st.data())
def test_a_mask_keeps_the_rows_where_it_is_true(sequences, draw):
    data, _ = sequences
    mask = masks(draw, len(data))
    result = ops.boolean_mask(data, mask)
    assert_same(result.rows, data[mask])
    assert_same(result.positions, np.flatnonzero(mask))


@given(ragged(), st.data())
def test_masked_sequences_stay_apart(sequences, draw):
    data, lengths = sequences
    mask = masks(draw, len(data))
    result = ops.mask_sequences(data, mask, lengths)
    expected = [s[m] for s, m in zip(cut(data, lengths), cut(mask, lengths), strict=True)]
    assert_sequences(*result, expected, data)
    assert_same(ops.boolean_mask_lengths(mask, lengths), result.lengths)
    assert_same(ops.boolean_mask(data, mask).rows, result.values)


def test_a_mask_is_bool():
    with pytest.raises(OpTypeError, match=r"^boolean_mask: mask is int64, expected bool"):
        ops.boolean_mask([1, 2], [0, 1])


@given(ragged(dtypes=INTEGERS, max_rank=1), st.lists(st.integers(-3, 300), max_size=4))
def test_erased_tokens_are_gone_and_all_others_stay(sequences, tokens):
    data, lengths = sequences
    result = ops.erase_tokens(data, lengths, tokens=tokens)
    expected = [[x for x in s.tolist() if x not in tokens] for s in cut(data, lengths)]
    assert_sequences(*result, expected, data)


@pytest.mark.parametrize("tokens", [2, np.int8(2), [2], (2,), np.array([2], np.uint64), [2, 2**63 - 1]])
def test_tokens_to_erase_are_one_id_or_several(tokens):
    assert ops.erase_tokens([1, 2, 3], [3], tokens=tokens).values.tolist() == [1, 3]


def test_large_ids_are_told_apart():
    data = np.array([2**63, 2**63 + 1], np.uint64)
    assert ops.erase_tokens(data, [2], tokens=[2**63 + 1]).values.tolist() == [2**63]
    assert ops.erase_tokens(
        np.array([2**53, 2**53 + 1]), [2], tokens=[2**53, 2**64 - 1, 2**70]
    ).values.tolist() == [2**53 + 1]


@pytest.mark.parametrize("tokens", ["a", [1.5], [[1]], None, [None], [True], [[1], [1, 2]]])
def test_tokens_to_erase_are_integers(tokens):
    with pytest.raises(
        OpTypeError, match=r"^erase_tokens: tokens is .*, expected an integer or a list of integers"
    ):
        ops.erase_tokens([1, 2], [2], tokens=tokens)


@given(ragged(), st.data())
def test_filter_keeps_whole_sequences(sequences, draw):
    data, lengths = sequences
    keep = masks(draw, len(lengths))
    result = ops.filter_sequences(data, keep, lengths)
    expected = [s for s, stays in zip(cut(data, lengths), keep, strict=True) if stays]
    assert_sequences(*result, expected, data)


@given(ragged())
def test_keeping_all_sequences_is_the_identity(sequences):
    data, lengths = sequences
    result = ops.filter_sequences(data, np.ones(len(lengths), bool), lengths)
    assert_sequences(*result, cut(data, lengths), data)


@given(ragged(dtypes=INTEGERS, max_rank=1), st.integers(0, 2**64 - 1))
def test_dropout_of_ids_at_0_and_1_keeps_all_and_none(sequences, seed):
    data, lengths = sequences
    assert_same(ops.dropout_ids(data, lengths, ratio=0, seed=seed), np.ascontiguousarray(data))
    found = ops.dropout_ids(data, lengths, ratio=1.0, replacement=7, seed=seed)
    assert_same(found, np.full_like(data, 7, order="C"))


@given(ragged(dtypes=INTEGERS, max_rank=1), st.integers(0, 2**64 - 1), st.floats(0, 1))
def test_dropout_of_sequences_replaces_whole_ones_by_one_id(sequences, seed, ratio):
    data, lengths = sequences
    result = ops.dropout_sequences(data, lengths, ratio=ratio, replacement=99, seed=seed)
    for found, sequence in zip(cut(result.values, result.lengths), cut(data, lengths), strict=True):
        assert found.tolist() in ([99], sequence.tolist())
    everything = ops.dropout_sequences(data, lengths, ratio=1, replacement=99, seed=seed)
    assert everything.values.tolist() == [99] * len(lengths)
    assert_sequences(*ops.dropout_sequences(data, lengths, ratio=0, seed=seed), cut(data, lengths), data)


def test_dropout_drops_about_the_share_that_was_asked_for():
    data, lengths = np.arange(1, 100_001), np.full(1000, 100)
    dropped = ops.dropout_ids(data, lengths, ratio=0.3, seed=11) == 0
    assert abs(dropped.mean() - 0.3) < 0.01
    by_place = dropped.reshape(1000, 100)
    assert abs(by_place.mean(axis=0) - 0.3).max() < 0.07
    assert abs(by_place.mean(axis=1) - 0.3).max() < 0.2


def test_what_is_dropped_depends_on_seed_sequence_and_position_alone():
    alone = ops.dropout_ids(np.arange(1, 51), [50], ratio=0.5, seed=3)
    among = ops.dropout_ids(np.arange(1, 91), [50, 0, 40], ratio=0.5, seed=3)
    assert among[:50].tolist() == alone.tolist()
    assert ops.dropout_ids(np.arange(1, 51), [50], ratio=0.5, seed=4).tolist() != alone.tolist()


@pytest.mark.parametrize("ratio", [-0.1, 1.5, float("nan"), float("inf")])
def test_a_ratio_is_a_probability(ratio):
    for op in (ops.dropout_ids, ops.dropout_sequences):
        with pytest.raises(sf.OpError, match=f"^{op.__name__}: ratio is {ratio}, expected 0 to 1"):
            op([1, 2], [2], ratio=ratio, seed=0)


def test_a_seed_is_asked_for_and_has_64_bits():
    with pytest.raises(TypeError, match="seed"):
        ops.dropout_ids([1, 2], [2], ratio=0.5)
    with pytest.raises(
        sf.OpError, match=r"^dropout_ids: seed is 18446744073709551616, expected less than 2\*\*64"
    ):
        ops.dropout_ids([1, 2], [2], ratio=0.5, seed=2**64)
    with pytest.raises(sf.OpError, match=r"^dropout_sequences: seed is -1, expected an integer, 0 or more"):
        ops.dropout_sequences([1, 2], [2], ratio=0.5, seed=-1)


@given(ragged(), st.data())
def test_unmasking_what_a_mask_and_its_opposite_kept_is_the_identity(sequences, draw):
    data, _ = sequences
    mask = masks(draw, len(data))
    kept, others = ops.boolean_mask(data, mask).rows, ops.boolean_mask(data, ~mask).rows
    assert_same(ops.boolean_unmask([kept, others], [mask, ~mask]), np.ascontiguousarray(data))


@given(ragged(), st.data())
def test_where_masks_overlap_the_first_one_wins(sequences, draw):
    data, _ = sequences
    given_masks = [masks(draw, len(data)) for _ in range(draw.draw(st.integers(1, 3)))]
    owner = np.full(len(data), -1)
    for i in reversed(range(len(given_masks))):
        owner[given_masks[i]] = i
    found = ops.boolean_unmask([data[owner == i] for i in range(len(given_masks))], given_masks, fill=0)
    expected = data.copy()
    expected[owner < 0] = np.zeros((), "int64").astype(data.dtype)
    assert_same(found, expected)


@pytest.mark.parametrize(
    ("values", "given_masks", "message"),
    [
        ([[1]], [[True, False]], r"no mask covers row 1"),
        ([[1]], [[True, True]], r"values\[0\] has 1 rows, expected 2 as mask\[0\] says"),
        (
            [[1], [2, 3]],
            [[True, False], [True, True]],
            r"values\[1\] has 2 rows, expected 1 as mask\[1\] says",
        ),
        (
            [[1], [2.0]],
            [[True, False], [False, True]],
            r"values\[1\] is float64 but values\[0\] is int64",
        ),
    ],
)
def test_values_that_do_not_fit_their_masks_are_an_error(values, given_masks, message):
    with pytest.raises(sf.OpError, match=f"^boolean_unmask: {message}"):
        ops.boolean_unmask(values, given_masks)
