"""Distinct integers: first occurrences, inverse indices and counts."""

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS

__all__ = ["distinct_ids"]


@kernel(ids=COUNTS)
def distinct_ids(ids: Array) -> tuple[Array, Array, Array]:
    """ids[N] -> int64 first[U], int64 codes[N], int64 counts[U], for U different ids in ascending order.

    `first` is the first position of each different id, `codes` the index of each id among them, `counts` their
    frequencies.
    """
    ids = int64_counts(ids, "ids")
    _, first, codes, counts = np.unique(ids, return_index=True, return_inverse=True, return_counts=True)
    return first, codes.reshape(-1), counts
