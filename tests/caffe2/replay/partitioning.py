"""Caffe2's operators that partition rows by keys and split axes by lengths."""

from math import prod

import numpy as np

from seqflow import ops
from seqflow.errors import OpError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.signature import Positive

from .adapter import ADAPTERS, Adapter, from_front, int32
from .dense import Order, chosen_axis


def partition(
    keys: Array, *extras: Array, pack_first_input: bool = False, num_outputs: Positive
) -> list[Array]:
    """Partition rows by key: all inputs of shard 0, then those of shard 1. There are `num_outputs` / inputs shards.

    Keys may have any shape; the other inputs begin with the same axes. `pack_first_input` replaces a key by its
    quotient, rounded down.
    """
    parts = _parts(num_outputs, 1 + len(extras))
    flat = _flat_keys(keys)
    columns = [_packed(flat, parts, pack_first_input)]
    for i, extra in enumerate(extras):
        if extra.shape[: keys.ndim] != keys.shape:
            raise ShapeError(
                f"input {i + 1} is {extra.shape}, expected it to begin with {keys.shape} as the keys"
            )
        columns.append(extra.reshape(keys.size, *extra.shape[keys.ndim :]))
    dealt = [ops.partition(column, flat, parts=parts) for column in columns]
    return [column[shard] for shard in range(parts) for column in dealt]


def lengths_partition(
    lengths: Array, keys: Array, *extras: Array, pack_first_input: bool = False, num_outputs: Positive
) -> list[Array]:
    """Partition lists by key: lengths, keys and other inputs of shard 0, then those of shard 1."""
    parts = _parts(num_outputs, 2 + len(extras))
    flat = _flat_keys(keys)
    columns = [_packed(flat, parts, pack_first_input), *extras]
    dealt = [ops.partition_sequences(column, flat, lengths, parts=parts) for column in columns]
    kept = [int32(one) for one in dealt[0].lengths]
    return [one for i in range(parts) for one in (kept[i], *(column.values[i] for column in dealt))]


def _parts(num_outputs: int, num_inputs: int) -> int:
    if num_outputs % num_inputs:
        raise OpError(f"num_outputs is {num_outputs}, expected a multiple of the {num_inputs} inputs")
    return num_outputs // num_inputs


def _flat_keys(keys: Array) -> Array:
    if keys.dtype.kind not in "iu":
        raise OpTypeError(f"keys is {keys.dtype}, expected integers")
    return keys.reshape(prod(keys.shape))


def _packed(keys: Array, parts: int, pack: bool) -> Array:
    return keys // keys.dtype.type(parts) if pack else keys


def key_split(keys: Array, *, categorical_limit: Positive) -> list[Array]:
    return [int32(positions) for positions in ops.key_split(keys, num_keys=categorical_limit)]


def split_by_lengths(
    data: Array,
    lengths: Array,
    *,
    axis: int | None = None,
    order: Order | None = None,
    use_scaling_lengths: bool = False,
    num_outputs: Positive,
) -> list[Array]:
    """Split an axis by lengths: each output takes the size given by its block of the lengths, all blocks equally
    many.

    `use_scaling_lengths` multiplies all lengths by one number, so that they fill the axis. The default axis is 1, or
    that of the channels if `order` is NHWC.
    """
    along = from_front("data", data, chosen_axis(axis, order))
    if lengths.ndim != 1 or len(lengths) % num_outputs:
        raise ShapeError(f"lengths is {lengths.shape}, expected a multiple of num_outputs = {num_outputs}")
    blocks = np.full(num_outputs, len(lengths) // num_outputs)
    sizes = ops.collapse_lengths(lengths, blocks)
    total, size = int(sizes.sum()), data.shape[along]
    if use_scaling_lengths and total:
        if size % total:
            raise ShapeError(f"sum(lengths) is {total}, which does not divide data.shape[{along}] = {size}")
        sizes *= size // total
    return ops.split(data, parts=sizes.tolist(), axis=along)


ADAPTERS |= {
    "Partition": Adapter(partition),
    "LengthsPartition": Adapter(lengths_partition),
    "GatherByKey": Adapter(lambda keys, *shards: ops.gather_by_key(list(shards), keys)),
    "KeySplit": Adapter(key_split),
    "SplitByLengths": Adapter(split_by_lengths, strings=True),
}
