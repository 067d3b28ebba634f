"""Upper bounds of outputs, as the definitions and bounds of a signature say them.

What bounds the elements of a lengths tensor bounds the largest of them and their sum. Bounds are integers; None
stands for no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

from seqflow.shape import Dimension, Equalities
from seqflow.shape.bounds import LARGEST, larger_bound, smaller_bound
from seqflow.signature.language import (
    OPERATORS,
    Argument,
    Arithmetic,
    Call,
    Count,
    Each,
    Given,
    Limit,
    Literal,
    Max,
    Name,
    Signature,
    Sum,
    Value,
    evaluate,
)
from seqflow.signature.rows import NamedOutput
from seqflow.tensor import TensorSpec

Bound = int | None


class Most(NamedTuple):
    """Upper bounds of the elements of a tensor."""

    each: Bound
    """What no element is above."""
    total: Bound
    """What their sum is not above."""


NO_BOUND = Most(None, None)


class Scope(NamedTuple):
    """What the names in a definition or a bound stand for."""

    inputs: Callable[[str], Sequence[Most]]
    """The bounds of the input of this name, of each of its tensors where it is a list; empty where there is none."""
    size: Callable[[str], Bound]
    """The bound of the size of this name."""
    attributes: Mapping[str, Any]
    look_up: Callable[[str], Any]
    """The registry's, for the ops that are called."""


# One call of an op


def note_limits(
    op: str,
    signature: Signature,
    results: Sequence[NamedOutput],
    specs: Sequence[TensorSpec],
    scope: Scope,
    sizes: Mapping[str, Dimension],
    equalities: Equalities,
) -> None:
    """Tell inference how large the sizes, the elements and the sums of the outputs can be.

    `specs` are those of the outputs, `sizes` those of the dimension variables.
    """

    def note(size: Dimension, most: Bound) -> None:
        if most is not None and most <= LARGEST:
            equalities.limit(size, max(most, 0), op)

    for output, spec in zip(results, specs, strict=True):
        for value in bounds_of(output.argument):
            is_vector = spec.shape.dimensions is not None and len(spec.shape.dimensions) == 1
            count = equalities.resolve(spec.shape[0]).max_length if is_vector else None
            most = most_of(value, scope, count)
            note(Dimension.max_of(output.tensor), most.each)
            if output.argument.is_lengths:
                note(Dimension.sum_of(output.tensor), most.total)
    for limit in signature.limits:
        for size in _sizes_of(limit, results, sizes):
            note(size, most_of(limit.most, scope, None).each)


def bounds_of(argument: Argument) -> Sequence[Value]:
    """What bounds the elements of an output: what is written, else what its integers point at."""
    written = tuple(value for value in (argument.definition, argument.most) if value is not None)
    if written or argument.dtype.points is None:
        return written
    of = argument.dtype.points
    if argument.dtype.word == "offset":
        return (of,)
    count = Max(of.name) if argument.dtype.word == "position" and isinstance(of, Name) else of
    return (Arithmetic("-", count, Literal(1)),)


def _sizes_of(
    limit: Limit, results: Sequence[NamedOutput], sizes: Mapping[str, Dimension]
) -> list[Dimension]:
    """The sizes that are bounded: a sum is that of each output of the name."""
    if isinstance(limit.size, Name):
        return [sizes[limit.size.name]] if limit.size.name in sizes else []
    of = Dimension.sum_of if isinstance(limit.size, Sum) else Dimension.max_of
    return [of(output.tensor) for output in results if output.argument.name == limit.size.of]


def scope_of(
    specs: Mapping[str, TensorSpec | Sequence[TensorSpec]],
    names: Mapping[str, str | Sequence[str]],
    sizes: Mapping[str, Dimension],
    attributes: Mapping[str, Any],
    look_up: Callable[[str], Any],
    equalities: Equalities,
) -> Scope:
    """What names stand for in one call: its inputs, the tensors that these are, its sizes and attributes."""

    def highest(size: Dimension | None) -> Bound:
        return None if size is None else equalities.resolve(size).max_length

    def most(spec: TensorSpec, tensor: str) -> Most:
        if spec.dtype.kind == "b":
            return Most(1, highest(spec.shape.num_elements))
        return Most(highest(Dimension.max_of(tensor)), highest(Dimension.sum_of(tensor)))

    def inputs(name: str) -> Sequence[Most]:
        spec, tensor = specs.get(name, ()), names.get(name, ())
        if isinstance(spec, TensorSpec):
            return (most(spec, str(tensor)),)
        return [most(*pair) for pair in zip(spec, tensor, strict=True)]

    return Scope(inputs, lambda name: highest(sizes.get(name)), attributes, look_up)


