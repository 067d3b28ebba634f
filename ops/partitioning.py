"""Rows assigned to parts by an integer key, and joined again."""

import numpy as np

from seqflow import kernels
from seqflow.errors import ShapeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.indices import indices_below
from seqflow.registry import MovedRows, op
from seqflow.shape import Dimension, InferenceContext
from seqflow.signature import Positive


def _infer_parts(ctx: InferenceContext) -> None:
    """Infer that each part has its own rows, at most as many as the input."""
    most = ctx.equalities.resolve(ctx.dim(ctx.input(0), 0)).max_length
    rows = ctx.merge_rows(*range(ctx.num_inputs))
    for i, tensor in ctx.results.items():
        size = Dimension.axis_of(tensor, 0, 0, most)
        part = ctx.part_of(rows, "keys", i)
        ctx.set_output(i, ctx.replace_dim(ctx.output(i), 0, size), rows=part)


def _infer_brought_together(ctx: InferenceContext) -> None:
    """Infer that the rows are those that were assigned by these keys; raise LodError for shards of other keys."""
    rows, count = ctx.rows("keys"), len(ctx.inputs("shards"))
    if rows is None or any(ctx.rows(f"shards[{i}]") is None for i in range(count)):
        return
    for i in range(count):
        ctx.meet_rows(f"shards[{i}]", ctx.part_of(rows, "keys", i, ("parts", count)), "keys")
    ctx.set_output(0, ctx.output(0), axes=[rows, *ctx.axes("shards[0]")[1:]])


@op(
    "data[N, *d], int keys[N] -> {shards[_, *d]}*parts",
    caffe2="Partition",
    shape=_infer_parts,
    grad=MovedRows(),
)
def partition(data: Array, keys: Array, *, parts: Positive) -> list[Array]:
    """Assign the rows to `parts` shards: a row goes to the shard `key mod parts`.

    The remainder is never negative: -1 mod 2 is 1. Rows keep their order. `gather_by_key` is the inverse.

    >>> partition(np.array([10, 20, 30]), np.array([4, -1, 6]), parts=2)
    [array([10, 30]), array([20])]
    """
    order, sizes = _by_remainder(keys, parts)
    return np.split(kernels.gather(data, order), np.cumsum(sizes)[:-1])


@op(
    "data[sum(lengths), *d], int keys[sum(lengths)], lengths[B]"
    " -> {values[sum(lengths'), *d], int64 lengths'[B] <= lengths}*parts",
    caffe2="LengthsPartition",
    depends={"lengths": "keys, lengths"},
    grad=MovedRows(),
)
def partition_sequences(
    data: Array, keys: Array, lengths: Array, *, parts: Positive
) -> tuple[list[Array], list[Array]]:
    """Assign the rows of each sequence to `parts` shards, by `key mod parts`; every shard has all sequences.

    The remainder is never negative. Rows keep their order; a sequence that becomes empty stays.

    >>> data = np.array([10, 20, 30])
    >>> partition_sequences(data, np.array([4, 5, 6]), np.array([2, 1]), parts=2)
    PartitionSequencesResult(values=[array([10, 30]), array([20])], lengths=[array([1, 1]), array([1, 0])])
    """
    order, sizes = _by_remainder(keys, parts)
    ends = np.cumsum(sizes)[:-1]
    sequences = kernels.lengths_to_segment_ids(lengths)
    kept = [np.bincount(rows, minlength=len(lengths)) for rows in np.split(sequences[order], ends)]
    return np.split(kernels.gather(data, order), ends), kept


@op(
    "{like(shards) shards[_, *d]}+, int keys[N] -> data[P=N, *d]",
    caffe2="GatherByKey",
    shape=_infer_brought_together,
    grad=MovedRows(),
)
def gather_by_key(shards: list[Array], keys: Array) -> Array:
    """Join the shards that `partition` made by these keys: the rows of all shards in the order of the keys.

    Each shard has as many rows as there are keys with its number as remainder. All shards have one dtype.

    >>> gather_by_key([np.array([10, 30]), np.array([20])], np.array([4, -1, 6]))
    array([10, 20, 30])
    """
    order, sizes = _by_remainder(keys, len(shards))
    for i, (shard, size) in enumerate(zip(shards, sizes.tolist(), strict=True)):
        if len(shard) != size:
            raise ShapeError(
                f"shards[{i}] has {len(shard)} rows, expected {size}: "
                f"the number of keys that are {i} modulo {len(shards)}"
            )
    data = np.empty((len(keys), *shards[0].shape[1:]), shards[0].dtype)
    data[order] = np.concatenate(shards)
    return data


def _by_remainder(keys: Array, parts: int) -> tuple[Array, Array]:
    """Return the rows of one remainder after another, and the number of rows of each."""
    wide = np.dtype(np.uint64 if keys.dtype == np.uint64 else np.int64)
    return kernels.group_rows(keys.astype(wide) % wide.type(parts), parts)


@op(
    "int keys[N] -> {index(N) positions[_]}*num_keys",
    caffe2="KeySplit",
    shape=_infer_parts,
)
def key_split(keys: Array, *, num_keys: Positive) -> list[Array]:
    """Return the positions of each key from 0 to `num_keys - 1`, in ascending order; other keys are an OpIndexError.

    >>> key_split(np.array([2, 0, 2]), num_keys=3)
    [array([1]), array([], dtype=int64), array([0, 2])]
    """
    order, sizes = kernels.group_rows(indices_below("keys", keys, num_keys), num_keys)
    return np.split(order, np.cumsum(sizes)[:-1])
