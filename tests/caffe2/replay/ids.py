"""Caffe2's operators on ids: unique, find, remove, merge, hash; and on indexes of keys.

Caffe2 stores an index in a special blob, which look-ups change until it is frozen. Here an index is the array of its
keys, in the order of their ids, so it is always frozen. `seqflow.Vocabulary` is an index that grows.
"""

import numpy as np

from seqflow import ops
from seqflow.errors import OpError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.vocabulary_table import table_of_integers
from seqflow.signature import NonNegative, Positive

from .adapter import ADAPTERS, Adapter


def index_get(handle: Array, keys: Array) -> Array:
    """Return ids, which count from 1; a key that is not in the index has id 0."""
    if keys.dtype != handle.dtype:
        raise OpTypeError(f"keys are {_kind(keys)}, but those of the index are {_kind(handle)}")
    return ops.encode(keys.astype(np.int64), table_of_integers(index_keys(handle).astype(np.int64)))


def index_load(handle: Array, items: Array, *, skip_first_entry: bool = False) -> Array:
    """Return the items as the keys of an index; the first one may represent the unknown."""
    if items.dtype != handle.dtype:
        raise OpTypeError(f"items are {_kind(items)}, but the index takes {_kind(handle)}")
    return index_keys(items[1:] if skip_first_entry and items.ndim else items)


def index_size(handle: Array) -> Array:
    """Return the number of ids, including 0."""
    return np.array([len(index_keys(handle)) + 1])


def index_keys(handle: Array) -> Array:
    """Return the keys of an index; raise an error when they are not distinct integers."""
    if handle.ndim != 1:
        raise ShapeError(f"handle has {handle.ndim} dimensions, expected the keys of an index in one")
    if handle.dtype.kind not in "iu":
        raise OpTypeError(f"handle is {handle.dtype}, expected integers or strings")
    distinct, first = np.unique(handle, return_index=True)
    if len(distinct) < len(handle):
        twice = np.setdiff1d(np.arange(len(handle)), first)[0]
        raise OpError(f"keys[{twice}] is in the index already")
    return handle


def _kind(keys: Array) -> str:
    # strings are indices in uint64 here, see `Operator`
    return "strings" if keys.dtype == np.uint64 else str(keys.dtype)


def find(index: Array, query: Array, *, missing_value: int = -1) -> Array:
    """Return the last position of each; the result has the dtype of the index."""
    positions = ops.find(index, query, missing=missing_value)
    return _fitting(positions, index)


def index_hash(indices: Array, *, seed: NonNegative = 0, modulo: Positive) -> Array:
    """Hash ids: int32 ids in int32 arithmetic, all others in int64; the result has the dtype of the ids."""
    return _fitting(ops.hash_indices(indices, num_buckets=modulo, seed=seed, method="caffe2"), indices)


def _fitting(found: Array, like: Array) -> Array:
    if like.dtype.kind not in "iu":
        raise OpTypeError(f"{like.dtype} is not a dtype of ids, expected integers")
    limits = np.iinfo(like.dtype)
    if found.size and not (limits.min <= int(found.min()) and int(found.max()) <= limits.max):
        raise OpError(
            f"the result holds {int(found.min())} to {int(found.max())}, more than {like.dtype} can hold"
        )
    return found.astype(like.dtype)


ADAPTERS |= {
    "Unique": Adapter(outputs="unique, int32 inverse"),
    "Find": Adapter(find),
    "FindDuplicateElements": Adapter(strings=True),
    "RemoveDataBlocks": Adapter(strings=True),
    "MergeIdLists": Adapter(inputs="lengths, data", outputs="int32 lengths, values"),
    "IndexHash": Adapter(index_hash),
    "IndexGet": Adapter(index_get, strings=True),
    "IndexLoad": Adapter(index_load, strings=True),
    "IndexFreeze": Adapter(index_keys, strings=True),
    "IndexStore": Adapter(index_keys, strings=True),
    "IndexSize": Adapter(index_size, strings=True),
}
