"""Parse many numbers of texts at once."""

from decimal import Decimal

import pyarrow as pa
from pyarrow import types

from seqflow.providers.lines.line_faults import holds

_NAMED = r"(?i)^[-+]?(nan|inf|infinity)$"
_DECIMAL = r"(?i)^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]{1,2})?$"
_MOST_DIGITS = 38
"""Digits of decimal128, beyond which Arrow's numbers wrap around."""


def parse_values(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert an array of texts to a type; raise ArrowInvalid or ValueError for a text that is not a value of it.

    A finite number beyond a float's range, and hexadecimal digits, are refused, although Arrow accepts them.
    """
    import pyarrow.compute as pc

    if types.is_decimal128(kind):
        return _decimals(texts, kind)
    values = texts.cast(kind)
    odd = texts.filter(pc.invert(pc.is_finite(values))) if types.is_floating(kind) else texts[:0]
    is_hexadecimal = types.is_integer(kind) and holds(texts.buffers()[2] or b"", b"xX")
    if is_hexadecimal or not pc.all(pc.match_substring_regex(odd, _NAMED), min_count=0).as_py():
        raise ValueError(f"a text is not one of {kind}")
    return values


def _decimals(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    import pyarrow.compute as pc

    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest + kind.scale <= _MOST_DIGITS and not holds(texts.buffers()[2] or b"", b"eE"):
        return texts.cast(kind)
    if pc.all(pc.match_substring_regex(texts, _DECIMAL), min_count=0).as_py():
        found = [text and Decimal(text) for text in texts.to_pylist()]
        if (values := pa.array(found, kind)).to_pylist() == found:
            return values
    raise ValueError(f"a text is not one of {kind}")
