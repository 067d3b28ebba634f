"""Attention by torch's own functions, group by group of sequences with equal lengths, and rotary positions."""

from typing import Any

import torch
from torch import Tensor

from seqflow.errors import GradientError, OpError
from seqflow.ops.attention import check_attention, check_rotary
from seqflow.torch.device.dtypes import sum_dtype
from seqflow.torch.device.registration import implements
from seqflow.torch.device.structure import arange, offsets_of, starts_of

_HALVES = (torch.float16, torch.bfloat16)


@implements("attention_within", syncs="the lengths", keeps_bfloat16=True)
def _attention_within(
    q: Tensor,
    lengths: Tensor,
    k: Tensor,
    v: Tensor,
    kv_lengths: Tensor | None,
    slopes: Tensor | None,
    *,
    scale: float | None,
    before: int | None,
    after: int | None,
    align: str | None,
    softcap: float | None,
) -> tuple[Tensor, Tensor]:
    kv_lengths = lengths if kv_lengths is None else kv_lengths
    if lengths.is_meta:
        raise OpError("lengths are on the device meta, expected lengths with data")
    pairs = torch.stack([lengths, kv_lengths], dim=1).cpu()  # the one wait
    band = (before, after)
    check_attention((pairs[:, 0].numpy(), pairs[:, 1].numpy()), (scale, softcap), (*band, slopes), align)
    scale = max(q.shape[2], 1) ** -0.5 if scale is None else scale
    from_end = align == "end" or bool((pairs[:, 0] == pairs[:, 1]).all())
    if q.is_cuda and q.dtype in _HALVES and slopes is None and softcap is None:
        unbounded = before is None and after is None
        if (from_end or unbounded) and q.shape[2] == v.shape[2] and len(q) and bool((pairs[:, 1] > 0).all()):
            return _by_varlen(q, k, v, (lengths, kv_lengths), pairs, scale, band)
    dtype = sum_dtype(q.float() if q.dtype is torch.bfloat16 else q)
    attention = _Groups(scale, softcap, band, align, None if slopes is None else slopes.to(dtype))
    starts = starts_of(lengths), starts_of(kv_lengths)
    out, lse = attention.run(q.to(dtype), k.to(dtype), v.to(dtype), starts, pairs)
    return out.to(q.dtype), lse


class _GivesNoGradient(torch.autograd.Function):
    """Identity whose backward pass is refused."""

    @staticmethod
    def forward(ctx: Any, lse: Tensor, q: Tensor) -> Tensor:
        return lse.clone()

    @staticmethod
    def backward(ctx: Any, *arriving: Any) -> Any:
        raise GradientError(
            "attention_within: torch's varlen_attn has no derivative of lse\n  compute it in float32: q.float(), …"
        )


def _by_varlen(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lengths: tuple[Tensor, Tensor],
    pairs: Tensor,
    scale: float,
    band: tuple[int | None, int | None],
) -> tuple[Tensor, Tensor]:
    """Call torch's kernel for sequences of halves, whose last query stands at the last key."""
    from torch.nn.attention.varlen import AuxRequest, varlen_attn

    offsets, kv_offsets = (offsets_of(one).int() for one in lengths)
    longest, kv_longest = (int(one) for one in pairs.amax(dim=0))
    before, after = (-1 if bound is None else min(bound, longest + kv_longest) for bound in band)
    out, lse = varlen_attn(
        q, k, v, offsets, kv_offsets, longest, kv_longest, return_aux=AuxRequest(lse=True), scale=scale,
        window_size=(before, after), enable_gqa=q.shape[1] != k.shape[1], num_splits=1,
    )  # fmt: skip
    return out, _GivesNoGradient.apply(lse.T.contiguous(), q)  # type: ignore[no-untyped-call]


