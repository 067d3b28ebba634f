"""Checks the values of results: definitions, bounds, and targets of integers."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpIndexError
from seqflow.kernels.arrays import Array
from seqflow.registry.lookup import get
from seqflow.signature import language


def compute(value: language.Value, known: Mapping[Any, Any]) -> Any:
    """Compute a value from inputs, sizes and attributes by name; integers of any width become int64."""
    match value:
        case language.FixedSize(value=number):
            return number
        case language.Name(name=name):
            return _as_int64(known[name])
        case language.Sum(of=of):
            return sum(int(one.sum(dtype=np.int64)) for one in _tensors(known[of]))
        case language.Max(of=of):
            return max(int(one.max(initial=0)) for one in _tensors(known[of]))
        case language.Given(attribute=attribute, otherwise=otherwise):
            return compute(otherwise, known) if known[attribute] is None else known[attribute]
        case language.Arithmetic(operator=operator, left=left, right=right):
            return language.OPERATORS[operator](compute(left, known), compute(right, known))
        case language.OpCall(op=op, arguments=(language.Each(name=name),)):
            return reduce(get(op).call, map(_as_int64, known[name]))
        case language.OpCall(op=op, arguments=arguments, keywords=keywords):
            given = {name: compute(one, known) for name, one in keywords}
            result = get(op).call(*(compute(one, known) for one in arguments), **given)
            return result[0] if isinstance(result, tuple) else result
    return language.evaluate(value, known)


def _tensors(value: Any) -> list[Array]:
    return value if isinstance(value, list) else [value]


def _as_int64(value: Any) -> Any:
    is_integers = isinstance(value, np.ndarray) and value.dtype.kind in "iu"
    return value.astype(np.int64, copy=False) if is_integers else value


def check_values(argument: language.Argument, result: Array, known: Mapping[Any, Any]) -> None:
    """Raise OpError when an output differs from its definition in the signature, or exceeds its bound."""
    if argument.definition is not None:
        expected = compute(argument.definition, known)
        if result.shape != np.shape(expected) or not np.array_equal(result, expected):
            raise OpError(
                f"{argument.name} is {result}, defined as {argument.definition}, which is {expected}"
            )
    if argument.most is not None:
        most = compute(argument.most, known)
        if not (result <= most).all():
            raise OpError(f"{argument.name} is {result}, expected at most {argument.most}, which is {most}")


def check_limit(limit: language.Limit, size: int, known: Mapping[Any, Any]) -> None:
    """Raise OpError when a size or a sum of the outputs exceeds its bound."""
    most = compute(limit.most, known)
    if size > most:
        raise OpError(f"{limit.size} is {size}, expected at most {limit.most}, which is {most}")


def check_pointing(
    argument: language.Argument, result: Array, sizes: Mapping[object, Any], tensors: Mapping[str, Array]
) -> None:
    """Raise OpIndexError when a result points outside the target of its dtype word; -1 means none and is accepted.

    `sizes` maps names of the signature to sizes, `tensors` maps inputs and outputs by name.
    """
    points = argument.dtype.points
    if argument.dtype.word in ("index", "offset"):
        count = sizes.get(points if isinstance(points, language.Sum) else str(points))
        if count is not None:
            count += argument.dtype.word == "offset"
            _refuse(argument, result, np.full(result.shape, count), f"which {points} says")
    elif argument.dtype.word == "position" and str(points) in tensors:
        lengths = tensors[str(points)].astype(np.int64)
        first = argument.dims[0] if argument.dims else None
        of = tensors.get(first.of) if isinstance(first, language.Sum) else None
        sequences = np.arange(len(lengths)) if of is None else kernels.lengths_to_segment_ids(of)
        # one bound for each row, for all positions in it
        most = lengths[sequences].reshape(-1, *[1] * (result.ndim - 1))
        _refuse(argument, result, np.broadcast_to(most, result.shape), "the rows of its sequence")


def _refuse(argument: language.Argument, result: Array, most: Array, why: str) -> None:
    outside = (result < -1) | (result >= most)
    if outside.any():
        place = np.unravel_index(int(np.argmax(outside)), result.shape)
        where = ", ".join(map(str, place))
        raise OpIndexError(f"{argument.name}[{where}] = {result[place]} is outside [0, {most[place]}), {why}")
