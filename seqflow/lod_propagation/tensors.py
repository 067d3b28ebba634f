"""Tensors of torch as values: recognised without importing torch, and passed to the ops on tensors."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from seqflow.registry.higher_floors import TENSOR_OPS


def is_tensor(value: Any) -> bool:
    """Return whether the value is a tensor of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def dtype_of(value: Any) -> np.dtype[Any]:
    """Return the dtype of an array or a tensor in NumPy; bfloat16 is computed in float32."""
    if not is_tensor(value):
        found: np.dtype[Any] = value.dtype
        return found
    name = str(value.dtype).removeprefix("torch.")
    return np.dtype("float32" if name == "bfloat16" else name)


def tensor_among(inputs: Sequence[Any]) -> Any:
    """Return the first tensor among the inputs of a call, also in lists; None if there is none."""
    if "torch" not in sys.modules:
        return None
    for value in inputs:
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if is_tensor(one):
                return one
    return None


def call_on_tensors(
    name: str, inputs: Sequence[Any], attributes: Mapping[str, Any], like: Any, variadic: bool
) -> Any:
    """Call the op on tensors; lengths and other arrays become tensors on the device of `like`."""
    torch = sys.modules["torch"]

    def brought(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [brought(one) for one in value]
        if value is None or is_tensor(value) or isinstance(value, (bool, int, float)):
            return value
        return torch.from_numpy(np.array(value)).to(like.device)

    op_of = import_module(TENSOR_OPS).call_of
    tensors = [brought(value) for value in inputs]
    return op_of(name)(*(tensors[0] if variadic else tensors), **attributes)


def picked(values: Any, rows: Any) -> Any:
    """Return the rows of a tensor at these positions."""
    return values[sys.modules["torch"].from_numpy(rows).to(values.device)]
