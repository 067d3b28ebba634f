"""The same rows as several libraries write them: every two of their files are one source."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unified_kinds import plain_rows

import seqflow as sf

ROW = {
    "number": 7,
    "share": 0.5,
    "text": "é",
    "flag": True,
    "ids": [1, 2],
    "tags": ["a", "a text of more than twelve bytes"],
    "day": dt.date(2024, 1, 31),
    "at": dt.datetime(2024, 1, 31, 12, 30),
}
"""Eight columns of every day."""
MORE = {
    "utc": dt.datetime(2024, 1, 31, 12, 30, tzinfo=dt.UTC),
    "doc": {"role": "user", "n": 1},
    "turns": [{"role": "user", "content": "hi"}],
    "nothing": None,
    "empty": [],
    "word": "x",
    "price": Decimal("1.50"),
    "bytes": b"\x00\xff",
}
"""Columns in which libraries differ more: a category, a column that is all null, lists that are all empty."""
Write = Callable[[Path], None]


def write_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path) if path.suffix == ".parquet" else write_arrow(table, path)


def by_pyarrow(path: Path) -> None:
    table = pa.Table.from_pylist([ROW | MORE])
    write(
        table.set_column(table.schema.get_field_index("word"), "word", table["word"].dictionary_encode()),
        path,
    )


def by_pandas(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([ROW | MORE]).astype({"word": "category"})
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path, compression="uncompressed")


def by_polars(path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame([ROW | MORE]).with_columns(polars.col("word").cast(polars.Categorical))
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_ipc(path)


def by_duckdb(path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    database = duckdb.connect()
    database.sql("CREATE TYPE words AS ENUM ('x', 'y')")
    rows = """SELECT 7 AS number, 0.5::DOUBLE AS share, 'é' AS text, true AS flag, [1, 2] AS ids,
        ['a', 'a text of more than twelve bytes'] AS tags, DATE '2024-01-31' AS day, TIMESTAMP '2024-01-31 12:30:00' AS at,
        TIMESTAMPTZ '2024-01-31 12:30:00+00' AS utc, {'role': 'user', 'n': 1} AS doc,
        [{'role': 'user', 'content': 'hi'}] AS turns, NULL AS nothing, [] AS empty, 'x'::words AS word, 1.50 AS price,
        '\\x00\\xFF'::BLOB AS bytes"""
    if path.suffix == ".parquet":
        database.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    else:
        database.sql("SET TimeZone = 'UTC'")
        write_arrow(database.sql(rows).to_arrow_table(), path)


WRITERS: dict[str, Write] = {
    "pyarrow": by_pyarrow,
    "pandas": by_pandas,
    "polars": by_polars,
    "duckdb": by_duckdb,
}
SUFFIXES = ("parquet", "arrow")


def rows_of(paths: list[Path], **options: Any) -> dict[str, list[Any]]:
    provider = sf.open(paths, **options)
    tables = [pa.table(provider.read(block)) for block in provider.blocks()]
    return {
        name: [row for table in tables for chunk in table[name].chunks for row in plain_rows(chunk)]
        for name in provider.columns
    }


@pytest.mark.parametrize(("one", "other"), list(combinations(WRITERS, 2)))
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_two_writers_of_a_format_give_one_source(
    tmp_path: Path, one: str, other: str, suffix: str
) -> None:
    paths = [tmp_path / f"{name}.{suffix}" for name in (one, other)]
    for name, path in zip((one, other), paths, strict=True):
        WRITERS[name](path)
    for order in (paths, paths[::-1]):
        rows = rows_of(order)
        assert set(rows) == {*ROW, *MORE}
        for name, (first, second) in rows.items():
            assert first == second, name
        # the rows are those that went in, as pyarrow would hold them
        given = pa.Table.from_pylist([ROW | MORE])
        assert {name: row[0] for name, row in rows.items()} == {
            name: plain_rows(given[name].chunk(0))[0] for name in given.column_names
        }


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_all_writers_together_give_one_source_and_a_batch(tmp_path: Path, suffix: str) -> None:
    paths = [tmp_path / f"{name}.{suffix}" for name in WRITERS]
    for name, path in zip(WRITERS, paths, strict=True):
        WRITERS[name](path)
    (batch,) = sf.Loader(paths, columns=list(ROW), window="1 GiB", batch=len(paths))
    assert batch["number"].tolist() == [7] * len(paths)
    assert sf.to_arrow(batch)["tags"].to_pylist() == [ROW["tags"]] * len(paths)


def test_a_hole_in_a_column_of_integers_of_pandas_needs_a_declared_type(tmp_path: Path) -> None:
    """pandas writes such columns as floats."""
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"number": [7, None]}).to_parquet(tmp_path / "holes.parquet")
    by_pyarrow(tmp_path / "whole.parquet")
    paths = [tmp_path / "holes.parquet", tmp_path / "whole.parquet"]
    with pytest.raises(
        sf.ProviderError, match=r"integers do not become floats\nschema=\{'number': 'float64'\}"
    ):
        sf.open(paths, columns=["number"])
    assert rows_of(paths, columns=["number"], schema={"number": "int64"}) == {"number": [7, None, 7]}
