"""Choose the Parquet encoding of each column by an estimate of bits per value, made from a sample."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

SAMPLE = 1 << 16
_RUN = 8
"""Parquet's run-length hybrid writes this many or more equal values as a run."""
_MINIBLOCK = 32

Integers = np.ndarray[Any, np.dtype[Any]]


def choose_encodings(table: pa.Table) -> dict[str, str]:
    """Return the encoding of each leaf column, by its Parquet path: DELTA_BINARY_PACKED or RLE_DICTIONARY.

    Integers that mostly count up take few bits as differences: position ids, row numbers, times. All other columns
    get Parquet's default, a dictionary; the writer changes to plain values when the dictionary grows too large.
    """
    return {
        path: "DELTA_BINARY_PACKED" if _suits_delta(leaf) else "RLE_DICTIONARY"
        for column in table.schema.names
        for path, leaf in _leaves(column, table.column(column).combine_chunks())
    }


def _suits_delta(leaf: pa.Array) -> bool:
    if not types.is_integer(leaf.type):
        return False
    sample = np.asarray(leaf.slice(0, SAMPLE).drop_null())
    return len(sample) > 0 and delta_bits(sample) < dictionary_bits(sample, len(leaf))


def delta_bits(values: Integers) -> float:
    """Return bits per value as DELTA_BINARY_PACKED: blocks of 128 differences, packed in miniblocks of 32.

    >>> delta_bits(np.arange(1024)) < 1
    True
    """
    deltas = np.diff(values.astype(np.int64))
    if not len(deltas):
        return float(values.itemsize * 8)
    # the format stores differences minus the smallest one of the block; each miniblock has its own width
    blocks = np.resize(deltas, (-(-len(deltas) // 128), 4, _MINIBLOCK)).astype(np.float64)
    spans = blocks.max(axis=2) - blocks.min(axis=(1, 2))[:, None]
    widths = np.ceil(np.log2(np.maximum(spans, 0) + 1))
    # header of a block: a byte of width for each of 4 miniblocks, and the smallest difference, taken as 2 bytes
    header = 4 * 8 + 16
    return float(widths.mean() + header / 128)


def dictionary_bits(values: Integers, count: int) -> float:
    """Return bits per value as a dictionary index in the run-length hybrid, for a dictionary that `count` values
    share.

    >>> dictionary_bits(np.zeros(1024, np.int32), 1024) < 1
    True
    """
    distinct = len(np.unique(values))
    width = int(distinct - 1).bit_length()
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    runs = np.diff(np.append(starts, len(values)))
    long = runs[runs >= _RUN]
    packed = (len(values) - int(long.sum())) * width
    # a run is a header (a byte, if it is short) and the index in whole bytes
    repeated = len(long) * (8 + 8 * -(-width // 8))
    return (packed + repeated) / len(values) + distinct * values.itemsize * 8 / count


def _leaves(path: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield the primitive arrays inside an array, with their Parquet paths."""
    kind = array.type
    if types.is_struct(kind):
        for i, child in enumerate(array.flatten()):
            yield from _leaves(f"{path}.{kind.field(i).name}", child)
    elif types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", array.keys)
        yield from _leaves(f"{path}.key_value.value", array.items)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        yield from _leaves(f"{path}.list.element", array.flatten())
    else:
        yield path, array
