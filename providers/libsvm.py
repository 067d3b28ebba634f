"""Files of libsvm and svmlight: a label, perhaps a query, and index:value pairs in each line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.kernels.fields import parse_integers
from seqflow.providers.libsvm_tokens import Tokens
from seqflow.providers.line_faults import Malformed
from seqflow.providers.lines import first_sample, open_lines
from seqflow.providers.numerals import parse_floats
from seqflow.providers.provider import Provider
from seqflow.record.buffers import buffer_of, offsets_of, validity
from seqflow.record.record import Tensor
from seqflow.record.selection import Rename

_LABEL = pa.field("label", pa.float64(), nullable=False)
_QID = pa.field("qid", pa.int64(), nullable=False)
_FEATURES = pa.field("features", pa.map_(pa.int64(), pa.field("value", pa.float32(), nullable=False)))


def open_libsvm(
    paths: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    rename: Rename | None = None,
    one_based: bool = False,
    batch_bytes: int | None = None,
) -> Provider:
    """A provider of lines `label index:value …`: columns `label` and `features`, a map from index to value.

    There is a column `qid` where the first row has one after its label; then all rows must. With `one_based` the
    file counts indices from 1, and the map from 0. What follows a `#` is a comment.
    """
    _, lines = first_sample(paths, _words)
    first = next(filter(None, map(_words, lines)), [])
    has_qid = len(first) > 1 and first[1].startswith(b"qid:")
    return open_lines(paths, LibsvmFormat(has_qid, one_based), columns, rename, batch_bytes)


def _words(line: bytes) -> list[bytes]:
    """The words of a line before its comment."""
    return line.partition(b"#")[0].split()


@dataclass(frozen=True, slots=True)
class LibsvmFormat:
    """Parses lines of libsvm; see LineFormat."""

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
        """Any lines: those that are malformed are found, too."""
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
        """The number of each row's query, and which tokens are the word `qid` after a label."""
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
