"""Pooling of quantized embedding tables, each row with a scale and a bias: value = scale * integer + bias."""

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, rows
from seqflow.kernels.checks import check_same_size, check_sum, checked_indices
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import BYTES, COUNTS, FLOATS
from seqflow.kernels.reductions import segment_reduce

__all__ = ["pool_quantized", "unpack_quantized"]


@kernel(table=BYTES, weights=FLOATS, indices=COUNTS, lengths=COUNTS)
def pool_quantized(
    kind: str,
    table: Array,
    weights: Array | None,
    indices: Array,
    lengths: Array,
    bits: int = 8,
    scale: str = "float32",
    pruned: bool = False,
) -> Array:
    """Reduce quantised rows by segment: uint8 table[R, _], indices[sum(lengths)], lengths[B] -> float32 out[B, W].

    kind is "sum" or "mean"; weights[sum(lengths)] are float32, one for each row. Integers times scales are added up
    separately from biases, both in the dtype `scale`, in blocks and in float64. An empty segment gives 0. If the
    table is `pruned`, the index -1 means a row of zeros.
    """
    table, indices = rows(table, "table"), int64_counts(indices, "indices")
    lengths = int64_counts(lengths, "lengths")
    _check_fused(table, bits, scale)
    check_sum(lengths, len(indices), "indices")
    if weights is not None:
        check_same_size(weights=weights, indices=indices)
    _, used = checked_indices(indices, len(table), False, -1 if pruned else None)
    picked = np.zeros((len(indices), table.shape[1]), np.uint8)
    picked[used] = table[indices[used]]
    values, scales, biases = unpack_quantized(picked, bits, scale)
    with np.errstate(all="ignore"):
        if weights is not None:
            factors = weights.astype(np.float32)[:, None]
            factors[~used] = 0
            scales, biases = scales * factors, biases * factors
        values *= scales
        sums = segment_reduce(kind, values.astype(np.float64), lengths)
        sums += segment_reduce(kind, biases.astype(np.float64), lengths)
        return sums.astype(np.float32)


def _check_fused(table: Array, bits: int, scale: str) -> None:
    if bits not in (8, 4, 2) or scale not in ("float32", "float16"):
        raise ValueError(
            f"bits is {bits!r} and scale {scale!r}, expected 8, 4 or 2, and 'float32' or 'float16'"
        )
    least = 2 * np.dtype(scale).itemsize
    if table.dtype != np.uint8 or table.ndim != 2 or table.shape[1] < least:
        raise ValueError(
            f"table is {table.dtype}{list(table.shape)}, expected uint8[R, W] with W of {least} or more"
        )


def unpack_quantized(table: Array, bits: int, scale: str) -> tuple[Array, Array, Array]:
    """Return the integers of rows, their scales and their biases in float32: [R, W], [R, 1] and [R, 1].

    A row has its integers, the first one of a byte in the lowest bits, then scale and bias, little-endian.
    """
    dtype = np.dtype(scale).newbyteorder("<")
    size, per_byte = table.shape[1] - 2 * dtype.itemsize, 8 // bits
    ends = np.ascontiguousarray(table[:, size:]).view(dtype).astype(np.float32)
    integers = np.empty((len(table), size * per_byte), np.float32)
    for place in range(per_byte):
        integers[:, place::per_byte] = table[:, :size] >> np.uint8(place * bits) & np.uint8((1 << bits) - 1)
    return integers, ends[:, :1], ends[:, 1:]
