"""Epochs over objects of a store next to peers, and next to the same files on a disk.

    python benchmarks/stores.py [CASE …] [--quick] [--rounds 3] [--contenders ours polars]

The store is the server of tests/shared, in a process of its own on this machine, without and with 50 ms added to
each request. Lists of int32 in Parquet files: `lists` (600 MB in 6 files, row groups of 4 MB), `small_groups`
(300 MB, row groups of 1 MB), `small_files` (2,000 files of 200 kB); ours is an epoch of `Loader(shuffle=True)`, peers
yield Arrow batches in the order of the files. `open` counts the rows of 10,000 small files. Each run is a process of
its own, without its imports, and all take turns: the best time and CPU time and the largest peak of memory count.
Rows and values must agree. A peer that needs more than 100 s is stopped. Needs Linux and
`pip install '.[bench,stores]' s3fs`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
SERVER = HERE.parent / "tests" / "shared" / "store_server.py"
LIMIT = 100
MB = 1 << 20
CASES = {  # files, bytes of a file, bytes of a row group
    "lists": (6, 100 * MB, 4 * MB), "small_groups": (3, 100 * MB, MB), "small_files": (2000, MB // 5, MB // 5),
    "open": (10_000, MB // 100, MB // 100),
}  # fmt: skip
COLUMNS = ["ids"]
Counts = tuple[int, int]
"""Rows and values."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; by default all")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(*options.run)))
        return
    rounds = 1 if options.quick else options.rounds
    with tempfile.TemporaryDirectory() as folder:
        for case in options.cases or CASES:
            files, size, group = CASES[case]
            write_files(Path(folder) / case, max(2, files // 10) if options.quick else files, size, group)
        servers = [Server(folder, latency) for latency in (0, 0.05)]
        try:
            for case in options.cases or CASES:
                compare(
                    case,
                    {"disk": folder, "0 ms": servers[0].url, "50 ms": servers[1].url},
                    options.contenders,
                    rounds,
                )
        finally:
            for server in servers:
                server.process.kill()


class Server:
    """The store in a process of its own."""

    def __init__(self, folder: str, latency: float) -> None:
        command = [sys.executable, str(SERVER), folder, f"--latency={latency}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()


def write_files(folder: Path, files: int, size: int, group: int) -> None:
    """Lists of 128 ids on average, not compressed; small files are all the same one."""
    folder.mkdir()
    draw = np.random.default_rng(0)
    for number in range(files):
        path = folder / f"{number:06}.parquet"
        if number and size < MB:
            os.link(folder / "000000.parquet", path)
            continue
        lengths = draw.integers(1, 256, size // 516)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        table = pa.table(
            {"ids": pa.ListArray.from_arrays(offsets, draw.integers(0, 50_000, offsets[-1], np.int32))}
        )
        pq.write_table(
            table, path, row_group_size=max(1, group // 516), use_dictionary=False, compression="none"
        )


def compare(case: str, places: dict[str, str], contenders: list[str], rounds: int) -> None:
    """Run all contenders in turn, and print what they took."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for place, where in places.items():
            for contender in contenders:
                if found.get((contender, place), [{}])[-1] is not None:
                    found.setdefault((contender, place), []).append(measure(contender, case, where))
    counts = {tuple(one["counts"]) for runs in found.values() for one in runs if one}
    assert len(counts) == 1, f"{case}: contenders have read {found}"
    print(f"{case}: {counts.pop()[0]:,} rows; seconds / CPU seconds / peak MB")
    for contender in contenders:
        line = f"  {contender:<16}"
        for place in places:
            runs = [one for one in found[contender, place] if one]
            best = (
                [f(one[name] for one in runs) for f, name in ((min, "seconds"), (min, "cpu"), (max, "peak"))]
                if runs
                else []
            )
            line += f"{place:>8} " + (
                f"{best[0]:6.2f} /{best[1]:6.2f} /{best[2]:6.0f}"
                if best
                else f"{'failed or > ' + str(LIMIT) + ' s':>22}"
            )
        print(line, flush=True)


def measure(contender: str, case: str, where: str) -> dict[str, Any] | None:
    """The figures of a run; None if it fails or takes too long."""
    command = [sys.executable, str(Path(__file__)), "--run", contender, case, where]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT + 10, check=True)
    except subprocess.TimeoutExpired:
        return None
    except subprocess.CalledProcessError as error:
        print(f"  {contender}, {case}: {error.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return dict(json.loads(done.stdout))


def run(contender: str, case: str, where: str) -> dict[str, Any]:
    """Seconds, CPU seconds and peak memory of a contender, without its imports."""
    call = CONTENDERS[contender](case, where)
    started, cpu = time.perf_counter(), time.process_time()
    rows, values = call()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return {"counts": (rows, values), "seconds": seconds, "cpu": cpu, "peak": peak}


def count(batches: Iterable[pa.Array]) -> Counts:
    """The rows and values of list arrays."""
    rows = values = 0
    for lists in batches:
        rows += len(lists)
        values += int(lists.offsets[-1].as_py() - lists.offsets[0].as_py()) if len(lists) else 0
    return rows, values


def is_store(where: str) -> bool:
    return where.startswith("http")


def options_of(where: str) -> dict[str, str]:
    """Options of the store, with the keys of Polars."""
    keys = {"aws_access_key_id": "ak", "aws_secret_access_key": "sk", "aws_region": "us-east-1"}
    return {"aws_endpoint_url": where, **keys}


def uri_of(case: str, where: str) -> str:
    return f"s3://{case}/*.parquet" if is_store(where) else f"{where}/{case}/*.parquet"


def ours(case: str, where: str) -> Callable[[], Counts]:
    import seqflow as sf

    stored: Any = {"storage_options": options_of(where)} if is_store(where) else {}
    for _ in sf.Loader(pa.table({"ids": [[1]]}), shuffle=True):  # imports what the first epoch imports
        pass

    def epoch() -> Counts:
        if case == "open":
            return sf.open(uri_of(case, where), columns=COLUMNS, **stored).num_rows or 0, 0
        loader = sf.Loader(uri_of(case, where), columns=COLUMNS, batch=256, shuffle=True, **stored)
        sizes = [(batch.num_rows, len(batch["ids.values"])) for batch in loader]
        rows, values = np.sum(sizes, axis=0)
        return int(rows), int(values)

    return epoch


def polars(case: str, where: str) -> Callable[[], Counts]:
    import polars as pl

    def epoch() -> Counts:
        scan = pl.scan_parquet(
            uri_of(case, where), storage_options=options_of(where) if is_store(where) else None
        )
        if case == "open":
            return scan.select(pl.len()).collect().item(), 0
        sizes = [(len(frame), int(frame["ids"].list.len().sum())) for frame in scan.collect_batches()]
        return sum(rows for rows, _ in sizes), sum(values for _, values in sizes)

    return epoch


def arrow_dataset(case: str, where: str) -> Callable[[], Counts]:
    import pyarrow.dataset as ds
    from pyarrow import fs

    place: Any = fs.LocalFileSystem()
    if is_store(where):
        place = fs.S3FileSystem(endpoint_override=where, access_key="ak", secret_key="sk", region="us-east-1")

    def epoch() -> Counts:
        data = ds.dataset(case if is_store(where) else f"{where}/{case}", filesystem=place, format="parquet")
        if case == "open":
            return data.count_rows(), 0
        return count(batch.column("ids") for batch in data.to_batches(columns=COLUMNS))

    return epoch


def datasets(case: str, where: str) -> Callable[[], Counts]:
    from datasets import load_dataset

    stored: Any = {
        "key": "ak",
        "secret": "sk",
        "client_kwargs": {"endpoint_url": where, "region_name": "us-east-1"},
    }

    def epoch() -> Counts:
        files: Any = {
            "data_files": uri_of(case, where),
            "storage_options": stored if is_store(where) else None,
        }
        data: Any = load_dataset("parquet", split="train", streaming=True, **files).with_format("arrow")
        return count(column for table in data.iter(4096) for column in table.column("ids").chunks)

    return epoch


CONTENDERS = {"ours": ours, "polars": polars, "pyarrow.dataset": arrow_dataset, "datasets": datasets}

if __name__ == "__main__":
    main()
