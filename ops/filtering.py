"""Leaving rows and sequences out, and putting them back."""

from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.random_bits import random_bits, sequence_bits, uniform
from seqflow.ops.shared.scalars import cast_scalar, with_fill
from seqflow.ops.shared.shares import share
from seqflow.ops.shared.slices import int64, move_sequences, starts_of
from seqflow.registry import MovedRows, op
from seqflow.signature import Fill, NonNegative, Scalar


@op(
    "data[N, *d], bool mask[N] -> rows[K, *d], index(N) positions[K], K <= N",
    caffe2="BooleanMask",
    rows={"K": "select(N, mask)"},
    depends={"positions": "mask"},
    grad={"data": "scatter_rows(d.rows, out.positions, data)"},
)
def boolean_mask(data: Array, mask: Array) -> tuple[Array, Array]:
    """Select the rows where `mask` is true; also return their positions.

    >>> boolean_mask(np.array([10, 20, 30]), np.array([True, False, True]))
    BooleanMaskResult(rows=array([10, 30]), positions=array([0, 2]))
    """
    # a copy: NumPy counts first and fills then, and another thread may write to the mask in between
    positions = np.flatnonzero(mask.copy())
    return kernels.gather(data, positions), positions


@op(
    "{like(values) values[_, *d], bool mask[N]}+ -> data[N, *d]",
    caffe2="BooleanUnmask",
    grad=MovedRows(fill="fill"),
)
def boolean_unmask(values: list[Array], mask: list[Array], *, fill: Fill | None = None) -> Array:
    """Put rows back to the places that masks took them from: the inverse of `boolean_mask`.

    If masks overlap, the first one wins, and a later mask has values only for its other places. A place that no mask
    covers is an error, unless `fill` is given. All values have one dtype.

    >>> mask = np.array([True, False, True])
    >>> boolean_unmask([np.array([10, 30]), np.array([20])], [mask, ~mask])
    array([10, 20, 30])
    """
    first, value = with_fill("fill", 0 if fill is None else fill, values[0])
    data = np.empty((len(mask[0]), *first.shape[1:]), first.dtype)
    free = np.ones(len(data), bool)
    for i, (rows, here) in enumerate(zip(values, mask, strict=True)):
        here = here.copy()
        own = here & free
        if len(rows) != np.count_nonzero(own):
            raise OpError(
                f"values[{i}] has {len(rows)} rows, expected {np.count_nonzero(own)} as mask[{i}] says"
            )
        data[own] = rows
        free &= ~here
    if fill is not None:
        data[free] = value
    elif free.any():
        raise OpError(
            f"no mask covers row {int(np.argmax(free))}\n  `fill` says what goes where no mask is true"
        )
    return data


@op(
    "bool mask[sum(lengths)], lengths[B] -> int64 lengths'[B] <= lengths",
    caffe2="BooleanMaskLengths",
    describes={"lengths": "select(sum(lengths), mask)"},
)
def boolean_mask_lengths(mask: Array, lengths: Array) -> Array:
    """Count the rows of each sequence that a mask keeps: the lengths of the rows of `boolean_mask`.

    An empty sequence has 0.

    >>> boolean_mask_lengths(np.array([True, False, True]), np.array([2, 0, 1]))
    array([1, 0, 1])
    """
    return kernels.segment_reduce("sum", mask, lengths)


@op(
    "data[sum(lengths), *d], bool mask[sum(lengths)], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[B] := boolean_mask_lengths(mask, lengths)",
    grad=MovedRows(),
)
def mask_sequences(data: Array, mask: Array, lengths: Array) -> tuple[Array, Array]:
    """Select the rows of each sequence where `mask` is true; a sequence that becomes empty stays.

    With it every reducer skips rows that are not valid, and gives `empty` where none is:

        lengths_max(*mask_sequences(x, valid, n), empty=0)

    >>> mask_sequences(np.array([1, 2, 3]), np.array([True, False, True]), np.array([2, 0, 1]))
    MaskSequencesResult(values=array([1, 3]), lengths=array([1, 0, 1]))
    """
    return _masked(data, mask, lengths)


def _masked(data: Array, mask: Array, lengths: Array) -> tuple[Array, Array]:
    mask = mask.copy()
    kept = kernels.segment_reduce("sum", mask, lengths)
    return kernels.gather(data, np.flatnonzero(mask)), kept


