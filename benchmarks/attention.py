"""Attention inside sequences beside torch's, 8 heads of 64 in float32: forward, and forward with backward.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/attention.py [NAME …] [--rounds 7] [--threads 1]

torch's scaled_dot_product_attention runs on each sequence by itself, or on padded sequences with a mask (padding and
unpadding included).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from comparison import Row, main
from seqflow import ops

HEADS, WIDTH = 8, 64
SDPA = torch.nn.functional.scaled_dot_product_attention


def cases() -> dict[str, tuple[Any, bool]]:
    """Lengths, and whether a token sees only those before it."""
    rng = np.random.default_rng(0)
    log_normal = np.clip(rng.lognormal(5, 0.8, 64), 1, 1500).astype(np.int64)
    cuts = [np.sort(rng.choice(np.arange(1, 2048), 7, replace=False)) for _ in range(8)]
    packed = np.concatenate([np.diff(np.concatenate([[0], cut, [2048]])) for cut in cuts])
    return {
        "64 log-normal": (log_normal, False),
        "64 log-normal, causal": (log_normal, True),
        "2,000 short": (rng.integers(1, 40, 2000), False),
        "8 rows of 2,048 with 8 documents, causal": (packed, True),
        "8 of 2,048, causal": (np.full(8, 2048), True),
    }


class Case:
    """One batch of sequences, and what each contender does with it."""

    def __init__(self, lengths: Any, causal: bool) -> None:
        rng = np.random.default_rng(1)
        shape = (int(lengths.sum()), HEADS, WIDTH)
        self.lengths, self.causal = lengths, causal
        self.q, self.k, self.v, self.arriving = (
            rng.standard_normal(shape, dtype=np.float32) for _ in range(4)
        )
        self.tensors = [torch.from_numpy(one).requires_grad_() for one in (self.q, self.k, self.v)]

    def ours(self, backward: bool) -> Any:
        after = 0 if self.causal else None
        out, lse = ops.attention_within(self.q, self.lengths, self.k, self.v, after=after)
        if not backward:
            return out
        given = (self.q, self.k, self.v, out, lse, self.arriving, np.zeros_like(lse), self.lengths)
        return [out, *ops.attention_within_backward(*given, after=after)[:3]]

    def trained(self, attend: Any, backward: bool) -> Any:
        with torch.set_grad_enabled(backward):
            out = attend(*self.tensors)
        if not backward:
            return out
        return [out.detach(), *torch.autograd.grad(out, self.tensors, torch.from_numpy(self.arriving))]

    def each_sequence(self, *tensors: Any) -> Any:
        parts = zip(*(one.split(self.lengths.tolist()) for one in tensors), strict=True)
        return torch.cat([
            SDPA(*(one.transpose(0, 1)[None] for one in part), is_causal=self.causal)[0].transpose(0, 1)
            for part in parts
        ])  # fmt: skip

    def padded(self, *tensors: Any) -> Any:
        sizes = torch.from_numpy(self.lengths)
        longest = int(sizes.max())
        seen = torch.arange(longest) < sizes[:, None]
        mask = seen[:, None, None, :]
        if self.causal:
            mask = mask & torch.ones(longest, longest, dtype=torch.bool).tril()
        rows = [
            torch.nn.utils.rnn.pad_sequence(one.split(self.lengths.tolist()), batch_first=True).transpose(
                1, 2
            )
            for one in tensors
        ]
        return SDPA(*rows, attn_mask=mask).transpose(1, 2)[seen]


def attention() -> Iterator[Row]:
    """Each case in both directions."""
    for name, (lengths, causal) in cases().items():
        case = Case(lengths, causal)
        for backward in (False, True):
            peers = {
                "torch, each sequence": lambda case=case, backward=backward: case.trained(
                    case.each_sequence, backward
                )
            }
            if not backward or len(set(lengths)) == 1:  # with padding, gradients take half a minute
                peers["torch, padded"] = lambda case=case, backward=backward: case.trained(
                    case.padded, backward
                )
            yield Row(
                f"attention, {name}{', with gradient' if backward else ''}",
                lambda case=case, backward=backward: case.ours(backward),
                peers,
                {"torch, each sequence": 0.9, "torch, padded": 0.25 if len(set(lengths)) > 1 else 0.9},
                rounds=5,
            )


FAMILIES = [attention]

if __name__ == "__main__":
    main(FAMILIES)
