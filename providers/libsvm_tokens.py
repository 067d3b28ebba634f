"""Tokens of libsvm lines: start, stop and row of each, and the faults among them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from seqflow.providers.line_faults import Faults, Malformed, excerpt
from seqflow.record.record import Tensor

_BLANK, _COLON, _HASH, _NEWLINE = 1, 2, 3, 4


def _kinds() -> Tensor:
    kinds = np.zeros(256, np.uint8)
    kinds[list(b" \t\r\v\f")] = _BLANK
    kinds[list(b":#\n")] = _COLON, _HASH, _NEWLINE
    return kinds


_KIND_OF_BYTE = _kinds()


@dataclass(slots=True)
class Tokens:
    """The tokens of libsvm lines: what lies between blanks, colons and newlines, without comments.

    Token t is `data[starts[t]:stops[t]]`. It is empty only beside a colon. A key has a colon after it, and the token
    after a key is its value.
    """

    data: Tensor
    starts: Tensor
    stops: Tensor
    is_key: Tensor
    rows: Tensor
    """The row of each token; lines without tokens are no rows."""
    first: Tensor
    """The first token of each row."""
    faults: Faults = field(default_factory=Faults)

    @classmethod
    def of(cls, data: Tensor) -> "Tokens":
        """The tokens of whole lines. Those that cannot be a label or part of a pair are faults."""
        kinds = _KIND_OF_BYTE[data]
        stops = np.flatnonzero(kinds)
        kinds = kinds[stops]
        starts = np.concatenate(([0], stops[:-1] + 1)) if len(stops) else stops
        is_key = kinds == _COLON
        is_value = np.concatenate(([False], is_key[:-1])) if len(stops) else is_key
        ends_line = kinds == _NEWLINE
        lines = np.cumsum(ends_line) - ends_line
        kept = (stops > starts) | is_key | is_value
        if (kinds == _HASH).any():
            kept &= ~_in_comment(kinds == _HASH, lines)
        starts, stops, is_key, is_value, lines = (
            each[kept] for each in (starts, stops, is_key, is_value, lines)
        )
        opens_row = np.ones(len(lines), np.bool_)
        opens_row[1:] = lines[1:] != lines[:-1]
        found = cls(data, starts, stops, is_key, np.cumsum(opens_row) - 1, np.flatnonzero(opens_row))
        found.fault(np.flatnonzero(opens_row & is_key), "label", "a label, which is a number")
        alone = ~(is_key | is_value | opens_row)
        incomplete = (is_key | is_value) & (starts == stops)
        found.fault(np.flatnonzero(alone | incomplete | (is_key & is_value)), "features", "index:value")
        return found

    @property
    def num_rows(self) -> int:
        return len(self.first)

    def texts(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The data, and where these tokens start and stop in it."""
        return self.data, self.starts[tokens], self.stops[tokens]

    def equal(self, tokens: Tensor, word: bytes) -> Tensor:
        """bool[K]: which of these tokens equal a word."""
        starts = self.starts[tokens]
        same: Tensor = self.stops[tokens] - starts == len(word)
        for at, letter in enumerate(word):
            same &= self.data.take(starts + at, mode="clip") == letter
        return same

    def fault(self, tokens: Tensor, column: str, expected: str) -> None:
        """Note that these tokens are not what is expected there."""
        self.faults.add(self.rows[tokens], self.starts[tokens], self.stops[tokens], column, expected)

    def malformed(self) -> Iterator[Malformed]:
        """The first fault of each row that has any."""
        for row, start, _, column, expected in self.faults.first():
            first, stop = self._word(int(np.searchsorted(self.starts, start)))
            found = excerpt(self.data[first : min(stop, first + 41)].tobytes())
            yield Malformed(row, start, column, f"found {found}, expected {expected}")

    def _word(self, token: int) -> tuple[int, int]:
        """Start and stop of the word around a token: all tokens that colons join with it."""
        first = last = token
        while first and self.is_key[first - 1] and self.starts[first] == self.stops[first - 1] + 1:
            first -= 1
        while self.is_key[last]:
            last += 1
        return int(self.starts[first]), int(self.stops[last])


def _in_comment(hashes: Tensor, lines: Tensor) -> Tensor:
    """Which of the tokens that these breaks end lie behind the first hash of their line."""
    before = np.cumsum(hashes) - hashes
    first_of_line = np.flatnonzero(np.concatenate(([True], lines[1:] != lines[:-1])))
    return before > before[first_of_line][lines]
