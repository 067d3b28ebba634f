"""Groups rows by id, and sums them by id."""

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts
from seqflow.kernels.checks import check_same_size, checked_indices
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, FLOATS
from seqflow.kernels.memory import check_memory

__all__ = ["add_by_id", "group_rows"]


@kernel(ids=COUNTS)
def group_rows(ids: Array, num_groups: int) -> tuple[Array, Array]:
    """The rows of each id, one id after another: ids[N] -> int64 order[N], int64 sizes[num_groups].

    Rows of one id keep their order. An id outside [0, num_groups) is a KernelError.
    """
    ids = int64_counts(ids, "ids")
    check_memory((num_groups,), ids.dtype)
    checked_indices(ids, num_groups, False, None, "ids")
    return np.argsort(ids, kind="stable"), np.bincount(ids, minlength=num_groups)


@kernel(data=FLOATS, ids=COUNTS)
def add_by_id(data: Array, ids: Array, num_groups: int, counted: bool) -> tuple[Array, Array]:
    """Sums of the elements of each id, and how many there are where they are `counted`.

    data[N], ids[N] -> float64 sums[num_groups], int64 sizes[num_groups]; sizes[0] unless `counted`.

    An id outside [0, num_groups) is a KernelError.
    """
    ids = int64_counts(ids, "ids")
    check_memory((num_groups,), ids.dtype)
    check_same_size(data=data, ids=ids)
    checked_indices(ids, num_groups, False, None, "ids")
    with np.errstate(all="ignore"):
        sums = np.bincount(ids, data, num_groups).astype(np.float64, copy=False)
    return sums, np.bincount(ids[: len(ids) if counted else 0], minlength=num_groups if counted else 0)
