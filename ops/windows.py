"""Windows around each row: n-grams, and the windows of a convolution over sequences."""

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.scalars import with_fill
from seqflow.registry import MovedRows, op
from seqflow.signature import Fill, NonNegative, Positive


@op(
    "data[sum(lengths), *d], lengths[B] -> grams[sum(lengths), n, *d]",
    grad=MovedRows(fill="fill"),
)
def ngrams(data: Array, lengths: Array, *, n: Positive, fill: Fill = 0) -> Array:
    """Return each row with the `n - 1` rows that follow it in its sequence, and `fill` after the end.

    There is one n-gram for each row, so an empty sequence has none. This is Paddle's sequence_enumerate.

    With a `fill` that is not in the data, `mask_sequences(grams, grams[:, -1] != fill, lengths)` keeps the full ones,
    and `lengths_sum((grams[:, None] == listed).all(2), lengths)` counts each of `listed[K, n]`. Pairs with gaps are
    the first and each later column of wider n-grams.

    >>> ngrams(np.array([1, 2, 3, 4]), np.array([3, 0, 1]), n=2)
    array([[1, 2],
           [2, 3],
           [3, 0],
           [4, 0]])
    """
    data, value = with_fill("fill", fill, data)
    return kernels.windows(data, lengths, 0, n - 1, value)


@op(
    "data[sum(lengths), *d], lengths[B] -> windows[sum(lengths), before+1+after, *d]",
    grad=MovedRows(fill="fill"),
)
def context_windows(
    data: Array, lengths: Array, *, before: NonNegative, after: NonNegative, fill: Fill = 0
) -> Array:
    """Return each row with the `before` rows before it and the `after` rows after it in its sequence.

    Places outside the sequence have `fill`. There is one window for each row, so an empty sequence has none. With a
    matrix product after it, this is a convolution over sequences: the im2col of Paddle's sequence_conv.

    >>> context_windows(np.array([1, 2, 3, 4]), np.array([3, 0, 1]), before=1, after=1)
    array([[0, 1, 2],
           [1, 2, 3],
           [2, 3, 0],
           [0, 4, 0]])
    """
    data, value = with_fill("fill", fill, data)
    return kernels.windows(data, lengths, before, after, value)
