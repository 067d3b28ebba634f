"""Maps of lists by key: select, order, split and join features (TorchRec's KeyedJaggedTensor).

A map of lists is `counts[B]`, the number of pairs of each row; the key and the length of each pair; and the values
of all pairs. Arrow's map columns are read in this form: `c.lengths`, `c.keys`, `c.values.lengths`, `c.values.values`.
Keys are integers; `match_names` converts string keys to integers. Each row has its own keys, in its own order.
"""

from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.keys import checked_keys, join_maps, places_of, refuse_duplicates
from seqflow.ops.shared.slices import int64, move_sequences, starts_of
from seqflow.ops.shared.strings import join
from seqflow.registry import MovedRows, op
from seqflow.signature import Ints

Duplicates = Literal["raise", "join"]
"""Treatment of a key that a row has twice: raise OpError, or join the lists, in the order of the row."""


@op("uint8 data[sum(lengths)], lengths[B] -> int64 keys[B]")
def match_names(data: Array, lengths: Array, *, names: Any) -> Array:
    """Return the position of each string in `names`, a list of texts; -1 if it is not among them.

    This converts string keys to the keys 0, 1, 2, … for ops on maps. Strings are compared byte by byte; the empty
    string is a name like any other.

    >>> match_names(np.frombuffer(b"callsimports", np.uint8), np.array([5, 7]), names=["imports", "calls"])
    array([1, 0])
    """
    return kernels.find_strings(*_names_table(_texts(names)), data, lengths) - 1


def _texts(names: Any) -> tuple[str, ...]:
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise OpTypeError(f"names is {names!r}, expected a list of texts")
    if len({*names}) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise OpError(f"names has {twice!r} twice")
    return tuple(names)


@lru_cache(maxsize=64)
def _names_table(names: tuple[str, ...]) -> tuple[Array, Array, Array]:
    text, sizes = join(list(names))
    return kernels.hash_slots(kernels.words_of_strings(text, sizes)), kernels.lengths_to_offsets(sizes), text


@op(
    "data[sum(lengths), *d], int keys[sum(counts)], lengths[sum(counts)], counts[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[sum(counts')] <= max(lengths),"
    " int64 keys'[sum(counts')], int64 counts'[B] <= counts, sum(lengths') <= sum(lengths)",
    depends={"lengths": "keys, lengths, counts", "keys": "keys, counts", "counts": "keys, counts"},
    grad=MovedRows(),
)
def keyed_select(
    data: Array, keys: Array, lengths: Array, counts: Array, *, names: Ints
) -> tuple[Array, Array, Array, Array]:
    """Keep the pairs with a key in `names`, in the order of their row, including duplicates.

    A row that becomes empty stays; an empty list stays with its key.

    >>> data, keys, lengths, counts = np.array([1, 2, 3]), np.array([7, 8, 7]), np.array([2, 0, 1]), np.array([2, 1])
    >>> keyed_select(data, keys, lengths, counts, names=[7]).counts
    array([1, 1])
    """
    keys, sizes = keys.copy(), int64(lengths)
    kept = places_of(keys, checked_keys("names", names)) >= 0
    picked = np.flatnonzero(kept)
    values = move_sequences(data, starts_of(sizes)[picked], sizes[picked])
    return values, sizes[picked], int64(keys[picked]), kernels.segment_reduce("sum", kept, counts)


@op(
    "data[sum(lengths), *d], int keys[sum(counts)], lengths[sum(counts)], counts[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[sum(counts)] <= max(lengths), int64 keys'[sum(counts)],"
    " sum(lengths') <= sum(lengths)",
    depends={"lengths": "keys, lengths, counts", "keys": "keys, counts"},
    grad=MovedRows(),
)
def keyed_permute(
    data: Array, keys: Array, lengths: Array, counts: Array, *, names: Ints
) -> tuple[Array, Array, Array]:
    """Put the pairs of each row into the order of `names`; a key that is not in `names` is an error.

    Pairs with equal keys keep their order. An empty row stays empty, an empty list stays with its key.

    >>> data, keys, lengths, counts = np.array([1, 2, 3]), np.array([7, 8, 7]), np.array([2, 0, 1]), np.array([2, 1])
    >>> keyed_permute(data, keys, lengths, counts, names=[8, 7])
    KeyedPermuteResult(values=array([1, 2, 3]), lengths=array([0, 2, 1]), keys=array([8, 7, 7]))
    """
    keys, sizes, rows = keys.copy(), int64(lengths), kernels.lengths_to_segment_ids(counts)
    places = places_of(keys, checked_keys("names", names))
    if (places < 0).any():
        i = int(np.argmax(places < 0))
        raise OpError(f"keys[{i}] = {keys[i]}, in row {rows[i]}, is not among names, expected one of them")
    # group_rows is stable: grouped by place and then by row, pairs with equal keys keep their order
    order = kernels.group_rows(places, len(names))[0]
    order = order[kernels.group_rows(rows[order], len(counts))[0]]
    values = move_sequences(data, starts_of(sizes)[order], sizes[order])
    return values, sizes[order], int64(keys[order])


