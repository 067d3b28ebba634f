"""Attributes: the keyword-only parameters of an op, read from its Python signature.

The annotation of an attribute gives the values it takes; checks, docs and tests all use this one declaration:

    max_length: NonNegative            an int, 0 or more
    keep: Literal["head", "tail"]      one of these
    empty: Scalar = 0                  any number
    fill: Fill = 0                     any number or text
    num_rows: NonNegative | None       may be None
    axes: Ints | None                  an int or a list of ints, as a tuple
    repeats: Sizes                     an int or a list of ints, each 0 or more, as a tuple
    parts: CountOrSizes                the number of parts, or a list of the size of each
    dtype: Dtype                       a dtype or its name
    roles: Texts                       a text or a list of texts, as a tuple
    tokenizer: File                    a path (in the nets of a job relative to the job), or an object for the file
"""

import inspect
import operator
import types
import typing
from collections.abc import Callable, Collection
from typing import Annotated, Any, Literal

import numpy as np

from seqflow.arguments import shown
from seqflow.errors import OpError, OpTypeError, nearest
from seqflow.frozen import frozen
from seqflow.signature.language import CONCRETE_DTYPES

Positive = Annotated[int, 1]
"""An int, 1 or more."""
NonNegative = Annotated[int, 0]
"""An int, 0 or more."""
Ints = tuple[int, ...]
"""One integer or a list of them."""
Sizes = Annotated[tuple[int, ...], 0]
"""One integer or a list of them, each 0 or more."""
CountOrSizes = Annotated[int, 1] | Annotated[tuple[int, ...], 0]
"""A count, an int of 1 or more, or a list of sizes, as a tuple."""
Texts = tuple[str, ...]
"""One text or a list of them."""
Dtype = np.dtype[Any]
"""A dtype of numbers, bools or times."""
File = Annotated[Any, "file"]
"""The path of a file that the op reads, or an object with its content."""
Scalar = bool | int | float | np.generic
"""One number, cast to the dtype of the result; an error if that would change its value."""
Fill = bool | int | float | np.generic | str | bytes
"""One element of rows that are moved unchanged: a Scalar, or for texts a text; they become at least as wide as it."""


