"""Two columns of a filter, compared exactly.

Arrow brings both sides to one type first. Of unlike types it rounds one, or fails as soon as a number is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from seqflow.providers.arrow_expressions import OPERATORS
from seqflow.providers.arrow_values import comparable_type

COMPARISONS = {sign: getattr(pc, function) for function, sign in OPERATORS.items()}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_WHOLE = pa.decimal128(20)
"""Has a place for all integers of 64 bits."""


@dataclass(frozen=True, slots=True)
class Value:
    """An expression and its type; of dictionaries that of their values."""

    expression: Any
    type: pa.DataType
    is_coded: bool = False
    """Whether the values are those of a dictionary."""


def compared(operator: str, one: Value, other: Value) -> Any:
    """The comparison of two values of one class, of any types.

    Of unlike types the values of the finer one are rounded to the coarser one. Rounding keeps the order, so that only
    equal results leave the question open: there the rounded value is compared with the one before in the finer type.
    A decimal meets a float as literals do: as the nearest float of its type.
    """
    if _fineness(one.type) > _fineness(other.type):
        return compared(MIRRORED[operator], other, one)
    compare = COMPARISONS[operator]
    coarse, kind, fine, of = one.expression, one.type, other.expression, other.type
    if types.is_floating(kind) and types.is_decimal(of):
        # by way of text: Arrow's own cast of decimals to floats is off by some bits
        return compare(coarse, fine.cast(pa.string()).cast(kind).cast(comparable_type(kind)))
    if types.is_floating(kind) and types.is_integer(of):
        grid, of = pa.float64(), _WHOLE
    elif types.is_signed_integer(kind) and types.is_uint64(of):
        grid = of = _WHOLE
    elif types.is_decimal(of) and kind != of:
        grid = pa.decimal256(76, kind.scale if types.is_decimal(kind) else 0)
    elif types.is_timestamp(kind) and kind.unit != of.unit:
        grid = pa.timestamp(kind.unit, of.tz)
    else:
        return compare(coarse, fine)
    coarse, rounded, fine = coarse.cast(grid), fine.cast(grid, safe=False), fine.cast(of)
    return pc.if_else(pc.equal(coarse, rounded), compare(rounded.cast(of), fine), compare(coarse, rounded))


def _fineness(kind: pa.DataType) -> int:
    """Place of a type among those of its class, of which the later ones are rounded to the earlier ones."""
    if types.is_timestamp(kind):
        return ("s", "ms", "us", "ns").index(kind.unit)
    if types.is_decimal(kind):
        return 3 + int(kind.scale)
    return 0 if types.is_floating(kind) else 1 + types.is_uint64(kind)
