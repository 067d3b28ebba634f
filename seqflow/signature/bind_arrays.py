"""Binding a signature to arrays: checks dtypes, ranks, equal dimensions and sums of lengths.

There are two forms of the same check. `bind` walks the signature, converts lists and arrays of other byte orders,
and raises the errors. `fast_condition` writes the common case as one Python expression, which the op evaluates on
every call; if it is false, `bind` decides.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpError, OpTypeError, SeqflowError, ShapeError
from seqflow.kernels.arrays import Array, is_masked, not_an_array
from seqflow.kernels.error import MAX_INT64, negative, overflow, too_large
from seqflow.kernels.exact import EXACT, changed
from seqflow.signature.advice import LISTS_ADVICE, advice_on_lengths, holds_lists
from seqflow.signature.language import (
    LIKE,
    POINTING,
    Anything,
    Argument,
    Arithmetic,
    AtLeast,
    Dim,
    FixedSize,
    Fresh,
    Given,
    Max,
    Name,
    Repeated,
    Rest,
    Signature,
    Size,
    Sum,
    Value,
    as_linear,
    evaluate,
    parts,
    sizes_given,
)
from seqflow.signature.order import advice_on_numbers, advice_on_order
from seqflow.signature.shared_dtypes import check_alike, dtypes_of, widen_texts

Known = dict[object, Any]
NOT_A_SCALAR = "reduce_sum(x) is a scalar; Net.gradient has cotangent= for other results"


def bind(signature: Signature, values: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the inputs as arrays that fit the signature; None for optional inputs that are not given.

    Raises OpTypeError for a dtype the signature does not take, ShapeError for ranks and dimensions that do not
    agree, LodError for lengths that are negative or do not add up. If the values would fit in another order, the
    advice of the error says so.
    """
    try:
        return _bind(signature, values, attributes)
    except SeqflowError as error:
        advice = advice_on_order(signature, values, lambda moved: _bind(signature, moved, attributes))
        advice = advice or error.advice or advice_on_lengths(signature, values)
        advice = advice or advice_on_numbers(signature, values, attributes)
        if advice:
            error.advice = advice
        raise


