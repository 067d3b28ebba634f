"""A matrix for each sequence or row: as a loop of products."""

import numpy as np
import pytest

from seqflow import ops

A = np.array


@pytest.mark.parametrize("transpose", [False, True])
def test_each_sequence_meets_its_matrix(transpose):
    random = np.random.default_rng(0)
    lengths = A([3, 0, 3, 100, 1, 3, 70])
    x, weight = random.standard_normal((lengths.sum(), 4)), random.standard_normal((len(lengths), 4, 5))
    pieces = np.split(x, np.cumsum(lengths)[:-1])
    expected = np.concatenate([piece @ one for piece, one in zip(pieces, weight, strict=True)])
    given = weight.swapaxes(1, 2) if transpose else weight
    np.testing.assert_allclose(ops.segment_matmul(x, given, lengths, transpose=transpose), expected)
    outer = [
        piece.T @ one for piece, one in zip(pieces, np.split(expected, np.cumsum(lengths)[:-1]), strict=True)
    ]
    np.testing.assert_allclose(ops.lengths_outer_sum(x, expected, lengths), outer)


def test_each_row_meets_the_matrix_of_its_id():
    random = np.random.default_rng(1)
    x, weight, ids = (
        random.standard_normal((20, 3)),
        random.standard_normal((4, 3, 2)),
        random.integers(0, 4, 20),
    )
    expected = np.stack([row @ weight[i] for row, i in zip(x, ids, strict=True)])
    np.testing.assert_allclose(ops.gather_matmul(x, weight, ids), expected)


def test_matrices_of_another_size_are_an_error():
    with pytest.raises(ValueError, match=r"segment_matmul: x.shape.1. is 2 but the matrices have 3 rows"):
        ops.segment_matmul(np.ones((1, 2)), np.ones((1, 3, 2)), [1])
