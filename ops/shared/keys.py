"""Keys of features: lists of them as attributes, and which of them each pair of a map has."""

from collections.abc import Sequence

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array


def checked_keys(name: str, keys: Sequence[int], expected: int | None = None) -> Array:
    """An attribute as int64 keys; OpError where there are not as many as expected, or one is there twice."""
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
    """The position of each key in the list of distinct names; -1 where it is not among them."""
    return kernels.find_words(kernels.hash_slots(names), keys) - 1


def refuse_duplicates(keys: Array, places: Array, rows: Array, order: Array) -> None:
    """OpError where a row has a key twice; `order` sorts the pairs by place, those of one place by row."""
    place, row = places[order], rows[order]
    twice = (place[1:] == place[:-1]) & (row[1:] == row[:-1])
    if twice.any():
        i = int(order[1:][twice].min())
        raise OpError(f"keys[{i}] = {keys[i]} is in row {rows[i]} already, expected each key once in a row")
