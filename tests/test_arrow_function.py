"""A net as a function of Arrow tables: kinds, schemas before data, rows, pickles, and what is refused."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf

SUMS = "total = lengths_sum(ids.values, ids.lengths)\nreturn id, total"
IDS = pa.list_(pa.int32())


def table_of(rows):
    return pa.table(
        {
            "id": pa.array(range(len(rows)), pa.int16()),
            "ids": pa.array(rows, IDS),
            "other": pa.array(["x"] * len(rows), pa.string()),
        }
    )


TABLE = table_of([[1, 2], [], [3]])


def test_the_same_kind_comes_back():
    total = sf.arrow_function(SUMS)
    expected = {"id": [0, 1, 2], "total": [3, 0, 3]}
    batch = TABLE.to_batches()[0]
    of_table, of_batch, of_reader = total(TABLE), total(batch), total(TABLE.to_reader())
    assert isinstance(of_table, pa.Table)
    assert of_table.to_pydict() == expected
    assert isinstance(of_batch, pa.RecordBatch)
    assert of_batch.to_pydict() == expected
    assert isinstance(of_reader, pa.RecordBatchReader)
    assert of_reader.read_all().to_pydict() == expected
    found = total(iter([batch, TABLE]))
    assert [type(one) for one in found] == [pa.RecordBatch, pa.Table]


def test_an_iterator_is_read_one_by_one():
    read = []

    def batches():
        for _ in range(3):
            read.append(1)
            yield TABLE

    results = sf.arrow_function(SUMS)(batches())
    assert next(results).num_rows == 3
    assert len(read) == 1


def test_another_holder_of_columns_gives_a_table():
    polars = pytest.importorskip("polars")
    assert sf.arrow_function(SUMS)(polars.from_arrow(TABLE)).column("total").to_pylist() == [3, 0, 3]


def test_the_schema_is_known_before_the_data():
    total = sf.arrow_function(SUMS)
    assert total.schema(TABLE.schema) == pa.schema({"id": pa.int16(), "total": pa.int64()})
    assert total(TABLE.slice(0, 0)).schema == total.schema(TABLE.schema)


@given(st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=6), st.integers(1, 4))
def test_results_have_the_schema_however_a_table_is_cut(rows, size):
    function = sf.arrow_function(
        "v, n = truncate(ids.values, ids.lengths, max_length=2)\nreturn id, v, n, other.values, other.lengths"
    )
    table = table_of(rows)
    whole = function(table)
    whole.validate(full=True)
    parts = [function(table.slice(start, size)) for start in range(0, len(rows), size)]
    assert all(part.schema == function.schema(table.schema) for part in parts)
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()
    assert whole.column("v").to_pylist() == [row[:2] for row in rows]


def test_columns_are_those_that_the_net_reads():
    assert sf.arrow_function(SUMS).columns == ("ids", "id")
    assert sf.arrow_function("n = lengths_sum(ids.values, ids.lengths)").columns is None


def test_a_net_without_return_passes_on_the_rest():
    result = sf.arrow_function("n = lengths_sum(ids.values, ids.lengths)")(TABLE)
    assert result.column_names == ["id", "other", "n"]


def test_a_column_that_is_not_read_may_have_any_type():
    table = TABLE.append_column(
        "u", pa.UnionArray.from_sparse(pa.array([0] * 3, pa.int8()), [pa.array([1, 2, 3])])
    )
    assert sf.arrow_function(SUMS)(table).column("total").to_pylist() == [3, 0, 3]


def test_whether_rows_stay_is_proved():
    assert sf.arrow_function(SUMS).keeps_rows(TABLE.schema)
    picked = sf.arrow_function("x = gather(id, [0])\nreturn x")
    assert not picked.keeps_rows(TABLE.schema)


def test_functions_of_equal_nets_pickle_alike_also_after_a_call():
    one, other = sf.arrow_function(SUMS, fill=0), sf.arrow_function(SUMS, fill=0)
    one(TABLE)
    assert pickle.dumps(one) == pickle.dumps(other)
    again = pickle.loads(pickle.dumps(one))
    assert again(TABLE).equals(one(TABLE))
    assert again.fill == 0


def test_constants_are_bound_to_the_net():
    net = sf.Net("y = gather(table, id)\nreturn y").bind(table=np.array([10.0, 20.0, 30.0]))
    assert sf.arrow_function(net)(TABLE).column("y").to_pylist() == [10.0, 20.0, 30.0]


def test_nulls_follow_fill_and_valid():
    table = pa.table({"id": [1, None]})
    with pytest.raises(sf.ProviderError, match=r"null value in id"):
        sf.arrow_function("y = id * 2\nreturn y")(table)
    assert sf.arrow_function("y = id * 2\nreturn y", fill=-1)(table).column("y").to_pylist() == [2, -2]
    assert sf.arrow_function("return id, id.valid", valid=True)(table).column("id").to_pylist() == [1, None]


def test_an_axis_that_depends_on_the_data_is_refused_before_data():
    padded = sf.arrow_function("x, _ = pad(ids.values, ids.lengths)\nreturn x")
    with pytest.raises(sf.NetError, match=r"axis 1 of x is max\(ids.lengths\), which depends on the data"):
        padded.schema(TABLE.schema)
    fixed = sf.arrow_function("x, _ = pad(ids.values, ids.lengths, max_length=2)\nreturn x")
    assert fixed.schema(TABLE.schema) == pa.schema({"x": pa.list_(pa.int32(), 2)})


def test_a_missing_column_is_named():
    with pytest.raises(
        KeyError, match=r"the net reads 'idz.values'.*did you mean 'id'.*it has id, ids, other"
    ):
        sf.arrow_function("n = lengths_sum(idz.values, idz.lengths)")(TABLE)
    twice = pa.table([[1], [2]], names=["a", "a"])
    with pytest.raises(sf.ProviderError, match="several columns 'a'"):
        sf.arrow_function("y = a + 1")(twice)


def test_what_is_no_table_is_refused():
    with pytest.raises(sf.ProviderError, match=r"expected a record batch, a table .* not list"):
        sf.arrow_function(SUMS)([1, 2])


class TestDuckDB:
    def test_one_output_is_the_value_and_several_are_a_struct(self):
        duckdb = pytest.importorskip("duckdb")
        connection = duckdb.connect()
        connection.create_function(
            "total", **sf.arrow_function("t = lengths_sum(ids.values, ids.lengths)").udf(TABLE.schema)
        )
        two = sf.arrow_function("t = lengths_sum(ids.values, ids.lengths)\nu = t * id\nreturn t, u")
        connection.create_function("two", **two.udf(TABLE.schema))
        connection.register("tab", TABLE)
        assert connection.sql("SELECT total(ids) FROM tab").fetchall() == [(3,), (0,), (3,)]
        found = connection.sql("SELECT two(id, ids) FROM tab").fetchall()
        assert found == [({"t": 3, "u": 0},), ({"t": 0, "u": 0},), ({"t": 3, "u": 6},)]

    def test_null_gives_null_unless_fill_says_what_it_is(self):
        duckdb = pytest.importorskip("duckdb")
        connection = duckdb.connect()
        text = "t = lengths_sum(ids.values, ids.lengths)\nreturn t"
        connection.create_function("plain", **sf.arrow_function(text).udf(TABLE.schema))
        connection.create_function("filled", **sf.arrow_function(text, fill={"ids": [7]}).udf(TABLE.schema))
        query = "SELECT plain(ids), filled(ids) FROM (SELECT [1, 2]::INT[] AS ids UNION ALL SELECT NULL)"
        assert sorted(connection.sql(query).fetchall(), key=str) == [(3, 3), (None, 7)]

    def test_a_net_that_does_not_keep_rows_is_refused(self):
        pytest.importorskip("duckdb")
        with pytest.raises(sf.NetError, match="a DuckDB function needs a result for each row"):
            sf.arrow_function("x = gather(id, [0])\nreturn x").udf(TABLE.schema)
