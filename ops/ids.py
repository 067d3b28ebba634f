"""Which values are the same: distinct ones, duplicates, where a value is found, and lists of ids merged."""

from typing import TYPE_CHECKING

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.joining import concat_sequences
from seqflow.ops.ordering import unique_within
from seqflow.ops.shared.bounds import indices_below as bound_indices
from seqflow.ops.shared.indices import indices_below
from seqflow.registry import op

if TYPE_CHECKING:
    from seqflow.shape import InferenceContext


def _bound_distinct(ctx: "InferenceContext") -> None:
    count = ctx.dim(ctx.input("x"), 0)
    for i in (0, 2):
        ctx.limit(ctx.dim(ctx.output(i), 0), count)
    ctx.limit(ctx.sum_of("counts"), count)
    bound_indices(ctx, "inverse", count)


@op(
    "ordered x[N] -> unique[U], index(U) inverse[N], int64 counts[U]",
    caffe2="Unique",
    shape=_bound_distinct,
)
def unique(x: Array) -> tuple[Array, Array, Array]:
    """The distinct values in ascending order, which of them each element is, and how often each occurs.

    So `unique[inverse]` is `x`. All NaN are one value, and so are all NaT; they come last.

    >>> unique(np.array([30, 10, 30]))
    UniqueResult(unique=array([10, 30]), inverse=array([1, 0, 1]), counts=array([1, 2]))
    """
    first, inverse, counts = kernels.distinct_ids(_as_integers(x))
    return kernels.gather(x, first), inverse, counts


def _bound_positions(ctx: "InferenceContext") -> None:
    count = ctx.dim(ctx.input("x"), 0)
    ctx.limit(ctx.dim(ctx.output(0), 0), count)
    bound_indices(ctx, "positions", count)


@op(
    "ordered x[N] -> index(N) positions[D]",
    caffe2="FindDuplicateElements",
    shape=_bound_positions,
)
def find_duplicates(x: Array) -> Array:
    """Where a value occurs that has occurred before, in ascending order. NaN is the same as NaN.

    >>> find_duplicates(np.array([3, 5, 3, 3]))
    array([2, 3])
    """
    repeated = np.ones(len(x), bool)
    repeated[kernels.distinct_ids(_as_integers(x))[0]] = False
    return np.flatnonzero(repeated)


def _bound_found(ctx: "InferenceContext") -> None:
    most = ctx.equalities.resolve(ctx.dim(ctx.input("x"), 0)).max_length
    if most is not None:
        ctx.limit(ctx.max_of("positions"), max(most - 1, ctx.attr("missing"), 0))


@op(
    "ordered x[N], like(x) queries[M, *i] -> index(N) positions[M, *i]",
    caffe2="Find",
    shape=_bound_found,
)
def find(x: Array, queries: Array, *, missing: int = -1) -> Array:
    """Where each of `queries` stands in `x`: of equal elements the last one; `missing` where there is none.

    NaN is found where there is NaN.

    >>> find(np.array([7, 5, 7]), np.array([5, 7, 9]))
    array([ 1,  2, -1])
    """
    values, wanted = _as_integers(x), _as_integers(queries.reshape(-1))
    order = np.argsort(values, kind="stable")
    values = values[order]
    behind = np.searchsorted(values, wanted, side="right")
    found = np.flatnonzero(behind > 0)
    found = found[values[behind[found] - 1] == wanted[found]]
    positions = np.full(len(wanted), missing, np.int64)
    positions[found] = order[behind[found] - 1]
    return positions.reshape(queries.shape)


def _bound_left(ctx: "InferenceContext") -> None:
    ctx.limit(ctx.dim(ctx.output(0), 0), ctx.dim(ctx.input("data"), 0))


@op(
    "data[N, *d], index(N) indices[K] -> rows[M, *d]",
    caffe2="RemoveDataBlocks",
    shape=_bound_left,
)
def remove_rows(data: Array, indices: Array) -> Array:
    """All rows but those at `indices`, in the order they have; an index may repeat.

    >>> remove_rows(np.array([10, 20, 30]), np.array([1, 1]))
    array([10, 30])
    """
    kept = np.ones(len(data), bool)
    kept[indices_below("indices", indices, len(data))] = False
    return kernels.gather(data, np.flatnonzero(kept))


def _infer_merged(ctx: "InferenceContext") -> None:
    parts = range(len(ctx.inputs("lengths")))
    ctx.limit(ctx.max_of("lengths'"), sum(ctx.max_of(f"lengths[{i}]") for i in parts))
    ctx.limit(ctx.sum_of("lengths'"), sum(ctx.sum_of(f"lengths[{i}]") for i in parts))


@op(
    "{like(data) data[sum(lengths)], lengths[B]}+ -> values[sum(lengths')], int64 lengths'[B]",
    caffe2="MergeIdLists",
    shape=_infer_merged,
)
def merge_id_lists(data: list[Array], lengths: list[Array]) -> tuple[Array, Array]:
    """Merge list i of every input into one: its distinct ids, in ascending order.

    Of a single input, too, duplicates are dropped. All data have one dtype. An empty list adds nothing.

    >>> merge_id_lists([np.array([3, 1, 7]), np.array([1, 2])], [np.array([2, 1]), np.array([2, 0])])
    MergeIdListsResult(values=array([1, 2, 3, 7]), lengths=array([3, 1]))
    """
    joined = concat_sequences(data, lengths)
    values, kept, _ = unique_within(*joined)
    return values, kept


def _as_integers(x: Array) -> Array:
    """Integers in the same order, equal where the values are: NaN and NaT are one value each, above all else."""
    if x.dtype.kind == "f":
        wide = x.astype(np.float64)
        wide += 0.0  # -0.0 is 0.0
        wide[np.isnan(wide)] = np.nan
        bits = wide.view(np.int64)
        return bits ^ ((bits >> 63) & _MOST)
    if x.dtype.kind in "mM":
        return x.view(np.int64) - np.int64(1)  # NaT, the smallest, becomes the largest
    return (
        x.astype(np.uint64).view(np.int64) ^ ~_MOST
        if x.dtype == np.uint64
        else x.astype(np.int64, copy=False)
    )


_MOST = np.int64(2**63 - 1)
