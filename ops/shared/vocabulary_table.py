"""A vocabulary as one array of bytes: an input of `encode`, a constant of a net, or a mapped file.

The bytes are int64 numbers in the machine's byte order. First comes a header of 8 numbers: the mark, 0 for integer
keys or 1 for strings, the number of keys, the number of slots, the number of bytes of all strings, and three times 0.
The slots of the hash table follow (`seqflow.kernels.vocabulary`); for strings, also their offsets, and their bytes,
filled up with zeros to a multiple of 8.
"""

from typing import NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array

_HEADER = 8
_MARK = int.from_bytes(b"sfvocab1", "little")


class VocabularyTable(NamedTuple):
    """Hash table of a vocabulary; for strings also their offsets and their bytes."""

    slots: Array
    offsets: Array
    text: Array
    keys: str
    """"integers" or "strings"; "" if it has no keys."""


def table_of_integers(keys: Array) -> Array:
    """Return the table of distinct integers[K], which have the ids 1 to K."""
    slots = kernels.hash_slots(keys)
    return _joined(0, len(keys), 0, slots)


def table_of_strings(data: Array, lengths: Array) -> Array:
    """Return the table of K distinct strings, which have the ids 1 to K."""
    slots = kernels.hash_slots(kernels.words_of_strings(data, lengths))
    padded = np.zeros(_padded(len(data)), np.uint8)
    padded[: len(data)] = data
    return _joined(1, len(lengths), len(data), slots, kernels.lengths_to_offsets(lengths), padded)


def _joined(kind: int, count: int, size: int, slots: Array, *strings: Array) -> Array:
    header = np.array([_MARK, kind, count, len(slots), size, 0, 0, 0], np.int64)
    return np.concatenate([part.reshape(-1).view(np.uint8) for part in (header, slots, *strings)])


def _padded(size: int) -> int:
    return (size + 7) // 8 * 8


def read_table(table: Array) -> VocabularyTable:
    """Return the parts of a table, as views; raise OpError for bytes that are not a table."""
    table = np.require(table, requirements=["C", "A"])
    if table.ctypes.data % 8:  # "A" means aligned for bytes, which is anywhere
        table = table.copy()
    if len(table) < 8 * _HEADER:
        raise _no_table(f"{len(table)} bytes, fewer than its header has")
    mark, kind, count, num_slots, size, *rest = table[: 8 * _HEADER].view(np.int64).tolist()
    if mark != _MARK:
        raise _no_table("other bytes at its start")
    # hashes are masked to slots, so the number of slots is a power of 2
    if kind not in (0, 1) or any(rest) or min(count, num_slots, size) < 0 or num_slots & (num_slots - 1):
        raise _no_table("a damaged header")
    after_slots = 8 * _HEADER + 16 * num_slots
    after_offsets = after_slots + (8 * (count + 1) if kind else 0)
    expected = after_offsets + _padded(size)
    if num_slots == 0 or len(table) != expected:
        raise _no_table(f"{len(table)} bytes, but its header says {expected}")
    slots = table[8 * _HEADER : after_slots].view(np.int64).reshape(num_slots, 2)
    offsets = table[after_slots:after_offsets].view(np.int64)
    keys = ("integers", "strings")[kind] if count else ""
    return VocabularyTable(slots, offsets, table[after_offsets : after_offsets + size], keys)


def _no_table(found: str) -> OpError:
    return OpError(
        f"vocabulary has {found}, expected the table of a Vocabulary: pass the Vocabulary, or its .table"
    )
