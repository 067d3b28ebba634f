"""Arrays in pages of 2 MiB, for tables that are read at random places."""

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from seqflow.arguments import checked
from seqflow.errors import OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.kernels.memory import check_memory

_PAGE = 1 << 21
_ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@checked()
def large_pages(array: Array) -> Array:
    """Return a copy of an array in memory pages of 2 MiB: [*d] -> [*d], of any dtype without Python objects.

    A processor remembers the addresses of some thousand pages. With pages of 4 KiB, each look-up of a row of a large
    table reads an address from memory, too, so pooled look-ups gain most. NumPy's own new arrays of 4 MiB or more are
    on large pages already; memory of PyTorch, of Arrow and of mapped files is not.

    The copy is C-contiguous and is not shared with other processes, as a mapped file is. The result is the array
    itself, not a copy, if it has less than 2 MiB, or if the system has no large pages on request: only Linux has
    them, unless `/sys/kernel/mm/transparent_hugepage/enabled` says `[never]`. A system without free large pages
    gives small ones.

    Args:
        array: The table that is looked up.

    Raises OpTypeError for Python objects, KernelMemoryError when the copy does not fit into memory.

    >>> table = np.zeros((20_000, 64), np.float32)
    >>> (large_pages(table) == table).all()
    np.True_
    """
    if array.dtype.hasobject:
        raise OpTypeError(f"large_pages: array is {array.dtype}, expected a dtype without Python objects")
    if array.nbytes < _PAGE or not _on_request():
        return array
    check_memory((array.nbytes + _PAGE,), np.dtype(np.uint8))
    # not shared: shared memory follows another switch of the system
    memory = mmap.mmap(-1, array.nbytes + _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)  # before the first write, which takes the pages
    start = -np.frombuffer(memory, np.uint8).ctypes.data % _PAGE
    copy: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, memory, start)
    copy[...] = array
    return copy


def _on_request() -> bool:
    """Return whether memory gets large pages where a program asks for them."""
    try:
        return hasattr(mmap, "MADV_HUGEPAGE") and "[never]" not in _ENABLED.read_text()
    except OSError:
        return False
