"""Registers ops with torch, each at its first use."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from seqflow import registry
from seqflow.deprecated_names import renamed_arguments
from seqflow.errors import OpError, OpTypeError, SeqflowError, ShapeError
from seqflow.expression.functions import by_name
from seqflow.registry import OpDef
from seqflow.registry.errors import check_names, missing_input, too_many_inputs
from seqflow.registry.python_signature import python_signature
from seqflow.signature import Attribute
from seqflow.signature.order import advice_on_numbers
from seqflow.torch.compiler import never_left_out
from seqflow.torch.device import IMPLEMENTATIONS
from seqflow.torch.dtypes import torch_dtype
from seqflow.torch.ops.eager import Run, eager_call, is_eager, is_transformed, trained_call, transformed_call
from seqflow.torch.ops.elementwise import expression_call, function_call
from seqflow.torch.ops.fakes import fake_kernel
from seqflow.torch.ops.gradients import Gradients, register_gradients
from seqflow.torch.ops.kernels import check_total, cpu_kernel
from seqflow.torch.ops.schemas import attributes_of, schema_of, why_not
from seqflow.torch.ops.sparse import sparse_call

_LIBRARY = torch.library.Library("seqflow", "DEF")


@cache
def call_of(name: str) -> Callable[..., Any]:
    """Return the op of this name on tensors; raise OpError for an op that torch cannot express."""
    if name in by_name:
        return function_call(by_name[name].name)
    op = registry.get(name)
    if op.expression is not None:
        return expression_call
    kernel, gradients = cpu_kernel(op), Gradients(op, call_of)
    _register(op, kernel, gradients)
    # autograd.Function does not see the tensors inside lists
    has_lists = op.signature.listed or op.signature.gives_lists
    if has_lists or not op.output_names:
        return _make_call(op, None, None)
    overload = getattr(torch.ops.seqflow, name).default
    eager = eager_call(gradients, kernel)
    if op.trained_as is not None:
        other = registry.get(op.trained_as)
        eager = trained_call(eager, eager_call(Gradients(other, call_of), cpu_kernel(other)))
    return _make_call(op, eager, transformed_call(gradients, overload))


def register_all() -> None:
    """Register all ops that torch can express, to load an exported program; it takes about a second."""
    for name in registry.names():
        if why_not(registry.get(name)) is None:
            call_of(name)


def _register(op: OpDef, kernel: Callable[..., Any], gradients: Gradients) -> None:
    _LIBRARY.define(schema_of(op), tags=(torch.Tag.pt2_compliant_tag,))
    _LIBRARY.impl(op.name, kernel, "CPU")
    torch.library.register_fake(f"seqflow::{op.name}", fake_kernel(op), lib=_LIBRARY)
    if op.output_names:
        register_gradients(op, _LIBRARY, gradients)
    else:
        never_left_out(getattr(torch.ops.seqflow, op.name).default)


def _make_call(op: OpDef, eager: Run | None, transformed: Run | None) -> Callable[..., Any]:
    """Return the op for users: inputs by position or by name, attributes by name, several results as a NamedTuple."""
    overload = getattr(torch.ops.seqflow, op.name).default
    names = [one.name for one in op.signature.input_arguments]
    convert = {one.name: made for one in attributes_of(op) if (made := _conversion(op, one)) is not None}
    known = dict.fromkeys(one.name for one in attributes_of(op))
    if op.takes_total:
        known["total"] = None
        convert["total"] = lambda value, *_: (
            value
            if (type(value) is int and value >= 0)
            or torch.compiler.is_compiling()
            or isinstance(value, torch.SymInt)  # torch 2.9 traces derivatives without saying that it compiles
            else op.check_total(value)
        )
    if op.sparse_factor is not None:
        known["sparse"] = None
    result, count = op.result, len(names)

    def call(*inputs: Any, **named: Any) -> Any:
        if len(inputs) != count:
            inputs = _in_order(op, names, inputs, named)
        if named:
            if not named.keys() <= known.keys():
                named = _in_new_names(op, known, named)
            if named.pop("sparse", False):
                _device_of(op, names, inputs)
                return dispatched(with_sparse_gradient, inputs, named)
            for name in named.keys() & convert.keys():
                named[name] = convert[name](named[name], inputs, named)
        if forward_ad._current_level >= 0:
            _refuse_forward_mode(op, inputs)
        if eager is not None and is_eager():
            found = eager(inputs, named)
            if found is not NotImplemented:
                return found if result is None else result(*found)
        device = _device_of(op, names, inputs)
        if device is not None and device.type not in ("cpu", "meta"):
            found = _elsewhere(op, device, inputs, named)
            return found if result is None else result(*found)
        if transformed is not None and is_transformed():
            found = dispatched(lambda *given, **attributes: transformed(given, attributes), inputs, named)
        else:
            found = dispatched(overload, inputs, named)
        return found if result is None else result(*found)

    def dispatched(function: Callable[..., Any], inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
        try:
            return function(*inputs, **named)
        except (RuntimeError, TypeError) as error:
            _explain(op, named, error)
            raise

    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = op.call.__doc__
    call.__signature__ = python_signature(op.signature, op.attributes, op.result)  # type: ignore[attr-defined]
    with_sparse_gradient: Any = sparse_call(op, call, _LIBRARY, call_of)
    return call


def _refuse_forward_mode(op: OpDef, inputs: Sequence[Any]) -> None:
    """Raise OpError for a tensor with a tangent, which torch would silently take to be zero."""
    flat = [one for value in inputs for one in (value if isinstance(value, (list, tuple)) else (value,))]
    if any(isinstance(one, Tensor) and forward_ad.unpack_dual(one).tangent is not None for one in flat):
        raise OpError("it has no derivative in forward mode: take torch.autograd.grad").in_op(op.name)


def _in_new_names(op: OpDef, known: Collection[str], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes by their new names; raise OpTypeError for one that the op does not have."""
    found = renamed_arguments(op.name, named)
    check_names(op.name, op.signature, "attribute", found, known)
    return found


