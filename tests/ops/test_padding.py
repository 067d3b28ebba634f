"""Between flat and dense."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import cut, lengths_arrays, ragged

from seqflow import LodError, OpError, ShapeError, ops
from seqflow.errors import OpTypeError

SEQUENCES = ragged(["float32", "float16", "int8", "int64", "bool", "datetime64[s]", "complex64", "S3"])
SIDES = st.sampled_from(["right", "left"])


@given(SEQUENCES, SIDES, st.integers(0, 3))
def test_pad_is_one_row_a_sequence(sequences, side, more):
    data, lengths = sequences
    width = int(lengths.max(initial=0)) + more
    result = ops.pad(data, lengths, max_length=width, side=side)
    assert result.padded.shape == (len(lengths), width, *data.shape[1:])
    for row, mask, rows in zip(result.padded, result.mask, cut(data, lengths), strict=True):
        padding = np.zeros((width - len(rows), *data.shape[1:]), data.dtype)
        expected = [rows, padding] if side == "right" else [padding, rows]
        np.testing.assert_array_equal(row, np.concatenate(expected))
        np.testing.assert_array_equal(
            mask, np.concatenate([np.full(len(part), part is rows) for part in expected])
        )
    np.testing.assert_array_equal(ops.unpad(result.padded, lengths, side=side), data)


@given(ragged(["int64"]), SIDES, st.integers(1, 4))
def test_unpad_takes_away_what_pad_adds(sequences, side, multiple):
    data, lengths = sequences
    result = ops.pad(data, lengths, side=side, multiple_of=multiple, fill=-1)
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


@given(SEQUENCES, st.integers(0, 3))
def test_pad_lengths_is_pad_laid_flat(sequences, more):
    data, lengths = sequences
    target = int(lengths.max(initial=0)) + more
    found = ops.pad_lengths(data, lengths, target_length=target)
    padding = np.zeros((target, *data.shape[1:]), data.dtype)
    expected = [part for rows in cut(data, lengths) for part in (rows, padding[len(rows) :])]
    np.testing.assert_array_equal(found, np.concatenate([padding[:0], *expected]))


@given(SEQUENCES)
def test_an_empty_sequence_gets_one_row(sequences):
    data, lengths = sequences
    found = ops.pad_empty(data, lengths)
    one = np.zeros((1, *data.shape[1:]), data.dtype)
    np.testing.assert_array_equal(found.lengths, np.maximum(lengths, 1))
    expected = [rows if len(rows) else one for rows in cut(data, lengths)]
    np.testing.assert_array_equal(found.values, np.concatenate([one[:0], *expected]))


@given(SEQUENCES, st.integers(0, 3), st.integers(0, 3) | st.none())
def test_padding_comes_before_and_after_and_goes_again(sequences, before, after):
    data, lengths = sequences
    start, end = np.ones(data.shape[1:], data.dtype), np.zeros(data.shape[1:], data.dtype)
    found = ops.add_padding(data, lengths, start, end, before=before, after=after)
    behind = before if after is None else after
    expected = [
        part for rows in cut(data, lengths) for part in ([start] * before, rows, [end] * behind) if len(part)
    ]  # fmt: skip
    np.testing.assert_array_equal(found.values, np.concatenate([data[:0], *expected]))
    np.testing.assert_array_equal(found.lengths, lengths + before + behind)
    assert found.values.dtype == data.dtype
    removed = ops.remove_padding(found.values, found.lengths, before=before, after=after)
    np.testing.assert_array_equal(removed.values, data)
    np.testing.assert_array_equal(removed.lengths, lengths)


@given(st.data(), st.integers(0, 2), st.integers(0, 2))
def test_gathered_padding_is_the_sum_of_its_rows(draw, before, after):
    lengths = draw.draw(lengths_arrays()).astype(np.int64) + before + after
    data, _ = draw.draw(ragged(["float32", "float16", "int8", "bool"], lengths=lengths))
    found = ops.gather_padding(data, lengths, before=before, after=after)
    sequences = cut(data, lengths)
    expected = (
        sum((rows[:before].sum(axis=0, dtype=float) for rows in sequences), start=np.zeros(data.shape[1:])),
        sum(
            (rows[len(rows) - after :].sum(axis=0, dtype=float) for rows in sequences),
            start=np.zeros(data.shape[1:]),
        ),
    )
    for sums, right in zip(found, expected, strict=True):
        assert sums.dtype == ops.lengths_sum(data, lengths).dtype
        np.testing.assert_allclose(sums, right, rtol=1e-6)


def test_without_rows_of_their_own_padding_is_0_and_the_end_is_as_the_start():
    assert ops.add_padding([1, 2], [2, 0]).values.tolist() == [0, 1, 2, 0, 0, 0]
    assert ops.add_padding([1, 2], [2, 0], 7).values.tolist() == [7, 1, 2, 7, 7, 7]
    assert ops.add_padding([1, 2], [2, 0], None, 8, before=0, after=1).values.tolist() == [1, 2, 8, 8]
    assert ops.add_padding(np.array([True]), [1], before=0).values.tolist() == [True]
    assert ops.add_padding(np.array([1.5], np.float16), [1], 2).values.dtype == np.float16


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.pad([1, 2], [1]), LodError, r"pad: sum\(lengths\) is 1 but data has 2 rows"),
        (lambda: ops.unpad([[1, 2]], [3]), ShapeError, r"unpad: padded.shape\[1\] is 2, expected 3 or more"),
        (lambda: ops.unpad([[1, 2]], [1, 1]), ShapeError, r"unpad: .*is 1.*2|unpad: .*is 2.*1"),
        (lambda: ops.pad_lengths([1, 2], [2], target_length=1), LodError, r"pad_lengths: lengths\[0\] = 2 is longer than 1"),
        (lambda: ops.pad_lengths([1], [1], target_length=-1), OpError, "target_length is -1, expected an integer, 0 or more"),
        (lambda: ops.pad_empty(np.array([1], np.int8), [1], fill=300), OpError, "fill is 300, which int8 cannot hold"),
        (lambda: ops.add_padding([1, 2], [2], 0.5), OpTypeError, "start is float64, expected int64 as in data"),
        (lambda: ops.add_padding([1, 2], [2], 1, "x"), OpTypeError, "end is <U1, expected int64 as in data"),
        (lambda: ops.add_padding([[1, 2]], [1], [1, 2, 3]), ShapeError, r"start.shape\[0:1\] is \(3,\), expected \(2,\)"),
        (lambda: ops.add_padding([1], [1], before=-1), OpError, "before is -1, expected an integer, 0 or more"),
        (lambda: ops.add_padding([1], [1], before=2**63 - 1), (OpError, LodError), "add_padding: "),
        (lambda: ops.remove_padding([1, 2, 3], [2, 1]), LodError, r"remove_padding: lengths\[1\] is 1, expected at least the 1 \+ 1 rows"),
        (lambda: ops.gather_padding([1, 2, 3], [2, 1], before=2, after=0), LodError, r"gather_padding: lengths\[1\] is 1, expected at least the 2 \+ 0"),
        (lambda: ops.gather_padding(["a"], [1], before=0), OpTypeError, "data is <U1, expected numbers"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_empty_sequences_of_text_get_an_empty_text():
    assert ops.pad_empty(np.array(["a", "b"]), [2, 0]).values.tolist() == ["a", "b", ""]


@pytest.mark.parametrize("multiple_of", [1, 4, 8])
def test_max_length_is_the_width_whatever_the_multiple(multiple_of):
    padded = ops.pad(np.arange(9), np.array([9]), max_length=5, multiple_of=multiple_of, truncate=True)
    assert padded.padded.tolist() == [[0, 1, 2, 3, 4]]
    assert padded.mask.shape == (1, 5)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float16", 1e6), ("float32", -1e300), ("int64", np.nan), ("int64", 2**63), ("uint8", -1), ("int8", 1.5),
        ("M8[s]", 1.5), ("M8[s]", np.datetime64("2020-01-01T00:00:00.5")),
    ],
)  # fmt: skip
def test_a_value_that_the_data_cannot_hold_is_an_error(dtype, value):
    data = np.zeros(2, dtype)
    with pytest.raises(OpError, match=r"fill is .*, (which .* cannot hold|expected a value of)"):
        ops.pad(data, [2], max_length=3, fill=value)


@pytest.mark.parametrize(
    ("dtype", "row"), [("int32", 2**40), ("float16", 1e6), ("float32", -1e300), ("int8", 200)]
)
def test_a_row_of_padding_that_the_data_cannot_hold_is_an_error(dtype, row):
    with pytest.raises(OpError, match=f"end is .*, which {dtype} cannot hold"):
        ops.add_padding(np.zeros(2, dtype), [2], None, row)
    with pytest.raises(OpError, match=rf"updates\[1\] is .*, which {dtype} cannot hold"):
        ops.scatter_sequences(np.zeros((1, 3), dtype), np.array([0, row]), [0, 2], [2])


def test_infinity_and_nat_are_values():
    assert ops.pad(np.zeros(1, np.float16), [1], max_length=2, fill=np.inf).padded[0, 1] == np.inf
    assert np.isnat(
        ops.pad(np.zeros(1, "M8[s]"), [1], max_length=2, fill=np.datetime64("NaT", "s")).padded[0, 1]
    )
    assert np.isnan(ops.pad(np.zeros(1, np.float32), [1], max_length=2, fill=np.nan).padded[0, 1])
