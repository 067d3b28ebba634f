"""SQLite: tables and views, types that are declared and found, values of other types, rowids."""

import pickle
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import seqflow as sf
from seqflow.errors import ProviderError
from seqflow.providers import Provider


def write(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def rows(provider: Provider) -> list[dict[str, Any]]:
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


@pytest.fixture(params=["adbc", "DB-API"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of reading."""
    if request.param == "adbc":
        pytest.importorskip("adbc_driver_sqlite")
    else:
        monkeypatch.setitem(sys.modules, "adbc_driver_sqlite.dbapi", None)


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last}) "


@pytest.mark.usefixtures("reader")
def test_types_are_those_that_are_declared_or_of_the_first_value(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.db",
        "CREATE TABLE t (i BIGINT, r FLOAT, s TEXT, b BLOB, n NUMERIC, a, big INT)",
        "INSERT INTO t VALUES (1, 2, 'x', x'00ff', NULL, NULL, 9223372036854775807)",
        "INSERT INTO t VALUES (NULL, NULL, NULL, NULL, 1.5, 'y', -9223372036854775808)",
    )
    provider = sf.open(path)
    assert [str(kind) for kind in provider.schema.types] == [
        "int64",
        "double",
        "string",
        "binary",
        "double",
        "string",
        "int64",
    ]
    assert rows(provider) == [
        {"i": 1, "r": 2.0, "s": "x", "b": b"\0\xff", "n": None, "a": None, "big": 2**63 - 1},
        {"i": None, "r": None, "s": None, "b": None, "n": 1.5, "a": "y", "big": -(2**63)},
    ]
    narrow = sf.open(path, columns=["i", "n"], format=sf.Sqlite(schema={"i": "int8", "n": "float"}))
    assert [str(kind) for kind in narrow.schema.types] == ["int8", "float"]
    assert rows(narrow)[0] == {"i": 1, "n": None}


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(("column", "value", "options", "message"), [
    ("INT", "'x'", {}, "column 'v': the value is stored as text, expected int64"),
    ("INT", "1.5", {}, "stored as real, expected int64"),
    ("TEXT", "x'00'", {}, "stored as blob, expected string"),
    ("BLOB", "'x'", {}, "stored as text, expected binary"),
    ("", "2", {}, "stored as integer, expected string"),
    ("INT", "300", {"schema": {"v": "int8"}}, "300|int8"),
    ("TEXT", "CAST(x'ff' AS TEXT)", {}, "[uU][tT][fF]-?8"),
])  # fmt: skip
def test_values_of_other_types_are_errors_never_nulls(
    tmp_path: Path, column: str, value: str, options: Any, message: str
) -> None:
    first = "1" if column == "INT" else "x'61'" if column == "BLOB" else "'a'"
    path = write(
        tmp_path / "a.db",
        f"CREATE TABLE t (v {column})",
        f"INSERT INTO t VALUES ({first})",
        f"INSERT INTO t VALUES ({value})",
    )
    with pytest.raises(ProviderError, match=f"a.db, block 0.*({message})"):
        rows(sf.open(path, format=sf.Sqlite(**options)))


@pytest.mark.usefixtures("reader")
def test_blocks_are_ranges_of_rowids_with_gaps(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, x INT)",
        "INSERT INTO t " + NUMBERS.format(last=999) + "SELECT (i - 500) * 1000000007, i FROM n", "DELETE FROM t WHERE x % 3 = 0",
    )  # fmt: skip
    provider = sf.open(path, format=sf.Sqlite(batch_bytes=3000))
    blocks = list(provider.blocks())
    assert len(blocks) > 5
    assert len(provider) == 666
    assert [row["x"] for row in rows(provider)] == [n for n in range(1000) if n % 3]


@pytest.mark.usefixtures("reader")
def test_values_that_come_after_many_nulls_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.db", "CREATE TABLE t (s TEXT, r REAL)", "INSERT INTO t " + NUMBERS.format(last=2999) + "SELECT NULL, NULL FROM n",
        "INSERT INTO t VALUES ('a' || char(0) || 'é', 1)", "INSERT INTO t VALUES ('', 0.5)",
    )  # fmt: skip
    found = rows(sf.open(path))
    assert found[:3000] == [{"s": None, "r": None}] * 3000
    assert found[3000:] == [{"s": "a\0é", "r": 1.0}, {"s": "", "r": 0.5}]


def test_a_column_that_is_called_rowid_is_a_column(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.db",
        "CREATE TABLE t (rowid TEXT, oid TEXT)",
        "INSERT INTO t VALUES ('b', 'x'), ('a', 'y')",
    )
    assert rows(sf.open(path)) == [{"rowid": "b", "oid": "x"}, {"rowid": "a", "oid": "y"}]


@pytest.mark.parametrize("name", ["w", "v", 'odd "name"; --'])
def test_views_and_tables_without_rowids_are_streams_that_can_be_had_again(tmp_path: Path, name: str) -> None:
    path = write(
        tmp_path / "a.db", "CREATE TABLE w (id INT PRIMARY KEY, s TEXT) WITHOUT ROWID",
        "INSERT INTO w " + NUMBERS.format(last=2999) + "SELECT i, 'é' || i FROM n",
        "CREATE VIEW v AS SELECT id, s FROM w", 'CREATE VIEW "odd ""name""; --" AS SELECT id, s FROM w',
    )  # fmt: skip
    loader = sf.Loader(path, format=sf.Sqlite(table=name, batch_bytes=1000), batch=100, columns=["id"])
    for one in (loader, loader, pickle.loads(pickle.dumps(loader))):
        assert [n for batch in one for n in batch["id"].tolist()] == list(range(3000))
    assert rows(sf.open(path, format=sf.Sqlite(table=name)))[7] == {"id": 7, "s": "é7"}
    other = write(tmp_path / "b.db", "CREATE TABLE v (id INT, s TEXT)")
    if name == "v":
        with pytest.raises(ProviderError, match="has no rowids"):
            sf.open([path, other], format=sf.Sqlite(table="v"))


def test_a_table_is_chosen_by_name(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.sqlite",
        "CREATE TABLE docs (x INT)",
        "CREATE TABLE tags (y INT)",
        "INSERT INTO tags VALUES (5)",
    )
    assert rows(sf.open(path, format=sf.Sqlite(table="tags"))) == [{"y": 5}]
    assert rows(sf.open(path, format=sf.Sqlite(table="docs"))) == []
    with pytest.raises(
        ProviderError, match=r"a.sqlite.*2 tables: docs, tags\nchoose one: format=sf.Sqlite\(table=…\)"
    ):
        sf.open(path)
    with pytest.raises(ProviderError, match=r"no table 'tagz' \(did you mean 'tags'\?\)"):
        sf.open(path, format=sf.Sqlite(table="tagz"))
    with pytest.raises(ProviderError, match="no table 'sqlite_master'"):
        sf.open(path, format=sf.Sqlite(table="sqlite_master"))


@pytest.mark.parametrize(("schema", "message"), [
    ({"z": "int64"}, "there is no column 'z'"),
    ({"x": "list<int64>"}, "'x' is list.*expected integers, floats, string or binary"),
])  # fmt: skip
def test_schemas_that_do_not_fit_are_refused(tmp_path: Path, schema: Any, message: str) -> None:
    path = write(tmp_path / "a.db", "CREATE TABLE t (x INT)")
    with pytest.raises(ProviderError, match=message):
        sf.open(path, format=sf.Sqlite(schema=schema))


def test_a_column_that_says_nothing_of_its_type_needs_a_schema(tmp_path: Path) -> None:
    path = write(tmp_path / "a.db", "CREATE TABLE t (x)")
    with pytest.raises(ProviderError, match=r"pass schema=\{'x': …\}"):
        sf.open(path)
    assert str(sf.open(path, format=sf.Sqlite(schema={"x": "int64"})).schema.field("x").type) == "int64"


@pytest.mark.usefixtures("reader")
def test_generated_columns_are_columns(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.db",
        "CREATE TABLE t (a INT, b INT AS (a * 2), c TEXT AS (a || 'x') STORED)",
        "INSERT INTO t (a) VALUES (1), (2)",
    )
    assert rows(sf.open(path)) == [{"a": 1, "b": 2, "c": "1x"}, {"a": 2, "b": 4, "c": "2x"}]


def test_nothing_is_written(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.db", "PRAGMA journal_mode = WAL", "CREATE TABLE t (x INT)", "INSERT INTO t VALUES (1)"
    )
    path.chmod(0o444)
    content = path.read_bytes()
    assert rows(sf.open(path)) == [{"x": 1}]
    assert path.read_bytes() == content
