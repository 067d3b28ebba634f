"""Two columns of a filter, compared exactly.

Arrow brings both sides to one type first. Of unlike types it rounds one of them, or fails as soon as a number is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from seqflow.providers.arrow_values import comparable_type

COMPARISONS = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
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
    """The comparison of two values of one class.

    Where the types are unlike, the values of the finer one are rounded to the coarser one. Rounding keeps the order, so
    that only where the results are equal the finer type decides, in which the rounded value meets the one before.
    A decimal meets a float as literals do: as the nearest float of its type.
    """
    if _fineness(one.type) > _fineness(other.type):
        return compared(MIRRORED[operator], other, one)
    compare = COMPARISONS[operator]
    coarse, kind, fine, of = one.expression, one.type, other.expression, other.type
    if types.is_timestamp(kind) and kind.unit != of.unit:
        rounded = fine.cast(pa.timestamp(kind.unit, of.tz), safe=False)
        back = rounded.cast(of)
    elif types.is_floating(kind) and types.is_integer(of):
        rounded = fine.cast(pa.float64(), safe=False)
        back, fine = rounded.cast(_WHOLE), fine.cast(_WHOLE)
    elif types.is_floating(kind) and types.is_decimal(
        of
    ):  # by way of text, as Arrow's own cast is off by some bits
        return compare(coarse, fine.cast(pa.string()).cast(kind).cast(comparable_type(kind)))
    elif types.is_decimal(of) and kind != of:
        scale = kind.scale if types.is_decimal(kind) else 0
        back = pc.round(fine, scale, "towards_zero")
        coarse, rounded = (part.cast(pa.decimal256(76, scale)) for part in (coarse, back))
    elif types.is_uint64(of) and types.is_signed_integer(kind):
        return compare(coarse.cast(_WHOLE), fine.cast(_WHOLE))
    else:
        return compare(coarse, fine)
    return pc.if_else(pc.equal(coarse, rounded), compare(back, fine), compare(coarse, rounded))


def _fineness(kind: pa.DataType) -> int:
    """Place of a type among those of its class, of which the later ones are rounded to the earlier ones."""
    if types.is_timestamp(kind):
        return ("s", "ms", "us", "ns").index(kind.unit)
    if types.is_decimal(kind):
        return 3 + int(kind.scale)
    return 0 if types.is_floating(kind) else 1 + types.is_uint64(kind)
