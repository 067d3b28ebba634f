"""Files of lines beside Polars: Criteo's, libsvm's, JSON of id lists and of texts, CSV; CPU time, one thread.

    POLARS_MAX_THREADS=1 python benchmarks/lines.py [NAME …] [--rounds 3]

Each reader makes typed columns of the same file: Criteo's 26 categories are hexadecimal numbers, or texts. Polars
does not read libsvm: there the peer is our parser of any lines.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

import seqflow as sf
from comparison import Row, main

ROWS, NUMBERS, CATEGORIES = 100_000, 13, 26


def read(path: Path, **options: object) -> pa.Table:
    provider = sf.open(path, **options)
    return pa.Table.from_batches([provider.read(block) for block in provider.blocks()])


def check(found: pa.Table, expected: pl.DataFrame) -> None:
    """Both readers must have made the same rows."""
    if not pl.DataFrame(found).equals(expected):
        raise AssertionError(f"the rows differ: {found.schema}, {expected.schema}")


def criteo(folder: Path, rows: int, categories: str = "ids") -> dict[str, Callable[[], object]]:
    path, generator = folder / "day_0.tsv", np.random.default_rng(0)
    with path.open("w") as file:
        for row in range(rows):
            numbers = [
                "" if number < 4 else str(int(number)) for number in generator.lognormal(3, 2, NUMBERS)
            ]
            hexadecimals = [
                "" if number < 2**27 else f"{number:08x}"
                for number in generator.integers(0, 2**32, CATEGORIES)
            ]
            file.write("\t".join([str(row % 2), *numbers, *hexadecimals]) + "\n")
    names = [f"c{number}" for number in range(CATEGORIES)]
    schema = {f"n{number}": pl.Int64 for number in range(1 + NUMBERS)} | dict.fromkeys(names, pl.String)
    scan = pl.scan_csv(path, separator="\t", has_header=False, schema=pl.Schema(schema))
    if categories == "ids":
        scan = scan.with_columns(pl.col(names).str.to_integer(base=16))
    else:
        scan = scan.with_columns(pl.col(names).cast(pl.Binary))
    found = read(path, format=sf.Criteo(categories=categories))
    lists = [found[name].combine_chunks() for name in ("integers", "categories")]
    columns = [found["label"].combine_chunks()]
    for values, width in zip(lists, (NUMBERS, CATEGORIES), strict=True):
        columns += [values.flatten()[at::width] for at in range(width)]
    columns = [column.take(pa.array(range(rows))) for column in columns]
    check(pa.table(columns, names=scan.collect_schema().names()), scan.collect())
    return {"Polars": scan.collect, "seqflow": lambda: read(path, format=sf.Criteo(categories=categories))}


def libsvm(folder: Path, rows: int) -> dict[str, Callable[[], object]]:
    path, generator = folder / "train.svm", np.random.default_rng(0)
    with path.open("w") as file:
        for row in range(rows // 10):
            ids, values = np.sort(generator.integers(0, 1_000_000, 40)), generator.random(40)
            pairs = zip(ids.tolist(), values.tolist(), strict=True)
            file.write(" ".join([str(row % 2), *(f"{id}:{value:.6g}" for id, value in pairs)]) + "\n")

    def any_lines() -> pa.Table:
        with sf.kernels.use("reference"):
            return read(path)

    if not read(path).equals(any_lines()):
        raise AssertionError("the rows differ")
    return {"parser of any lines": any_lines, "plain": lambda: read(path)}


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
    "libsvm": "",
    "csv": "two thirds are our parser, the rest opens a small file, looks at its first lines and reads it",
    "criteo texts": "texts are checked to be UTF-8 and copied once more",
}
CASES = {
    "criteo ids": criteo,
    "criteo texts": partial(criteo, categories="texts"),
    "libsvm": libsvm,
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
