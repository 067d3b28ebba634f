"""Conditions as text keep the rows that an oracle keeps, which has three truth values and exact numbers."""

import math
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import THOROUGH

import seqflow as sf

MANY = 10_000 if THOROUGH else 100
INF, NAN = math.inf, math.nan
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
TICKS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DAY = 86_400 * 10**9


class Column(NamedTuple):
    """A column: the values that its rows may have, as Arrow takes them and as the oracle has them."""

    kind: pa.DataType
    family: str
    """Columns of one family are compared with each other."""
    values: Sequence[Any]
    means: Sequence[Any]
    literals: Sequence[str]


def whole(kind: pa.DataType, coded: pa.DataType | None = None) -> Column:
    bits = kind.bit_width
    low, high = (
        (0, 2**bits - 1) if pa.types.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    near = (low, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, high)
    found = sorted({number for number in near if low <= number <= high})
    return Column(
        coded or kind, "numbers", found, [Fraction(one) for one in found], [str(one) for one in found]
    )


def floating(kind: pa.DataType, *more: float) -> Column:
    dtype = np.dtype(kind.to_pandas_dtype())
    near = [dtype.type(one) for one in (-INF, -1.5, -0.0, 0.0, 0.1, 1, 1.1, 2, *more, INF, NAN, -NAN)]
    means = [Fraction(float(one)) if np.isfinite(one) else float(one) for one in near]
    return Column(kind, "numbers", near, means, ["0.1", "1.1", "-0.0", *(repr(one) for one in more)])


def decimals(kind: pa.DataType, *texts: str) -> Column:
    return Column(kind, "numbers", [Decimal(one) for one in texts], [Fraction(one) for one in texts], texts)


def texts(
    kind: pa.DataType,
    found: Sequence[str] = ("", "a", "ab", "a" * 70, "a" * 70 + "b", "ä", "\U0010ffff" * 20),
) -> Column:
    values = list(found) if "string" in str(kind) else [one.encode() for one in found]
    return Column(kind, "texts", values, [one.encode() for one in found], [repr(one) for one in found])


def times(kind: pa.DataType, *written: str) -> Column:
    zone = "" if kind.tz is None else "Z"
    utc = [np.datetime64(one, kind.unit).astype(np.int64).item() for one in written]
    means = [one * TICKS[kind.unit] for one in utc]
    return Column(kind, f"times {zone}", utc, means, [repr(one + zone) for one in written])


NUMBERS = ("0", "-0.0", "-1", "0.5", "300", "70000", "16777217", "9007199254740992.5", "12345678901234567.89",
           "18446744073709551616", "1e75", "1e300", "-1e300", "1e400", "-1e400", "1e-400", "1" + "0" * 310, "inf", "-inf", "nan")  # fmt: skip
LONG = "12345678901234567.89"
YEARS = ("0001-01-01T00:00:00", "1969-12-31T23:59:59", "1970-01-01T00:00:00", "2024-01-31T12:30:00")
COLUMNS = {
    "i8": whole(pa.int8()), "u8": whole(pa.uint8()), "i32": whole(pa.int32()), "u32": whole(pa.uint32()),
    "i64": whole(pa.int64()), "u64": whole(pa.uint64()),
    "f16": floating(pa.float16(), 65504.0), "f32": floating(pa.float32(), 2.0**24, 1e38),
    "f64": floating(pa.float64(), 2.0**53, 2.0**63, 2.0**64, -(2.0**63), 1e300, 5e-324),
    "d32": decimals(pa.decimal32(5, 2), "-999.99", "-0.01", "0", "0.10", "1.10", "999.99"),
    "d64": decimals(pa.decimal64(18, 9), "-1.5", "0", "0.1", "0.100000001", "999999999.999999999"),
    "d128": decimals(pa.decimal128(38, 2), f"-{LONG}", "1.1", LONG, "12345678901234568.00", "9" * 36 + ".99"),
    "d256": decimals(pa.decimal256(76, 40), "-1", "0", "0." + "0" * 39 + "1", "0.1", "1.1", "9" * 36 + "." + "9" * 40),
    "huge": decimals(pa.decimal256(76, 0), "-" + "9" * 76, "-1", "0", "1", "9" * 76),
    "tiny": decimals(pa.decimal256(76, 76), "-0." + "9" * 76, "0", "0.1", "0." + "9" * 76),
    "coded": whole(pa.int16(), pa.dictionary(pa.int8(), pa.int16())),
    "flag": Column(pa.bool_(), "bools", [False, True], [False, True], ["False", "True"]),
    "text": texts(pa.string()), "large": texts(pa.large_string()), "view": texts(pa.string_view()),
    "raw": texts(pa.binary()), "fixed": texts(pa.binary(2), ["ab", "b\0", "\0\0", "ä"]),
    "code": texts(pa.dictionary(pa.int8(), pa.string())),
    "at_s": times(pa.timestamp("s"), *YEARS), "at_ms": times(pa.timestamp("ms"), *YEARS, "1969-12-31T23:59:59.999"),
    "at_us": times(pa.timestamp("us"), *YEARS, "1969-12-31T23:59:59.999999"),
    "at_ns": times(pa.timestamp("ns"), *YEARS[1:], "1969-12-31T23:59:59.999999999", "1970-01-01T00:00:00.000000001"),
    "utc_s": times(pa.timestamp("s", "UTC"), *YEARS), "utc_ns": times(pa.timestamp("ns", "Asia/Tokyo"), *YEARS[1:]),
    "day": Column(pa.date32(), "days", [-1, 0, 19_753], [-1, 0, 19_753], ["'1969-12-31'", "'1970-01-01'", "'2024-01-31'"]),
    "day64": Column(pa.date64(), "days64", [-86_400_000, 0], [-1, 0], ["'1969-12-31'", "'1970-01-01'"]),
    "hour": Column(pa.time32("s"), "hours", [0, 43_200], [0, 43_200], ["'00:00:00'", "'12:00:00'"]),
    "hour_ns": Column(pa.time64("ns"), "hours of ns", [0, 1], [0, 1], ["'00:00:00'", "'00:00:00.000000001'"]),
}  # fmt: skip
NAMES = {name: name for name in COLUMNS} | {
    "i8": "doc.i8",
    "f16": "doc.`half float`",
    "i64": "`a.b`",
    "text": "`a text`",
}
"""How conditions write them."""
RENAME = {"a.b": "ab", "list.s": "list"}
Row = dict[str, int | None]
"""The place of a row's value among the values of each column."""
Condition = tuple[str, Callable[[Row], bool | None]]
"""A condition as text, and what it is of a row: None is null."""


def array(name: str, rows: Sequence[int | None]) -> pa.Array:
    column = COLUMNS[name]
    values = [None if at is None else column.values[at] for at in rows]
    if pa.types.is_dictionary(column.kind):
        return pa.array(values, column.kind.value_type).dictionary_encode().cast(column.kind)
    if pa.types.is_temporal(column.kind):
        return pa.array(values, pa.int32() if column.kind.bit_width == 32 else pa.int64()).cast(column.kind)
    return pa.array(values, column.kind)


def table_of(rows: Sequence[Row], hidden: Sequence[bool]) -> pa.Table:
    """The rows as a table; of `hidden` ones the struct is null, whatever its fields have."""
    arrays = {name: array(name, [row[name] for row in rows]) for name in COLUMNS}
    fields = {"i8": arrays.pop("i8"), "half float": arrays.pop("f16")}
    doc = pa.StructArray.from_arrays(list(fields.values()), list(fields), mask=pa.array(hidden, pa.bool_()))
    arrays = {NAMES[name].strip("`"): one for name, one in arrays.items()}
    lists = pa.array(
        [None if at is None else [1] * at for row in rows if (at := row["flag"], True)[1]],
        pa.list_(pa.int8()),
    )
    return pa.table({"doc": doc, "list.s": lists, **arrays, "row": pa.array(range(len(rows)), pa.int64())})


def value(name: str, row: Row) -> Any:
    at = row[name]
    return None if at is None else COLUMNS[name].means[at]


def meant(text: str, name: str) -> Any:
    """The value of a literal where it meets a column."""
    kind, column = COLUMNS[name].kind, COLUMNS[name]
    if column.family == "numbers":
        if text.lstrip("-") in ("inf", "nan"):
            return float(text)
        return nearest(Fraction(text), kind) if pa.types.is_floating(kind) else Fraction(text)
    return column.means[column.literals.index(text)]


def nearest(number: Fraction, kind: pa.DataType) -> Any:
    """The nearest float of a type; beyond all of them the number itself."""
    try:
        with np.errstate(over="ignore"):
            found = np.dtype(kind.to_pandas_dtype()).type(float(number))
    except OverflowError:
        return number
    return Fraction(float(found)) if np.isfinite(found) else number


def both(one: str, other: str, row: Row) -> tuple[Any, Any]:
    """The values of two columns; a decimal meets a float as the nearest one."""
    left, right = value(one, row), value(other, row)
    kinds = COLUMNS[one].kind, COLUMNS[other].kind
    if pa.types.is_decimal(kinds[0]) and pa.types.is_floating(kinds[1]) and left is not None:
        left = nearest(left, kinds[1])
    if pa.types.is_decimal(kinds[1]) and pa.types.is_floating(kinds[0]) and right is not None:
        right = nearest(right, kinds[0])
    return left, right


def compared(sign: str, left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else bool(OPERATORS[sign](left, right))


def found_in(left: Any, members: Sequence[Any], negated: bool) -> bool | None:
    """Whether one of the members equals a value; NaN is found by NaN, which equals none."""
    if left is None:
        return None
    return (any(left == one or (left != left and one != one) for one in members)) != negated


def literals_of(name: str) -> st.SearchStrategy[str]:
    more = NUMBERS if COLUMNS[name].family == "numbers" else ()
    return st.sampled_from([*COLUMNS[name].literals, *more])


@st.composite
def leaves(draw: Any) -> Condition:
    name = draw(st.sampled_from(list(COLUMNS)))
    written, column = NAMES[name], COLUMNS[name]
    sign = draw(st.sampled_from(list(OPERATORS)))
    what = draw(st.sampled_from(["literal"] * 4 + ["columns"] * 4 + ["in"] * 3 + ["null", "lengths", "flag"]))
    if what == "literal":
        text = draw(literals_of(name))
        limit = meant(text, name)
        if draw(st.booleans()):
            return f"{written} {sign} {text}", lambda row: compared(sign, value(name, row), limit)
        return f"{text} {sign} {written}", lambda row: compared(sign, limit, value(name, row))
    if what == "columns":
        other = draw(st.sampled_from([one for one in COLUMNS if COLUMNS[one].family == column.family]))
        return f"{written} {sign} {NAMES[other]}", lambda row: compared(sign, *both(name, other, row))
    if what == "in":
        members = draw(st.lists(literals_of(name), max_size=4))
        negated = draw(st.booleans())
        limits = [meant(text, name) for text in members]
        text = f"{written} {'not ' * negated}in [{', '.join(members)}]"
        return text, lambda row: found_in(value(name, row), limits, negated)
    if what == "null":
        negated = draw(st.booleans())
        return f"{written} is {'not ' * negated}None", lambda row: (row[name] is None) != negated
    if what == "lengths":
        limit = draw(st.integers(-1, 3))
        if draw(st.booleans()):
            return f"`list.s`.lengths {sign} {limit}", lambda row: compared(sign, row["flag"], limit)
        return f"`a text`.lengths {sign} {limit}", lambda row: compared(sign, length(row), limit)
    return "flag", lambda row: value("flag", row)


def length(row: Row) -> int | None:
    found = value("text", row)
    return None if found is None else len(found)


def combined(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    pairs = st.tuples(inner, inner, st.sampled_from(["==", "!="]), st.sampled_from(["True", "False"]))
    return st.one_of(
        inner.map(lambda one: (f"not ({one[0]})", lambda row: inverted(one[1](row)))),
        pairs.map(lambda p: (f"({p[0][0]}) and ({p[1][0]})", lambda row: every(p[0][1](row), p[1][1](row)))),
        pairs.map(lambda p: (f"({p[0][0]}) or ({p[1][0]})", lambda row: some(p[0][1](row), p[1][1](row)))),
        pairs.map(lambda p: (f"({p[0][0]}) {p[2]} {p[3]}", lambda row: compared(p[2], p[0][1](row), p[3] == "True"))),
        pairs.map(lambda p: (f"({p[0][0]}) {p[2]} ({p[1][0]})", lambda row: compared(p[2], p[0][1](row), p[1][1](row)))),
        pairs.map(lambda p: (f"({p[0][0]}) {p[2]} None", lambda row: (p[0][1](row) is None) == (p[2] == "=="))),
        pairs.map(lambda p: (f"({p[0][0]}) in [{p[3]}]", lambda row: compared("==", p[0][1](row), p[3] == "True"))),
    )  # fmt: skip


def inverted(one: bool | None) -> bool | None:
    return None if one is None else not one


def every(one: bool | None, other: bool | None) -> bool | None:
    return False if one is False or other is False else None if one is None or other is None else True


def some(one: bool | None, other: bool | None) -> bool | None:
    return inverted(every(inverted(one), inverted(other)))


@st.composite
def rows_of(draw: Any) -> list[tuple[Row, bool]]:
    """Rows of few values, so that row groups have narrow ranges; with each whether its struct is null."""
    few = {name: draw(st.lists(st.sampled_from([*range(len(one.values)), None]), min_size=1, max_size=3)) for name, one in COLUMNS.items()}  # fmt: skip
    count = draw(st.integers(1, 8))
    chosen = draw(st.randoms(use_true_random=False))
    return [
        ({name: chosen.choice(of) for name, of in few.items()}, chosen.random() < 0.2) for _ in range(count)
    ]


def check(rows: list[tuple[Row, bool]], condition: Condition, size: int, folder: Path) -> None:
    text, oracle = condition
    table = table_of([row for row, _ in rows], [hidden for _, hidden in rows])
    seen = [row | ({"i8": None, "f16": None} if hidden else {}) for row, hidden in rows]
    expected = [number for number, row in enumerate(seen) if oracle(row) is True]
    assert sf.open(table, columns=["row"], rename=RENAME, where=text)["row"].tolist() == expected, text
    pq.write_table(table, folder / "a.parquet", row_group_size=size)
    assert (
        sf.open(folder / "a.parquet", columns=["row"], rename=RENAME, where=text)["row"].tolist() == expected
    ), text


CONDITIONS = st.recursive(leaves(), combined, max_leaves=4)


@pytest.mark.slow
@given(rows=rows_of(), condition=CONDITIONS, size=st.integers(1, 4))
def test_a_condition_keeps_the_rows_for_which_it_is_true(
    rows: Any, condition: Any, size: int, tmp_path: Path
) -> None:
    check(rows, condition, size, tmp_path)


@pytest.mark.slow
@settings(max_examples=MANY)
@given(rows=rows_of(), condition=CONDITIONS, size=st.integers(1, 4))
def test_many_conditions_keep_the_rows_for_which_they_are_true(
    rows: Any, condition: Any, size: int, tmp_path: Path
) -> None:
    check(rows, condition, size, tmp_path)
