"""BatchMemory: arrays of one batch after another, in the same memory."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqflow.record.record import Tensor

_LINE = 64
"""Arrays start at a multiple of as many bytes: a line of the processor's caches."""


class BatchMemory:
    """Memory by name for the tensors of a batch, which those of the next batch overwrite.

    Memory that the system hands out for the first time costs more than what is written to it, so that a loop which
    is done with each batch before it takes the next is several times as fast with it. For batches that are made
    while others are in use, keep as many.
    """

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: dict[str, Tensor] = {}

    def empty(self, name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Tensor:
        """An array with any contents; it is overwritten by the next of this name."""
        size = math.prod(shape) * dtype.itemsize + _LINE
        block = self._blocks.get(name)
        if block is None or block.nbytes < size:
            block = self._blocks[name] = np.empty(1 << (size - 1).bit_length(), np.uint8)
        return np.ndarray(shape, dtype, block, -block.ctypes.data % _LINE)

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks."""
        return sum(block.nbytes for block in self._blocks.values())
