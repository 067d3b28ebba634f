"""Hashes of n-grams, signatures of sets, and what repeats: to find duplicates and contaminated text."""

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.comparable import as_integers
from seqflow.ops.shared.random_bits import sequence_bits
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import op
from seqflow.signature import NonNegative, Positive


@op(
    "int tokens[sum(lengths)], lengths[B]"
    " -> uint64 values[sum(lengths')], int64 lengths'[B] := maximum(lengths - (n - 1), 0)",
)
def hash_ngrams(
    tokens: Array, lengths: Array, *, n: Positive = 13, seed: NonNegative = 0
) -> tuple[Array, Array]:
    """Hash each full run of `n` tokens to 64 bits; a sequence with fewer tokens, or an empty one, has none.

    The function will not change. With `output` of `seqflow.ops.shared.random_bits`, the state is first
    `output(seed, 0)`; for each token in turn it becomes `output(state, token)`, with tokens in two's complement.

    >>> hash_ngrams(np.array([1, 2, 3, 1, 2]), np.array([3, 2]), n=2).lengths
    array([2, 1])
    """
    return _grams(tokens, int64(lengths), n, seed)


def _grams(tokens: Array, lengths: Array, n: int, seed: int) -> tuple[Array, Array]:
    state = _state(seed)
    counts = np.maximum(lengths - (min(n, kernels.max_length(lengths) + 1) - 1), 0)
    ids = tokens.astype(np.int64, copy=False)
    return kernels.hash_grams(ids, lengths, min(n, len(ids) + 1), state), counts


@op("int tokens[sum(lengths)], uint64 known[K], lengths[B] -> float64 share[B]")
def ngram_overlap(
    tokens: Array, known: Array, lengths: Array, *, n: Positive = 13, seed: NonNegative = 0
) -> Array:
    """Return the share of the full n-grams of each sequence whose hashes are among `known`.

    `known` are the values of `hash_ngrams` of the same `n` and `seed`. A sequence with fewer than `n` tokens, or an
    empty one, gives 0.

    >>> known = hash_ngrams(np.array([2, 3, 4]), np.array([3]), n=3).values
    >>> ngram_overlap(np.array([1, 2, 3, 4, 5]), known, np.array([4, 1]), n=3)
    array([0.5, 0. ])
    """
    grams, counts = _grams(tokens, int64(lengths), n, seed)
    found = np.isin(as_integers(grams), as_integers(known))
    return kernels.segment_reduce("sum", found, counts) / np.maximum(counts, 1)


@op("uint64 shingles[sum(lengths)], lengths[B] -> uint64 signature[B, num_perm]")
def minhash(shingles: Array, lengths: Array, *, num_perm: Positive = 128, seed: NonNegative = 1) -> Array:
    """Return the least of (a * x + b) mod 2**61 - 1 over each set of hashes, for `num_perm` pairs a, b.

    The share of equal numbers of two signatures estimates the Jaccard index of both sets. `hash_ngrams` gives hashes.
    The pairs are uniform: with `random_bits` of `seqflow.ops.shared.random_bits`, a is 1 + bits(2j) mod 2**61 - 2 and
    b is bits(2j + 1) mod 2**61 - 1, of sequences 2j and 2j + 1. An empty set gives 2**61 - 1 everywhere.

    The bits of a SimHash are `lengths_sum(2 * ((h[:, None] >> np.arange(63)) & 1) - 1, lengths) > 0`, of hashes `h`
    of int64. Bands of r numbers each find pairs with an index from about `(1 / bands) ** (1 / r)` on.

    >>> minhash(np.array([5, 7], np.uint64), np.array([2, 0]), num_perm=2).shape
    (2, 2)
    """
    prime = np.uint64(2**61 - 1)
    drawn = sequence_bits(seed, 2 * min(num_perm, 1 << 20)).reshape(-1, 2)
    if len(drawn) < num_perm:
        raise OpError(f"num_perm is {num_perm}, expected at most {1 << 20}")
    factors = np.uint64(1) + drawn[:, 0] % (prime - np.uint64(1))
    signature = kernels.minhash(
        _bits(shingles), lengths, factors.view(np.int64), (drawn[:, 1] % prime).view(np.int64)
    )
    return signature.view(np.uint64)


@op("uint64 shingles[sum(lengths)], lengths[B] -> uint64 signature[B, num_perm]")
def one_permutation_minhash(
    shingles: Array, lengths: Array, *, num_perm: Positive = 128, seed: NonNegative = 1
) -> Array:
    """Return the least hash in each of `num_perm` bins of the hashes of each set: MinHash by one permutation.

    The share of equal numbers of two signatures estimates the Jaccard index of both sets, as with `minhash`, but each
    shingle is hashed once, not `num_perm` times: long texts take a fraction of the time. The estimates of small sets,
    of fewer shingles than bins, vary more. `num_perm` is at most 4096.

    It is one permutation hashing (Li, Owen and Zhang, 2012) with optimal densification (Shrivastava, 2017). With
    `output` of `seqflow.ops.shared.random_bits`, the hash of x is z = output(s, x), s = output(seed, 0), and its bin
    z * num_perm >> 64. An empty bin j takes the number of the first bin that is not empty among output(t, k) *
    num_perm >> 64, k = 0, 1, …, with t = output(s, j). An empty set gives 2**64 - 1 everywhere.

    >>> one_permutation_minhash(np.array([5, 7], np.uint64), np.array([2, 0]), num_perm=2).shape
    (2, 2)
    """
    if num_perm > kernels.MOST_BINS:
        raise OpError(f"num_perm is {num_perm}, expected at most {kernels.MOST_BINS}")
    return kernels.least_of_bins(_bits(shingles), lengths, _state(seed), num_perm)


