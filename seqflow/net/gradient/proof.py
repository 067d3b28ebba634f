"""Holds the derivative of an op against inference: gradients have the dtype, shape and rows of what they are of."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from seqflow.errors import GradientError, SeqflowError
from seqflow.net.gradient.derivative import has_floats, is_differentiable
from seqflow.net.gradient.formula import literal
from seqflow.net.net import Net
from seqflow.net.step import compute
from seqflow.registry import NoDerivative, OpDef
from seqflow.shape import Dimension
from seqflow.signature import Argument, Attribute, Described, Repeated
from seqflow.signature.language import (
    CONCRETE_DTYPES,
    LIKE,
    POINTING,
    Anything,
    AtLeast,
    Literal,
    Max,
    Name,
    Rest,
    Sum,
    evaluate,
    parts,
)
from seqflow.tensor import TensorSpec

Specs = Mapping[str, Any]
"""A spec, or an array, of each input; of one that is a list a list."""


def prove(op: OpDef, specs: Specs, attributes: Mapping[str, Any], wanted: Collection[str]) -> None:
    """GradientError where, for inputs of these specs, a gradient is not known to be like its input."""
    net = _loss_of(op, specs, attributes)
    tensors = _flat(specs)
    forward = net.infer(tensors)
    for name in wanted:
        for tensor in _names(name, specs[name]):
            found = f"grad.{tensor}"
            try:
                text = str(net.gradient("loss", tensor)).rpartition("\nreturn")[0]
                inference = Net(f"{text}\nboth.{tensor} = {found} + {tensor}").infer(tensors)
            except GradientError:
                raise
            except SeqflowError as error:
                raise GradientError(f"the derivative by {name} does not infer: {error}").in_op(
                    op.name
                ) from error
            spec, expected = inference.specs[found], tensors[tensor]
            _compare(op, name, spec, expected)
            assumed = [str(guard) for guard in inference.guards if str(guard) not in map(str, forward.guards)]
            if assumed or spec.shape.dimensions is None:
                reason = assumed[0] if assumed else "its rank is not known"
                raise _NotKnown(
                    f"the derivative by {name} is {spec}, not known to be like {name} {expected}: {reason}"
                ).in_op(op.name)


class _NotKnown(GradientError):
    """Inference cannot say whether a gradient is like its input."""


def _compare(op: OpDef, name: str, found: Any, expected: Any) -> None:
    """GradientError unless a gradient, a spec or an array, has the dtype of its input, and its shape.

    A size of 1 would broadcast: of no other sizes inference says that they differ.
    """
    if found.dtype != expected.dtype:
        message = f"the derivative by {name} is {found.dtype}, expected {expected.dtype} as {name}"
        raise GradientError(message).in_op(op.name)
    if isinstance(expected, TensorSpec):
        sizes, wanted = found.shape.dimensions, expected.shape.dimensions
        is_array = False
    else:
        sizes, wanted, is_array = found.shape, expected.shape, True
    if sizes is None:
        return
    pairs = zip(sizes, wanted, strict=False)
    if len(sizes) != len(wanted) or any(one != other and (is_array or one == 1) for one, other in pairs):
        shapes = [f"{one.dtype}{list(one.shape)}" if is_array else str(one) for one in (found, expected)]
        raise GradientError(f"the derivative by {name} is {shapes[0]}, expected {shapes[1]} as {name}").in_op(
            op.name
        )


def _loss_of(op: OpDef, specs: Specs, attributes: Mapping[str, Any]) -> Net:
    """A net that calls the op, and sums all its results that are floats."""
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
    """GradientError where a gradient of an op is not like its input, on tensors as its signature has them.

    Inference decides. Where it cannot, since the signature leaves sizes open or attributes have to be given, the op
    and its derivative are run on a few small arrays. An op that refuses these is not known before it is called.
    """
    if op.grad is None or isinstance(op.grad, NoDerivative):
        return
    wanted = [
        one.name
        for one in op.signature.input_arguments
        if is_differentiable(op, one.name) and not isinstance(_said(op, one.name), (NoDerivative, type(None)))
    ]
    specs = {one.name: _spec(one) for one in op.signature.input_arguments}
    known = {name: spec for name, spec in specs.items() if spec is not None}
    has_lists = op.signature.takes_lists or op.signature.gives_lists
    not_known = None
    if not (op.required or has_lists) and len(known) == len(specs):
        try:
            prove(op, known, op.complete({}), wanted)
            return
        except _NotKnown as error:
            not_known = error
    if not _probe(op, wanted) and not_known is not None:
        raise not_known


def _said(op: OpDef, name: str) -> object:
    """What an op says of the derivative by an input."""
    if not isinstance(op.grad, Mapping):
        return op.grad if name == op.signature.input_arguments[0].name else None
    return next(
        (formula for keys, formula in op.grad.items() if name in keys.replace(" ", "").split(",")), None
    )


def _probe(op: OpDef, wanted: Sequence[str]) -> bool:
    """Run the op and its derivative on small arrays. GradientError where a gradient is not like its input; False
    where the op does not take the arrays."""
    arrays: dict[str, Any] = {}
    try:
        attributes = op.complete({one.name: _value(one) for one in op.required})
        inputs = _arrays(op, attributes)
        arrays = _flat(inputs)
        net = _loss_of(op, inputs, attributes)
        _run(net, dict(arrays))
    except Exception:  # whatever the body of the op raises
        return False
    for name in wanted:
        for tensor in _names(name, inputs[name]):
            try:
                found = _run(net.gradient("loss", tensor), dict(arrays))[f"grad.{tensor}"]
            except GradientError:
                raise
            except SeqflowError as error:
                raise GradientError(f"the derivative by {name} fails: {error}").in_op(op.name) from error
            _compare(op, name, found, arrays[tensor])
    return True


def _run(net: Net, tensors: dict[str, Any]) -> Mapping[str, Any]:
    for step in net.steps:
        tensors |= zip(step.results, compute(step, tensors), strict=True)
    return tensors


def _value(attribute: Attribute) -> Any:
    """A value of an attribute that has to be given; KeyError where its kind says too little."""
    if attribute.kind == "choice":
        return attribute.choices[0]
    values = {"int": max(attribute.minimum or 0, 1), "ints": (0,), "parts": 2, "float": 0.5, "bool": True}
    return {**values, "str": "a", "texts": ("a",), "scalar": 1, "fill": 0, "dtype": np.dtype("float32")}[
        attribute.kind
    ]


def _arrays(op: OpDef, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """An array for each input, two for one that is a list: of sizes that differ, as far as the signature lets them."""
    sizes: dict[Any, Any] = dict(attributes)
    found: dict[str, Any] = {}
    arguments = op.signature.input_arguments
    for argument in sorted(arguments, key=lambda one: (not one.is_lengths, one.computed)):
        shape: list[int] = []
        for dim in argument.dims:
            for part in parts(dim):
                if isinstance(part, Name) and part.name not in sizes:
                    sizes[part.name] = 4 + 2 * len(sizes)
            if isinstance(dim, AtLeast):
                sizes.setdefault(dim.name, evaluate(dim.bound, sizes) + 2)
            shape.append(3 if isinstance(dim, (Rest, Anything)) else evaluate(dim, sizes))
        spec = _dtype(argument)
        like = found.get(argument.dtype.of[0]) if argument.dtype.word == LIKE else None
        array = np.zeros(shape, spec if like is None else like.dtype)
        if argument.is_lengths:
            array = np.resize([3, 5], shape)
            sizes |= {Sum(argument.name): int(array.sum()), Max(argument.name): 5}
        elif array.dtype.kind == "f":
            array += np.arange(1, array.size + 1).reshape(shape)
        found[argument.name] = array
    lists = {a.name for item in op.signature.inputs if isinstance(item, Repeated) for a in item.arguments}
    return {one.name: [found[one.name]] * 2 if one.name in lists else found[one.name] for one in arguments}


def _spec(argument: Argument) -> TensorSpec | None:
    """A spec as the signature has it; None where it leaves the sizes open."""
    sizes: list[Any] = []
    for dim in argument.dims:
        match dim:
            case Literal(value=value):
                sizes.append(value)
            case Name(name=name) | AtLeast(name=name):
                sizes.append(Dimension.symbol(name))
            case Sum(of=of):
                sizes.append(Dimension.sum_of(of))
            case Rest(name=name) if name != "_":
                sizes.append(3)
            case _:
                return None
    described = [dim.of for dim in argument.dims[:1] if isinstance(dim, Sum)]
    return TensorSpec(_dtype(argument), sizes, Described(described[0]) if described else None)


def _dtype(argument: Argument) -> str:
    word = argument.dtype.word
    if argument.is_lengths or word in ("lens", "int", *POINTING):
        return "int64"
    return "float32" if has_floats(argument) and word not in CONCRETE_DTYPES else word
