"""Exact comparisons: convert literals of filters to the types of columns, and compare two columns of unlike types.

Arrow converts both sides to one type first. If they are unlike, it rounds one, or fails at the first large number.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.expression.filter_syntax import LENGTHS, Constant, Scalar
from seqflow.providers.filter.arrow_expressions import OPERATORS, ArrowLiteral, Node, call, cast
from seqflow.providers.filter.arrow_values import comparable_type
from seqflow.record.arrow_types import LISTS, TEXTS, is_any


def plain_literal(constant: Scalar) -> tuple[Node, pa.DataType]:
    """Return a literal as a tree of its own, with its type; an integer beyond int64 is a float."""
    is_large = isinstance(constant, int) and not -(2**63) <= constant < 2**63
    scalar = pa.scalar(float(constant) if is_large else constant)
    return ArrowLiteral(scalar), scalar.type


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's values; any other type itself."""
    return kind.value_type if types.is_dictionary(kind) else kind


def comparison_class(kind: pa.DataType) -> str | None:
    """Return the class of types with which values of a type are compared; None if they cannot be compared."""
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_boolean(kind):
        return "bools"
    if is_any(kind, TEXTS) or types.is_fixed_size_binary(kind):
        return "texts"
    if types.is_timestamp(kind):
        return "times without zone" if kind.tz is None else "times"
    return str(kind) if types.is_temporal(kind) else None


def exact_limit(operator: str, constant: Constant, kind: pa.DataType) -> tuple[str, pa.Scalar]:
    """Return an operator and a number of the type that compare each value of the type as the literal would.

    Integers and decimals are compared exactly, floats with the nearest float of their type.
    """
    if types.is_floating(kind):
        operator, limit = _float_limit(operator, constant.exact, kind)
        return operator, pa.scalar(limit, comparable_type(kind))
    scale = kind.scale if types.is_decimal(kind) else 0
    operator, whole = _whole_limit(operator, _shifted(constant.exact, scale), *_limits(kind))
    return operator, pa.scalar(_shifted(Decimal(whole), -scale) if types.is_decimal(kind) else whole, kind)


def _shifted(number: Decimal, places: int) -> Decimal:
    """Return a number times a power of ten, exactly: multiplying a Decimal rounds it to the context's precision."""
    sign, digits, exponent = number.as_tuple()
    return Decimal((sign, digits, exponent + places)) if isinstance(exponent, int) else number


def _whole_limit(operator: str, number: Decimal, low: int, high: int) -> tuple[str, int]:
    """Return an operator and an integer that compare each integer from `low` to `high` as the number would."""
    # ("<=", high) is true for all values, (">", high) for none: null stays null in both
    if number.is_nan():
        return ("<=", high) if operator == "!=" else (">", high)
    if number > high:
        return ("<=", high) if operator in ("<", "<=", "!=") else (">", high)
    if number < low:
        return (">=", low) if operator in (">", ">=", "!=") else ("<", low)
    floor = math.floor(number)
    if floor == number:
        return operator, floor
    if operator in ("==", "!="):
        return ("<=", high) if operator == "!=" else (">", high)
    return {"<": "<=", ">=": ">"}.get(operator, operator), floor


def _limits(kind: pa.DataType) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type; for a decimal, those of its digits without the point."""
    if types.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    bits = kind.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if types.is_signed_integer(kind) else (0, 2**bits - 1)


def _float_limit(operator: str, number: Decimal, kind: pa.DataType) -> tuple[str, float]:
    """Return an operator and the nearest float: infinity for a number beyond all floats, which counts as larger."""
    with np.errstate(over="ignore"):
        nearest = float(np.dtype(kind.to_pandas_dtype()).type(float(number)))
    if math.isfinite(nearest) or not number.is_finite():
        return operator, nearest
    if operator in ("==", "!="):
        return ("<", -math.inf) if operator == "==" else ("!=", math.nan)
    if nearest > 0:
        return ("<" if operator in ("<", "<=") else ">="), nearest
    return (">" if operator in (">", ">=") else "<="), nearest


def advice(name: str, kind: pa.DataType) -> str:
    """Return what to write instead, if a filter compares values that it cannot, or is not a condition."""
    if types.is_map(kind) or is_any(kind, LISTS):
        return f"its lengths can be compared: {name}.{LENGTHS} > 30"
    if types.is_struct(kind):
        return f"its fields can be compared: {name}.{kind.field(0).name if kind.num_fields else 'field'} == …"
    return (
        f"compare it: {name} == …" if comparison_class(kind) else "choose such rows by a function in prepare="
    )


def written_form(kind: pa.DataType) -> str:
    """Return how literals of a type are written."""
    if types.is_date(kind):
        return ": dates are written '2024-01-31'"
    if types.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        return f": times are written '2024-01-31T12:30:00{zone}', in at most the column's precision"
    if types.is_time(kind):
        return ": times of day are written '12:30:00'"
    return ""


COMPARISONS = {sign: function for function, sign in OPERATORS.items()}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_WHOLE = pa.decimal128(20)
"""Decimal type that holds all integers of 64 bits."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tree and its type; for a dictionary, the type of its values."""

    expression: Node
    type: pa.DataType
    is_coded: bool = False
    """Whether the column is dictionary-encoded."""


def compared(operator: str, one: Value, other: Value) -> Node:
    """Return the comparison of two values of one class, of any types.

    If types are unlike, values of the finer one are rounded to the coarser one. Rounding keeps the order, so only
    equal results leave the question open: there the rounded value is compared with the original one in the finer
    type. A decimal is compared with a float as literals are: as the nearest float of that type.
    """
    if _fineness(one.type) > _fineness(other.type):
        return compared(MIRRORED[operator], other, one)
    compare = COMPARISONS[operator]
    coarse, kind, fine, of = one.expression, one.type, other.expression, other.type
    if types.is_floating(kind) and types.is_decimal(of):
        # cast through text: Arrow's own cast of decimals to floats is off by some bits
        return call(compare, coarse, cast(cast(cast(fine, pa.string()), kind), comparable_type(kind)))
    if types.is_floating(kind) and types.is_integer(of):
        grid, of = pa.float64(), _WHOLE
    elif types.is_signed_integer(kind) and types.is_uint64(of):
        grid = of = _WHOLE
    elif types.is_decimal(of) and kind != of:
        grid = pa.decimal256(76, kind.scale if types.is_decimal(kind) else 0)
    elif types.is_timestamp(kind) and kind.unit != of.unit:
        grid = pa.timestamp(kind.unit, of.tz)
    else:
        return call(compare, coarse, fine)
    coarse, rounded, fine = cast(coarse, grid), cast(fine, grid, safe=False), cast(fine, of)
    exactly = call(compare, cast(rounded, of), fine)
    return call("if_else", call("equal", coarse, rounded), exactly, call(compare, coarse, rounded))


def _fineness(kind: pa.DataType) -> int:
    """Return the position of a type in its class, from coarse to fine: later types are rounded to earlier ones."""
    if types.is_timestamp(kind):
        return ("s", "ms", "us", "ns").index(kind.unit)
    if types.is_decimal(kind):
        return 3 + int(kind.scale)
    return 0 if types.is_floating(kind) else 1 + types.is_uint64(kind)
