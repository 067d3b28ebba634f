"""Sequences in, sequences out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import assert_same, assert_sequences, cut, join, lengths_arrays, ragged, values

import seqflow as sf
from seqflow import ops
from seqflow.errors import OpIndexError, OpTypeError


@given(ragged(), st.integers(0, 6), st.sampled_from(["head", "tail"]))
def test_truncate_keeps_the_head_or_the_tail(sequences, limit, keep):
    data, lengths = sequences
    result = ops.truncate(data, lengths, max_length=limit, keep=keep)
    expected = [s[:limit] if keep == "head" else s[max(len(s) - limit, 0) :] for s in cut(data, lengths)]
    assert_sequences(*result, expected, data)


def test_truncate_to_more_than_an_int64_keeps_all():
    assert ops.truncate([1, 2], [2], max_length=10**30).values.tolist() == [1, 2]


@given(ragged(), st.data())
def test_slice_takes_the_same_as_slicing_each_sequence(sequences, draw):
    data, lengths = sequences
    starts = [draw.draw(st.integers(0, int(n))) for n in lengths]
    sizes = [draw.draw(st.integers(0, int(n) - s)) for n, s in zip(lengths, starts, strict=True)]
    result = ops.slice_sequences(data, starts, np.array(sizes, "uint16"), lengths)
    expected = [s[i : i + n] for s, i, n in zip(cut(data, lengths), starts, sizes, strict=True)]
    assert_sequences(*result, expected, data)


@given(ragged(), st.data())
def test_a_clipped_slice_takes_what_python_takes(sequences, draw):
    data, lengths = sequences
    anything = hnp.arrays(
        draw.draw(st.sampled_from(["int32", "uint64"])), len(lengths), elements=st.integers(0, 9)
    )
    starts, sizes = draw.draw(anything), draw.draw(anything)
    result = ops.slice_sequences(data, starts, sizes, lengths, clip=True)
    expected = [s[i : i + n] for s, i, n in zip(cut(data, lengths), starts, sizes, strict=True)]
    assert_sequences(*result, expected, data)


def test_a_clipped_slice_may_ask_for_all_there_is():
    most = np.full(2, 2**63 - 1)
    assert ops.slice_sequences([1, 2, 3], [1, 0], most, [2, 1], clip=True).values.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("starts", "sizes", "clip", "message"),
    [
        ([0, 3], [0, 0], False, r"starts\[1\] is 3, expected 0 to 1, what its sequence has"),
        ([-1, 0], [0, 0], False, r"starts\[0\] is -1, expected 0 to 2"),
        ([1, 0], [2, 0], False, r"sizes\[0\] is 2, expected 0 to 1, what its sequence has"),
        ([0, 0], [0, -1], False, r"sizes\[1\] is -1"),
        ([-1, 0], [0, 0], True, r"starts\[0\] is -1, expected 0 or more"),
        ([0, 0], [-2, 0], True, r"sizes\[0\] is -2, expected 0 or more"),
    ],
)
def test_a_slice_that_leaves_its_sequence_is_an_error(starts, sizes, clip, message):
    with pytest.raises(sf.OpError, match=f"^slice_sequences: {message}"):
        ops.slice_sequences([1, 2, 3], starts, sizes, [2, 1], clip=clip)


@given(ragged(), st.integers(1, 6), st.data())
def test_split_covers_every_row_with_windows_of_at_most_chunk(sequences, chunk, draw):
    data, lengths = sequences
    stride = draw.draw(st.none() | st.integers(1, chunk))
    result = ops.split_sequences(data, lengths, chunk=chunk, stride=stride)
    expected = []
    for sequence in cut(data, lengths):
        pieces, start = [], 0
        while len(sequence) and (not pieces or pieces[-1].stop < len(sequence)):
            pieces.append(slice(start, min(start + chunk, len(sequence))))
            start += stride or chunk
        expected.append([sequence[piece] for piece in pieces])
    assert result.counts.tolist() == [len(pieces) for pieces in expected]
    assert_sequences(result.values, result.lengths, [piece for pieces in expected for piece in pieces], data)


@given(ragged(), st.integers(1, 6))
def test_splitting_without_overlap_and_joining_the_pieces_is_the_identity(sequences, chunk):
    data, lengths = sequences
    result = ops.split_sequences(data, lengths, chunk=chunk)
    assert result.values is data
    assert [int(pieces.sum()) for pieces in cut(result.lengths, result.counts)] == lengths.tolist()


@pytest.mark.parametrize("stride", [None, 2, 10**30])
def test_one_chunk_may_be_longer_than_an_int64(stride):
    result = ops.split_sequences([1, 2, 3], [3, 0], chunk=10**30, stride=stride)
    assert result.lengths.tolist() == [3]
    assert result.counts.tolist() == [1, 0]


def test_a_stride_above_the_chunk_is_an_error():
    with pytest.raises(sf.OpError, match=r"^split_sequences: stride is 3, expected at most chunk = 2"):
        ops.split_sequences([1, 2, 3], [3], chunk=2, stride=3)


@given(ragged())
def test_reverse_reverses_each_sequence(sequences):
    data, lengths = sequences
    found = ops.reverse_sequences(data, lengths)
    assert_same(found, join([s[::-1] for s in cut(data, lengths)], data))


@given(ragged())
def test_reversing_twice_is_the_identity(sequences):
    data, lengths = sequences
    assert_same(ops.reverse_sequences(ops.reverse_sequences(data, lengths), lengths), data)


@given(lengths_arrays(), st.integers(0, 2), st.lists(st.integers(0, 3), max_size=1), st.data())
def test_reverse_packed_reverses_the_steps_before_the_padding(lengths, padding, width, draw):
    steps = int(lengths.max(initial=0)) + padding
    data = values(draw.draw, "float32", (steps, len(lengths), *width))
    found = ops.reverse_packed(data, lengths)
    expected = data.copy()
    for column, length in enumerate(lengths):
        expected[:length, column] = data[:length, column][::-1]
    assert_same(found, expected)
    assert_same(ops.reverse_packed(found, lengths), data)


def test_reverse_packed_takes_no_length_above_the_number_of_steps():
    with pytest.raises(sf.ShapeError, match=r"^reverse_packed: data.shape\[0\] is 2, expected 3 or more"):
        ops.reverse_packed(np.zeros((2, 1)), [3])


@given(ragged(), st.integers(-7, 7))
def test_shift_moves_rows_inside_their_sequence(sequences, by):
    data, lengths = sequences
    found = ops.shift(data, lengths, by=by, fill=1)
    expected = []
    for sequence in cut(data, lengths):
        shifted = np.full_like(sequence, 1 if data.dtype.kind != "M" else np.datetime64(1, "s"))
        for i, row in enumerate(sequence):
            if 0 <= i + by < len(sequence):
                shifted[i + by] = row
        expected.append(shifted)
    assert_same(found, join(expected, data))


@pytest.mark.parametrize("by", [10**30, -(10**30), -(2**63)])
def test_a_shift_by_more_than_there_is_leaves_only_fill(by):
    assert ops.shift([1, 2, 3], [2, 1], by=by, fill=9).tolist() == [9, 9, 9]


def test_a_fill_that_the_dtype_cannot_hold_is_an_error():
    with pytest.raises(sf.OpError, match=r"^shift: fill is 300, which uint8 cannot hold"):
        ops.shift(np.zeros(2, np.uint8), [2], by=1, fill=300)


@given(ragged())
def test_append_and_prepend_add_one_row_to_every_sequence(sequences):
    data, lengths = sequences
    row = np.ones((1, *data.shape[1:]), "int64").astype(data.dtype)
    pieces = cut(data, lengths)
    appended, prepended = (op(data, lengths, token=1) for op in (ops.append_token, ops.prepend_token))
    assert_sequences(*appended, [np.concatenate([s, row]) for s in pieces], data)
    assert_sequences(*prepended, [np.concatenate([row, s]) for s in pieces], data)


def test_an_appended_row_has_the_shape_of_the_others():
    result = ops.append_token(np.ones((2, 3), np.float32), [2], token=0.5)
    np.testing.assert_array_equal(result.values[-1], [0.5, 0.5, 0.5])


def test_a_token_that_the_dtype_cannot_hold_is_an_error():
    with pytest.raises(sf.OpError, match=r"^prepend_token: token is 0.5, which int64 cannot hold"):
        ops.prepend_token([1, 2], [2], token=0.5)


@given(lengths_arrays(), st.data())
def test_expand_repeats_each_row_as_its_length_says(lengths, draw):
    x, _ = draw.draw(ragged(lengths=np.ones(len(lengths), "int64")))
    found = ops.expand(x, lengths)
    assert_same(found, np.repeat(x, lengths.astype(np.int64), axis=0))
    out = np.empty_like(found, order="C")
    assert ops.expand(x, lengths, out=out) is out
    assert_same(out, found)


def test_expand_refuses_an_out_of_another_shape():
    with pytest.raises(sf.OpError, match=r"^expand: out is int64\[3\], expected int64\[4\]"):
        ops.expand([1, 2], [3, 1], out=np.empty(3, np.int64))


def test_expand_needs_a_row_for_every_length():
    with pytest.raises(
        sf.ShapeError, match=r"^expand: lengths.shape\[0\] is 3, expected 2 as in x.shape\[0\]"
    ):
        ops.expand([1, 2], [3, 1, 0])


@given(ragged(), st.data())
def test_repeat_repeats_whole_sequences(sequences, draw):
    data, lengths = sequences
    repeats = draw.draw(lengths_arrays(longest=3, count=len(lengths)))
    result = ops.repeat_sequences(data, repeats, lengths)
    expected = [s for s, n in zip(cut(data, lengths), repeats, strict=True) for _ in range(n)]
    assert_sequences(*result, expected, data)


@given(st.integers(1, 4), lengths_arrays(), st.lists(st.integers(1, 3), max_size=2), st.data())
def test_reshape_regroups_the_elements_of_each_sequence(width, lengths, row, draw):
    lengths = lengths.astype(np.int64) * width
    data = values(draw.draw, "int32", (int(lengths.sum()), *row))
    result = ops.reshape_sequences(data, lengths, width=width)
    expected = [s.reshape(-1, width) for s in cut(data, lengths)]
    assert_sequences(*result, expected, data.reshape(-1, width))
    assert np.shares_memory(result.values, data) or not data.size


@pytest.mark.parametrize("width", [3, 4, 6, 10**30])
def test_elements_that_do_not_fill_whole_rows_are_an_error(width):
    with pytest.raises(
        sf.LodError, match=r"^reshape_sequences: sequence [12] has [24] elements, expected a mul"
    ):
        ops.reshape_sequences(np.zeros((3, 2)), [0, 1, 2] if width > 3 else [0, 2, 1], width=width)


@given(st.integers(1, 4), st.lists(st.integers(0, 2), max_size=1), lengths_arrays(), st.data())
def test_scatter_adds_the_updates_of_each_sequence_to_its_row(columns, width, lengths, draw):
    x = values(draw.draw, "float32", (len(lengths), columns, *width))
    updates = values(draw.draw, "float32", (int(lengths.sum()), *width))
    indices = draw.draw(hnp.arrays("uint8", int(lengths.sum()), elements=st.integers(0, columns - 1)))
    expected, before = x.copy(), x.copy()
    for row, (ids, amounts) in enumerate(zip(cut(indices, lengths), cut(updates, lengths), strict=True)):
        for i, amount in zip(ids, amounts, strict=True):
            expected[row, i] += amount
    assert_same(ops.scatter_sequences(x, updates, indices, lengths), expected)
    assert_same(x, before)


@pytest.mark.parametrize(("bad", "found"), [([0, 2], "indices[1] = 2"), ([-1, 0], "indices[0] = -1")])
def test_scatter_to_a_column_that_is_not_there_is_an_error(bad, found):
    with pytest.raises(OpIndexError) as error:
        ops.scatter_sequences(np.zeros((1, 2)), [1.0, 1.0], bad, [2])
    assert str(error.value).startswith(f"scatter_sequences: {found} is outside [0, 2)")


def test_scatter_takes_no_updates_that_the_dtype_cannot_hold():
    with pytest.raises(
        OpTypeError, match=r"^scatter_sequences: updates are float64, which int64, the dtype of x"
    ):
        ops.scatter_sequences([[1, 2]], [0.5], [0], [1])


@given(ragged(), st.integers(1, 4))
def test_trim_keeps_the_first_sequences(sequences, multiple):
    data, lengths = sequences
    result = ops.trim_dataset(data, lengths, multiple_of=multiple)
    kept = len(lengths) - len(lengths) % multiple
    assert_sequences(*result, cut(data, lengths)[:kept], data)


def test_trim_to_a_multiple_above_the_count_keeps_nothing():
    assert ops.trim_dataset([1, 2], [2], multiple_of=10**30).lengths.tolist() == []
