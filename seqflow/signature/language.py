"""The signature language: `data[sum(lengths), *d], lengths[B] -> sum_of(data) sums[B, *d]` as plain data.

A signature is read once, when an op is registered, into the dataclasses below. Sizes are small syntax trees,
evaluated against a dictionary of what is known: `{"B": 3, Sum("lengths"): 7}`.

A prime marks an output that is called like an input: `lengths'` are new lengths. It is part of the name wherever the
signature speaks of the output; in results and nets the prime is dropped.

A word before a name says the dtype: `float x[N, K], like(x) weight[M, K]` are floats of one dtype, and
`{like(values) values[_, *d]}+` a list of tensors that all have the dtype of the first.

What an output holds may be said as well, in the language of nets, over inputs, attributes and sizes:
`int64 lengths'[B] := minimum(lengths, k)` defines it, `int64 lengths'[B] <= lengths` bounds it element by element.
Bounds of sizes and sums stand at the end: `-> unique[U], int64 counts[U], U <= N, sum(counts) <= N`. Inference, the
checks of results and the documentation read what is said there.

Integers may point at something: `index(R)` at the rows that R names, `index(sum(lengths))` at those that the lengths
describe, `position(lengths)` at places inside the sequences of these lengths, with -1 for none where an op says so.
`offset(R)` are indices that may also stand behind the last row, as those do that say where sequences start and end.
Outputs of these words are int64.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from seqflow.errors import ShapeError

DTYPE_WORDS = {
    "any": "biufcmMSUV",
    "number": "biuf",
    "ordered": "biufmM",
    "int": "iu",
    "float": "f",
    "bool": "b",
    "str": "U",
}
"""Words that stand for several dtypes, and the NumPy kinds they allow (kind `b` is bool)."""

CONCRETE_DTYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
)  # fmt: skip
OUTPUT_DTYPE_RULES = ("sum_of", "mean_of")
LIKE = "like"
"""The word for an input that has the dtype of another: `like(x)`. In a list `like(x)` is like the first of them."""
POINTING = ("index", "offset", "position")
"""The words for integers that point at something."""
GIVEN_DTYPE = "dtype"
"""The word for an output that has the dtype of the attribute `dtype`."""


@dataclass(frozen=True, slots=True)
class FixedSize:
    """A fixed size."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Name:
    """A dimension variable, or an attribute that gives a size."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a lengths tensor."""

    of: str

    def __str__(self) -> str:
        return f"sum({self.of})"


@dataclass(frozen=True, slots=True)
class Max:
    """The largest of a lengths tensor; 0 when it is empty."""

    of: str

    def __str__(self) -> str:
        return f"max({self.of})"


