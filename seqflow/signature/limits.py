"""Upper bounds of outputs, derived from the definitions and bounds of a signature.

A bound of the elements of a lengths tensor also bounds its largest element and, times the number of elements, its
sum. Bounds are integers; None stands for no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from seqflow.shape import Dimension, Equalities
from seqflow.shape.bounds import LARGEST, larger_bound, smaller_bound
from seqflow.signature.language import (
    FUNCTIONS,
    OPERATORS,
    Argument,
    Arithmetic,
    Each,
    FixedSize,
    Given,
    Max,
    Name,
    OpCall,
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
    """Bound of each element."""
    total: Bound = None
    """Bound of the sum of the elements."""


class Scope(NamedTuple):
    """Meanings of the names in definitions and bounds, for one call."""

    specs: Mapping[str, TensorSpec | Sequence[TensorSpec]]
    """Specs of the inputs."""
    names: Mapping[str, str | Sequence[str]]
    """Names of the tensors passed as inputs."""
    sizes: Mapping[str, Dimension]
    attributes: Mapping[str, Any]
    equalities: Equalities
    look_up: Callable[[str], Any]
    """Looks up an op that a definition calls, by name."""
    arguments: Mapping[str, Most] = {}
    """Bounds of the inputs of a call inside a definition, used instead of `specs`."""

    def inputs(self, name: str) -> Sequence[Most]:
        """Return the bounds of an input, one for each tensor of a list; empty if no input has this name."""
        if name in self.arguments:
            return (self.arguments[name],)
        spec, tensor = self.specs.get(name, ()), self.names.get(name, ())
        if isinstance(spec, TensorSpec):
            return (self._most(spec, str(tensor)),)
        return [self._most(*pair) for pair in zip(spec, tensor, strict=True)]

    def _most(self, spec: TensorSpec, tensor: str) -> Most:
        if spec.dtype.kind == "b":
            # True counts as 1, so the sum of a mask is at most its number of elements
            return Most(1, self.highest(spec.shape.num_elements))
        return Most(self.highest(Dimension.max_of(tensor)), self.highest(Dimension.sum_of(tensor)))

    def highest(self, size: Dimension | None) -> Bound:
        """Return the upper bound of a size."""
        return None if size is None else self.equalities.resolve(size).max_length

    def most(self, value: Value, count: Bound) -> Most:
        """Return the bounds of a value that has at most `count` elements."""
        found = self._bounds(value, count)
        return Most(found.each, smaller_bound(found.total, _times(found.each, count)))

    def _bounds(self, value: Value, count: Bound) -> Most:
        match value:
            case Name(name=name) if name not in self.attributes:
                return next(iter(self.inputs(name)), Most(self.highest(self.sizes.get(name))))
            case Sum(of=of) | Max(of=of) if not self.inputs(of):  # an output's own lengths are not known here
                return Most(None)
            case Sum(of=of):
                return Most(reduce(_plus, [one.total for one in self.inputs(of)]))
            case Max(of=of):
                return Most(reduce(larger_bound, [one.each for one in self.inputs(of)]))
            case Given(attribute=attribute, otherwise=otherwise) if self.attributes[attribute] is None:
                return self.most(otherwise, count)
            case Arithmetic(operator="-" | "//" as operator, left=left, right=right):
                # subtracting or dividing lowers a bound only by a known number: an unknown one may be 0, or 1
                number = evaluate(right, self.attributes)
                return Most(*(_lowered(operator, one, number) for one in self.most(left, count)))
            case Arithmetic(operator=symbol, left=left, right=right):
                return self._bounds(OpCall(FUNCTIONS[symbol], (left, right)), count)
            case OpCall(op=op, arguments=arguments) if (bound := self.look_up(op).claims.bound) is not None:
                if isinstance(arguments[0], Each):
                    return reduce(bound, self.inputs(arguments[0].name))
                return reduce(bound, [self.most(one, count) for one in arguments])
            case OpCall():
                return self._called(value, count)
        number = evaluate(value, self.attributes)
        return Most(number if isinstance(number, int) else None)

    def _called(self, call: OpCall, count: Bound) -> Most:
        """Return the bounds of an op's first output: those of its signature, else those of the moved inputs."""
        op = self.look_up(call.op)
        names = [argument.name for argument in op.signature.input_arguments]
        given = {name: self.most(one, None) for name, one in zip(names, call.arguments, strict=False)}
        output = op.signature.output_arguments[0]
        inner = Scope({}, {}, {}, op.defaults, self.equalities, self.look_up, given)
        for value in bounds_of(output):
            return inner.most(value, count)
        moved = [given[name].each for name in op.claims.moves if name in given]
        return Most(reduce(larger_bound, moved) if moved and output.dtype.word == "any" else None)


