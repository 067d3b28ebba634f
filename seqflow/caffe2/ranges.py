"""Caffe2's operators that gather ranges of rows."""

from seqflow import ops
from seqflow.caffe2.adapter import Adapter
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.signature import Positive, Sizes


def gather_ranges_to_dense(
    data: Array,
    ranges: Array,
    key: Array | None = None,
    *,
    lengths: Sizes,
    min_observation: Positive = 10000,
    max_mismatched_ratio: float = 0.01,
    max_empty_ratio: float = 1.0,
) -> list[Array]:
    """A range of another length than expected gives zeros; too many such ranges, or empty ones, are an error.

    Each feature may have as many of them as the ratio times the number of examples says, which counts as
    `min_observation` at least. Caffe2 counts over the life of the operator, this over one call. Equal keys keep
    their order (Caffe2: for short ranges).
    """
    if 0 in lengths:
        raise OpError(f"lengths[{lengths.index(0)}] is 0, expected 1 or more")
    dense = ops.gather_ranges_to_dense(data, ranges, key, lengths=lengths)
    sizes = ranges[..., 1]
    for what, wrong, ratio in (
        ("of another length", (sizes != 0) & (sizes != lengths), max_mismatched_ratio),
        ("empty", sizes == 0, max_empty_ratio),
    ):
        most = max(len(ranges), min_observation) * ratio
        for j, count in enumerate(wrong.sum(0).tolist()):
            if ratio < 1 and count > most:
                raise OpError(
                    f"{count} of {len(ranges)} ranges of feature {j} are {what}, expected {most:g} at most"
                )
    return dense


ADAPTERS = {
    "GatherRanges": Adapter(outputs="values, int32 lengths", strings=True),
    "GatherRangesToDense": Adapter(gather_ranges_to_dense, strings=True),
}
