"""Numbers in lines of text: fields separated by tabs, and index:value pairs after a label."""

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, rows
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import BYTES, COUNTS

__all__ = ["parse_fields", "parse_pairs"]

_TAB, _NEWLINE, _RETURN, _MINUS, _PLUS = b"\t\n\r-+"
_MOST_DIGITS = {10: 19, 16: 16}
"""Largest number of digits by base whose numbers always fit 64 bits."""


def _digits() -> Array:
    digits = np.full(256, 255, np.uint8)
    for value, (lower, upper) in enumerate(zip(b"0123456789abcdef", b"0123456789ABCDEF", strict=True)):
        digits[[lower, upper]] = value
    return digits


_DIGITS = _digits()


@kernel(data=BYTES, bases=COUNTS, widths=COUNTS)
def parse_fields(
    data: Array, bases: Array, widths: Array
) -> tuple[tuple[Array, ...], tuple[Array, ...], Array, Array]:
    """Parse the fields of lines: uint8 data[n], bases[F] -> numbers, missing, int64 starts[R], bool good[R].

    Each line that is not blank is a row, which starts at `starts`; the data end with a newline, and a carriage return
    before a newline does not belong to the line. Adjacent fields are grouped: for each of `widths`, which add up to
    F, there are int64 numbers[R, width] and bool missing[R, width].

    A field of base 10 is an integer with an optional sign, of base 16 an integer without one; a field of base 0 is
    any text, and its number is 2**32 times its start in the data, plus its size. `missing` is true for empty fields.
    A line with other fields, or another number of fields, is not good: all its numbers are 0.
    """
    data, bases, widths = rows(data, "data"), int64_counts(bases, "bases"), int64_counts(widths, "widths")
    _check(data, bases, widths)
    starts, stops, line_starts, good = _split(data, len(bases))
    numbers = np.zeros(starts.shape, np.int64)
    for at, base in enumerate(bases.tolist()):
        if base:
            present = np.flatnonzero(stops[:, at] > starts[:, at])
            found, wrong = parse_integers(data, starts[present, at], stops[present, at], base)
            numbers[present, at] = found
            good[present[wrong]] = False
        else:
            numbers[:, at] = (starts[:, at] << 32) + (stops[:, at] - starts[:, at])
    missing = (stops == starts) & good[:, None]
    numbers[~good] = 0
    ends = np.cumsum(widths)[:-1]
    return tuple(np.split(numbers, ends, axis=1)), tuple(np.split(missing, ends, axis=1)), line_starts, good


def _check(data: Array, bases: Array, widths: Array) -> None:
    if data.dtype != np.uint8 or data.ndim != 1:
        raise TypeError(f"data is {data.dtype} with {data.ndim} dimensions, expected one of uint8")
    if len(data) and data[-1] != _NEWLINE:
        raise ValueError("data do not end with a newline")
    if len(data) >= 2**31:
        raise ValueError(f"data are {len(data)} bytes, expected fewer than 2**31")
    if not len(bases) or not np.isin(bases, (0, 10, 16)).all():
        raise ValueError(f"bases are {bases.tolist()}, expected some of 0, 10 and 16")
    if (widths < 1).any() or widths.sum() != len(bases):
        raise ValueError(
            f"widths are {widths.tolist()}, expected numbers above 0 that add up to {len(bases)}"
        )


def _split(data: Array, num_fields: int) -> tuple[Array, Array, Array, Array]:
    """Return starts and stops of fields (equal ones for a line with another number of fields), lines, and which are
    good.
    """
    breaks = np.flatnonzero((data == _TAB) | (data == _NEWLINE))
    ends = np.flatnonzero(data[breaks] == _NEWLINE)
    counts = np.diff(ends, prepend=-1)
    line_stops = breaks[ends]
    line_starts = np.concatenate(([0], line_stops + 1))[:-1]
    line_stops = line_stops - ((line_stops > line_starts) & (data[line_stops - 1] == _RETURN))
    kept = np.flatnonzero(line_stops > line_starts)
    line_starts, line_stops, counts, ends = (each[kept] for each in (line_starts, line_stops, counts, ends))
    is_good = counts == num_fields
    good = np.flatnonzero(is_good)
    stops = np.repeat(line_starts[:, None], num_fields, axis=1)
    starts = stops.copy()
    stops[good] = breaks[ends[good, None] + np.arange(1 - num_fields, 1)]
    starts[good, 1:] = stops[good, :-1] + 1
    stops[good, -1] = line_stops[good]
    return starts, stops, line_starts, is_good


def parse_integers(data: Array, starts: Array, stops: Array, base: int = 10) -> tuple[Array, Array]:
    """Parse the int64 numbers in `data[start:stop]` of uint8 data, in base 10 with a sign or in base 16 without.

    The second result is true where the text is not such a number, or the number takes more than 64 bits.
    """
    negative = np.zeros(len(starts), np.bool_)
    if base == 10 and len(starts):
        first = data.take(starts, mode="clip")
        negative = (first == _MINUS) & (stops > starts)
        starts = starts + (negative | ((first == _PLUS) & (stops > starts)))
    sizes = stops - starts
    wrong = (sizes <= 0) | (sizes > _MOST_DIGITS[base])
    rows = np.flatnonzero(~wrong)
    found = np.zeros(len(sizes), np.uint64)
    found[rows], wrong[rows] = _from_digits(data, stops[rows], sizes[rows], base)
    wrong |= found > np.uint64(np.iinfo(np.int64).max)
    found[wrong] = 0
    numbers = found.view(np.int64)
    return np.where(negative, -numbers, numbers), wrong


def _from_digits(data: Array, stops: Array, sizes: Array, base: int) -> tuple[Array, Array]:
    """Return the numbers of `sizes` digits that end before `stops`, and a mask of numbers with other characters."""
    # digit by digit, over all numbers that have this digit: with the longest first, these are a prefix
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


@kernel(data=BYTES)
def parse_pairs(
    data: Array, has_qid: bool, one_based: bool
) -> tuple[Array, Array, Array, Array, Array] | None:
    """Parse lines `label qid:number index:value … # comment`, if all of them have the simple form.

    uint8 data[n] -> float64 labels[R], int64 qids[R], int64 ids[P], float32 values[P], int32 offsets[R + 1]

    The pairs of row r are those from `offsets[r]` to `offsets[r + 1]`. With `one_based`, ids are the indices less 1.
    With `has_qid`, all rows have `qid:number` after the label; otherwise no row has it, and `qids` are 0.

    Returns None if a line is malformed or has a number that is not finite, and always without native kernels: such
    lines go to a parser that reports errors.
    """
    return None
