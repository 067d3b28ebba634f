"""Noise for training: masked tokens, corrupted spans, and middles to fill in."""

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.indices import indices_below
from seqflow.ops.shared.random_bits import further, random_bits, sequence_bits, uniform
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.ops.shared.shares import share
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import op
from seqflow.signature import Ints, NonNegative, Positive


@op(
    "int tokens[sum(lengths)], lengths[B], lens words[sum(counts)]?, counts[B]?"
    " -> values[sum(lengths)], labels[sum(lengths)], bool chosen[sum(lengths)]",
    random="seed",
)
def mask_tokens(
    tokens: Array,
    lengths: Array,
    words: Array | None,
    counts: Array | None,
    *,
    ratio: float,
    mask: NonNegative,
    vocabulary_size: Positive,
    seed: NonNegative,
    random: float = 0.1,
    keep: float = 0.1,
    never: Ints = (),
    ignore: int = -100,
) -> tuple[Array, Array, Array]:
    """Choose tokens with probability `ratio`, and replace most of them by `mask`.

    Of the chosen a share `random` becomes a random id, and a share `keep` stays. `labels` are the old ids where
    chosen, `ignore` elsewhere. With `words`, the pieces of each word, and `counts`, the words of each row, whole
    words are chosen: `ratio` of the words of a row, rounded up, at least one. Tokens of `never` are neither chosen
    nor put in as random ids, and a word that holds one is not chosen. An empty sequence stays empty. A token,
    `mask` or an id of `never` outside the vocabulary is an error. The same seed chooses the same places on every
    machine; in a loader they follow seed, epoch and row.

    Positions and ids of up to k chosen tokens of each sequence, padded:

        flags, positions = lengths_topk(chosen, lengths, k=k)    # flags are false where there is none
        gather_within_padded(tokens, positions, lengths, fill=0)

    >>> tokens, special = np.array([1, 7, 8, 2]), [1, 2]
    >>> masked = mask_tokens(tokens, np.array([4]), ratio=1.0, mask=3, vocabulary_size=9, seed=0, never=special,
    ...                      random=0.0, keep=0.0)
    >>> masked.values, masked.labels
    (array([1, 3, 3, 2]), array([-100,    7,    8, -100]))
    """
    share("ratio", ratio)
    if share("random", random) + share("keep", keep) > 1:
        raise OpError(f"random + keep is {random + keep}, expected at most 1")
    banned = np.unique(
        indices_below("never", np.array([mask, *never], object).astype(np.int64)[1:], vocabulary_size)
    )
    old = indices_below("tokens", tokens, vocabulary_size)
    indices_below("mask", np.array([min(mask, 2**62)]), vocabulary_size)
    sizes = int64(lengths)
    bits = random_bits(seed, sizes)
    if words is None and counts is None:
        at = np.flatnonzero(uniform(bits) < ratio)
        at = at[~np.isin(old[at], banned)]
    elif words is None or counts is None:
        raise OpError(f"{'words' if words is None else 'counts'} is missing, expected both words and counts")
    else:
        may_be = ~np.isin(old, banned)
        at = np.flatnonzero(_whole_words(may_be, sizes, int64(words), int64(counts), ratio, seed))
    draw = uniform(further(bits[at], 0))
    masked = draw >= keep
    swapped = at[masked & (draw < keep + random)]
    values, chosen = tokens.copy(), np.zeros(len(tokens), bool)
    values[at[masked]] = cast_scalar("mask", mask, tokens.dtype)
    values[swapped] = _random_ids(further(bits[swapped], 1), banned, vocabulary_size)
    labels = np.full(len(tokens), cast_scalar("ignore", ignore, tokens.dtype), tokens.dtype)
    labels[at], chosen[at] = tokens[at], True
    return values, labels, chosen


def _whole_words(may_be: Array, sizes: Array, words: Array, counts: Array, ratio: float, seed: int) -> Array:
    """Choose a share of the words of each row that may be chosen, and return it for each token."""
    held = kernels.segment_reduce("sum", words, counts)
    wrong = np.flatnonzero(held != sizes)
    if len(wrong):
        i = int(wrong[0])
        raise OpError(f"the words of sequence {i} have {held[i]} tokens, expected lengths[{i}] = {sizes[i]}")
    allowed = (kernels.segment_reduce("sum", ~may_be, words) == 0) & (words > 0)
    scores = np.where(allowed, uniform(random_bits(seed ^ 1, counts)), 2.0)
    number = kernels.segment_reduce("sum", allowed, counts)
    wanted = np.minimum(number, np.maximum(np.ceil(ratio * number), ratio > 0)).astype(np.int64)
    order = kernels.argsort_within(scores, counts) + kernels.expand(starts_of(counts), counts)
    chosen = np.zeros(len(words), bool)
    chosen[order] = kernels.lengths_to_positions(counts) < kernels.expand(wanted, counts)
    return kernels.expand(chosen, words)


