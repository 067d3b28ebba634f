"""Files of lines beside Polars: JSON of id lists and of texts, CSV; CPU time, one thread.

    POLARS_MAX_THREADS=1 python benchmarks/lines.py [NAME …] [--rounds 3]

Each reader makes typed columns of the same file.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

import seqflow as sf
from comparison import Row, main

ROWS = 100_000


def read(path: Path, **options: object) -> pa.Table:
    provider = sf.open(path, **options)
    return pa.Table.from_batches([provider.read(block) for block in provider.blocks()])


def check(found: pa.Table, expected: pl.DataFrame) -> None:
    """Both readers must have made the same rows."""
    if not pl.DataFrame(found).equals(expected):
        raise AssertionError(f"the rows differ: {found.schema}, {expected.schema}")


def json_ids(folder: Path, rows: int) -> dict[str, Callable[[], object]]:
    path, generator = folder / "ids.jsonl", np.random.default_rng(0)
    with path.open("w") as file:
        for row in range(rows // 10):
            ids = generator.integers(0, 50_000, generator.integers(10, 400)).tolist()
            file.write(json.dumps({"id": row, "ids": ids, "name": f"row {row}"}) + "\n")
    schema = {"id": "int64", "ids": "list<int32>", "name": "string"}
    columns = pl.Schema({"id": pl.Int64, "ids": pl.List(pl.Int32), "name": pl.String})
    check(read(path, format=sf.JsonLines(schema=schema)), pl.scan_ndjson(path, schema=columns).collect())
    return {
        "Polars": pl.scan_ndjson(path, schema=columns).collect,
        "seqflow": lambda: read(path, format=sf.JsonLines(schema=schema)),
    }


def json_texts(folder: Path, rows: int) -> dict[str, Callable[[], object]]:
    path = folder / "texts.jsonl"
    with path.open("w") as file:
        file.writelines(
            json.dumps({"id": row, "text": f"words {row} " * 40}) + "\n" for row in range(rows // 2)
        )
    columns = pl.Schema({"id": pl.Int64, "text": pl.String})
    schema = {"id": "int64", "text": "string"}
    check(read(path, format=sf.JsonLines(schema=schema)), pl.scan_ndjson(path, schema=columns).collect())
    return {
        "Polars": pl.scan_ndjson(path, schema=columns).collect,
        "seqflow": lambda: read(path, format=sf.JsonLines(schema=schema)),
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
    check(read(path, format=sf.Csv(schema=schema)), pl.scan_csv(path, schema=columns).collect())
    return {
        "Polars": pl.scan_csv(path, schema=columns).collect,
        "seqflow": lambda: read(path, format=sf.Csv(schema=schema)),
    }


WHY = {
    "csv": "two thirds are our parser, the rest opens a small file, looks at its first lines and reads it",
}
CASES = {
    "json ids": json_ids,
    "json texts": json_texts,
    "csv": csv,
}


def files_of_lines() -> Iterator[Row]:
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        for name, make in CASES.items():
            cases = make(Path(folder), ROWS)
            (peer, theirs), (_, ours) = cases.items()
            yield Row(
                name, ours, {peer: theirs}, {peer: 1.0},
                why=WHY.get(name, ""), agree=lambda *_: None,  # `make` has compared them
                clock=time.process_time, unit="CPU ms", rounds=3,
            )  # fmt: skip


FAMILIES = [files_of_lines]

if __name__ == "__main__":
    main(FAMILIES)
