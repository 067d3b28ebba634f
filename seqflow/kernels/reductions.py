"""Reducing the rows of each segment."""

# mypy: disable-error-code="no-any-return"

from typing import Any

from seqflow.kernels import choice
from seqflow.kernels.arrays import Array


def segment_reduce(kind: str, data: Array, lengths: Array, empty: Any = 0) -> Array:
    """Reduce the rows of each segment: data[sum(lengths), *d], lengths[B] -> out[B, *d].

    kind is "sum" or "prod" (dtype: `sum_dtype`), "mean" (`mean_dtype`), "max" or "min" (the dtype of data; NaN and
    NaT win). An empty segment gives `empty`, a scalar of the result's dtype. Floats are added up in blocks and
    in float64; integers wrap around, as in NumPy.
    """
    return choice.chosen.segment_reduce(kind, data, lengths, empty)


def segment_variance(data: Array, lengths: Array, ddof: int = 0, empty: Any = 0) -> Array:
    """The mean squared distance from the mean of the segment: data[sum(lengths), *d], lengths[B] -> out[B, *d].

    The sum of squares is divided by `length - ddof`; a segment that is not longer than `ddof` gives `empty`. dtype:
    `mean_dtype`.
    """
    return choice.chosen.segment_variance(data, lengths, ddof, empty)


def gather_segment_reduce(
    kind: str, table: Array, indices: Array, lengths: Array, empty: Any = 0, ignore_index: int | None = None
) -> Array:
    """`segment_reduce` of gathered rows: table[R, *d], indices[sum(lengths)], lengths[B] -> out[B, *d].

    An index equal to `ignore_index` counts for nothing: not in a mean, nor is a segment of such indices
    anything but empty.
    """
    return choice.chosen.gather_segment_reduce(kind, table, indices, lengths, empty, ignore_index)