def _conversion(op: OpDef, attribute: Attribute) -> Callable[..., Any] | None:
    """Return the function that converts an attribute's value for the schema; None if none is needed."""
    if attribute.kind == "dtype":
        return lambda value, inputs, named: value if value is None else torch_dtype(value)
    if attribute.kind == "texts":
        return lambda value, inputs, named: [value] if isinstance(value, str) else value
    if attribute.kind == "ints":
        return lambda value, inputs, named: [value] if isinstance(value, int) else value
    if attribute.kind == "parts":
        return partial(_sizes_of_parts, op)
    return None


def _sizes_of_parts(op: OpDef, value: Any, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return the sizes of `value` equal parts: a schema has no type for "an integer or a list"."""
    if not isinstance(value, int) or not isinstance(inputs[0], Tensor):
        return value
    size = inputs[0].shape[named.get("axis", 0)]
    if value < 1 or size % value:
        raise ShapeError(
            f"x.shape[{named.get('axis', 0)}] is {size}, which {value} equal parts do not divide"
        ).in_op(op.name)
    return [size // value] * value


def _in_order(
    op: OpDef, names: Sequence[str], inputs: Sequence[Any], named: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the inputs in order, whether they were given by position or by name."""
    if len(inputs) > len(names):
        raise too_many_inputs(len(inputs), names, attributes_of(op)).in_op(op.name)
    given = dict(zip(names[: len(inputs)], inputs, strict=True))  # torch 2.9 compiles no others
    for name in names:
        if name in named:
            if name in given:
                raise OpTypeError(f"{name} is given twice").in_op(op.name)
            given[name] = named.pop(name)
    missing = next(
        (one.name for one in op.signature.input_arguments if one.name not in given and not one.optional), None
    )
    if missing is not None:
        raise missing_input(missing, op.name).in_op(op.name)
    return tuple(given.get(name) for name in names)


def _device_of(op: OpDef, names: Sequence[str], inputs: Sequence[Any]) -> torch.device | None:
    """Return the device of all tensors; raise OpTypeError for other inputs, and OpError for several devices."""
    devices: dict[torch.device, str] = {}
    arguments = {one.name: one for one in op.signature.input_arguments}
    lists = op.signature.listed
    for name, value in zip(names, inputs, strict=True):
        for one in value if name in lists and isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, Tensor):
                devices.setdefault(one.device, name)
            elif one is not None or not arguments[name].optional:
                wrong = OpTypeError(f"{name} is {type(one).__name__}, expected a tensor")
                wrong.advice = _advice_on(op, name, one, inputs)
                raise wrong.in_op(op.name)
    if len(devices) > 1:
        found = ", ".join(f"{name} is on {device}" for device, name in devices.items())
        raise OpError(f"{found}, expected one device").in_op(op.name)
    return next(iter(devices), None)


def _advice_on(op: OpDef, name: str, value: Any, inputs: Sequence[Any]) -> str:
    """Return advice on an input that is not a tensor."""
    if isinstance(value, torch.nn.Embedding):
        return f"pass its tensor, {name}.weight"
    if isinstance(value, (list, np.ndarray)):
        return f"torch.as_tensor({name})"
    if hasattr(value, "lod"):
        return f"for a Sequence: seqflow.auto.{op.name}(sequence)"
    return advice_on_numbers(op.signature, inputs, [one.name for one in attributes_of(op)])


def _elsewhere(op: OpDef, device: torch.device, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Run the op on another device, in torch's own functions; raise OpError for an op that runs only on the CPU."""
    implementation = IMPLEMENTATIONS.get(op.name)
    if implementation is None:
        raise OpError(f"its tensors are on {device}, but it runs on the CPU: call it with x.cpu()").in_op(
            op.name
        )
    found = implementation(*inputs, **{name: value for name, value in named.items() if name != "total"})
    check_total(op, named.get("total"), found)
    return found


def _explain(op: OpDef, named: Mapping[str, Any], error: Exception) -> None:
    """Raise our own error in place of torch's for attributes that the op does not take."""
    if isinstance(error, SeqflowError):
        return
    given = {name: value for name, value in named.items() if not (op.takes_total and name == "total")}
    dtypes = {one.name for one in attributes_of(op) if one.kind == "dtype"}
    op.check_attributes({name: value for name, value in given.items() if name not in dtypes})
