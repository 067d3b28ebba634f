"""The column chunks in the footer of a Parquet file.

pyarrow ends the process when it is asked for a column chunk whose entry in the footer is damaged, so these are read
here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from seqflow.errors import ProviderError
from seqflow.providers.thrift import read_struct

_TAIL = 8
"""Bytes at the end of a file: the size of the footer, and a magic word."""

# Field numbers of the format's Thrift definition.
_ROW_GROUPS, _COLUMNS, _COLUMN_METADATA = 4, 1, 3
_ENCODINGS, _NUM_VALUES, _UNCOMPRESSED_BYTES, _SIZE_STATISTICS = 2, 5, 6, 16
_TEXT_BYTES, _DEFINITION_LEVELS = 1, 3


DICTIONARY_ENCODINGS, PREFIX_ENCODING = frozenset({2, 8}), 7
"""Encodings of texts that write what several have in common once: whole texts, or how they begin."""


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """One leaf column of one row group."""

    num_values: int
    """The number of values, nulls included, plus one for each empty list."""
    uncompressed_bytes: int
    text_bytes: int | None
    """The bytes of all texts; None for other types, and where the writer has not counted them."""
    encodings: frozenset[int]
    """How its pages are encoded, in the numbers of the format."""

    @property
    def tells_text_bytes(self) -> bool:
        """Whether texts take no more bytes than `uncompressed_bytes` and `text_bytes` say.

        Of texts without the bytes that they begin with alike, `text_bytes` is that of what is left.
        """
        if PREFIX_ENCODING in self.encodings:
            return False
        return self.text_bytes is not None or not self.encodings & DICTIONARY_ENCODINGS


def read_column_chunks(path: str, num_row_groups: int, num_leaves: int) -> list[list[ColumnChunk]]:
    """The column chunks of each row group; ProviderError for a damaged footer, or another number of them."""
    try:
        groups = [
            [_chunk(column[_COLUMN_METADATA]) for column in group[_COLUMNS]]
            for group in read_struct(_footer(path)).get(_ROW_GROUPS, [])
        ]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ProviderError(f"{path} has a damaged footer: {type(error).__name__}: {error}") from error
    if len(groups) != num_row_groups or any(len(group) != num_leaves for group in groups):
        raise ProviderError(
            f"{path} has a damaged footer: not every one of its {num_row_groups} row groups has {num_leaves} columns"
        )
    return groups


def _footer(path: str) -> bytes:
    with open(path, "rb") as file:
        file.seek(-_TAIL, os.SEEK_END)
        size = int.from_bytes(file.read(4), "little")
        file.seek(-_TAIL - size, os.SEEK_END)
        return file.read(size)


def _chunk(metadata: dict[int, Any]) -> ColumnChunk:
    sizes = metadata.get(_SIZE_STATISTICS, {})
    for count in sizes.get(_DEFINITION_LEVELS, ()):
        _count(count)  # not used here, but one that is negative shows that the footer is damaged
    text_bytes = sizes.get(_TEXT_BYTES)
    return ColumnChunk(
        _count(metadata[_NUM_VALUES]),
        _count(metadata[_UNCOMPRESSED_BYTES]),
        None if text_bytes is None else _count(text_bytes),
        frozenset(map(int, metadata.get(_ENCODINGS, ()))),
    )


def _count(number: Any) -> int:
    if not isinstance(number, int) or not 0 <= number < 2**63:
        raise ValueError(f"found {number!r}, expected a count")
    return number
