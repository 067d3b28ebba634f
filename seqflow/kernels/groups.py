"""From an id for each row to rows group by group."""

# mypy: disable-error-code="no-any-return"

from seqflow.kernels import choice
from seqflow.kernels.arrays import Array


def group_rows(ids: Array, num_groups: int) -> tuple[Array, Array]:
    """The rows of each id, one id after another: ids[N] -> int64 order[N], int64 sizes[num_groups].

    Rows of one id keep their order. An id outside [0, num_groups) is a KernelError.
    """
    return choice.chosen.group_rows(ids, num_groups)
