"""Parse many numbers of a text at once; malformed ones are marked, not raised."""

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.record.buffers import buffer_of
from seqflow.record.record import Tensor

_MOST_DIGITS = {10: 19, 16: 16}
"""The most digits by base; their number always fits 64 bits."""
_SIGNS = np.frombuffer(b"+-", np.uint8)
_FLOAT = r"(?i)^[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|nan|inf|infinity)$"


def _digits() -> Tensor:
    digits = np.full(256, 255, np.uint8)
    for value, (lower, upper) in enumerate(zip(b"0123456789abcdef", b"0123456789ABCDEF", strict=True)):
        digits[[lower, upper]] = value
    return digits


_DIGITS = _digits()


def parse_integers(data: Tensor, starts: Tensor, stops: Tensor, base: int = 10) -> tuple[Tensor, Tensor]:
    """The int64 numbers in `data[start:stop]` of uint8 data, in base 10 with a sign or in base 16 without.

    The second result is true where there is no such number, or it takes more than 64 bits.
    """
    negative = np.zeros(len(starts), np.bool_)
    if base == 10 and len(starts):
        first = data.take(starts, mode="clip")
        negative = (first == _SIGNS[1]) & (stops > starts)
        starts = starts + (negative | ((first == _SIGNS[0]) & (stops > starts)))
    sizes = stops - starts
    wrong = (sizes <= 0) | (sizes > _MOST_DIGITS[base])
    rows = np.flatnonzero(~wrong)
    found = np.zeros(len(sizes), np.uint64)
    found[rows], wrong[rows] = _from_digits(data, stops[rows], sizes[rows], base)
    wrong |= found > np.uint64(np.iinfo(np.int64).max)
    found[wrong] = 0
    numbers = found.view(np.int64)
    return np.where(negative, -numbers, numbers), wrong


def _from_digits(data: Tensor, stops: Tensor, sizes: Tensor, base: int) -> tuple[Tensor, Tensor]:
    """The numbers of `sizes` digits that end before `stops`, and which of them have other characters."""
    # Digit by digit over all numbers that have one there: with the longest first, these are a prefix.
    longest_first = np.argsort(sizes.astype(np.uint8), kind="stable")[::-1]
    last = stops[longest_first] - 1
    numbers, wrong = np.zeros(len(sizes), np.uint64), np.zeros(len(sizes), np.bool_)
    for place in range(int(sizes.max(initial=0))):
        count = np.count_nonzero(sizes > place)
        digits = _DIGITS[data[last[:count] - place]]
        wrong[:count] |= digits >= base
        numbers[:count] += digits * np.uint64(base**place)
    order = np.empty_like(longest_first)
    order[longest_first] = np.arange(len(order))
    return numbers[order], wrong[order]


def parse_floats(data: Tensor, starts: Tensor, stops: Tensor, kind: pa.DataType) -> tuple[Tensor, Tensor]:
    """The numbers in `data[start:stop]` of uint8 data, of an Arrow float type; true where there is none."""
    texts = _texts(data, starts, stops)
    wrong = np.zeros(len(starts), np.bool_)
    try:
        numbers = texts.cast(kind)
    except pa.ArrowInvalid:
        import pyarrow.compute as pc

        wrong = ~pc.match_substring_regex(texts, _FLOAT).to_numpy(zero_copy_only=False)
        numbers = pc.if_else(pa.array(wrong), pa.scalar(b"0", texts.type), texts).cast(kind)
    return numbers.to_numpy(zero_copy_only=False), wrong


def _texts(data: Tensor, starts: Tensor, stops: Tensor) -> pa.Array:
    """The slices of the data as an Arrow array; a plus sign, which not every version of it takes, is left out."""
    sizes = stops - starts
    if len(starts):
        signed = (data.take(starts, mode="clip") == _SIGNS[0]) & (sizes > 1)
        signed &= ~np.isin(data.take(starts + 1, mode="clip"), _SIGNS)
        starts, sizes = starts + signed, sizes - signed
    offsets = kernels.lengths_to_offsets(sizes)
    packed = np.empty(int(offsets[-1]), np.uint8)
    kernels.move_slices(data, starts, sizes, packed, offsets[:-1])
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, buffer_of(offsets), buffer_of(packed)])