def _bits(hashes: Array) -> Array:
    return hashes.view(np.int64) if hashes.flags.c_contiguous else hashes.copy().view(np.int64)


def _state(seed: int) -> int:
    if seed >= 2**64:
        raise OpError(f"seed is {seed}, expected less than 2**64")
    return kernels.hash_state(seed)


@op("int pairs[M, 2] -> int64 roots[num_rows] <= num_rows-1")
def connected_components(pairs: Array, *, num_rows: NonNegative) -> Array:
    """Return the least row of the component of each row, of those that pairs of rows connect.

    >>> connected_components(np.array([[0, 1], [1, 2], [4, 5]]), num_rows=6)
    array([0, 0, 0, 3, 4, 4])
    """
    wrong = np.argwhere((pairs < 0) | (pairs >= num_rows))
    if len(wrong):
        i, j = (int(k) for k in wrong[0])
        raise OpError(
            f"pairs[{i}, {j}] is {pairs[i, j]}, expected a row from 0 to below num_rows = {num_rows}"
        )
    check_memory((num_rows, 2), np.dtype(np.int64))
    one, two = pairs.astype(np.int64).T
    roots = np.arange(num_rows)
    while len(one):
        # the root of each side gets the least root of the other, then paths are halved until they end
        low, high = np.minimum(roots[one], roots[two]), np.maximum(roots[one], roots[two])
        np.minimum.at(roots, high, low)
        while True:
            nearer = roots[roots]
            if (nearer == roots).all():
                break
            roots = nearer
        apart = roots[one] != roots[two]
        one, two = one[apart], two[apart]
    return roots


@op("{ordered keys[N]}+ -> index(N) first[N]")
def first_of_equal(keys: list[Array]) -> Array:
    """Return the row of the first of equal keys, for each row: a row that is its own first stays.

    Rows are equal if they are equal in every column of `keys`; NaN is equal to NaN. Texts are compared by their
    hashes (`hash_text`).

    The last of equal rows stays where keys go in reverse, `keys[::-1]`. Against an index, the keys of the index come
    first. The columns of `ngrams` find runs that stood before: `first_of_equal([*grams.T])`.

    >>> first_of_equal([np.array([7, 7, 5, 7])])
    array([0, 0, 2, 0])
    """
    first, codes, _ = kernels.distinct_ids(as_integers(keys[0]))
    for column in keys[1:]:
        _, others, counts = kernels.distinct_ids(as_integers(column))
        first, codes, _ = kernels.distinct_ids(codes * max(len(counts), 1) + others)
    return first[codes]


@op("int pieces[sum(counts)], lens sizes[sum(counts)], counts[B] -> float64 shares[B, 2]")
def repetition_shares(
    pieces: Array, sizes: Array, counts: Array, *, n: Positive = 1, top: bool = False
) -> Array:
    """Return the share of the pieces of each text that stood in it before, and their share of its bytes.

    Pieces are hashes of lines, paragraphs or words, and `sizes` their numbers of bytes. With `n`, the first share is
    that of all full runs of `n` pieces, and the second that of the pieces in such runs, each counted once. With
    `top`, the shares are those of the most frequent piece or run, the first of equals. A text without any, an empty
    one, gives 0. Counts of words, digits or marks are `count_text` with a regular expression. Gopher's repeated
    pairs of words:

        words, sizes, counts = split_words(data, lengths)
        repetition_shares(hash_text(words, sizes), sizes, counts, n=2)

    >>> repetition_shares(np.array([1, 1, 2], np.uint64), np.array([2, 2, 4]), np.array([3]))
    array([[0.33333333, 0.25      ]])
    """
    held = int64(counts)
    grams, found = (pieces, held) if n == 1 else _grams(pieces, held, n, 0)
    keys = as_integers(grams)
    order = kernels.argsort_within(keys, found) + kernels.expand(starts_of(found), found)
    opens = np.ones(len(keys), bool)
    opens[1:] = keys[order][1:] != keys[order][:-1]
    opens[starts_of(found)[found > 0]] = True
    chosen = np.zeros(len(keys), bool)
    chosen[order] = _most_frequent(order, opens, found) if top else ~opens
    first = kernels.lengths_to_positions(found) + kernels.expand(starts_of(held), found)
    begins, ends = (
        np.bincount(at, minlength=len(pieces) + 1)[:-1] for at in (first[chosen], first[chosen] + n)
    )
    covered = np.cumsum(begins - ends) > 0
    shares = []
    for weight, mask, rows in (
        (np.ones(len(keys)), chosen, found),
        (sizes.astype(np.float64), covered, held),
    ):
        whole = kernels.segment_reduce("sum", weight, rows)
        shares.append(kernels.segment_reduce("sum", weight * mask, rows) / np.maximum(whole, 1))
    return np.stack(shares, axis=1)


def _most_frequent(order: Array, opens: Array, counts: Array) -> Array:
    """Return whether each sorted piece is the most frequent one of its text, of equals the first in the text."""
    first = np.flatnonzero(opens)
    times = np.diff(first, append=len(order))
    distinct = kernels.segment_reduce("sum", opens, counts)
    ranked = np.lexsort((order[first], -times, kernels.lengths_to_segment_ids(distinct)))
    which = np.zeros(len(first), bool)
    which[ranked[starts_of(distinct)[distinct > 0]]] = True
    return np.repeat(which, times)
