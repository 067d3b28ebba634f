"""How many elements each row of a window holds, at any level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.record import Record

if TYPE_CHECKING:
    from seqflow.loader.plans.window_rows import WindowRows


def row_sizes(rows: WindowRows, lengths: str) -> Array:
    """int64[num_rows]: the elements below each row that the lengths tensor describes.

    Lengths of a deeper level are added up: the words of all sentences of a document.
    """
    known = rows.sizes(lengths)
    if known is not None:
        return known
    parts = [_sizes(record, lengths) for record in rows.records]
    sizes = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    return sizes if rows.order is None else kernels.gather(sizes, rows.order)


def _sizes(record: Record, lengths: str) -> Array:
    sizes = record[lengths].astype(np.int64, copy=False)
    parent = record.parents[lengths]
    while parent is not None:
        sizes = kernels.segment_reduce("sum", sizes, record[parent])
        parent = record.parents[parent]
    return sizes
