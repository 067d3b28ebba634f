"""Calls of ops from jax's programs: run on the host, with derivatives by the formulas of the ops."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from seqflow import registry
from seqflow.errors import GradientError, OpError, OpTypeError, SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.kernels.exact import converted
from seqflow.net import Net
from seqflow.net.gradient import derivative
from seqflow.net.gradient.derivative import is_differentiable
from seqflow.net.step import compute
from seqflow.registry import OpDef
from seqflow.registry.errors import too_many_inputs
from seqflow.shape import PartialShape
from seqflow.shape.guards import Guard, Guards
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
            raise too_many_inputs(len(inputs), names, op.attributes).in_op(name)
        arrays = {key: _of_jax(key, value) for key, value in given.items() if value is not None}
        narrow = [key for key, array in arrays.items() if array.dtype == jnp.bfloat16]
        arrays |= {key: arrays[key].astype(jnp.float32) for key in narrow}
        attributes = op.check_attributes(named)
        total = op.check_total(total)
        key = tuple((one, _frozen(value)) for one, value in attributes.items())
        found = _function(name, key, tuple(arrays), total)(*arrays.values())
        if narrow:  # computed in float32, and cast once
            wide = op.signature.wide
            found = [
                one.astype(jnp.bfloat16) if one.dtype == jnp.float32 and i not in wide else one
                for i, one in enumerate(found)
            ]
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
    call = HostCall(registry.get(name), dict(attributes), names, total)
    function = jax.custom_vjp(call.run)

    def forward(*arrays: Any) -> Any:
        found = call.run(*arrays)
        return found, (arrays, found)

    def backward(kept: Any, arriving: Any) -> Any:
        arrays, found = kept
        return call.gradients(arrays, found, arriving)

    function.defvjp(forward, backward)
    made: Callable[..., Any] = function
    return made


@dataclass(frozen=True, slots=True)
class HostCall:
    """Call of an op on arrays that jax hands to the host."""

    op: OpDef
    attributes: dict[str, Any]
    names: Sequence[str]
    """Inputs that are given."""
    total: int | None
    """Sum of the lengths, if it is given."""

    def run(self, *arrays: Any) -> Any:
        expected = self.results(arrays)
        host = partial(self.on_host, expected)
        return jax.pure_callback(host, expected, *arrays, vmap_method="sequential")

    @property
    def fields(self) -> list[str]:
        return self.op.result_names(self.attributes)

    def results(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the shapes and dtypes of the results."""
        pairs = zip(self.names, arrays, strict=True)
        specs = {name: TensorSpec(np.dtype(array.dtype), array.shape) for name, array in pairs}
        inferred = self.op.infer(specs, self.attributes)
        known = _known_sizes(inferred.guards)
        return [
            jax.ShapeDtypeStruct(
                self.shape(name, spec.shape, known), jax.dtypes.canonicalize_dtype(spec.dtype)
            )
            for name, spec in zip(self.fields, inferred.outputs, strict=True)
        ]

    def shape(self, name: str, shape: PartialShape, known: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape of a result; raise OpTypeError, with advice, when it depends on data."""
        if shape.dimensions is None:
            raise OpTypeError(f"the rank of {name} is not known before there are data").in_op(self.op.name)
        sizes = [one.evaluate(known) for one in shape.dimensions]
        found = [self.total if size is None else size for size in sizes]
        if None in found:
            raise OpTypeError(
                f"{name} has shape {shape}, which jax wants to know before there are data: give total="
            ).in_op(self.op.name)
        return tuple(size for size in found if size is not None)

    def on_host(self, expected: Sequence[Any], *arrays: Any) -> list[Any]:
        """Return the results; raise OpError when they are not as expected."""
        given = dict(zip(self.names, map(np.asarray, arrays), strict=True))
        found = self.op.call(**given, **self.attributes)
        results = found if self.op.result is not None else (found,)
        made = []
        for name, one, like in zip(self.fields, results, expected, strict=True):
            if self.total is not None and one.shape != like.shape:
                message = f"total is {self.total}, but a result has shape {one.shape}"
                raise OpError(message).in_op(self.op.name)
            made.append(_narrowed(name, np.asarray(one), like.dtype))
        return made

    def gradients(
        self, arrays: Sequence[Any], found: Sequence[Any], arriving: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Return the gradients of all inputs: the derivative of the op, called on the host as a whole."""
        given = dict(zip(self.names, arrays, strict=True))
        wanted = self.with_derivative(
            name
            for name, array in given.items()
            if is_differentiable(self.op, name) and jnp.issubdtype(array.dtype, jnp.floating)
        )
        if not wanted:
            return tuple(None for _ in arrays)
        net = self.derivative(wanted)
        results = [jax.ShapeDtypeStruct(given[name].shape, given[name].dtype) for name in wanted]
        keys = [*self.names, *(f"{of}.{one}" for of in ("out", "d") for one in self.fields)]

        def back(*values: Any) -> list[Any]:
            tensors = dict(zip(keys, map(np.asarray, values), strict=True))
            for step in net.steps:
                tensors |= zip(step.results, compute(step, tensors), strict=True)
            pairs = zip(wanted, results, strict=True)
            return [np.asarray(tensors[f"grad.{name}"], one.dtype) for name, one in pairs]

        floats = [
            jnp.zeros(one.shape, one.dtype) if d.dtype == jax.dtypes.float0 else d
            for one, d in zip(found, arriving, strict=True)
        ]
        made = jax.pure_callback(back, results, *arrays, *found, *floats, vmap_method="sequential")
        gradients = dict(zip(wanted, made, strict=True))
        return tuple(gradients.get(name) for name in self.names)

    def derivative(self, wanted: Sequence[str]) -> Net:
        return derivative(self.op, self.attributes, dict.fromkeys(self.names), wanted)

    def with_derivative(self, wanted: Iterable[str]) -> list[str]:
        """Return the inputs that have a derivative; raise GradientError, with the reason, when none has one."""
        found, reason = [], None
        for name in wanted:
            try:
                self.derivative([name])
            except SeqflowError as error:
                reason = error
            else:
                found.append(name)
        if not found and isinstance(reason, GradientError):
            raise reason
        return found


def _known_sizes(guards: Guards) -> dict[str, int]:
    """Return sums and largest lengths that are the whole of a static size, by their atoms."""
    pairs = [pair for guard in guards if isinstance(guard, Guard) for pair in guard.pairs()]
    found: dict[str, int] = {}
    for left, right in pairs:
        for unknown, size in ((left, right), (right, left)):
            terms = unknown.terms or ()
            if len(terms) == 1 and terms[0][1] == 1 and not unknown.constant and size.is_static:
                found.setdefault(str(terms[0][0]), size.get_length())
    return found
