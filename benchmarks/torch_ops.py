"""Ops that train beside torch's own ways: forward and backward together, as a ratio to the best of the rivals.

    python benchmarks/torch_ops.py [NAME …] [--rounds 15] [--threads 1] [--sequences 4096] [--columns 64]

Rows of float32 in sequences of 0 to 39 rows. All contenders of a row work on the same tensors, are compared once, and
are timed in turns, round by round; the fastest round of each counts. The rivals are what a user of torch would write:
`index_add` by ready segment ids, `torch.segment_reduce`, `scatter_reduce`, `repeat_interleave`, `index_put`,
`embedding_bag`, packed sequences. The last rows are of calls so small that only the way to the kernel counts,
in µs, without a gradient and with one.

To add a row: write a function that returns a `Row`, and put it into ROWS.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding, embedding_bag
from torch.nn.utils import rnn

from seqflow import kernels
from seqflow.torch import ops

Run = Callable[..., Tensor]


@dataclass(frozen=True)
class Row:
    """One piece of work: `ours` and the rivals take the trained tensors. `bounds` are of the ratios ours / rival."""

    name: str
    trained: tuple[Tensor, ...]
    ours: Run
    rivals: dict[str, Run]
    bounds: dict[str, float]


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


def segment_sum(b: Batch) -> Row:
    return Row(
        "segment sum", (b.x,),
        lambda x: ops.lengths_sum(x, b.n),
        {
            "index_add": lambda x: zeros(b).index_add(0, b.ids, x),
            "segment_reduce": lambda x: torch.segment_reduce(x, "sum", lengths=b.n, initial=0),
        },
        {"index_add": 0.7, "segment_reduce": 0.2},
    )  # fmt: skip


def segment_mean(b: Batch) -> Row:
    return Row(
        "segment mean", (b.x,),
        lambda x: ops.lengths_mean(x, b.n),
        {
            "index_add": lambda x: zeros(b).index_add(0, b.ids, x) / b.n.clamp_min(1)[:, None],
            "segment_reduce": lambda x: torch.segment_reduce(x, "mean", lengths=b.n, initial=0),
        },
        {"index_add": 0.7, "segment_reduce": 0.2},
    )  # fmt: skip


def segment_max(b: Batch) -> Row:
    ids = b.wide_ids
    return Row(
        "segment max", (b.x,),
        lambda x: ops.lengths_max(x, b.n),
        {
            "scatter_reduce": lambda x: zeros(b).scatter_reduce(0, ids, x, "amax", include_self=False),
            "segment_reduce": lambda x: torch.where(
                b.n[:, None] > 0, torch.segment_reduce(x, "max", lengths=b.n), 0.0
            ),
        },
        {"scatter_reduce": 0.25},
    )  # fmt: skip


def softmax(b: Batch) -> Row:
    ids = b.wide_ids

    def scattered(x: Tensor) -> Tensor:
        largest = zeros(b).scatter_reduce(0, ids, x.detach(), "amax", include_self=False)
        e = torch.exp(x - largest[b.ids])
        return e / zeros(b).index_add(0, b.ids, e)[b.ids]

    return Row(
        "softmax", (b.x,), lambda x: ops.softmax_within(x, b.n),
        {"scatter_reduce, index_add": scattered}, {"scatter_reduce, index_add": 0.25},
    )  # fmt: skip


def expand(b: Batch) -> Row:
    v = torch.randn(len(b.n), b.x.shape[1], requires_grad=True)
    return Row(
        "expand", (v,), lambda v: ops.expand(v, b.n),
        {
            "index_select": lambda v: v.index_select(0, b.ids),
            "repeat_interleave": lambda v: v.repeat_interleave(b.n, 0, output_size=len(b.ids)),
        },
        {"index_select": 0.7, "repeat_interleave": 0.7},
    )  # fmt: skip


def pad_unpad(b: Batch) -> Row:
    longest = int(b.n.max())

    def indexed(x: Tensor) -> Tensor:
        padded = x.new_zeros(len(b.n), longest, x.shape[1]).index_put((b.ids, b.places), x)
        return padded[b.ids, b.places]

    return Row(
        "pad, unpad", (b.x,), lambda x: ops.unpad(ops.pad(x, b.n, max_length=longest).padded, b.n),
        {"index_put, index": indexed}, {"index_put, index": 0.5},
    )  # fmt: skip


def pooled(b: Batch) -> Row:
    table = torch.randn(50_000, b.x.shape[1], requires_grad=True)
    ids, offsets = torch.randint(0, 50_000, b.ids.shape), b.n.cumsum(0) - b.n
    return Row(
        "pooled sum, 50,000 rows", (table,), lambda table: ops.sparse_lengths_sum(table, ids, b.n),
        {
            "embedding_bag": lambda table: embedding_bag(ids, table, offsets, mode="sum"),
            "index_add": lambda table: zeros(b).index_add(0, b.ids, embedding(ids, table)),
        },
        {"embedding_bag": 0.5},
    )  # fmt: skip


def pooled_sparse(b: Batch) -> Row:
    table = torch.randn(50_000, b.x.shape[1], requires_grad=True)
    ids, offsets = torch.randint(0, 50_000, b.ids.shape), b.n.cumsum(0) - b.n
    return Row(
        "pooled sum, sparse gradient", (table,),
        lambda table: ops.sparse_lengths_sum(table, ids, b.n, sparse=True),
        {"embedding_bag": lambda table: embedding_bag(ids, table, offsets, mode="sum", sparse=True)},
        {"embedding_bag": 0.8},
    )  # fmt: skip


def lstm(b: Batch) -> Row:
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

    return Row(
        "LSTM, 64 sequences × 128", (x, *weights),
        lambda x, w_ih, w_hh, b_ih, b_hh: ops.lstm(x, n, w_ih, w_hh, b_ih + b_hh).h,
        {"packed": packed, "padded": padded}, {"packed": 0.5},
    )  # fmt: skip


ROWS = (segment_sum, segment_mean, segment_max, softmax, expand, pad_unpad, pooled, pooled_sparse, lstm)


def trained(row: Row, run: Run, cotangent: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(run(*row.trained), row.trained, cotangent)


def compare(row: Row, cotangent: Tensor) -> None:
    """All contenders have equal gradients, but for rounding; where they tie, they may share differently."""
    expected = trained(row, row.ours, cotangent)
    for rival in row.rivals.values():
        for found, known in zip(trained(row, rival, cotangent), expected, strict=True):
            torch.testing.assert_close(found.to_dense(), known.to_dense(), rtol=1e-3, atol=1e-3)


def minima(runs: list[Callable[[], Any]], rounds: int, repeat: int = 1) -> list[float]:
    """Seconds of the fastest round of each, in turns."""
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            started = time.perf_counter()
            for _ in range(repeat):
                run()
            best[i] = min(best[i], (time.perf_counter() - started) / repeat)
    return best


def show(row: Row, rounds: int) -> None:
    cotangent = torch.randn_like(row.ours(*row.trained))
    compare(row, cotangent)
    contenders = [row.ours, *row.rivals.values()]
    ours, *theirs = minima([partial(trained, row, run, cotangent) for run in contenders], rounds)
    print(f"{row.name:26}{1e3 * ours:9.2f} ms")
    for name, seconds in zip(row.rivals, theirs, strict=True):
        bound = row.bounds.get(name)
        mark = "" if bound is None else f"   aim {bound}{'  missed' if ours > bound * seconds else ''}"
        print(f"    {name:26}{1e3 * seconds:9.2f} ms {ours / seconds:6.2f}{mark}", flush=True)


def show_calls(rounds: int) -> None:
    """Calls of 64 × 4 floats, 8 sequences, in µs: ours and a C++ op of torch of like kind."""
    x, n = torch.randn(64, 4), torch.full((8,), 8)
    w = torch.randn(64, 4, requires_grad=True)
    cotangent = torch.ones(8, 4)
    ours: Run = lambda x: ops.lengths_sum(x, n)  # noqa: E731
    theirs: Run = lambda x: torch.segment_reduce(x, "sum", lengths=n, initial=0)  # noqa: E731
    backward = lambda run: torch.autograd.grad(run(w), w, cotangent)  # noqa: E731
    cases: dict[str, Callable[[Run], Any]] = {
        "a call": lambda run: run(x),
        "a call that keeps a graph": lambda run: run(w),
        "a call and its backward": backward,
    }
    print(f"{'µs':30}{'ours':>9}{'segment_reduce':>16}")
    for name, case in cases.items():
        best = minima([partial(case, ours), partial(case, theirs)], rounds, repeat=500)
        print(f"{name:30}{1e6 * best[0]:9.1f}{1e6 * best[1]:16.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=4096)
    parser.add_argument("--columns", type=int, default=64)
    options = parser.parse_args()
    kernels.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    batch = batch_of(options.sequences, options.columns)
    info = kernels.info()
    print(f"{info['kernels']} {info['isa']}, torch {torch.__version__}, threads: {options.threads}; "
          f"{len(batch.n)} sequences, {len(batch.x)} rows × {options.columns}")  # fmt: skip
    for make in ROWS:
        row = make(batch)
        if not options.names or any(name in row.name for name in options.names):
            show(row, options.rounds)
    if not options.names or "calls" in options.names:
        show_calls(options.rounds)


if __name__ == "__main__":
    main()
