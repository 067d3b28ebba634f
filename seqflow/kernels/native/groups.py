"""From an id for each row to rows group by group, in C++."""

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import Array, counts
from seqflow.kernels.error import MAX_INT64


def group_rows(ids: Array, num_groups: int) -> tuple[Array, Array]:
    if num_groups > MAX_INT64:
        return reference.group_rows(ids, num_groups)
    return _native.group_rows(counts(ids, "ids"), num_groups)
