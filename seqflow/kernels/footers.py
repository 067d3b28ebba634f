"""Column chunks in the footers of Parquet files, as the format's Thrift definition numbers their fields."""

from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.error import damaged
from seqflow.kernels.forms import BYTES
from seqflow.kernels.thrift import read_struct

__all__ = ["read_column_chunks"]

_ROW_GROUPS, _COLUMN_ORDERS, _COLUMNS, _COLUMN_METADATA = 4, 7, 1, 3
_ENCODINGS, _NUM_VALUES, _UNCOMPRESSED_BYTES, _STATISTICS, _SIZE_STATISTICS = 2, 5, 6, 12, 16
_TEXT_BYTES, _DEFINITION_LEVELS = 1, 3
_NULL_COUNT, _MAXIMUM, _MINIMUM = 3, 5, 6
_MOST_ENCODINGS = 63
"""Numbers of encodings that are told apart; there are ten."""


@kernel(footer=BYTES)
def read_column_chunks(footer: Array) -> tuple[Array, Array, bytes]:
    """The column chunks of each row group.

    uint8 footer[n] -> int64 counts[groups], int64 chunks[sum(counts), 7], bytes limits

    Columns of `chunks`: the number of values, nulls and empty lists included; uncompressed bytes; bytes of all texts,
    or -1 where the writer has not counted them; the encodings of its pages, a bit for each by its number; nulls, or
    -1; and the bytes of its smallest and largest value, or -1 where they are not known, or nothing says how values
    are ordered. These values are the `limits`, one behind the other.

    KernelError for a footer that is damaged where these numbers are.
    """
    try:
        content = read_struct(bytes(footer))
        groups = content.get(_ROW_GROUPS, [])
        found = [[_chunk(column[_COLUMN_METADATA]) for column in group[_COLUMNS]] for group in groups]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged("footer", f"{type(error).__name__}: {error}") from None
    counts = np.array([len(group) for group in found], np.int64)
    limits = [
        limit if _COLUMN_ORDERS in content else None
        for group in found
        for _, *ends in group
        for limit in ends
    ]
    sizes = np.array([-1 if limit is None else len(limit) for limit in limits], np.int64).reshape(-1, 2)
    numbers = np.array([chunk for group in found for chunk, *_ in group], np.int64).reshape(-1, 5)
    return counts, np.concatenate([numbers, sizes], axis=1), b"".join(filter(None, limits))


def _chunk(metadata: dict[int, Any]) -> tuple[tuple[int, int, int, int, int], bytes | None, bytes | None]:
    """The numbers of a column chunk, and its smallest and largest value."""
    sizes = metadata.get(_SIZE_STATISTICS, {})
    for count in sizes.get(_DEFINITION_LEVELS, ()):
        _count(count)  # not used here, but one that is negative shows that the footer is damaged
    text_bytes = sizes.get(_TEXT_BYTES)
    encodings = {int(one) for one in metadata.get(_ENCODINGS, ())}
    statistics = metadata.get(_STATISTICS, {})
    nulls = statistics.get(_NULL_COUNT)
    numbers = (
        _count(metadata[_NUM_VALUES]),
        _count(metadata[_UNCOMPRESSED_BYTES]),
        -1 if text_bytes is None else _count(text_bytes),
        sum(1 << one for one in encodings if 0 <= one < _MOST_ENCODINGS),
        -1 if nulls is None else _count(nulls),
    )
    return numbers, _limit(statistics.get(_MINIMUM)), _limit(statistics.get(_MAXIMUM))


def _limit(value: Any) -> bytes | None:
    if value is not None and not isinstance(value, bytes):
        raise ValueError(f"found {value!r}, expected bytes")
    return value


def _count(number: Any) -> int:
    if not isinstance(number, int) or not 0 <= number < 2**63:
        raise ValueError(f"found {number!r}, expected a count")
    return number
