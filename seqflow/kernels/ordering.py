"""Order inside segments: sorting, the largest k, where the largest is.

One order for all of them: numbers by size, NaN and NaT above everything else, ties by position. (So NaN is last in
ascending order, as in NumPy, and first in descending order, as in torch.)
"""

# mypy: disable-error-code="no-any-return"

from seqflow.kernels import choice
from seqflow.kernels.arrays import Array


def sort_within(data: Array, lengths: Array, descending: bool = False) -> Array:
    """The rows of each segment sorted, every column by itself: data[sum(lengths), *d] -> sorted[sum(lengths), *d]."""
    return choice.chosen.sort_within(data, lengths, descending)


def argsort_within(data: Array, lengths: Array, descending: bool = False) -> Array:
    """Where the sorted rows come from: int64 positions[sum(lengths), *d], each counted inside its segment.

    Stable: equal elements keep their order, in descending order too.
    """
    return choice.chosen.argsort_within(data, lengths, descending)


def segment_topk(data: Array, lengths: Array, k: int) -> tuple[Array, Array]:
    """The k largest of each segment: data[sum(lengths)] -> values[B, k], int64 positions[B, k] inside the segment.

    In descending order. Where a segment has fewer, values are 0 and positions -1.
    """
    return choice.chosen.segment_topk(data, lengths, k)


def segment_arg(kind: str, data: Array, lengths: Array) -> Array:
    """Where in each segment the "max" or the "min" is first met: data[sum(lengths), *d] -> int64 positions[B, *d].

    NaN and NaT count as found, as in `np.argmax`. An empty segment gives -1.
    """
    return choice.chosen.segment_arg(kind, data, lengths)
