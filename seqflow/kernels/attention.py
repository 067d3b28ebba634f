"""Attention inside sequences, and its gradient, in tiles of scores that are made and thrown away."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, rows
from seqflow.kernels.checks import check_same_size, check_sum, offsets_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, FLOATS

__all__ = ["attention_within", "attention_within_backward"]

QUERY_ROWS, KEY_ROWS = 64, 512
"""Rows of a tile: smaller ones cost more calls, larger ones leave the caches."""


class AttentionSettings(NamedTuple):
    """Scores of a query against the keys of its sequence, and the band of keys that it sees.

    A query at place p sees keys p - before … p + after. Query i stands at place i, or, `from_end`, as far from the
    last key as it is from the last query. softcap: 0 for none.
    """

    scale: float
    before: int
    after: int
    from_end: bool
    softcap: float


class _Sequence(NamedTuple):
    """Arrays of one sequence: q[queries, heads, depth], k and v [keys, groups, depth or width], slopes[heads]."""

    q: Array
    k: Array
    v: Array
    slopes: Array | None
    settings: AttentionSettings

    @property
    def ratio(self) -> int:
        """Number of heads of q for each of k."""
        return int(self.q.shape[1] // self.k.shape[1])

    @property
    def shift(self) -> int:
        return len(self.k) - len(self.q) if self.settings.from_end else 0

    def tiles(self, *felt: Array) -> Iterator[tuple[slice, list[slice]]]:
        """Yield query rows, and tiles of the keys that any of them sees.

        Tiles have one row if `felt` is not finite: a key that a row does not see has weight 0, and 0 * NaN is NaN.
        """
        hides = min(self.settings.before, self.settings.after) < len(self.q) + len(self.k)
        size = 1 if hides and not all(np.isfinite(array).all() for array in felt) else QUERY_ROWS
        for start in range(0, len(self.q), size):
            stop = min(start + size, len(self.q))
            low = max(0, start + self.shift - self.settings.before)
            high = min(len(self.k), stop + self.shift + self.settings.after)
            yield slice(start, stop), [slice(j, min(j + KEY_ROWS, high)) for j in range(low, high, KEY_ROWS)]

    def by_group(self, x: Array, at: slice) -> Array:
        """Return rows of x[queries, heads, …] as [groups, heads of a group * rows, …]."""
        count, groups, width = at.stop - at.start, self.k.shape[1], x.shape[2]
        parts = x[at].reshape(count, groups, self.ratio, width).transpose(1, 2, 0, 3)
        return np.ascontiguousarray(parts).reshape(groups, self.ratio * count, width)

    def by_head(self, x: Array, at: slice) -> Array:
        """Undo `by_group`."""
        count, width = at.stop - at.start, x.shape[2]
        parts = x.reshape(len(x), self.ratio, count, width).transpose(2, 0, 1, 3)
        return parts.reshape(count, self.q.shape[1], width)

    def distances(self, queries: slice, keys: slice) -> Array:
        """Return the places of the keys minus those of the queries, [rows, keys]."""
        places: Array = np.arange(queries.start, queries.stop)[:, None] + self.shift
        return np.arange(keys.start, keys.stop) - places

    def scores(self, scaled: Array, queries: slice, keys: slice) -> tuple[Array, Array | None]:
        """Return the scores of a tile, -inf where hidden, and the derivative of the cap (None without one)."""
        found = scaled @ self.k[keys].transpose(1, 2, 0)
        slope = None
        if self.settings.softcap:
            bent = np.tanh(found / self.settings.softcap)
            found, slope = self.settings.softcap * bent, 1 - bent * bent
        distance = self.distances(queries, keys)
        by_row = found.reshape(len(found), self.ratio, *distance.shape)
        if self.slopes is not None:
            by_row -= self.slopes.reshape(len(found), self.ratio, 1, 1) * np.abs(distance).astype(found.dtype)
        hidden = (distance < -self.settings.before) | (distance > self.settings.after)
        np.copyto(by_row, -np.inf, where=hidden)
        return found, slope


@kernel(q=FLOATS, lengths=COUNTS, k=FLOATS, v=FLOATS, kv_lengths=COUNTS, slopes=FLOATS)
def attention_within(
    q: Array,
    lengths: Array,
    k: Array,
    v: Array,
    kv_lengths: Array,
    slopes: Array | None,
    settings: AttentionSettings,
) -> tuple[Array, Array]:
    """Return softmax(scores) @ v of each sequence, and log(sum(exp(scores))): out[N, H, E], lse[N, H].

    q[sum(lengths), H, D], k[sum(kv_lengths), G, D], v[sum(kv_lengths), G, E] and slopes[H] have one dtype of floats.
    H is a multiple of G, and head h reads head h // (H // G) of k and v. A query that sees no key gives 0 and -inf.
    """
    out = np.zeros((*q.shape[:2], v.shape[2]), q.dtype)
    lse = np.full(q.shape[:2], -np.inf, q.dtype)
    with np.errstate(all="ignore"):
        for one, at, _ in _sequences(q, lengths, k, v, kv_lengths, slopes, settings):
            for queries, tiles in one.tiles(one.v):
                if tiles:
                    sums, total, top = _softmax_sums(one, queries, tiles)
                    out[at][queries] = one.by_head(sums / np.where(total == 0, 1, total), queries)
                    lse[at][queries] = one.by_head(np.log(total) + top, queries)[..., 0]
    return out, lse


def _softmax_sums(one: _Sequence, queries: slice, tiles: list[slice]) -> tuple[Array, Array, Array]:
    """Return sums of exp(score - top) * v and of exp(score - top), and top: the largest score, 0 if it is -inf."""
    scaled = one.by_group(one.q, queries) * one.q.dtype.type(one.settings.scale)
    sums = total = top = np.zeros((), one.q.dtype)
    for number, keys in enumerate(tiles):
        weights, _ = one.scores(scaled, queries, keys)
        largest = np.nanmax(weights, axis=-1, keepdims=True, initial=-np.inf)
        if number:
            largest = np.maximum(largest, np.where(total == 0, -np.inf, top))
        shift = np.where(largest == -np.inf, 0, largest).astype(weights.dtype)
        weights = np.exp(weights - shift)
        decay = np.exp(top - shift) if number else 0
        total = total * decay + weights.sum(axis=-1, keepdims=True)
        sums = sums * decay + weights @ one.v[keys].transpose(1, 0, 2)
        top = shift
    return sums, total, top


@kernel(
    q=FLOATS, k=FLOATS, v=FLOATS, out=FLOATS, lse=FLOATS, d_out=FLOATS, d_lse=FLOATS, lengths=COUNTS,
    kv_lengths=COUNTS, slopes=FLOATS,
)  # fmt: skip
def attention_within_backward(
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    d_out: Array,
    d_lse: Array,
    lengths: Array,
    kv_lengths: Array,
    slopes: Array | None,
    settings: AttentionSettings,
) -> tuple[Array, Array, Array, Array | None]:
    """Return the gradients of q, k, v and slopes (None without slopes), from the results and what arrives at them.

    The weights are computed again from `lse`: P = exp(scores - lse).
    """
    d_q, d_k, d_v = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    d_slopes = None if slopes is None else np.zeros(len(slopes), np.result_type(q.dtype, np.float64))
    scale = q.dtype.type(settings.scale)
    with np.errstate(all="ignore"):
        delta = (out * d_out).sum(axis=-1) - d_lse
        lse = np.where(lse == -np.inf, np.inf, lse)  # weights of a query that sees no key: exp(-inf) is 0
        for one, at, keys_at in _sequences(q, lengths, k, v, kv_lengths, slopes, settings):
            for queries, tiles in one.tiles(one.q, one.k, one.v, d_out[at], delta[at]):
                scaled, arriving = one.by_group(one.q, queries) * scale, one.by_group(d_out[at], queries)
                logs, shift = (one.by_group(x[at][..., None], queries) for x in (lse, delta))
                back = np.zeros_like(scaled)
                for keys in tiles:
                    scores, slope = one.scores(scaled, queries, keys)
                    weights = np.exp(scores - logs)
                    d_v[keys_at][keys] += (weights.transpose(0, 2, 1) @ arriving).transpose(1, 0, 2)
                    # where a score is -inf its derivative is 0, also where v is not finite
                    d_scores = weights * (arriving @ one.v[keys].transpose(1, 2, 0) - shift)
                    if d_slopes is not None:
                        distance = np.abs(one.distances(queries, keys))
                        by_row = d_scores.reshape(len(d_slopes), *distance.shape)
                        d_slopes -= (by_row * distance).sum(axis=(1, 2))
                    if slope is not None:
                        d_scores *= slope
                    d_k[keys_at][keys] += (d_scores.transpose(0, 2, 1) @ scaled).transpose(1, 0, 2)
                    back += d_scores @ one.k[keys].transpose(1, 0, 2)
                d_q[at][queries] = one.by_head(back * scale, queries)
    return d_q, d_k, d_v, None if d_slopes is None else d_slopes.astype(q.dtype)


def _sequences(
    q: Array,
    lengths: Array,
    k: Array,
    v: Array,
    kv_lengths: Array,
    slopes: Array | None,
    settings: AttentionSettings,
) -> Iterator[tuple[_Sequence, slice, slice]]:
    """Yield each sequence that has queries and keys, and its rows of q and of k."""
    lengths, kv_lengths = int64_counts(lengths, "lengths"), int64_counts(kv_lengths, "kv_lengths")
    check_same_size(lengths=lengths, kv_lengths=kv_lengths)
    check_sum(lengths, len(q), "q")
    check_sum(kv_lengths, len(k), "k", "kv_lengths")
    q, k, v = rows(q, "q"), rows(k, "k"), rows(v, "v")
    starts, kv_starts = offsets_of(lengths), offsets_of(kv_lengths)
    if q.shape[1] == 0:
        return
    for b in np.flatnonzero((lengths > 0) & (kv_lengths > 0)):
        at, keys_at = slice(starts[b], starts[b + 1]), slice(kv_starts[b], kv_starts[b + 1])
        yield _Sequence(q[at], k[keys_at], v[keys_at], slopes, settings), at, keys_at
