"""What a plan costs: microseconds and bytes a window and a file, from a hundred windows to a million.

    python benchmarks/plan.py [--windows 1000000] [--files 2000]

A window has 4 blocks, a file 26. Planning is everything between the list of blocks and the windows of an epoch, in
order and shuffled, with the rows of each window; sending is the description of a part of one window as a task. Files
are real ones, of 26 row groups and 2 columns: opening reads each footer, listing finds the blocks. Bytes are those
that stay, as tracemalloc counts them, NumPy's included; those of a file are without its blocks', and without the
footers that are kept, which are 64 MiB at most.
"""

import argparse
import gc
import pickle
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from seqflow.loader.order.windows import Slices, Windows
from seqflow.loader.plans.plan import permutation
from seqflow.providers.block_columns import BlockColumns

BLOCKS, GROUPS = 4, 26


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=2000)
    options = parser.parse_args()
    print(f"{'windows':>10} {'order':>9} {'us to plan':>11} {'bytes':>6} {'us to send':>11}")
    count = 100
    while count <= options.windows:
        for shuffled in (False, True):
            print_plan(count, shuffled)
        count *= 10
    print_files(options.files)


def blocks_of(windows: int) -> BlockColumns:
    """Blocks of 16 MiB in files that nobody opens."""
    blocks = windows * BLOCKS
    rows = np.full(GROUPS, 100_000)
    files = -(-blocks // GROUPS)
    return BlockColumns.of_files((f"/data/part-{n:07}.parquet", rows, rows * 160) for n in range(files))


def print_plan(count: int, shuffled: bool) -> None:
    blocks = blocks_of(count)
    window = int(blocks.nbytes[0]) * BLOCKS
    gc.collect()
    tracemalloc.start()
    order = permutation(len(blocks), 7) if shuffled else None
    windows = Windows.cut(Slices.of(blocks, window, sliced=not shuffled), order, window)
    rows = windows.rows
    kept = tracemalloc.get_traced_memory()[0] + bytes_of(blocks)
    tracemalloc.stop()
    assert rows is not None
    seconds = min(timed(blocks, window, shuffled) for _ in range(3))
    some = range(0, len(windows), max(1, len(windows) // 1000))
    started = time.process_time()
    for position in some:
        pickle.dumps(windows[position])
    sending = (time.process_time() - started) / len(some)
    plan, send, name = seconds / len(windows) * 1e6, sending * 1e6, "shuffled" if shuffled else "as it is"
    print(f"{len(windows):>10,} {name:>9} {plan:>11.2f} {kept / len(windows):>6.0f} {send:>11.1f}")


def bytes_of(blocks: BlockColumns) -> int:
    """Bytes of the columns."""
    return sum(one.nbytes for one in (blocks.file, blocks.indices, blocks.rows, blocks.nbytes))


def timed(blocks: BlockColumns, window: int, shuffled: bool) -> float:
    started = time.process_time()
    order = permutation(len(blocks), 7) if shuffled else None
    windows = Windows.cut(Slices.of(blocks, window, sliced=not shuffled), order, window)
    windows.rows  # noqa: B018 (it is computed)
    return time.process_time() - started


def print_files(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table({"tokens": [[1, 2, 3]] * GROUPS * 10, "label": np.arange(GROUPS * 10)})
        first = Path(folder) / "part-00000.parquet"
        pq.write_table(table, first, row_group_size=10)
        for number in range(1, count):
            (Path(folder) / f"part-{number:05}.parquet").write_bytes(first.read_bytes())
        gc.collect()
        tracemalloc.start()
        source = sf.open(folder)
        loader = sf.Loader(source, batch=10, rank=0, world_size=1)
        loader.pipeline.listing.slices()
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - bytes_of(loader.pipeline.listing.slices().blocks)
        tracemalloc.stop()
        started = time.process_time()
        source = sf.open(folder)
        opened = time.process_time()
        loader = sf.Loader(source, batch=10, rank=0, world_size=1)
        loader.pipeline.listing.slices()
        listed = time.process_time()
    opening, listing = (opened - started) / count * 1e6, (listed - opened) / count * 1e6
    print(
        f"{count:,} files: {opening:.0f} us to open, {listing:.0f} us to list, {kept / count:.0f} bytes that stay"
    )


if __name__ == "__main__":
    main()
