"""Nulls count only in the tensors that nets, plans and conditions read."""

import ast
import json
import re
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import ProviderError

CHATS = [
    {
        "messages": [{"role": "user", "content": "hi"}, {"role": "bot", "content": "yes", "name": "b"}],
        "id": 1,
    },
    {"messages": [{"role": "user", "content": "go", "tool_calls": None}], "id": None},
    {"messages": [{"role": "bot", "content": "", "tool_calls": [{"f": 1}], "name": None}], "id": 3},
    {"messages": [{"role": None, "content": "x"}], "id": 4},
    {"messages": None, "id": 5},
]
ROLES = "n = lengths_sum(messages.values.role.lengths, messages.lengths)\nreturn n"


def opened(kind, path, rows):
    """The rows as a source of one kind."""
    if kind == "rows":
        return rows
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path / "a.parquet")
    else:
        (path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "rows"])
def test_optional_keys_of_messages_make_no_bad_rows_unless_they_are_read(tmp_path, kind):
    source = opened(kind, tmp_path, CHATS)
    loader = sf.Loader(source, prepare=ROLES, bad_rows="skip")
    assert [batch["n"].tolist() for batch in loader] == [[7, 4, 3]]
    assert loader.stats().bad_rows == 2
    with pytest.raises(ProviderError, match=r"row 3, column 'messages.*null value in messages.values.role"):
        list(sf.Loader(source, prepare=ROLES))
    names = ROLES.replace("role", "name")
    with pytest.raises(ProviderError, match=r"leaves out all 5 rows.* null value in messages.values.name"):
        list(sf.Loader(source, prepare=names, bad_rows="skip"))


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "rows"])
def test_a_key_that_is_always_null_is_an_error_only_if_it_is_read(tmp_path, kind):
    source = opened(
        kind,
        tmp_path,
        [{"x": 1, "s": {"y": 2, "z": None}, "l": []}, {"x": 2, "s": {"y": 3, "z": None}, "l": []}],
    )
    (batch,) = sf.Loader(source, net="total = x + s.y\nreturn total")
    assert batch["total"].tolist() == [3, 5]
    for options in ({}, {"columns": ["l"]}, {"net": "y = x + 1"}, {"net": "return x, s.z"}):
        with pytest.raises(
            ProviderError, match="no tensor form\nno value tells its type: declare it with schema="
        ):
            list(sf.Loader(source, **options))
    assert sf.Loader(source, columns=["x", "s.y"]).spec.keys() == {"x", "s.y"}


def test_content_that_is_text_or_parts_stops_only_what_reads_it(tmp_path):
    rows = [
        {"m": [{"role": "user", "content": "a"}]},
        {"m": [{"role": "bot", "content": [{"type": "image"}]}]},
    ]
    source = opened("jsonl", tmp_path, rows)
    (batch,) = sf.Loader(source, prepare="return m.values.role.values, m.values.role.lengths, m.lengths")
    assert bytes(batch["m.values.role.values"]) == b"userbot"
    assert sf.Loader(source, columns=["m.role"]).stats().bad_rows == 0
    with pytest.raises(ProviderError, match=r'schema={"m": …} declares its type'):
        list(sf.Loader(source, prepare="return m.values.content"))
    declared = sf.JsonLines(schema={"m": "list<struct<role: string, content: string>>"})
    loader = sf.Loader(source, format=declared, bad_rows="skip")
    assert [batch.num_rows for batch in loader] == [1]


KIND = pa.schema(
    {
        "a": pa.int64(),
        "s": pa.struct({"x": pa.float64(), "t": pa.string()}),
        "l": pa.list_(pa.struct({"u": pa.int8(), "v": pa.list_(pa.int16())})),
        "f": pa.list_(pa.int32(), 2),
    }
)
LEVELS = {
    "a": [["a"]],
    "s.x": [["s"], ["s", "x"]],
    "s.t.lengths": [["s"], ["s", "t"]],
    "l.lengths": [["l"]],
    "l.values.u": [["l"], ["l", "*"], ["l", "*", "u"]],
    "l.values.v.lengths": [["l"], ["l", "*"], ["l", "*", "v"]],
    "l.values.v.values": [["l"], ["l", "*"], ["l", "*", "v"], ["l", "*", "v", "*"]],
    "f": [["f"], ["f", "*"]],
}
"""The levels whose nulls make a row bad, for each tensor that is read."""


def has_null(value, path):
    """Whether a level of a row is null somewhere; what is below a null does not exist."""
    if not path:
        return value is None
    if value is None:
        return False
    return any(has_null(one, path[1:]) for one in (value if path[0] == "*" else [value[path[0]]]))


