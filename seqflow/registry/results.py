"""Checks the results of an op against its signature: their number, dtypes, ranks, sizes and values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce, wraps
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpIndexError, OpResultError, SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.registry.definition import OpDef
from seqflow.registry.lookup import get
from seqflow.shape import PartialShape
from seqflow.signature import Argument, Repeated, language
from seqflow.signature.bind_arrays import bind_results, bind_sizes
from seqflow.signature.bind_specs import output_dtype
from seqflow.signature.language import Anything, Dim, FixedSize, Fresh, Max, Name, Rest, Sum
from seqflow.signature.shared_dtypes import same_dtype
from seqflow.tensor import TensorSpec


def with_checked_results(function: Callable[..., Any], definition: Callable[[], OpDef]) -> Callable[..., Any]:
    """Return the body of an op with a check of the results after each call; NumPy's scalars become arrays.

    `definition` returns the op, which does not exist yet: it is made from the checked body.
    """

    @wraps(function)
    def checked(*inputs: Any, **attributes: Any) -> Any:
        declared = DeclaredResults(definition(), inputs, attributes)
        result = _as_arrays(function(*inputs, **attributes))
        declared.check(result)
        return result

    return checked


class DeclaredResults:
    """Declaration of the results of one call, read before the call."""

    def __init__(self, op: OpDef, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        """Read the sizes of the inputs.

        `inputs` has an array for each input, a list of arrays for a list, None for an input that is not given.
        `attributes` are all attributes.
        """
        self.op = op
        self.attributes = attributes
        given = dict(zip((a.name for a in op.signature.input_arguments), inputs, strict=True))
        self.inputs = {name: value for name, value in given.items() if value is not None}
        self.sizes = bind_sizes(op.signature, inputs, attributes)

    def check(self, result: Any) -> None:
        """Raise OpResultError when the result differs from the signature or the op's shape function."""
        try:
            items = list(self._items(result))
            self._check_dtypes(items)
            outputs = [self._with_known_sizes(item) for item in self.op.signature.outputs]
            bind_results(outputs, items, self.sizes)
            self._check_pointing(items)
            self._check_values(items)
        except SeqflowError as error:
            raise OpResultError(
                f"the result is not what the signature declares: {error}\n  {self.op.signature}"
            ) from None

    def _items(self, result: Any) -> Iterator[list[list[Any]]]:
        """Yield for each output of the signature a list for each of its arguments, with its tensors."""
        outputs = self.op.signature.outputs
        names = [argument.name for argument in self.op.signature.output_arguments]
        if len(names) == 1:
            result = (result,)
        elif not names:
            result = () if result is None else (result,)
        elif not isinstance(result, (tuple, list)):
            raise OpError(f"found one {type(result).__name__}, declared {len(names)} ({', '.join(names)})")
        if len(result) != len(names):
            raise OpError(
                f"found {len(result)} results, declared {len(names)} ({', '.join(names) or 'none'})"
            )
        remaining = iter(result)
        for item in outputs:
            if isinstance(item, Argument):
                yield [[next(remaining)]]
            else:
                yield [self._repetitions(item, argument, next(remaining)) for argument in item.arguments]

    def _repetitions(self, group: Repeated, argument: Argument, found: Any) -> list[Any]:
        count = group.length(self.attributes)
        if not isinstance(found, (list, tuple)):
            raise OpError(f"{argument.name} is {type(found).__name__}, declared a list of {count} ({group})")
        if len(found) != count:
            raise OpError(f"{argument.name} has {len(found)} tensors, declared {count} ({group})")
        return list(found)

    def _check_dtypes(self, items: list[list[list[Any]]]) -> None:
        """Check the dtypes, and the shapes by the op's shape function if it has one."""
        op, specs = self.op, {name: _specs(value) for name, value in self.inputs.items()}
        inferred: Iterator[TensorSpec] = iter(())
        if op.shape is not None:
            inferred = iter(op.infer(specs, self.attributes, values=self.inputs).outputs)
        arguments = iter(op.signature.output_arguments)
        for column in (column for item in items for column in item):
            argument = next(arguments)
            for tensor in column:
                if not isinstance(tensor, np.ndarray):
                    raise OpError(
                        f"{argument.name} is a {type(tensor).__name__}, declared an array ({argument})"
                    )
                spec = next(inferred, None)
                dtype = (
                    output_dtype(op.signature, argument, specs, self.attributes)
                    if spec is None
                    else spec.dtype
                )
                if not same_dtype(tensor.dtype, dtype):
                    raise OpError(f"{argument.name} is {tensor.dtype}, declared {dtype} ({argument})")
                if spec is not None and not spec.shape.compatible(PartialShape(tensor.shape)):
                    raise OpError(
                        f"{argument.name} has shape {tensor.shape}, but the shape function says {spec.shape}"
                    )

    def _check_pointing(self, items: list[list[list[Any]]]) -> None:
        arguments = self.op.signature.output_arguments
        if not any(argument.dtype.points for argument in arguments):
            return
        columns = list(zip(arguments, (column for item in items for column in item), strict=True))
        tensors = {a.name: one for a, column in columns for one in column[:1]}
        for argument, column in columns:
            for result in column:
                check_pointing(argument, result, self.sizes, {**tensors, **self.inputs})

    def _check_values(self, items: list[list[list[Any]]]) -> None:
        """Check the definitions and bounds of values."""
        signature = self.op.signature
        known: dict[Any, Any] = {**self.sizes, **self.attributes, **self.inputs}
        columns = [column for item in items for column in item]
        results = dict(zip(signature.output_arguments, columns, strict=True))
        for argument, column in results.items():
            for result in column:
                check_values(argument, result, known)
        for limit in signature.limits:
            match limit.size:
                case Name(name=name):
                    sizes = [known[name]] if name in known else []
                case Sum(of=of) | Max(of=of):
                    found = [
                        one for argument, column in results.items() if argument.name == of for one in column
                    ]
                    largest = isinstance(limit.size, Max)
                    sizes = [int(one.max(initial=0) if largest else one.sum()) for one in found]
            for size in sizes:
                check_limit(limit, size, known)

    def _with_known_sizes(self, output: Argument | Repeated) -> Argument | Repeated:
        """Return the output with known sizes instead of `*d`, which may occur in it more than once.

        If the op has a shape function, that decides about all sizes except sums of lengths, which it cannot know.
        """
        if isinstance(output, Repeated):
            return replace(output, arguments=tuple(map(self._with_sizes, output.arguments)))
        return self._with_sizes(output)

    def _with_sizes(self, argument: Argument) -> Argument:
        dims: list[Dim] = []
        for dim in argument.dims:
            if self.op.shape is not None and not isinstance(dim, Sum):
                dims.append(Rest("_") if isinstance(dim, Rest) else Anything())
            elif isinstance(dim, Rest) and dim in self.sizes:
                dims += map(FixedSize, self.sizes[dim])
            else:
                dims.append(dim.size if isinstance(dim, Fresh) else dim)
        return argument if tuple(dims) == argument.dims else replace(argument, dims=tuple(dims))


def _specs(value: Any) -> Any:
    return [TensorSpec.of(one) for one in value] if isinstance(value, (list, tuple)) else TensorSpec.of(value)


def _as_arrays(result: Any) -> Any:
    if isinstance(result, np.generic):
        return np.asarray(result)
    if isinstance(result, tuple):
        return tuple([np.asarray(one) if isinstance(one, np.generic) else one for one in result])
    return result


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
