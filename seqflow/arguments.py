"""Check arguments of public functions, and keys of job files, against their annotations."""

import functools
import inspect
import numbers
import operator
import os
import sys
import types
import typing
from collections import abc
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

import numpy as np

from seqflow.byte_sizes import parse_bytes
from seqflow.errors import OpError, OpTypeError, SeqflowError, nearest
from seqflow.hidden import described_option
from seqflow.names_elsewhere import instead

F = TypeVar("F", bound=Callable[..., Any])


def _is_dtype(value: Any) -> bool:
    try:
        np.dtype(value)
    except (TypeError, ValueError, SyntaxError):
        return False
    return True


def is_path(value: Any) -> bool:
    """Return whether a value can be the path of a file."""
    try:
        return bool(value) and b"\0" not in os.fsencode(value)
    except (TypeError, ValueError):
        return False


def are_distinct(values: Any) -> bool:
    """Return whether all values are different; an iterator is not checked."""
    return not isinstance(values, abc.Collection) or len(values) == len(set(values))


def _are_columns(names: Any) -> bool:
    return are_distinct(names) and not (isinstance(names, abc.Collection) and len(names) == 0)


def at_least_one(plan: str, most: int = 2**63 - 1, **counts: int | None) -> None:
    """OpError unless each count is an int, from 1 to `most`, or left out."""
    for name, count in counts.items():
        if count is not None and (
            not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= most
        ):
            bound = "or more, of 64 bits" if most == 2**63 - 1 else f"to {most:,}"
            raise OpError.of(f"{plan}.{name}", f"is {count!r}, expected an integer, 1 {bound}")


def is_number(value: object, kinds: tuple[type, ...] = (int, float)) -> bool:
    """Return whether a value is a number of these kinds that float64 can hold; a bool, inf or nan is not."""
    if isinstance(value, bool) or not isinstance(value, kinds):
        return False
    # as a number of Python: NumPy would cast the bound to float32, which cannot hold it
    number: Any = value.item() if isinstance(value, np.generic) else value
    return bool(abs(number) <= sys.float_info.max)


def is_size(value: Any) -> bool:
    """Return whether a value is a number of bytes, or a text of one."""
    try:
        return parse_bytes(value) < 2**63
    except ValueError:
        return False


def in_range(least: int, most: int | None = None) -> Callable[[int], bool]:
    """Return a condition for a number: at least `least`, and at most `most` unless it is None."""
    return lambda value: least <= value and (most is None or value <= most)


def is_wait(value: object) -> bool:
    """Return whether a value is a time to wait, in seconds: a longer one is a hang."""
    return (
        is_number(value, (int, float, np.integer, np.floating))
        and 0 < typing.cast("float", value) <= LONGEST_WAIT
    )


LONGEST_WAIT = 86_400
SECONDS_TO_WAIT = f"seconds above 0, at most {LONGEST_WAIT:,}"
DtypeLike = Annotated[Any, _is_dtype, "a dtype"]
FilePath = Annotated[str | os.PathLike[str], is_path, "a path"]
PathText = Annotated[str, is_path, "a path"]
ByteSize = Annotated[int | str, is_size, "bytes as a number or text such as '32 MiB'"]
Seconds = Annotated[float, is_wait, SECONDS_TO_WAIT]
Count = Annotated[int, in_range(1), "an integer, 1 or more"]
Columns = Annotated[abc.Sequence[str], _are_columns, "the names of one column or more, each once"]
"""Types with a condition, described in words; Annotated, so that type checkers see the type."""
_LISTS = (tuple, list, abc.Sequence, abc.Collection, abc.Iterable)
_DICTS = (dict, abc.Mapping)
_PLURALS: Mapping[Any, str] = {str: "text", int: "integers", float: "numbers", PathText: "paths"}
WORDS: Mapping[Any, str] = {
    str: "text", int: "an integer", float: "a number", bool: "True or False", dict: "a dict",
    abc.Callable: "a function", os.PathLike: "a path", np.ndarray: "an array",
}  # fmt: skip
"""Annotated types in words; other types are described by their names."""


def checked(
    error: type[SeqflowError] = OpTypeError,
    *,
    late: bool = False,
    methods: bool = True,
) -> Callable[[F], F]:
    """Decorate a function, or a class and its public methods: an argument of another type raises an error that names
    it.

    Arguments are checked after the call, so that more specific errors of the function itself come first. With `late`,
    for functions that are called often, they are checked only if the call fails with an error that is not ours.
    """

    def misfit(
        function: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any], *, failed: bool
    ) -> SeqflowError | None:
        defaults, hints = _declared(function)
        unknown = [name for name in given if name not in hints]
        if failed and unknown and not _takes_any_option(function):
            return error(
                f"{function.__qualname__} has no option {unknown[0]!r}{nearest(unknown[0], hints)}",
                advice=instead("option", unknown[0]),
            )
        for name, value in [*zip(hints, args, strict=False), *given.items()]:
            hint = hints.get(name, Any)
            is_long = failed and isinstance(value, int) and not -(2**63) <= value < 2**64
            if value is not defaults.get(name) and (is_long or not fits(value, hint)):
                guess = nearest(value, choices(hint)) if isinstance(value, str) else ""
                place = function.__qualname__.removesuffix(".__init__")
                expected = f"{described(hint)}{' of 64 bits' * is_long}{guess}"
                wrong = error(f"{place}: {name} is {_shown(name, value)}, expected {expected}")
                wrong.is_of_type, wrong.argument = True, name
                return wrong
        return None

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            try:
                result = function(*args, **given)
            except Exception as own:
                if not isinstance(own, SeqflowError) or own.is_of_type:
                    wrong = misfit(function, args, given, failed=True)
                    if wrong is not None:
                        raise wrong from None
                raise
            if not late and (wrong := misfit(function, args, given, failed=False)):
                if hasattr(result, "close"):  # a server that has begun
                    result.close()
                raise wrong
            return result

        return call

    def decorate(target: F) -> F:
        if not isinstance(target, type):
            return typing.cast(F, wrapped(target))
        for name, member in list(vars(target).items()):
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function) and (name == "__init__" or (methods and name[0] != "_")):
                method = wrapped(function)
                setattr(target, name, method if member is function else type(member)(method))
        return target

    return decorate