def maybe(strategy):
    return st.none() | strategy


ROWS = st.fixed_dictionaries(
    {
        "a": maybe(st.just(1)),
        "s": maybe(st.fixed_dictionaries({"x": maybe(st.just(0.5)), "t": maybe(st.just("é"))})),
        "l": maybe(
            st.lists(
                maybe(
                    st.fixed_dictionaries(
                        {"u": maybe(st.just(2)), "v": maybe(st.lists(maybe(st.just(3)), max_size=2))}
                    )
                ),
                max_size=2,
            )
        ),
        "f": maybe(st.lists(maybe(st.just(4)), min_size=2, max_size=2)),
    }
)


@given(
    st.lists(ROWS, min_size=1, max_size=8), st.lists(st.sampled_from(list(LEVELS)), min_size=1, unique=True)
)
def test_bad_rows_are_those_with_nulls_in_what_is_read(rows, read):
    table = pa.Table.from_pylist(rows, schema=KIND)
    # values come with the lengths that describe them
    read = [
        name for name in LEVELS if any(f"{one}.".startswith(name.removesuffix("lengths")) for one in read)
    ]
    loader = sf.Loader(table, prepare=f"return {', '.join(read)}", bad_rows="skip")
    bad = [any(has_null(row, path) for name in read for path in LEVELS[name]) for row in rows]
    with suppress(ProviderError):  # all rows of many are bad
        list(loader)
    assert loader.stats().bad_rows == sum(bad)


def table_of(**columns):
    return pa.table({"id": [1, 2, 3], **columns})


@pytest.mark.parametrize(
    ("options", "num_bad"),
    [
        ({"net": "return id"}, 0),
        ({"net": "y = id + 1"}, 1),
        ({"net": lambda batch: {"id": batch["id"]}}, 1),
        ({"prepare": lambda rows: {"id": rows["id"]}}, 1),
        ({"prepare": "y = id + 1", "net": "return y"}, 0),
        ({"prepare": "y = x + 1", "net": "return id"}, 1),
        ({"net": "return id", "require": "x != 5"}, 1),
        ({"net": "return id", "totals": ["x"]}, 1),
        ({"net": "return id", "batch": sf.Rows(2, balance=sf.Balance(group=1, cost="x"), lengths="t")}, 1),
        ({"net": "return id", "batch": sf.TokenBudget(9)}, 1),
        ({"net": "return id", "batch": sf.TokenBudget(9, lengths="t")}, 0),
        ({"net": "return id", "fill": {"x": 0}}, 0),
    ],
)
def test_everything_that_reads_a_column_counts(options, num_bad):
    table = table_of(x=pa.array([1, None, 3]), t=[[1], [2, 2], []])
    loader = sf.Loader(table, bad_rows="skip", **options)
    assert sum(batch.num_rows for batch in loader) == 3 - num_bad
    assert loader.stats().bad_rows == num_bad


def test_totals_of_a_mix_count_too():
    sources = {name: table_of(x=pa.array([1, None, 3])) for name in "ab"}
    mix = sf.Mix(sources, weights={"a": 1, "b": 1}, net="return id", bad_rows="skip", totals=["x"], batch=2)
    batches = list(mix)
    assert mix.stats().bad_rows == 2
    assert sum(batch.num_rows for batch in batches) == 4


def test_nulls_that_are_not_read_change_no_state():
    full, holes = (
        sf.Loader(table_of(x=pa.array(x, pa.int64())), net="return id") for x in ([1, 2, 3], [1, None, 3])
    )
    assert full.state_dict().keys() == holes.state_dict().keys()
    assert [batch["id"].tolist() for batch in holes] == [batch["id"].tolist() for batch in full]
    assert np.array_equal(next(iter(holes))["id"], [1, 2, 3])


def test_the_error_of_a_null_that_is_read_gives_a_schema_that_reads_it(tmp_path):
    chat = {"messages": [{"role": "user", "name": None}], "label": None, "n": 1}
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(chat)}\n" * 2)
    options, schema = {"batch": 2, "valid": True}, {}
    for _ in range(2):
        with pytest.raises(
            ProviderError, match=r"no value tells its type: declare it with schema="
        ) as caught:
            list(sf.Loader(tmp_path, **options))
        schema |= ast.literal_eval(re.search(r"schema=(\{.*?\})", str(caught.value))[1])
        options["schema"] = schema
    assert schema == {"messages": "list<struct<role: string, name: string>>", "label": "string"}
    (batch,) = sf.Loader(tmp_path, **options)
    assert sf.to_arrow(batch).to_pylist() == [chat, chat]
