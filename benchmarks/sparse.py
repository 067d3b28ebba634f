"""Pooling and quantised rows beside torch: how long each takes, as a ratio, and the bound the ratio should hold.

    python benchmarks/sparse.py [NAME …] [--rounds 15] [--threads 1]
    SEQFLOW_KERNELS=avx2 python benchmarks/sparse.py

Ours and torch's work on the same memory: tables are torch's tensors, which begin at a cache line. Bags have 20
indices on average, uniform or Zipf; rows named "new indices" take other ones at each call.
"""

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import numpy as np
import torch

from comparison import Row, main
from seqflow import ops

BAGS, MEAN = 4096, 20
bag = torch.nn.functional.embedding_bag
MEMORY = (
    "both wait for rows of the table; where a cache has them, FBGEMM's generated code needs less for each bag"
)


def indices_into(num_rows: int, dtype: str, zipf: bool, seed: int = 0) -> tuple[Any, Any]:
    """Indices of all bags, and the lengths of the bags."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 2 * MEAN + 1, BAGS)
    drawn = rng.zipf(1.2, lengths.sum()) * 7919 if zipf else rng.integers(0, num_rows, lengths.sum())
    return (drawn % num_rows).astype(dtype), lengths


def pooling() -> Iterator[Row]:
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


def _pool(weight: Any, bound: float, dtype: str, zipf: bool) -> Iterator[Row]:
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
        yield Row(
            f"{mode} {where}", call, {"EmbeddingBag": lambda mode=mode: bag(picked, weight, offsets, mode=mode)},
            {"EmbeddingBag": bound}, why=MEMORY,
        )  # fmt: skip
    scales = factors.numpy()
    yield Row(
        f"weighted {where}",
        lambda: ops.sparse_lengths_weighted_sum(table, scales, indices, lengths),
        {"EmbeddingBag": lambda: bag(picked, weight, offsets, mode="sum", per_sample_weights=factors)},
        {"EmbeddingBag": bound}, why=MEMORY,
    )  # fmt: skip


SETS = 12


def new_indices() -> Iterator[Row]:
    """A call takes the next of 12 sets of indices, so that no cache holds the rows of the call before."""
    for num_rows, columns, zipf, bound in (
        (1_000_000, 64, False, 0.88),
        (1_000_000, 64, True, 0.8),
        (1_000_000, 128, False, 0.9),
        (100_000, 32, False, 0.95),
    ):
        weight = torch.randn(num_rows, columns)
        small, large = weight.numpy(), np.array(weight.numpy())
        sets = [indices_into(num_rows, "int64", zipf, seed) for seed in range(SETS)]
        tensors = [(torch.from_numpy(i), torch.from_numpy(np.cumsum(n) - n)) for i, n in sets]
        where = f"{num_rows // 1000}k×{columns} {'Zipf' if zipf else 'uniform'}"
        theirs = _each(lambda i, offsets, weight=weight: bag(i, weight, offsets, mode="sum"), tensors)
        yield Row(
            f"sum {where}, new indices", _each(lambda i, n, t=small: ops.sparse_lengths_sum(t, i, n), sets),
            {"EmbeddingBag": theirs}, {"EmbeddingBag": bound}, why=MEMORY,
        )  # fmt: skip
        if num_rows == 1_000_000:
            yield Row(
                f"sum {where}, on large pages", _each(lambda i, n, t=large: ops.sparse_lengths_sum(t, i, n), sets),
                {"on small pages": _each(lambda i, n, t=small: ops.sparse_lengths_sum(t, i, n), sets)},
                {"on small pages": 0.65}, why="the system gave few large pages, or late",
            )  # fmt: skip


def _each(call: Callable[..., Any], sets: list[tuple[Any, Any]]) -> Callable[[], Any]:
    """Return a function that calls with the next set each time."""
    turns = cycle(sets)
    return lambda: call(*next(turns))


def quantized() -> Iterator[Row]:
    indices, lengths = indices_into(100_000, "int64", False)
    picked, offsets = torch.from_numpy(indices), torch.from_numpy(np.cumsum(lengths) - lengths)
    for bits, name, bound in ((8, "byte", 0.9), (4, "4bit", 0.85), (2, "2bit", 0.85)):
        pack = getattr(torch.ops.quantized, f"embedding_bag_{name}_prepack")
        packed = pack(torch.randn(100_000, 64))
        table = packed.numpy()
        pool = getattr(torch.ops.quantized, f"embedding_bag_{name}_rowwise_offsets", None)
        if pool is None:
            continue
        yield Row(
            f"{bits}-bit sum 100k×64",
            lambda table=table, bits=bits: ops.sparse_lengths_sum_quantized(table, indices, lengths, bits=bits),
            {"torch.ops.quantized": lambda pool=pool, packed=packed: pool(packed, picked, offsets)},
            {"torch.ops.quantized": bound}, why=MEMORY,
        )  # fmt: skip


def by_lengths_and_ids() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 20, 40_000)
    rows = torch.randn(int(lengths.sum()), 64)
    data, everything = rows.numpy(), torch.arange(len(rows))
    offsets = torch.from_numpy(np.cumsum(lengths) - lengths)
    yield Row(
        "lengths_sum 400k×64, bags of ranges", lambda: ops.lengths_sum(data, lengths),
        {"EmbeddingBag": lambda: bag(everything, rows, offsets, mode="sum")}, {"EmbeddingBag": 0.95},
    )  # fmt: skip
    values = torch.randn(4_000_000)
    column = values.numpy()
    for count, bound in ((100_000, 0.8), (1_000_000, 0.95)):
        places = torch.from_numpy(rng.integers(0, count, len(values)))
        ids = places.numpy()
        yield Row(
            f"unsorted_segment_sum 4M, {count // 1000}k ids",
            lambda ids=ids, count=count: ops.unsorted_segment_sum(column, ids, num_segments=count),
            {"index_add": lambda places=places, count=count: torch.zeros(count).index_add(0, places, values)},
            {"index_add": bound}, why="both wait for the sums, one at random for each element; ours are float64",
        )  # fmt: skip


def shared_histories() -> Iterator[Row]:
    """Rows of sessions, each with the history of its session: found and pooled once, beside pooled for each row."""
    for rows, bound, trained in ((1, 1.15, 1.4), (2, 0.8, 0.8), (4, 0.6, 0.4), (16, 0.4, 0.2)):
        rng = np.random.default_rng(0)
        sizes = rng.integers(0, 201, BAGS // rows)
        sessions = rng.permutation(np.repeat(np.arange(len(sizes)), rows))
        ids, lengths = ops.gather_sequences(rng.integers(0, 100_000, sizes.sum()), sessions, sizes)
        weight = torch.randn(100_000, 64)
        table, arriving = weight.numpy(), torch.randn(BAGS, 64)

        def pooled(ids: Any = ids, lengths: Any = lengths, table: Any = table) -> Any:
            once = ops.distinct_sequences(ids, lengths)
            return ops.gather(ops.sparse_lengths_sum(table, once.values, once.lengths), once.row)

        def step(ids: Any, lengths: Any, row: Any, weight: Any = weight, arriving: Any = arriving) -> Any:
            leaf = weight.detach().requires_grad_()
            offsets = torch.from_numpy(np.cumsum(lengths) - lengths)
            found = bag(torch.from_numpy(ids), leaf, offsets, mode="sum", sparse=True)
            found = found if row is None else found.index_select(0, torch.from_numpy(row))
            return [found.detach(), *torch.autograd.grad(found, leaf, arriving)]

        def trained_once(ids: Any = ids, lengths: Any = lengths, step: Any = step) -> Any:
            return step(*ops.distinct_sequences(ids, lengths)[:3])

        yield Row(
            f"distinct_sequences and pooling, {rows} rows a session", pooled,
            {"pooling of each row": lambda t=table, i=ids, n=lengths: ops.sparse_lengths_sum(t, i, n)},
            {"pooling of each row": bound}, why="nothing is equal: finding that out is on top",
        )  # fmt: skip
        yield Row(
            f"distinct_sequences, EmbeddingBag and gradient, {rows} rows a session", trained_once,
            {"EmbeddingBag of each row": lambda i=ids, n=lengths, step=step: step(i, n, None)},
            {"EmbeddingBag of each row": trained}, rounds=5, agree=_same_step,
            why="nothing is equal: finding that out, and a gather, are on top",
        )  # fmt: skip


def _same_step(ours: Any, theirs: Any) -> None:
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1].to_dense(), theirs[1].to_dense(), rtol=1e-4, atol=1e-3)


FAMILIES = [pooling, new_indices, quantized, by_lengths_and_ids, shared_histories]

if __name__ == "__main__":
    main(FAMILIES)
