"""Crosses of features: one id for each combination of ids."""

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.random_bits import output
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import op
from seqflow.signature import NonNegative, Positive


@op(
    "{int data[sum(lengths)], lengths[B]}+"
    " -> int64 values[sum(lengths')] <= num_buckets-1, int64 lengths'[B] := mul(*lengths)",
)
def cross_features(
    data: list[Array], lengths: list[Array], *, num_buckets: Positive, seed: NonNegative = 0
) -> tuple[Array, Array]:
    """Hash every combination of one id from each feature into a bucket from 0 to `num_buckets - 1`.

    A sequence with 2 ids in one feature and 3 in another gets 6; the last feature varies fastest. If a feature has
    no ids in a sequence, the sequence becomes empty. Models are trained on this function, so it will not change.
    With `output` of `seqflow.ops.shared.random_bits`, the state is first `output(seed, 0)`; for each id in turn it
    becomes `output(state, id)`, with ids in two's complement; the bucket is the state modulo `num_buckets`.

    >>> user, items = (np.array([7]), np.array([1])), (np.array([1, 2]), np.array([2]))
    >>> cross_features([user[0], items[0]], [user[1], items[1]], num_buckets=1000)
    CrossFeaturesResult(values=array([270, 410]), lengths=array([2]))
    """
    if num_buckets >= 2**63:
        raise OpError(f"num_buckets is {num_buckets}, expected less than 2**63")
    if seed >= 2**64:
        raise OpError(f"seed is {seed}, expected less than 2**64")
    sizes = [int64(one) for one in lengths]
    states, crossed = np.full(len(sizes[0]), seed, np.uint64), np.ones(len(sizes[0]), np.int64)
    states = output(states, np.zeros_like(states))
    for ids, own in zip(data, sizes, strict=True):
        total = _total(crossed, own)
        partners = kernels.expand(own, crossed)  # the number of ids that each state is combined with
        first = kernels.expand(kernels.expand(starts_of(own), crossed), partners)
        met = kernels.gather(ids, first + kernels.lengths_to_positions(partners))
        states = output(kernels.expand(states, partners), met.astype(np.int64).view(np.uint64))
        crossed = total
    return (states % np.uint64(num_buckets)).astype(np.int64), crossed


def _total(crossed: Array, own: Array) -> Array:
    """Return the new lengths; raise an error if the combinations do not fit in memory."""
    # in float64, which does not wrap around: 10 features of 100 ids have 10**20 combinations
    check_memory((int(crossed.astype(np.float64) @ own),), np.dtype(np.int64))
    return crossed * own
