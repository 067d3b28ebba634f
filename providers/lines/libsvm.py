"""Files of libsvm and svmlight, and their tokens: each line has a label, perhaps a query, and index:value pairs."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.kernels.files.fields import parse_integers
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.lines.line_faults import Faults, Malformed, excerpt
from seqflow.providers.lines.numerals import parse_floats
from seqflow.providers.lines.text_lines import LineFiles, LineFormat
from seqflow.providers.provider import Provider
from seqflow.record.buffers import buffer_of, offsets_of, validity
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
    """Tokens of libsvm lines: the texts between blanks, colons and newlines, without comments.

    Token t is `data[starts[t]:stops[t]]`. It is empty only next to a colon. A key has a colon after it, and the
    token after a key is its value.
    """

    data: Tensor
    starts: Tensor
    stops: Tensor
    is_key: Tensor
    rows: Tensor
    """Row of each token; a line without tokens does not count as a row."""
    first: Tensor
    """First token of each row."""
    faults: Faults = field(default_factory=Faults)

    @classmethod
    def of(cls, data: Tensor) -> "Tokens":
        """Return the tokens of whole lines. Tokens that cannot be a label or part of a pair are faults."""
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
        """Return the data, with the starts and stops of these tokens in it."""
        return self.data, self.starts[tokens], self.stops[tokens]

    def equal(self, tokens: Tensor, word: bytes) -> Tensor:
        """Return bool[K]: which of these tokens equal a word."""
        starts = self.starts[tokens]
        same: Tensor = self.stops[tokens] - starts == len(word)
        for at, letter in enumerate(word):
            same &= self.data.take(starts + at, mode="clip") == letter
        return same

    def fault(self, tokens: Tensor, column: str, expected: str) -> None:
        """Record these tokens as faults, with what is expected in their place."""
        self.faults.add(self.rows[tokens], self.starts[tokens], self.stops[tokens], column, expected)

    def malformed(self) -> Iterator[Malformed]:
        """Yield the first fault of each row that has any."""
        for row, start, _, column, expected in self.faults.first():
            first, stop = self._word(int(np.searchsorted(self.starts, start)))
            found = excerpt(self.data[first : min(stop, first + 41)].tobytes())
            yield Malformed(row, start, column, f"found {found}, expected {expected}")

    def _word(self, token: int) -> tuple[int, int]:
        """Return start and stop of the word around a token: all tokens that colons join with it."""
        first = last = token
        while first and self.is_key[first - 1] and self.starts[first] == self.stops[first - 1] + 1:
            first -= 1
        while self.is_key[last]:
            last += 1
        return int(self.starts[first]), int(self.stops[last])


def _in_comment(hashes: Tensor, lines: Tensor) -> Tensor:
    """Return which tokens, each ended by one of these breaks, come after the first hash of their line."""
    before = np.cumsum(hashes) - hashes
    first_of_line = np.flatnonzero(np.concatenate(([True], lines[1:] != lines[:-1])))
    return before > before[first_of_line][lines]


_LABEL = pa.field("label", pa.float64(), nullable=False)
_QID = pa.field("qid", pa.int64(), nullable=False)
_FEATURES = pa.field("features", pa.map_(pa.int64(), pa.field("value", pa.float32(), nullable=False)))


@file_format("libsvm")
class Libsvm(Format):
    """Options of files of libsvm and svmlight."""

    one_based: bool = False
    """True if the indices in the files count from 1."""
    batch_bytes: int | str = "4 MiB"
    """Bytes of a file that are read, and prepared, together."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of lines `label index:value …`: columns `label` and `features`, a map of index to value.

        There is a column `qid` if the first row has one after its label; then all rows must have one. With
        `one_based` the file counts indices from 1, and the map from 0. A `#` begins a comment.
        """
        opened = LineFiles.of(files)
        opened.leave_out_unreadable(_words, _check_label)
        _, lines = next(opened.samples(_words), ("", []))
        first = next(filter(None, map(_words, lines)), [])
        has_qid = len(first) > 1 and first[1].startswith(b"qid:")
        line_format = LibsvmFormat(has_qid, self.one_based)
        return opened.provider(line_format, byte_count(self.batch_bytes))


def _check_label(line: bytes) -> None:
    """Raise ValueError unless a line begins with a number."""
    (word, *_) = _words(line)
    try:
        float(word)
    except ValueError:
        raise ValueError(f"found {excerpt(word)}, expected a label, which is a number") from None


def _words(line: bytes) -> list[bytes]:
    """Return the words of a line before its comment."""
    return line.partition(b"#")[0].split()


@dataclass(frozen=True, slots=True)
class LibsvmFormat(LineFormat):
    """Parser of lines of libsvm; see LineFormat."""

    has_qid: bool
    one_based: bool
    kind: str = "libsvm"

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([_LABEL, *[_QID] * self.has_qid, _FEATURES])

    def parse(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        plain = kernels.parse_pairs(data, self.has_qid, self.one_based)
        if plain is None:
            return self._parse_any(data)
        labels, qids, ids, values, offsets = plain
        columns = [pa.array(labels), *[pa.array(qids)] * self.has_qid, _maps(ids, values, offsets, None)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema), iter(())

    def _parse_any(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        """Parse lines of which some may be malformed, and find these; slower than the kernel."""
        tokens = Tokens.of(data)
        labels = self._labels(tokens)
        qids, at_qid = self._qids(tokens)
        keys = np.flatnonzero(tokens.is_key & ~at_qid)
        ids, values = self._pairs(tokens, keys)

        bad = np.zeros(tokens.num_rows, np.bool_)
        bad[tokens.faults.rows()] = True
        rows = tokens.rows[keys]
        kept = slice(None) if not bad.any() else ~bad[rows]
        lengths = np.bincount(rows[kept], minlength=tokens.num_rows)
        columns = [
            pa.array(np.where(bad, 0, labels)),
            *[pa.array(np.where(bad, 0, qids))] * self.has_qid,
            _maps(ids[kept], values[kept], offsets_of(lengths, wide=False), bad),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema), tokens.malformed()

    def _labels(self, tokens: Tokens) -> Tensor:
        labels, wrong = parse_floats(*tokens.texts(tokens.first), pa.float64())
        tokens.fault(tokens.first[wrong], "label", "a label, which is a number")
        return labels

    def _qids(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """Return the query of each row, and which tokens are the word `qid` after a label."""
        qids = np.zeros(tokens.num_rows, np.int64)
        at = np.zeros(len(tokens.starts), np.bool_)
        if self.has_qid:
            second = tokens.first[tokens.first + 1 < len(at)] + 1
            words = second[tokens.is_key[second] & tokens.equal(second, b"qid")]
            at[words] = True
            lacking = np.ones(tokens.num_rows, np.bool_)
            lacking[tokens.rows[words]] = False
            tokens.fault(tokens.first[lacking], "qid", "a label and then qid:number, as in the first row")
            qids[tokens.rows[words]], wrong = parse_integers(*tokens.texts(words + 1))
            tokens.fault(words[wrong] + 1, "qid", "an integer as the qid")
        return qids, at

    def _pairs(self, tokens: Tokens, keys: Tensor) -> tuple[Tensor, Tensor]:
        ids, wrong = parse_integers(*tokens.texts(keys))
        tokens.fault(keys[wrong], "features", "an integer of 64 bits as the index")
        tokens.fault(keys[ids < self.one_based], "features", f"an index of at least {int(self.one_based)}")
        values, wrong = parse_floats(*tokens.texts(keys + 1), pa.float32())
        tokens.fault(keys[wrong] + 1, "features", "a number as the value")
        return ids - self.one_based, values


def _maps(keys: Tensor, values: Tensor, offsets: Tensor, nulls: Tensor | None) -> pa.Array:
    kind = _FEATURES.type
    entries = pa.StructArray.from_arrays(
        [pa.array(keys), pa.array(values)], fields=[kind.key_field, kind.item_field]
    )
    buffers = [validity(nulls), buffer_of(offsets)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers, children=[entries])
