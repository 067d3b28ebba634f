"""Calls of ops from jax's programs: run on the host, with derivatives by the formulas of the ops."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from seqflow import registry
from seqflow.errors import GradientError, OpError, OpTypeError, SeqflowError
from seqflow.jax.sizes import CallSizes
from seqflow.kernels.arrays import Array
from seqflow.kernels.exact import converted
from seqflow.net.gradient import derivative
from seqflow.net.gradient.derivative import is_differentiable
from seqflow.net.step import compute
from seqflow.registry import OpDef
from seqflow.signature.bind_arrays import as_array
from seqflow.tensor import TensorSpec

Key = tuple[tuple[str, Any], ...]


def why_not(op: OpDef) -> str | None:
    """Return the reason why an op cannot be called from jax; None if it can."""
    if op.signature.listed or op.signature.gives_lists or op.variadic:
        return "it takes or gives lists, or any number of arrays"
    odd = next((one.name for one in op.attributes if one.kind == "object" and one.name != "out"), None)
    if odd is not None:
        return f"its attribute {odd} is an object"
    arguments = (*op.signature.input_arguments, *op.signature.output_arguments)
    return "jax has no arrays of text" if any(one.dtype.word == "str" for one in arguments) else None


@cache
def call_of(name: str) -> Callable[..., Any]:
    """Return the op of this name on jax's arrays; raise OpError for one that cannot be called from jax."""
    op = registry.get(name)
    reason = why_not(op)
    if reason is not None:
        raise OpError(f"it cannot be called from jax: {reason}").in_op(name)
    names = [one.name for one in op.signature.input_arguments]

    def call(*inputs: Any, total: int | None = None, **named: Any) -> Any:
        given = dict(zip(names, inputs, strict=False)) | {
            key: named.pop(key) for key in names if key in named
        }
        if len(inputs) > len(names):
            raise OpTypeError(f"found {len(inputs)} inputs, expected {', '.join(names)}").in_op(name)
        arrays = {key: _of_jax(key, value) for key, value in given.items() if value is not None}
        narrow = [key for key, array in arrays.items() if array.dtype == jnp.bfloat16]
        arrays |= {key: arrays[key].astype(jnp.float32) for key in narrow}
        attributes = op.check_attributes(named)
        total = op.check_total(total)
        key = tuple((one, _frozen(value)) for one, value in attributes.items())
        found = _function(name, key, tuple(arrays), total)(*arrays.values())
        if narrow:  # computed in float32, and cast once
            found = [one.astype(jnp.bfloat16) if one.dtype == jnp.float32 else one for one in found]
        return found[0] if op.result is None else op.result(*found)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = op.call.__doc__
    return call


def _of_jax(name: str, value: Any) -> Any:
    if isinstance(value, jax.Array):
        return value
    array = as_array(name, value)
    return jnp.asarray(_narrowed(name, array, jax.dtypes.canonicalize_dtype(array.dtype)))


def _narrowed(name: str, array: Array, dtype: Any) -> Array:
    """Return the array in a dtype of jax; raise OpError for a number that does not fit 32 bits."""
    made, wrong = converted(array, dtype)
    if wrong.any():
        raise OpError(
            f"{name} has {array[wrong][0]}, which {made.dtype} cannot hold, and jax has no {array.dtype}\n"
            '  jax.config.update("jax_enable_x64", True) enables 64 bits'
        )
    return made


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def _function(name: str, attributes: Key, names: tuple[str, ...], total: int | None) -> Callable[..., Any]:
    """Return the op as a function that jax differentiates."""
    op = registry.get(name)
    given = dict(attributes)

    def run(*arrays: Any) -> Any:
        results = _results(op, names, given, arrays, total)
        host = _host(op, names, given, results, total)
        return jax.pure_callback(host, results, *arrays, vmap_method="sequential")

    function = jax.custom_vjp(run)

    def forward(*arrays: Any) -> Any:
        found = run(*arrays)
        return found, (arrays, found)

    def backward(kept: Any, arriving: Any) -> Any:
        arrays, found = kept
        return _gradients(op, names, given, arrays, found, arriving)

    function.defvjp(forward, backward)
    made: Callable[..., Any] = function
    return made


