"""Python's own streams: lists and iterators of batches or dicts, and cursors of databases."""

import sqlite3

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError, ProviderOptionError

ROWS = 2500
TABLE = pa.table(
    {"id": range(ROWS), "tokens": [[i] * (i % 5) for i in range(ROWS)], "name": map(str, range(ROWS))}
)
SCHEMA = pa.schema({"id": pa.int64(), "x": pa.float64()})


def rows():
    return iter(TABLE.to_pylist())


def ids(loader):
    return [i for batch in loader for i in batch["id"].tolist()]


@pytest.mark.parametrize(
    "source",
    [
        TABLE.to_batches(max_chunksize=400),
        [TABLE.slice(0, 1000), TABLE.slice(1000)],
        (TABLE.slice(0, 1000).to_pandas(), TABLE.slice(1000).to_pandas()),
        TABLE.to_pylist(),
    ],
    ids=["batches", "tables", "frames", "dicts"],
)
def test_lists_are_tables(source):
    loader = sf.Loader(source, batch=64)
    assert [ids(loader) for _ in range(2)] == [list(range(ROWS))] * 2
    assert (loader.num_rows, loader.source.schema.names) == (ROWS, TABLE.schema.names)


@pytest.mark.parametrize(
    "make", [rows, lambda: iter(TABLE.to_batches(max_chunksize=400))], ids=["dicts", "batches"]
)
def test_an_iterator_is_read_once(make):
    loader = sf.Loader(make(), batch=64)
    assert ids(loader) == list(range(ROWS))
    with pytest.raises(ProviderError, match="can be read once"):
        ids(loader)


def test_a_function_of_rows_is_read_again():
    loader = sf.Loader(rows, batch=64)
    assert [ids(loader) for _ in range(2)] == [list(range(ROWS))] * 2


def test_keys_that_only_some_rows_have_are_null_in_the_others():
    provider = sf.open([{"a": 1}, {"b": [2]}])
    assert provider.read(next(provider.blocks())).to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": [2]}]


LATER = [{"id": i, "x": 0.5} for i in range(1500)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": 1, "x": 0.5, "new": 1}, "column 'new' is not in the rows before"),
        ({"id": 1.5, "x": 0.5}, "column 'id', row 1500: found 1.5, expected int64: values are double"),
        ({"id": "one", "x": 0.5}, "column 'id', row 1500: found 'one', expected int64"),
        ([1, 0.5], "row 1500 is a list, expected a dict"),
    ],
)
def test_later_rows_have_the_types_of_the_first_thousand(row, message):
    with pytest.raises(ProviderError, match=message):
        ids(sf.Loader(iter([*LATER, row]), columns=["id"]))


def test_a_field_that_structs_have_later_is_an_error():
    early, late = {"s": {"a": [{"b": 1}]}}, {"s": {"a": [{"b": 1, "c": 2}]}}
    with pytest.raises(
        ProviderError, match=r"column 's', column 'a', row 1000: found .*'c': 2.*: there are keys besides b"
    ):
        list(sf.open(iter([early] * 1000 + [late])).blocks())


def test_a_schema_says_the_types():
    provider = sf.open([{"id": 1, "x": 2}], schema=SCHEMA)
    assert provider.schema.equals(SCHEMA)
    assert ids(sf.Loader(lambda: iter([{"id": 1, "x": 2}]), schema=SCHEMA)) == [1]
    assert ids(sf.Loader(lambda: iter([]), schema=SCHEMA)) == []


def test_what_has_no_rows_has_no_columns():
    with pytest.raises(ProviderError, match=r"no rows.*\npass schema="):
        sf.open(iter([]))


def test_batches_of_one_list_share_a_schema():
    with pytest.raises(ProviderError, match="item 1 has the schema\nid: string\nexpected\nid: int64"):
        sf.open([pa.table({"id": [1]}), pa.table({"id": ["a"]})])


def test_a_list_of_anything_else_is_refused():
    with pytest.raises(ProviderError, match=r"item 0: expected a record batch.* not int"):
        sf.open([1, 2])


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, name TEXT, x REAL, missing INTEGER)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?, NULL)", ((i, str(i), i / 2) for i in range(ROWS))
        )
    connection.close()
    return path


def test_a_cursor_is_read_once_and_a_function_of_cursors_again(database):
    connection = sqlite3.connect(database)

    def query():
        return connection.execute("SELECT id, name, x FROM t ORDER BY id")

    assert ids(sf.Loader(query(), batch=64)) == list(range(ROWS))
    loader = sf.Loader(query, batch=64, window="8 KiB", batch_bytes=2048)
    assert [ids(loader) for _ in range(2)] == [list(range(ROWS))] * 2
    assert loader.source.schema.types == [pa.int64(), pa.string(), pa.float64()]
    batches = iter(loader)
    before = [i for _ in range(5) for i in next(batches)["id"].tolist()]
    state = loader.state_dict()
    other = sf.Loader(query, batch=64, window="8 KiB", batch_bytes=2048)
    other.load_state_dict(state)
    assert before + ids(other) == list(range(ROWS))
    batches.close()
    connection.close()


def test_what_a_cursor_cannot_tell_is_declared(database):
    connection = sqlite3.connect(database)
    with pytest.raises(
        ProviderError, match=r"column 'missing' has only nulls in the first 1000 rows\npass schema="
    ):
        sf.open(connection.execute("SELECT missing FROM t"))
    schema = pa.schema({"missing": pa.int64()})
    assert sf.open(connection.execute("SELECT missing FROM t"), schema=schema).schema == schema
    with pytest.raises(ProviderOptionError, match="columns id, x, the query missing"):
        list(sf.open(connection.execute("SELECT missing FROM t"), schema=SCHEMA).blocks())
    with pytest.raises(
        ProviderError, match=r"column 'v', row 2000: found '2000', expected int64: .*\n.*schema="
    ):
        list(
            sf.open(
                connection.execute("SELECT CASE WHEN id < 2000 THEN id ELSE name END AS v FROM t")
            ).blocks()
        )
    with pytest.raises(ProviderError, match="no result"):
        sf.open(connection.execute("CREATE TABLE u (id INTEGER)"))
    connection.close()


def test_an_adbc_cursor_gives_its_batches(database):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi")
    with dbapi.connect(str(database)) as connection:
        cursors = []

        def query():
            cursors.append(connection.cursor())
            cursors[-1].execute("SELECT id, name FROM t ORDER BY id")
            return cursors[-1]

        loader = sf.Loader(query, batch=64)
        assert [ids(loader) for _ in range(2)] == [list(range(ROWS))] * 2
        assert ids(sf.Loader(lambda: query().fetch_record_batch(), batch=64)) == list(range(ROWS))
        assert ids(sf.Loader(query(), batch=64)) == list(range(ROWS))
        cursor = query()
        loader = sf.Loader(lambda: cursor)
        assert ids(loader) == list(range(ROWS))
        with pytest.raises(ProviderError, match=r"the same Cursor again\n.*new one each time"):
            ids(loader)
        for one in cursors:
            one.close()


def test_a_reader_of_duckdb_is_read_once():
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        reader = connection.sql("SELECT unnest(range(2500)) AS id").to_arrow_reader()
        assert sf.open(reader)["id"].tolist() == list(range(ROWS))


def test_arrays_in_rows_are_lists():
    loader = sf.Loader(iter([{"id": 1, "x": np.arange(3)}]))
    assert next(iter(loader))["x.values"].tolist() == [0, 1, 2]