@dataclass(frozen=True, slots=True)
class Count:
    """`len(mask)`: how many elements an attribute has; a number is one, None is none."""

    of: str

    def __str__(self) -> str:
        return f"len({self.of})"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A sum, difference, product or whole quotient of two sizes."""

    operator: str
    left: "Value"
    right: "Value"

    def __str__(self) -> str:
        is_sum = self.operator in "+-"
        left = f"({self.left})" if not is_sum and _is_open(self.left, "+-") else f"{self.left}"
        right = f"({self.right})" if _is_open(self.right, "+-" if is_sum else "+-*//") else f"{self.right}"
        return f"{left}{self.operator}{right}"


@dataclass(frozen=True, slots=True)
class Given:
    """`attribute|size`: the attribute where it was given, else the size."""

    attribute: str
    otherwise: "Value"

    def __str__(self) -> str:
        return f"{self.attribute}|{self.otherwise}"


@dataclass(frozen=True, slots=True)
class OpCall:
    """`minimum(lengths, k)`: what an op gives, its first output where it has several."""

    op: str
    arguments: "tuple[Value, ...]"
    keywords: "tuple[tuple[str, Value], ...]" = ()

    def __str__(self) -> str:
        named = [f"{name}={value}" for name, value in self.keywords]
        return f"{self.op}({', '.join([*map(str, self.arguments), *named])})"


@dataclass(frozen=True, slots=True)
class Each:
    """`*lengths`: the elements of an input that is a list, as in `add(*lengths)`, which takes them two by two."""

    name: str

    def __str__(self) -> str:
        return f"*{self.name}"


Size = FixedSize | Name | Sum | Max | Count | Arithmetic | Given
Value = Size | OpCall | Each
"""What a tensor holds: a size, an attribute, an input, or what the net language makes of these."""


def _is_open(value: Value, operators: str) -> bool:
    """Whether a value has to stand in brackets, beside an operator that binds more tightly."""
    return isinstance(value, Given) or (isinstance(value, Arithmetic) and value.operator in operators)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """`T>=size`: a dimension variable with a lower bound."""

    name: str
    bound: Size

    def __str__(self) -> str:
        return f"{self.name}>={self.bound}"


@dataclass(frozen=True, slots=True)
class Fresh:
    """`P=size`: `size` rows, which are not the rows of any input."""

    name: str
    size: Size

    def __str__(self) -> str:
        return f"{self.name}={self.size}"


@dataclass(frozen=True, slots=True)
class Rest:
    """`*d`: any number of dimensions; `*_`: any number, of any sizes, each time it stands."""

    name: str

    def __str__(self) -> str:
        return f"*{self.name}"


@dataclass(frozen=True, slots=True)
class Anything:
    """`_`: one dimension of any size."""

    def __str__(self) -> str:
        return "_"


Dim = Size | AtLeast | Fresh | Rest | Anything


class Axis(NamedTuple):
    """One dimension of an argument, and where its size stands in a shape."""

    dim: Dim
    key: int | slice
    """For `shape[key]`: behind `*d` it counts from the end; of `*d` itself it is a slice."""
    first: int
    """The axis, or the first of them; behind `*d` from the end."""
    lengths: str | None
    """The tensor whose rows, or steps, the axis holds: of `sum(…)` and `max(…)`."""


@dataclass(frozen=True, slots=True)
class DtypeRule:
    """A dtype word and, for `like(x)`, `sum_of(x)` and `mean_of(x)`, the names in its brackets."""

    word: str
    of: tuple[str, ...] = ()
    points: Name | Sum | None = None
    """What integers point at: `index(R)`, `index(sum(n))` and `offset(R)` at rows, `position(n)` at lengths."""

    def __str__(self) -> str:
        inside = ", ".join(self.of) if self.points is None else str(self.points)
        return f"{self.word}({inside})" if inside else self.word


@dataclass(frozen=True)
class Argument:
    """One tensor of a signature."""

    name: str
    dtype: DtypeRule
    dims: tuple[Dim, ...]
    is_lengths: bool = False
    optional: bool = False
    definition: Value | None = None
    """What an output is, `:= value`."""
    most: Value | None = None
    """What the elements of an output are not above, `<= value`."""

    @cached_property
    def rank(self) -> int:
        """The number of dimensions without `*d`."""
        return len(self.dims) - (self.rest is not None)

    @cached_property
    def rest(self) -> int | None:
        """The position of `*d` among the dimensions; None without one."""
        return next((i for i, dim in enumerate(self.dims) if isinstance(dim, Rest)), None)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The dimensions that have to be of some size: all but `_` and `*_`."""
        return tuple(_axes(self.dims, self.rest))

    @cached_property
    def kinds(self) -> str | None:
        """The NumPy dtype kinds an input takes, or None where it takes one dtype only."""
        words = {**dict.fromkeys(POINTING, "int"), LIKE: "any"}  # the input that it is like says which kinds
        return DTYPE_WORDS.get(words.get(self.dtype.word, self.dtype.word))

    @cached_property
    def row_name(self) -> str | None:
        """The dimension variable of axis 0, which names a row space; None for all other dimensions."""
        first = self.dims[0] if self.dims else None
        return first.name if isinstance(first, (Name, AtLeast)) else None

    @cached_property
    def may_be_lengths(self) -> bool:
        """Whether it is a vector, of integers as far as its dtype word says."""
        words = ("any", "int", *POINTING, "number", "ordered", "sum_of", "dtype")
        return (self.dtype.word in words or "int" in self.dtype.word) and len(self.dims) == 1

    @property
    def moves(self) -> bool:
        """Whether an input of this dtype word is one that is moved as it is, not computed with."""
        return self.dtype.word in ("any", "int", "ordered", LIKE)

    @property
    def field(self) -> str:
        """The name in results and in nets: without the prime of `lengths'`."""
        return self.name.removesuffix("'")

    def __str__(self) -> str:
        is_plain = self.dtype.word == ("int" if self.is_lengths else "any")
        lens = self.is_lengths and is_plain and self.field != "lengths"
        prefix = "lens " if lens else "" if is_plain else f"{self.dtype} "
        return f"{prefix}{self.name}[{', '.join(map(str, self.dims))}]{'?' if self.optional else ''}"


