"""Distinct values, duplicates, places, and lists of ids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import assert_same, assert_sequences, cut, values
from strategies.ids import IDS

from seqflow import ops
from seqflow.errors import OpIndexError

DTYPES = st.sampled_from(["float16", "float32", "float64", "int8", "int64", "uint64", "bool", "M8[s]"])
NAN, NAT = np.nan, np.datetime64("NaT", "s")


@st.composite
def columns(draw):
    """Values of which some are equal, with NaN and NaT among them."""
    column = values(draw, draw(DTYPES), st.integers(0, 12))
    missing = {"f": NAN, "M": NAT}.get(column.dtype.kind)
    if missing is not None:
        column[draw(hnp.arrays(bool, len(column)))] = missing
    return column


@given(columns())
def test_distinct_values_are_those_of_numpy(column):
    for found, expected in zip(
        ops.unique(column), np.unique(column, return_inverse=True, return_counts=True), strict=True
    ):
        np.testing.assert_array_equal(found, expected, strict=True)


def test_order_is_that_of_the_values_and_not_of_their_bits():
    for column in (
        np.array([1.5, -2.0, -0.0, 0.0, -np.inf, np.inf, NAN, -NAN]),
        np.array([2**64 - 1, 0, 2**63], np.uint64),
        np.array([-1, 3, "NaT", 0], "M8[s]"),
    ):
        np.testing.assert_array_equal(ops.unique(column).unique, np.unique(column))


@given(columns())
def test_duplicates_are_where_a_value_has_been_before(column):
    first = set(np.unique(column, return_index=True)[1].tolist())
    assert ops.find_duplicates(column).tolist() == [i for i in range(len(column)) if i not in first]


@given(st.data())
def test_the_last_place_is_found(data):
    dtype = data.draw(DTYPES)
    column = values(data.draw, dtype, st.integers(0, 9))
    queries = values(data.draw, dtype, hnp.array_shapes(max_dims=2, max_side=3))
    places = [np.flatnonzero(column == query) for query in queries.ravel()]
    expected = [int(place[-1]) if len(place) else -7 for place in places]
    found = ops.find(column, queries, missing=-7)
    assert_same(found, np.array(expected, np.int64).reshape(queries.shape))


def test_nan_is_found_where_there_is_nan():
    assert ops.find([1.0, NAN, NAN], [NAN, 1.0]).tolist() == [2, 0]


def test_rows_are_left_out_whatever_order_their_indices_have():
    rows = np.arange(8).reshape(4, 2)
    assert_same(ops.remove_rows(rows, [3, 0, 3]), rows[1:3])
    assert_same(ops.remove_rows(rows, np.zeros(0, np.int32)), rows)
    for bad in (4, -1):
        with pytest.raises(OpIndexError, match=rf"indices\[1\] = {bad} is outside \[0, 4\)"):
            ops.remove_rows(rows, [0, bad])


@given(IDS["merge_id_lists"]())
def test_merged_lists_hold_each_id_once_in_order(call):
    data, lengths = call[0]["data"], call[0]["lengths"]
    lists = zip(*(cut(one, sizes) for one, sizes in zip(data, lengths, strict=True)), strict=True)
    expected = [np.unique(np.concatenate(parts)) for parts in lists]
    assert_sequences(*ops.merge_id_lists(data, lengths), expected, data[0])


def test_values_that_are_in_the_other_column_of_the_row():
    a, b = np.array([1, 2, 3, 1, 1, 1, 4]), np.array([4, 2, 1, 2, 1, 12, 4])
    assert ops.isin_within(a, [3, 3, 1], b, [3, 3, 1]).tolist() == [1, 1, 0, 1, 1, 1, 1]
    assert ops.isin_within(a, [3, 3, 1], b, [3, 3, 1], invert=True).tolist() == [0, 0, 1, 0, 0, 0, 0]
    assert ops.isin([1, 2], [2], invert=True).tolist() == [True, False]
    assert ops.isin_within([np.nan, 1.0], [2], [np.nan], [1]).tolist() == [True, False]
    assert ops.isin(a, np.array([1, 4])).tolist() == [1, 0, 0, 1, 1, 1, 1]


def test_values_are_compared_exactly_beyond_32_bits():
    a, b = np.array([2**40, 2**63 - 1]), np.array([2**40 + 1, 2**63 - 1])
    assert ops.isin_within(a, [2], b, [2]).tolist() == [False, True]
