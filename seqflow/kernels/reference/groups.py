"""From an id for each row to rows group by group, in NumPy."""

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.reference.checks import checked_indices, counts


def group_rows(ids: Array, num_groups: int) -> tuple[Array, Array]:
    ids = counts(ids, "ids")
    checked_indices(ids, num_groups, False, None, "ids")
    return np.argsort(ids, kind="stable"), np.bincount(ids, minlength=num_groups)