def check_public(names: dict[str, Any]) -> None:
    """Apply `checked` to the functions and constructors in `__all__` of a package, where they are defined."""
    for name in names["__all__"]:
        value = names.get(name)
        if isinstance(value, (type, types.FunctionType)):
            names[name] = checked(methods=False)(value)
            setattr(sys.modules[value.__module__], name, names[name])


def _takes_any_option(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(one.kind is one.VAR_KEYWORD for one in parameters)


@functools.cache
def _declared(function: Callable[..., Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the defaults and the types of parameters; Any for a name that is imported only for type checkers."""
    parameters = inspect.signature(function).parameters.values()
    written_in = inspect.unwrap(function).__globals__
    hints: dict[str, Any] = {}
    for one in parameters:
        hint = Any if one.annotation is one.empty else one.annotation
        try:
            hints[one.name] = eval(hint, written_in) if isinstance(hint, str) else hint
        except NameError:
            hints[one.name] = Any
        if typing.get_origin(hints[one.name]) is typing.Unpack:
            hints |= typing.get_type_hints(typing.get_args(hints.pop(one.name))[0], include_extras=True)
    return {one.name: one.default for one in parameters}, hints


def shown(value: Any) -> str:
    """Return the value in a short line; an array as its dtype and shape."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):  # also a tensor of torch
        return f"{value.dtype} {tuple(value.shape)}"
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write integers of more than 4,300 digits
        return "a number of too many digits"
    return text if len(text) <= 80 else f"{text[:80]}…"


def _shown(name: str, value: Any) -> str:
    return described_option(name, value) if name == "storage_options" else shown(value)


def fits(value: Any, hint: Any) -> bool:
    """Return whether the value has the annotated type."""
    return any(_fits_one(value, member) for member in _members(hint))


def _members(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def _fits_one(value: Any, hint: Any) -> bool:
    kind: Any = typing.get_origin(hint) or hint
    arguments = typing.get_args(hint)
    if kind is Literal:
        return isinstance(value, (str, int)) and value in arguments
    if kind is Annotated:
        return fits(value, arguments[0]) and bool(arguments[1](value))
    if kind is abc.Callable:
        return callable(value)
    if not isinstance(kind, type):  # Any, a TypeVar, or a name that is not defined yet
        return True
    if kind in _LISTS:
        is_dict = isinstance(value, abc.Mapping) and kind is abc.Sequence
        return not is_dict and _fits_list(value, arguments or (Any, ...))
    if kind in _DICTS:
        of_key, of_item = arguments or (Any, Any)
        return isinstance(value, abc.Mapping) and all(
            fits(key, of_key) and fits(item, of_item) for key, item in value.items()
        )
    if kind in (int, float, bool):
        return _fits_number(value, kind)
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol for type checkers only
        return True


def _fits_list(value: Any, arguments: tuple[Any, ...]) -> bool:
    if not isinstance(value, abc.Iterable) or isinstance(value, (str, bytes)):
        return False
    if not isinstance(value, abc.Collection):  # checking an iterator would consume it
        return True
    if len(arguments) == 2 and arguments[1] is not ...:
        return len(value) == 2 and all(map(fits, value, arguments))
    return all(fits(item, arguments[0]) for item in value)


def _fits_number(value: Any, kind: type) -> bool:
    if kind is bool or isinstance(value, (bool, np.bool_)):
        return kind is bool and isinstance(value, (bool, np.bool_))
    if kind is float:
        return isinstance(value, numbers.Real)
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def described(hint: Any, words: Mapping[Any, str] = WORDS) -> str:
    """Return the annotated type in words."""
    found = [_described_one(member, words) for member in _members(hint) if member is not type(None)]
    return " or ".join(dict.fromkeys(found))


def _described_one(hint: Any, words: Mapping[Any, str]) -> str:
    kind: Any = typing.get_origin(hint) or hint
    arguments = typing.get_args(hint)
    if kind is Literal:
        return " or ".join(map(repr, arguments))
    if kind is Annotated:
        return str(arguments[2])
    if kind in _LISTS:
        return f"a list of {_PLURALS.get(arguments[0], 'values')}"
    if kind in _DICTS:
        of_item = _PLURALS.get(arguments[1], "values")
        return f"{words[dict]} of {of_item}"
    return words.get(kind) or str(getattr(kind, "__name__", kind))


def choices(hint: Any) -> list[str]:
    """Return the literals that the annotated type allows."""
    literals = [member for member in _members(hint) if typing.get_origin(member) is Literal]
    return [choice for member in literals for choice in typing.get_args(member)]