def _random_ids(bits: Array, banned: Array, vocabulary_size: int) -> Array:
    """Return uniform ids that are not banned: numbers of the others, moved on by the banned ones before them."""
    left = vocabulary_size - len(banned)
    if left == 0 and len(bits):
        raise OpError("never holds the whole vocabulary, expected an id that may be put in")
    numbers = (uniform(bits) * left).astype(np.int64)
    return numbers + np.searchsorted(banned - np.arange(len(banned)), numbers, side="right")


@op(
    "lengths[B] -> bool noise[sum(lengths)]",
    random="seed",
)
def noise_spans(lengths: Array, *, density: float = 0.15, mean_span: float = 3.0, seed: NonNegative) -> Array:
    """Choose runs of noise for `span_corrupt`: a share `density` of each sequence, in runs of `mean_span` on average.

    Of n tokens round(n * density) are noise, at least one and not all, in round(that / mean_span) runs, at least one.
    They may lie anywhere, with at least one other token between two of them. A sequence of one token, or an empty
    one, has none. The same seed gives the same runs on every machine.

    >>> noise_spans(np.array([8, 1]), density=0.25, mean_span=2.0, seed=3).sum() == 2
    np.True_
    """
    share("density", density)
    if not mean_span >= 1:
        raise OpError(f"mean_span is {mean_span}, expected 1 or more")
    sizes = int64(lengths)
    noisy = np.clip(np.rint(sizes * density).astype(np.int64), 1, np.maximum(sizes - 1, 0)) * (sizes > 1)
    runs = np.maximum(np.rint(noisy / mean_span).astype(np.int64), 1)
    runs = np.minimum(runs, np.minimum(noisy, sizes - noisy))
    # noise lies in runs between one more run of tokens that stay: both are cut before their first token and some
    # others; the first and the last run of tokens that stay may be empty, and has one token too many until then
    kinds = np.stack([sizes - noisy + 2, noisy], axis=1).reshape(-1)
    of_kind = np.stack([runs + 1, runs], axis=1).reshape(-1)
    scores, first = uniform(random_bits(seed, sizes + 2)), starts_of(kinds)
    scores[first[kinds > 0]] = -1.0
    order = kernels.argsort_within(scores, kinds) + kernels.expand(first, kinds)
    begins = np.zeros(len(scores), bool)
    begins[order] = kernels.lengths_to_positions(kinds) < kernels.expand(of_kind, kinds)
    spans = np.diff(np.flatnonzero(begins), append=len(begins))
    outer = starts_of(of_kind)[::2]
    spans[outer] -= 1
    spans[outer + runs] -= 1
    row, is_noise = np.divmod(np.repeat(np.arange(len(kinds)), of_kind), 2)
    turn = np.lexsort((is_noise, kernels.lengths_to_positions(of_kind), row))
    return np.repeat(is_noise[turn] == 1, spans[turn])


@op(
    "int tokens[sum(lengths)], bool noise[sum(lengths)], lengths[B]"
    " -> values[sum(lengths')], int64 lengths'[B] <= lengths,"
    " targets[sum(target_lengths)], int64 target_lengths[B] <= lengths + lengths",
    moves="",
)
def span_corrupt(
    tokens: Array, noise: Array, lengths: Array, *, first: NonNegative
) -> tuple[Array, Array, Array, Array]:
    """Replace each run of noise by a sentinel; the targets are each sentinel and the tokens of its run.

    Sentinels count down from `first` in each sequence. Without noise, a sequence stays as it is, without targets;
    an empty sequence stays empty. More runs than there are sentinels (an id below 0) are an error. `noise_spans`
    draws the noise; with `logical_not(noise)` each run of the rest becomes a sentinel.

    The same sentinel for every run: `begins = noise & ~shift(noise, lengths, by=1)`, then
    `mask_sequences(where(begins, sentinel, tokens), begins | ~noise, lengths)`.

    >>> found = span_corrupt(np.array([5, 6, 7, 8]), np.array([False, True, True, False]), np.array([4]), first=99)
    >>> found.values, found.targets
    (array([ 5, 99,  8]), array([99,  6,  7]))
    """
    sizes, noisy = int64(lengths), noise.copy()
    cast_scalar("first", first, tokens.dtype)
    begins = noisy.copy()
    begins[1:] &= ~noisy[:-1]
    starts = starts_of(sizes)
    heads = starts[sizes > 0]
    begins[heads] = noisy[heads]
    number = kernels.cumsum_within(begins, sizes, False, False)
    too_many = np.flatnonzero(begins & (number > first + 1))
    if len(too_many):
        row = int(kernels.lengths_to_segment_ids(sizes)[too_many[0]])
        raise OpError(
            f"sequence {row} has more than {first + 1} runs of noise, expected a sentinel from 0 for each"
        )
    sentinels = (first + 1 - number).astype(tokens.dtype)
    left = begins | ~noisy
    values = np.where(begins, sentinels, tokens)[left]
    written = noisy.astype(np.int64) + begins
    ends = kernels.lengths_to_offsets(written)
    targets = np.empty(int(ends[-1]), tokens.dtype)
    targets[ends[1:][noisy] - 1] = tokens[noisy]
    targets[ends[:-1][begins]] = sentinels[begins]
    lengths_left, lengths_written = (kernels.segment_reduce("sum", one, sizes) for one in (left, written))
    return values, lengths_left, targets, lengths_written


