"""Descriptions of structure: lengths as offsets, ids, ranges, positions, and back."""

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, ShapeError
from seqflow.kernels.arrays import Array, integers
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.slices import starts_of
from seqflow.registry import op
from seqflow.shape import InferenceContext
from seqflow.signature import NonNegative, Positive

MAX_INT32 = np.iinfo(np.int32).max


@op(
    "lengths[B] -> offset(sum(lengths)) offsets[B+1]",
    caffe2="LengthsToOffsets",
)
def lengths_to_offsets(lengths: Array) -> Array:
    """Return the start of each sequence, with the total at the end (Arrow's offsets, `cu_seqlens`).

    An empty sequence starts where the next one does.

    >>> lengths_to_offsets(np.array([2, 0, 1]))
    array([0, 2, 2, 3])
    """
    return kernels.lengths_to_offsets(lengths)


@op(
    "int offsets[B+1] -> int64 lengths[B], sum(lengths) <= max(offsets)",
    inverse="lengths_to_offsets",
)
def offsets_to_lengths(offsets: Array) -> Array:
    """Return the length of each sequence: the differences of neighbouring offsets.

    Offsets must not decrease. The first may be above 0, as in a slice of an Arrow array; an offset below 0 is an
    error.

    >>> offsets_to_lengths(np.array([0, 2, 2, 3]))
    array([2, 0, 1])
    """
    offsets = integers(offsets, "offsets")
    if offsets[0] < 0:
        raise LodError(f"offsets[0] is {offsets[0]}, expected 0 or more")
    falls = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(falls):
        i = falls[0]
        raise LodError(
            f"offsets[{i + 1}] is {offsets[i + 1]} but offsets[{i}] is {offsets[i]}, expected no decrease"
        )
    return np.diff(offsets).astype(np.int64, copy=False)


@op("lengths[B] -> int32 cu_seqlens[B+1] := lengths_to_offsets(lengths)")
def lengths_to_cu_seqlens(lengths: Array) -> Array:
    """Return offsets in int32, as kernels for variable-length attention take them.

    An empty sequence starts where the next one does. A total that int32 cannot hold is an error.

    >>> lengths_to_cu_seqlens(np.array([2, 0, 1]))
    array([0, 2, 2, 3], dtype=int32)
    """
    offsets = kernels.lengths_to_offsets(lengths)
    if offsets[-1] > MAX_INT32:
        i = int(np.searchsorted(offsets, MAX_INT32, side="right")) - 1
        raise LodError(f"sum(lengths) is {offsets[i + 1]} at lengths[{i}], more than int32 can hold")
    return offsets.astype(np.int32)


@op(
    "lengths[B] -> index(B) ids[sum(lengths)]",
    caffe2="LengthsToSegmentIds",
)
def lengths_to_segment_ids(lengths: Array) -> Array:
    """Return the index of each row's sequence; an empty sequence does not appear.

    >>> lengths_to_segment_ids(np.array([2, 0, 1]))
    array([0, 0, 2])
    """
    return kernels.lengths_to_segment_ids(lengths)


@op(
    "int ids[N] -> int64 lengths[num_segments|S], S <= max(ids)+1, sum(lengths) <= N",
    caffe2="SegmentIdsToLengths",
    inverse="lengths_to_segment_ids if num_segments",
    rows={"S": "groups(ids, num_segments)"},
    describes={"lengths": "N"},
)
def segment_ids_to_lengths(ids: Array, *, num_segments: NonNegative | None = None) -> Array:
    """Return the number of rows of each segment; an id that does not occur is an empty segment.

    Ids must not decrease and must not be negative. Without `num_segments` the last id is the last segment, and empty
    segments at the end are lost. An id of `num_segments` or more is an error.

    >>> segment_ids_to_lengths(np.array([0, 0, 2]), num_segments=4)
    array([2, 0, 1, 0])
    """
    return kernels.segment_ids_to_lengths(ids, num_segments)


@op(
    "lengths[B] -> offset(sum(lengths)) ranges[B, 2]",
    caffe2="LengthsToRanges",
)
def lengths_to_ranges(lengths: Array) -> Array:
    """Return the first row and the length of each sequence; an empty one starts where the next one does.

    >>> lengths_to_ranges(np.array([2, 0, 1]))
    array([[0, 2],
           [2, 0],
           [2, 1]])
    """
    return np.stack([starts_of(lengths), lengths.astype(np.int64)], axis=1)


@op(
    "int ids[N] -> offset(N) ranges[num_segments|S, 2], S <= max(ids)+1",
    caffe2="SegmentIdsToRanges",
    rows={"S": "groups(ids, num_segments)"},
)
def segment_ids_to_ranges(ids: Array, *, num_segments: NonNegative | None = None) -> Array:
    """Return the first row and the number of rows of each segment; see `segment_ids_to_lengths` for the ids.

    An empty segment starts where the next one does.

    >>> segment_ids_to_ranges(np.array([0, 0, 2]))
    array([[0, 2],
           [2, 0],
           [2, 1]])
    """
    lengths = kernels.segment_ids_to_lengths(ids, num_segments)
    return np.stack([starts_of(lengths), lengths], axis=1)


