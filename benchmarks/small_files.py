"""Thousands of small Parquet files, and of small row groups, beside pyarrow: finding them, reading them.

    python benchmarks/small_files.py [NAME …] [--rounds 3]

Files of ten rows lie flat in one folder, and in folders `lang=…/day=…`. CPU time, one thread of pyarrow. Opening and
listing the blocks is compared with a `pyarrow.dataset` that counts its rows, which reads all footers; reading with
`ParquetFile(path).read_row_group(0)` of each file. One file has as many row groups, which an epoch reads together.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import seqflow as sf
from comparison import Row, main

FILES, ROWS = 2_000, 10


def write_files(folder: Path, files: int, rows: int) -> list[str]:
    """Files of a few rows; their paths."""
    generator = np.random.default_rng(0)
    paths = []
    for number in range(files):
        ids = [generator.integers(0, 100, size).tolist() for size in generator.integers(0, 10, rows)]
        columns = {
            "id": np.arange(rows),
            "ids": ids,
            "name": [f"{number}-{row}" for row in range(rows)],
        }
        place = (
            folder / f"lang={'abcde'[number % 5]}" / f"day={number % 50}" if folder.name == "hive" else folder
        )
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), place / f"{number:06}.parquet")
        paths.append(str(place / f"{number:06}.parquet"))
    return sorted(paths)


def small_files() -> Iterator[Row]:
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with tempfile.TemporaryDirectory() as name:
        for layout in ("flat", "hive"):
            folder = str(Path(name) / layout)
            paths = write_files(Path(folder), FILES, ROWS)
            provider = sf.open(folder)
            blocks = list(provider.blocks())
            partitioning = "hive" if layout == "hive" else None
            settings: dict[str, Any] = {
                "clock": time.process_time,
                "unit": "CPU ms",
                "rounds": 3,
                "agree": same_rows,
            }
            yield Row(
                f"open and list, {layout}",
                lambda folder=folder: sum(block.num_rows for block in sf.open(folder).blocks()),
                {
                    "pyarrow: footers": lambda folder=folder, partitioning=partitioning: ds.dataset(
                        folder, partitioning=partitioning
                    ).count_rows()
                },
                why="each block is also described, so that a run can go on after it was killed",
                **settings,
            )
            yield Row(
                f"read, {layout}",
                lambda blocks=blocks, provider=provider: sum(
                    provider.read(block).num_rows for block in blocks
                ),
                {
                    "pyarrow: each file": lambda paths=paths: sum(
                        pq.ParquetFile(path).read_row_group(0, use_threads=False).num_rows for path in paths
                    )
                },
                why="the same reader reads; columns of folders and checks come on top",
                **settings,
            )


def row_groups() -> Iterator[Row]:
    """One file of as many row groups: read one by one, and by an epoch of a loader."""
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as name:
        path, rows = f"{name}/groups.parquet", FILES * ROWS
        lists = pa.array([list(range(row % 10)) for row in range(rows)])
        texts = [str(row) for row in range(rows)]
        columns = {"id": np.arange(rows), "ids": lists, "name": texts}
        pq.write_table(pa.table(columns), path, row_group_size=ROWS)
        provider, file = sf.open(path), pq.ParquetFile(path)

        def theirs() -> int:
            groups = range(file.num_row_groups)
            return sum(file.read_row_group(group, use_threads=False).num_rows for group in groups)

        def epoch(**order: Any) -> int:
            return sum(batch.num_rows for batch in sf.Loader(provider, batch=256, threads=0, **order))

        calls = {
            "each row group": lambda: sum(provider.read(block).num_rows for block in provider.blocks()),
            "an epoch of row groups": epoch,
            "a shuffled epoch of row groups": lambda: epoch(shuffle=True),
        }
        for work, ours in calls.items():
            yield Row(
                work, ours, {"pyarrow: each row group": theirs}, clock=time.process_time, unit="CPU ms", rounds=3,
                agree=same_rows, why="the same reader reads; an epoch also makes batches",
            )  # fmt: skip


def same_rows(ours: int, theirs: int) -> None:
    assert ours == theirs


FAMILIES = [small_files, row_groups]

if __name__ == "__main__":
    main(FAMILIES)
