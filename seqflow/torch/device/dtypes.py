"""dtypes of results by NumPy's rules: conversion of torch's dtypes to NumPy's, and back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqflow import kernels
from seqflow.errors import OpTypeError
from seqflow.ops.shared.scalars import cast_scalar


def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """Return the dtype of the same name in NumPy; raise OpTypeError if there is none."""
    name = str(dtype).removeprefix("torch.")
    try:
        return np.dtype(name)
    except TypeError:
        raise OpTypeError(f"a tensor is {name}, a dtype that NumPy lacks") from None


def torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    """Return the dtype of the same name in torch."""
    found: torch.dtype = getattr(torch, dtype.name)
    return found


def sum_dtype(*data: Tensor) -> torch.dtype:
    """Return the dtype of a sum, or of a sum of products of several tensors."""
    return _ruled(kernels.sum_dtype, data)


def mean_dtype(data: Tensor) -> torch.dtype:
    """Return the dtype of a mean."""
    return _ruled(kernels.mean_dtype, (data,))


def _ruled(rule: Callable[[np.dtype[Any]], np.dtype[Any]], data: tuple[Tensor, ...]) -> torch.dtype:
    return torch_dtype(np.result_type(*(rule(numpy_dtype(one.dtype)) for one in data)))


def scalar(name: str, value: Any, dtype: torch.dtype) -> Any:
    """Return an attribute's value as a Python number of this dtype; raise OpError if the dtype cannot hold it."""
    found = cast_scalar(name, value, numpy_dtype(dtype))
    return found.item() if isinstance(found, np.generic) else found
