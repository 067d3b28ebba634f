"""Files of lines beside Polars and pyarrow: Criteo's, JSON of id lists, CSV; CPU seconds, one thread.

    POLARS_MAX_THREADS=1 python benchmarks/lines.py [--rows 100000] [--times 3]

Each reader makes typed columns of the same file: Criteo's 26 categories are hexadecimal numbers. All are measured in
turn, and of each the least counts; ratios are to Polars.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

import seqflow as sf

NUMBERS, CATEGORIES = 13, 26


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        for name, make in {"criteo": criteo, "json ids": json_ids, "csv": csv}.items():
            compare(name, make(Path(folder), options.rows), options.times)


def compare(name: str, cases: dict[str, Callable[[], object]], times: int) -> None:
    seconds = dict.fromkeys(cases, float("inf"))
    for _ in range(times):
        for reader, case in cases.items():
            start = time.process_time()
            case()
            seconds[reader] = min(seconds[reader], time.process_time() - start)
    for reader, found in seconds.items():
        print(f"{name:10}{reader:10}{found:8.3f} s{found / seconds['polars']:8.2f}×", flush=True)


def read(path: Path, **options: object) -> None:
    provider = sf.open(path, **options)
    for block in provider.blocks():
        provider.read(block)


def criteo(folder: Path, rows: int) -> dict[str, Callable[[], object]]:
    path, generator = folder / "day_0.tsv", np.random.default_rng(0)
    with path.open("w") as file:
        for row in range(rows):
            numbers = [
                "" if number < 4 else str(int(number)) for number in generator.lognormal(3, 2, NUMBERS)
            ]
            categories = [
                "" if number < 2**27 else f"{number:08x}"
                for number in generator.integers(0, 2**32, CATEGORIES)
            ]
            file.write("\t".join([str(row % 2), *numbers, *categories]) + "\n")
    names = [f"c{number}" for number in range(CATEGORIES)]
    schema = {f"n{number}": pl.Int64 for number in range(1 + NUMBERS)} | dict.fromkeys(names, pl.String)
    scan = pl.scan_csv(path, separator="\t", has_header=False, schema=pl.Schema(schema))
    return {
        "polars": scan.with_columns(pl.col(names).str.to_integer(base=16)).collect,
        "seqflow": lambda: read(path, kind="criteo"),
    }


def json_ids(folder: Path, rows: int) -> dict[str, Callable[[], object]]:
    path, generator = folder / "ids.jsonl", np.random.default_rng(0)
    with path.open("w") as file:
        for row in range(rows // 10):
            ids = generator.integers(0, 50_000, generator.integers(10, 400)).tolist()
            file.write(json.dumps({"id": row, "ids": ids, "name": f"row {row}"}) + "\n")
    schema = {"id": "int64", "ids": "list<int32>", "name": "string"}
    columns = pl.Schema({"id": pl.Int64, "ids": pl.List(pl.Int32), "name": pl.String})
    return {
        "polars": pl.scan_ndjson(path, schema=columns).collect,
        "seqflow": lambda: read(path, schema=schema),
    }


def csv(folder: Path, rows: int) -> dict[str, Callable[[], object]]:
    path, generator = folder / "rows.csv", np.random.default_rng(0)
    with path.open("w") as file:
        file.write("id,x,name\n")
        file.writelines(
            f"{row},{x:.6f},name of {row}\n" for row, x in enumerate(generator.standard_normal(rows))
        )
    schema = {"id": "int64", "x": "float64", "name": "string"}
    columns = pl.Schema({"id": pl.Int64, "x": pl.Float64, "name": pl.String})
    return {
        "polars": pl.scan_csv(path, schema=columns).collect,
        "seqflow": lambda: read(path, schema=schema),
    }


if __name__ == "__main__":
    main()
