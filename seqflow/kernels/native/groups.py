"""From an id for each row to rows group by group, in C++."""

from seqflow.kernels import _native
from seqflow.kernels.arrays import Array, counts


def group_rows(ids: Array, num_groups: int) -> tuple[Array, Array]:
    return _native.group_rows(counts(ids, "ids"), num_groups)
