"""Conversion of PyTorch tensors to NumPy arrays."""

from typing import Any

import numpy as np

from seqflow.arguments import shown
from seqflow.errors import OpTypeError
from seqflow.kernels.arrays import Array


def to_array(tensor: Any) -> Array:
    """Return a tensor as an array, and an array as it is."""
    if isinstance(tensor, np.ndarray):
        return tensor
    if not hasattr(tensor, "detach"):
        raise OpTypeError(f"found {shown(tensor)}, expected a tensor or an array")
    tensor = tensor.detach().cpu()
    try:
        array: Array = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    except (TypeError, RuntimeError) as error:
        raise OpTypeError(f"a tensor is {tensor.dtype}, which NumPy does not have: {error}") from None
    return array
