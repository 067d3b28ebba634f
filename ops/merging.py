"""Features merged into maps: from a tensor for each feature to pairs of key and value for each example.

A map of lists is `counts[B]`, the number of pairs of each example; the key and the length of each pair; and the
values of all pairs. Arrow's map columns are read in this form: `c.lengths`, `c.keys`, `c.values.lengths`,
`c.values.values`.
"""

import numpy as np

from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.keys import checked_keys, in_turn, join_maps, keys_in_turn, row_sizes
from seqflow.ops.shared.slices import int64
from seqflow.registry import MovedRows, op
from seqflow.signature import Ints


@op(
    "data[B, F], bool presence[B, F]"
    " -> values[sum(lengths)], int64 lengths[B] <= F, int64 keys[sum(lengths)]",
    caffe2="MergeDenseFeatureTensors",
    depends={"lengths": "presence", "keys": "presence"},
    grad={
        "data": """
            flat = flatten_rows(data)
            origin, _, _ = merge_dense_features(cell_numbers(data), presence, feature_ids=feature_ids)
            reshape_like(scatter_rows(d.values, origin, flat), data)
        """
    },
)
def merge_dense_features(data: Array, presence: Array, *, feature_ids: Ints) -> tuple[Array, Array, Array]:
    """Make maps of numbers from the columns of a matrix; column j has the key `feature_ids[j]`.

    Each example has the features that are present, in the order of the columns; without any, its map is empty.

    >>> data, presence = np.array([[0.5, 7.0], [0.1, 9.0]]), np.array([[True, False], [True, True]])
    >>> merge_dense_features(data, presence, feature_ids=[3, 5]).keys
    array([3, 3, 5])
    """
    ids = checked_keys("feature_ids", feature_ids, data.shape[1])
    mask = presence.copy()
    return data[mask], np.count_nonzero(mask, axis=1), np.broadcast_to(ids, mask.shape)[mask]


@op(
    "{like(data) data[B, *d], bool presence[B]}+"
    " -> values[sum(lengths), *d], int64 lengths[B] <= add(*presence), int64 keys[sum(lengths)]",
    caffe2="MergeSingleScalarFeatureTensors",
    depends={"lengths": "presence", "keys": "presence"},
    grad=MovedRows(),
)
def merge_scalar_features(
    data: list[Array], presence: list[Array], *, feature_ids: Ints
) -> tuple[Array, Array, Array]:
    """Make maps from features that have one value for each example; feature j has the key `feature_ids[j]`.

    Each example has the features that are present, in their order; without any, its map is empty. All data have one
    dtype.

    >>> age, clicks = np.array([30, 41]), np.array([7, 0])
    >>> present = [np.array([True, True]), np.array([True, False])]
    >>> merge_scalar_features([age, clicks], present, feature_ids=[1, 2]).values
    array([30,  7, 41])
    """
    ids = checked_keys("feature_ids", feature_ids, len(data))
    mask = np.stack(presence, axis=1)
    values = np.stack(data, axis=1)[mask]
    return values, np.count_nonzero(mask, axis=1), np.broadcast_to(ids, mask.shape)[mask]


@op(
    "{like(data) data[sum(lengths), *d], bool presence[B], lengths[B]}+"
    " -> values[sum(lengths'), *d], int64 lengths'[sum(counts)] <= max(lengths), int64 keys[sum(counts)],"
    " int64 counts[B] <= add(*presence), sum(lengths') <= sum(lengths)",
    caffe2="MergeSingleListFeatureTensors",
    depends={"lengths": "presence, lengths", "counts": "presence", "keys": "presence"},
    grad=MovedRows(),
)
def merge_list_features(
    data: list[Array], presence: list[Array], lengths: list[Array], *, feature_ids: Ints
) -> tuple[Array, Array, Array, Array]:
    """Make maps of lists from features that have a list for each example; feature j has the key `feature_ids[j]`.

    Each example has the features that are present, in their order. A present list that is empty stays, with length 0;
    an absent list must be empty. All data have one dtype.

    >>> likes, shares = np.array([10, 11, 12]), np.array([7])
    >>> present = [np.array([True, True]), np.array([True, False])]
    >>> lengths = [np.array([2, 1]), np.array([1, 0])]
    >>> merged = merge_list_features([likes, shares], present, lengths, feature_ids=[1, 2])
    >>> merged.counts, merged.keys, merged.lengths, merged.values
    (array([2, 1]), array([1, 2, 1]), array([2, 1, 1]), array([10, 11,  7, 12]))
    """
    ids = checked_keys("feature_ids", feature_ids, len(data))
    sizes, mask = _sizes_of_present(presence, lengths)
    values = in_turn(data, sizes)
    return values, sizes[mask], np.broadcast_to(ids, mask.shape)[mask], np.count_nonzero(mask, axis=1)


