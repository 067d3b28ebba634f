"""Ops that train beside torch's own ways: forward and backward together.

    python benchmarks/torch_ops.py [NAME …] [--rounds 15] [--threads 1]

4,096 sequences of 0 to 39 rows × 64 float32. All contenders of a row work on the same tensors. The rivals are what a
user of torch would write: `index_add` by ready segment ids, `torch.segment_reduce`, `scatter_reduce`,
`repeat_interleave`, `index_put`, `embedding_bag`, packed sequences. The last rows are of calls so small that only the
way to the kernel counts, without a gradient and with one.

To add a row: write a function that returns a `Work`, and put it into WORKS.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding, embedding_bag
from torch.nn.utils import rnn

from comparison import Row, main
from seqflow.torch import ops

Run = Callable[..., Tensor]


@dataclass(frozen=True)
class Work:
    """What is trained: `ours` and the rivals take the trained tensors. `bounds` are of the ratios ours / rival."""

    name: str
    trained: tuple[Tensor, ...]
    ours: Run
    rivals: dict[str, Run]
    bounds: dict[str, float]
    why: str = ""


@dataclass(frozen=True)
class Batch:
    """Ragged rows, and what torch's ways want ready: segment ids, places inside sequences."""

    x: Tensor
    n: Tensor
    ids: Tensor
    places: Tensor

    @property
    def wide_ids(self) -> Tensor:
        return self.ids[:, None].expand(self.x.shape)


def batch_of(sequences: int, columns: int) -> Batch:
    torch.manual_seed(0)
    n = torch.randint(0, 40, (sequences,))
    ids = torch.repeat_interleave(torch.arange(sequences), n)
    places = torch.arange(len(ids)) - (n.cumsum(0) - n)[ids]
    return Batch(torch.randn(len(ids), columns, requires_grad=True), n, ids, places)


def zeros(batch: Batch) -> Tensor:
    return torch.zeros(len(batch.n), batch.x.shape[1])


def segment_sum(b: Batch) -> Work:
    return Work(
        "segment sum", (b.x,),
        lambda x: ops.lengths_sum(x, b.n),
        {
            "index_add": lambda x: zeros(b).index_add(0, b.ids, x),
            "segment_reduce": lambda x: torch.segment_reduce(x, "sum", lengths=b.n, initial=0),
        },
        {"index_add": 0.7, "segment_reduce": 0.2},
    )  # fmt: skip


def segment_mean(b: Batch) -> Work:
    return Work(
        "segment mean", (b.x,),
        lambda x: ops.lengths_mean(x, b.n),
        {
            "index_add": lambda x: zeros(b).index_add(0, b.ids, x) / b.n.clamp_min(1)[:, None],
            "segment_reduce": lambda x: torch.segment_reduce(x, "mean", lengths=b.n, initial=0),
        },
        {"index_add": 0.7, "segment_reduce": 0.2},
    )  # fmt: skip


def segment_max(b: Batch) -> Work:
    ids = b.wide_ids
    return Work(
        "segment max", (b.x,),
        lambda x: ops.lengths_max(x, b.n),
        {
            "scatter_reduce": lambda x: zeros(b).scatter_reduce(0, ids, x, "amax", include_self=False),
            "segment_reduce": lambda x: torch.where(
                b.n[:, None] > 0, torch.segment_reduce(x, "max", lengths=b.n), 0.0
            ),
        },
        {"scatter_reduce": 0.1},
    )  # fmt: skip


def softmax(b: Batch) -> Work:
    ids = b.wide_ids

    def scattered(x: Tensor) -> Tensor:
        largest = zeros(b).scatter_reduce(0, ids, x.detach(), "amax", include_self=False)
        e = torch.exp(x - largest[b.ids])
        return e / zeros(b).index_add(0, b.ids, e)[b.ids]

    return Work(
        "softmax", (b.x,), lambda x: ops.softmax_within(x, b.n),
        {"scatter_reduce, index_add": scattered}, {"scatter_reduce, index_add": 0.25},
    )  # fmt: skip


def expand(b: Batch) -> Work:
    v = torch.randn(len(b.n), b.x.shape[1], requires_grad=True)
    return Work(
        "expand", (v,), lambda v: ops.expand(v, b.n),
        {
            "index_select": lambda v: v.index_select(0, b.ids),
            "repeat_interleave": lambda v: v.repeat_interleave(b.n, 0, output_size=len(b.ids)),
        },
        {"index_select": 0.7, "repeat_interleave": 0.7},
    )  # fmt: skip


