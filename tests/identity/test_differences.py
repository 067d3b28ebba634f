"""What is told of two records that differ."""

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf


def loader_with(value):
    """A loader whose function reads a value."""

    def prepare(record):
        assert value is not None
        return record

    return sf.Loader(pa.table({"x": [1]}), prepare=prepare)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (np.arange(3), np.arange(4), r"was int64\[3\] and is int64\[4\] now"),
        (np.arange(3), np.arange(3) + 1, "has other content"),
        (np.arange(3), 5, r"was int64\[3\] and is .*5 now"),
        (5, np.arange(3), r"was .*5 and is int64\[3\] now"),
        (5, 6, "was .*5 and is .*6 now"),
    ],
)
def test_arrays_are_told_by_dtype_and_shape_and_numbers_by_value(before, after, told):
    state = loader_with(before).state_dict()
    with pytest.raises(sf.OpError, match=rf"value.* {told}"):
        loader_with(after).load_state_dict(state)
