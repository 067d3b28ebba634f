"""What the checks of data from outside cost: their share of an epoch of a loader.

    python benchmarks/validation.py [--rows 200000] [--times 7]

Rows of lists of about 100 tokens and a short text, as a Parquet file and as an Arrow file that is mapped; batches of
256 rows, padded. The least of each counts.
"""

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from seqflow.record.validation import validated

CHECKED = ("providers.formats.arrow", "providers.memory.tables", "providers.memory.streams", "record.lists")
NET = "x, mask = pad(tokens.values, tokens.lengths)\nreturn x, mask, text.lengths"


def write(folder: Path, rows: int) -> list[Path]:
    """One file of each kind."""
    random = np.random.default_rng(0)
    lengths = random.integers(0, 200, rows)
    offsets = np.r_[0, np.cumsum(lengths)].astype(np.int32)
    tokens = pa.ListArray.from_arrays(offsets, random.integers(0, 50_000, offsets[-1], np.int32))
    table = pa.table({"tokens": tokens, "text": [f"row {row} é" for row in range(rows)]})
    pq.write_table(table, folder / "x.parquet", row_group_size=10_000)
    with pa.ipc.new_file(folder / "x.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=10_000)
    return [folder / "x.parquet", folder / "x.arrow"]


def epoch(path: Path) -> tuple[float, float]:
    """The seconds of an epoch, and those of them that went into checks."""
    spent: list[float] = []

    def timed(data: Any, place: str) -> Any:
        started = time.perf_counter()
        found = validated(data, place)
        spent.append(time.perf_counter() - started)
        return found

    with ExitStack() as patches:
        for module in CHECKED:
            patches.enter_context(patch(f"seqflow.{module}.validated", timed))
        started = time.perf_counter()
        for _ in sf.Loader(path, batch=sf.Rows(256), net=NET):
            pass
        return time.perf_counter() - started, sum(spent)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--times", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for path in write(Path(folder), options.rows):
            runs = [epoch(path) for _ in range(options.times)]
            whole, checks = (min(run[i] for run in runs) for i in range(2))
            print(
                f"{path.suffix[1:]:8} {1e3 * whole:7.1f} ms, {1e3 * checks:5.2f} ms of them for checks: "
                f"{checks / whole:.1%}"
            )


if __name__ == "__main__":
    main()
