"""Find distinct ids; group rows by id, and sum them by id."""

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, rows
from seqflow.kernels.checks import check_same_size, check_sum, checked_indices
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, FLOATS
from seqflow.kernels.memory import check_memory

__all__ = ["add_by_id", "distinct_ids", "group_rows", "scatter_segments"]


@kernel(ids=COUNTS)
def distinct_ids(ids: Array) -> tuple[Array, Array, Array]:
    """ids[N] -> int64 first[U], int64 codes[N], int64 counts[U], for U different ids in ascending order.

    `first` is the first position of each different id, `codes` the index of each id among them, `counts` their
    frequencies.
    """
    ids = int64_counts(ids, "ids")
    _, first, codes, counts = np.unique(ids, return_index=True, return_inverse=True, return_counts=True)
    return first, codes.reshape(-1), counts


@kernel(ids=COUNTS)
def group_rows(ids: Array, num_groups: int) -> tuple[Array, Array]:
    """Return the rows of each id, one id after another: ids[N] -> int64 order[N], int64 sizes[num_groups].

    Rows of one id keep their order. Raises KernelError for an id outside [0, num_groups).
    """
    ids = int64_counts(ids, "ids")
    check_memory((num_groups,), ids.dtype)
    checked_indices(ids, num_groups, False, None, "ids")
    return np.argsort(ids, kind="stable"), np.bincount(ids, minlength=num_groups)


@kernel(data=FLOATS, ids=COUNTS)
def add_by_id(data: Array, ids: Array, num_groups: int, counted: bool) -> tuple[Array, Array]:
    """Return the sum of the elements of each id, and their number if `counted`.

    data[N], ids[N] -> float64 sums[num_groups], int64 sizes[num_groups]; sizes[0] unless `counted`.

    Raises KernelError for an id outside [0, num_groups).
    """
    ids = int64_counts(ids, "ids")
    check_memory((num_groups,), ids.dtype)
    check_same_size(data=data, ids=ids)
    checked_indices(ids, num_groups, False, None, "ids")
    with np.errstate(all="ignore"):
        sums = np.bincount(ids, data, num_groups).astype(np.float64, copy=False)
    return sums, np.bincount(ids[: len(ids) if counted else 0], minlength=num_groups if counted else 0)


@kernel(data=FLOATS, indices=COUNTS, lengths=COUNTS, weights=FLOATS)
def scatter_segments(
    data: Array,
    indices: Array,
    lengths: Array,
    weights: Array | None,
    num_rows: int,
    ignore_index: int | None = None,
) -> Array:
    """Add the row of each segment, times a weight, to the rows of a table given by its indices.

    data[B, *d], indices[sum(lengths)], lengths[B], weights[sum(lengths)] or None -> sums[num_rows, *d], in the dtype
    of `data`. Rows are added in this order, in float64 (unless there are only a few), and cast once. An index equal
    to `ignore_index` is skipped; any other index outside [0, num_rows) is a KernelError.
    """
    data, indices = rows(data, "data"), int64_counts(indices, "indices")
    lengths = int64_counts(lengths, "lengths")
    check_memory((num_rows, *data.shape[1:]), data.dtype)
    check_same_size(data=data, lengths=lengths)
    check_sum(lengths, len(indices), "indices")
    picked, used = checked_indices(indices, num_rows, False, ignore_index)
    wide = np.result_type(data.dtype, np.float64)
    added = np.repeat(data.astype(wide, copy=False), lengths, axis=0)
    sums = np.zeros((num_rows, *data.shape[1:]), wide)
    with np.errstate(all="ignore"):
        if weights is not None:
            check_same_size(weights=weights, indices=indices)
            added = added * weights.astype(wide, copy=False).reshape(-1, *[1] * (data.ndim - 1))
        # not `sums[indices] += …`: repeated indices must all be added
        np.add.at(sums, picked[used], added[used])
        return sums.astype(data.dtype, copy=False)