# Bounds of values


def most_of(value: Value, scope: Scope, count: Bound) -> Most:
    """The bounds of a value, whose elements are `count` at most."""
    found = _most_of(value, scope, count)
    return Most(found.each, smaller_bound(found.total, _times(found.each, count)))


def _most_of(value: Value, scope: Scope, count: Bound) -> Most:
    inside = partial(most_of, scope=scope, count=count)
    match value:
        case Literal(value=number):
            return Most(number, None)
        case Name(name=name) if name in scope.attributes:
            return Most(_number(scope.attributes[name]), None)
        case Name(name=name):
            return next(iter(scope.inputs(name)), Most(scope.size(name), None))
        case Sum(of=of):
            return Most(reduce(_plus, [one.total for one in scope.inputs(of)]), None)
        case Max(of=of):
            return Most(reduce(larger_bound, [one.each for one in scope.inputs(of)]), None)
        case Count(of=of):
            return Most(evaluate(value, scope.attributes), None)
        case Given(attribute=attribute, otherwise=otherwise):
            given = scope.attributes.get(attribute)
            return inside(otherwise) if given is None else Most(_number(given), None)
        case Arithmetic(operator="-" | "//" as operator, left=left, right=right):
            by = evaluate(right, scope.attributes)
            return (
                inside(left) if by is None else Most(*(_lowered(most, operator, by) for most in inside(left)))
            )
        case Arithmetic(operator=operator, left=left, right=right):
            return _ARITHMETIC[operator](inside(left), inside(right))
        case Call(op=function, arguments=(Each(name=name),)) if function in _ARITHMETIC:
            return reduce(_ARITHMETIC[function], scope.inputs(name))
        case Call(op=function, arguments=arguments) if function in _ARITHMETIC:
            return reduce(_ARITHMETIC[function], map(inside, arguments))
        case Call():
            return _most_of_call(value, scope, count)
    return NO_BOUND


def _most_of_call(call: Call, scope: Scope, count: Bound) -> Most:
    """The bounds of an op's first output: as its signature says them, or those of what it moves."""
    op = scope.look_up(call.op)
    names = [argument.name for argument in op.signature.input_arguments]
    given = {name: (most_of(value, scope, None),) for name, value in zip(names, call.arguments, strict=False)}
    inner = Scope(lambda name: given.get(name, ()), lambda name: None, op.complete({}), scope.look_up)
    output = op.signature.output_arguments[0]
    found = [most_of(value, inner, count) for value in bounds_of(output)]
    if output.dtype.word == "any":
        found += [Most(most.each, None) for name in op.claims.moves for most in inner.inputs(name)]
    return found[0] if len(found) == 1 else NO_BOUND


def _number(value: Any) -> Bound:
    return value if isinstance(value, int) else None


def _plus(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else a + b


def _times(a: Bound, b: Bound) -> Bound:
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b


def _lowered(most: Bound, operator: str, by: int) -> Bound:
    """A bound less a number, or divided by it; a sum of at least one element is as much less."""
    return None if most is None else max(OPERATORS[operator](most, by), 0)


_ARITHMETIC: dict[str, Callable[[Most, Most], Most]] = {
    "+": lambda a, b: Most(_plus(a.each, b.each), _plus(a.total, b.total)),
    "*": lambda a, b: Most(
        _times(a.each, b.each), smaller_bound(_times(a.total, b.each), _times(a.each, b.total))
    ),
    "minimum": lambda a, b: Most(smaller_bound(a.each, b.each), smaller_bound(a.total, b.total)),
    "maximum": lambda a, b: Most(larger_bound(a.each, b.each), _plus(a.total, b.total)),
}
_ARITHMETIC |= {"add": _ARITHMETIC["+"], "mul": _ARITHMETIC["*"]}
"""The bounds of sums, products and the like, from those of the operands."""