@frozen
class Attribute:
    """One keyword-only parameter. `kind` is int, ints, parts, float, bool, str, texts, choice, scalar, fill,
    dtype or object (unchecked).
    """

    name: str
    kind: str
    optional: bool = False
    minimum: int | None = None
    choices: tuple[str, ...] = ()
    default: Any = inspect.Parameter.empty
    names_file: bool = False
    """Whether a text given for it is the path of a file."""

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def expected(self) -> str:
        """Accepted values in words."""
        words = {
            "int": "an integer" if self.minimum is None else f"an integer, {self.minimum} or more",
            "float": "a number",
            "bool": "True or False",
            "str": "text",
            "texts": "text or a list of texts",
            "choice": " or ".join(map(repr, self.choices)),
            "scalar": "a number",
            "fill": "a number or a text",
            "ints": "integers" if self.minimum is None else f"integers, each {self.minimum} or more",
            "parts": "an integer, 1 or more, or a list of sizes",
            "dtype": "a dtype of numbers, bools or times",
            "object": "a value",
        }[self.kind]
        return f"{words}, or None" if self.optional else words

    @property
    def annotation(self) -> str:
        """Python type of the accepted values."""
        takes = {
            "int": "int", "float": "float", "bool": "bool", "str": "str", "scalar": "Scalar", "fill": "Fill",
            "object": "Any",
            "ints": "int | Sequence[int]", "parts": "int | Sequence[int]", "dtype": "DTypeLike",
            "choice": f"Literal[{', '.join(map(repr, self.choices))}]", "texts": "str | Sequence[str]",
        }[self.kind]  # fmt: skip
        return f"{takes} | None" if self.optional and self.kind != "object" else takes

    def condition(self) -> str:
        """Return a Python expression that is true if the value needs no further check; "" if no value needs one."""
        name = self.name
        tests = {
            "int": f"type({name}) is int"
            + ("" if self.minimum is None else f" and {name} >= {self.minimum}"),
            "float": f"type({name}) is float",
            "bool": f"type({name}) is bool",
            "str": f"type({name}) is str",
            "texts": f"type({name}) is tuple and set(map(type, {name})) <= {{str}}",
            "choice": f"{name} in {self.choices!r}",
            "scalar": f"type({name}) is int or type({name}) is float",
            "fill": f"type({name}) is int or type({name}) is float or type({name}) is str",
            "ints": f"type({name}) is tuple and set(map(type, {name})) <= {{int}}"
            + ("" if self.minimum is None else f" and min({name}, default={self.minimum}) >= {self.minimum}"),
            "parts": f"type({name}) is int and {name} >= 1",
            "dtype": f"isinstance({name}, dtype_class) and {name}.kind in 'biufcmM' and {name}.isnative",
            "object": "",
        }[self.kind]
        if not tests:
            return ""
        return f"({name} is None or {tests})" if self.optional else f"({tests})"

    def check(self, value: Any) -> Any:
        """Return the value in the form that the op takes; raise OpError or OpTypeError when it is not accepted."""
        if (self.optional and value is None) or self.kind == "object":
            return value
        if self.kind == "int":
            return self._integer(value)
        if self.kind == "ints":
            return self._integers(value)
        if self.kind == "parts":
            return self._parts(value)
        if self.kind == "dtype":
            return self._dtype(value)
        if self.kind == "texts":
            return self._texts(value)
        if self.kind == "choice":
            if isinstance(value, str) and value in self.choices:
                return value
            guess = nearest(value, self.choices) if isinstance(value, str) else ""
            raise OpError(f"{self.name} is {shown(value)}, expected {self.expected}{guess}")
        accepted: dict[str, tuple[type, ...]] = {
            "float": (float, int, np.floating, np.integer),
            "bool": (bool, np.bool_),
            "str": (str,),
            "scalar": (bool, int, float, np.generic),
            "fill": (bool, int, float, np.generic, str, bytes),
        }
        if not isinstance(value, accepted[self.kind]) or (self.kind == "float" and isinstance(value, bool)):
            raise self._wrong_type(value)
        kinds = "biufcmMSU" if self.kind == "fill" else "biufcmM"
        if isinstance(value, np.generic) and value.dtype.kind not in kinds:
            raise self._wrong_type(value)
        convert: type | None = {"float": float, "bool": bool}.get(self.kind)
        try:
            return convert(value) if convert else value
        except OverflowError:
            raise OpError(
                f"{self.name} is {shown(value)}, expected {self.expected} that a float holds"
            ) from None

    def _integer(self, value: Any, place: str = "", expected: str = "") -> int:
        try:
            number = operator.index(value)
        except TypeError:
            raise self._wrong_type(value, place, expected) from None
        if isinstance(value, (bool, np.bool_)):  # Python counts True as the integer 1
            raise self._wrong_type(value, place, expected)
        if self.minimum is not None and number < self.minimum:
            raise OpError(f"{self.name}{place} is {shown(number)}, expected {expected or self.expected}")
        return number

    def _integers(self, value: Any) -> tuple[int, ...]:
        if isinstance(value, np.ndarray):
            value = value.tolist() if value.ndim else value[()]
        if not isinstance(value, (list, tuple, range)):
            return (self._integer(value),)
        expected = "an integer" if self.minimum is None else f"an integer, {self.minimum} or more"
        return tuple(self._integer(one, f"[{i}]", expected) for i, one in enumerate(value))

    def _parts(self, value: Any) -> int | tuple[int, ...]:
        if isinstance(value, (list, tuple, range)) or (isinstance(value, np.ndarray) and value.ndim):
            sizes = self._integers(value)
            if sizes:
                return sizes
            raise OpError(f"{self.name} is empty, expected {self.expected}")
        count = self._integer(value)
        if count < 1:
            raise OpError(f"{self.name} is {count}, expected {self.expected}")
        return count

    def _texts(self, value: Any) -> tuple[str, ...]:
        texts = (value,) if isinstance(value, str) else value
        if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
            raise self._wrong_type(value)
        return tuple(map(str, texts))

    def _dtype(self, value: Any) -> np.dtype[Any]:
        try:
            dtype = None if value is None else np.dtype(value)
        except (TypeError, ValueError, SyntaxError):  # np.dtype raises SyntaxError for texts such as "i4,("
            dtype = None
        if dtype is None and isinstance(value, str):
            raise OpError(
                f"{self.name} is {value!r}, expected {self.expected}{nearest(value, CONCRETE_DTYPES)}"
            )
        if dtype is None:
            raise self._wrong_type(value)
        if dtype.kind not in "biufcmM":
            raise OpError(f"{self.name} is {dtype}, expected {self.expected}")
        native: np.dtype[Any] = dtype.newbyteorder("=")
        return native

    def _wrong_type(self, value: Any, place: str = "", expected: str = "") -> OpTypeError:
        found = f"{self.name}{place} is {shown(value)} ({type(value).__name__})"
        return OpTypeError(f"{found}, expected {expected or self.expected}")


