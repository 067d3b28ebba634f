"""Filters keep the rows that Arrow's own filter keeps, whatever the values, nulls, statistics and kinds of sources."""

import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf

INF = float("inf")
NAN = float("nan")
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "u8": (pa.uint8(), [0, 1, 127, 128, 255]),
    "u32": (pa.uint32(), [0, 2**31 - 1, 2**31, 2**32 - 1]),
    "i64": (pa.int64(), [-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
    "u64": (pa.uint64(), [0, 2**63 - 1, 2**63, 2**64 - 1]),
    "f32": (pa.float32(), [-INF, -0.0, 0.0, 0.5, INF, NAN]),
    "f64": (pa.float64(), [-INF, -1e300, -0.0, 0.0, 5e-324, INF, NAN]),
    "flag": (pa.bool_(), [False, True]),
    "text": (pa.string(), ["", "a", "a" * 70, "a" * 70 + "b", "ä", "\U0010ffff", "\x7f", "\U0010ffff" * 20]),
    "code": (pa.dictionary(pa.int8(), pa.string()), ["", "a", "b", "\U0010ffff"]),
    "raw": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff" * 70, b"\xff" * 70 + b"\x00"]),
    "day": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]),
    "at_s": (pa.timestamp("s"), [datetime(1, 1, 1), datetime(1969, 12, 31, 23), datetime(2024, 1, 1)]),
    "at_ms": (pa.timestamp("ms"), [datetime(1, 1, 1), datetime(1969, 12, 31, 23), datetime(2024, 1, 1)]),
    "at_us": (pa.timestamp("us", "UTC"), [datetime(1, 1, 2, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)]),
    "dec": (pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("999.99")]),
    "wide": (pa.decimal128(30, 3), [Decimal(-(10**26)), Decimal("0.001"), Decimal(10**26)]),
    "list": (pa.list_(pa.int8()), [[], [1], [1, 2]]),
}
FEW = 14


@st.composite
def tables(draw: Any) -> pa.Table:
    """A table of some rows, of a few values each, so that row groups have narrow ranges."""
    rows = draw(st.integers(0, FEW))
    columns = {}
    for name, (kind, values) in COLUMNS.items():
        found = draw(st.lists(st.sampled_from([*range(len(values)), None]), min_size=rows, max_size=rows))
        if draw(st.booleans()):
            found.sort(key=lambda at: -1 if at is None else at)
        columns[name] = pa.array([None if at is None else values[at] for at in found], kind)
    columns["doc"] = pa.StructArray.from_arrays([columns["i8"], columns["text"]], ["size", "name"])
    columns["row"] = pa.array(range(rows), pa.int64())
    return pa.table(columns)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}
COMPARED = [name for name in COLUMNS if name != "list"]


def written(value: Any) -> str:
    """A literal as filters write it."""
    if isinstance(value, bytes):
        value = value.decode("ascii")
    if isinstance(value, date):
        value = value.isoformat()
    return str(value) if isinstance(value, Decimal) else repr(value)


def is_written(value: Any) -> bool:
    return not isinstance(value, bytes) or value.isascii()  # texts are UTF-8


@st.composite
def leaves(draw: Any) -> tuple[str, Any]:
    """A condition as text, and as an expression of Arrow."""
    name = draw(st.sampled_from(COMPARED))
    kind, values = COLUMNS[name]
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text, column, values = name, pc.field(name), [*filter(is_written, values)]
    if name in ("i8", "text") and draw(st.booleans()):
        field = "size" if name == "i8" else "name"
        text, column = f"doc.{field}", pc.field("doc", field)
    what = draw(st.sampled_from(["compare"] * 5 + ["in", "null", "valid", "lengths"]))
    if what == "compare":
        operator = "==" if kind == pa.bool_() else draw(st.sampled_from(list(OPERATORS)))
        value = draw(st.sampled_from(values))
        return f"{text} {operator} {written(value)}", OPERATORS[operator](column, pa.scalar(value, kind))
    if what == "in" and kind == pa.bool_():
        return text, column
    if what == "in" and not pa.types.is_floating(kind):  # Arrow tells 0.0 from -0.0
        members = draw(st.lists(st.sampled_from(values), max_size=3))
        found = column.isin(pa.array(members, kind))
        null = pc.scalar(pa.scalar(None, pa.bool_()))
        return f"{text} in [{', '.join(map(written, members))}]", pc.if_else(column.is_valid(), found, null)
    if what == "lengths":
        length = draw(st.integers(-1, 2))
        return f"list.lengths > {length}", pc.list_value_length(pc.field("list")) > length
    return (f"{text} == None", column.is_null()) if what == "null" else (f"{text} != None", column.is_valid())


def combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        inner.map(lambda one: (f"not ({one[0]})", ~one[1])),
        pairs.map(lambda two: (f"({two[0][0]}) and ({two[1][0]})", two[0][1] & two[1][1])),
        pairs.map(lambda two: (f"({two[0][0]}) or ({two[1][0]})", two[0][1] | two[1][1])),
    )


FILTERS = st.recursive(leaves(), combined, max_leaves=5)


def in_parquet(table: pa.Table, rows: int, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=rows, **options)
    return file


def rows_of(source: Any, where: Any, **options: Any) -> list[int]:
    loader = sf.Loader(source, columns=["row"], where=where, batch=3, threads=0, **options)
    found = [n for batch in loader for n in batch["row"].tolist()]
    stats = loader.stats()
    assert stats.rows + stats.skipped == stats.rows + stats.filtered
    if loader.num_rows is not None:
        assert loader.num_rows == len(found)
        assert len(loader) == stats.batches
    return found


@pytest.mark.slow
@given(table=tables(), where=FILTERS, rows=st.integers(1, 5), store=st.booleans())
def test_parquet_keeps_what_arrow_keeps(
    table: pa.Table, where: Any, rows: int, store: bool, tmp_path: Path
) -> None:
    text, expression = where
    expected = table.filter(expression)["row"].to_pylist()
    path = tmp_path / "a.parquet"
    path.write_bytes(in_parquet(table, rows, store_schema=store, use_dictionary=store).getvalue())
    assert rows_of(path, text) == expected
    assert rows_of(ds.dataset(path), text) == expected


@pytest.mark.slow
@given(table=tables(), where=FILTERS, rows=st.integers(1, 5))
def test_every_kind_of_source_keeps_what_arrow_keeps(
    table: pa.Table, where: Any, rows: int, tmp_path: Path
) -> None:
    text, expression = where
    expected = table.filter(expression)["row"].to_pylist()
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    batches = table.to_batches(max_chunksize=rows)
    sources: list[Any] = [
        tmp_path / "a.arrow",
        table,
        ds.dataset(tmp_path / "a.arrow", format="ipc"),
        pa.RecordBatchReader.from_batches(table.schema, batches),
        lambda: pa.RecordBatchReader.from_batches(table.schema, batches),
    ]
    for source in sources:
        assert rows_of(source, text, window=64) == expected


@given(table=tables(), data=st.data())
def test_text_filters_compare_exactly(table: pa.Table, data: Any) -> None:
    """Against Python's own comparisons, which are exact between integers and floats."""
    name = data.draw(st.sampled_from(["i8", "u8", "u32", "i64", "u64"]))
    operator = data.draw(st.sampled_from(list(OPERATORS)))
    limit = data.draw(
        st.one_of(st.integers(-(2**65), 2**65), st.floats(), st.sampled_from(COLUMNS[name][1]), st.just(0.5))
    )
    negated = data.draw(st.booleans())
    text = f"{'not ' * negated}{name} {operator} {limit!r}"
    expected = [
        row
        for row, value in enumerate(table[name].to_pylist())
        if value is not None and bool(OPERATORS[operator](value, limit)) != negated
    ]
    assert rows_of(table, text) == expected
