"""From an id for each row to rows group by group."""

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts
from seqflow.kernels.checks import checked_indices
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS
from seqflow.kernels.memory import check_memory

__all__ = ["group_rows"]


@kernel(ids=COUNTS)
def group_rows(ids: Array, num_groups: int) -> tuple[Array, Array]:
    """The rows of each id, one id after another: ids[N] -> int64 order[N], int64 sizes[num_groups].

    Rows of one id keep their order. An id outside [0, num_groups) is a KernelError.
    """
    ids = int64_counts(ids, "ids")
    check_memory((num_groups,), ids.dtype)
    checked_indices(ids, num_groups, False, None, "ids")
    return np.argsort(ids, kind="stable"), np.bincount(ids, minlength=num_groups)
