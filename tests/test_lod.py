"""LoD: lengths of every level that add up."""

import numpy as np
import pytest

from seqflow import LoD, LodError


def test_each_level_describes_the_next():
    lod = LoD([2, 3], [2, 1, 1, 1, 2])
    assert (lod.num_levels, lod.num_sequences, lod.num_rows) == (2, 2, 7)
    assert lod.lengths.tolist() == [2, 1, 1, 1, 2]
    outer, inner = lod
    assert outer.tolist() == [2, 3]
    assert lod[1] is inner


def test_zero_sequences_are_legal():
    assert LoD([], []).num_rows == 0


def test_arrays_are_kept_without_a_copy_and_cannot_be_written_through():
    lengths = np.array([1, 2], np.int32)
    lod = LoD(lengths)
    assert np.shares_memory(lod[0], lengths)
    with pytest.raises(ValueError, match="read-only"):
        lod[0][0] = 5


def test_equality_is_by_value_whatever_the_integer_dtype():
    assert LoD(np.array([1, 2], np.int32)) == LoD([1, 2])
    assert hash(LoD(np.array([1, 2], np.int32))) == hash(LoD([1, 2]))
    assert LoD([1, 2]) != LoD([2, 1])
    assert LoD([1, 2]) != [1, 2]


def test_the_repr_shows_every_level():
    assert repr(LoD([2, 1], [1, 0, 4])) == "LoD([2, 1], [1, 0, 4])"


def test_values_with_other_rows_are_refused():
    LoD([2, 1]).check(np.zeros((3, 2)))
    with pytest.raises(LodError, match="describes 3 rows but values has 4"):
        LoD([2, 1]).check(np.zeros(4))


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((), "no levels, expected at least one"),
        (([2, -1],), "lod[0][1] = -1 is negative"),
        (([2, 1], [1, 1]), "sum(lod[0]) is 3 but lod[1] has 2 lengths"),
        (([1.5],), "lod[0] is float64 of shape (1,), expected 1-D integers"),
        (([[1]],), "lod[0] is int64 of shape (1, 1), expected 1-D integers"),
        (([True],), "lod[0] is bool"),
        ((3,), "lod[0] is int64 of shape ()"),
    ],
)
def test_lengths_that_do_not_add_up_are_refused(levels, message):
    with pytest.raises(LodError) as error:
        LoD(*levels)
    assert message in str(error.value)
