"""Conversion of dtypes between torch and NumPy, and of tensors to arrays that share their memory, and back."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqflow.errors import OpTypeError
from seqflow.kernels.arrays import Array

_NAMES = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
)  # fmt: skip
_NUMPY: dict[torch.dtype, np.dtype[Any]] = {getattr(torch, name): np.dtype(name) for name in _NAMES}
_TORCH = {dtype: name for name, dtype in _NUMPY.items()}


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype in NumPy, float32 for bfloat16; raise OpTypeError if NumPy has none."""
    if dtype is torch.bfloat16:
        return np.dtype(np.float32)
    if isinstance(dtype, torch.dtype):
        if dtype not in _NUMPY:
            raise OpTypeError(f"a tensor is {dtype}, expected one of {', '.join(_NAMES)}, bfloat16")
        return _NUMPY[dtype]
    found: np.dtype[Any] = np.dtype(dtype)
    return found


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return the dtype in torch for a dtype of NumPy or its name."""
    return dtype if isinstance(dtype, torch.dtype) else _TORCH[np.dtype(dtype)]


def to_array(tensor: Tensor) -> Array:
    """Return the tensor as an array that shares its memory, but bfloat16 as a copy in float32.

    Raises OpTypeError for a tensor that is not dense, or has a dtype that NumPy lacks.
    """
    if tensor._is_zerotensor():
        tensor = tensor.clone()  # it has no memory, at which torch 2.9 looks all the same
    try:
        array: Array = tensor.detach().numpy()
    except (TypeError, RuntimeError):
        array = _copied(tensor)
    return array


def _copied(tensor: Tensor) -> Array:
    """Return an array for a tensor with memory that NumPy cannot read directly."""
    if tensor.is_nested or tensor.layout is not torch.strided:
        found = "nested" if tensor.is_nested else str(tensor.layout)
        raise OpTypeError(
            f"a tensor is {found}, expected a dense one: x.to_dense(), or its values and lengths"
        )
    numpy_dtype(tensor.dtype)
    plain = tensor.float() if tensor.dtype is torch.bfloat16 else tensor
    array: Array = plain.numpy(force=True)  # also of the negative bit
    return array


def to_tensor(array: Array) -> Tensor:
    """Return a contiguous tensor that shares the memory of an array, if the array is contiguous and writeable."""
    if not array.size:  # NumPy may give it any strides, and compilers would make a program for each
        return torch.empty(array.shape, dtype=torch_dtype(array.dtype))
    if not (array.flags.c_contiguous and array.flags.writeable) or min(array.strides, default=0) < 0:
        array = np.array(array, order="C")
    return torch.from_numpy(array)
