"""Conversion between batches and PyTorch tensors."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array, is_masked
from seqflow.torch.arrays import tensor_named, to_array
from seqflow.torch.attention import PaddedCuSeqlens
from seqflow.torch.attention import cu_seqlens as cu_seqlens_of
from seqflow.torch.attention import cu_seqlens_padded as padded_cu_seqlens_of
from seqflow.torch.compiler import mark_ragged


def to_tensors(
    batch: Mapping[str, Array],
    *,
    pin_memory: bool = False,
    int64: bool | Collection[str] = False,
    cu_seqlens: bool = False,
    ragged: bool = False,
) -> dict[str, Any]:
    """Return the tensors of a batch by name; they share the memory of its arrays.

    Read-only arrays, such as slices of Arrow's memory, are copied, since PyTorch has no read-only tensors.
    Totals of a step are included as tensors without axes.

    Args:
        batch: Arrays by name, such as a Record.
        pin_memory: Whether tensors are in pinned memory, from which a GPU copies while it computes.
        int64: True converts integers of other widths, for embeddings and losses of PyTorch, except uint8:
            mostly pixels and bytes, which would take eight times the memory. A list converts the tensors that
            it names.
        cu_seqlens: Whether a packed batch has more entries for variable-length attention: the tensor
            `cu_seqlens`, which stays int32, the number `max_seqlen`, and for padded pieces also
            `cu_seqlens_padded`.
        ragged: Whether to mark the tensors for torch.compile, as `mark_ragged` does, so that one program fits
            batches of all sizes.

    Raises OpTypeError for a dtype that PyTorch does not have, such as datetime64, and for a name in `int64`
    of a tensor without integers; OpError for an integer that int64 cannot hold; UnknownColumnError for a name
    in `int64` that is not in the batch.

    >>> to_tensors({"x": np.array([1, 2], np.int32)}, int64=True)
    {'x': tensor([1, 2])}
    """
    wide = _to_widen(batch, int64) if int64 is not False else ()
    tensors = {
        name: _tensor(name, _int64(name, array) if name in wide else array) for name, array in batch.items()
    }
    for name, total in getattr(batch, "totals", {}).items():
        tensors[f"step.{name}"] = _tensor(name, np.array(total))
    if pin_memory:
        tensors = {name: tensor.pin_memory() for name, tensor in tensors.items()}
    if cu_seqlens:
        tensors |= _offsets(batch, pin_memory)
    return mark_ragged(tensors) if ragged else tensors


def _to_widen(batch: Mapping[str, Array], int64: bool | Collection[str]) -> Collection[str]:
    """Return the names of the tensors that become int64."""
    if isinstance(int64, bool):
        return [
            name
            for name, array in batch.items()
            if int64 and array.dtype.kind in "iu" and array.dtype != np.uint8
        ]
    named = (int64,) if isinstance(int64, str) else int64
    for name in named:
        dtype = tensor_named(name, batch, "int64").dtype
        if dtype.kind not in "iub":
            raise OpTypeError(f"int64: {name} is {dtype}, expected integers or bool\n  cast it in net")
    return named


def _int64(name: str, array: Array) -> Array:
    """Return integers as int64; raise OpError for one that int64 cannot hold."""
    most = np.iinfo(np.int64).max
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.size and int(array.max()) > most:
        at = int(np.argmax(array.ravel() > np.uint64(most)))
        raise OpError(
            f"int64: {name} is {array.dtype} and has {array.flat[at]} at {at}, expected at most {most}\n"
            "  leave the tensor out of int64=, or hash_indices makes smaller numbers of it"
        )
    return array.astype(np.int64, copy=False)


def _tensor(name: str, array: Array) -> Any:
    """Return a tensor over an array's memory, or over a copy if PyTorch cannot use it or must not write to it."""
    import torch

    if is_masked(type(array)):
        raise OpTypeError(
            f"{name} is a masked array, expected a plain one\n  fill it first: {name}.filled(…)"
        )
    flags = array.flags
    is_plain = flags.writeable and array.dtype.isnative
    # PyTorch has no negative strides
    if not is_plain or not (flags.c_contiguous or min(array.strides, default=0) >= 0):
        array = array.astype(array.dtype.newbyteorder("="), order="C", copy=True)
    try:
        tensor = torch.from_numpy(array)
        # NumPy may give an empty array any strides, and compilers make a program for each
        return tensor if array.size else torch.empty(array.shape, dtype=tensor.dtype)
    except TypeError:
        raise OpTypeError(
            f"{name} is {array.dtype}{list(array.shape)}, which PyTorch does not have\n"
            "  cast it in net, or leave it out with return"
        ) from None


def _offsets(batch: Mapping[str, Array], pin_memory: bool) -> dict[str, Any]:
    """Return the entries that variable-length attention needs."""
    taken = next((name for name in PaddedCuSeqlens._fields if name in batch), None)
    if taken is not None:
        raise OpError(f"the batch has a tensor {taken} already\n  rename it, or leave cu_seqlens=True out")
    found = (padded_cu_seqlens_of if "padded_lengths" in batch else cu_seqlens_of)(batch)._asdict()
    return {
        name: one.pin_memory() if pin_memory and name != "max_seqlen" else one for name, one in found.items()
    }


def from_tensors(tensors: Mapping[str, Any]) -> dict[str, Array]:
    """Return arrays that share the memory of tensors on the CPU; tensors on other devices are copied.

    bfloat16, which NumPy does not have, becomes float32.

    Args:
        tensors: Tensors by name.
    """
    return {name: to_array(tensor) for name, tensor in tensors.items()}
