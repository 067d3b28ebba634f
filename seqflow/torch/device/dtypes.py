"""dtypes of results by NumPy's rules."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqflow import kernels
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.torch.dtypes import numpy_dtype, torch_dtype


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