def note_limits(
    op: str, signature: Signature, results: Sequence[NamedOutput], specs: Sequence[TensorSpec], scope: Scope
) -> None:
    """Record upper bounds of sizes, elements and sums of the outputs; `specs` are the specs of the outputs."""

    def note(size: Dimension, most: Bound) -> None:
        if most is not None and most <= LARGEST:  # no size is larger anyway
            scope.equalities.limit(size, max(most, 0), op)

    for limit in signature.limits:
        for size in _sizes_of(limit.size, results, scope.sizes):
            note(size, scope.most(limit.most, None).each)
    for (argument, _, tensor, _), spec in zip(results, specs, strict=True):
        for value in bounds_of(argument):
            is_vector = spec.shape.dimensions is not None and len(spec.shape.dimensions) == 1
            each, total = scope.most(value, scope.highest(spec.shape[0]) if is_vector else None)
            note(Dimension.max_of(tensor), each)
            if argument.is_lengths:
                note(Dimension.sum_of(tensor), total)


def bounds_of(argument: Argument) -> Sequence[Value]:
    """Return the values that bound an output: its definition and bound, else the target of its integers."""
    written = tuple([value for value in (argument.definition, argument.most) if value is not None])
    of = argument.dtype.points
    if written or of is None:
        return written
    if argument.dtype.word == "offset":  # unlike an index, an offset may equal the number of rows
        return (of,)
    count = Max(of.name) if argument.dtype.word == "position" and isinstance(of, Name) else of
    return (Arithmetic("-", count, FixedSize(1)),)


def _sizes_of(
    size: Name | Sum | Max, results: Sequence[NamedOutput], sizes: Mapping[str, Dimension]
) -> list[Dimension]:
    """Return the bounded sizes; for `sum(x)` and `max(x)` one for each output tensor named x."""
    if isinstance(size, Name):
        return [sizes[size.name]] if size.name in sizes else []
    of = Dimension.sum_of if isinstance(size, Sum) else Dimension.max_of
    return [of(output.tensor) for output in results if output.argument.name == size.of]


def _lowered(operator: str, most: Bound, number: Bound) -> Bound:
    return most if most is None or number is None else max(OPERATORS[operator](most, number), 0)


def _plus(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else a + b


def _times(a: Bound, b: Bound) -> Bound:
    if a == 0 or b == 0:  # 0 even if the other factor has no bound
        return 0
    return None if a is None or b is None else a * b


# Claims of ops: the bounds of a result, computed from the bounds of two operands


def bound_of_sum(a: Most, b: Most) -> Most:
    return Most(_plus(a.each, b.each), _plus(a.total, b.total))


def bound_of_product(a: Most, b: Most) -> Most:
    return Most(_times(a.each, b.each), smaller_bound(_times(a.total, b.each), _times(a.each, b.total)))


def bound_of_minimum(a: Most, b: Most) -> Most:
    return Most(smaller_bound(a.each, b.each), smaller_bound(a.total, b.total))


def bound_of_maximum(a: Most, b: Most) -> Most:
    return Most(larger_bound(a.each, b.each), _plus(a.total, b.total))