def _bind(signature: Signature, values: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    bound = [
        _convert_repeated(item, value) if isinstance(item, Repeated) else _convert(item, value)
        for item, value in zip(signature.inputs, values, strict=True)
    ]
    if signature.alike:
        check_alike(signature, dtypes_of(signature, bound))
        bound = widen_texts(signature, bound)
    _bind_all(signature.inputs, bound, sizes_given(attributes))
    return tuple(bound)


def bind_sizes(signature: Signature, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Known:
    """Return the sizes of inputs and attributes by name; `inputs` are in the form that the body of an op takes."""
    remaining = iter(inputs)
    bound = [
        list(zip(*(next(remaining) for _ in item.arguments), strict=True))
        if isinstance(item, Repeated)
        else next(remaining)
        for item in signature.inputs
    ]
    known = sizes_given(attributes)
    _bind_all(signature.inputs, bound, known)
    return known


def bind_results(outputs: Sequence[Argument | Repeated], results: Sequence[Any], known: Known) -> None:
    """Check the ranks and sizes of results against the sizes of the inputs.

    `results` has one item for each output: a list for each of its arguments, with the tensors of that argument. A new
    name is bound when it is first met, so that it has the same size in all outputs. Raises ShapeError and LodError.
    """
    for item, columns in zip(outputs, results, strict=True):
        group = item.arguments if isinstance(item, Repeated) else (item,)
        for argument, tensor in (
            (a, one) for a, column in zip(group, columns, strict=True) for one in column
        ):
            _check_rank(argument, tensor)
    bound = [
        list(zip(*columns, strict=True)) if isinstance(item, Repeated) else columns[0][0]
        for item, columns in zip(outputs, results, strict=True)
    ]
    _bind_all(outputs, bound, known)


def _bind_all(items: Sequence[Argument | Repeated], bound: Sequence[Any], known: Known) -> None:
    for arguments in _scopes(items, bound):
        _bind_scope(arguments, known)


def _scopes(
    items: Sequence[Argument | Repeated], bound: Sequence[Any]
) -> Iterator[list[tuple[Argument, Array]]]:
    """Yield arguments whose sizes may use each other's sums: all plain ones, then each repetition of a group."""
    pairs = list(zip(items, bound, strict=True))
    yield [(item, array) for item, array in pairs if isinstance(item, Argument) and array is not None]
    for item, arrays in pairs:
        if isinstance(item, Repeated):
            for repetition in arrays:
                yield list(zip(item.arguments, repetition, strict=True))


_ROWS_WITHOUT_BYTES = 1 << 20
"""Most rows of an array without bytes, given as a list: each becomes an array, and shape (2**63 - 1, 0) is legal."""


def _convert_repeated(group: Repeated, value: Any) -> list[tuple[Any, ...]]:
    """Return the repetitions of a group; `value` has one list for each argument of the group."""
    for argument, items in zip(group.arguments, value, strict=True):
        is_scalar = isinstance(items, np.ndarray) and items.ndim == 0
        if is_scalar or not isinstance(items, (list, tuple, np.ndarray)):
            raise OpTypeError(f"{argument.name} is {type(items).__name__}, expected a list of arrays")
        if isinstance(items, np.ndarray) and not items.nbytes and len(items) > _ROWS_WITHOUT_BYTES:
            raise OpTypeError(
                f"{argument.name} is an array of {len(items)} rows without bytes, expected a list of arrays"
            )
    counts = {argument.name: len(items) for argument, items in zip(group.arguments, value, strict=True)}
    if len(set(counts.values())) != 1 or 0 in counts.values():
        found = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise OpError(f"{found}, expected lists of one or more, all equally long")
    return [
        tuple(_convert(argument, item) for argument, item in zip(group.arguments, repetition, strict=True))
        for repetition in zip(*value, strict=True)
    ]


def _convert(argument: Argument, value: Any) -> Array | None:
    if value is None and argument.optional:
        return None
    array = as_array(argument.name, value)
    has_no_dtype = array.size == 0 and array.dtype == np.float64 and not isinstance(value, np.ndarray)
    # NumPy makes an empty list float64, which an op on integers would refuse
    if has_no_dtype and argument.dtype.word in ("int", *POINTING):
        array = array.astype(np.int64)
    _check_dtype(argument, array)
    _check_rank(argument, array)
    return array


def as_array(name: str, value: Any) -> Array:
    """Return `value` as an array in native byte order; raise OpTypeError when it would be an array of objects."""
    kinds = set(map(type, value)) if isinstance(value, (list, tuple)) else set()
    if any(map(is_masked, {type(value), *kinds})):
        raise OpTypeError(
            f"{name} is a masked array, expected a plain one\n  fill it first: {name}.filled(…)"
        )
    try:
        array = np.asarray(value)
    except SeqflowError:
        raise
    except ValueError as error:
        raise OpTypeError(
            f"{name} is not rectangular: {str(error).partition(' (in compiled code')[0]}",
            advice="sf.from_arrow(ak.to_arrow_table(array)) has flat values and lengths"
            if type(value).__module__.startswith("awkward")
            else LISTS_ADVICE,
        ) from None
    except MemoryError:
        raise
    except Exception as error:  # raised by the object's own __array__
        message, advice = not_an_array(name, value, error)
        raise OpTypeError(message, advice=advice) from None
    if array.dtype.kind == "O":
        raise OpTypeError(
            f"{name} holds Python objects, expected an array of one dtype",
            advice=LISTS_ADVICE if holds_lists(array) else "",
        )
    if kinds and array.dtype.kind in "fSUmM" and kinds not in ({float}, {str}):
        _check_common(name, array, value)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _check_common(name: str, array: Array, value: Any) -> None:
    """Raise OpTypeError when NumPy's dtype of a list changes a value: 2**53 + 1 next to 0.5, 1 next to "a"."""
    # floats below 2**53 hold all integers: only larger ones can have been rounded
    suspect = np.abs(array) >= EXACT if array.dtype.kind == "f" else np.ones(array.shape, np.bool_)
    given = np.asarray(value, object)[suspect] if suspect.any() else ()
    if len({getattr(one, "dtype", type(one)) for one in given}) < 2 and array.dtype.kind != "f":
        return
    for one, made in zip(given, array[suspect], strict=True):
        if changed(np.asarray(one), np.asarray(made)).any():
            raise OpTypeError(
                f"{name} has {one!r}, which becomes {made!r} in an array of {array.dtype}\n"
                "  pass values of one kind, or an array"
            )


def expected_dtype(argument: Argument) -> str:
    """Return the required dtype of an input, in words."""
    return {
        **dict.fromkeys(POINTING, "integers"), "str": "texts", "int": "integers", "float": "floats",
        "number": "numbers", "bool": "bool", "ordered": "numbers or times", "any": "an array of one plain dtype",
        LIKE: f"the dtype of {''.join(argument.dtype.of)}",
    }.get(argument.dtype.word, argument.dtype.word)  # fmt: skip


def _check_dtype(argument: Argument, array: Array) -> None:
    kinds = argument.kinds
    fits = array.dtype == argument.dtype.word if kinds is None else array.dtype.kind in kinds
    if not fits:
        raise OpTypeError(f"{argument.name} is {array.dtype}, expected {expected_dtype(argument)}")


def _check_rank(argument: Argument, array: Array) -> None:
    rank = argument.rank
    if array.ndim == rank or (array.ndim > rank and argument.rest is not None):
        return
    wanted = f"{rank} or more" if argument.rest is not None else str(rank)
    raise ShapeError(
        f"{argument.name} has {array.ndim} dimensions {array.shape}, expected {wanted} ({argument})",
        advice=NOT_A_SCALAR if wanted == "0" else "",
    )


def _bind_scope(arguments: list[tuple[Argument, Array]], known: Known) -> None:
    for argument, array in arguments:
        if argument.is_lengths:
            known[Sum(argument.name)] = total_of(argument.name, array)
            known[Max(argument.name)] = kernels.max_length(array)
    origins: dict[object, str] = {}
    later: list[tuple[Argument, int, Dim, int]] = []
    for argument, array in arguments:
        for dim, key, first, _ in argument.axes:
            size: Any = array.shape[key]
            axis = first if first >= 0 else first + array.ndim
            match dim:
                case Name(name=name) | AtLeast(name=name) if name not in known:
                    known[name], origins[name] = size, f"{argument.name}.shape[{axis}]"
                    if isinstance(dim, AtLeast):
                        later.append((argument, axis, dim, size))
                case Rest():
                    _bind_rest(argument, axis, dim, size, known, origins)
                case _:
                    later.append((argument, axis, dim, size))
    while later:  # repeat: a name that was solved may make another size known
        unknown = [one for one in later if not _check_size(*one, known, origins)]
        if len(unknown) == len(later):
            break
        later = unknown
    for argument, axis, dim, size in later:  # a size that cannot be computed is still the same everywhere
        text, place = str(dim), f"{argument.name}.shape[{axis}]"
        if known.setdefault(text, size) != size:
            raise ShapeError(f"{place} is {size}, expected {known[text]} as in {origins[text]} ({text})")
        origins.setdefault(text, place)


def total_of(name: str, lengths: Array) -> int:
    """Return the sum of lengths called `name`; raise LodError when one is negative or the sum overflows."""
    try:
        return kernels.check_lengths(lengths)
    except kernels.KernelError as error:
        raise LodError(str(_renamed(error, name))) from None


def _renamed(error: kernels.KernelError, name: str) -> kernels.KernelError:
    """Return the error of `check_lengths` with the name of the argument."""
    match error:
        case kernels.KernelError(kind="negative", position=int(at), value=int(value)):
            return negative(name, at, value)
        case kernels.KernelError(position=int(at), value=int(value)) if value > MAX_INT64:
            return too_large(name, at, value)
        case kernels.KernelError(position=int(at), value=int(value), low=int(low), high=int(high)):
            return overflow(name, at, value, low, high)
    return error


def _bind_rest(
    argument: Argument, axis: int, dim: Rest, sizes: tuple[int, ...], known: Known, origins: dict[object, str]
) -> None:
    place = f"{argument.name}.shape[{axis}:{axis + len(sizes)}]"
    if dim not in known:
        known[dim], origins[dim] = sizes, place
    elif known[dim] != sizes:
        raise ShapeError(f"{place} is {sizes}, expected {known[dim]} as in {origins.get(dim, 'the others')}")


def _check_size(
    argument: Argument, axis: int, dim: Dim, size: int, known: Known, origins: dict[object, str]
) -> bool:
    """Return whether the size could be checked or solved for a name; raise an error when it is wrong."""
    place = f"{argument.name}.shape[{axis}]"
    if isinstance(dim, AtLeast):
        bound = evaluate(dim.bound, known)
        if bound is not None and size < bound:
            raise ShapeError(f"{place} is {size}, expected {bound} or more ({dim.bound} is {bound})")
        if known[dim.name] != size:
            raise ShapeError(f"{place} is {size}, expected {known[dim.name]} as in {origins[dim.name]}")
        return True
    expected = evaluate(dim, known)  # type: ignore[arg-type]  # `_bind_rest` takes *d
    if expected is None:
        return _solve(place, dim, size, known, origins)
    if expected != size and isinstance(dim, Sum):
        where = "rows" if axis == 0 else f"elements along axis {axis}"
        raise LodError(f"{dim} is {expected} but {argument.name} has {size} {where}")
    if expected != size:
        origin = origins.get(getattr(dim, "name", None))
        because = (
            f" as in {origin}" if origin else f" ({dim} is {expected}{_origins_of(dim, known, origins)})"
        )
        raise ShapeError(
            f"{place} is {size}, expected {expected}{'' if isinstance(dim, FixedSize) else because}"
        )
    return True


def _origins_of(dim: Dim, known: Known, origins: dict[object, str]) -> str:
    """Return the origins of the names inside a size: ", H is 3 as in w_hh.shape[1]"."""
    names = dict.fromkeys(part.name for part in parts(dim) if isinstance(part, Name))
    return "".join(f", {name} is {known[name]} as in {origins[name]}" for name in names if name in origins)


def _solve(place: str, dim: Dim, size: int, known: Known, origins: dict[object, str]) -> bool:
    """Bind the one unknown name of a size such as `4*H` or `B+1`; return whether there was one."""
    linear = as_linear(dim, known)
    if linear is None:
        return False
    try:
        known[linear.name], origins[linear.name] = linear.solve(size), place
    except ShapeError:
        because = _origins_of(dim, known, origins)
        raise ShapeError(f"{place} is {size}, expected {dim} for some {linear.name}{because}") from None
    return True


def fast_condition(signature: Signature, attributes: Mapping[str, bool]) -> str | None:
    """Return a Python expression that is true if all inputs are arrays that fit; None if there is no such form.

    Lengths are checked by `check_lengths`, which takes 1-D int32 and int64 arrays and raises for everything else, so
    the expression may raise as well. It may use the names `ndarray`, `check_lengths`, `max_length` and those of the
    concrete dtypes. `attributes` maps each attribute to whether it may be None.
    """
    if not all(isinstance(item, Argument) for item in signature.inputs):
        return None
    may_be_none = [one for one in signature.input_arguments if one.optional and one.default is None]
    required = [argument for argument in signature.input_arguments if argument not in may_be_none]
    writer = _ConditionWriter(attributes)
    # lengths first, since sizes use their sums; `like(x)` last, since it compares with the dtype of x
    for argument in sorted(required, key=lambda one: (not one.is_lengths, one.dtype.word == LIKE)):
        writer.kind(argument)
    try:
        writer.shapes(required)
        optional = [_optional_condition(argument, attributes, writer.bound) for argument in may_be_none]
    except KeyError:
        return None
    return " and ".join(writer.conditions + optional)


def _optional_condition(
    argument: Argument, attributes: Mapping[str, bool], bound: Mapping[object, str]
) -> str:
    """Return the condition of an optional argument; raise KeyError when it has names that no required one has."""
    writer = _ConditionWriter(attributes)
    writer.bound = dict(bound)
    writer.kind(argument)
    writer.shapes([argument])
    for key in writer.bound:  # a name bound here would hold only if the argument is given: leave it to `bind`
        bound[key]
    return f"({argument.name} is None or {' and '.join(writer.conditions)})"


class _ConditionWriter:
    """Writes the comparisons of a signature as Python expressions."""

    def __init__(self, attributes: Mapping[str, bool]) -> None:
        self.attributes = attributes
        self.bound: dict[object, str] = {}
        self.conditions: list[str] = []

    def kind(self, argument: Argument) -> None:
        name, kinds = argument.name, argument.kinds
        if argument.is_lengths:
            self.bound[Sum(name)] = f"sum_{name}"
            self.conditions.append(f"(sum_{name} := check_lengths({name})) >= 0")
            return
        rank = f">= {argument.rank}" if argument.rest is not None else f"== {argument.rank}"
        self.conditions.append(f"type({name}) is ndarray and {name}.ndim {rank}")
        if argument.dtype.word == LIKE:
            self.conditions.append(f"{name}.dtype == {argument.dtype.of[0]}.dtype")
            return
        dtype = f"== {argument.dtype.word}" if kinds is None else f'.kind in "{kinds}"'
        self.conditions.append(
            f"(_dtype := {name}.dtype){' ' if kinds is None else ''}{dtype} and _dtype.isnative"
        )

    def shapes(self, arguments: Sequence[Argument]) -> None:
        """Write the comparisons of shapes: of names first, because sizes are computed from them."""
        later: list[tuple[str, Size]] = []
        for argument in arguments:
            for dim, key, _, _ in argument.axes:
                place = f"{argument.name}.shape[{_key_text(key)}]"
                match dim:
                    case Rest():
                        self._equal(dim, place)
                    case Name(name=name) if name not in self.attributes:
                        self._equal(name, place)
                    case AtLeast(name=name, bound=bound):
                        self._equal(name, place)
                        later.append((f"{place} >=", bound))
                    case Arithmetic("*", FixedSize(value=factor), Name(name=name)) if (
                        factor and name not in self.bound
                    ):
                        self.bound[name] = f"({place} // {factor})"
                        later.append((f"{place} ==", dim))
                    case _:
                        assert not isinstance(dim, (Anything, Fresh))
                        later.append((f"{place} ==", dim))
        self.conditions += [f"{comparison} {self._size(size)}" for comparison, size in later]

    def _equal(self, key: object, place: str) -> None:
        if key in self.bound:
            self.conditions.append(f"{place} == {self.bound[key]}")
        else:
            self.bound[key] = place

    def _size(self, size: Value) -> str:
        match size:
            case FixedSize(value=value):
                return str(value)
            case Name(name=name):
                return name if name in self.attributes else self.bound[name]
            case Sum():
                return self.bound[size]
            case Max(of=of):
                return f"max_length({of})"
            case Given(attribute=attribute, otherwise=otherwise):
                return f"({self._size(otherwise)} if {attribute} is None else {attribute})"
            case Arithmetic(operator=operator, left=left, right=right):
                return f"({self._size(left)} {operator} {self._size(right)})"
        raise KeyError(size)


def _key_text(key: int | slice) -> str:
    return str(key) if isinstance(key, int) else f"{key.start}:{'' if key.stop is None else key.stop}"
