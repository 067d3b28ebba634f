"""dtypes of torch and of NumPy, and tensors as arrays that share their memory."""

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
    """Return the dtype in NumPy; that of bfloat16 is float32, in which it is computed. Raises OpTypeError for others it lacks."""
    if dtype is torch.bfloat16:
        return np.dtype(np.float32)
    if isinstance(dtype, torch.dtype):
        if dtype not in _NUMPY:
            raise OpTypeError(f"a tensor is {dtype}, expected one of {', '.join(_NAMES)}, bfloat16")
        return _NUMPY[dtype]
    found: np.dtype[Any] = np.dtype(dtype)
    return found


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return the dtype in torch, of one of NumPy or its name."""
    return dtype if isinstance(dtype, torch.dtype) else _TORCH[np.dtype(dtype)]


def to_array(tensor: Tensor) -> Array:
    """Return the tensor as an array that shares its memory; of bfloat16 a copy in float32.

    Raises OpTypeError for a tensor that is not dense, or of a dtype that NumPy lacks.
    """
    try:
        array: Array = tensor.detach().numpy()
    except (TypeError, RuntimeError):
        array = _copied(tensor)
    return array


def _copied(tensor: Tensor) -> Array:
    """Return an array of a tensor whose memory NumPy cannot read as it is."""
    if tensor.is_nested or tensor.layout is not torch.strided:
        found = "nested" if tensor.is_nested else str(tensor.layout)
        raise OpTypeError(
            f"a tensor is {found}, expected a dense one: x.to_dense(), or its values and lengths"
        )
    numpy_dtype(tensor.dtype)
    plain = tensor.detach().resolve_neg()
    array: Array = (plain.float() if tensor.dtype is torch.bfloat16 else plain).numpy()
    return array


def to_tensor(array: Array) -> Tensor:
    """Return an array of our own as a tensor that shares its memory, which is contiguous."""
    if not array.size:  # NumPy says of strides what it likes, and compilers would make a program for each
        return torch.empty(array.shape, dtype=torch_dtype(array.dtype))
    if not (array.flags.c_contiguous and array.flags.writeable) or min(array.strides, default=0) < 0:
        array = np.array(array, order="C")
    return torch.from_numpy(array)
