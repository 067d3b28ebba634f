"""Running sums inside segments."""

# mypy: disable-error-code="no-any-return"

from seqflow.kernels import choice
from seqflow.kernels.arrays import Array


def cumsum_within(data: Array, lengths: Array, reverse: bool = False, exclusive: bool = False) -> Array:
    """The sum of a row and all before it in its segment: data[sum(lengths), *d] -> sums[sum(lengths), *d].

    With `reverse`: and all behind it. With `exclusive`: without the row itself. dtype: `sum_dtype`; floats are added
    up in float64, integers wrap around.
    """
    return choice.chosen.cumsum_within(data, lengths, reverse, exclusive)
