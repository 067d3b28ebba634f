"""The kernels of ops on the CPU, which work on the memory of the tensors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.registry import OpDef
from seqflow.torch.compiler import never_traced
from seqflow.torch.ops.dtypes import numpy_dtype, to_array, to_tensor
from seqflow.torch.ops.exchange import tensor_of
from seqflow.torch.ops.schemas import attributes_of


def array_kernel(op: OpDef) -> Callable[..., Any]:
    """Return the op on arrays of tensors: it takes them, the attributes, and whether float32 becomes bfloat16."""
    defaults = {one.name: one.default for one in attributes_of(op) if not one.required}
    dtypes = {one.name for one in attributes_of(op) if one.kind == "dtype"}
    wide = op.signature.wide
    call, is_group, has_results = op.call, op.result is not None, bool(op.output_names)
    sized = op.takes_total

    def kernel(arrays: Sequence[Any], attributes: dict[str, Any], narrow: bool = False) -> Any:
        if not attributes:
            found = call(*arrays)
        else:
            total = attributes.pop("total", None) if sized else None
            for name, value in attributes.items():
                if value is None and name in defaults:
                    attributes[name] = defaults[name]
                elif name in dtypes:
                    attributes[name] = numpy_dtype(value)
            found = call(*arrays, **attributes)
            check_total(op, total, found)
        if is_group:
            return tuple([_result(one, arrays, narrow and i not in wide) for i, one in enumerate(found)])
        return _result(found, arrays, narrow) if has_results else None

    return kernel


def cpu_kernel(op: OpDef) -> Callable[..., Any]:
    """Return the op on tensors of the CPU; its results are new tensors."""
    on_arrays = array_kernel(op)

    def kernel(*tensors: Any, **attributes: Any) -> Any:
        try:
            arrays = [_array(one) for one in tensors]
        except OpTypeError as error:
            raise error.in_op(op.name) from None
        return on_arrays(arrays, attributes, any(map(_is_bfloat16, tensors)))

    return never_traced(kernel)


def check_total(op: OpDef, total: int | None, found: Any) -> None:
    """Raise OpError if the result does not have the number of rows that the call passed as `total`."""
    if total is not None and len(found) != total:
        raise OpError(f"total is {total}, but sum(lengths) is {len(found)}").in_op(op.name)


def _array(value: Any) -> Any:
    if isinstance(value, Tensor):
        return to_array(value)
    return value if value is None else [to_array(one) for one in value]


def _is_bfloat16(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_bfloat16, value))
    return value is not None and value.dtype is torch.bfloat16


def _result(found: Any, arrays: Sequence[Any], narrow: bool) -> Any:
    """Return a result as a tensor or a list of tensors; for bfloat16 inputs, float32 becomes bfloat16 again."""
    if isinstance(found, list):
        return [_result(one, arrays, narrow) for one in found]
    if found.base is not None:
        found = _apart(found, arrays)
    tensor = tensor_of(found)
    if tensor is None:
        tensor = to_tensor(found)
    return tensor.bfloat16() if narrow and tensor.dtype is torch.float32 else tensor


def _apart(result: Array, arrays: Sequence[Any]) -> Array:
    """Return the result, as a copy if it is a view of an input."""
    # torch forbids outputs that alias inputs unless the schema says so
    for value in arrays:
        for one in value if isinstance(value, list) else (value,):
            if one is not None and np.may_share_memory(one, result):
                return result.copy()
    return result
