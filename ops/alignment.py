"""Two sequences compared step by step, the best path through scores, and the likelihood of a given one."""

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array, sum_dtype
from seqflow.ops.shared.comparable import as_integers
from seqflow.ops.shared.indices import indices_below
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import NoDerivative, op
from seqflow.shape import InferenceContext


def _infer_normalized(ctx: InferenceContext) -> None:
    if ctx.attr("normalize"):
        kept = ctx.outputs[0]
        ctx.set_output(0, kept.shape, dtype=np.float64, axes=kept.axes)


@op(
    "ordered p[sum(lengths)], like(p) q[sum(other)], lengths[B], lens other[B] -> int64 distance[B]",
    shape=_infer_normalized,
)
def edit_distance(p: Array, q: Array, lengths: Array, other: Array, *, normalize: bool = False) -> Array:
    """Return the least number of rows to insert, delete or change that turn each sequence into that of `q`.

    Against an empty sequence it is the length of the other one. `normalize` divides by the length of the sequence of
    `q`, the reference (0 for two empty ones, inf for an empty reference): the word error rate.

    >>> k, s = (np.frombuffer(text, np.uint8) for text in (b"kitten", b"sitting"))
    >>> edit_distance(k, s, np.array([6]), np.array([7]))
    array([3])
    """
    distance = kernels.edit_distances(as_integers(p), lengths, as_integers(q), other)
    if not normalize:
        return distance
    with np.errstate(all="ignore"):
        return np.where(distance == 0, 0.0, distance / other.astype(np.float64))


@op(
    "ordered p[sum(lengths)], like(p) q[sum(other)], lengths[B], lens other[B]"
    " -> int64 sizes[B] <= minimum(lengths, other)",
)
def longest_common(p: Array, q: Array, lengths: Array, other: Array) -> Array:
    """Return the length of the longest common subsequence of each pair; an empty sequence has none.

    Divided by both lengths, it gives the precision and the recall of ROUGE-L.

    >>> longest_common(np.array([1, 2, 3, 4]), np.array([2, 9, 4]), np.array([4]), np.array([3]))
    array([2])
    """
    return kernels.longest_common(as_integers(p), lengths, as_integers(q), other)


@op(
    "ordered p[sum(lengths)], like(p) q[sum(other)], lengths[B], lens other[B] -> float64 similarity[B]",
    grad=NoDerivative("it compares values"),
)
def jaccard(p: Array, q: Array, lengths: Array, other: Array) -> Array:
    """Return the number of distinct values in both sequences of each pair, divided by that in either.

    Two empty sequences are equal, 1. For texts, compare their hashes (`hash_text`).

    >>> jaccard(np.array([1, 2, 3]), np.array([1, 9]), np.array([3, 0]), np.array([2, 0]))
    array([0.25, 1.  ])
    """
    one, n = _distinct(as_integers(p), int64(lengths))
    two, m = _distinct(as_integers(q), int64(other))
    common = kernels.segment_reduce("sum", kernels.isin_within(one, n, two, m), n)
    either = n + m - common
    return np.where(either == 0, 1.0, common / np.maximum(either, 1))


def _distinct(values: Array, lengths: Array) -> tuple[Array, Array]:
    ordered = kernels.sort_within(values, lengths)
    opens = np.ones(len(ordered), bool)
    opens[1:] = ordered[1:] != ordered[:-1]
    opens[starts_of(lengths)[lengths > 0]] = True
    return ordered[opens], kernels.segment_reduce("sum", opens, lengths)


@op(
    "float scores[sum(lengths), K], like(scores) transitions[K, K], lengths[B], bool allowed[K, K]?"
    " -> int64 states[sum(lengths)] <= K-1, sum_of(scores) score[B]",
    moves="",
    grad=NoDerivative("it picks the best path"),
)
def viterbi_decode(
    scores: Array, transitions: Array, lengths: Array, allowed: Array | None
) -> tuple[Array, Array]:
    """Return the states of the best path through each sequence, and its score.

    The score of a path is the sum of `scores[t, state]` and of `transitions[before, after]` between two steps;
    `allowed[before, after]` is false for two states that may not follow each other. Of equal paths the one with the
    lower states from the end on wins. An empty sequence has no states, and the score 0.

    >>> viterbi_decode(np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([[0.0, 0.0], [-5.0, 0.0]]), np.array([2]))
    ViterbiDecodeResult(states=array([0, 0]), score=array([4.]))
    """
    sizes, count = int64(lengths), scores.shape[1]
    if count == 0 and len(scores):
        raise OpError("scores have no states, expected at least one")
    steps = transitions.astype(np.float64)
    if allowed is not None:
        steps = np.where(allowed, steps, -np.inf)
    starts, alive = starts_of(sizes), _sequences_at_each_step(sizes)
    came = np.zeros(scores.shape, np.int64)
    best = np.zeros((len(sizes), count))
    with np.errstate(all="ignore"):
        for t, here in enumerate(alive):
            if t:
                paths = best[here][:, :, None] + steps
                came[starts[here] + t] = paths.argmax(axis=1)
                best[here] = paths.max(axis=1)
            best[here] += scores[starts[here] + t]
    states = np.zeros(len(scores), np.int64)
    filled = np.flatnonzero(sizes)
    score = np.zeros(len(sizes), sum_dtype(scores.dtype))
    with np.errstate(over="ignore"):
        score[filled] = best[filled].max(axis=1)
    states[(starts + sizes - 1)[filled]] = best[filled].argmax(axis=1)
    for t in range(len(alive) - 1, 0, -1):
        at = starts[alive[t]] + t
        states[at - 1] = came[at, states[at]]
    return states, score


