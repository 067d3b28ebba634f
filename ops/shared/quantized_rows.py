"""Rows of numbers as small unsigned integers, with a scale and a bias for each row: value = scale * integer + bias.

A row has the integers, with the first integer of a byte in its lowest bits, then scale and bias in float32 or
float16. All are little endian, as in the layouts of Caffe2's and FBGEMM's fused row-wise quantisation.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from seqflow.errors import OpError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.kernels.quantized import unpack_quantized

Scale = Literal["float32", "float16"]
"""Dtype of scale and bias."""


@dataclass(frozen=True)
class RowLayout:
    """Number of bits of an integer, and dtype of scale and bias."""

    bits: int
    scale: str

    @property
    def per_byte(self) -> int:
        """Number of integers in a byte."""
        return 8 // self.bits

    @property
    def levels(self) -> int:
        """Largest integer."""
        return (1 << self.bits) - 1

    @property
    def extra_bytes(self) -> int:
        """Number of bytes of scale and bias."""
        return 2 * np.dtype(self.scale).itemsize

    def row_bytes(self, width: int) -> int:
        """Return the number of bytes of a row of `width` values; raise ShapeError unless they fill whole bytes."""
        if width % self.per_byte:
            raise ShapeError(
                f"data has {width} columns, expected a multiple of {self.per_byte}:"
                f" a byte holds {self.per_byte} integers of {self.bits} bits"
            )
        return width // self.per_byte + self.extra_bytes

    def width(self, row_bytes: int) -> int:
        """Return the number of values of a row; raise ShapeError if it is too short for scale and bias."""
        if row_bytes < self.extra_bytes:
            raise ShapeError(
                f"table has rows of {row_bytes} bytes, expected {self.extra_bytes} or more:"
                f" scale and bias in {self.scale} take that much"
            )
        return (row_bytes - self.extra_bytes) * self.per_byte


def row_layout(bits: int, scale: str | None) -> RowLayout:
    """Return the layout for an op's attributes; `scale` is by default float32 for 8 bits, else float16."""
    if bits not in (8, 4, 2):
        raise OpError(f"bits is {bits}, expected 8, 4 or 2")
    return RowLayout(bits, scale or ("float32" if bits == 8 else "float16"))


def quantized(data: Array, layout: RowLayout) -> Array:
    """Return the rows of data[R, W] in a layout, bit by bit as Caffe2 makes them."""
    width = data.shape[1]
    fused = np.empty((len(data), layout.row_bytes(width)), np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = data.astype(np.float32)
        lowest = rows.min(axis=1, initial=np.inf) if width else np.zeros(len(rows), np.float32)
        highest = rows.max(axis=1, initial=-np.inf) if width else lowest
        if layout == RowLayout(8, "float32"):
            scales, biases, factors = _by_range(lowest, highest)
        else:
            scales, biases, factors = _by_scale(lowest, highest, layout)
    _check_finite(data, scales, biases, layout)
    steps = np.rint((rows - biases.astype(np.float32)[:, None]) * factors[:, None])
    integers = np.clip(steps, 0, layout.levels).astype(np.uint8)
    packed = fused[:, : width // layout.per_byte]
    packed[:] = integers[:, :: layout.per_byte]
    for place in range(1, layout.per_byte):
        packed |= integers[:, place :: layout.per_byte] << np.uint8(place * layout.bits)
    ends = np.stack([scales, biases], axis=1).astype(np.dtype(layout.scale).newbyteorder("<"))
    fused[:, width // layout.per_byte :] = ends.view(np.uint8)
    return fused


def dequantized(fused: Array, layout: RowLayout) -> Array:
    """Return the values of rows in a layout, in float32."""
    values, scales, biases = unpack_quantized(fused, layout.bits, layout.scale)
    with np.errstate(over="ignore", invalid="ignore"):
        values *= scales
        values += biases
    return values


def _by_range(lowest: Array, highest: Array) -> tuple[Array, Array, Array]:
    """Return scales, biases and the factors for distances from the bias; a constant row has the scale 0."""
    spread = highest - lowest
    # 1e-8 is Caffe2's kEpsilon, which keeps a constant row from a division by 0
    return spread / np.float32(255), lowest, np.float32(255) / (spread + np.float32(1e-8))


def _by_scale(lowest: Array, highest: Array, layout: RowLayout) -> tuple[Array, Array, Array]:
    """Return the same, with scale and bias rounded to their dtype first; a constant row has the scale 1."""
    biases = lowest.astype(layout.scale)
    spread = highest - biases.astype(np.float32)
    scales = np.where(spread == 0, np.float32(1), spread / np.float32(layout.levels)).astype(layout.scale)
    with np.errstate(divide="ignore"):
        # as in FBGEMM: a scale with an infinite inverse becomes 1
        tiny = np.isinf(np.float32(1) / scales.astype(np.float32))
    scales[tiny] = 1
    return scales, biases, np.float32(1) / scales.astype(np.float32)


def _check_finite(data: Array, scales: Array, biases: Array, layout: RowLayout) -> None:
    bad = np.flatnonzero(~(np.isfinite(scales) & np.isfinite(biases)))
    if not len(bad):
        return
    row = data[bad[0]]
    columns = np.flatnonzero(~np.isfinite(row))
    if len(columns):
        raise OpError(f"data[{bad[0]}, {columns[0]}] = {row[columns[0]]}, expected finite numbers")
    raise OpError(
        f"data[{bad[0]}] reaches from {row.min()} to {row.max()},"
        f" more than a scale and a bias in {layout.scale} can say"
    )