@op("int data[sum(lengths)], lengths[B] -> values[sum(lengths')], int64 lengths'[B] <= lengths")
def erase_tokens(data: Array, lengths: Array, *, tokens: Any) -> tuple[Array, Array]:
    """Drop every id that is one of `tokens`, an id or a list of ids; a sequence that becomes empty stays.

    This is Paddle's sequence_erase.

    >>> erase_tokens(np.array([1, 2, 3, 2]), np.array([3, 0, 1]), tokens=[2, 7])
    EraseTokensResult(values=array([1, 3]), lengths=array([2, 0, 0]))
    """
    return _masked(data, ~np.isin(data, _ids(tokens, data.dtype)), lengths)


def _ids(tokens: Any, dtype: np.dtype[Any]) -> Array:
    """Return the ids of `tokens` that arrays of this dtype can hold."""
    ids = np.atleast_1d(np.asarray(tokens, object))
    if ids.ndim != 1 or not all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in ids):
        raise OpTypeError(f"tokens is {tokens!r}, expected an integer or a list of integers")
    limits = np.iinfo(dtype)
    return np.array([i for i in ids if limits.min <= i <= limits.max], dtype)


@op(
    "data[sum(lengths), *d], bool keep[B], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[K] := boolean_mask(lengths, keep), K <= B,"
    " sum(lengths') <= sum(lengths)",
    rows={"K": "select(B, keep)"},
    grad=MovedRows(),
)
def filter_sequences(data: Array, keep: Array, lengths: Array) -> tuple[Array, Array]:
    """Select the sequences where `keep` is true, including empty ones.

    >>> filter_sequences(np.array([1, 2, 3]), np.array([False, True, True]), np.array([2, 0, 1]))
    FilterSequencesResult(values=array([3]), lengths=array([0, 1]))
    """
    sizes, chosen = int64(lengths), keep.copy()
    kept = sizes[chosen]
    return move_sequences(data, starts_of(sizes)[chosen], kept), kept


@op(
    "int data[sum(lengths)], lengths[B] -> dropped[sum(lengths)]",
    caffe2="SparseItemwiseDropoutWithReplacement",
    random="seed",
)
def dropout_ids(
    data: Array, lengths: Array, *, ratio: float, replacement: Scalar = 0, seed: NonNegative
) -> Array:
    """Replace each id by `replacement` with probability `ratio`; the lengths do not change.

    The same seed drops the same places on every machine: those with a random number below `ratio`. The number depends
    on the seed, the index of the sequence, and the position in it; `seqflow.ops.shared.random_bits` defines it. An
    empty sequence stays empty.

    >>> dropout_ids(np.array([1, 2, 3, 4]), np.array([3, 0, 1]), ratio=0.5, seed=2)
    array([0, 2, 3, 0])
    """
    value = cast_scalar("replacement", replacement, data.dtype)
    kept = data.copy()
    kept[uniform(random_bits(seed, lengths)) < share("ratio", ratio)] = value
    return kept


@op(
    "int data[sum(lengths)], lengths[B] -> values[sum(lengths')], int64 lengths'[B] <= maximum(lengths, 1)",
    caffe2="SparseDropoutWithReplacement",
    random="seed",
)
def dropout_sequences(
    data: Array, lengths: Array, *, ratio: float, replacement: Scalar = 0, seed: NonNegative
) -> tuple[Array, Array]:
    """Replace each whole sequence by the one id `replacement` with probability `ratio`.

    A replaced sequence has length 1, even if it was empty. The same seed drops the same sequences on every machine:
    those with a random number below `ratio`. The number depends on the seed and the index of the sequence;
    `seqflow.ops.shared.random_bits` defines it.

    >>> dropout_sequences(np.array([1, 2, 3]), np.array([2, 0, 1]), ratio=0.5, seed=2)
    DropoutSequencesResult(values=array([0, 0, 3]), lengths=array([1, 1, 1]))
    """
    value = cast_scalar("replacement", replacement, data.dtype)
    dropped = uniform(sequence_bits(seed, len(lengths))) < share("ratio", ratio)
    sizes = int64(lengths)
    kept = np.where(dropped, 1, sizes)
    rows = np.empty(int(kept.sum()), data.dtype)
    stays, targets = ~dropped, starts_of(kept)
    kernels.move_slices(data, starts_of(sizes)[stays], sizes[stays], rows, targets[stays])
    rows[targets[dropped]] = value
    return rows, kept
