"""What ranks wait for each other: steps of packed rows as shuffled, dealt, exchanged, and packed by cost.

    python benchmarks/balance.py [--rows 20000] [--ranks 8 64 512] [--seed 0]
    python benchmarks/balance.py --wait [--steps 12]

The first simulates on lengths: documents are packed by best fit, packed rows come in a random order, and those of
each step are dealt by the code that loaders run. Each cell is "sum / micro-batch": the dearest rank of a step over
the mean one, for whole steps and for each micro-batch. 1.20 says that ranks wait for 17 % of their time.
The last columns are the slowest balancing, in ns a packed row, and planning with it divided by planning without.

The second trains a small transformer on two ranks, over gloo, and times the steps as the shuffle gave them and dealt.
"""

import argparse
import os
import time
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.loader import Balance
from seqflow.loader.plans.balance import Slots, whole_costs
from seqflow.loader.plans.balanced_pools import assign_items

LONGEST = 131_072
CASES = [
    # documents, mean, capacity, linear
    ("log-normal", 600, 4_096, 57_000),
    ("log-normal", 600, 8_192, 57_000),
    ("log-normal", 250, 8_192, 57_000),
    ("log-normal", 2_000, 8_192, 57_000),
    ("log-normal", 600, 8_192, 0),
    ("log-normal", 600, 32_768, 57_000),
    ("zipf", 600, 8_192, 57_000),
    ("zipf", 600, 32_768, 57_000),
    ("constant", 600, 8_192, 57_000),
]
STEPS = [(8, 1), (8, 4), (1, 16), (1, None)]
"""Batches of each rank in a step, and the steps that exchange rows; None is all of them."""


def documents(kind: str, mean: int, tokens: int, rng: np.random.Generator) -> Any:
    """Lengths of so many tokens together."""
    count = int(1.5 * tokens / mean) + 1000
    if kind == "constant":
        lengths = np.full(count, mean)
    elif kind == "zipf":
        lengths = rng.zipf(1.6, count).clip(max=LONGEST)
        lengths = lengths * mean / lengths.mean()
    else:
        lengths = rng.lognormal(np.log(mean) - 1.1**2 / 2, 1.1, count)
    lengths = lengths.clip(1, LONGEST).astype(np.int64)
    return lengths[: int(np.searchsorted(np.cumsum(lengths), tokens)) + 1]


