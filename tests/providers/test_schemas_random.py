"""Files of random nested types as one source: each value of each file comes out, or an error names two files."""

import datetime as dt
import tempfile
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyarrow import types
from unified_kinds import plain_rows

import seqflow as sf
from seqflow.errors import ProviderError
from seqflow.record.selection import field_paths
from seqflow.record.unified_types import UnlikeTypes, unified_type

FAMILIES: list[tuple[list[pa.DataType], list[Any]]] = [
    (
        [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.int64(), pa.dictionary(pa.int8(), pa.int64()), pa.decimal128(5, 2)],
        [0, 1, 127],
    ),
    ([pa.float16(), pa.float32(), pa.float64()], [0.0, -0.0, 1.5, float("nan"), float("-inf")]),
    (
        [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint16(), pa.large_string())],
        ["", "é", "a text of more than twelve bytes", "\0"],
    ),
    ([pa.binary(), pa.large_binary(), pa.binary_view()], [b"", b"\xff\0", b"bytes, and more than twelve of them"]),
    ([pa.decimal128(5, 2), pa.decimal128(12, 5), pa.decimal256(40, 2)], [Decimal("1.25"), Decimal("-999.99"), Decimal(0)]),
    ([*map(pa.timestamp, ["s", "ms", "us", "ns"])], [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2200, 2, 3)]),
    ([pa.timestamp("us", "UTC"), pa.timestamp("ns", "+00:00")], [dt.datetime(2024, 1, 31, tzinfo=dt.UTC)]),
    ([pa.date32(), pa.date64()], [dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
    ([pa.time32("s"), pa.time32("ms"), pa.time64("us")], [dt.time(0), dt.time(23, 59, 59)]),
    ([*map(pa.duration, ["s", "ms", "us", "ns"])], [dt.timedelta(-1), dt.timedelta(0, 7)]),
    ([pa.bool_()], [True, False]),
    ([pa.binary(2)], [b"ab", b"\0\xff"]),
]  # fmt: skip
"""Types that mostly unify, and values that each of them holds."""
VALUES = {str(kind): values for kinds, values in FAMILIES for kind in kinds}
VALUES["decimal128(5, 2)"] = [1, Decimal("1.25")]
Shape = tuple[Any, ...]
"""A tree of types that mostly unify: `("leaf", family)`, `("list", shape)`, `("struct", shapes)`, …"""


def shapes(leaves: int) -> st.SearchStrategy[Shape]:
    return st.recursive(
        st.tuples(st.just("leaf"), st.integers(0, len(FAMILIES) - 1)),
        lambda of: st.one_of(
            st.tuples(st.just("list"), of),
            st.tuples(st.just("fixed"), of),
            st.tuples(st.just("map"), of),
            st.tuples(st.just("struct"), st.lists(of, min_size=1, max_size=3)),
        ),
        max_leaves=leaves,
    )


@st.composite
def kinds(draw: Any, shape: Shape, odd: bool) -> pa.DataType:
    """A type of this shape; an odd one may be of another family, which does not unify."""
    form, inner = shape
    if draw(st.integers(0, 9)) == 0:
        return pa.null()
    if form == "leaf":
        family = draw(st.integers(0, len(FAMILIES) - 1)) if odd and draw(st.booleans()) else inner
        return draw(st.sampled_from(FAMILIES[family][0]))
    if form == "struct":
        names = draw(st.permutations("abc"[: len(inner)]))
        chosen = names[: draw(st.integers(1, len(names)))]
        return pa.struct([(name, draw(kinds(inner["abc".index(name)], odd))) for name in chosen])
    child = pa.field(draw(st.sampled_from(["item", "element"])), draw(kinds(inner, odd)))
    if form == "map":
        key = draw(st.sampled_from([pa.string(), pa.large_string()]))
        return pa.map_(key, child.with_name("value"))
    if form == "fixed":
        return pa.list_(child, 2)
    return draw(st.sampled_from([pa.list_, pa.large_list, pa.list_view, pa.large_list_view]))(child)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if types.is_null(kind):
        return st.none()
    if types.is_struct(kind):
        found: st.SearchStrategy[Any] = st.fixed_dictionaries(
            {child.name: values(child.type) for child in kind}
        )
    elif types.is_map(kind):
        found = st.lists(st.tuples(st.sampled_from(["k", "ключ"]), values(kind.item_type)), max_size=2)
    elif types.is_fixed_size_list(kind):
        found = st.lists(values(kind.value_type), min_size=2, max_size=2)
    elif types.is_nested(kind):
        found = st.lists(values(kind.value_type), max_size=3)
    else:
        found = st.sampled_from(VALUES[str(kind)])
    return st.none() | found


def array_of(rows: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The rows as an array; pyarrow makes dictionaries of numbers by encoding only, and no views in lists."""
    if types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            pa.array([None if row is None else at for at, row in enumerate(rows)], kind.index_type),
            array_of(rows, kind.value_type),
        )
    if types.is_struct(kind):
        children = [
            array_of([None if row is None else row[one.name] for row in rows], one.type) for one in kind
        ]
        mask = pa.array([row is None for row in rows], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if types.is_map(kind):
        shown = [row or [] for row in rows]
        offsets = pa.array([*_offsets(shown, rows)], pa.int32())
        keys = array_of([key for row in shown for key, _ in row], kind.key_type)
        items = array_of([item for row in shown for _, item in row], kind.item_type)
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind)
    if types.is_fixed_size_list(kind):
        inner = array_of([one for row in rows for one in row or [None, None]], kind.value_type)
        return pa.FixedSizeListArray.from_arrays(
            inner, type=kind, mask=pa.array([row is None for row in rows], pa.bool_())
        )
    if types.is_nested(kind):
        shown = [row or [] for row in rows]
        inner = array_of([one for row in shown for one in row], kind.value_type)
        wide = pa.int64() if str(kind).startswith("large") else pa.int32()
        mask = pa.array([row is None for row in rows], pa.bool_())
        ends = [0]
        for row in shown:
            ends.append(ends[-1] + len(row))
        if str(kind).startswith(("list_view", "large_list_view")):
            made = pa.ListViewArray if wide == pa.int32() else pa.LargeListViewArray
            sizes = pa.array([len(row) for row in shown], wide)
            return made.from_arrays(pa.array(ends[:-1], wide), sizes, inner, type=kind, mask=mask)
        plain = pa.ListArray if wide == pa.int32() else pa.LargeListArray
        return plain.from_arrays(pa.array(ends, wide), inner, type=kind, mask=mask)
    return pa.array(rows, kind)


def _offsets(shown: Sequence[Any], rows: Sequence[Any]) -> Iterator[int | None]:
    at = 0
    for pairs, row in zip(shown, rows, strict=True):
        yield None if row is None else at
        at += len(pairs)
    yield at


@st.composite
def tables(draw: Any, leaves: int = 4) -> list[pa.Table]:
    """Two to four tables: `x` of types that mostly unify, `n` of numbers, `other` in some."""
    shape, odd = draw(shapes(leaves)), draw(st.integers(0, 3)) == 0
    found = []
    for number in range(draw(st.integers(2, 4))):
        kind = draw(kinds(shape, odd))
        rows = draw(st.lists(values(kind), min_size=0, max_size=5))
        columns = {
            "x": array_of(rows, kind),
            "n": pa.array([10 * number + row for row in range(len(rows))], draw(st.sampled_from([pa.int8(), pa.uint16(), pa.int64()]))),
            "other": pa.array(["a"] * len(rows)),
        }  # fmt: skip
        names = [
            name for name in draw(st.permutations(list(columns))) if name != "other" or draw(st.booleans())
        ]
        found.append(pa.table({name: columns[name] for name in names}))
    return found


def write(folder: Path, found: Sequence[pa.Table], suffix: str, options: Any) -> list[Path]:
    paths = []
    for number, table in enumerate(found):
        paths.append(folder / f"{number}.{suffix}")
        if suffix == "arrow":
            with pa.ipc.new_file(paths[-1], table.schema) as writer:
                writer.write_table(table, max_chunksize=options)
            continue
        try:
            pq.write_table(table, paths[-1], row_group_size=options, store_schema=number % 2 == 0)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            assume(False)  # no Parquet of this type
    return paths


def stored(path: Path) -> pa.Table:
    if path.suffix == ".arrow":
        return pa.ipc.open_file(path).read_all()
    return pq.read_table(path)


def rows_of(source: Any, **options: Any) -> dict[str, list[Any]]:
    """The rows of a source by column, as plain values, read in slices if these are given."""
    provider = sf.open(source, **options)
    found: dict[str, list[Any]] = {name: [] for name in provider.columns}
    for block in provider.blocks():
        table = pa.table(provider.read(block))
        table.validate(full=True)
        assert table.schema.equals(provider.schema)
        for name in found:
            for chunk in table[name].chunks:
                found[name] += plain_rows(chunk)
    return found


def of_file(path: Path, name: str) -> list[Any]:
    table = stored(path)
    if name not in table.column_names:
        return [None] * table.num_rows
    return [row for chunk in table[name].chunks for row in plain_rows(chunk)]


def check_unlike(paths: Sequence[Path], error: ProviderError) -> None:
    """The error names two files whose types do not unify."""
    named = [path for path in paths if str(path) in str(error)]
    assert len(named) == 2, str(error)
    with pytest.raises(UnlikeTypes):
        unified_type([stored(path).schema.field("x").type for path in named])


SUFFIX = st.sampled_from(["parquet", "arrow"])


@given(tables(), SUFFIX, st.integers(1, 5))
def test_each_value_of_each_file_comes_out_or_two_files_are_named(found, suffix, size):
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), found, suffix, size)
        try:
            rows = rows_of(paths)
        except ProviderError as error:
            check_unlike(paths, error)
            return
        for name in rows:
            assert rows[name] == [row for path in paths for row in of_file(path, name)]


def part(value: Any, kind: pa.DataType, path: Sequence[str]) -> Any:
    """The fields of a plain value on a path, as `columns=` chooses them."""
    if value is None or not path or types.is_map(kind):
        return value
    if types.is_struct(kind):
        name, *rest = path
        return {name: part(value[name], kind.field(name).type, rest)} if name in value else {}
    return tuple(part(one, kind.value_type, path) for one in value)


@given(tables(8), SUFFIX, st.integers(1, 5), st.data())
def test_fields_of_columns_are_those_of_each_file(found, suffix, size, data):
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), found, suffix, size)
        kinds = [stored(path).schema.field("x").type for path in paths]
        chosen = sorted({path for kind in kinds for path in field_paths(pa.field("x", kind))})
        path = data.draw(st.sampled_from(chosen))
        try:
            rows = rows_of(paths, columns=[path])
        except ProviderError as error:
            check_unlike(paths, error)
            return
        assert list(rows) == ["x"]
        assert rows["x"] == [
            part(row, kind, path.split(".")[1:])
            for one, kind in zip(paths, kinds, strict=True)
            for row in of_file(one, "x")
        ]


@pytest.mark.slow
@given(tables(), SUFFIX, st.integers(1, 5), st.data())
def test_names_slices_and_filters_change_no_value(found, suffix, size, data):
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), found, suffix, size)
        try:
            everything = rows_of(paths)
        except ProviderError:
            return
        renamed = rows_of(paths, rename={"x": "y"})
        assert {{"y": "x"}.get(name, name): rows for name, rows in renamed.items()} == everything
        least = data.draw(st.integers(-1, 32))
        kept = rows_of(paths, where=f"n >= {least}")
        number = everything["n"]
        for name in everything:
            assert kept[name] == [row for row, n in zip(everything[name], number, strict=True) if n >= least]
        provider = sf.open(paths)
        if not provider.slices_blocks:
            return
        sliced: list[Any] = []
        for block in provider.blocks():
            step = data.draw(st.integers(1, 3))
            for start in range(0, block.num_rows, step):
                rows = range(start, min(start + step, block.num_rows))
                for chunk in pa.table(provider.read(block, ["x"], rows=rows))["x"].chunks:
                    chunk.validate(full=True)
                    sliced += plain_rows(chunk)
        assert sliced == everything["x"]
