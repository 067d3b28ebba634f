"""Parse many numbers of texts at once."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow import kernels
from seqflow.providers.lines.line_faults import holds
from seqflow.record.buffers import buffer_of
from seqflow.record.record import Tensor

_SIGNS = np.frombuffer(b"+-", np.uint8)
_FLOAT = r"(?i)^[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|nan|inf|infinity)$"
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


def parse_floats(data: Tensor, starts: Tensor, stops: Tensor, kind: pa.DataType) -> tuple[Tensor, Tensor]:
    """Return the floats in `data[start:stop]` of uint8 data, and bool: true where the text is not a number."""
    import pyarrow.compute as pc

    texts = _texts(data, starts, stops)
    wrong = np.zeros(len(starts), np.bool_)
    try:
        numbers = texts.cast(kind).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        # all at once is the fast way; only a block with a fault pays for finding it
        wrong = ~pc.match_substring_regex(texts, _FLOAT).to_numpy(zero_copy_only=False)
        texts = pc.if_else(pa.array(wrong), pa.scalar(b"0", texts.type), texts)
        numbers = texts.cast(kind).to_numpy(zero_copy_only=False)
    odd = np.flatnonzero(~np.isfinite(numbers))
    wrong[odd] = ~pc.match_substring_regex(texts.take(pa.array(odd)), _NAMED).to_numpy(zero_copy_only=False)
    return numbers, wrong


def _texts(data: Tensor, starts: Tensor, stops: Tensor) -> pa.Array:
    """Return slices of the data as an Arrow array, without plus signs, which not every version of Arrow parses."""
    sizes = stops - starts
    if len(starts):
        signed = (data.take(starts, mode="clip") == _SIGNS[0]) & (sizes > 1)
        signed &= ~np.isin(data.take(starts + 1, mode="clip"), _SIGNS)
        starts, sizes = starts + signed, sizes - signed
    offsets = kernels.lengths_to_offsets(sizes)
    packed = np.empty(int(offsets[-1]), np.uint8)
    kernels.move_slices(data, starts, sizes, packed, offsets[:-1])
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, buffer_of(offsets), buffer_of(packed)])
