"""Filters on the frames, tables and datasets of other packages."""

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import seqflow as sf

ROWS = 60
TABLE = pa.table(
    {
        "id": range(ROWS),
        "lang": ["py", "c", None, "go"] * (ROWS // 4),
        "tokens": [[n] * (n % 7) for n in range(ROWS)],
    }
)
FILTERS = {
    "lang in ['py', 'go'] and id >= 20": pc.field("lang").isin(["py", "go"]) & (pc.field("id") >= 20),
    "not lang == 'py'": ~(pc.field("lang") == "py"),
    "lang == None or tokens.lengths == 3": pc.field("lang").is_null()
    | (pc.list_value_length(pc.field("tokens")) == 3),
    "id > 1000": pc.field("id") > 1000,
}


def polars_frame(folder: Path) -> Any:
    return pytest.importorskip("polars").from_arrow(TABLE)


def lazy_frame(folder: Path) -> Any:
    return polars_frame(folder).lazy()


def pandas_frame(folder: Path) -> Any:
    pandas = pytest.importorskip("pandas")
    return TABLE.to_pandas(types_mapper=pandas.ArrowDtype)


def relation(folder: Path) -> Any:
    connection = pytest.importorskip("duckdb").connect()
    connection.register("rows", TABLE)
    return connection.sql("select * from rows order by id")


def hugging_face(folder: Path) -> Any:
    return pytest.importorskip("datasets").Dataset(TABLE)


def shuffled(folder: Path) -> Any:
    return hugging_face(folder).shuffle(seed=1)


def iterable(folder: Path) -> Any:
    return hugging_face(folder).to_iterable_dataset(4)


def delta(folder: Path) -> Any:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(folder / "delta", TABLE.slice(0, 30))
    deltalake.write_deltalake(folder / "delta", TABLE.slice(30), mode="append")
    return folder / "delta"


def iceberg(folder: Path) -> Any:
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    pytest.importorskip("sqlalchemy")
    catalog = catalogs.SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=TABLE.schema)
    table.append(TABLE.slice(0, 30))
    table.append(TABLE.slice(30))
    return table


@pytest.mark.parametrize(("make", "blocks"), [(delta, 2), (iceberg, 2)])
def test_files_of_tables_that_hold_no_such_rows_are_not_read(
    make: Callable[[Path], Any], blocks: int, tmp_path: Path
) -> None:
    source = make(tmp_path)
    for where, known in {
        "id < 30": [30, 0],
        "id >= 30 and lang != 'zz'": [0, None],
        "lang > 'zz'": [0, 0],
        "id == 5": [None, 0],
        "id < 25 or id > 100": [None, 0],
    }.items():
        found = list(sf.open(source, where=where).blocks())
        assert len(found) == blocks
        assert sorted([block.num_rows for block in found], key=str) == sorted(known, key=str), where


SOURCES: list[Callable[[Path], Any]] = [
    polars_frame, lazy_frame, pandas_frame, relation, hugging_face, shuffled, iterable, delta, iceberg,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("make", SOURCES)
def test_a_source_has_the_rows_that_arrow_keeps(make: Callable[[Path], Any], tmp_path: Path) -> None:
    source = make(tmp_path)
    for text, expression in FILTERS.items():
        expected = sorted(TABLE.filter(expression)["id"].to_pylist())
        loader = sf.Loader(source, columns=["id", "tokens"], where=text, batch=7, threads=0)
        for _ in range(2):
            batches = [batch["id"].tolist() for batch in loader]
            stats = loader.stats()
            assert sorted(n for batch in batches for n in batch) == expected, text
            assert (stats.rows, stats.filtered) == (len(expected), ROWS - len(expected))
        if loader.num_rows is not None:
            assert loader.num_rows == len(expected)
            assert len(loader) == len(batches) == -(-len(expected) // 7)
        if expected:
            iterator = iter(loader)
            next(iterator)
            again = sf.Loader(source, columns=["id", "tokens"], where=text, batch=7, threads=0)
            again.load_state_dict(loader.state_dict())
            assert [batch["id"].tolist() for batch in again] == batches[1:]


LANCE = """
import sys
import lance, pyarrow as pa, seqflow as sf
table = pa.table({"id": range(60), "tokens": [[n] * (n % 7) for n in range(60)]})
lance.write_dataset(table, sys.argv[1], max_rows_per_file=25)
for where in ("tokens.lengths == 3 and id >= 20", "id > 1000"):
    expected = [n for n in range(20, 60) if n % 7 == 3 and "1000" not in where]
    loader = sf.Loader(sys.argv[1], columns=["id"], where=where, batch=4, threads=0)
    for _ in range(2):
        assert [n for batch in loader for n in batch["id"].tolist()] == expected
        assert loader.stats().filtered == 60 - len(expected)
    assert loader.num_rows == len(expected)
"""


@pytest.mark.slow
def test_lance_in_a_process_of_its_own_since_it_forbids_forks(tmp_path: Path) -> None:
    if find_spec("lance") is None:
        pytest.skip("pylance is not installed")
    subprocess.run([sys.executable, "-c", LANCE, tmp_path / "a.lance"], check=True)
