"""Batches as PyTorch tensors, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.torch.arrays import to_array
from seqflow.torch.attention import CuSeqlens
from seqflow.torch.attention import cu_seqlens as cu_seqlens_of


def to_tensors(
    batch: Mapping[str, Array],
    *,
    pin_memory: bool = False,
    int64: bool | Collection[str] = False,
    cu_seqlens: bool = False,
) -> dict[str, Any]:
    """The tensors of a batch by name; they share the memory of its arrays.

    Arrays that may not be written to, such as slices of Arrow's memory, are copied. `int64` converts integers of
    other widths, of all tensors or of those named: embeddings and losses of PyTorch want it. With `pin_memory` the
    tensors are in pinned memory, from which they are copied to a GPU while it computes. With `cu_seqlens` a packed
    batch has two entries more, as variable-length attention takes them: the tensor `cu_seqlens`, which stays int32,
    and the number `max_seqlen`; see the function of that name.

    Raises OpTypeError for a dtype that PyTorch has not, such as datetime64.

    >>> to_tensors({"x": np.array([1, 2], np.int32)}, int64=True)
    {'x': tensor([1, 2])}
    """
    import torch

    tensors = {}
    for name, array in batch.items():
        wide = int64 if isinstance(int64, bool) else name in int64
        if wide and array.dtype.kind in "iu" and array.dtype != np.int64:
            array = array.astype(np.int64)
        elif not array.flags.writeable or not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="), copy=True)
        try:
            tensor = torch.from_numpy(array)
        except TypeError:
            raise OpTypeError(
                f"{name} is {array.dtype}{list(array.shape)}, which PyTorch has not\n"
                "  cast it in net, or leave it out with return"
            ) from None
        tensors[name] = tensor.pin_memory() if pin_memory else tensor
    return tensors | _offsets(batch, pin_memory) if cu_seqlens else tensors


def _offsets(batch: Mapping[str, Array], pin_memory: bool) -> dict[str, Any]:
    """The entries that variable-length attention needs."""
    taken = next((name for name in CuSeqlens._fields if name in batch), None)
    if taken is not None:
        raise OpError(f"the batch has a tensor {taken} already\n  rename it, or leave cu_seqlens=True out")
    offsets, longest = cu_seqlens_of(batch)
    return CuSeqlens(offsets.pin_memory() if pin_memory else offsets, longest)._asdict()


def from_tensors(tensors: Mapping[str, Any]) -> dict[str, Array]:
    """Arrays that share the memory of tensors of the CPU; those of other devices are copied.

    bfloat16, which NumPy has not, becomes float32.
    """
    return {name: to_array(tensor) for name, tensor in tensors.items()}