def measured(
    costs: Any, ranks: int, micro: int, pool: int | None, seed: int
) -> tuple[float, float, float, float]:
    """Imbalance of sums and of micro-batches as the rows come and dealt: the latter two, and ns a row."""
    step = ranks * micro
    steps = len(costs) // step
    pool = steps if pool is None else min(pool, steps)
    dealt, seconds = np.empty(steps // pool * pool * step), 0.0
    for first in range(0, len(dealt), pool * step):
        own = costs[first : first + pool * step]
        columns = np.tile(np.arange(ranks), micro * pool)
        slots = Slots(np.repeat(np.arange(pool), step), columns, np.ones(len(own), np.int64))
        began = time.perf_counter()
        items = assign_items(whole_costs(own), slots, seed + first)
        seconds += time.perf_counter() - began
        dealt[first : first + pool * step] = own[items]
    return *imbalances(dealt, ranks, micro), seconds / len(dealt) * 1e9, seconds


def imbalances(costs: Any, ranks: int, micro: int) -> tuple[float, float]:
    """Of sums over steps, and of micro-batches."""
    steps = costs[: len(costs) // (ranks * micro) * ranks * micro].reshape(-1, micro, ranks)
    sums = steps.sum(axis=1)
    return sums.max(axis=1).sum() / sums.mean(axis=1).sum(), steps.max(axis=2).sum() / steps.mean(
        axis=2
    ).sum()


def simulate(rows: int, ranks_of: list[int], seed: int) -> None:
    names = "".join(f"k {micro}, pool {pool or 'all'}".rjust(18) for micro, pool in STEPS)
    print(
        f"{'documents, capacity, linear, ranks':40s}{'shuffled, k 8':>16s}{names}{'budget':>9s}{'ns':>6s}{'plan':>6s}"
    )
    for kind, mean, capacity, linear in CASES:
        rng = np.random.default_rng(seed)
        lengths = documents(kind, mean, rows * capacity, rng)
        began = time.perf_counter()
        plan = kernels.plan_packing(lengths, capacity)
        planning = time.perf_counter() - began
        balance = Balance(group=1, linear=linear)
        costs = kernels.segment_reduce("sum", balance.costs_of(plan.piece_lengths), plan.pieces)
        costs = costs[rng.permutation(len(costs))]
        budget = budgeted(lengths, capacity, linear, rng) if linear else None
        for ranks in ranks_of:
            plain = imbalances(costs, ranks, 8)
            cells: list[str] = []
            taken = total = 0.0
            for micro, pool in STEPS:
                if len(costs) < ranks * micro:
                    cells.append("–")
                    continue
                sums, micros, each, seconds = measured(costs, ranks, micro, pool, seed)
                taken, total = max(taken, each), max(total, seconds)
                cells.append(f"{sums:.4f} / {micros:.4f}" if micro > 1 else f"{sums:.4f}")
            by_cost = "–" if budget is None else f"{imbalances(budget, ranks, 1)[0]:.4f}"
            name = f"{kind} {mean}, {capacity}, {linear}, {ranks}"
            shown = "".join(f"{cell:>18s}" for cell in cells)
            ratio = 1 + total / planning
            print(f"{name:40s}{plain[0]:>8.3f} / {plain[1]:.3f}{shown}{by_cost:>9s}{taken:6.0f}{ratio:6.2f}")


def budgeted(lengths: Any, capacity: int, linear: int, rng: np.random.Generator) -> Any:
    """The costs of batches that are packed by cost."""
    pieces = np.concatenate([np.full(int((lengths // capacity).sum()), capacity), lengths % capacity])
    pieces = pieces[pieces > 0]
    costs = pieces * (pieces + linear)
    plan = kernels.plan_packing(costs, capacity * (capacity + linear))
    found = kernels.segment_reduce("sum", plan.piece_lengths, plan.pieces)
    return found[rng.permutation(len(found))].astype(np.float64)


def wait(steps: int) -> None:
    """Two ranks that train: seconds a step, and what the faster one waits."""
    from torch import multiprocessing

    multiprocessing.spawn(_train, args=(2, steps), nprocs=2)  # type: ignore[attr-defined, no-untyped-call]


def _train(rank: int, ranks: int, steps: int) -> None:
    import pyarrow as pa
    import torch
    import torch.distributed as dist

    import seqflow as sf

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29533"}
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    lengths = documents("log-normal", 600, 8 * (steps + 4) * ranks * 2048, rng)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    table = pa.table(
        {"tokens": pa.ListArray.from_arrays(ends, rng.integers(0, 256, int(ends[-1])).astype(np.int32))}
    )
    model = torch.nn.ModuleDict(
        {
            "embed": torch.nn.Embedding(256, 64),
            "mix": torch.nn.Linear(64, 192),
            "head": torch.nn.Linear(64, 256),
        }
    )

    def loss_of(batch: dict[str, Any]) -> Any:
        total = torch.zeros(())
        flat = batch["tokens"].flatten()
        for start, stop in zip(
            batch["cu_seqlens"][:-1].tolist(), batch["cu_seqlens"][1:].tolist(), strict=True
        ):
            x = model["embed"](flat[start:stop])
            q, k, v = model["mix"](x).split(64, dim=1)
            y = torch.nn.functional.scaled_dot_product_attention(
                q[None, None], k[None, None], v[None, None], is_causal=True
            )
            logits = model["head"](y[0, 0])
            total = total + torch.nn.functional.cross_entropy(
                logits[:-1], flat[start + 1 : stop].long(), reduction="sum"
            )
        return total / flat.numel()

    for name, balance in (("shuffled", None), ("dealt", sf.Balance(group=ranks, steps_of=4, linear=300))):
        plan = sf.Packed(8192, ("tokens",), rows=1, balance=balance)
        loader = sf.Loader(table, batch=plan, shuffle=True, rank=rank, world_size=ranks, threads=0)
        busy, waited, counted = 0.0, 0.0, 0
        for number, batch in enumerate(loader.to("torch", cu_seqlens=True)):
            began = time.perf_counter()
            loss_of(batch).backward()
            busy += time.perf_counter() - began
            if number % 4 == 3:
                ready = time.perf_counter()
                dist.barrier()
                waited += time.perf_counter() - ready
                model.zero_grad()
                counted += 1
                if counted == steps:
                    break
        times: list[Any] = [None] * ranks
        dist.all_gather_object(times, (busy, waited))
        if rank == 0:
            busiest, longest = max(one[0] for one in times), max(one[1] for one in times)
            step = 1e3 * (busy + waited) / counted
            print(f"{name:10s} {step:7.1f} ms a step, busiest rank {1e3 * busiest / counted:7.1f}, "
                  f"the other waits {1e3 * longest / counted:6.1f}")  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000, help="packed rows")
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64, 512])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wait", action="store_true", help="train on two ranks instead")
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    if options.wait:
        wait(options.steps)
    else:
        simulate(options.rows, options.ranks, options.seed)
