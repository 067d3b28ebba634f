"""A job with Ray's workers beside Ray Data: read Parquet, pack by best fit into rows of 2,048 tokens, write Parquet.

    python benchmarks/ray_data.py [--tokens 100] [--pairs 3] [--workers 2] [--sizes 1 3]

Ray Data's half is `read_parquet → map_batches → write_parquet` with a best-fit packer in NumPy and `bisect`. Both
have as many CPUs, workers at niceness 0 and a Ray of their own, whose start is not counted. They run in turn, at the
first size so many times, at the others once; medians count. Outputs are compared: rows, sums of tokens and positions.
CPU seconds and the peak of memory (PSS: shared pages are divided among those who share them) are those of all
processes of a run. Needs Linux and `pip install '.[ray]'`.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left, insort
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

CAPACITY, MOST = 2048, 1024
"""Tokens of a row; longer documents are truncated to so many."""
ROWS = 4096
"""Documents of a row group, which is a window of one and a batch of the other: they pack the same documents."""
GROUPS = 24
"""Row groups of a file."""
COLUMNS = ["tokens", "position_ids", "segment_ids"]
JOB = """
[source]
paths = "in/*.parquet"
columns = ["ids"]
[order]
window = "3 MiB"
[prepare]
net = '''
tokens.values, tokens.lengths = truncate(ids.values, ids.lengths, max_length=1024)
return tokens.values, tokens.lengths
'''
[batch]
kind = "packed"
capacity = 2048
[output]
path = "ours/"
kind = "parquet"
compression = "snappy"
part_bytes = "17 MiB"
columns = ["tokens", "position_ids", "segment_ids"]
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=float, default=100, help="millions of tokens of the first size")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 3], help="multiples of the first size")
    parser.add_argument("--half", choices=HALVES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.half:
        run_half(options.half, options.workers)
        return
    for place, size in enumerate(options.sizes):
        with tempfile.TemporaryDirectory() as folder:
            tokens = write_input(Path(folder), options.tokens * size * 1e6)
            print(f"{tokens / 1e6:.0f} M tokens; load {os.getloadavg()[0]:.1f}", flush=True)
            compare(Path(folder), options.pairs if place == 0 else 1, options.workers)


def write_input(folder: Path, tokens: float) -> int:
    """Files of documents of 1 to some thousand tokens, about 130 on average; how many tokens they have."""
    generator = np.random.default_rng(0)
    (folder / "in").mkdir()
    (folder / "job.toml").write_text(JOB)
    written = 0
    while written < tokens:
        lengths = np.clip(generator.lognormal(4.3, 1.1, ROWS * GROUPS), 1, 8000).astype(np.int32)
        values = generator.integers(1, 32_000, lengths.sum(), dtype=np.int32)
        offsets = np.append(np.int32(0), np.cumsum(lengths, dtype=np.int32))
        table = pa.table({"ids": pa.ListArray.from_arrays(offsets, values)})
        path = folder / "in" / f"{written:012}.parquet"
        pq.write_table(table, path, row_group_size=ROWS, use_dictionary=False)
        written += len(values)
    return written


def compare(folder: Path, pairs: int, workers: int) -> None:
    """Run both halves in turn, and print what they took."""
    found = defaultdict(list)
    for pair in range(pairs):
        for half in sorted(HALVES, reverse=pair % 2 == 1):
            shutil.rmtree(folder / half, ignore_errors=True)
            found[half].append(measure(half, folder, workers))
            print(
                f"  {half:<8}" + "  ".join(f"{name} {value:.2f}" for name, value in found[half][-1].items())
            )
        outputs = [summary(folder / half) for half in HALVES]
        assert outputs[0] == outputs[1], f"the outputs differ: {outputs}"
    print(f"  rows, sum of tokens, sum of positions: {outputs[0]}")
    for name in found["ours"][0]:
        ours, theirs = ([one[name] for one in found[half]] for half in HALVES)
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        print(
            f"  {name:<14} {statistics.median(ours):8.2f} {statistics.median(theirs):8.2f}   ratio {ratio:.2f}"
        )


def summary(folder: Path) -> tuple[int, int, int]:
    """Rows, the sum of tokens, and that of positions."""
    rows = tokens = positions = 0
    for batch in ds.dataset(folder, format="parquet", exclude_invalid_files=True).to_batches(
        columns=COLUMNS[:2]
    ):
        rows += batch.num_rows
        tokens += pc.sum(batch["tokens"].flatten()).as_py() or 0
        positions += pc.sum(batch["position_ids"].flatten()).as_py() or 0
    return rows, tokens, positions


# One half, in a process of its own


def run_half(half: str, workers: int) -> None:
    """Start Ray, and run: lines on stdout say when the work begins and ends."""
    import ray

    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # paths of sockets are short
    ray.init(
        address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False,
        logging_level="ERROR", _temp_dir=folder,
    )  # fmt: skip
    try:
        work = HALVES[half]()
        print("begin", flush=True)
        work(workers)
        print("end", flush=True)
        sys.stdin.readline()
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def ours() -> object:
    from dataclasses import replace

    from seqflow.job import Job, run

    def work(workers: int) -> None:
        job = Job.read("job.toml")
        run(replace(job, engine=replace(job.engine, kind="ray", workers=workers)))

    return work


def ray_data() -> object:
    import logging

    import ray.data

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def work(workers: int) -> None:
        files = sorted(str(path) for path in Path("in").absolute().iterdir())
        dataset = ray.data.read_parquet(files).select_columns(["ids"])
        packed = dataset.map_batches(pack, batch_format="pyarrow", batch_size=ROWS, zero_copy_batch=True)
        packed.write_parquet(str(Path("ray_data").absolute()))

    return work


HALVES = {"ours": ours, "ray_data": ray_data}


def pack(table: pa.Table) -> pa.Table:
    """Documents, truncated, in rows of CAPACITY tokens: the longest first, each where it leaves the least room."""
    documents = table["ids"].combine_chunks()
    offsets, values = documents.offsets.to_numpy(), documents.values.to_numpy()
    lengths = np.minimum(np.diff(offsets), MOST)
    starts, segments, rows = best_fit(lengths)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    target = np.repeat(starts, lengths) + within
    columns = []
    for flat in (values[np.repeat(offsets[:-1], lengths) + within], within, np.repeat(segments, lengths)):
        packed = np.zeros(rows * CAPACITY, np.int32)
        packed[target] = flat
        columns.append(pa.FixedSizeListArray.from_arrays(packed, CAPACITY))
    return pa.table(columns, names=COLUMNS)


def best_fit(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Where each document starts among the tokens of all rows, its number in its row, and how many rows there are."""
    starts, segments = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int32)
    rooms: list[int] = []  # sorted, each once
    rows_of: dict[int, list[int]] = {}
    held: list[int] = []
    for document in np.argsort(-lengths, kind="stable").tolist():
        size = int(lengths[document])
        place = bisect_left(rooms, size)
        if place == len(rooms):
            room, row = CAPACITY, len(held)
            held.append(0)
        else:
            room = rooms[place]
            row = rows_of[room].pop()
            if not rows_of[room]:
                del rooms[place], rows_of[room]
        held[row] += 1
        starts[document], segments[document] = (row + 1) * CAPACITY - room, held[row]
        if left := room - size:
            if left not in rows_of:
                insort(rooms, left)
                rows_of[left] = []
            rows_of[left].append(row)
    return starts, segments, len(held)


# Measuring a tree of processes


def measure(half: str, folder: Path, workers: int) -> dict[str, float]:
    """Wall and CPU seconds of the work of a half, and the most memory that its processes had, in GB."""
    command = [sys.executable, os.path.abspath(__file__), "--half", half, "--workers", str(workers)]
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0", "RAY_worker_niceness": "0"}
    process = subprocess.Popen(
        command, cwd=folder, env=os.environ | quiet, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    tree = Tree(process.pid)
    times = {}
    try:
        for line in process.stdout:
            if line.strip() in ("begin", "end"):
                times[line.strip()] = time.perf_counter(), tree.cpu()
            if line.strip() == "end":
                break
    finally:
        tree.stop()
        process.communicate("\n")
    assert "end" in times, f"{half} has failed"
    (began, before), (ended, after) = times["begin"], times["end"]
    return {"wall s": ended - began, "CPU s": after - before, "peak PSS GB": tree.peak / 1e9}


class Tree:
    """A process and all that it starts, looked at again and again by a thread."""

    def __init__(self, root: int) -> None:
        self._root, self.peak = root, 0
        self._seconds: dict[int, float] = {}
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def cpu(self) -> float:
        """CPU seconds of all processes so far, those that have ended with what they were last seen to have."""
        with self._lock:
            self._look()
            return sum(self._seconds.values())

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(0.5):
            with self._lock:
                self.peak = max(self.peak, sum(map(pss, self._look())))

    def _look(self) -> list[int]:
        """The processes of the tree that run, whose seconds are noted."""
        parents, seconds = {}, {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(path.parent.name)
            parents[pid] = int(fields[1])
            seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        found = {self._root} | (self._seconds.keys() & parents.keys())
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        self._seconds |= {pid: seconds[pid] for pid in found if pid in seconds}
        return list(found)


def pss(pid: int) -> int:
    """The proportional set size of a process in bytes."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")), 0)


if __name__ == "__main__":
    main()
