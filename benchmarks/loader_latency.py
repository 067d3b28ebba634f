"""How long a loader takes to its first batch, to a batch it is resumed at, and to make tensors of one.

    python benchmarks/loader_latency.py [--times 7] [--threads 2] [--rows 512000]

Data are those of `loaders.py`, half of them: lists of int32 in eight files. The first batch and a resumed one, with
the files opened, are shown beside the time in which pyarrow reads the row groups of a window of 64 MiB. An epoch
has 1,000 batches; it is resumed at its last. The hand-over to PyTorch is that of small batches: 32 rows, ids, mask
and lengths.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from loaders import write_files

BATCHES = 1000
SMALL = 2000
"""Small batches of which tensors are made."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=512_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare_windows(write_files(Path(folder), options.rows), options.rows, options.times, options.threads)
    compare_tensors(options.times)


def compare_windows(paths: list[str], rows: int, times: int, threads: int) -> None:
    def loader() -> sf.Loader:
        return sf.Loader(
            paths, batch=rows // BATCHES, shuffle=True, threads=threads,
            pad={"tokens": sf.Pad(0, dtype="int64")},
        )  # fmt: skip

    whole = loader()
    states = []
    for _ in whole:
        states.append(whole.state_dict())
    assert len(states) == BATCHES
    window = whole.recipe.windows(whole.recipe.planned_slices(), 0)[0]

    def read() -> None:
        for part in window.slices:
            with pq.ParquetFile(part.block.origin, memory_map=True) as file:
                file.read_row_group(part.block.index, use_threads=False)

    def begin() -> object:
        batches = iter(loader())
        next(batches)
        return batches

    def resume() -> None:
        resumed = loader()
        resumed.load_state_dict(states[-2])
        assert len(list(resumed)) == 1

    seconds = least(times, {"read": read, "open": loader, "first": begin, "last": resume})
    print(f"reading one window      {seconds['read'] * 1e3:8.1f} ms, {len(window.slices)} row groups")
    for name, what in (
        ("open", "opening eight files"),
        ("first", "first batch"),
        ("last", "resume at the last"),
    ):
        print(f"{what:24}{seconds[name] * 1e3:8.1f} ms {seconds[name] / seconds['read']:8.2f} windows")


def compare_tensors(times: int) -> None:
    lists = pa.array([[1] * (n % 60 + 1) for n in range(32 * SMALL)], pa.list_(pa.int32()))
    loader = sf.Loader(
        pa.table({"tokens": lists}), batch=32, pad={"tokens": sf.Pad(0, dtype="int64")}, threads=0
    )
    tensors = loader.to("torch")
    seconds = least(
        times, {"arrays": lambda: drain(loader), "tensors": lambda: drain(tensors)}, time.thread_time
    )
    added = (seconds["tensors"] - seconds["arrays"]) / SMALL
    print(
        f"hand-over to PyTorch    {added * 1e6:8.1f} µs a batch of {seconds['arrays'] / SMALL * 1e6:.1f} µs"
    )


def drain(batches: Any) -> None:
    for _ in batches:
        pass


def least(
    times: int, cases: dict[str, Callable[[], object]], clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The least seconds of each, all measured in turn."""
    seconds = dict.fromkeys(cases, float("inf"))
    for _ in range(times):
        for name, run in cases.items():
            started = clock()
            result = run()
            seconds[name] = min(seconds[name], clock() - started)
            del result  # an iterator that is closed lets its threads finish first
    return seconds


if __name__ == "__main__":
    main()