@op(
    "{like(data) data[sum(lengths), *d], int value_keys[sum(lengths)], bool presence[B], lengths[B]}+"
    " -> values[sum(lengths'), *d], int64 lengths'[sum(counts)] <= max(lengths),"
    " int64 value_keys'[sum(lengths')], int64 keys[sum(counts)], int64 counts[B] <= add(*presence),"
    " sum(lengths') <= sum(lengths)",
    caffe2="MergeSingleMapFeatureTensors",
    depends={
        "lengths": "presence, lengths",
        "counts": "presence",
        "keys": "presence",
        "value_keys": "value_keys, presence, lengths",
    },
    grad=MovedRows(),
)
def merge_map_features(
    data: list[Array],
    value_keys: list[Array],
    presence: list[Array],
    lengths: list[Array],
    *,
    feature_ids: Ints,
) -> tuple[Array, Array, Array, Array, Array]:
    """Make maps of maps from features that have a map for each example; feature j has the key `feature_ids[j]`.

    This is `merge_list_features` for lists of pairs: `value_keys` and `data` are the keys and the values of these
    maps. A present map that is empty stays, with length 0; an absent map must be empty.

    >>> price, ids = np.array([0.5, 0.25]), np.array([7, 8])
    >>> merged = merge_map_features([price], [ids], [np.array([False, True])], [np.array([0, 2])], feature_ids=[4])
    >>> merged.keys, merged.value_keys, merged.values
    (array([4]), array([7, 8]), array([0.5 , 0.25]))
    """
    ids = checked_keys("feature_ids", feature_ids, len(data))
    sizes, mask = _sizes_of_present(presence, lengths)
    values, inner_keys = in_turn(data, sizes), keys_in_turn("value_keys", value_keys, sizes)
    keys = np.broadcast_to(ids, mask.shape)[mask]
    return values, sizes[mask], inner_keys, keys, np.count_nonzero(mask, axis=1)


@op(
    "{like(data) data[sum(lengths), *d], int keys[sum(lengths)], lengths[B]}+"
    " -> values[sum(lengths'), *d], int64 lengths'[B] <= add(*lengths), int64 keys'[sum(lengths')]",
    caffe2="MergeMultiScalarFeatureTensors",
    depends={"lengths": "lengths", "keys": "keys, lengths"},
    grad=MovedRows(),
)
def merge_multi_scalar_features(
    data: list[Array], keys: list[Array], lengths: list[Array]
) -> tuple[Array, Array, Array]:
    """Join the maps of numbers that each example has in every input, with the pairs of the first input first.

    Duplicate keys stay. An empty map adds nothing. All data have one dtype.

    >>> data, keys = [np.array([0.5, 7.0]), np.array([0.1])], [np.array([1, 1]), np.array([2])]
    >>> merge_multi_scalar_features(data, keys, [np.array([1, 1]), np.array([0, 1])]).keys
    array([1, 1, 2])
    """
    sizes = np.stack([int64(one) for one in lengths], axis=1)
    return in_turn(data, sizes), sizes.sum(axis=1), keys_in_turn("keys", keys, sizes)


@op(
    "{like(data) data[sum(lengths), *d], int keys[sum(counts)], lengths[sum(counts)], counts[B]}+"
    " -> values[sum(lengths'), *d], int64 lengths'[sum(counts')] <= max(lengths),"
    " int64 keys'[sum(counts')], int64 counts'[B] <= add(*counts), sum(lengths') <= sum(lengths)",
    caffe2="MergeMultiListFeatureTensors",
    depends={"lengths": "lengths, counts", "keys": "keys, counts", "counts": "counts"},
    grad=MovedRows(),
)
def merge_multi_list_features(
    data: list[Array], keys: list[Array], lengths: list[Array], counts: list[Array]
) -> tuple[Array, Array, Array, Array]:
    """Join the maps of lists that each example has in every input, with the pairs of the first input first.

    Duplicate keys stay; `keyed_concat` refuses them. An empty map adds nothing. All data have one dtype.

    >>> data, keys = [np.array([1, 2]), np.array([3])], [np.array([7]), np.array([7])]
    >>> lengths, counts = [np.array([2]), np.array([1])], [np.array([1]), np.array([1])]
    >>> merge_multi_list_features(data, keys, lengths, counts).keys
    array([7, 7])
    """
    return join_maps(data, keys, lengths, counts)


@op(
    "{like(data) data[sum(lengths), *d], int value_keys[sum(lengths)], int keys[sum(counts)],"
    " lengths[sum(counts)], counts[B]}+"
    " -> values[sum(lengths'), *d], int64 lengths'[sum(counts')] <= max(lengths),"
    " int64 value_keys'[sum(lengths')], int64 keys'[sum(counts')], int64 counts'[B] <= add(*counts),"
    " sum(lengths') <= sum(lengths)",
    caffe2="MergeMultiMapFeatureTensors",
    depends={
        "lengths": "lengths, counts",
        "value_keys": "value_keys, lengths, counts",
        "keys": "keys, counts",
        "counts": "counts",
    },
    grad=MovedRows(),
)
def merge_multi_map_features(
    data: list[Array], value_keys: list[Array], keys: list[Array], lengths: list[Array], counts: list[Array]
) -> tuple[Array, Array, Array, Array, Array]:
    """Join the maps of maps that each example has in every input, with the pairs of the first input first.

    This is `merge_multi_list_features` for lists of pairs: `value_keys` and `data` are the keys and the values of the
    inner maps. Duplicate keys stay. An empty map adds nothing.

    >>> data, value_keys, keys = [np.array([0.5])] * 2, [np.array([7]), np.array([9])], [np.array([1]), np.array([2])]
    >>> ones = [np.array([1])] * 2
    >>> merge_multi_map_features(data, value_keys, keys, ones, ones).value_keys
    array([7, 9])
    """
    values, sizes, joined, totals = join_maps(data, keys, lengths, counts)
    return values, sizes, keys_in_turn("value_keys", value_keys, row_sizes(lengths, counts)), joined, totals


def _sizes_of_present(presence: list[Array], lengths: list[Array]) -> tuple[Array, Array]:
    """Return the lengths [B, F] and the presence of all features; raise OpError if an absent one is not empty."""
    mask, sizes = np.stack(presence, axis=1), np.stack([int64(one) for one in lengths], axis=1)
    hidden = (sizes != 0) & ~mask
    if hidden.any():
        row, feature = np.unravel_index(int(np.argmax(hidden)), hidden.shape)
        raise OpError(
            f"lengths[{feature}][{row}] is {sizes[row, feature]} but presence[{feature}][{row}] is False,"
            " expected 0 where a feature is absent"
        )
    return sizes, mask
