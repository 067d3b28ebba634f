"""Thousands of small Parquet files beside pyarrow: finding them, reading them, and a loader's first batch.

    python benchmarks/small_files.py [--files 10000] [--rows 10] [--columns 3] [--times 3]

Files lie flat in one folder, and in folders `lang=…/day=…`. All cases are measured in turn, in one process and on one
thread of pyarrow; for each the least CPU time counts. Ratios: opening and listing the blocks to a `pyarrow.dataset`
that counts its rows, which reads all footers; reading to `ParquetFile(path).read_row_group(0)` of each file.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import seqflow as sf


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--columns", type=int, default=3, help="further columns are integers")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with tempfile.TemporaryDirectory() as folder:
        for layout in ("flat", "hive"):
            paths = write_files(Path(folder) / layout, options)
            compare(layout, str(Path(folder) / layout), paths, options.times)


def write_files(folder: Path, options: argparse.Namespace) -> list[str]:
    """Files of a few rows; their paths."""
    generator = np.random.default_rng(0)
    paths = []
    for number in range(options.files):
        ids = [generator.integers(0, 100, size).tolist() for size in generator.integers(0, 10, options.rows)]
        columns = {
            "id": np.arange(options.rows),
            "ids": ids,
            "name": [f"{number}-{row}" for row in range(options.rows)],
        }
        columns |= {f"n{extra}": np.arange(options.rows) for extra in range(options.columns - 3)}
        place = (
            folder / f"lang={'abcde'[number % 5]}" / f"day={number % 50}" if folder.name == "hive" else folder
        )
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), place / f"{number:06}.parquet")
        paths.append(str(place / f"{number:06}.parquet"))
    return sorted(paths)


def compare(layout: str, folder: str, paths: list[str], times: int) -> None:
    partitioning = "hive" if layout == "hive" else None
    provider = sf.open(folder)
    blocks = list(provider.blocks())
    cases: dict[str, Callable[[], object]] = {
        "pyarrow: footers": lambda: ds.dataset(folder, partitioning=partitioning).count_rows(),
        "seqflow: open, blocks": lambda: list(sf.open(folder).blocks()),
        "pyarrow: read": lambda: [
            pq.ParquetFile(path).read_row_group(0, use_threads=False) for path in paths
        ],
        "seqflow: read": lambda: [provider.read(block) for block in blocks],
        "seqflow: first batch": lambda: next(iter(sf.Loader(folder, batch=100))),
    }
    seconds = dict.fromkeys(cases, float("inf"))
    for _ in range(times):
        for name, case in cases.items():
            start = time.process_time()
            case()
            seconds[name] = min(seconds[name], time.process_time() - start)
    for name, found in seconds.items():
        peer = "pyarrow: footers" if name == "seqflow: open, blocks" else "pyarrow: read"
        beside = f"{found / seconds[peer]:8.2f}×" if name.startswith("seqflow") else ""
        print(f"{layout:6}{name:24}{found:8.2f} s{beside}", flush=True)


if __name__ == "__main__":
    main()
