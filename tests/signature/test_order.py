"""Arguments in a wrong order: the error says which order would fit."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import SeqflowError


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: ops.lengths_sum([2, 1], [1, 2, 3]), "data and lengths would fit the other way round"),
        (lambda: ops.lengths_sum([2, 1], [0.5, 1.5, 2.5]), "data and lengths would fit the other way round"),
        (lambda: ops.collapse_lengths([2, 1], [1, 2, 3]), "inner and outer would fit the other way round"),
        (lambda: ops.slice_sequences([1, 2, 3], [1], [3], [2]), "sizes and lengths would fit the other way round"),
        (lambda: ops.filter_sequences([1, 2, 3], [2, 1], [True, False]), "keep and lengths would fit"),
        (lambda: ops.concat_sequences([[2, 1]], [[1, 2, 3]]), "data and lengths would fit the other way round"),
        (lambda: ops.fc(np.ones((2, 3)), np.ones(4), np.ones((4, 3))), "weight and bias would fit"),
        (
            lambda: ops.gather_sequences([2, 1], [0.5, 1.5, 2.5], [1, 0]),
            "they would fit in another order: indices as data, lengths as indices, data as lengths",
        ),
    ],
)  # fmt: skip
def test_an_error_names_the_order_that_would_fit(call, advice):
    with pytest.raises(SeqflowError) as error:
        call()
    assert f"\n  {advice}" in str(error.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.lengths_sum([1, 2], [3]),
        lambda: ops.concat_sequences([[1, 2]], [[3]]),
        lambda: ops.lengths_sum([1, 2], [3, -1]),
        lambda: ops.add_padding([1, 2], [3], None, 5),
        lambda: ops.gather([7, 8], [0.5]),
    ],
)
def test_an_error_that_no_order_mends_says_nothing_of_orders(call):
    with pytest.raises(SeqflowError) as error:
        call()
    assert "would fit" not in str(error.value)


def test_indices_outside_the_table_fit_no_better():
    """Swapped, the table would be a list of integers, but they are no rows of the indices."""
    with pytest.raises(SeqflowError) as error:
        ops.gather([7, 8], [[0.5], [1.5]])
    assert "would fit" not in str(error.value)
    with pytest.raises(SeqflowError, match="data and indices would fit the other way round"):
        ops.gather([0, 1], [[0.5], [1.5]])


def test_records_without_rows_are_tried_in_no_other_place():
    """A list without numbers has no dtype of its own, unless an array in it has one."""
    nothing = np.zeros((0, 0), [("a", "i4"), ("b", "f4")])
    with pytest.raises(SeqflowError, match="keys has 2 dimensions"):
        ops.gather_by_key([nothing], np.zeros((1, 0), "i4"))
