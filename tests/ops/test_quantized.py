"""Quantised rows: Caffe2's bytes, and pooling without copies of the table in floats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from typed_arrays import f32

from seqflow import ops
from seqflow.errors import OpError, OpIndexError, ShapeError

ROWS = hnp.arrays(
    "float32",
    st.tuples(st.integers(0, 5), st.sampled_from([4, 8, 16])),
    elements=st.floats(-100, 100, width=32),
)
FORMATS = [(8, "float32"), (8, "float16"), (4, "float16"), (4, "float32"), (2, "float16")]


def row(integers, scale, bias, dtype):
    return [*integers, *np.array([scale, bias], dtype).tobytes()]


def test_8_bits_with_scale_and_bias_in_float32():
    fused = ops.quantize_rowwise(f32([0, 255, 128], [-1, 1, -1]))
    assert fused.tolist() == [
        row([0, 255, 128], 1, 0, "f4"),
        row([0, 255, 0], np.float32(2) / np.float32(255), -1, "f4"),
    ]


def test_a_constant_row_of_8_bits_has_the_scale_0():
    assert ops.quantize_rowwise(f32([3, 3])).tolist() == [row([0, 0], 0, 3, "f4")]


def test_a_constant_row_has_the_scale_1_in_float16():
    assert ops.quantize_rowwise(f32([3, 3]), scale="float16").tolist() == [row([0, 0], 1, 3, "f2")]
    assert ops.quantize_rowwise(f32([-3, -3]), bits=4).tolist() == [row([0], 1, -3, "f2")]
    assert ops.quantize_rowwise(f32([-3] * 4), bits=2).tolist() == [row([0], 1, -3, "f2")]


def test_the_first_integer_of_a_byte_is_in_its_lowest_bits():
    assert ops.quantize_rowwise(f32([0, 15, 3, 1]), bits=4).tolist() == [row([0xF0, 0x13], 1, 0, "f2")]
    assert ops.quantize_rowwise(f32([0, 3, 1, 2]), bits=2).tolist() == [row([0b10011100], 1, 0, "f2")]


def test_scale_and_bias_are_rounded_to_float16_before_they_are_used():
    fused = ops.quantize_rowwise(f32([-0.1, 1.4]), bits=4)
    bias = np.float16(-0.1)
    scale = np.float16((np.float32(1.4) - np.float32(bias)) / np.float32(15))
    assert fused.tolist() == [row([0xF0], scale, bias, "f2")]


def test_a_range_too_small_for_a_scale_in_float16_is_a_constant_row():
    assert ops.quantize_rowwise(f32([0, 1e-9]), bits=4).tolist() == [row([0], 1, 0, "f2")]


@pytest.mark.parametrize(("bits", "columns"), [(4, 3), (2, 6)])
def test_columns_fill_whole_bytes(bits, columns):
    with pytest.raises(ShapeError, match=f"data has {columns} columns, expected a multiple of {8 // bits}"):
        ops.quantize_rowwise(np.zeros((2, columns)), bits=bits)


def test_bits_are_8_or_4_or_2():
    with pytest.raises(OpError, match="bits is 3, expected 8, 4 or 2"):
        ops.quantize_rowwise(np.zeros((2, 3)), bits=3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_refused(value):
    with pytest.raises(OpError, match=r"data\[1, 2\] = -?(nan|inf), expected finite numbers"):
        ops.quantize_rowwise(f32([0, 0, 0, 0], [0, 1, value, 3]), bits=4)


def test_a_range_that_its_scale_cannot_say_is_refused():
    with pytest.raises(OpError, match="more than a scale and a bias in float16 can say"):
        ops.quantize_rowwise(f32([0, 1e9]), bits=4)


@given(ROWS, st.sampled_from(FORMATS))
def test_quantising_is_off_by_half_a_step(data, form):
    bits, scale = form
    found = ops.dequantize_rowwise(ops.quantize_rowwise(data, bits=bits, scale=scale), bits=bits, scale=scale)
    step = np.ptp(data, axis=1, keepdims=True) / (2**bits - 1) if data.size else 0
    rounded = 1e-2 * np.abs(data).max(axis=1, keepdims=True) if scale == "float16" and data.size else 1e-4
    assert (np.abs(found - data) <= step * 0.51 + rounded * 1.5 + 1e-6).all()


@pytest.mark.parametrize(("bits", "name"), [(8, "byte"), (4, "4bit"), (2, "2bit")])
def test_the_bytes_are_those_of_torch(bits, name):
    torch = pytest.importorskip("torch")
    data = np.random.default_rng(bits).normal(size=(300, 16)).astype(np.float32)
    data[0], data[1], data[2] = 2.5, -1, 1e-9 * data[2]
    packed = getattr(torch.ops.quantized, f"embedding_bag_{name}_prepack")(torch.from_numpy(data))
    np.testing.assert_array_equal(ops.quantize_rowwise(data, bits=bits), packed.numpy())


@pytest.mark.parametrize(("bits", "scale"), FORMATS)
def test_pooling_is_dequantising_and_reducing(bits, scale):
    rng = np.random.default_rng(bits)
    table = ops.quantize_rowwise(rng.normal(size=(20, 12)), bits=bits, scale=scale)
    form = {"bits": bits, "scale": scale}
    lengths = np.array([3, 0, 40, 1])
    indices, weights = rng.integers(0, 20, 44), rng.random(44).astype(np.float32)
    values = ops.dequantize_rowwise(table, **form)
    np.testing.assert_array_equal(ops.gather_quantized(table, indices, **form), values[indices])
    for kind in ("sum", "mean"):
        found = getattr(ops, f"sparse_lengths_{kind}_quantized")(table, indices, lengths, **form)
        expected = getattr(ops, f"sparse_lengths_{kind}")(values, indices, lengths)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    found = ops.sparse_lengths_weighted_sum_quantized(table, weights, indices, lengths, **form)
    expected = ops.sparse_lengths_weighted_sum(values, weights, indices, lengths)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_pruned_row_adds_nothing_and_counts_in_means():
    table = ops.quantize_rowwise(f32([2, 4]))
    mapping = np.array([-1, 0])
    assert ops.sparse_lengths_sum_quantized(table, [0, 1], [2], mapping).tolist() == [[2, 4]]
    assert ops.sparse_lengths_mean_quantized(table, [0, 1], [2], mapping).tolist() == [[1, 2]]
    sums = ops.sparse_lengths_weighted_sum_quantized(table, f32(5, 3), [0, 1], [2], mapping)
    assert sums.tolist() == [[6, 12]]


def test_a_mapping_of_the_one_entry_0_prunes_nothing():
    table = ops.quantize_rowwise(f32([2, 4], [1, 1]))
    assert ops.sparse_lengths_sum_quantized(table, [1, 1], [2], [0]).tolist() == [[2, 2]]


def test_wrong_indices_and_mappings_are_named():
    table = ops.quantize_rowwise(f32([2, 4]))
    with pytest.raises(OpIndexError, match=r"indices\[1\] = 1 is outside \[0, 1\)"):
        ops.sparse_lengths_sum_quantized(table, [0, 1], [2])
    with pytest.raises(OpIndexError, match=r"indices\[1\] = 2 is outside \[0, 2\)"):
        ops.sparse_lengths_sum_quantized(table, [0, 2], [2], [0, -1])
    with pytest.raises(OpIndexError, match=r"mapping\[1\] = 7 is outside \[-1, 1\)"):
        ops.sparse_lengths_sum_quantized(table, [0, 1], [2], [0, 7])


def test_a_table_has_room_for_scale_and_bias():
    with pytest.raises(ShapeError, match="table has rows of 7 bytes, expected 8 or more"):
        ops.dequantize_rowwise(np.zeros((2, 7), np.uint8))


def test_looking_up_a_pruned_table_leaves_rows_out():
    found = ops.sparse_lookup([0, 2, 1, 0], [1, -1, 0], [2, 1, 1])
    assert (found.values.tolist(), found.lengths.tolist()) == ([1, 0, 1], [2, 0, 1])
    with pytest.raises(OpIndexError, match=r"indices\[0\] = 3"):
        ops.sparse_lookup([3], [1, -1, 0], [1])
