"""Arrow columns of any nested type, with nulls at all levels, values hidden under them, and every layout."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

Rows = list[Any]


@dataclass(frozen=True)
class Kind:
    """A type of columns: how rows are drawn, and become an array, which has `hidden` values under nulls."""

    rows: st.SearchStrategy[Any]
    array: Callable[[Rows], pa.Array]
    hidden: Any
    """A value of the type, without nulls."""
    fill: Any
    """What `fill` gives the nulls of this level; `fills` those of the levels below, by name."""
    fills: dict[str, Any]
    has_null: Callable[[Any], bool]
    filled: Callable[[Any], Any]
    """A row with its nulls filled."""


def _leaf(kind: pa.DataType, values: st.SearchStrategy[Any], hidden: Any, fill: Any) -> Kind:
    def array(rows: Rows) -> pa.Array:
        return pa.array(rows, kind)

    def filled(row: Any) -> Any:
        return fill if row is None else row

    return Kind(st.none() | values, array, hidden, fill, {}, lambda row: row is None, filled)


def _runs(of: Kind) -> Kind:
    def array(rows: Rows) -> pa.Array:
        ends = [at + 1 for at, row in enumerate(rows) if at + 1 == len(rows) or rows[at + 1] != row]
        values = of.array([rows[end - 1] for end in ends])
        return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), values)

    return Kind(of.rows, array, of.hidden, of.fill, of.fills, of.has_null, of.filled)


def _lists(of: Kind, layout: str) -> Kind:
    def array(rows: Rows) -> pa.Array:
        shown = [[of.hidden] if row is None else row for row in rows]
        wide = layout.startswith("large")
        dtype = np.int64 if wide else np.int32
        sizes = np.array([len(row) for row in shown], dtype)
        offsets = np.append(0, np.cumsum(sizes)).astype(dtype)
        values = of.array([value for row in shown for value in row])
        nulls = pa.py_buffer(
            np.packbits(np.array([row is not None for row in rows], np.bool_), bitorder="little")
        )
        child = pa.field("item", values.type)
        kinds = {
            "list": pa.list_, "large_list": pa.large_list,
            "list_view": pa.list_view, "large_list_view": pa.large_list_view,
        }  # fmt: skip
        buffers = [nulls, pa.py_buffer(offsets)]
        if layout.endswith("view"):
            buffers = [nulls, pa.py_buffer(offsets[:-1].copy()), pa.py_buffer(sizes)]
        return pa.Array.from_buffers(kinds[layout](child), len(rows), buffers, children=[values])

    return _nested(of, st.lists(of.rows, max_size=3), array, [of.hidden], [of.fill])


def _fixed_lists(of: Kind, size: int) -> Kind:
    def array(rows: Rows) -> pa.Array:
        values = of.array([value for row in rows for value in (row or [of.hidden] * size)])
        nulls = pa.array([row is None for row in rows], pa.bool_())
        return pa.FixedSizeListArray.from_arrays(values, size, mask=nulls)

    rows = st.lists(of.rows, min_size=size, max_size=size)
    return _nested(of, rows, array, [of.hidden] * size, [of.fill] * size)


def _nested(of: Kind, rows: st.SearchStrategy[Any], array: Any, hidden: Rows, fill: Rows) -> Kind:
    def has_null(row: Any) -> bool:
        return row is None or any(map(of.has_null, row))

    def filled(row: Any) -> Any:
        return fill if row is None else [of.filled(value) for value in row]

    fills = {"values": of.fill} | {f"values.{name}": value for name, value in of.fills.items()}
    return Kind(st.none() | rows, array, hidden, fill, fills, has_null, filled)


def _structs(one: Kind, other: Kind) -> Kind:
    parts = {"a": one, "b": other}

    def array(rows: Rows) -> pa.Array:
        shown = [{name: part.hidden for name, part in parts.items()} if row is None else row for row in rows]
        children = [part.array([row[name] for row in shown]) for name, part in parts.items()]
        return pa.StructArray.from_arrays(
            children, list(parts), mask=pa.array([row is None for row in rows], pa.bool_())
        )

    def has_null(row: Any) -> bool:
        return row is None or any(part.has_null(row[name]) for name, part in parts.items())

    def filled(row: Any) -> Any:
        return {name: part.filled(None if row is None else row[name]) for name, part in parts.items()}

    fills = {name: part.fill for name, part in parts.items()}
    fills |= {f"{name}.{below}": value for name, part in parts.items() for below, value in part.fills.items()}
    hidden = {name: part.hidden for name, part in parts.items()}
    fill = {name: part.fill for name, part in parts.items()}
    rows = st.none() | st.fixed_dictionaries({name: part.rows for name, part in parts.items()})
    return Kind(rows, array, hidden, fill, fills, has_null, filled)


_TEXTS = st.sampled_from(["", "a", "é", "a text of more than twelve bytes"])
_BYTES = st.sampled_from([b"", b"\xff", b"bytes, and more than twelve of them"])
LEAVES = st.sampled_from(
    [
        _leaf(pa.int8(), st.integers(-3, 3), 99, 7),
        _leaf(pa.uint64(), st.just(2**64 - 1) | st.integers(0, 3), 99, 2**63),
        _leaf(pa.float32(), st.sampled_from([0.0, 1.5]), 99.0, 0.25),
        _leaf(pa.bool_(), st.booleans(), True, False),
        _leaf(pa.string(), _TEXTS, "hidden", "filled"),
        _leaf(pa.large_string(), _TEXTS, "hidden", "filled"),
        _leaf(pa.string_view(), _TEXTS, "hidden", "filled with more than twelve bytes"),
        _leaf(pa.binary(), _BYTES, b"hidden", b""),
        _leaf(pa.binary_view(), _BYTES, b"hidden", b"\xfe"),
        _leaf(pa.binary(2), st.sampled_from([b"ab", b"\0\xff"]), b"hi", b"fi"),
        _leaf(pa.dictionary(pa.int8(), pa.string()), _TEXTS, "hidden", "filled"),
    ]
)


def _wrapped(of: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    layouts = st.sampled_from(["list", "large_list", "list_view", "large_list_view"])
    return st.one_of(
        st.builds(_lists, of, layouts),
        st.builds(_fixed_lists, of, st.integers(1, 2)),
        st.builds(_structs, of, of),
        st.builds(_runs, LEAVES.filter(lambda kind: kind.hidden != [])),
    )


KINDS: st.SearchStrategy[Kind] = st.recursive(LEAVES, _wrapped, max_leaves=4)


@st.composite
def columns(draw: Any) -> tuple[Kind, Rows, pa.ChunkedArray]:
    """A kind, rows of it, and these rows as a column of slices of larger arrays."""
    kind = draw(KINDS)
    rows, chunks = [], []
    for _ in range(draw(st.integers(1, 2))):
        drawn = draw(st.lists(kind.rows, min_size=1, max_size=5))
        start = draw(st.integers(0, len(drawn) - 1))
        stop = draw(st.integers(start, len(drawn)))
        rows += drawn[start:stop]
        chunks.append(kind.array(drawn).slice(start, stop - start))
    return kind, rows, pa.chunked_array(chunks)
