"""Upper bounds of outputs, as the definitions and bounds of a signature say them.

What bounds the elements of a lengths tensor bounds the largest of them and their sum. Bounds are integers; None
stands for no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, Protocol

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
LookUp = Callable[[str], Any]
"""The registry's, for the ops that definitions call."""


class Most(NamedTuple):
    """Upper bounds of the elements of a tensor."""

    each: Bound
    """What no element is above."""
    total: Bound
    """What their sum is not above."""


NO_BOUND = Most(None, None)


class Scope(Protocol):
    """What the names in a definition or a bound stand for."""

    @property
    def attributes(self) -> Mapping[str, Any]: ...

    def inputs(self, name: str) -> Sequence[Most]:
        """The bounds of the input of this name, of each tensor of a list; empty where there is none."""
        ...

    def size(self, name: str) -> Bound:
        """The bound of the size of this name."""
        ...


MostOf = Callable[[Scope, Bound], Most]
"""The bounds of a value, in a scope, of which there are at most so many elements."""


# One call of an op


class CallScope(NamedTuple):
    """The inputs, sizes and attributes of one call."""

    specs: Mapping[str, TensorSpec | Sequence[TensorSpec]]
    names: Mapping[str, str | Sequence[str]]
    """The tensors that the inputs are."""
    sizes: Mapping[str, Dimension]
    attributes: Mapping[str, Any]
    equalities: Equalities

    def inputs(self, name: str) -> Sequence[Most]:
        spec, tensor = self.specs.get(name, ()), self.names.get(name, ())
        if isinstance(spec, TensorSpec):
            return (self._most(spec, str(tensor)),)
        return [self._most(*pair) for pair in zip(spec, tensor, strict=True)]

    def size(self, name: str) -> Bound:
        return self.highest(self.sizes[name]) if name in self.sizes else None

    def highest(self, size: Dimension) -> Bound:
        return self.equalities.resolve(size).max_length

    def _most(self, spec: TensorSpec, tensor: str) -> Most:
        if spec.dtype.kind == "b":
            return Most(1, self.highest(spec.shape.num_elements))
        return Most(self.highest(Dimension.max_of(tensor)), self.highest(Dimension.sum_of(tensor)))


class Limits:
    """The bounds of the outputs of an op, read once from its signature."""

    def __init__(self, signature: Signature, attributes: Collection[str], look_up: LookUp) -> None:
        self.elements = {
            argument.name: [read_most(value, attributes, look_up) for value in bounds_of(argument)]
            for argument in signature.output_arguments
        }
        self.sizes = [(limit.size, read_most(limit.most, attributes, look_up)) for limit in signature.limits]

    def note(
        self, op: str, results: Sequence[NamedOutput], specs: Sequence[TensorSpec], scope: CallScope
    ) -> None:
        """Tell inference how large sizes, elements and sums can be; `specs` are those of the outputs."""
        limit = scope.equalities.limit
        for bounded, most_of in self.sizes:
            most = most_of(scope, None).each
            if most is not None and most <= LARGEST:
                for size in _sizes_of(bounded, results, scope.sizes):
                    limit(size, max(most, 0), op)
        for output, spec in zip(results, specs, strict=True):
            for most_of in self.elements[output.argument.name]:
                dimensions = spec.shape.dimensions
                is_vector = dimensions is not None and len(dimensions) == 1
                each, total = most_of(scope, scope.highest(dimensions[0]) if is_vector else None)  # type: ignore[index]
                if each is not None and each <= LARGEST:
                    limit(Dimension.max_of(output.tensor), max(each, 0), op)
                if output.argument.is_lengths and total is not None and total <= LARGEST:
                    limit(Dimension.sum_of(output.tensor), max(total, 0), op)


def bounds_of(argument: Argument) -> Sequence[Value]:
    """What bounds the elements of an output: what is written, else what its integers point at."""
    written = tuple(value for value in (argument.definition, argument.most) if value is not None)
    of = argument.dtype.points
    if written or of is None:
        return written
    if argument.dtype.word == "offset":
        return (of,)
    count = Max(of.name) if argument.dtype.word == "position" and isinstance(of, Name) else of
    return (Arithmetic("-", count, Literal(1)),)


def _sizes_of(
    size: Name | Sum | Max, results: Sequence[NamedOutput], sizes: Mapping[str, Dimension]
) -> list[Dimension]:
    """The sizes that are bounded: a sum is that of each output of the name."""
    if isinstance(size, Name):
        return [sizes[size.name]] if size.name in sizes else []
    of = Dimension.sum_of if isinstance(size, Sum) else Dimension.max_of
    return [of(output.tensor) for output in results if output.argument.name == size.of]


# Bounds of values


def read_most(value: Value, attributes: Collection[str], look_up: LookUp) -> MostOf:
    """A function that gives the bounds of a value."""
    read = _read(value, attributes, look_up)

    def most_of(scope: Scope, count: Bound) -> Most:
        each, total = read(scope, count)
        return Most(each, smaller_bound(total, _times(each, count)))

    return most_of


