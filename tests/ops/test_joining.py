"""Several columns of sequences in, one out."""

from itertools import chain, zip_longest

import numpy as np
import pytest
from hypothesis import given
from per_sequence import assert_same, assert_sequences, cut
from strategies.sequences import SEQUENCES

import seqflow as sf
from seqflow import TensorSpec, ops, registry
from seqflow.errors import OpTypeError

COLUMNS = SEQUENCES["concat_sequences"]().map(lambda call: (call[0]["data"], call[0]["lengths"]))


def side_by_side(data, lengths):
    """For each row of the record, its sequence in every column."""
    return list(zip(*(cut(one, sizes) for one, sizes in zip(data, lengths, strict=True)), strict=True))


@given(COLUMNS)
def test_concat_joins_the_sequences_of_each_row(inputs):
    data, lengths = inputs
    expected = [np.concatenate(sequences) for sequences in side_by_side(data, lengths)]
    assert_sequences(*ops.concat_sequences(data, lengths), expected, data[0])


@given(COLUMNS)
def test_slicing_what_was_joined_gives_each_column_back(inputs):
    data, lengths = inputs
    rows, joined = ops.concat_sequences(data, lengths)
    starts = np.zeros(len(joined), np.int64)
    for one, sizes in zip(data, lengths, strict=True):
        assert_sequences(*ops.slice_sequences(rows, starts, sizes, joined), cut(one, sizes), one)
        starts = starts + sizes.astype(np.int64)


@given(COLUMNS)
def test_interleave_takes_rows_in_turn(inputs):
    data, lengths = inputs
    nothing = object()
    expected = [
        [row for row in chain.from_iterable(zip_longest(*sequences, fillvalue=nothing)) if row is not nothing]
        for sequences in side_by_side(data, lengths)
    ]
    expected = [np.array(rows, data[0].dtype).reshape(len(rows), *data[0].shape[1:]) for rows in expected]
    assert_sequences(*ops.interleave(data, lengths), expected, data[0])


@given(COLUMNS)
def test_one_column_alone_stays_as_it_is(inputs):
    data, lengths = inputs
    for op in (ops.concat_sequences, ops.interleave):
        assert_same(op(data[:1], lengths[:1]).values, np.ascontiguousarray(data[0]))


@pytest.mark.parametrize("op", [ops.concat_sequences, ops.interleave], ids=lambda op: op.__name__)
def test_columns_have_one_dtype_one_row_shape_and_as_many_sequences(op):
    message = rf"{op.__name__}: data\[1\] is float64 but data\[0\] is int64"
    with pytest.raises(OpTypeError, match=message):
        op([[1], [1.0]], [[1], [1]])
    specs = {
        "data": [TensorSpec("int64", "{?}"), TensorSpec("float64", "{?}")],
        "lengths": [TensorSpec("int64", "{?}")] * 2,
    }
    with pytest.raises(OpTypeError, match=message):
        registry.get(op.__name__).infer(specs)
    with pytest.raises(sf.ShapeError, match=rf"^{op.__name__}: "):
        op([[1], [[1]]], [[1], [1]])
    with pytest.raises(sf.ShapeError, match=rf"^{op.__name__}: lengths.* is 2, expected 1"):
        op([[1], [1]], [[1], [1, 0]])
    with pytest.raises(sf.LodError, match=rf"^{op.__name__}: sum\(lengths\) is 2 but data has 1 rows"):
        op([[1], [1]], [[1], [2]])
    with pytest.raises(sf.OpError, match=rf"^{op.__name__}: data has 2, lengths has 1"):
        op([[1], [1]], [[1]])
    with pytest.raises(sf.OpError, match=rf"^{op.__name__}: data has 0, lengths has 0"):
        op([], [])
    for bad in (None, 3, "ab"):
        with pytest.raises(OpTypeError, match=rf"^{op.__name__}: lengths is \w+, expected a list of arrays"):
            op([[1], [1]], bad)


def test_texts_are_joined_whatever_their_widths():
    short, long = np.array(["a", "b"]), np.array(["ccc"])
    assert ops.concat_sequences([short, short[:1]], [[2], [1]]).values.tolist() == ["a", "b", "a"]
    for pair in ([short, long], [long, short]):
        joined = ops.concat_sequences(pair, [[len(one)] for one in pair]).values
        assert joined.tolist() == [*pair[0].tolist(), *pair[1].tolist()]
    with pytest.raises(OpTypeError, match=r'convert both first: array.astype\("<U3"\)'):
        ops.concat_sequences([short, long.astype("S")], [[2], [1]])
