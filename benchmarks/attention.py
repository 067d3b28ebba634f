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


def trees() -> Iterator[Row]:
    """Groups of answers to one prompt: elements of their tree once, beside separate sequences."""
    for prompt, answer in ((512, 128), (2048, 512)):
        for group in (2, 8, 16):
            rng = np.random.default_rng(0)
            start = rng.integers(0, 9, prompt)
            tokens = np.concatenate(
                [np.concatenate([start, [i], rng.integers(0, 9, answer - 1)]) for i in range(group)]
            )
            lengths = np.full(group, prompt + answer)
            tree = ops.prefix_tree(tokens, lengths)
            paths = ops.tree_paths(tree.parents, tree.node_lengths)
            sizes = (len(tree.kept), HEADS, WIDTH)
            q, k, v, arriving = (rng.standard_normal(sizes, dtype=np.float32) for _ in range(4))
            owners = np.bincount(tree.rows)[tree.rows].astype(np.float32)[:, None, None]
            yield from _tree(
                f"{group} answers of {answer} to a prompt of {prompt}",
                tree,
                paths,
                lengths,
                (q, k, v, arriving),
                owners,
            )


def _tree(name: str, tree: Any, paths: Any, lengths: Any, given: Any, owners: Any) -> Iterator[Row]:
    q, k, v, arriving = given
    banded = {"after": 0, "align": "end"}

    def once(backward: bool) -> Any:
        seen = [ops.gather(one, paths.keys) for one in (k, v)]
        own = (tree.node_lengths, *seen, paths.path_lengths)
        out, lse = ops.attention_within(q, *own, **banded)
        if not backward:
            return out[tree.rows]
        grads = ops.attention_within_backward(
            q, *seen, out, lse, arriving, np.zeros_like(lse), tree.node_lengths, paths.path_lengths, **banded
        )
        return [grads[0], *(ops.scatter_rows(one, paths.keys, k) for one in grads[1:3])]

    rows = [one[tree.rows] for one in (q, k, v)]
    # what arrives at shared elements is divided among the sequences, so that gradients agree
    parts = arriving[tree.rows] / owners

    def separate(backward: bool) -> Any:
        out, lse = ops.attention_within(rows[0], lengths, *rows[1:], after=0)
        if not backward:
            return out
        grads = ops.attention_within_backward(*rows, out, lse, parts, np.zeros_like(lse), lengths, after=0)
        return [ops.scatter_rows(one, tree.rows, q) for one in grads[:3]]

    for backward in (False, True):
        yield Row(
            f"attention, {name}{', gradient' if backward else ''}", lambda b=backward: once(b),
            {"separate sequences": lambda b=backward: separate(b)}, {"separate sequences": 1.0}, rounds=3,
            why="keys of each path are gathered, and each answer still sees all of the prompt",
        )  # fmt: skip


FAMILIES = [attention, trees]

if __name__ == "__main__":
    main(FAMILIES)
