"""Traces the example of an op: finds the element of the inputs for each element of the outputs.

The op is run again on numbers in place of the elements, twice, to distinguish a number from a fill value.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from doctest import DocTestParser
from typing import Any, NamedTuple

import numpy as np

import seqflow.ops
from seqflow.errors import SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.registry import OpDef
from seqflow.registry.description import describe
from seqflow.signature.language import GIVEN_DTYPE, LIKE

NOWHERE = -1
"""Source of an element that is not from an input: padding, or another fill value."""
_STARTS = 1_000, 2_000
"""Starts of two numberings of the elements: moved elements differ by the distance, fill values do not."""


class ExampleCall(NamedTuple):
    """Call of an op; each input and output is a list of arrays, with one array unless the signature has a list."""

    inputs: Mapping[str, list[Array]]
    attributes: Mapping[str, Any]
    outputs: Mapping[str, list[Array]]
    arguments: Mapping[str, Any]
    """Inputs as they were given."""


class Moved(NamedTuple):
    """Input with elements that an op moves."""

    name: str
    place: int
    """Index in a list of inputs."""
    array: Array
    start: int
    """Number of the first element: the elements of all inputs are numbered one after another."""


class ElementTrace(NamedTuple):
    """Call, the inputs that it moves, and the number of each output element among their elements, or `NOWHERE`."""

    call: ExampleCall
    moved: Sequence[Moved]
    sources: Mapping[str, list[Array]]

    @property
    def is_still(self) -> bool:
        """Whether all elements stay in their order, except those that become a fill value."""
        found = [one.ravel() for output in self.sources.values() for one in output]
        return len(found) == len(self.moved) and all(
            bool(np.all((one == NOWHERE) | (one == given.start + np.arange(one.size))))
            for one, given in zip(found, self.moved, strict=True)
        )


def trace(op: OpDef, groups_of: Callable[[ExampleCall, Sequence[Moved]], Array]) -> ElementTrace | None:
    """Return the trace of the first call in an op's example; None if it computes, or if a source is ambiguous.

    `groups_of` returns a number for each element of the inputs: any of the equal elements with one number may be the
    source.
    """
    outputs = [a.field for a in op.signature.output_arguments if a.dtype.word in ("any", LIKE, GIVEN_DTYPE)]
    if not op.claims.moves or not outputs:
        return None
    call = example_call(op)
    moved = [*_moved(op, call)]
    values = np.concatenate([one.array.ravel() for one in moved])
    groups = groups_of(call, moved)
    for numbers, sources in _candidates(op, call, moved, values, outputs):
        if _fits(sources, numbers, values, groups, call):
            return ElementTrace(call, moved, sources)
    return None


def example_call(op: OpDef) -> ExampleCall:
    """Return the first call of an op in its example."""
    function = getattr(seqflow.ops, op.name)
    calls: list[ExampleCall] = []

    def recorded(*args: Any, **named: Any) -> Any:
        result = function(*args, **named)
        bound = inspect.signature(function).bind(*args, **named).arguments
        given = {name: value for name, value in bound.items() if value is not None}
        results = tuple(result) if op.result else (result,)
        calls.append(
            ExampleCall(
                {name: _arrays(given[name]) for name in op.signature.arguments if name in given},
                {name: value for name, value in given.items() if name not in op.input_names},
                {name: _arrays(one) for name, one in zip(op.output_names, results, strict=False)},
                bound,
            )
        )
        return result

    scope = {name: getattr(seqflow.ops, name) for name in seqflow.ops.__all__} | {"np": np, op.name: recorded}
    for example in DocTestParser().get_examples(describe(op).example):
        # the whole example is not run: the first call is the one that pictures show
        exec(compile(example.source, f"<example of {op.name}>", "exec"), scope)
        if calls:
            return calls[0]
    raise LookupError(f"the example of {op.name} does not call it")


def _arrays(given: Any) -> list[Array]:
    """Return the arrays of a list of inputs or outputs; any other value becomes one array."""
    is_list = isinstance(given, (list, tuple)) and all(isinstance(one, np.ndarray) for one in given)
    return [np.asarray(one) for one in given] if is_list else [np.asarray(given)]


def _moved(op: OpDef, call: ExampleCall) -> Iterator[Moved]:
    start = 0
    for name in op.signature.arguments:
        if name in op.claims.moves:
            for place, array in enumerate(call.inputs.get(name, [])):
                yield Moved(name, place, array, start)
                start += array.size


def _candidates(
    op: OpDef, call: ExampleCall, moved: Sequence[Moved], values: Array, outputs: Sequence[str]
) -> Iterator[tuple[Array, dict[str, list[Array]]]]:
    """Yield numbers of the elements, and the sources found by them.

    The numbers are first distinct, in the order of values; then equal for equal elements. For an op that searches for
    certain values, and so does not find them among numbers, the values are their own numbers.
    """
    # in the order of values, since an op that sorts moves numbers only then as it moves the values
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.arange(len(values))
    dense = np.unique(values, return_inverse=True)[1].reshape(-1)
    for numbers in (ranks, dense):
        first, second = (_on_numbers(op, call, moved, numbers + start) for start in _STARTS)
        if first is not None and second is not None:
            yield numbers, {name: _moved_by(first[name], second[name], numbers) for name in outputs}
    yield dense, {name: [_look_up(one, values) for one in call.outputs[name]] for name in outputs}


def _moved_by(first: list[Array], second: list[Array], numbers: Array) -> list[Array]:
    """Return the sources of an output from its results for both numberings."""
    pairs = zip(first, second, strict=True)
    return [
        np.where(b - a == _STARTS[1] - _STARTS[0], _look_up(a - _STARTS[0], numbers), NOWHERE)
        for a, b in pairs
    ]


def _on_numbers(
    op: OpDef, call: ExampleCall, moved: Sequence[Moved], numbers: Array
) -> dict[str, list[Array]] | None:
    """Return the outputs for numbers in place of the elements; None if the op does not accept them."""
    arguments = dict(call.arguments)
    for one in moved:
        array = numbers[one.start : one.start + one.array.size].reshape(one.array.shape)
        given = arguments[one.name]
        is_list = isinstance(given, (list, tuple))
        arguments[one.name] = [*given[: one.place], array, *given[one.place + 1 :]] if is_list else array
    bound = inspect.BoundArguments(inspect.signature(op.call), arguments)
    try:
        result = op.call(*bound.args, **bound.kwargs)
    except SeqflowError:
        return None
    results = tuple(result) if op.result else (result,)
    return {name: _arrays(one) for name, one in zip(op.output_names, results, strict=False)}


def _look_up(found: Array, numbers: Array) -> Array:
    """Return the first place of each number; `NOWHERE` if it is not among the numbers."""
    # reversed, so that the first of equal numbers is the one that stays in the dict
    places = {number: place for place, number in reversed([*enumerate(numbers.tolist())])}
    return np.array([places.get(one, NOWHERE) for one in found.ravel().tolist()], np.int64).reshape(
        found.shape
    )


def _fits(
    sources: Mapping[str, list[Array]], numbers: Array, values: Array, groups: Array, call: ExampleCall
) -> bool:
    """Return whether the outputs are the elements at the sources, and no source is ambiguous between two groups."""
    used: set[int] = set()
    for name, found in sources.items():
        for one, output in zip(found, call.outputs[name], strict=False):
            if one.shape != output.shape or len(found) != len(call.outputs[name]):
                return False
            inside = one >= 0
            if not np.array_equal(values[one[inside]], output[inside]):
                return False
            used |= set(one[inside].tolist())
    return bool(used) and all(len(set(groups[numbers == numbers[one]].tolist())) == 1 for one in used)
