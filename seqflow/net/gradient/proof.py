"""Holds the derivative of an op against inference: gradients have the dtype, shape and rows of what they are of."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from seqflow.errors import GradientError, SeqflowError
from seqflow.net.gradient.derivative import has_floats, is_differentiable
from seqflow.net.gradient.formula import literal
from seqflow.net.net import Net
from seqflow.registry import NoDerivative, OpDef
from seqflow.shape import Dimension
from seqflow.signature import Argument, Described, Repeated
from seqflow.signature.language import AtLeast, Literal, Name, Rest, Sum
from seqflow.tensor import TensorSpec

Specs = Mapping[str, TensorSpec | Sequence[TensorSpec]]


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
            if spec.dtype != expected.dtype:
                raise GradientError(
                    f"the derivative by {name} is {spec.dtype}, expected {expected.dtype} as {name}"
                ).in_op(op.name)
            assumed = [str(guard) for guard in inference.guards if str(guard) not in map(str, forward.guards)]
            if assumed:
                raise GradientError(
                    f"the derivative by {name} is {spec}, not known to be like {name} {expected}: {assumed[0]}"
                ).in_op(op.name)


def _loss_of(op: OpDef, specs: Specs, attributes: Mapping[str, Any]) -> Net:
    """A net that calls the op, and sums all its results that are floats."""
    arguments = []
    for argument in op.signature.input_arguments:
        given = specs.get(argument.name)
        if given is not None:
            names = _names(argument.name, given)
            written = names[0] if isinstance(given, TensorSpec) else f"[{', '.join(names)}]"
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


def _names(name: str, given: TensorSpec | Sequence[TensorSpec]) -> list[str]:
    return [name] if isinstance(given, TensorSpec) else [f"{name}.{i}" for i in range(len(given))]


def _flat(specs: Specs) -> dict[str, TensorSpec]:
    found: dict[str, TensorSpec] = {}
    for name, given in specs.items():
        found |= zip(_names(name, given), [given] if isinstance(given, TensorSpec) else given, strict=True)
    return found


def check_declared(op: OpDef) -> None:
    """GradientError where a formula of an op does not infer, on tensors as its signature has them.

    An op whose attributes have to be given, and one whose signature leaves ranks or sizes open, is not known before
    it is called: `prove` holds its derivative against given specs.
    """
    if op.grad is None or isinstance(op.grad, NoDerivative) or op.required:
        return
    if any(isinstance(item, Repeated) for item in (*op.signature.inputs, *op.signature.outputs)):
        return
    specs = {one.name: _spec(one) for one in op.signature.input_arguments}
    known = {name: spec for name, spec in specs.items() if spec is not None}
    if len(known) < len(specs):
        return
    wanted = [
        name
        for name in known
        if is_differentiable(op, name) and not isinstance(_said(op, name), NoDerivative)
    ]
    prove(op, known, op.complete({}), wanted)


def _said(op: OpDef, name: str) -> object:
    if not isinstance(op.grad, Mapping):
        return None
    return next(
        (formula for keys, formula in op.grad.items() if name in keys.replace(" ", "").split(",")), None
    )


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
    words = {"bool": "bool", "int": "int64", "index": "int64", "offset": "int64", "position": "int64"}
    word = argument.dtype.word
    dtype = "float32" if has_floats(argument) else words.get(word, word)
    described = [dim.of for dim in argument.dims[:1] if isinstance(dim, Sum)]
    if argument.is_lengths or dtype in ("str", "lens"):
        dtype = "int64"
    return TensorSpec(dtype, sizes, Described(described[0]) if described else None)