@op(
    "data[sum(lengths), *d], int keys[sum(counts)], lengths[sum(counts)], counts[B]"
    " -> {values[sum(lengths'), *d], int64 lengths'[B] <= sum(lengths)}*names,"
    " sum(lengths') <= sum(lengths)",
    depends={"lengths": "keys, lengths, counts"},
    grad=MovedRows(),
)
def keyed_split(
    data: Array, keys: Array, lengths: Array, counts: Array, *, names: Ints, duplicates: Duplicates = "raise"
) -> tuple[list[Array], list[Array]]:
    """Split maps into features: for each of `names`, the list that each row has for this key.

    There are as many outputs as `names`, in their order: all values first, then all lengths. A row without the key
    has an empty list. Other keys are omitted. A row that has a key twice is an error, unless `duplicates="join"`
    joins its lists.

    >>> data, keys, lengths, counts = np.array([1, 2, 3]), np.array([7, 8, 7]), np.array([2, 0, 1]), np.array([2, 1])
    >>> keyed_split(data, keys, lengths, counts, names=[8, 7]).lengths
    [array([0, 0]), array([2, 1])]
    """
    asked = checked_keys("names", names)
    return _grouped(data, keys, lengths, counts, asked, [1] * len(asked), duplicates)


@op(
    "data[sum(lengths), *d], int keys[sum(counts)], lengths[sum(counts)], counts[B]"
    " -> {values[sum(lengths'), *d], int64 lengths'[B] <= sum(lengths)}*groups,"
    " sum(lengths') <= sum(lengths)",
    depends={"lengths": "keys, lengths, counts"},
    grad=MovedRows(),
)
def regroup(
    data: Array, keys: Array, lengths: Array, counts: Array, *, groups: Any, duplicates: Duplicates = "raise"
) -> tuple[list[Array], list[Array]]:
    """Join the features of each group into one: for each list of keys, the lists that each row has for them.

    They are joined in the order of the group, so the order of a row's pairs does not matter. A row without any of the
    keys has an empty list. Keys that are in no group are omitted. A row that has a key twice is an error, unless
    `duplicates="join"` joins its lists.

    >>> data, keys, lengths, counts = np.array([1, 2, 3]), np.array([7, 8, 7]), np.array([2, 0, 1]), np.array([2, 1])
    >>> regroup(data, keys, lengths, counts, groups=[[8, 7]]).values
    [array([1, 2, 3])]
    """
    lists = _lists_of_keys(groups)
    asked = checked_keys("groups", [key for group in lists for key in group])
    return _grouped(data, keys, lengths, counts, asked, [len(group) for group in lists], duplicates)


def _lists_of_keys(groups: Any) -> list[list[int]]:
    """Return the attribute `groups` as lists; raise OpTypeError unless it is a list of lists of integers."""
    if not isinstance(groups, (list, tuple)) or not all(isinstance(group, (list, tuple)) for group in groups):
        raise OpTypeError(f"groups is {groups!r}, expected a list of lists of integers")
    if not all(type(key) is int for group in groups for key in group):
        raise OpTypeError(f"groups is {groups!r}, expected integers as keys")
    return [list(group) for group in groups]


def _grouped(
    data: Array,
    keys: Array,
    lengths: Array,
    counts: Array,
    asked: Array,
    groups: list[int],
    duplicates: Duplicates,
) -> tuple[list[Array], list[Array]]:
    """Return the joined lists of each row for each group of keys; `groups` has the number of each in `asked`."""
    keys, sizes, rows = keys.copy(), int64(lengths), kernels.lengths_to_segment_ids(counts)
    places, num_rows = places_of(keys, asked), len(counts)
    known = np.flatnonzero(places >= 0)
    pairs = known[kernels.group_rows(places[known], len(asked))[0]]
    if duplicates == "raise":
        refuse_duplicates(keys, places, rows, pairs)
    group_of = np.repeat(np.arange(len(groups)), groups)
    cells = group_of[places[pairs]] * num_rows + rows[pairs]
    order, pairs_of_cell = kernels.group_rows(cells, len(groups) * num_rows)
    pairs = pairs[order]
    values = move_sequences(data, starts_of(sizes)[pairs], sizes[pairs])
    joined = kernels.segment_reduce("sum", sizes[pairs], pairs_of_cell).reshape(len(groups), num_rows)
    ends = kernels.lengths_to_offsets(joined.sum(axis=1)).tolist()
    return [values[start:end] for start, end in pairwise(ends)], list(joined)


@op(
    "{like(data) data[sum(lengths), *d], int keys[sum(counts)], lengths[sum(counts)], counts[B]}+"
    " -> values[sum(lengths'), *d], int64 lengths'[sum(counts')] <= max(lengths),"
    " int64 keys'[sum(counts')], int64 counts'[B] <= add(*counts), sum(lengths') <= sum(lengths)",
    depends={"lengths": "lengths, counts", "keys": "keys, counts", "counts": "counts"},
    grad=MovedRows(),
)
def keyed_concat(
    data: list[Array], keys: list[Array], lengths: list[Array], counts: list[Array]
) -> tuple[Array, Array, Array, Array]:
    """Join the maps that each row has in every input into one map, with the pairs of the first input first.

    A key that a row would have twice is an error; `merge_multi_list_features` keeps both. An empty map adds nothing.
    All data have one dtype.

    >>> data, keys = [np.array([1, 2]), np.array([3])], [np.array([7]), np.array([8])]
    >>> keyed_concat(data, keys, [np.array([2]), np.array([1])], [np.array([1]), np.array([1])]).keys
    array([7, 8])
    """
    values, sizes, joined, totals = join_maps(data, keys, lengths, counts)
    rows = kernels.lengths_to_segment_ids(totals)
    distinct, places = np.unique(joined, return_inverse=True)
    refuse_duplicates(joined, places, rows, kernels.group_rows(places, len(distinct))[0])
    return values, sizes, joined, totals