@op(
    "int tokens[sum(lengths)], lengths[B], int cuts[B, 2]?"
    " -> values[sum(lengths')], int64 lengths'[B] <= lengths + 3",
    random="seed",
)
def fill_in_middle(
    tokens: Array,
    lengths: Array,
    cuts: Array | None,
    *,
    prefix: NonNegative,
    suffix: NonNegative,
    middle: NonNegative,
    seed: NonNegative,
    rate: float = 1.0,
    spm_rate: float = 0.5,
    characters: bool = False,
) -> tuple[Array, Array]:
    """Cut a sequence at two places with probability `rate`, and move its middle part M after the end.

    `prefix P suffix S middle M`, or with probability `spm_rate` `prefix suffix S middle P M`; these three are tokens.
    The places are drawn uniformly, or are `cuts`, in ascending order. Parts may be empty; an empty sequence
    stays empty, without tokens. With `characters`, on the bytes of texts, a cut moves back to the first byte of its
    character, or on to the next one if a text begins inside a character. The same seed cuts the same places on every
    machine.

    >>> fill_in_middle(np.arange(1, 7), np.array([6]), np.array([[2, 4]]), prefix=91, suffix=93, middle=92, seed=0,
    ...                spm_rate=0.0).values
    array([91,  1,  2, 93,  5,  6, 92,  3,  4])
    """
    share("rate", rate), share("spm_rate", spm_rate)
    sizes = int64(lengths)
    specials = [
        cast_scalar(*one, tokens.dtype)
        for one in (("prefix", prefix), ("suffix", suffix), ("middle", middle))
    ]
    bits = sequence_bits(seed, len(sizes))
    is_cut = (uniform(bits) < rate) & (sizes > 0)
    swaps = uniform(further(bits, 1)) < spm_rate
    places = _drawn_cuts(bits, sizes) if cuts is None else _checked_cuts(cuts, sizes)
    starts = starts_of(sizes)
    if characters:
        places = _to_characters(tokens, places, starts[:, None], sizes[:, None])
    low, high = places[:, 0], places[:, 1]
    low, high = np.where(is_cut, low, sizes), np.where(is_cut, high, sizes)
    longer = sizes + 3 * is_cut
    values = np.empty(int(longer.sum()), tokens.dtype)
    to, psm, rest = starts_of(longer), is_cut & ~swaps, sizes - high
    # where P, S and M go: without swapping, P comes first
    at_p = to + np.where(psm, 1, np.where(is_cut, 3 + rest, 0))
    at_s = to + np.where(psm, 2 + low, 2)
    at_m = to + 3 * is_cut + low + rest
    for source, size, target in (
        (starts, low, at_p),
        (starts + high, rest, at_s),
        (starts + low, high - low, at_m),
    ):
        kernels.move_slices(tokens, source, size, values, np.where(size > 0, target, 0))
    values[to[is_cut]] = specials[0]
    values[(at_s - 1)[is_cut]] = specials[1]
    values[(at_s + rest)[is_cut]] = specials[2]
    return values, longer


def _drawn_cuts(bits: Array, sizes: Array) -> Array:
    shares = np.stack([uniform(further(bits, k)) for k in (2, 3)], axis=1)
    drawn: Array = np.sort((shares * (sizes + 1)[:, None]).astype(np.int64), axis=1)
    return drawn


def _checked_cuts(cuts: Array, sizes: Array) -> Array:
    wrong = (cuts < 0) | (cuts > sizes[:, None])
    wrong[:, 1] |= cuts[:, 1] < cuts[:, 0]
    if wrong.any():
        i, j = (int(k) for k in np.argwhere(wrong)[0])
        raise OpError(f"cuts[{i}, {j}] is {cuts[i, j]}, expected ascending places from 0 to {sizes[i]}")
    return cuts.astype(np.int64)


def _to_characters(data: Array, places: Array, starts: Array, sizes: Array) -> Array:
    """Move places in texts of UTF-8 back to the first byte of their character, or else to the next character."""
    moved = places.copy()
    for step in (-1, -1, -1, 1, 1, 1):
        inside = moved < sizes
        inside[inside] = (data[(starts + moved)[inside]] & 0xC0) == 0x80
        moved += step * (inside & (moved > 0 if step < 0 else True))
    return moved
