"""Equal values: distinct values, duplicates, positions of a value, and merged lists of ids."""

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.joining import concat_sequences
from seqflow.ops.ordering import unique_within
from seqflow.ops.shared.comparable import as_integers
from seqflow.ops.shared.indices import indices_below
from seqflow.registry import MovedRows, NoDerivative, op


@op(
    "ordered x[N] -> unique[U], index(U) inverse[N], int64 counts[U], U <= N, sum(counts) <= N",
    caffe2="Unique",
    grad=NoDerivative("it picks by value"),
)
def unique(x: Array) -> tuple[Array, Array, Array]:
    """Return the distinct values in ascending order, the index of each element among them, and their counts.

    `unique[inverse]` is `x`. All NaN are one value, and all NaT are one value; they come last.

    >>> unique(np.array([30, 10, 30]))
    UniqueResult(unique=array([10, 30]), inverse=array([1, 0, 1]), counts=array([1, 2]))
    """
    first, inverse, counts = kernels.distinct_ids(as_integers(x))
    return kernels.gather(x, first), inverse, counts


@op("ordered x[N] -> index(N) positions[D], D <= N", caffe2="FindDuplicateElements")
def find_duplicates(x: Array) -> Array:
    """Return the positions of values that have occurred before, in ascending order. NaN is equal to NaN.

    >>> find_duplicates(np.array([3, 5, 3, 3]))
    array([2, 3])
    """
    repeated = np.ones(len(x), bool)
    repeated[kernels.distinct_ids(as_integers(x))[0]] = False
    return np.flatnonzero(repeated)


@op(
    "ordered x[N], like(x) queries[M, *i] -> index(N) positions[M, *i] <= maximum(N-1, missing)",
    caffe2="Find",
)
def find(x: Array, queries: Array, *, missing: int = -1) -> Array:
    """Return the position in `x` of each of `queries`: the last one of equal elements, `missing` if there is none.

    NaN is equal to NaN.

    >>> find(np.array([7, 5, 7]), np.array([5, 7, 9]))
    array([ 1,  2, -1])
    """
    values, wanted = as_integers(x), as_integers(queries.reshape(-1))
    order = np.argsort(values, kind="stable")
    values = values[order]
    after = np.searchsorted(values, wanted, side="right")
    found = np.flatnonzero(after > 0)
    found = found[values[after[found] - 1] == wanted[found]]
    positions = np.full(len(wanted), missing, np.int64)
    # the order is stable: just before `after` is the last of equal elements
    positions[found] = order[after[found] - 1]
    return positions.reshape(queries.shape)


@op("ordered data[N, *i], like(data) values[K] -> bool found[N, *i]")
def isin(data: Array, values: Array, *, invert: bool = False) -> Array:
    """Return whether each element is one of `values`, a list for all rows; NaN is equal to NaN.

    With `invert`, whether it is none of them, as in `np.isin`. For a list for each row see `isin_within`. Texts are
    compared by hashes: `hash_text` gives them.

    >>> isin(np.array([7, 5, 9]), np.array([5, 7]))
    array([ True,  True, False])
    """
    return np.isin(as_integers(data), as_integers(values), invert=invert)


@op(
    "ordered data[sum(lengths)], lengths[B], like(data) other[sum(other_lengths)], lens other_lengths[B]"
    " -> bool found[sum(lengths)]",
)
def isin_within(
    data: Array, lengths: Array, other: Array, other_lengths: Array, *, invert: bool = False
) -> Array:
    """Return whether each value is among those of the other column in the same row; NaN is equal to NaN.

    All are false if the other sequence is empty; an empty sequence stays empty. `invert` asks whether it is none of
    them. The dtypes must be equal; texts are compared by their hashes (`hash_text`). For their Jaccard index see
    `jaccard`. Sets of two columns are recipes:

        intersection   unique_within(*mask_sequences(p, isin_within(p, n, q, m), n), order="first")
        difference     the same of isin_within(p, n, q, m, invert=True)
        union          unique_within(*concat_sequences([p, q], [n, m]), order="first")
        has any of     lengths_any(isin_within(q, m, p, n), m); with lengths_all and empty=True, has all of
        later key wins mask_sequences(p, isin_within(p, n, q, m, invert=True), n), then concat_sequences with q

    >>> isin_within(np.array([1, 2, 3, 1]), np.array([3, 1]), np.array([4, 2, 1]), np.array([2, 1]))
    array([False,  True, False,  True])
    """
    found = kernels.isin_within(as_integers(data), lengths, as_integers(other), other_lengths)
    return ~found if invert else found


@op(
    "data[N, *d], index(N) indices[K] -> rows[M, *d], M <= N",
    caffe2="RemoveDataBlocks",
    depends={"M": "indices"},
    grad=MovedRows(),
)
def remove_rows(data: Array, indices: Array) -> Array:
    """Return all rows except those at `indices`, in their order; an index may repeat.

    >>> remove_rows(np.array([10, 20, 30]), np.array([1, 1]))
    array([10, 30])
    """
    kept = np.ones(len(data), bool)
    kept[indices_below("indices", indices, len(data))] = False
    return kernels.gather(data, np.flatnonzero(kept))


@op(
    "{like(data) data[sum(lengths)], lengths[B]}+"
    " -> values[sum(lengths')], int64 lengths'[B] <= add(*lengths)",
    caffe2="MergeIdLists",
    grad=NoDerivative("it picks by value"),
)
def merge_id_lists(data: list[Array], lengths: list[Array]) -> tuple[Array, Array]:
    """Merge list i of every input into one: its distinct ids, in ascending order.

    Duplicates are also dropped from a single input. All data have one dtype. An empty list adds nothing.

    >>> merge_id_lists([np.array([3, 1, 7]), np.array([1, 2])], [np.array([2, 1]), np.array([2, 0])])
    MergeIdListsResult(values=array([1, 2, 3, 7]), lengths=array([3, 1]))
    """
    joined = concat_sequences(data, lengths)
    values, kept, _ = unique_within(*joined)
    return values, kept
