"""Checks the derivative of an op by inference: a gradient must have the dtype, shape and rows of its input."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from seqflow.errors import GradientError, SeqflowError
from seqflow.net.gradient.derivative import has_floats, is_differentiable
from seqflow.net.gradient.formula import literal
from seqflow.net.net import Net
from seqflow.net.step import compute
from seqflow.registry import NoDerivative, OpDef
from seqflow.shape import Dimension, Guard
from seqflow.signature import Argument, Attribute, Described
from seqflow.signature.language import (
    CONCRETE_DTYPES,
    LIKE,
    POINTING,
    Anything,
    AtLeast,
    FixedSize,
    Max,
    Name,
    Rest,
    Sum,
    evaluate,
    parts,
)
from seqflow.tensor import TensorSpec

Specs = Mapping[str, Any]
"""A spec or an array for each input; a list of them for a list input."""


def prove(op: OpDef, specs: Specs, attributes: Mapping[str, Any], wanted: Collection[str]) -> None:
    """Raise GradientError when, for inputs of these specs, a gradient is not known to be like its input."""
    net = _loss_of(op, specs, attributes)
    tensors = _flat(specs)
    forward = net.infer(tensors)
    for name in wanted:
        for tensor in _names(name, specs[name]):
            found = f"grad.{tensor}"
            try:
                text = str(net.gradient("loss", tensor)).rpartition("\nreturn")[0]
                # the sum makes inference compare the sizes and rows of both
                inference = Net(f"{text}\nboth.{tensor} = {found} + {tensor}").infer(tensors)
            except GradientError:
                raise
            except SeqflowError as error:
                raise _wrong(op, name, f"does not infer: {error}") from error
            spec, expected = inference.specs[found], tensors[tensor]
            _check_like(op, name, spec.dtype, expected.dtype)
            sizes, wanted_sizes = spec.shape.dimensions or (), expected.shape.dimensions
            reasons = [str(guard) for guard in inference.guards if str(guard) not in map(str, forward.guards)]
            if len(sizes) != len(wanted_sizes) or any(
                size == 1 != asked and not _is_one(asked, forward.guards)
                for size, asked in zip(sizes, wanted_sizes, strict=True)
            ):
                reasons.append("it would broadcast")
            if reasons:
                message = f"the derivative by {name} is {spec}, not known to be like {name} {expected}"
                raise _NotKnown(f"{message}: {reasons[0]}").in_op(op.name)


class _NotKnown(GradientError):
    """Inference can neither prove nor refute that a gradient is like its input."""


def _is_one(size: Any, guards: Sequence[Any]) -> bool:
    """Return whether guards of the op itself, such as `3*H == 3`, imply that a size is 1."""
    sides = [(one.left, one.right) for one in guards if isinstance(one, Guard)]
    return any(
        isinstance(known, Dimension) and known.is_static and int(known) and other == size * int(known)
        for left, right in sides
        for known, other in ((left, right), (right, left))
    )


def _check_like(op: OpDef, name: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise _wrong(op, name, f"is {found}, expected {expected} as {name}")


def _wrong(op: OpDef, name: str, what: str) -> GradientError:
    return GradientError(f"the derivative by {name} {what}").in_op(op.name)


def _loss_of(op: OpDef, specs: Specs, attributes: Mapping[str, Any]) -> Net:
    """Return a net that calls the op and sums all results that are floats."""
    arguments = []
    for argument in op.signature.input_arguments:
        given = specs.get(argument.name)
        if given is not None:
            names = _names(argument.name, given)
            written = f"[{', '.join(names)}]" if isinstance(given, list) else names[0]
            arguments.append(f"{argument.name}={written}")
    arguments += [f"{name}={literal(value)}" for name, value in attributes.items() if name != "out"]
    floats = {one.field for one in op.signature.output_arguments if has_floats(one)}
    results = [f"out.{name}" for name in op.result_names(attributes)]
    summed = [name for name in results if _field(name) in floats]
    lines = [f"{', '.join(results)} = {op.name}({', '.join(arguments)})"]
    lines += [f"sum{i} = reduce_sum({name} * 0.5)" for i, name in enumerate(summed)]
    total = " + ".join(f"sum{i}" for i in range(len(summed)))
    # `* 1.0`: a statement that only renames a tensor is refused
    lines.append(f"loss = {total}" if len(summed) > 1 else f"loss = {total} * 1.0")
    return Net("\n".join(lines))


def _field(result: str) -> str:
    parts = result.split(".")[1:]
    return ".".join(parts[:-1] if parts[-1].isdecimal() else parts)


def _names(name: str, given: Any) -> list[str]:
    return [f"{name}.{i}" for i in range(len(given))] if isinstance(given, list) else [name]


def _flat(specs: Specs) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, given in specs.items():
        found |= zip(_names(name, given), given if isinstance(given, list) else [given], strict=True)
    return found


def check_declared(op: OpDef) -> None:
    """Raise GradientError when a gradient of an op is not like its input, for tensors that fit the signature.

    Inference decides. If it cannot, because the signature leaves sizes open or attributes are required, the op and
    its derivative run on a few small arrays. If the op refuses these arrays, nothing is known before it is called.
    """
    if op.grad is None or isinstance(op.grad, NoDerivative):
        return
    arguments, not_known = op.signature.input_arguments, None
    wanted = [one.name for one in arguments if is_differentiable(op, one.name) and _has_formula(op, one.name)]
    try:
        attributes = op.complete({one.name: _value(one) for one in op.required})
        arrays = _arrays(op, attributes)
    except (KeyError, TypeError):  # attributes that are objects, sizes that the signature does not give
        return
    dims = [dim for one in arguments for dim in one.dims]
    has_lists = op.signature.listed or op.signature.gives_lists
    if not (op.required or has_lists) and all(isinstance(dim, _CLOSED) and dim != Rest("_") for dim in dims):
        try:
            prove(op, {one.name: _spec(one, arrays[one.name]) for one in arguments}, attributes, wanted)
            return
        except _NotKnown as error:
            not_known = error
    # several `*d` have the same rank in the arrays, which proves nothing about others
    has_one_rank = len({dim for dim in dims if isinstance(dim, Rest)}) < 2
    if not _probe(op, arrays, attributes, wanted) and not_known is not None and has_one_rank:
        raise not_known


_CLOSED = (FixedSize, Name, AtLeast, Sum, Rest)
"""Dimensions that inference has a symbol for."""
_VALUES = {
    "ints": (0,), "parts": 2, "float": 0.5, "bool": True, "str": "a", "texts": ("a",), "scalar": 1, "fill": 0,
}  # fmt: skip
"""Values of required attributes, by their kinds."""


def _value(attribute: Attribute) -> Any:
    if attribute.kind == "int":
        return max(attribute.minimum or 0, 1)
    return attribute.choices[0] if attribute.kind == "choice" else _VALUES[attribute.kind]


def _has_formula(op: OpDef, name: str) -> bool:
    if not isinstance(op.grad, Mapping):
        return name == op.signature.input_arguments[0].name
    said = [formula for keys, formula in op.grad.items() if name in keys.replace(" ", "").split(",")]
    return bool(said) and not isinstance(said[0], NoDerivative)


def _probe(op: OpDef, inputs: Specs, attributes: Mapping[str, Any], wanted: Sequence[str]) -> bool:
    """Check the gradients for small arrays; return False if the op does not take the arrays."""
    arrays = _flat(inputs)
    try:
        net = _loss_of(op, inputs, attributes)
        _run(net, arrays)
    except Exception:  # a user's body may raise anything
        return False
    for name in wanted:
        for tensor in _names(name, inputs[name]):
            try:
                found = _run(net.gradient("loss", tensor), arrays)[f"grad.{tensor}"]
            except GradientError:
                raise
            except SeqflowError as error:
                raise _wrong(op, name, f"fails: {error}") from error
            _check_like(op, name, *(f"{one.dtype}{list(one.shape)}" for one in (found, arrays[tensor])))
    return True


def _run(net: Net, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    known = dict(tensors)
    for step in net.steps:
        known |= zip(step.results, compute(step, known), strict=True)
    return known


def _arrays(op: OpDef, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return an array for each input, two for a list, with different sizes if the signature allows it."""
    sizes: dict[Any, Any] = dict(attributes)
    found: dict[str, Any] = {}
    arguments = op.signature.input_arguments
    plain = Name, Rest, Anything
    for argument in sorted(
        arguments, key=lambda one: (not one.is_lengths, sum(not isinstance(dim, plain) for dim in one.dims))
    ):
        for part in (part for dim in argument.dims for part in parts(dim)):
            if isinstance(part, Name):
                sizes.setdefault(part.name, 4 + 2 * len(sizes))
        shape: list[int] = []
        for dim in argument.dims:
            size: Any = dim.bound if isinstance(dim, AtLeast) else dim
            shape.append(3 if isinstance(dim, (Rest, Anything)) else evaluate(size, sizes) or 0)
            if isinstance(dim, AtLeast):
                sizes[dim.name] = shape[-1] = shape[-1] + 2
        like = found.get(argument.dtype.of[0]) if argument.dtype.word == LIKE else None
        array: Any = np.zeros(shape, np.dtype(_dtype(argument)) if like is None else like.dtype)
        if argument.is_lengths:
            array = np.resize([3, 5], tuple(shape))
            sizes |= {Sum(argument.name): int(array.sum()), Max(argument.name): 5}
        elif array.dtype.kind == "f":
            array += np.arange(1, array.size + 1).reshape(shape)
        found[argument.name] = array
    listed = op.signature.listed
    return {one.name: [found[one.name]] * 2 if one.name in listed else found[one.name] for one in arguments}


def _dtype(argument: Argument) -> str:
    word = argument.dtype.word
    if argument.is_lengths or word in ("lens", "int", *POINTING):
        return "int64"
    return "float32" if has_floats(argument) and word not in CONCRETE_DTYPES else word


def _spec(argument: Argument, array: Any) -> TensorSpec:
    """Return a spec with the symbols of the signature, and the dtype and fixed sizes of an array."""
    sizes: list[Any] = list(array.shape)
    for axis, dim in enumerate(argument.dims):
        if isinstance(dim, (Name, AtLeast)):
            sizes[axis] = Dimension.symbol(dim.name)
        elif isinstance(dim, Sum):
            sizes[axis] = Dimension.sum_of(dim.of)
    described = [dim.of for dim in argument.dims[:1] if isinstance(dim, Sum)]
    return TensorSpec(array.dtype, sizes, Described(described[0]) if described else None)
