"""Conversion of keys to the ids of a vocabulary (`seqflow.Vocabulary`)."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpIndexError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.keys import find_keys
from seqflow.ops.shared.vocabulary_table import VocabularyTable, read_table
from seqflow.registry import op

OnUnknown = Literal["zero", "raise"]
"""Treatment of a key that the vocabulary does not have: give id 0, or raise OpIndexError."""


@op(
    "int ids[N, *i], uint8 vocabulary[K] -> int64 encoded[N, *i]",
    caffe2="IndexGet, IndexLoad, IndexFreeze, IndexStore, IndexSize",
)
def encode(ids: Array, vocabulary: Array, *, on_unknown: OnUnknown = "zero") -> Array:
    """Return the id of each key in a vocabulary of integers: 1, 2, 3, … in its order, 0 for unknown keys.

    `vocabulary` is a `seqflow.Vocabulary` or its `table`; in a net it is a constant. With `on_unknown="raise"` an
    unknown key is an error that names it.

    >>> import seqflow as sf
    >>> encode(np.array([700, 30, 5]), sf.Vocabulary([30, 700]).freeze())
    array([2, 1, 0])
    """
    encoded = find_keys(_table(vocabulary, "integers").slots, ids)
    if on_unknown == "raise":
        _refuse_unknown("ids", encoded, lambda i: ids.ravel()[i])
    return encoded


@op("uint8 data[sum(lengths)], lengths[B], uint8 vocabulary[K] -> int64 encoded[B]")
def encode_strings(
    data: Array, lengths: Array, vocabulary: Array, *, on_unknown: OnUnknown = "zero"
) -> Array:
    """Return the id of each string in a vocabulary of strings: 1, 2, 3, … in its order, 0 for unknown strings.

    Strings are compared byte by byte; the empty string is a key like any other key. `vocabulary` is a
    `seqflow.Vocabulary` or its `table`; in a net it is a constant. With `on_unknown="raise"` an unknown string is an
    error that names it.

    Words of a list are those with an id above 0: `lengths_sum(encode_strings(words, n, listed) > 0, counts)` counts
    them in each text.

    >>> import seqflow as sf
    >>> data, lengths = np.frombuffer(b"osrenumpy", np.uint8), np.array([2, 2, 5])
    >>> encode_strings(data, lengths, sf.Vocabulary(["re", "os"]).freeze())
    array([2, 1, 0])
    """
    table = _table(vocabulary, "strings")
    encoded = kernels.find_strings(table.slots, table.offsets, table.text, data, lengths)
    if on_unknown == "raise":
        ends = np.cumsum(lengths, dtype=np.int64)
        _refuse_unknown("strings", encoded, lambda i: data[ends[i] - lengths[i] : ends[i]].tobytes())
    return encoded


def _table(vocabulary: Array, keys: str) -> VocabularyTable:
    table = read_table(vocabulary)
    if table.keys not in (keys, ""):
        op = "encode" if table.keys == "integers" else "encode_strings"
        raise OpTypeError(f"vocabulary has {table.keys} as keys, expected {keys}\n  `{op}` takes it")
    return table


def _refuse_unknown(argument: str, encoded: Array, key_at: Callable[[int], Any]) -> None:
    unknown = encoded.ravel() == 0
    if unknown.any():
        i = int(np.argmax(unknown))
        raise OpIndexError(f"{argument}[{i}] = {key_at(i)} is not in the vocabulary")
