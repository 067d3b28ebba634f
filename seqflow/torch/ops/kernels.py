"""The kernels of ops on the CPU, which work on the memory of the tensors."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter

from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.kernels.dispatch import extension
from seqflow.registry import OpDef
from seqflow.torch.compiler import never_traced
from seqflow.torch.dtypes import numpy_dtype, to_array, to_tensor
from seqflow.torch.ops.schemas import attributes_of


def _arguments(op: OpDef) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that converts the attributes of a call of torch for the op on arrays, without `total`."""
    defaults = {one.name: one.default for one in attributes_of(op) if not one.required}
    dtypes = {one.name for one in attributes_of(op) if one.kind == "dtype"}
    sized = {"total"} if op.takes_total else set()

    def convert(attributes: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: defaults[name]
            if value is None and name in defaults
            else numpy_dtype(value)
            if name in dtypes
            else value
            for name, value in attributes.items()
            if name not in sized
        }

    return convert


def memory_kernel(op: OpDef) -> Callable[..., Any]:
    """Return the op on the memory of a tuple of tensors; NotImplemented if they are not plain ones of the CPU."""
    call, convert, convert_result = op.call, _arguments(op), partial(_result, narrow=False)

    def kernel(tensors: tuple[Any, ...], attributes: Mapping[str, Any]) -> Any:
        if not attributes:
            return call_on_tensors(call, convert_result, tensors, None)
        found = call_on_tensors(call, convert_result, tensors, convert(attributes))
        if found is not NotImplemented:
            check_total(op, attributes.get("total"), found)
        return found

    return kernel


def cpu_kernel(op: OpDef) -> Callable[..., Any]:
    """Return the op on tensors of the CPU; its results are new tensors."""
    call, convert, wide = op.call, _arguments(op), op.signature.wide
    is_group, has_results = op.result is not None, bool(op.output_names)

    def kernel(*tensors: Any, **attributes: Any) -> Any:
        try:
            arrays = [_array(one) for one in tensors]
        except OpTypeError as error:
            raise error.in_op(op.name) from None
        narrow = any(map(_is_bfloat16, tensors))
        found = call(*arrays, **convert(attributes))
        check_total(op, attributes.get("total"), found)
        if is_group:
            return tuple([_result(one, arrays, narrow and i not in wide) for i, one in enumerate(found)])
        return _result(found, arrays, narrow) if has_results else None

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


def _exchange() -> tuple[Callable[..., Any], ...]:
    functions, native = getattr(Tensor, "__dlpack_c_exchange_api__", None), extension()
    if functions is not None and native is not None and native.set_up_tensors(functions, Tensor, Parameter):
        return native.tensor_of_array, native.call_on_tensors
    return (lambda array: None), (lambda *call: NotImplemented)


tensor_of, call_on_tensors = _exchange()
"""`tensor_of`: a tensor on the memory of an array, or None.

`call_on_tensors`: a function of arrays on tensors; NotImplemented if they are not plain ones of the CPU. It takes the
function, another one of a result and the arrays, which converts a result that a tensor cannot share, the tensors, and
the attributes (None: none).
"""
