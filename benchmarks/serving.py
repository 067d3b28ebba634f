"""Batches of servers against the same batches in process, and several servers against one.

    python benchmarks/serving.py

The servers are processes of this machine. The first two rows have batches of 64 KiB and of 1 MiB without a net: what
the service itself costs. The others have a net that sleeps for 5 ms, as one that waits for another machine does.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf

FILES, ROWS, CAPACITY = 4, 30_000, 2048


def sleeps(batch: Any) -> Any:
    time.sleep(0.005)
    return batch


def loader_of(folder: Path, rows: int, net: str) -> sf.Loader:
    return sf.Loader(
        str(folder / "*.parquet"), sf.Packed(CAPACITY, ("tokens",), rows=rows), columns=["tokens"], window="4 MiB",
        shuffle=sf.Shuffle(3), index=folder / f"{rows}.arrow", net=sleeps if net else None, version=1, threads=1,
        streams=4 if net else 1, rank=0, world_size=1,
    )  # fmt: skip


def write_files(folder: Path) -> None:
    for number in range(FILES):
        rng = np.random.default_rng(number)
        lengths = np.minimum(rng.lognormal(5.5, 1, ROWS).astype(np.int64) + 1, CAPACITY)
        values = pa.array(rng.integers(0, 50_000, lengths.sum()).astype(np.int32))
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        table = pa.table({"tokens": pa.ListArray.from_arrays(offsets, values)})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=2500)


def milliseconds(batches: Any, most: int) -> float:
    """Return the time of a batch, over the first `most`."""
    started, count = time.perf_counter(), 0
    for _ in batches:
        count += 1
        if count == most:
            break
    return (time.perf_counter() - started) / count * 1e3


def served(folder: Path, rows: int, net: str, servers: int, most: int) -> float:
    command = [sys.executable, __file__, str(folder), str(rows), net]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(servers)]
    try:
        urls = [process.stdout.readline().strip() for process in processes if process.stdout]
        return milliseconds(sf.served(urls), most)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        for rows, most in ((8, 2800), (128, 190)):
            loader = loader_of(folder, rows, "")
            loader.lengths_index()
            inside, outside = milliseconds(loader, most), served(folder, rows, "", 1, most)
            size = rows * CAPACITY * 4 >> 10
            print(
                f"{size:,} KiB: in process {inside:.2f} ms a batch, one server {outside:.2f} ({inside / outside:.2f})"
            )
        times = {servers: served(folder, 8, "sleeps", servers, 400) for servers in (1, 2, 4)}
        for servers, found in times.items():
            print(
                f"a net of 5 ms: {servers} servers {found:.2f} ms a batch ({times[1] / found:.2f} times one)"
            )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server = sf.serve(loader_of(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]), port=0)
        print(server.url, flush=True)
        server.wait()
    main()
