"""A loader's first job beside bare decoding: 1,000,000 lists of int32 through `run`, padded batch by batch.

    python benchmarks/pad_lists.py [--rows 1000000] [--times 5]

One process, both measured in turn: `pq.read_table(columns=["tokens"], use_threads=True)`, and a job with batches of
256 padded to their longest and no output. Prints rows/s of each (the best of all times) and their ratio.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from seqflow.job import Job, run

JOB = {
    "batch": {"kind": "rows", "n": 256},
    "net": {"net": "x, mask = pad(tokens.values, tokens.lengths)\nreturn x, mask"},
    "output": {"kind": "none"},
}


def generate(path: Path, rows: int) -> None:
    """Lists of log-normal length, mean 128."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(128) - 0.32, 0.8, rows), 1, 2048).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32)
    tokens = rng.integers(0, 50_000, int(offsets[-1]), dtype=np.int32)
    column = pa.ListArray.from_arrays(pa.array(offsets), pa.array(tokens))
    pq.write_table(pa.table({"tokens": column}), path, row_group_size=16_384)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lists.parquet"
        generate(path, options.rows)
        job = Job.from_dict({**JOB, "source": {"paths": [str(path)], "columns": ["tokens"]}})
        read, ours = [], []
        for _ in range(options.times):
            started = time.perf_counter()
            pq.read_table(path, columns=["tokens"], use_threads=True)
            read.append(time.perf_counter() - started)
            started = time.perf_counter()
            report = run(job)
            ours.append(time.perf_counter() - started)
            assert report.rows == options.rows
        print(f"pq.read_table   {options.rows / min(read):12,.0f} rows/s")
        print(f"seqflow run     {options.rows / min(ours):12,.0f} rows/s")
        print(f"ratio           {min(read) / min(ours):.2f}")


if __name__ == "__main__":
    main()
