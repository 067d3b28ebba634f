"""Pooling and quantised rows beside torch: how long each takes, as a ratio, and the bound the ratio should hold.

    python benchmarks/sparse.py [NAME …] [--rounds 40] [--threads 1]
    SEQFLOW_KERNELS=avx2 python benchmarks/sparse.py

Ours and torch's work on the same memory: tables are torch's tensors, and their alignment is printed. Both are timed
in turns, round by round, and the fastest round of each counts. Bags have 20 indices on average, uniform or Zipf.

To add cases: write a function that yields `Case`s, and put it into CASES. It is called only when one of its cases may
be wanted.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from seqflow import kernels, ops

Call = Callable[[], Any]
BAGS, MEAN = 4096, 20
bag = torch.nn.functional.embedding_bag


@dataclass(frozen=True)
class Case:
    """One piece of work, done by us and by torch. `bound` is of the ratio ours / torch on one thread."""

    name: str
    ours: Call
    peer: Call
    bound: float
    alignment: int | None = None


def indices_into(num_rows: int, dtype: str, zipf: bool) -> tuple[Any, Any]:
    """Indices of all bags, and the lengths of the bags."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 2 * MEAN + 1, BAGS)
    drawn = rng.zipf(1.2, lengths.sum()) * 7919 if zipf else rng.integers(0, num_rows, lengths.sum())
    return (drawn % num_rows).astype(dtype), lengths


def pooling() -> Iterator[Case]:
    bounds = {
        (1_000_000, 64): 0.65,
        (1_000_000, 128): 0.92,
        (100_000, 32): 0.7,
        (100_000, 33): 0.95,
        (100_000, 100): 0.95,
    }
    for (num_rows, columns), bound in bounds.items():
        weight = torch.randn(num_rows, columns)
        for dtype in ("int64", "int32"):
            for zipf in (False, True):
                yield from _pool(weight, bound, dtype, zipf)


def _pool(weight: Any, bound: float, dtype: str, zipf: bool) -> Iterator[Case]:
    table, (num_rows, columns) = weight.numpy(), weight.shape
    indices, lengths = indices_into(num_rows, dtype, zipf)
    picked = torch.from_numpy(indices)
    offsets = torch.from_numpy((np.cumsum(lengths) - lengths).astype(dtype))
    factors = torch.rand(len(indices))
    ours = {
        "sum": lambda: ops.sparse_lengths_sum(table, indices, lengths),
        "mean": lambda: ops.sparse_lengths_mean(table, indices, lengths),
        "max": lambda: ops.sparse_lengths_max(table, indices, lengths),
    }
    where = f"{num_rows // 1000}k×{columns} {dtype} {'Zipf' if zipf else 'uniform'}"
    for mode, call in ours.items():
        yield Case(
            f"{mode} {where}", call, lambda mode=mode: bag(picked, weight, offsets, mode=mode),
            bound, weight.data_ptr() % 64,
        )  # fmt: skip
    scales = factors.numpy()
    yield Case(
        f"weighted {where}",
        lambda: ops.sparse_lengths_weighted_sum(table, scales, indices, lengths),
        lambda: bag(picked, weight, offsets, mode="sum", per_sample_weights=factors),
        bound, weight.data_ptr() % 64,
    )  # fmt: skip


def quantized() -> Iterator[Case]:
    indices, lengths = indices_into(100_000, "int64", False)
    picked, offsets = torch.from_numpy(indices), torch.from_numpy(np.cumsum(lengths) - lengths)
    for bits, name, bound in ((8, "byte", 0.9), (4, "4bit", 0.85), (2, "2bit", 0.85)):
        pack = getattr(torch.ops.quantized, f"embedding_bag_{name}_prepack")
        packed = pack(torch.randn(100_000, 64))
        table = packed.numpy()
        pool = getattr(torch.ops.quantized, f"embedding_bag_{name}_rowwise_offsets", None)
        if pool is None:
            continue
        yield Case(
            f"{bits}-bit sum 100k×64",
            lambda table=table, bits=bits: ops.sparse_lengths_sum_quantized(table, indices, lengths, bits=bits),
            lambda pool=pool, packed=packed: pool(packed, picked, offsets),
            bound, packed.data_ptr() % 64,
        )  # fmt: skip


def by_lengths_and_ids() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 20, 40_000)
    rows = torch.randn(int(lengths.sum()), 64)
    data, everything = rows.numpy(), torch.arange(len(rows))
    offsets = torch.from_numpy(np.cumsum(lengths) - lengths)
    yield Case(
        "lengths_sum 400k×64", lambda: ops.lengths_sum(data, lengths),
        lambda: bag(everything, rows, offsets, mode="sum"), 0.95, rows.data_ptr() % 64,
    )  # fmt: skip
    values, places = torch.randn(4_000_000), torch.from_numpy(rng.integers(0, 100_000, 4_000_000))
    column, ids = values.numpy(), places.numpy()
    yield Case(
        "unsorted_segment_sum 4M", lambda: ops.unsorted_segment_sum(column, ids, num_segments=100_000),
        lambda: torch.zeros(100_000).index_add(0, places, values), 0.85,
    )  # fmt: skip


CASES: list[Callable[[], Iterator[Case]]] = [pooling, quantized, by_lengths_and_ids]


def ratio(case: Case, rounds: int) -> tuple[float, float]:
    """Milliseconds of ours and of the peer: the best of all rounds, in turns."""
    best = [float("inf")] * 2
    for _ in range(rounds):
        for i, call in enumerate((case.ours, case.peer)):
            started = time.perf_counter()
            call()
            best[i] = min(best[i], (time.perf_counter() - started) * 1000)
    return best[0], best[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    kernels.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    info = kernels.info()
    print(f"{info['kernels']} {info['isa']}, torch {torch.__version__}, threads: {options.threads}")
    print(f"{'':40}{'ours ms':>9}{'torch ms':>10}{'ratio':>7}{'bound':>7}  table at, mod 64")
    for cases in CASES:
        for case in cases():
            if options.names and not any(name in case.name for name in options.names):
                continue
            ours, peer = ratio(case, options.rounds)
            bound = case.bound if options.threads == 1 else max(case.bound, 1.0)
            late = "!" if ours > bound * peer else " "
            at = "" if case.alignment is None else case.alignment
            print(
                f"{case.name:40}{ours:9.3f}{peer:10.3f}{ours / peer:7.2f}{bound:7.2f}{late} {at}", flush=True
            )


if __name__ == "__main__":
    main()
