"""Attention inside sequences, its gradient, and rotary positions: what transformers need on flat rows.

The values of sequences and their lengths are all the mask that packed documents need: no row sees another sequence.
"""

import math
from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.kernels.attention import AttentionSettings
from seqflow.registry import NoDerivative, op
from seqflow.signature import NonNegative, Sizes

Align = Literal["start", "end"]


@op(
    "float q[sum(lengths), G*R, D], lengths[B], like(q) k[sum(kv_lengths), G, D], like(q) v[sum(kv_lengths), G, E],"
    " kv_lengths[B]?=lengths, like(q) slopes[G*R]?"
    " -> out[sum(lengths), G*R, E], sum_of(q) lse[sum(lengths), G*R]",
    grad={
        "q, k, v, slopes": """
            attention_within_backward(
                q, k, v, out.out, out.lse, d.out, d.lse, lengths, kv_lengths=kv_lengths, slopes=slopes, scale=scale,
                before=before, after=after, align=align, softcap=softcap
            )
        """
    },
)
def attention_within(
    q: Array,
    lengths: Array,
    k: Array,
    v: Array,
    kv_lengths: Array,
    slopes: Array | None,
    *,
    scale: float | None = None,
    before: NonNegative | None = None,
    after: NonNegative | None = None,
    align: Align | None = None,
    softcap: float | None = None,
) -> tuple[Array, Array]:
    """Return softmax(scale * q @ k) @ v inside each sequence, by heads, and the logarithm of the softmax's divisor.

    Row i of `q` sees rows of `k` and `v` of its own sequence only; `kv_lengths` are their lengths, by default
    `lengths`. `scale` is by default 1 / sqrt(D). With R query heads for each of G key heads, head h uses key head
    h // R.

    A query at place p sees keys p - `before` to p + `after`, both included; None means unbounded. A causal model has
    `after=0`, and with a window of W keys also `before=W-1`. If a sequence has another number of keys than queries,
    `align` must be given with a band or `slopes`: the place of a query is its position ("start"), or is counted from
    the last key ("end", for decoding with a cache).

    `softcap` bends scores to softcap * tanh(score / softcap). `slopes` (ALiBi) then subtract slopes[h] * |p - key|.

    A query that sees no key gives 0, and -inf in `lse`; an empty sequence has no rows. With `lse`, parts can be
    merged: halves of the keys have the weights exp(lse - logaddexp(lse of one, lse of the other)), and a sink is
    `out * sigmoid(lse - sink)`. NaN and infinity reach only rows that see them. float16 is computed in float32,
    and `lse` is float32.

    >>> x = np.array([1.0, 3.0, 5.0]).reshape(3, 1, 1)
    >>> attention_within(0 * x, np.array([2, 1]), x, x).out.ravel()
    array([2., 2., 5.])
    >>> attention_within(0 * x, np.array([2, 1]), x, x, after=0).out.ravel()
    array([1., 2., 5.])
    """
    check_attention((lengths, kv_lengths), (scale, softcap), (before, after, slopes), align)
    settings = _settings(q, k, (scale, softcap), (before, after), align)
    wide_slopes = None if slopes is None else _wide(slopes)
    out, lse = kernels.attention_within(
        _wide(q), lengths, _wide(k), _wide(v), kv_lengths, wide_slopes, settings
    )
    return out.astype(q.dtype, copy=False), lse


@op(
    "float q[sum(lengths), G*R, D], like(q) k[sum(kv_lengths), G, D], like(q) v[sum(kv_lengths), G, E],"
    " like(q) out[sum(lengths), G*R, E], float lse[sum(lengths), G*R], like(q) d_out[sum(lengths), G*R, E],"
    " like(lse) d_lse[sum(lengths), G*R], lengths[B], kv_lengths[B]?=lengths, like(q) slopes[G*R]?"
    " -> like(q) grad_q[sum(lengths), G*R, D], like(q) grad_k[sum(kv_lengths), G, D],"
    " like(q) grad_v[sum(kv_lengths), G, E], like(q) grad_slopes[G*R]",
    moves="",
    grad=NoDerivative("the second derivative of attention is not there"),
)
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
    *,
    scale: float | None = None,
    before: NonNegative | None = None,
    after: NonNegative | None = None,
    align: Align | None = None,
    softcap: float | None = None,
) -> tuple[Array, ...]:
    """Return the gradients of `attention_within`: of q, k, v and the slopes; `out` and `lse` are its results.

    The weights are computed again from `lse`, tile by tile. Without slopes their gradient is 0. A query that sees no
    key, and an empty sequence, add nothing to any gradient.

    >>> x, one = np.zeros((2, 1, 1)), np.ones((2, 1, 1))
    >>> out, lse = attention_within(x, np.array([2]), x, x)
    >>> attention_within_backward(x, x, x, out, lse, one, 0 * lse, np.array([2])).grad_v.ravel()
    array([1., 1.])
    """
    check_attention((lengths, kv_lengths), (scale, softcap), (before, after, slopes), align)
    settings = _settings(q, k, (scale, softcap), (before, after), align)
    wide_slopes = None if slopes is None else _wide(slopes)
    found = kernels.attention_within_backward(
        _wide(q),
        _wide(k),
        _wide(v),
        _wide(out),
        lse,
        _wide(d_out),
        d_lse,
        lengths,
        kv_lengths,
        wide_slopes,
        settings,
    )
    grads = (np.zeros(q.shape[1]) if one is None else one for one in found)
    with np.errstate(over="ignore"):  # halves hold less than the float32 that they are computed in
        return tuple(one.astype(q.dtype, copy=False) for one in grads)


