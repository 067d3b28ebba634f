"""Running sums inside segments, in C++."""

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import Array, counts, rows
from seqflow.kernels.native.forms import computed, is_computed


def cumsum_within(data: Array, lengths: Array, reverse: bool = False, exclusive: bool = False) -> Array:
    try:
        return _native.cumsum_within(data, lengths, reverse, exclusive)
    except TypeError:
        pass
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    if not is_computed(data):
        return reference.cumsum_within(data, lengths, reverse, exclusive)
    return _native.cumsum_within(computed("sum", data), lengths, reverse, exclusive)
