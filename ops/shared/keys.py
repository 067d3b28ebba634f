"""Keys of features: lists of keys as attributes, keys of pairs of maps, and features joined by row."""

from collections.abc import Sequence

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.kernels.error import MAX_INT64
from seqflow.ops.shared.slices import int64, starts_of


def checked_keys(name: str, keys: Sequence[int], expected: int | None = None) -> Array:
    """Return an attribute as int64 keys; raise OpError for a wrong number of keys, or for a key given twice."""
    if expected is not None and len(keys) != expected:
        raise OpError(f"{name} has {len(keys)} entries, expected {expected}, one for each feature")
    limits = np.iinfo(np.int64)
    seen: dict[int, int] = {}
    for i, key in enumerate(keys):
        if not limits.min <= key <= limits.max:
            raise OpError(f"{name}[{i}] is {key}, which does not fit int64")
        if key in seen:
            raise OpError(f"{name}[{i}] is {key}, which is {name}[{seen[key]}] already")
        seen[key] = i
    return np.array(keys, np.int64)


def places_of(keys: Array, names: Array) -> Array:
    """Return the position of each key in the list of distinct names; -1 if it is not among them."""
    return find_keys(kernels.hash_slots(names), keys) - 1


def find_keys(slots: Array, keys: Array) -> Array:
    """Return the id of each key in a table of int64, 0 if it is missing, as are all keys beyond int64."""
    if keys.dtype != np.uint64:
        return kernels.find_words(slots, keys)
    beyond = keys > np.uint64(MAX_INT64)
    found: Array = np.where(beyond, 0, kernels.find_words(slots, keys.astype(np.int64)))
    return found


def refuse_duplicates(keys: Array, places: Array, rows: Array, order: Array) -> None:
    """Raise OpError if a row has a key twice; `order` sorts the pairs by place, and by row for equal places."""
    place, row = places[order], rows[order]
    twice = (place[1:] == place[:-1]) & (row[1:] == row[:-1])
    if twice.any():
        i = int(order[1:][twice].min())
        raise OpError(f"keys[{i}] = {keys[i]} is in row {rows[i]} already, expected each key once in a row")


def in_turn(data: list[Array], sizes: Array) -> Array:
    """Return the rows of all features, by example and then by feature; sizes[B, F] are their numbers."""
    offsets = kernels.lengths_to_offsets(sizes.ravel())
    rows = np.empty((int(offsets[-1]), *data[0].shape[1:]), data[0].dtype)
    targets = offsets[:-1].reshape(sizes.shape)
    for j, values in enumerate(data):
        own = np.ascontiguousarray(sizes[:, j])
        kernels.move_slices(values, starts_of(own), own, rows, np.ascontiguousarray(targets[:, j]))
    return rows


def keys_in_turn(name: str, keys: list[Array], sizes: Array) -> Array:
    """Return `in_turn` of keys as int64; raise KernelError for a key that int64 cannot hold."""
    return in_turn([int64_integers(one, name) for one in keys], sizes)


def row_sizes(lengths: list[Array], counts: list[Array]) -> Array:
    """Return the number of values in all lists of a row, for each input: [B, F]."""
    totals = [kernels.segment_reduce("sum", *pair) for pair in zip(lengths, counts, strict=True)]
    return np.stack(totals, axis=1).astype(np.int64, copy=False)


def join_maps(
    data: list[Array], keys: list[Array], lengths: list[Array], counts: list[Array]
) -> tuple[Array, Array, Array, Array]:
    """Return the joined maps of lists that each row has in every input: values, lengths, keys and counts."""
    pairs = np.stack([int64(one) for one in counts], axis=1)
    values = in_turn(data, row_sizes(lengths, counts))
    sizes = in_turn([int64(one) for one in lengths], pairs)
    return values, sizes, keys_in_turn("keys", keys, pairs), pairs.sum(axis=1)
