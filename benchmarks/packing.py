"""Packing and length buckets on lists of int32 of log-normal length (mean 128), beside plain batches and TRL.

    python benchmarks/packing.py [--rows 1000000] [--times 5]

Prints the seconds to plan and to make all batches of packed rows of 2,048 with ids and positions from memory, and
their fill; the seconds to plan four times as many rows; TRL's `pack_dataset` where TRL is installed; then, of the
second epoch of a shuffled loader, rows per second and padding waste with and without length buckets. What is compared
runs in turn; the least seconds count.
"""

import argparse
import time
from importlib.util import find_spec

import numpy as np
import pyarrow as pa

import seqflow as sf
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import from_arrow
from seqflow.record.batch_memory import BatchMemory

CAPACITY = 2048


def table_of(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(np.log(128) - 0.32, 0.8, rows), 1, CAPACITY).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = rng.integers(0, 50_000, offsets[-1]).astype(np.int32)
    return pa.table({"tokens": pa.ListArray.from_arrays(offsets, values)})


def plan(rows: WindowRows):
    started = time.perf_counter()
    batches = sf.Packed(CAPACITY).of_window(rows, "tokens.lengths")
    return batches, time.perf_counter() - started


def make(batches) -> float:
    """The seconds to make all batches, each in the memory of the one before."""
    memory = BatchMemory()
    started = time.perf_counter()
    for number in range(len(batches)):
        batches.make(number, memory)
    return time.perf_counter() - started


def packing(rows: int, times: int) -> None:
    window = WindowRows((from_arrow(table_of(rows)),))
    four = WindowRows((from_arrow(table_of(4 * rows, 1)),))
    found = []
    for _ in range(times):
        batches, planning = plan(window)
        making = make(batches)
        found.append((planning + making, planning, making, plan(four)[1]))
    sizes = [batches.size(number) for number in range(len(batches))]
    fill = sum(size.tokens for size in sizes) / sum(size.cells for size in sizes)
    total, planning, making, larger = map(min, zip(*found, strict=True))
    print(
        f"packing {rows:,} rows          {total:.3f} s  (plan {planning:.3f}, make {making:.3f})  fill {fill:.4%}"
    )
    print(f"planning {4 * rows:,} rows       {larger:.3f} s  {larger / planning:.1f} times as long")


def trl(rows: int) -> None:
    from datasets import Dataset
    from trl import pack_dataset

    data = Dataset(table_of(rows).rename_columns(["input_ids"]))
    started = time.perf_counter()
    packed = pack_dataset(data, seq_length=CAPACITY, strategy="bfd")
    seconds = time.perf_counter() - started
    tokens = sum(len(part.values) for part in data.data["input_ids"].chunks)
    fill = tokens / (len(packed) * CAPACITY)
    print(f"TRL packing {rows:,} rows      {seconds:.3f} s  fill {fill:.4%}")


def second_epoch(loader: sf.Loader) -> float:
    """The seconds of a second epoch, every batch of which is padded and summed."""
    for _ in loader:
        pass
    started = time.perf_counter()
    for batch in loader:
        batch["tokens"].sum()
    return time.perf_counter() - started


def buckets(rows: int, times: int) -> None:
    table = table_of(rows // 4)
    options = {"shuffle": True, "window": "4 GiB", "reuse": True, "pad": {"tokens": sf.Pad(0, dtype="int64")}}
    plans = {
        "batches of 256": sf.Rows(256),
        "in 16 buckets": sf.Buckets(16, sf.Rows(256)),
        "padded budget": sf.TokenBudget(65_536, padded=True),
        "budget, 16 buckets": sf.Buckets(16, sf.TokenBudget(65_536, padded=True)),
    }
    loaders = {name: sf.Loader(table, batch=batch, **options) for name, batch in plans.items()}
    found = [{name: second_epoch(loader) for name, loader in loaders.items()} for _ in range(times)]
    least = {name: min(run[name] for run in found) for name in plans}
    for name, loader in loaders.items():
        rate, waste = table.num_rows / least[name], 1 - loader.stats().fill
        print(f"{name:22} {rate:12,.0f} rows/s  padding waste {waste:.1%}")
    for one, other in (("in 16 buckets", "batches of 256"), ("budget, 16 buckets", "padded budget")):
        print(f"{one} beside {other}: {least[other] / least[one]:.2f} times the rows/s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    packing(options.rows, options.times)
    if find_spec("trl") is not None:
        trl(options.rows)
    buckets(options.rows, options.times)


if __name__ == "__main__":
    main()
