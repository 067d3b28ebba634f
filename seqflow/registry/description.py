"""Documentation of an op, for `help`, for `seqflow ops NAME` and for the page of all ops."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from textwrap import indent

from seqflow.frozen import frozen
from seqflow.registry.definition import OpDef
from seqflow.registry.gradients import MovedRows, NoDerivative
from seqflow.signature import Argument, Repeated
from seqflow.signature.bind_arrays import expected_dtype
from seqflow.signature.language import AtLeast, Sum


@frozen
class OpDescription:
    """An op's documentation in parts."""

    prose: str
    """Docstring without the example."""
    example: str
    errors: tuple[tuple[str, str], ...]
    """Kinds of errors that follow from signature and attributes, and when they are raised."""
    origin: str
    """Operators of Caffe2 it comes from, or ""."""
    gradients: tuple[tuple[str, str], ...] = ()
    """Inputs, each with the formula of its gradient or the reason why there is none."""


def describe(op: OpDef) -> OpDescription:
    """Return the documentation of an op in parts, from its docstring, signature and attributes."""
    prose, mark, example = op.doc.partition(">>>")
    gradients = tuple(_gradients(op))
    return OpDescription(
        prose.strip(), (mark + example).strip(), tuple(_errors(op)), op.caffe2 or "", gradients
    )


def _gradients(op: OpDef) -> Iterator[tuple[str, str]]:
    """Yield inputs with their derivatives; a formula that depends on attributes is made for the defaults."""
    first = op.signature.input_arguments[0].name if op.signature.inputs else ""
    grad = op.grad if isinstance(op.grad, Mapping) else {} if op.grad is None else {first: op.grad}
    for name, formula in grad.items():
        if callable(formula) and op.required:
            yield name, "as the attributes say"
            continue
        if callable(formula):
            known = {**{one.name: True for one in op.signature.input_arguments}, **op.defaults}
            formula = formula(**{one: known[one] for one in inspect.signature(formula).parameters})
        if isinstance(formula, NoDerivative):
            yield name, f"none: {formula.reason}"
        elif isinstance(formula, MovedRows):
            yield name, "each row of d goes back to the row that it came from"
        elif formula is not None:
            yield name, "; ".join(line.strip() for line in formula.strip().split("\n") if line.strip())


def help_text(op: OpDef) -> str:
    """Return the documentation as one docstring with the sections of NumPy's docstrings."""
    found = describe(op)
    sections = [
        ("Parameters", _items([*_inputs(op), *_attributes(op)])),
        ("Returns", _items(_outputs(op))),
        ("Raises", "\n".join(f"{kind}\n    {when}" for kind, when in found.errors)),
        ("Gradients", "\n".join(f"{name} : {formula}" for name, formula in found.gradients)),
        ("Notes", f"From Caffe2's {found.origin}." if found.origin else ""),
        ("Examples", found.example),
    ]
    written = [f"{title}\n{'-' * len(title)}\n{text}" for title, text in sections if text]
    return "\n\n".join([found.prose, indent(op.signature.in_lines(), "    "), *written]).strip() + "\n"


def _items(items: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{name} : {what}" for name, what in items)


def _inputs(op: OpDef) -> Iterator[tuple[str, str]]:
    for item in op.signature.inputs:
        for argument in item.arguments if isinstance(item, Repeated) else (item,):
            dtype = f" of {_dtype(argument)}" if _dtype(argument) else ""
            name = f"*{argument.name}" if op.variadic else argument.name
            many = "arrays" if op.variadic else "list of arrays" if isinstance(item, Repeated) else "array"
            yield name, f"{many}{dtype}, {_shape(argument)}{', optional' if argument.optional else ''}"


def _attributes(op: OpDef) -> Iterator[tuple[str, str]]:
    for attribute in op.attributes:
        default = "" if attribute.required else f", default {attribute.default!r}"
        yield attribute.name, f"{attribute.expected}{default}"


def _outputs(op: OpDef) -> Iterator[tuple[str, str]]:
    for item in op.signature.outputs:
        for argument in item.arguments if isinstance(item, Repeated) else (item,):
            many = "list of arrays" if isinstance(item, Repeated) else "array"
            yield argument.name, f"{many}, {_shape(argument)}"


def _shape(argument: Argument) -> str:
    return f"[{', '.join(map(str, argument.dims))}]"


def _errors(op: OpDef) -> Iterator[tuple[str, str]]:
    inputs = op.signature.input_arguments
    for argument in inputs:
        if argument.is_lengths:
            described = [
                a.name
                for a in inputs
                if any(isinstance(dim, Sum) and dim.of == argument.name for dim in a.dims)
            ]
            sums = f", or do not add up to the rows of {_and(described)}" if described else ""
            yield "LodError", f"{argument.name} that are negative{sums}"
    for dtype, group in groupby(sorted(inputs, key=_dtype), key=_dtype):
        names = [argument.name for argument in group]
        if dtype:
            yield "OpTypeError", f"{_and(names)} of another dtype than {dtype}"
    for argument in inputs:
        if argument.dtype.word == "index":
            yield "OpIndexError", f"{argument.name} outside [0, {argument.dtype.points})"
        if argument.dtype.word == "position":
            yield "OpIndexError", f"{argument.name} outside their sequence"
        for dim in argument.dims:
            if isinstance(dim, AtLeast):
                yield "ShapeError", f"{argument.name} with {dim.name} less than {dim.bound}"
    if sum(len(argument.dims) for argument in inputs) > 1:
        yield "ShapeError", "ranks and sizes that do not fit the signature"
    checked = [attribute for attribute in op.attributes if attribute.kind != "object"]
    if checked:
        yield "OpError", "attributes that are not what is said above"


def _dtype(argument: Argument) -> str:
    """Return the dtypes that an input takes, in words; "" if it takes all."""
    if argument.is_lengths:
        return "integers"
    return "" if argument.dtype.word == "any" else expected_dtype(argument)


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
