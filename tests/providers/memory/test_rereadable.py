"""Streams that can be had again: functions, lazy frames and queries."""

import functools
import pickle

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import OpError, ProviderError, ProviderOptionError

ROWS = 2000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "tokens": [[i] * (i % 5) for i in range(ROWS)],
        "s": [{"x": i, "y": str(i)} for i in range(ROWS)],
    }
)
OPTIONS = {"batch": 64, "window": "16 KiB", "batch_bytes": 4096}


def stream(rows=300, table=TABLE):
    return table.to_reader(rows)


def generator():
    yield from TABLE.to_batches(max_chunksize=170)


def relation(query="SELECT * FROM t ORDER BY id"):
    """A relation of a connection of its own."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("t", TABLE)
    return connection.sql(query)


SOURCES = {
    "a function": lambda: stream,
    "a generator function": lambda: generator,
    "a function of tables": lambda: functools.partial(pl.DataFrame, {"id": range(ROWS)}),
    "a LazyFrame": lambda: pl.from_arrow(TABLE).lazy(),
    "a function of LazyFrames": lambda: functools.partial(pl.LazyFrame, {"id": range(ROWS)}),
    "a DuckDB relation": relation,
    "a function of relations": lambda: relation,
}
"""What makes each source anew."""


def ids(loader):
    return [i for batch in loader for i in batch["id"].tolist()]


@pytest.mark.parametrize("name", SOURCES)
def test_each_epoch_is_a_new_stream_of_the_same_batches(name):
    loader = sf.Loader(SOURCES[name](), **OPTIONS)
    assert loader.num_rows is None
    assert [ids(loader) for _ in range(3)] == [list(range(ROWS))] * 3


@pytest.mark.slow
@pytest.mark.parametrize("shuffle", [None, True])
@pytest.mark.parametrize("name", SOURCES)
def test_a_loader_goes_on_where_another_stopped(name, shuffle):
    options = OPTIONS | {"shuffle": shuffle}
    whole = sf.Loader(SOURCES[name](), **options)
    ids(whole)
    loader = sf.Loader(SOURCES[name](), **options)
    ids(loader)
    batches = iter(loader)
    before = [i for _ in range(11) for i in next(batches)["id"].tolist()]
    state = loader.state_dict()
    batches.close()
    other = sf.Loader(SOURCES[name](), **options)
    other.load_state_dict(state)
    assert before + ids(other) == ids(whole)


@pytest.mark.parametrize("tail", ["drop", "pad", "repeat"])
def test_ranks_go_on_with_another_number_of_them(tail):
    def loader(rank, world_size):
        return sf.Loader(stream, rank=rank, world_size=world_size, tail=tail, **OPTIONS)

    batches = iter(first := loader(0, 1))
    for _ in range(4):
        next(batches)
    state = first.state_dict()
    expected = [batch["id"].tolist() for batch in batches]
    found = []
    for rank in range(3):
        one = loader(rank, 3)
        one.load_state_dict(state)
        found.append([batch["id"].tolist() for batch in one])
    in_turn = [batch for step in zip(*found, strict=True) for batch in step]
    assert in_turn[: len(expected)] == expected[: len(in_turn)]
    if tail == "repeat" and len(in_turn) > len(expected):
        assert in_turn[len(expected)] == list(range(len(in_turn[len(expected)])))


def test_functions_and_lazy_frames_pickle():
    for source in (stream, generator, pl.from_arrow(TABLE).lazy()):
        assert ids(pickle.loads(pickle.dumps(sf.Loader(source, **OPTIONS)))) == list(range(ROWS))


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 9), max_size=30), max_size=40), st.data())
def test_blocks_end_where_their_rows_say_however_the_stream_is_cut(rows, data):
    table = pa.table({"c": pa.array(rows, pa.list_(pa.int64()))})

    def cut_anyhow():
        start = 0
        while start < len(table):
            stop = data.draw(st.integers(start, len(table)))
            yield table.slice(start, stop - start).combine_chunks()
            start = stop

    provider = sf.open(cut_anyhow, schema=table.schema, batch_bytes=200)
    blocks = list(provider.blocks())
    assert [block.num_rows for block in blocks] == [block.num_rows for block in provider.blocks()]
    assert all(block.nbytes <= 300 or block.num_rows == 1 for block in blocks)
    assert [row for block in blocks for row in provider.read(block)["c"].to_pylist()] == rows


def test_a_block_may_be_read_again():
    provider = sf.open(stream, batch_bytes=4096)
    block = list(provider.blocks())[2]
    assert provider.read(block).equals(provider.read(block))


def test_the_schema_is_known_without_reading():
    asked = []

    def counted():
        def batches():
            for batch in TABLE.to_batches(max_chunksize=100):
                asked.append(batch)
                yield batch

        return pa.RecordBatchReader.from_batches(TABLE.schema, batches())

    assert sf.open(counted).schema.names == TABLE.schema.names
    assert sf.open(counted, schema=TABLE.schema)["id"].tolist() == list(range(ROWS))
    assert len(asked) == 20


def test_polars_and_duckdb_compute_only_what_is_read():
    frame = pl.from_arrow(TABLE).lazy().with_columns(bad=pl.col("id").map_batches(lambda _: 1 / 0, pl.Int64))
    assert sf.open(frame, columns=["s.x", "id"])["s.x"].tensors["x"].tolist() == list(range(ROWS))
    query = relation("SELECT id, error('read') AS bad FROM t ORDER BY id")
    assert ids(sf.Loader(query, columns=["id"])) == list(range(ROWS))


def test_another_order_in_a_later_pass_is_an_error():
    tables = iter([TABLE, TABLE.slice(1)])
    loader = sf.Loader(lambda: next(tables), batch=64)
    ids(loader)
    with pytest.raises(ProviderError, match=r"other rows, or in another order.*\n.*ORDER BY"):
        ids(loader)


def test_another_order_is_an_error_for_a_state():
    loader = sf.Loader(stream, batch=64)
    next(iter(loader))
    other = sf.Loader(functools.partial(stream, 300, TABLE.slice(1)), batch=64)
    with pytest.raises(OpError, match="content"):
        other.load_state_dict(loader.state_dict())


def test_a_function_that_gives_a_stream_that_was_read_is_an_error():
    reader = stream()
    loader = sf.Loader(lambda: reader)
    assert ids(loader) == list(range(ROWS))
    with pytest.raises(ProviderError, match=r"the same RecordBatchReader again\n.*new one each time"):
        ids(loader)


def test_a_connection_that_is_busy_is_named():
    query = relation()
    batches = query.to_arrow_reader(100)
    with pytest.raises(ProviderError, match=r"open result.*\n.*connection\.cursor\(\)"):
        sf.open(query)
    del batches
    assert ids(sf.Loader(query)) == list(range(ROWS))


def test_an_abandoned_epoch_leaves_the_connection_free():
    query = relation()
    loader = sf.Loader(query, **OPTIONS)
    for _ in range(3):
        batches = iter(loader)
        next(batches)
        batches.close()
        loader.set_epoch(0)
    assert len(query.fetchall()) == ROWS


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (TABLE.select(["id"]), "column 'tokens' is not there"),
        (TABLE.set_column(0, "id", TABLE["id"].cast(pa.int64())), "column 'id' is int64, expected int32"),
    ],
)
def test_other_columns_in_a_later_pass_are_an_error(later, message):
    tables = iter([TABLE, later])
    provider = sf.open(lambda: next(tables))
    list(provider.blocks())
    with pytest.raises(ProviderError, match=message):
        list(provider.blocks())


def test_an_error_of_the_function_is_named():
    def broken():
        raise KeyError("no such table")

    with pytest.raises(ProviderError, match="the function broken can't be opened: 'no such table'"):
        sf.open(broken)
    with pytest.raises(ProviderError, match="the function <lambda> gives a int, expected an object with"):
        sf.open(lambda: 7)


def test_codes_of_a_dictionary_are_the_same_after_a_resume():
    words = [f"w{i // 100}" for i in range(ROWS)]
    frame = pl.DataFrame({"id": np.arange(ROWS), "word": pl.Series(words, dtype=pl.Categorical)}).lazy()
    codes = [batch["word"].tolist() for batch in sf.Loader(frame, **OPTIONS)]
    batches = iter(loader := sf.Loader(frame, **OPTIONS))
    for _ in range(10):
        next(batches)
    other = sf.Loader(frame, **OPTIONS)
    other.load_state_dict(loader.state_dict())
    assert [batch["word"].tolist() for batch in other] == codes[10:]


def test_rows_that_batches_cannot_be_planned_with_are_looked_up():
    loader = sf.Loader(
        stream,
        columns=["tokens"],
        batch=sf.TokenBudget(3),
        bad_rows="skip",
        window="16 KiB",
        batch_bytes=4096,
    )
    found = [batch["tokens.lengths"].tolist() for batch in loader]
    assert max(length for batch in found for length in batch) == 3
    assert loader.stats().bad_rows == ROWS // 5


def test_an_index_and_streams_need_blocks_that_are_known(tmp_path):
    with pytest.raises(OpError, match="blocks are not known"):
        ids(sf.Loader(stream, index=tmp_path / "lengths.arrow"))
    with pytest.raises(OpError, match="streams = 1"):
        ids(sf.Loader(stream, streams=2))


def test_a_schema_is_an_option_of_what_has_none():
    with pytest.raises(ProviderOptionError, match="no option 'schema'"):
        sf.open(pl.LazyFrame({"a": [1]}), schema=pa.schema([]))


def test_rows_that_were_read_or_passed_over_are_not_kept_in_memory():
    most = []

    def batches():
        before = pa.total_allocated_bytes()
        for number in range(60):
            yield pa.record_batch(
                {"id": pa.array(np.full(1 << 17, number)).filter(pa.array([True] * (1 << 17)))}
            )
            most.append(pa.total_allocated_bytes() - before)

    options = {"batch": 1 << 16, "window": "2 MiB", "memory": "4 MiB", "batch_bytes": 1 << 20, "threads": 1}
    loader = sf.Loader(batches, **options)
    for at, _ in enumerate(loader):
        if at == 100:
            state = loader.state_dict()
    other = sf.Loader(batches, **options)
    other.load_state_dict(state)
    assert sum(batch.num_rows for batch in other) == (60 << 17) - (101 << 16)
    assert max(most) < 20 << 20
