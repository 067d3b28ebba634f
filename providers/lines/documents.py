"""JSON that is not written in lines, one array or objects over several lines, shown with one row in each line."""

import json
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from seqflow.record.record import Tensor

Layout: TypeAlias = Literal["", "array", "objects"]
"""Form of a file: a row in each line, the elements of one array, or objects with newlines inside."""
_BOM, _BLANKS = b"\xef\xbb\xbf", b" \t\r\n"
_HEAD, _LARGEST = 4 << 10, 64 << 20
"""First bytes, which mostly show that a file has lines, and most bytes that are searched for the end of an object."""
_QUOTE, _BACKSLASH, _COMMA, _NEWLINE, _BLANK, _OPEN, _CLOSE = b'"\\,\n {}'


def layout_of(head: Callable[[int], bytes], last: Callable[[], bytes]) -> Layout:
    """Return the layout of a file; `head` returns so many first bytes, `last` the last letter that is not blank."""
    content = head(_HEAD).removeprefix(_BOM).lstrip(_BLANKS)
    if content[:1] == b"[":
        return "array" if last() == b"]" else ""
    first, newline, _ = content.partition(b"\n")
    # no line that ends otherwise is the start of an object, but it may be malformed
    if content[:1] != b"{" or not newline or first.rstrip(_BLANKS)[-1:] not in b"{[,:":
        return ""
    size = _HEAD
    while size < _LARGEST:
        size *= 4
        content = head(size).removeprefix(_BOM).lstrip(_BLANKS) + b"\n"
        row, newline, _ = RowFinder("objects", at_start=True)(content).partition(b"\n")
        if newline or len(content) < size // 2:
            try:
                return "objects" if isinstance(json.loads(row), dict) else ""
            except (ValueError, RecursionError):
                return ""
    return ""


class RowFinder:
    """Function that is called with one piece of a file after another, from the start of the file or of a row.

    It returns the piece with newlines only at the ends of rows: in place of the commas of an array and of its closing
    bracket. All positions stay the same. A comma without a value before it stays, which makes the next row malformed,
    and a newline inside a text becomes another control letter.
    """

    def __init__(self, layout: Layout, *, at_start: bool) -> None:
        self._is_array = layout == "array"
        self._depth = -1 if self._is_array and at_start else 0
        self._odd_quotes = self._odd_backslashes = self._is_ended = self._is_filled = False
        self._has_rows = not at_start

    @property
    def is_whole(self) -> bool:
        """Whether all brackets and quotes so far are closed."""
        return self._is_ended if self._is_array else not self._depth and not self._odd_quotes

    def __call__(self, piece: bytes) -> bytes:
        if not piece:
            return piece
        data = np.frombuffer(piece, np.uint8)
        inside = np.zeros(len(data), np.uint8)
        inside[self._quotes(data)] = 1
        # 8 bits may overflow: only the lowest counts
        outside = (np.cumsum(inside, dtype=np.uint8) + np.uint8(self._odd_quotes)) & 1 == 0
        letters = data | 0x20  # joins [ with {, and ] with }
        opens, closes = (letters == _OPEN) & outside, (letters == _CLOSE) & outside
        depths = self._depth + np.cumsum(opens.astype(np.int8) - closes, dtype=np.int64)
        found, newlines = data.copy(), data == _NEWLINE
        found[newlines] = np.where(outside[newlines], _BLANK, 1)
        if not self._is_array:
            found[newlines & outside & (depths <= 0)] = _NEWLINE
        elif not self._is_ended:
            if self._depth < 0 and opens.any():
                found[np.argmax(opens)] = _BLANK
            commas = np.flatnonzero((data == _COMMA) & outside & (depths == 0))
            found[self._ends(found, commas, np.flatnonzero(closes & (depths < 0))[:1])] = _NEWLINE
        self._odd_quotes, self._depth = not outside[-1], int(depths[-1])
        return found.tobytes()

    def _quotes(self, data: Tensor) -> Tensor:
        """Return the positions of the quotes that no backslash escapes."""
        quotes, backslashes = np.flatnonzero(data == _QUOTE), data == _BACKSLASH
        if not self._odd_backslashes and not backslashes.any():
            return quotes
        # an even number of backslashes before a quote escape each other
        others = np.concatenate([[-1 - self._odd_backslashes], np.flatnonzero(~backslashes)])
        before = quotes - 1 - others[np.searchsorted(others, quotes) - 1]
        self._odd_backslashes = bool((len(data) - 1 - others[-1]) % 2)
        unescaped: Tensor = quotes[before % 2 == 0]
        return unescaped

    def _ends(self, data: Tensor, commas: Tensor, closing: Tensor) -> Tensor:
        """Return which commas of an array, and its closing bracket if it is found, have a value before them."""
        if len(closing):
            self._is_ended, commas = True, commas[commas < closing[0]]
        ends = np.concatenate([commas, closing])
        letters = np.cumsum(data > _BLANK, dtype=np.int64)
        if not len(ends):
            self._is_filled |= bool(letters[-1])
            return ends
        is_filled = np.diff(letters[ends], prepend=0) > 1
        is_filled[0] |= self._is_filled
        if len(closing) and not len(commas) and not self._has_rows:
            is_filled[0] = True  # an array without elements
        self._is_filled, self._has_rows = bool(letters[-1] > letters[ends[-1]]), True
        filled: Tensor = ends[is_filled]
        return filled