def _read(value: Value, attributes: Collection[str], look_up: LookUp) -> MostOf:
    match value:
        case Literal(value=number):
            return lambda scope, count: Most(number, None)
        case Name(name=name) if name in attributes:
            return lambda scope, count: Most(_number(scope.attributes[name]), None)
        case Name(name=name):
            return lambda scope, count: next(iter(scope.inputs(name)), Most(scope.size(name), None))
        case Sum(of=of):
            return lambda scope, count: Most(reduce(_plus, [one.total for one in scope.inputs(of)]), None)
        case Max(of=of):
            return lambda scope, count: Most(
                reduce(larger_bound, [one.each for one in scope.inputs(of)]), None
            )
        case Count():
            return lambda scope, count: Most(evaluate(value, scope.attributes), None)
        case Given(attribute=name, otherwise=otherwise):
            other = read_most(otherwise, attributes, look_up)
            return lambda scope, count: (
                other(scope, count)
                if scope.attributes[name] is None
                else Most(_number(scope.attributes[name]), None)
            )
        case Arithmetic(operator="-" | "//" as operator, left=left, right=right):
            return _lowered(operator, read_most(left, attributes, look_up), right)
        case Arithmetic(operator=function, left=left, right=right):
            return _combined(function, (left, right), attributes, look_up)
        case Call(op=function, arguments=(Each(name=name),)) if function in _RULES:
            return lambda scope, count: reduce(_RULES[function], scope.inputs(name))
        case Call(op=function, arguments=arguments) if function in _RULES:
            return _combined(function, arguments, attributes, look_up)
        case Call():
            return _called(value, attributes, look_up)
    return lambda scope, count: NO_BOUND


def _combined(
    function: str, arguments: Sequence[Value], attributes: Collection[str], look_up: LookUp
) -> MostOf:
    rule = _RULES[function]
    first, *others = [read_most(one, attributes, look_up) for one in arguments]

    def most_of(scope: Scope, count: Bound) -> Most:
        found = first(scope, count)
        for other in others:
            found = rule(found, other(scope, count))
        return found

    return most_of


def _lowered(operator: str, most_of: MostOf, by: Value) -> MostOf:
    """The bounds of a difference or a quotient; where `by` is no number or attribute those of the first operand."""

    def lowered(scope: Scope, count: Bound) -> Most:
        found, number = most_of(scope, count), evaluate(by, scope.attributes)
        if number is None:
            return found
        return Most(*(None if one is None else max(OPERATORS[operator](one, number), 0) for one in found))

    return lowered


class ArgumentScope(NamedTuple):
    """The arguments of a call inside a definition."""

    given: Mapping[str, Most]
    attributes: Mapping[str, Any]

    def inputs(self, name: str) -> Sequence[Most]:
        return (self.given[name],) if name in self.given else ()

    def size(self, name: str) -> Bound:
        return None


def _called(call: Call, attributes: Collection[str], look_up: LookUp) -> MostOf:
    """The bounds of an op's first output: as its signature says them, or those of what it moves."""
    op = look_up(call.op)
    names = [argument.name for argument in op.signature.input_arguments]
    given = {
        name: read_most(value, attributes, look_up)
        for name, value in zip(names, call.arguments, strict=False)
    }
    defaults = op.complete({})
    output = op.signature.output_arguments[0]
    bounds = [read_most(value, defaults, look_up) for value in bounds_of(output)]
    moved = [name for name in op.claims.moves if name in given] if output.dtype.word == "any" else []

    def most_of(scope: Scope, count: Bound) -> Most:
        inner = ArgumentScope({name: read(scope, None) for name, read in given.items()}, defaults)
        if bounds:
            return bounds[0](inner, count)
        return (
            Most(reduce(larger_bound, [inner.given[name].each for name in moved]), None)
            if moved
            else NO_BOUND
        )

    return most_of


def _number(value: Any) -> Bound:
    return value if isinstance(value, int) else None


def _plus(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else a + b


def _times(a: Bound, b: Bound) -> Bound:
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b


def _sum(a: Most, b: Most) -> Most:
    return Most(_plus(a.each, b.each), _plus(a.total, b.total))


def _product(a: Most, b: Most) -> Most:
    return Most(_times(a.each, b.each), smaller_bound(_times(a.total, b.each), _times(a.each, b.total)))


_RULES: dict[str, Callable[[Most, Most], Most]] = {
    "+": _sum,
    "add": _sum,
    "*": _product,
    "mul": _product,
    "minimum": lambda a, b: Most(smaller_bound(a.each, b.each), smaller_bound(a.total, b.total)),
    "maximum": lambda a, b: Most(larger_bound(a.each, b.each), _plus(a.total, b.total)),
}
"""The bounds of sums, products and the like, from those of the operands."""
