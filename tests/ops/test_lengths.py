"""Describing structure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import LodError, ops

LENGTHS = hnp.arrays("int32", st.integers(0, 6), elements=st.integers(0, 5))


@given(LENGTHS)
def test_offsets_are_the_sums_before_each_sequence_and_the_total(lengths):
    offsets = ops.lengths_to_offsets(lengths)
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [int(lengths[:i].sum()) for i in range(len(lengths) + 1)]


@given(LENGTHS)
def test_segment_ids_name_the_sequence_of_each_row(lengths):
    ids = ops.lengths_to_segment_ids(lengths)
    assert ids.tolist() == [i for i, length in enumerate(lengths) for _ in range(length)]


def test_same_lengths_names_the_first_row_that_differs():
    assert ops.same_lengths([1, 2], [1, 2]) is None
    with pytest.raises(
        LodError, match=r"same_lengths: lengths\[1\] is 2 but other\[1\] is 3, expected the same"
    ):
        ops.same_lengths([1, 2, 3], [1, 3, 0])