def _axes(dims: tuple[Dim, ...], rest: int | None) -> Iterator[Axis]:
    for i, dim in enumerate(dims):
        if isinstance(dim, Rest):
            stop = i + 1 - len(dims)
            if dim.name != "_":
                yield Axis(dim, slice(i, stop or None), i, None)
        elif not isinstance(dim, Anything):
            place = i if rest is None or i < rest else i - len(dims)
            yield Axis(dim, place, place, _lengths_of(dim))


def _lengths_of(dim: Dim) -> str | None:
    match dim:
        case Sum(of=of) | Max(of=of) | Given(otherwise=Max(of=of)) | AtLeast(bound=Max(of=of)):
            return of
    return None


@dataclass(frozen=True, slots=True)
class Repeated:
    """`{…}+` of inputs (one list an argument), or `{…}*count` of outputs (lists of `count`).

    The names of its tensors belong to one repetition each; dimension variables are those of the whole signature.
    """

    arguments: tuple[Argument, ...]
    count: str | None = None
    """The attribute that gives the number of repetitions: as an int, or as a list of that length."""

    def length(self, attributes: Mapping[str, Any]) -> int:
        """How many repetitions of outputs there are."""
        value = attributes[str(self.count)]
        return value if isinstance(value, int) else len(value)

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.arguments))
        return f"{{{inside}}}{'+' if self.count is None else '*' + self.count}"