@op(
    "lengths[B] -> position(lengths) positions[sum(lengths)]",
    caffe2="LengthsRangeFill",
)
def lengths_to_positions(lengths: Array) -> Array:
    """Return the position of each row inside its sequence, from 0; an empty sequence does not appear.

    >>> lengths_to_positions(np.array([2, 0, 3]))
    array([0, 1, 0, 1, 2])
    """
    return kernels.lengths_to_positions(lengths)


@op("lengths[B] -> float32 weights[sum(lengths)]", caffe2="LengthsToWeights")
def lengths_to_weights(lengths: Array, *, power: float = 0.5) -> Array:
    """Return a weight of `1 / length**power` for each row of a sequence; an empty sequence does not appear.

    >>> lengths_to_weights(np.array([4, 0, 1]))
    array([0.5, 0.5, 0.5, 0.5, 1. ], dtype=float32)
    """
    with np.errstate(over="ignore"):
        weights = (np.maximum(lengths, 1).astype(np.float64) ** -power).astype(np.float32)
    return kernels.expand(weights, lengths)


@op("lengths[B] -> int64 shape[2]", caffe2="LengthsToShape")
def lengths_to_shape(lengths: Array) -> Array:
    """Return the shape of sequences of equal length: their number, and their length.

    Lengths that differ are an error. No sequences give `[0, 0]`; Caffe2 crashes.

    >>> lengths_to_shape(np.array([3, 3]))
    array([2, 3])
    """
    differing = np.flatnonzero(lengths != lengths[:1])
    if len(differing):
        i = differing[0]
        raise LodError(f"lengths[{i}] is {lengths[i]} but lengths[0] is {lengths[0]}, expected all equal")
    return np.array([len(lengths), lengths[0] if len(lengths) else 0], np.int64)


@op(
    "lengths[B] -> int64 parts[n*B] <= (max(lengths) + n-1)//n, sum(parts) <= sum(lengths)",
    caffe2="LengthsSplit",
)
def lengths_split(lengths: Array, *, n: Positive) -> Array:
    """Split each length into `n` lengths that add up to it: nearly equal, the larger ones first, zeros last.

    An empty sequence gives `n` zeros.

    >>> lengths_split(np.array([9, 4, 0]), n=3)
    array([3, 3, 3, 2, 1, 1, 0, 0, 0])
    """
    check_memory((len(lengths), n), np.dtype(np.int64))
    whole, over = np.divmod(lengths.astype(np.int64, copy=False)[:, None], n)
    parts: Array = (whole + (np.arange(n) < over)).reshape(-1)
    return parts


@op(
    "lens inner[sum(outer)], outer[B]"
    " -> int64 lengths[B] := lengths_sum(inner, outer) <= max(inner)*outer, sum(lengths) <= sum(inner)",
)
def collapse_lengths(inner: Array, outer: Array) -> Array:
    """Return the number of rows of each outer sequence: two levels become one. An empty outer sequence has 0 rows.

    >>> collapse_lengths(np.array([2, 0, 1]), np.array([2, 0, 1]))
    array([2, 0, 1])
    """
    return kernels.segment_reduce("sum", inner, outer).astype(np.int64, copy=False)


@op("lengths[B], lens other[B] ->", same=("lengths", "other"))
def same_lengths(lengths: Array, other: Array) -> None:
    """Declare that two columns have the same lengths, row by row: for instance tokens and their labels.

    In a net, inference then takes their rows to be the same. When the op runs, LodError names the first row with
    lengths that differ; two empty sequences are equal. It has no output.

    >>> same_lengths(np.array([2, 0, 1]), np.array([2, 0, 1]))
    """
    differing = np.flatnonzero(lengths != other)
    if len(differing):
        row = differing[0]
        raise LodError(
            f"lengths[{row}] is {lengths[row]} but other[{row}] is {other[row]}, expected the same"
        )


def _unify_rows(ctx: InferenceContext) -> None:
    ctx.merge(ctx.dim(ctx.input("data"), 0), ctx.dim(ctx.input("other"), 0))
    ctx.same_rows("data", "other")


@op("data[N, *d], other[M, *e] ->", shape=_unify_rows)
def same_rows(data: Array, other: Array) -> None:
    """Declare that row i of one tensor belongs to row i of the other, although they come from different places.

    In a net, inference then takes their rows to be the same; a constant, or an axis made from another, gets the rows
    of the other tensor. When the op runs, it can only check the number of rows. It has no output.

    >>> same_rows(np.array([1.5, 2.5]), np.array([[1, 2], [3, 4]]))
    """
    if len(data) != len(other):
        raise ShapeError(f"other has {len(other)} rows but data has {len(data)}, expected as many")