def pad_unpad(b: Batch) -> Work:
    longest = int(b.n.max())

    def indexed(x: Tensor) -> Tensor:
        padded = x.new_zeros(len(b.n), longest, x.shape[1]).index_put((b.ids, b.places), x)
        return padded[b.ids, b.places]

    return Work(
        "pad, unpad", (b.x,), lambda x: ops.unpad(ops.pad(x, b.n, max_length=longest).padded, b.n),
        {"index_put, index": indexed}, {"index_put, index": 0.5},
    )  # fmt: skip


def pooled(b: Batch) -> Work:
    table = torch.randn(50_000, b.x.shape[1], requires_grad=True)
    ids, offsets = torch.randint(0, 50_000, b.ids.shape), b.n.cumsum(0) - b.n
    return Work(
        "pooled sum, 50,000 rows", (table,), lambda table: ops.sparse_lengths_sum(table, ids, b.n),
        {
            "embedding_bag": lambda table: embedding_bag(ids, table, offsets, mode="sum"),
            "index_add": lambda table: zeros(b).index_add(0, b.ids, embedding(ids, table)),
        },
        {"embedding_bag": 0.5},
    )  # fmt: skip


def pooled_sparse(b: Batch) -> Work:
    table = torch.randn(50_000, b.x.shape[1], requires_grad=True)
    ids, offsets = torch.randint(0, 50_000, b.ids.shape), b.n.cumsum(0) - b.n
    return Work(
        "pooled sum, sparse gradient", (table,),
        lambda table: ops.sparse_lengths_sum(table, ids, b.n, sparse=True),
        {"embedding_bag": lambda table: embedding_bag(ids, table, offsets, mode="sum", sparse=True)},
        {"embedding_bag": 0.8}, "both write each row of the gradient once",
    )  # fmt: skip


def lstm(b: Batch) -> Work:
    """64 sequences of 5 to 59 rows × 128, 128 states."""
    torch.manual_seed(1)
    n = torch.randint(5, 60, (64,))
    layer = torch.nn.LSTM(128, 128)
    x = torch.randn(int(n.sum()), 128, requires_grad=True)
    weights = tuple(layer.parameters())

    def packed(x: Tensor, *_: Tensor) -> Tensor:
        found, _ = layer(rnn.pack_sequence(list(torch.split(x, n.tolist())), enforce_sorted=False))
        return torch.cat(rnn.unpack_sequence(found))

    def padded(x: Tensor, *_: Tensor) -> Tensor:
        found, _ = layer(rnn.pad_sequence(list(torch.split(x, n.tolist()))))
        return torch.cat([found[:size, i] for i, size in enumerate(n.tolist())])

    return Work(
        "LSTM, 64 sequences × 128", (x, *weights),
        lambda x, w_ih, w_hh, b_ih, b_hh: ops.lstm(x, n, w_ih, w_hh, b_ih + b_hh).h,
        {"packed": packed, "padded": padded}, {"packed": 0.5},
    )  # fmt: skip


WORKS = (segment_sum, segment_mean, segment_max, softmax, expand, pad_unpad, pooled, pooled_sparse, lstm)


def trained(work: Work, run: Run, cotangent: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(run(*work.trained), work.trained, cotangent)


def steps() -> Iterator[Row]:
    """Forward and backward together. Where elements tie, contenders may share a gradient differently."""
    batch = batch_of(4096, 64)
    for make in WORKS:
        work = make(batch)
        cotangent = torch.randn_like(work.ours(*work.trained))
        step = partial(partial, trained, work)
        yield Row(
            work.name,
            step(work.ours, cotangent),
            {name: step(rival, cotangent) for name, rival in work.rivals.items()},
            work.bounds,
            why=work.why,
        )


def calls() -> Iterator[Row]:
    """Calls of 64 × 4 floats, 8 sequences: ours and a C++ op of torch of like kind."""
    x, n = torch.randn(64, 4), torch.full((8,), 8)
    w = torch.randn(64, 4, requires_grad=True)
    cotangent = torch.ones(8, 4)

    def ours(x: Tensor) -> Tensor:
        return ops.lengths_sum(x, n)

    def theirs(x: Tensor) -> Tensor:
        return torch.segment_reduce(x, "sum", lengths=n, initial=0)

    def backward(run: Run) -> Any:
        return torch.autograd.grad(run(w), w, cotangent)

    why = "ours goes through Python, where signatures are checked; torch's op is C++ from the call on"
    for name, case, limit in (
        ("a small call", lambda run: run(x), 0.6),
        ("a small call that keeps a graph", lambda run: run(w), 1.1),
        ("a small call and its backward", backward, 1.1),
    ):
        rivals, limits = {"segment_reduce": partial(case, theirs)}, {"segment_reduce": limit}
        yield Row(name, partial(case, ours), rivals, limits, why=why)


FAMILIES = [steps, calls]

if __name__ == "__main__":
    main(FAMILIES)
