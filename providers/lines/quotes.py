"""Newlines inside of quotes, which do not end a row of CSV."""

from collections.abc import Callable

import numpy as np

from seqflow.errors import ProviderError
from seqflow.record.record import Tensor

_QUOTE, _RETURN, _NEWLINE = b'"\r\n'


def newline_finder(quoted: bool, odd: int = 0) -> Callable[[bytes], bytes]:
    """Return a function that is called with one piece of a file after another, from the start of a row.

    It returns the piece with other letters in place of newlines inside quotes, if these are to be found. `odd` is 1
    if the first piece begins inside quotes.
    """
    if not quoted:
        return bytes

    def shown(piece: bytes) -> bytes:
        nonlocal odd
        data = np.frombuffer(piece, np.uint8)
        inside = _inside(data, odd)
        odd = int(inside[-1]) if len(inside) else odd
        return np.where((data == _NEWLINE) & (inside == 1), 0, data).astype(np.uint8).tobytes()

    return shown


def row_ends(data: Tensor, quoted: bool) -> Tensor:
    """Return the positions of the newlines that end rows of uint8 data, which starts with a row."""
    ends = data == _NEWLINE
    return np.flatnonzero(ends & (_inside(data) == 0) if quoted else ends)


def hidden_newlines(data: Tensor, used: str) -> tuple[Tensor, bytes]:
    """Return the data with two other letters in place of newlines and carriage returns inside quotes, and these two.

    The letters are control characters that are neither in the data nor `used`: all positions stay the same. Without
    newlines inside quotes, no letters are returned.
    """
    inside = _inside(data) == 1
    inside[-1:] = False  # the last newline ends the last row, even if its quote is not closed
    breaks = [(data == letter) & inside for letter in (_NEWLINE, _RETURN)]
    if not any(one.any() for one in breaks):
        return data, b""
    taken = {*np.flatnonzero(np.bincount(data, minlength=32)).tolist(), *map(ord, used), 0, *b"\t\r\n"}
    free = [letter for letter in range(32) if letter not in taken][:2]
    if len(free) < 2:
        raise ProviderError("values with newlines can't be read next to nearly all control characters")
    found = data.copy()
    for letter, places in zip(free, breaks, strict=True):
        found[places] = letter
    return found, bytes(free)


def _inside(data: Tensor, odd: int = 0) -> Tensor:
    """uint8: 1 where the number of quotes up to a letter is odd."""
    # 8 bits may overflow: only the lowest counts
    return (np.cumsum(data == _QUOTE, dtype=np.uint8) + np.uint8(odd)) & np.uint8(1)
