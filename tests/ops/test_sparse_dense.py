"""Sparse to dense and back, for a tensor and for a batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import assert_same, cut
from strategies.ids import IDS

from seqflow import ops, registry
from seqflow.errors import LodError, OpError, OpIndexError, OpMemoryError


@given(IDS["sparse_to_dense"]())
def test_rows_stand_where_indices_say_and_duplicates_add_up_or_the_last_counts(call):
    inputs, attributes = call
    values, indices = inputs["values"], inputs["indices"].astype(np.int64)
    count = attributes.get("num_rows", int(indices.max(initial=-1)) + 1)
    expected = np.zeros((count, *values.shape[1:]), values.dtype)
    for i, row in zip(indices, values, strict=True):
        expected[i] = expected[i] + row if attributes["duplicates"] == "sum" else row
    assert_same(ops.sparse_to_dense(**inputs, **attributes), expected)


def test_duplicates_are_an_error_where_asked():
    with pytest.raises(
        OpError, match=r"indices\[2\] = 1 is the same as indices\[0\], expected no duplicates"
    ):
        ops.sparse_to_dense([1, 2, 3, 4], [1, 0, 1, 0], duplicates="raise")
    assert ops.sparse_to_dense([1, 2], [1, 0], duplicates="raise").tolist() == [2, 1]


def test_sums_wrap_around_in_the_dtype_of_the_values():
    assert_same(ops.sparse_to_dense(np.array([200, 100], np.uint8), [0, 0]), np.array([44], np.uint8))


def test_an_index_outside_is_named():
    with pytest.raises(OpIndexError, match=r"indices\[1\] = 3 is outside \[0, 3\)"):
        ops.sparse_to_dense([1, 2], [0, 3], num_rows=3)
    with pytest.raises(OpIndexError, match=r"indices\[0\] = -1 is outside"):
        ops.sparse_to_dense([1], [-1])
    with pytest.raises(OpMemoryError, match="the largest of indices is"):
        ops.sparse_to_dense([1], [2**50])


@given(hnp.arrays("int8", hnp.array_shapes(max_dims=3, max_side=4), elements=st.integers(0, 1)))
def test_what_is_sparse_becomes_dense_again(dense):
    assert_same(ops.sparse_to_dense(*ops.dense_to_sparse(dense), num_rows=len(dense)), dense)


@given(IDS["sparse_to_dense_mask"]())
def test_a_column_has_the_last_value_of_its_id_or_the_default(call):
    inputs, mask = call[0], call[1]["mask"]
    dense, presence = ops.sparse_to_dense_mask(**inputs, mask=mask)
    lengths = inputs["lengths"]
    assert dense.dtype == inputs["values"].dtype
    assert dense.shape[:2] == presence.shape == (len(lengths), len(mask))
    rows = zip(cut(inputs["values"], lengths), cut(inputs["indices"], lengths), strict=True)
    for i, (values, ids) in enumerate(rows):
        for k, feature in enumerate(mask):
            places = np.flatnonzero(ids == feature)
            expected = values[places[-1]] if len(places) else inputs["default"]
            np.testing.assert_array_equal(dense[i, k], expected)
            assert presence[i, k] == bool(len(places))


def test_a_mask_has_no_id_twice():
    with pytest.raises(OpError, match=r"mask\[2\] is 5, which is mask\[0\] already"):
        ops.sparse_to_dense_mask([1.0], 0.0, [5], [1], mask=[5, 7, 5])
    with pytest.raises(OpError, match="which does not fit int64"):
        ops.sparse_to_dense_mask([1.0], 0.0, [5], [1], mask=[2**63])


@given(IDS["batch_sparse_to_dense"](registry.get("batch_sparse_to_dense")))
def test_each_example_is_a_row_and_comes_back(call):
    (inputs, attributes) = call
    values, indices, lengths = (inputs[name] for name in ("values", "indices", "lengths"))
    dense = ops.batch_sparse_to_dense(values, indices, lengths, **attributes, fill=1)
    for row, own, columns in zip(dense, cut(values, lengths), cut(indices, lengths), strict=True):
        expected = np.full(attributes["width"], 1).astype(values.dtype)
        for value, column in zip(own, columns, strict=True):
            expected[column] = value
        assert_same(row, expected)
    assert_same(
        ops.batch_dense_to_sparse(dense, indices, lengths),
        dense[ops.lengths_to_segment_ids(lengths), indices.astype(np.int64)],
    )


@pytest.mark.parametrize("bad", [3, -1])
def test_a_column_outside_is_named(bad):
    with pytest.raises(OpIndexError, match=rf"indices\[1\] = {bad} is outside \[0, 3\)"):
        ops.batch_sparse_to_dense([1, 2], [0, bad], [2], width=3)
    with pytest.raises(OpIndexError, match=rf"indices\[1\] = {bad} is outside \[0, 3\)"):
        ops.batch_dense_to_sparse(np.zeros((1, 3)), [0, bad], [2])
    with pytest.raises(LodError, match=r"sum\(lengths\) is 2"):
        ops.batch_sparse_to_dense([1], [0], [2], width=3)


def test_only_what_is_above_zero_is_listed():
    values, lengths = ops.dense_to_id_list([[0.3, -2.0, 0.0, np.nan], [0, 0, 0, 0], [1, 0, 0, 9]])
    assert (values.tolist(), lengths.tolist()) == ([0, 0, 3], [1, 0, 2])