def _wide(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float16 else array


def check_attention(
    lengths: tuple[Array, Array],
    numbers: tuple[float | None, float | None],
    by_place: tuple[int | None, int | None, object | None],
    align: str | None,
) -> None:
    """Raise OpError when scale or softcap cannot be used, or when what counts places needs `align`.

    `lengths` are those of queries and keys, `numbers` scale and softcap, `by_place` before, after and slopes.
    """
    scale, softcap = numbers
    if scale is not None and not (math.isfinite(scale) and scale):
        raise OpError(f"scale is {scale}, expected a finite number other than 0")
    if softcap is not None and not (math.isfinite(softcap) and softcap > 0):
        raise OpError(f"softcap is {softcap}, expected a finite number above 0")
    differ = np.flatnonzero(lengths[0] != lengths[1])
    if any(one is not None for one in by_place) and align is None and len(differ):
        b = int(differ[0])
        raise OpError(
            f'align is None, expected "start" or "end": sequence {b} has {lengths[0][b]} queries and '
            f"{lengths[1][b]} keys\n"
            '  align="start" places query i at key i, "end" the last query at the last key'
        )


def _settings(
    q: Array,
    k: Array,
    numbers: tuple[float | None, float | None],
    band: tuple[int | None, int | None],
    align: str | None,
) -> AttentionSettings:
    """Return the attributes, with a bound that no sequence reaches in place of None."""
    scale, softcap = numbers
    before, after = (len(q) + len(k) if bound is None else min(bound, len(q) + len(k)) for bound in band)
    return AttentionSettings(
        float(max(q.shape[2], 1) ** -0.5 if scale is None else scale),
        before,
        after,
        align == "end",
        softcap or 0.0,
    )


# Positions


@op(
    "float x[N, *e, D], number positions[N, *p] -> out[N, *e, D]",
    grad={
        "x": """
            rotary(
                d.out, positions, base=base, interleaved=interleaved, sections=sections, inverse=logical_not(inverse)
            )
        """,
        "positions": None,
    },
)
def rotary(
    x: Array,
    positions: Array,
    *,
    base: float = 10000.0,
    interleaved: bool = False,
    sections: Sizes = (),
    inverse: bool = False,
) -> Array:
    """Rotate pairs of elements of each row by its position: pair i by the angle position / base**(2 * i / D).

    Pair i is elements i and i + D/2 (as in Llama), or 2 * i and 2 * i + 1 (`interleaved`, as in GPT-J). Products of
    rotated queries and keys depend on differences of positions only. `lengths_to_positions` makes the positions of
    documents, also of packed ones. Several positions for each row, [N, 3] for images and videos (mRoPE), need
    `sections`: the number of pairs that each of them rotates, one position after the other. `inverse` rotates back.
    Angles are computed in float64; the result has the dtype of `x`.

    >>> rotary(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1])).round(3)
    array([[1.   , 0.   ],
           [0.54 , 0.841]])
    """
    check_rotary(x.shape, positions.shape, base, sections)
    pairs = x.shape[-1] // 2
    by_pair = np.repeat(positions, sections, axis=1) if sections else positions[:, None]
    out = np.empty_like(x)
    first, second = (
        (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(pairs), slice(pairs, None))
    )
    with np.errstate(all="ignore"):  # of what is infinite
        angles = by_pair * float(base) ** (-np.arange(pairs) / max(pairs, 1))
        angles = angles.reshape(len(x), *[1] * (x.ndim - 2), pairs)
        dtype = np.float32 if x.dtype == np.float16 else x.dtype
        cos, sin = np.cos(angles).astype(dtype), np.sin(-angles if inverse else angles).astype(dtype)
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., second] * cos + x[..., first] * sin
    return out


def check_rotary(
    x: tuple[int, ...], positions: tuple[int, ...], base: float, sections: tuple[int, ...]
) -> None:
    """Raise OpError when rows of this shape cannot be rotated in pairs by positions of this shape."""
    if x[-1] % 2:
        raise OpError(f"x has {x[-1]} elements in a row, expected an even number: they are rotated in pairs")
    if not (math.isfinite(base) and base > 0):
        raise OpError(f"base is {base}, expected a finite number above 0")
    fits = len(positions) == 1 and not sections
    if not fits and (len(positions), len(sections), sum(sections)) != (2, positions[-1], x[-1] // 2):
        raise OpError(
            f"sections are {list(sections)} for positions {list(positions)}, expected a number of pairs for each "
            f"position of a row, {x[-1] // 2} together"
        )
