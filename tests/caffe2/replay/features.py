"""Caffe2's operators that merge features into maps; each tensor of each feature is an input of its own."""

from collections.abc import Sequence

import numpy as np

from seqflow import ops
from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.signature import Ints

from .adapter import ADAPTERS, Adapter, Caffe2Argument, int32


def merge_single_map_feature_tensors(*inputs: Array, feature_ids: Ints) -> tuple[Array, ...]:
    lengths, keys, values, presence = _by_turns(inputs, "lengths, keys, values, presence")
    merged = ops.merge_map_features(values, _as_integers(keys), presence, lengths, feature_ids=feature_ids)
    inner = merged.value_keys.astype(keys[0].dtype)
    return int32(merged.counts), merged.keys, int32(merged.lengths), inner, merged.values


def merge_multi_map_feature_tensors(*inputs: Array) -> tuple[Array, ...]:
    names = "lengths, keys, values_lengths, values_keys, values_values"
    counts, keys, lengths, value_keys, values = _by_turns(inputs, names)
    merged = ops.merge_multi_map_features(values, _as_integers(value_keys), keys, lengths, counts)
    inner = merged.value_keys.astype(value_keys[0].dtype)
    return int32(merged.counts), merged.keys, int32(merged.lengths), inner, merged.values


def _by_turns(inputs: Sequence[Array], names: str) -> list[list[Array]]:
    """Group the inputs by kind: the first input of each feature, then the second of each, and so on."""
    count = len(names.split(", "))
    if len(inputs) % count:
        raise OpError(f"found {len(inputs)} inputs, expected {names} for each feature")
    return [list(inputs[i::count]) for i in range(count)]


def _as_integers(keys: list[Array]) -> list[Array]:
    """Return keys as int64, including those that represent strings."""
    if any(one.dtype.kind not in "iu" or one.dtype != keys[0].dtype for one in keys):
        raise OpTypeError(
            f"keys are {', '.join(str(one.dtype) for one in keys)}, expected integers of one dtype"
        )
    return [one.astype(np.int64) for one in keys]


_IDS = {"feature_ids": Caffe2Argument("feature_ids", Ints)}
_SCALARS, _LISTS = "int32 lengths, keys, values", "int32 counts, keys, int32 lengths, values"

ADAPTERS |= {
    "MergeDenseFeatureTensors": Adapter(outputs=_SCALARS, arguments=_IDS, strings=True),
    "MergeSingleScalarFeatureTensors": Adapter(outputs=_SCALARS, arguments=_IDS, strings=True),
    # an absent list must be empty: otherwise Caffe2 shifts the later ones
    "MergeSingleListFeatureTensors": Adapter(
        inputs="lengths, data, presence", outputs=_LISTS, arguments=_IDS, strings=True
    ),
    "MergeSingleMapFeatureTensors": Adapter(merge_single_map_feature_tensors, strings=True),
    "MergeMultiScalarFeatureTensors": Adapter(inputs="lengths, keys, data", outputs=_SCALARS, strings=True),
    # duplicate keys are kept
    "MergeMultiListFeatureTensors": Adapter(
        inputs="counts, keys, lengths, data", outputs=_LISTS, strings=True
    ),
    "MergeMultiMapFeatureTensors": Adapter(merge_multi_map_feature_tensors, strings=True),
}
