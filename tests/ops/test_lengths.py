"""Describing structure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import LodError, Net, OpError, ShapeError, TensorSpec, ops, registry
from seqflow.signature import OwnRows

LENGTHS = st.sampled_from(["int32", "int64", "uint8", "uint64"]).flatmap(
    lambda dtype: hnp.arrays(dtype, st.integers(0, 6), elements=st.integers(0, 5))
)
SMALL = st.lists(st.integers(0, 5), max_size=6)


@given(LENGTHS)
def test_offsets_are_the_sums_before_each_sequence_and_the_total(lengths):
    offsets = ops.lengths_to_offsets(lengths)
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [int(lengths[:i].sum()) for i in range(len(lengths) + 1)]
    assert ops.lengths_to_cu_seqlens(lengths).tolist() == offsets.tolist()


@given(LENGTHS)
def test_segment_ids_name_the_sequence_of_each_row(lengths):
    ids = ops.lengths_to_segment_ids(lengths)
    assert ids.tolist() == [i for i, length in enumerate(lengths) for _ in range(length)]


@given(LENGTHS)
def test_positions_count_inside_each_sequence(lengths):
    assert ops.lengths_to_positions(lengths).tolist() == [i for length in lengths for i in range(length)]


@given(LENGTHS)
def test_ranges_are_the_start_and_the_length_of_each_sequence(lengths):
    starts = ops.lengths_to_offsets(lengths).tolist()
    expected = [[starts[i], int(length)] for i, length in enumerate(lengths)]
    assert ops.lengths_to_ranges(lengths).tolist() == expected
    assert ops.lengths_to_ranges(lengths).shape == (len(lengths), 2)


@given(LENGTHS, st.integers(0, 3), st.booleans())
def test_offsets_ids_and_ranges_lead_back_to_the_lengths(lengths, more, strided):
    def form(array):
        return np.repeat(array, 2)[::2] if strided else array

    offsets, ids = ops.lengths_to_offsets(lengths), ops.lengths_to_segment_ids(lengths)
    expected = lengths.tolist()
    assert ops.offsets_to_lengths(form(offsets)).tolist() == expected
    assert ops.offsets_to_lengths(form(offsets + 7).astype(np.uint16)).tolist() == expected
    count = len(lengths) + more
    assert ops.segment_ids_to_lengths(form(ids), num_segments=count).tolist() == expected + [0] * more
    ranges = ops.segment_ids_to_ranges(form(ids).astype(np.int32), num_segments=len(lengths))
    np.testing.assert_array_equal(ranges, ops.lengths_to_ranges(lengths))


@given(LENGTHS)
def test_without_a_number_of_segments_the_last_id_decides(lengths):
    last = max((i for i, length in enumerate(lengths) if length), default=-1)
    ids = ops.lengths_to_segment_ids(lengths)
    assert ops.segment_ids_to_lengths(ids).tolist() == lengths[: last + 1].tolist()


@given(LENGTHS, st.sampled_from([0.5, 1.0, 2.0, 0.0, -1.0]))
def test_weights_are_a_power_of_each_length(lengths, power):
    weights = ops.lengths_to_weights(lengths, power=power)
    assert weights.dtype == np.float32
    expected = [float(length) ** -power for length in lengths for _ in range(length)]
    np.testing.assert_allclose(weights, expected, rtol=1e-6)


@given(st.integers(0, 5), st.integers(0, 5))
def test_the_shape_of_equal_lengths(count, length):
    assert ops.lengths_to_shape(np.full(count, length)).tolist() == [count, length if count else 0]


@given(LENGTHS, st.integers(1, 7))
def test_split_lengths_add_up_and_differ_by_one_at_most(lengths, n):
    parts = ops.lengths_split(lengths, n=n).reshape(len(lengths), n)
    np.testing.assert_array_equal(parts.sum(axis=1), lengths)
    for row in parts.tolist():
        assert row == sorted(row, reverse=True)
        assert max(row) - min(row) <= 1


@given(st.lists(SMALL, max_size=5), st.sampled_from(["int32", "uint64"]))
def test_two_levels_become_one(levels, dtype):
    inner = np.array([length for level in levels for length in level], dtype)
    outer = np.array([len(level) for level in levels], dtype)
    rows = ops.collapse_lengths(inner, outer)
    assert rows.dtype == np.int64
    assert rows.tolist() == [sum(level) for level in levels]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.offsets_to_lengths([]), ShapeError, r"offsets.shape\[0\] is 0, expected B\+1 for some B"),
        (lambda: ops.offsets_to_lengths([-1, 2]), LodError, r"offsets\[0\] is -1, expected 0 or more"),
        (lambda: ops.offsets_to_lengths([0, 3, 2]), LodError, r"offsets\[2\] is 2 but offsets\[1\] is 3"),
        (lambda: ops.offsets_to_lengths(np.array([0, 2**64 - 1], np.uint64)), OpError, "does not fit int64"),
        (lambda: ops.offsets_to_lengths([0.0, 1.0]), OpError, "offsets is float64, expected integers"),
        (lambda: ops.segment_ids_to_lengths([0, -1]), LodError, r"ids\[1\] = -1 is negative"),
        (lambda: ops.segment_ids_to_lengths([0, 2, 1]), OpError, r"ids\[2\] = 1 is below ids\[1\] = 2"),
        (lambda: ops.segment_ids_to_lengths([0, 3], num_segments=3), IndexError, r"ids\[1\] = 3 is outside \[0, 3\)"),
        (lambda: ops.segment_ids_to_lengths([], num_segments=2**70), OpError, "segment_ids_to_lengths: "),
        (lambda: ops.segment_ids_to_ranges([1, 0]), OpError, r"ids\[1\] = 0 is below ids\[0\] = 1"),
        (lambda: ops.lengths_to_shape([2, 2, 3]), LodError, r"lengths\[2\] is 3 but lengths\[0\] is 2, expected all equal"),
        (lambda: ops.lengths_split([1], n=0), OpError, "n is 0, expected an integer, 1 or more"),
        (lambda: ops.lengths_to_cu_seqlens([2**30, 2**30]), LodError, r"sum\(lengths\) is 2147483648 at lengths\[1\]"),
        (lambda: ops.collapse_lengths([1, 2], [1]), LodError, r"sum\(outer\) is 1 but inner has 2 rows"),
        (lambda: ops.same_rows([1, 2], [1]), ShapeError, "same_rows: other has 1 rows but data has 2, expected as many"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_largest_total_of_int32_is_fine():
    assert ops.lengths_to_cu_seqlens([2**31 - 1]).tolist() == [0, 2**31 - 1]


def test_same_lengths_names_the_first_row_that_differs():
    assert ops.same_lengths([1, 2], [1, 2]) is None
    with pytest.raises(
        LodError, match=r"same_lengths: lengths\[1\] is 2 but other\[1\] is 3, expected the same"
    ):
        ops.same_lengths([1, 2, 3], [1, 3, 0])


def test_same_rows_lets_tensors_of_two_records_meet():
    specs = {
        "x": TensorSpec("float32", "{?,4}", OwnRows("one record")),
        "y": TensorSpec("float32", "{?,4}", OwnRows("another")),
    }
    with pytest.raises(LodError, match="rows"):
        Net("z = x + y").infer(specs)
    inferred = Net("same_rows(x, y)\nz = x + y\nreturn z").infer(specs)
    assert len(inferred.guards) == 1
    assert str(inferred.specs["z"]) == "float32{x.shape[0],4}"


def test_same_rows_needs_as_many():
    with pytest.raises(ShapeError, match="same_rows"):
        registry.get("same_rows").infer(
            {"data": TensorSpec("int8", "{2}"), "other": TensorSpec("int8", "{3}")}
        )
