"""Conversion of PyTorch tensors to NumPy arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.arguments import shown
from seqflow.errors import LodError, OpTypeError, UnknownColumnError, nearest
from seqflow.kernels.arrays import Array


def to_array(tensor: Any) -> Array:
    """Return a tensor as an array, and an array as it is."""
    if isinstance(tensor, np.ndarray):
        return tensor
    if not hasattr(tensor, "detach"):
        raise OpTypeError(f"found {shown(tensor)}, expected a tensor or an array")
    from seqflow.torch.dtypes import to_array as dense_array  # needs torch, which has made the tensor

    return dense_array(tensor.detach().cpu())


def to_lengths(lengths: Any) -> Array:
    """Return a copy of lengths as int64; raise LodError unless they are integers of one axis, 0 or more."""
    array = to_array(lengths)
    array = array if array.size else array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise LodError(f"lengths is {array.dtype}{list(array.shape)}, expected integers of one axis")
    try:
        kernels.check_lengths(array)
    except kernels.KernelError as error:
        raise LodError(str(error)) from None
    return array.astype(np.int64)


def tensor_named(name: str, batch: Mapping[str, Any], argument: str) -> Any:
    """Return the tensor of a batch that an argument names; raise UnknownColumnError if there is none."""
    if name not in batch:
        raise UnknownColumnError(
            f"{argument}: the batch has no tensor {name!r}{nearest(name, batch)}; it has {', '.join(batch)}"
        )
    return batch[name]
