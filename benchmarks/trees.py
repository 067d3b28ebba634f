"""Packed trees of rows that begin alike, beside plain rows: groups of 2, 8 and 16 answers to one prompt.

    python benchmarks/trees.py [--tokens 4000000] [--times 5]

Prints for each kind of group how many tokens of rows there are for each that is packed, and the fill; the seconds to
plan and to make all batches from memory; then, where torch is installed, the seconds of a training step, forward and
backward, of a model of two layers (width 128, four heads of 32 on two of keys, 1,000 words) on one batch of each.
What is compared runs in turn; the least seconds count.
"""

import argparse
import time
from importlib.util import find_spec

import numpy as np
import pyarrow as pa

import seqflow as sf
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import from_arrow

GROUPS = ((2, 512, 256), (8, 512, 128), (16, 2048, 512))
"""Answers to a prompt, and the mean lengths of prompts and answers."""
CAPACITY, WORDS = 8192, 1000
PLANS = {
    "plain": sf.Packed(CAPACITY, ["tokens"], rows=1),
    "trees": sf.Packed(CAPACITY, ["tokens"], rows=1, share="prefix"),
}


def table_of(answers: int, prompt: int, answer: int, tokens: int) -> pa.Table:
    rng, rows = np.random.default_rng(0), []
    for _ in range(max(1, tokens // (answers * (prompt + answer)))):
        begin = rng.integers(0, WORDS, rng.integers(prompt // 2, prompt * 3 // 2))
        ends = (rng.integers(0, WORDS, rng.integers(answer // 2, answer * 3 // 2)) for _ in range(answers))
        rows += [np.append(begin, end).astype(np.int32) for end in ends]
    return pa.table({"tokens": rows})


def packing(table: pa.Table, times: int) -> None:
    window = WindowRows((from_arrow(table),))
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PLANS}
    for _ in range(times):
        for name, plan in PLANS.items():
            started = time.perf_counter()
            batches = plan.of_window(window, "tokens.lengths")
            planned = time.perf_counter()
            for number in range(len(batches)):
                batches.make(number)
            found[name].append((planned - started, time.perf_counter() - planned))
            _, tokens, cells, _, shared = batches.sizes.sum(axis=0).tolist()
            if len(found[name]) == 1:
                of_each, fill = tokens / (tokens - shared), (tokens - shared) / cells
                print(
                    f"  {name}: {len(batches):,} packed rows, fill {fill:.1%}, tokens {of_each:.2f} times fewer"
                )
    for name, runs in found.items():
        plan_seconds, make_seconds = map(min, zip(*runs, strict=True))
        print(f"  {name}: plan {plan_seconds:.3f} s, make {make_seconds:.3f} s")


def steps(table: pa.Table, times: int) -> None:
    """Print the seconds of a step on one packed row of trees, and on the same rows one after the other."""
    import torch

    from seqflow.torch import ops

    torch.manual_seed(0)
    words = torch.nn.Embedding(WORDS, 128)
    sizes = {"qkv": (128, 256), "out": (128, 128), "up": (128, 512), "down": (512, 128)}
    layers = torch.nn.ModuleList(
        torch.nn.ModuleDict({name: torch.nn.Linear(*size) for name, size in sizes.items()}) for _ in range(2)
    )

    def step(tokens, positions, attend, places, before):
        x = words(tokens)
        for one in layers:
            q, k, v = (part.unflatten(1, (-1, 32)) for part in one.qkv(x).split([128, 64, 64], 1))
            x = x + one.out(attend(ops.rotary(q, positions), ops.rotary(k, positions), v).flatten(1))
            x = x + one.down(torch.relu(one.up(x)))
        scores = (x @ words.weight.T).log_softmax(1)
        inner = before >= 0
        loss = -scores[before[inner], tokens[places[inner]].long()].mean()
        loss.backward()
        return loss.item()

    batch = next(iter(sf.Loader(table, batch=PLANS["trees"]).to("torch")))
    tokens, positions, previous = (batch[name].flatten() for name in ("tokens", "position_ids", "previous"))
    positions, places, lengths = positions.long(), batch["rows.values"], batch["rows.lengths"]
    of_segments = batch["node_lengths"]
    keys, path_lengths, *_ = ops.tree_paths(batch["parents"], of_segments)

    def of_trees(q, k, v):
        k, v = ops.gather(k, keys), ops.gather(v, keys)
        return ops.attention_within(q, of_segments, k, v, path_lengths, after=0, align="end").out

    def of_rows(q, k, v):
        return ops.attention_within(q, lengths, k, v, after=0).out

    every = torch.arange(len(places))
    depths = positions[places]
    runs = {
        "plain": lambda: step(
            tokens[places], depths, of_rows, every, torch.where(depths == 0, -1, every - 1)
        ),
        "trees": lambda: step(tokens, positions, of_trees, places, previous[places]),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    losses = {}
    for _ in range(times):
        for name, run in runs.items():
            started = time.perf_counter()
            losses[name] = run()
            seconds[name].append(time.perf_counter() - started)
    plain, trees = (min(seconds[name]) for name in runs)
    np.testing.assert_allclose(losses["trees"], losses["plain"], rtol=1e-4)
    print(
        f"  a step of {len(places):,} tokens of rows, {len(tokens):,} packed: plain {plain:.2f} s, "
        f"trees {trees:.2f} s, {trees / plain:.2f} of plain"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=4_000_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    for answers, prompt, answer in GROUPS:
        print(f"groups of {answers}: prompts of {prompt}, answers of {answer}")
        table = table_of(answers, prompt, answer, options.tokens)
        packing(table, options.times)
        if find_spec("torch") is not None:
            steps(table, options.times)


if __name__ == "__main__":
    main()