def _results(
    op: OpDef, names: Sequence[str], attributes: Mapping[str, Any], arrays: Sequence[Any], total: int | None
) -> list[Any]:
    """Return the shapes and dtypes of the results."""
    specs = {
        name: TensorSpec(np.dtype(array.dtype), array.shape)
        for name, array in zip(names, arrays, strict=True)
    }
    inferred = op.infer(specs, attributes)
    sizes = CallSizes(op, inferred, total)
    return [
        jax.ShapeDtypeStruct(sizes.shape(name, spec.shape), jax.dtypes.canonicalize_dtype(spec.dtype))
        for name, spec in zip(op.result_names(dict(attributes)), inferred.outputs, strict=True)
    ]


def _host(
    op: OpDef, names: Sequence[str], attributes: Mapping[str, Any], expected: Sequence[Any], total: int | None
) -> Callable[..., list[Any]]:
    """Return the function that jax calls on the host."""

    def run(*arrays: Any) -> list[Any]:
        given = dict(zip(names, map(np.asarray, arrays), strict=True))
        found = op.call(**given, **attributes)
        fields = op.result_names(dict(attributes))
        made = []
        for name, one, like in zip(
            fields, found if op.result is not None else (found,), expected, strict=True
        ):
            if total is not None and one.shape != like.shape:
                raise OpError(f"total is {total}, but a result has shape {one.shape}").in_op(op.name)
            made.append(_narrowed(name, np.asarray(one), like.dtype))
        return made

    return run


def _gradients(
    op: OpDef,
    names: Sequence[str],
    attributes: Mapping[str, Any],
    arrays: Sequence[Any],
    found: Sequence[Any],
    arriving: Sequence[Any],
) -> tuple[Any, ...]:
    """Return the gradients of all inputs: the derivative of the op, called on the host as a whole."""
    wanted = [
        name
        for name, array in zip(names, arrays, strict=True)
        if is_differentiable(op, name) and jnp.issubdtype(array.dtype, jnp.floating)
    ]
    wanted = _with_derivative(op, attributes, names, wanted)
    places = {name: i for i, name in enumerate(names)}
    results = [
        jax.ShapeDtypeStruct(arrays[places[name]].shape, arrays[places[name]].dtype) for name in wanted
    ]
    count = len(arrays)
    outputs = len(found)

    def back(*values: Any) -> list[Any]:
        tensors = dict(zip(names, map(np.asarray, values[:count]), strict=True))
        fields = op.result_names(dict(attributes))
        tensors |= zip(
            (f"out.{one}" for one in fields), map(np.asarray, values[count : count + outputs]), strict=True
        )
        tensors |= zip(
            (f"d.{one}" for one in fields), map(np.asarray, values[count + outputs :]), strict=True
        )
        for step in net.steps:
            tensors |= zip(step.results, compute(step, tensors), strict=True)
        return [
            np.asarray(tensors[f"grad.{name}"], one.dtype) for name, one in zip(wanted, results, strict=True)
        ]

    gradients: dict[str, Any] = {}
    if wanted:
        net = derivative(op, attributes, dict.fromkeys(names), wanted)
        floats = [
            jnp.zeros(one.shape, one.dtype) if d.dtype == jax.dtypes.float0 else d
            for one, d in zip(found, arriving, strict=True)
        ]
        made = jax.pure_callback(back, results, *arrays, *found, *floats, vmap_method="sequential")
        gradients = dict(zip(wanted, made, strict=True))
    return tuple(gradients.get(name) for name in names)


def _with_derivative(
    op: OpDef, attributes: Mapping[str, Any], names: Sequence[str], wanted: Sequence[str]
) -> list[str]:
    """Return the inputs that have a derivative; raise GradientError, with the reason, when one has none."""
    found, reason = [], None
    for name in wanted:
        try:
            derivative(op, attributes, dict.fromkeys(names), [name])
        except SeqflowError as error:
            reason = error
        else:
            found.append(name)
    if wanted and not found and isinstance(reason, GradientError):
        raise reason
    return found
