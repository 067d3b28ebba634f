"""Time first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import cut, ragged

from seqflow import LodError, OpError, ShapeError, ops
from seqflow.errors import OpIndexError

SEQUENCES = ragged(["float32", "float16", "int8", "int64", "bool", "datetime64[s]", "complex64", "S3"])


@given(SEQUENCES, st.none() | st.integers(0, 3))
def test_packed_by_time_is_pad_with_time_first(sequences, more):
    data, lengths = sequences
    longest = int(lengths.max(initial=0))
    steps = None if more is None else longest + more
    found = ops.pack_by_time(data, lengths, max_length=steps)
    padded = ops.pad(data, lengths, max_length=steps).padded
    np.testing.assert_array_equal(found, padded.swapaxes(0, 1))
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(ops.unpack_by_time(found, lengths), data)
    strided_form = np.repeat(found, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(ops.unpack_by_time(strided_form, lengths), data)


def test_what_is_behind_the_end_is_the_value():
    assert ops.pack_by_time([1, 2, 3], [2, 1], fill=-1).tolist() == [[1, 3], [2, -1]]
    assert np.isnan(ops.pack_by_time(np.array([1.0]), [1, 0], fill=np.nan)[0, 1])


def test_packing_by_time_writes_into_out():
    packed, flat = np.empty((3, 2)), np.empty(2)
    assert ops.pack_by_time(np.array([1.0, 2.0]), [1, 1], max_length=3, out=packed) is packed
    assert packed.tolist() == [[1, 2], [0, 0], [0, 0]]
    assert ops.unpack_by_time(packed, [1, 1], out=flat) is flat
    assert flat.tolist() == [1, 2]
    with pytest.raises(OpError, match=r"out is float64\[3, 2\], expected float64\[2, 2\]"):
        ops.pack_by_time(np.array([1.0, 2.0]), [1, 1], max_length=2, out=packed)
    with pytest.raises(OpError, match=r"out is float64\[2\], expected float64\[3\]"):
        ops.unpack_by_time(packed, [1, 2], out=flat)


@given(SEQUENCES)
def test_packed_sequences_are_the_longest_first_step_by_step(sequences):
    data, lengths = sequences
    packed = ops.pack_sequence(data, lengths)
    pieces = cut(data, lengths)
    order = sorted(range(len(lengths)), key=lambda i: -int(lengths[i]))
    steps = [[pieces[i][t] for i in order if t < lengths[i]] for t in range(int(lengths.max(initial=0)))]
    assert packed.order.tolist() == order
    assert packed.lengths.tolist() == [len(step) for step in steps]
    expected = np.array([row for step in steps for row in step], data.dtype).reshape(data.shape)
    np.testing.assert_array_equal(packed.values, expected)
    found = ops.unpack_sequence(packed.values, packed.order, packed.lengths)
    np.testing.assert_array_equal(found.values, data)
    np.testing.assert_array_equal(found.lengths, lengths)
    assert found.lengths.dtype == np.int64


def test_sequences_of_equal_length_may_have_been_packed_in_any_order():
    found = ops.unpack_sequence([3, 1, 4, 2], np.array([1, 0], np.uint8), np.array([2, 2, 0], np.int32))
    assert found.values.tolist() == [1, 2, 3, 4]
    assert found.lengths.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.pack_by_time([1, 2], [2], max_length=1), LodError, r"pack_by_time: lengths\[0\] = 2 is longer than 1"),
        (lambda: ops.pack_by_time([1, 2], [1]), LodError, r"sum\(lengths\) is 1 but data has 2 rows"),
        (lambda: ops.pack_by_time([1], [1], fill=0.5), OpError, "fill is 0.5, which int64 cannot hold"),
        (lambda: ops.unpack_by_time([[1]], [2]), ShapeError, r"packed.shape\[0\] is 1, expected 2 or more"),
        (lambda: ops.unpack_by_time([[1, 2]], [1]), ShapeError, r"unpack_by_time: .*shape"),
        (lambda: ops.unpack_by_time([1], [1]), ShapeError, "packed has 1 dimensions"),
        (lambda: ops.unpack_sequence([1], [1], [1]), OpIndexError, r"order\[0\] = 1 is outside \[0, 1\)"),
        (lambda: ops.unpack_sequence([1, 2], [0, 0], [2]), OpError, "order does not hold 1, expected each of 0 to 1 once"),
        (lambda: ops.unpack_sequence([1, 2, 3], [0, 1], [1, 2]), LodError, r"lengths\[1\] is 2 but lengths\[0\] is 1"),
        (lambda: ops.unpack_sequence([1, 2], [0], [2]), LodError, r"lengths\[0\] is 2 but there are 1 sequences"),
        (lambda: ops.unpack_sequence([1, 2], [0], [1]), LodError, r"sum\(lengths\) is 1 but data has 2 rows"),
        (lambda: ops.unpack_sequence([1], [0, 1], [2, -1]), LodError, r"lengths\[1\] = -1 is negative"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
