"""BatchMemory: memory that is reused from batch to batch."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqflow.record.record import Tensor

_LINE = 64
"""Alignment of arrays in bytes: a cache line of the processor."""


class BatchMemory:
    """Memory for the tensors of a batch, by name; the next batch overwrites it.

    New memory from the system costs more time than writing to it. A loop that finishes each batch before it takes the
    next one is several times as fast with reused memory. When several batches are in use at once, keep one
    BatchMemory for each.
    """

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: dict[str, Tensor] = {}

    def empty(self, name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Tensor:
        """Return an uninitialised array; the next one of this name overwrites it."""
        size = math.prod(shape) * dtype.itemsize
        block = self._blocks.get(name)
        if block is None or block.nbytes < size:
            # powers of 2: batches that grow slowly reallocate a block only each time it doubles
            block = self._blocks[name] = _aligned(1 << max(size - 1, 0).bit_length())
        return np.ndarray(shape, dtype, block)

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks."""
        return sum(block.nbytes for block in self._blocks.values())


def _aligned(size: int) -> Tensor:
    """Return uint8[size] aligned to cache lines."""
    block = np.empty(size + _LINE, np.uint8)
    start = -block.ctypes.data % _LINE
    return block[start : start + size]