@dataclass(frozen=True, slots=True)
class Limit:
    """`U <= N`: what a size of the outputs, or the sum or largest of their values, is not above."""

    size: Name | Sum | Max
    most: Value

    def __str__(self) -> str:
        return f"{self.size} <= {self.most}"


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of an op."""

    text: str
    inputs_text: str
    """The part of the text before the arrow."""
    inputs: tuple[Argument | Repeated, ...]
    outputs: tuple[Argument | Repeated, ...]
    limits: tuple[Limit, ...] = ()
    """Bounds of the outputs' sizes and sums."""

    @cached_property
    def input_arguments(self) -> tuple[Argument, ...]:
        return tuple(flatten(self.inputs))

    @cached_property
    def output_arguments(self) -> tuple[Argument, ...]:
        return tuple(flatten(self.outputs))

    @cached_property
    def arguments(self) -> Mapping[str, Argument]:
        """The inputs by name."""
        return {argument.name: argument for argument in self.input_arguments}

    @cached_property
    def listed(self) -> frozenset[str]:
        """The inputs that are lists."""
        lists = (item for item in self.inputs if isinstance(item, Repeated))
        return frozenset(argument.name for item in lists for argument in item.arguments)

    @cached_property
    def gives_lists(self) -> bool:
        return any(isinstance(item, Repeated) for item in self.outputs)

    @cached_property
    def bound(self) -> frozenset[str]:
        """The dimension variables that inputs have."""
        inside = (part for argument in self.input_arguments for dim in argument.dims for part in parts(dim))
        return frozenset(part.name for part in inside if isinstance(part, (Name, AtLeast)))

    @cached_property
    def solved(self) -> frozenset[str]:
        """Those that they have only inside of sizes, as in `B+1`."""
        dims = (dim for argument in self.input_arguments for dim in argument.dims)
        return self.bound - {dim.name for dim in dims if isinstance(dim, (Name, AtLeast))}

    @cached_property
    def alike(self) -> tuple[tuple[str, str], ...]:
        """The inputs that are `like(…)` another, and that other."""
        return tuple((one.name, one.dtype.of[0]) for one in self.input_arguments if one.dtype.word == LIKE)

    @cached_property
    def pointing(self) -> tuple[Argument, ...]:
        """The inputs of integers that point at something."""
        return tuple(one for one in self.input_arguments if one.dtype.points is not None)

    @cached_property
    def definitions(self) -> Mapping[str, Value]:
        """What outputs are, by the names of results."""
        return {one.field: one.definition for one in self.output_arguments if one.definition is not None}

    @cached_property
    def is_bounded(self) -> bool:
        """Whether it says how large a size or a value of the outputs can be."""
        bounded = any(one.most is not None or one.dtype.points is not None for one in self.output_arguments)
        return bool(self.limits or self.definitions or bounded)

    @cached_property
    def moved(self) -> tuple[str, ...]:
        """The inputs whose values an output without a dtype word has: the first, and those like it."""
        if not self.input_arguments or not self.input_arguments[0].moves:
            return ()
        first = self.input_arguments[0].name
        return (first, *(name for name, of in self.alike if of == first != name))

    def size_names(self) -> set[str]:
        """The names that stand for sizes, alone or inside of others."""
        dims = (dim for one in (*self.input_arguments, *self.output_arguments) for dim in one.dims)
        inside = (part for dim in dims for part in parts(dim))
        return {part.name for part in inside if isinstance(part, (Name, AtLeast, Fresh))}

    def grouped(self, flat: Iterable[Any]) -> list[Any]:
        """One value for each argument as one for each input: those of a repetition together, in a list."""
        remaining = iter(flat)
        return [
            [next(remaining) for _ in item.arguments] if isinstance(item, Repeated) else next(remaining)
            for item in self.inputs
        ]

    def values(self) -> Iterator[tuple[str, Value]]:
        """All definitions and bounds, and what they are of."""
        for argument in self.output_arguments:
            if argument.definition is not None:
                yield argument.name, argument.definition
            if argument.most is not None:
                yield argument.name, argument.most
        for limit in self.limits:
            yield str(limit.size), limit.most

    def tensor_names(self, attributes: Mapping[str, Any]) -> list[str]:
        """The names of all output tensors, which no input has: those of lists are numbered, `parts.0`, `parts.1`."""
        return self._numbered([argument.name for argument in self.output_arguments], attributes)

    def result_names(self, attributes: Mapping[str, Any]) -> list[str]:
        """The same by the names that results and nets use, without primes."""
        return self._numbered([argument.field for argument in self.output_arguments], attributes)

    def _numbered(self, names: list[str], attributes: Mapping[str, Any]) -> list[str]:
        if not self.gives_lists:
            return names
        remaining = iter(names)
        found: list[str] = []
        for item in self.outputs:
            if isinstance(item, Repeated):
                count = range(item.length(attributes))
                found += [f"{name}.{i}" for name in islice(remaining, len(item.arguments)) for i in count]
            else:
                found.append(next(remaining))
        return found

    def in_lines(self, width: int = 100) -> str:
        """The text; where it is longer than a line, inputs first, then the outputs below them."""
        if len(self.text) <= width:
            return self.text
        lines = [self.inputs_text, " "]
        for part in _split("->" + self.text.removeprefix(self.inputs_text).partition("->")[2]):
            if len(lines[-1]) + len(part) > width:
                lines.append("    ")
            lines[-1] += f" {part}"
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text


