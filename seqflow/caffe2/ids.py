"""Caffe2's operators on ids: unique, find, remove, merge, hash."""

import numpy as np

from seqflow import ops
from seqflow.caffe2.adapter import Adapter
from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.signature import NonNegative, Positive


def find(index: Array, query: Array, *, missing_value: int = -1) -> Array:
    """The last place of each; the result has the dtype of the index."""
    positions = ops.find(index, query, missing=missing_value)
    return _fitting(positions, index)


def index_hash(indices: Array, *, seed: NonNegative = 0, modulo: Positive) -> Array:
    """int32 ids are hashed in int32 arithmetic, all others in int64; the result has the dtype of the ids."""
    return _fitting(ops.hash_indices(indices, num_buckets=modulo, seed=seed, method="caffe2"), indices)


def _fitting(found: Array, like: Array) -> Array:
    if like.dtype.kind not in "iu":
        raise OpTypeError(f"{like.dtype} is no dtype of ids, expected integers")
    limits = np.iinfo(like.dtype)
    if found.size and not (limits.min <= int(found.min()) and int(found.max()) <= limits.max):
        raise OpError(
            f"the result holds {int(found.min())} to {int(found.max())}, more than {like.dtype} can hold"
        )
    return found.astype(like.dtype)


ADAPTERS = {
    "Unique": Adapter(outputs="unique, int32 inverse"),
    "Find": Adapter(find),
    "FindDuplicateElements": Adapter(strings=True),
    "RemoveDataBlocks": Adapter(strings=True),
    "MergeIdLists": Adapter(inputs="lengths, data", outputs="int32 lengths, values"),
    "IndexHash": Adapter(index_hash),
}
