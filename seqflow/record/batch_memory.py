"""BatchMemory: memory that is reused from batch to batch."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqflow.record.record import Tensor

_LINE = 64
"""Arrays start at a multiple of as many bytes: a line of the processor's caches."""


class BatchMemory:
    """Memory for the tensors of a batch, by name; the next batch overwrites it.

    Memory that the system hands out for the first time costs more than what is written to it, so that a loop which
    is done with each batch before it takes the next is several times as fast with it. For batches that are made
    while others are in use, keep as many.
    """

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: dict[str, Tensor] = {}

    def empty(self, name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Tensor:
        """An uninitialised array, which the next one of this name overwrites."""
        size = math.prod(shape) * dtype.itemsize
        block = self._blocks.get(name)
        if block is None or block.nbytes < size:
            block = self._blocks[name] = _aligned(1 << max(size - 1, 0).bit_length())
        return np.ndarray(shape, dtype, block)

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks."""
        return sum(block.nbytes for block in self._blocks.values())


def _aligned(size: int) -> Tensor:
    """uint8[size] aligned to cache lines."""
    block = np.empty(size + _LINE, np.uint8)
    start = -block.ctypes.data % _LINE
    return block[start : start + size]
