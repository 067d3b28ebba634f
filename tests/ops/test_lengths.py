"""Describing structure."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import ops

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