def _split(text: str) -> list[str]:
    """The items of a list in a text; commas in brackets divide none."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        found[-1] += character
        if character == "," and not depth:
            found.append("")
    return [item.strip() for item in found]


def flatten(arguments: tuple[Argument | Repeated, ...]) -> Iterator[Argument]:
    """The arguments in order, those inside a repetition included."""
    for argument in arguments:
        if isinstance(argument, Repeated):
            yield from argument.arguments
        else:
            yield argument


def parts(dim: Dim | Value) -> Iterator[Dim | Value]:
    """A dimension, or a value, and all that is inside it, leaves last."""
    yield dim
    match dim:
        case Arithmetic(left=left, right=right):
            yield from parts(left)
            yield from parts(right)
        case Given(otherwise=size) | Fresh(size=size) | AtLeast(bound=size):
            yield from parts(size)
        case OpCall(arguments=arguments, keywords=keywords):
            for value in (*arguments, *(value for _, value in keywords)):
                yield from parts(value)


def evaluate(size: Value, known: Mapping[Any, Any]) -> int | None:
    """The value of a size, or None where something it needs is not in `known`.

    `known` maps names of variables and attributes, and `Sum`/`Max` nodes, to integers; attributes that are lists, to
    these.
    """
    match size:
        case FixedSize(value=value):
            return value
        case Name(name=name):
            return known.get(name)
        case Sum() | Max():
            return known.get(size)
        case Given(attribute=attribute, otherwise=otherwise):
            given = known.get(attribute)
            return evaluate(otherwise, known) if given is None else given
        case Arithmetic(operator=symbol, left=left, right=right):
            a, b = evaluate(left, known), evaluate(right, known)
            if a is None or b is None:
                return None
            if symbol == "//" and b == 0:
                raise ShapeError(f"{size} divides by 0: {right} is 0, expected 1 or more")
            found: int = OPERATORS[symbol](a, b)
            return found
        case Count(of=of):
            return count_of(known[of]) if of in known else known.get(size)
    return None


class Linear(NamedTuple):
    """A size with one unknown name: `at_0 + slope * name`."""

    name: str
    at_0: int
    slope: int

    def solve(self, size: Any) -> Any:
        """What the name is where this is the size, a number or a Dimension; ShapeError where no size gives it."""
        grown = (
            size + -self.at_0 if self.at_0 < 0 else size - self.at_0 if self.slope > 0 else self.at_0 - size
        )
        if not isinstance(grown, int):
            return grown.divide_exactly(abs(self.slope))
        if grown % self.slope or grown < 0:
            raise ShapeError(f"no {self.name} gives {size}")
        return grown // abs(self.slope)


def as_linear(size: Dim | Value, known: Mapping[Any, Any]) -> Linear | None:
    """The size as one that grows evenly with its one unknown name; None where it does not, as `H//R` or `B*B`."""
    inside = list(parts(size))
    unknown = {part.name for part in inside if isinstance(part, Name)}.difference(known)
    if len(unknown) != 1 or any(isinstance(part, Arithmetic) and part.operator == "//" for part in inside):
        return None
    (name,) = unknown
    at_0, at_1, at_2 = (evaluate(size, {**known, name: n}) for n in (0, 1, 2))  # type: ignore[arg-type]
    if at_0 is None or at_1 is None or at_2 is None or at_2 - at_1 != at_1 - at_0 or at_1 == at_0:
        return None
    return Linear(name, at_0, at_1 - at_0)


def sizes_given(attributes: Mapping[str, Any]) -> dict[Any, int]:
    """The sizes that attributes give: numbers by their names, and how many elements each has as `len(name)`."""
    counts: dict[Any, int] = {Count(name): count_of(value) for name, value in attributes.items()}
    return counts | {name: int(value) for name, value in attributes.items() if isinstance(value, int)}


def count_of(attribute: Any) -> int:
    """How many elements an attribute has."""
    return len(attribute) if isinstance(attribute, (list, tuple)) else int(attribute is not None)


OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
}
"""The arithmetic of sizes and values."""
FUNCTIONS: Mapping[str, str] = {"+": "add", "-": "sub", "*": "mul", "//": "floor_divide"}
"""The ops that they are of tensors."""
