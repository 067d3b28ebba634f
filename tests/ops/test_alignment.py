"""Two sequences compared, the best path, and the likelihood of one."""

from itertools import pairwise, product

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


K, S = np.frombuffer(b"kitten", np.uint8), np.frombuffer(b"sittingab", np.uint8)


def test_distances_and_common_subsequences():
    assert ops.edit_distance(K, S, [6, 0], [7, 2]).tolist() == [3, 2]
    assert ops.edit_distance(K, S, [6, 0], [7, 2], normalize=True).tolist() == [3 / 7, 1]
    assert ops.longest_common(K, S, [6, 0], [7, 2]).tolist() == [4, 0]


def test_shared_over_distinct_values():
    found = ops.jaccard(A([1, 2, 3, 1, 2]), A([1, 9, 8]), [3, 2, 0], [3, 0, 0])
    assert found.tolist() == [0.2, 0, 1]


def test_the_best_path_is_the_best_of_all():
    random = np.random.default_rng(0)
    lengths = A([4, 0, 1, 3])
    scores, steps = random.standard_normal((8, 3)), random.standard_normal((3, 3))
    states, best = ops.viterbi_decode(scores, steps, lengths)
    for i, (start, length) in enumerate(zip(np.cumsum(lengths) - lengths, lengths, strict=True)):
        paths = [*product(range(3), repeat=int(length))]
        values = [
            sum(scores[start + t, s] for t, s in enumerate(path))
            + sum(steps[pair] for pair in pairwise(path))
            for path in paths
        ]
        assert best[i] == pytest.approx(max(values))
        assert tuple(states[start : start + length].tolist()) == paths[int(np.argmax(values))]


def test_states_that_may_not_follow_do_not():
    allowed = A([[False, True], [True, False]])
    found = ops.viterbi_decode(A([[5.0, 0], [5, 0], [5, 0]]), np.zeros((2, 2)), [3], allowed)
    assert found.states.tolist() == [0, 1, 0]


def test_the_score_of_a_long_path_of_halves_is_a_float32():
    found = ops.viterbi_decode(
        np.full((2000, 2), 40, np.float16), np.zeros((2, 2), np.float16), np.array([2000])
    )
    assert (found.score.dtype, found.score.tolist()) == (np.float32, [80000.0])


def test_the_likelihood_of_a_path_is_its_share_of_all_paths():
    random = np.random.default_rng(1)
    lengths = A([3, 0, 1, 2])
    scores, steps = random.standard_normal((6, 3)), random.standard_normal((3, 3))
    states = random.integers(0, 3, 6)
    found = ops.crf_log_likelihood(scores, states, lengths, steps)
    for i, (start, length) in enumerate(zip(np.cumsum(lengths) - lengths, lengths, strict=True)):
        values = {
            path: np.exp(
                sum(scores[start + t, s] for t, s in enumerate(path))
                + sum(steps[pair] for pair in pairwise(path))
            )
            for path in product(range(3), repeat=int(length))
        }
        own = tuple(states[start : start + length].tolist())
        assert found[i] == pytest.approx(np.log(values[own] / sum(values.values())))


def test_a_long_path_of_equal_scores_has_the_likelihood_of_chance():
    found = ops.crf_log_likelihood(
        np.full((2000, 4), 30, np.float32), np.zeros(2000, int), [2000], np.zeros((4, 4), np.float32)
    )
    assert found.dtype == np.float32
    assert found[0] == pytest.approx(-2000 * np.log(4))


def test_a_state_that_scores_do_not_have_is_named():
    with pytest.raises(OpError, match=r"states\[1\] = 2 is outside \[0, 2\)"):
        ops.crf_log_likelihood(np.zeros((2, 2)), [0, 2], [2], np.zeros((2, 2)))
    with pytest.raises(OpError, match=r"states\[0\] = -1 is outside \[0, 2\)"):
        ops.crf_log_likelihood_backward(np.ones(1), np.zeros((1, 2)), [-1], [1], np.zeros((2, 2)))
