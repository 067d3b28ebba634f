"""Literals of filters in the types of the columns that they are compared with, and which types are compared."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from seqflow.expression.filter_syntax import LENGTHS, Scalar
from seqflow.record.arrow_types import LISTS, TEXTS, is_any


def is_number(constant: Scalar) -> TypeGuard[int | float]:
    """Whether a literal is a number, which True and False are not."""
    return type(constant) in (int, float)


def plain_literal(constant: Scalar) -> tuple[Any, pa.DataType]:
    """A literal by itself, as an expression, and its type; an integer beyond int64 is a float."""
    is_large = isinstance(constant, int) and not -(2**63) <= constant < 2**63
    scalar = pa.scalar(float(constant) if is_large else constant)
    return pc.scalar(scalar), scalar.type


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of a dictionary's values; any other type itself."""
    return kind.value_type if types.is_dictionary(kind) else kind


def comparison_class(kind: pa.DataType) -> str | None:
    """What values of a type are compared as; None where they are not."""
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_boolean(kind):
        return "bools"
    if is_any(kind, TEXTS) or types.is_fixed_size_binary(kind):
        return "texts"
    if types.is_timestamp(kind):
        return "times without zone" if kind.tz is None else "times"
    return str(kind) if types.is_temporal(kind) else None


def list_type(kind: pa.DataType) -> pa.DataType | None:
    """The type of the list that values are looked for in."""
    return None if types.is_decimal(kind) else kind


def integer_limit(operator: str, constant: float, kind: pa.DataType) -> tuple[str, int]:
    """An operator and an integer of the type that compare all its integers as the number does, exactly."""
    low, high = _limits(kind)
    is_whole = math.isfinite(constant) and constant == math.floor(constant)
    if constant != constant or (operator in ("==", "!=") and not is_whole):
        return (">", high) if operator != "!=" else ("<=", high)
    if constant > high:
        return ("<=", high) if operator in ("<", "<=", "!=") else (">", high)
    if constant < low:
        return (">=", low) if operator in (">", ">=", "!=") else ("<", low)
    floor = math.floor(constant)
    if floor != constant:
        operator = {"<": "<=", ">=": ">"}.get(operator, operator)
    return operator, floor


def _limits(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if types.is_signed_integer(kind) else (0, 2**bits - 1)


def float_literal(constant: float, kind: pa.DataType) -> pa.Scalar:
    """A number as a float of the column's type, as literals of expressions are; a double where that has no room."""
    try:
        number = float(constant)
    except OverflowError:
        number = math.copysign(math.inf, constant)
    found = pa.scalar(number, pa.float64())
    narrow = found.cast(pa.float32() if types.is_float16(kind) else kind, safe=False)
    return found if math.isinf(narrow.as_py()) and not math.isinf(number) else narrow


def advice(name: str, kind: pa.DataType) -> str:
    """What a filter can ask of values of a type that it does not compare, or that are no condition."""
    if types.is_map(kind) or is_any(kind, LISTS):
        return f"its lengths can be compared: {name}.{LENGTHS} > 30"
    if types.is_struct(kind):
        return f"its fields can be compared: {name}.{kind.field(0).name if kind.num_fields else 'field'} == …"
    return f"compare it: {name} == …" if comparison_class(kind) else "pass an expression of pyarrow.compute"


def written_form(kind: pa.DataType) -> str:
    """How literals of a type are written."""
    if types.is_date(kind):
        return ": dates are written '2024-01-31'"
    if types.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        return f": times are written '2024-01-31T12:30:00{zone}', in at most the column's precision"
    if types.is_time(kind):
        return ": times of day are written '12:30:00'"
    return ""