def _sequences_at_each_step(sizes: Array) -> list[Array]:
    """Return for each step the sequences that have it, those of more steps first."""
    order = np.argsort(-sizes, kind="stable")
    counts = len(sizes) - np.searchsorted(np.sort(sizes), np.arange(kernels.max_length(sizes)), side="right")
    return [order[:count] for count in counts.tolist()]


@op(
    "float scores[sum(lengths), K], index(K) states[sum(lengths)], lengths[B], like(scores) transitions[K, K]"
    " -> sum_of(scores) log_likelihood[B]",
    grad={
        "scores, transitions": "crf_log_likelihood_backward(d.log_likelihood, scores, states, lengths, transitions)"
    },
)
def crf_log_likelihood(scores: Array, states: Array, lengths: Array, transitions: Array) -> Array:
    """Return the logarithm of the probability of each given path in a linear-chain conditional random field.

    The score of a path is that of `viterbi_decode`: the sum of `scores[t, state]` and of `transitions[before, after]`
    between two steps; its probability is the share of its `exp(score)` in the sum over all paths. Scores of the first
    and last states are added to the first and last rows of `scores`. An empty sequence has the probability 1. All is
    computed in float64. Source: Lafferty et al., Conditional Random Fields, 2001.

    >>> crf_log_likelihood(np.zeros((3, 2)), np.array([0, 1, 1]), np.array([2, 1]), np.zeros((2, 2)))
    array([-1.38629436, -0.69314718])
    """
    sizes, states = int64(lengths), indices_below("states", states, scores.shape[1])
    starts, steps = starts_of(sizes), transitions.astype(np.float64)
    with np.errstate(all="ignore"):
        forward = _forward(scores, steps, starts, sizes)
        path = np.take_along_axis(scores.astype(np.float64), states[:, None], 1)[:, 0]
        inside = np.delete(np.arange(len(states)), starts[sizes > 0])
        path[inside] += steps[states[inside - 1], states[inside]]
        logs = kernels.segment_reduce("sum", path, lengths)
        filled = np.flatnonzero(sizes)
        logs[filled] -= np.logaddexp.reduce(forward[(starts + sizes - 1)[filled]], axis=1)
        return logs.astype(sum_dtype(scores.dtype))


def _forward(scores: Array, steps: Array, starts: Array, sizes: Array) -> Array:
    """Return for each step and state the logarithm of the sum over all paths that lead to it."""
    sums = scores.astype(np.float64)
    for t, here in enumerate(_sequences_at_each_step(sizes)):
        if t:
            at = starts[here] + t
            sums[at] += np.logaddexp.reduce(sums[at - 1][:, :, None] + steps, axis=1)
    return sums


@op(
    "float d[B], float scores[sum(lengths), K], index(K) states[sum(lengths)], lengths[B],"
    " like(scores) transitions[K, K]"
    " -> like(scores) grad_scores[sum(lengths), K], like(scores) grad_transitions[K, K]",
    grad=NoDerivative("derivatives of this order are not implemented"),
)
def crf_log_likelihood_backward(
    d: Array, scores: Array, states: Array, lengths: Array, transitions: Array
) -> tuple[Array, Array]:
    """Return the gradients of `crf_log_likelihood`: what the given paths have, less what all paths have on average.

    An empty sequence adds nothing.

    >>> crf_log_likelihood_backward(np.ones(1), np.zeros((1, 2)), np.array([0]), np.array([1]), np.zeros((2, 2)))[0]
    array([[ 0.5, -0.5]])
    """
    sizes, states = int64(lengths), indices_below("states", states, scores.shape[1])
    starts, steps = starts_of(sizes), transitions.astype(np.float64)
    weights = d.astype(np.float64)
    by_steps = np.zeros(steps.shape)
    with np.errstate(all="ignore"):
        forward = _forward(scores, steps, starts, sizes)
        wide, backward = scores.astype(np.float64), np.zeros(scores.shape)
        filled = np.flatnonzero(sizes)
        totals = np.zeros(len(sizes))
        totals[filled] = np.logaddexp.reduce(forward[(starts + sizes - 1)[filled]], axis=1)
        for t, here in reversed([*enumerate(_sequences_at_each_step(sizes))][1:]):
            at = starts[here] + t
            paths = steps + (wide[at] + backward[at])[:, None, :]
            backward[at - 1] = np.logaddexp.reduce(paths, axis=2)
            shares = np.exp(forward[at - 1][:, :, None] + paths - totals[here][:, None, None])
            by_steps -= np.tensordot(weights[here], shares, 1)
            np.add.at(by_steps, (states[at - 1], states[at]), weights[here])
        by_scores = -np.exp(forward + backward - kernels.expand(totals, lengths)[:, None])
        by_scores[np.arange(len(states)), states] += 1
        by_scores *= kernels.expand(weights, lengths)[:, None]
        return by_scores.astype(scores.dtype), by_steps.astype(scores.dtype)