class _Groups:
    """Attention of sequences with equal lengths at once, [sequences, rows, heads, …]."""

    def __init__(
        self,
        scale: float,
        softcap: float | None,
        band: tuple[int | None, int | None],
        align: str | None,
        slopes: Tensor | None,
    ) -> None:
        self.scale, self.softcap, self.band, self.align, self.slopes = scale, softcap, band, align, slopes

    def run(
        self, q: Tensor, k: Tensor, v: Tensor, starts: tuple[Tensor, Tensor], pairs: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the results of all sequences; `pairs` are the numbers of their queries and keys, on the host."""
        distinct, members = torch.unique(pairs, dim=0, return_inverse=True)
        # sums of nothing keep the inputs in the graph
        nothing = sum(one[:0].sum() for one in (q, k, v, self.slopes) if one is not None)
        places, outs = [starts[0][:0]], [q.new_zeros(0, q.shape[1], v.shape[2]) + nothing]
        logs = [q.new_zeros(0, q.shape[1]) + nothing]
        for number, (queries, keys) in enumerate(distinct.tolist()):
            chosen = (members == number).nonzero()[:, 0].to(q.device)
            rows, key_rows = (
                first[chosen, None] + arange(first, count)
                for first, count in zip(starts, (queries, keys), strict=True)
            )
            out, lse = self.attend(q[rows], k[key_rows], v[key_rows])
            places.append(rows.flatten())
            outs.append(out.flatten(0, 1))
            logs.append(lse.flatten(0, 1))
        order = torch.cat(places)
        return (
            q.new_empty(*q.shape[:2], v.shape[2]).index_copy(0, order, torch.cat(outs)),
            q.new_empty(q.shape[:2]).index_copy(0, order, torch.cat(logs)),
        )

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return out and lse of q[b, queries, heads, D], k[b, keys, groups, D], v[b, keys, groups, E]."""
        ratio = q.shape[2] // max(k.shape[2], 1)
        k, v = (one.repeat_interleave(ratio, dim=2).transpose(1, 2) for one in (k, v))
        q = q.transpose(1, 2)
        shift = k.shape[2] - q.shape[2] if self.align == "end" else 0
        distance = arange(q, k.shape[2]) - arange(q, q.shape[2])[:, None] - shift
        before, after = self.band
        seen = torch.ones_like(distance, dtype=torch.bool)
        if before is not None:
            seen = seen & (distance >= -before)
        if after is not None:
            seen = seen & (distance <= after)
        scores = _finite(q) @ _finite(k).transpose(2, 3) * self.scale
        if self.softcap is not None:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        if self.slopes is not None:
            scores = scores - self.slopes[:, None, None] * distance.abs()
        felt = ~(q.isfinite().all(-1)[..., None] & k.isfinite().all(-1)[:, :, None])
        scores = torch.where(felt, torch.nan, scores).masked_fill(~seen, -torch.inf)
        any_seen = seen.any(dim=1)[:, None]
        # rows that see no key are computed with scores of 0: their softmax and its derivative would be NaN
        safe = scores.masked_fill(~any_seen, 0)
        weights = torch.softmax(safe, dim=-1).masked_fill(~seen, 0)
        out = weights @ _finite(v)
        out = out + torch.where((seen.to(v.dtype) @ (~v.isfinite()).to(v.dtype)) > 0, torch.nan, 0.0)
        lse = torch.where(any_seen[:, 0], _logsumexp(safe), -torch.inf)
        return out.transpose(1, 2), lse.transpose(1, 2)


def _finite(x: Tensor) -> Tensor:
    """Return x with 0 for NaN and infinity, which reach rows by their scores: 0 * NaN would reach all rows."""
    return torch.where(x.isfinite(), x, 0)


def _logsumexp(scores: Tensor) -> Tensor:
    return torch.logsumexp(scores, dim=-1) if scores.shape[-1] else scores.sum(dim=-1)


@implements("rotary")
def _rotary(
    x: Tensor,
    positions: Tensor,
    *,
    base: float,
    interleaved: bool,
    sections: tuple[int, ...],
    inverse: bool,
) -> Tensor:
    check_rotary(tuple(x.shape), tuple(positions.shape), base, sections)
    pairs = x.shape[-1] // 2
    places = positions.double()
    if sections:
        counts = torch.tensor(sections, device=x.device)
        places = places.repeat_interleave(counts, dim=1, output_size=pairs)
    else:
        places = places[:, None]
    angles = places * base ** (-arange(x, pairs).double() / max(pairs, 1))
    angles = angles.reshape(len(x), *[1] * (x.ndim - 2), pairs)
    dtype = torch.float32 if x.dtype is torch.float16 else x.dtype
    cos, sin = angles.cos().to(dtype), (-angles if inverse else angles).sin().to(dtype)
    wide = x.to(dtype)
    one, other = (wide[..., ::2], wide[..., 1::2]) if interleaved else (wide[..., :pairs], wide[..., pairs:])
    turned = (one * cos - other * sin, other * cos + one * sin)
    return (torch.stack(turned, dim=-1).flatten(-2) if interleaved else torch.cat(turned, dim=-1)).to(x.dtype)
