"""Rows dealt out by keys, and brought together again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import assert_same, assert_sequences, cut, ragged

from seqflow import ops
from seqflow.errors import OpIndexError, ShapeError

PARTS = st.integers(1, 4)


@given(sequences=ragged(), data=st.data(), parts=PARTS)
def test_every_shard_has_its_rows_in_order_and_all_of_them_come_back(sequences, data, parts):
    rows, lengths = sequences
    keys = data.draw(hnp.arrays("int64", len(rows), elements=st.integers(-9, 9)))
    shards = ops.partition(rows, keys, parts=parts)
    for i, shard in enumerate(shards):
        assert_same(shard, rows[keys % parts == i])
    assert_same(ops.gather_by_key(shards, keys), np.ascontiguousarray(rows))
    dealt = ops.partition_sequences(rows, keys, lengths, parts=parts)
    for i, (values, kept) in enumerate(zip(dealt.values, dealt.lengths, strict=True)):
        pairs = zip(cut(rows, lengths), cut(keys, lengths), strict=True)
        assert_sequences(values, kept, [one[own % parts == i] for one, own in pairs], rows)


@given(hnp.arrays("uint8", st.integers(0, 9), elements=st.integers(0, 3)))
def test_a_key_has_the_positions_where_it_stands(keys):
    for key, positions in enumerate(ops.key_split(keys, num_keys=4)):
        assert_same(positions, np.flatnonzero(keys == key))


@pytest.mark.parametrize("bad", [3, -1])
def test_a_key_outside_is_named(bad):
    with pytest.raises(OpIndexError, match=rf"key_split: keys\[1\] = {bad} is outside \[0, 3\)"):
        ops.key_split([0, bad], num_keys=3)


def test_shards_that_do_not_fit_the_keys_are_named():
    with pytest.raises(
        ShapeError, match=r"shards\[1\] has 2 rows, expected 1: the number of keys that are 1 modulo 2"
    ):
        ops.gather_by_key([[1.0, 2.0], [3.0, 4.0]], [0, 2, -1])