def read_attributes(function: Callable[..., Any]) -> tuple[Attribute, ...]:
    """Return the attributes of a function, in order, from its keyword-only parameters."""
    named = _named_alone(function)
    try:
        hints = typing.get_type_hints(function, include_extras=True) if named else {}
    except NameError as error:
        raise OpTypeError(f"{function.__name__}: an annotation is not known: {error}") from None
    return tuple(_attribute(one.name, hints.get(one.name, Any), one.default) for one in named)


def _named_alone(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [one for one in inspect.signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY]


def check_annotated(function: Callable[..., Any], sizes: Collection[str]) -> None:
    """Raise OpTypeError when an attribute lacks an annotation but has no default, or is used as a size."""
    named = [one for one in _named_alone(function) if one.annotation is one.empty]
    bare = next((one.name for one in named if one.default is one.empty or one.name in sizes), None)
    if bare is not None:
        raise OpTypeError(
            f"{function.__name__}: the attribute {bare} has no annotation, expected what it takes\n"
            f"  annotate it: {bare}: int, float, bool, str, Literal['a', 'b'], or Any (unchecked)"
        )


def _attribute(name: str, hint: Any, default: Any) -> Attribute:
    if hint in (Scalar, Fill):
        return Attribute(name, "scalar" if hint == Scalar else "fill", default=default)
    # unions are compared as sets of members: `Scalar | None` is one flat union, which no longer shows Scalar
    members = typing.get_args(hint) if isinstance(hint, types.UnionType) or _is_union(hint) else (hint,)
    optional = type(None) in members
    kinds = [member for member in members if member is not type(None)]
    if set(kinds) == set(typing.get_args(Scalar)):
        return Attribute(name, "scalar", optional, default=default)
    if set(kinds) == set(typing.get_args(Fill)):
        return Attribute(name, "fill", optional, default=default)
    if {*kinds} == {*typing.get_args(CountOrSizes)}:
        return Attribute(name, "parts", optional, minimum=0, default=default)
    if len(kinds) != 1:
        return Attribute(name, "object", optional, default=default)
    hint = kinds[0]
    if hint == File:
        return Attribute(name, "object", optional, default=default, names_file=True)
    if typing.get_origin(hint) is Literal:
        return Attribute(name, "choice", optional, choices=typing.get_args(hint), default=default)
    if typing.get_origin(hint) is Annotated:
        base, minimum = typing.get_args(hint)
        return Attribute(name, "int" if base is int else "ints", optional, minimum=minimum, default=default)
    if typing.get_origin(hint) is tuple:
        return Attribute(name, "texts" if hint == Texts else "ints", optional, default=default)
    if typing.get_origin(hint) is np.dtype:
        return Attribute(name, "dtype", optional, default=default)
    kind = {int: "int", float: "float", bool: "bool", str: "str"}.get(hint, "object")
    return Attribute(name, kind, optional, default=default)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) is typing.Union
