"""Caffe2's operators on indexes of keys.

Caffe2 keeps an index in a blob of its own, which look-ups change until it is frozen. Here it is the array of its
keys, in the order of their ids, so every look-up is one of a frozen index. `seqflow.Vocabulary` is one that grows.
"""

import numpy as np

from seqflow import ops
from seqflow.caffe2.adapter import Adapter
from seqflow.errors import OpError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.vocabulary_table import table_of_integers


def index_get(handle: Array, keys: Array) -> Array:
    """Ids count from 1; a key that the index does not have has 0."""
    if keys.dtype != handle.dtype:
        raise OpTypeError(f"keys are {_kind(keys)}, but those of the index are {_kind(handle)}")
    return ops.encode(keys.astype(np.int64), table_of_integers(index_keys(handle).astype(np.int64)))


def index_load(handle: Array, items: Array, *, skip_first_entry: bool = False) -> Array:
    """The items become the keys; the first one may stand for the unknown."""
    if items.dtype != handle.dtype:
        raise OpTypeError(f"items are {_kind(items)}, but the index takes {_kind(handle)}")
    return index_keys(items[1:] if skip_first_entry and items.ndim else items)


def index_size(handle: Array) -> Array:
    """How many ids there are, 0 included."""
    return np.array([len(index_keys(handle)) + 1])


def index_keys(handle: Array) -> Array:
    """The keys of an index; an error where they are not distinct integers."""
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
    return "strings" if keys.dtype == np.uint64 else str(keys.dtype)


ADAPTERS = {
    "IndexGet": Adapter(index_get, strings=True),
    "IndexLoad": Adapter(index_load, strings=True),
    "IndexFreeze": Adapter(index_keys, strings=True),
    "IndexStore": Adapter(index_keys, strings=True),
    "IndexSize": Adapter(index_size, strings=True),
}
