"""The signature language: `data[sum(lengths), *d], lengths[B] -> sum_of(data) sums[B, *d]` as plain data.

A signature is read once, when an op is registered, into the dataclasses below. Sizes are small syntax trees,
evaluated with a dictionary of known sizes: `{"B": 3, Sum("lengths"): 7}`.

A prime marks an output with the name of an input: `lengths'` are new lengths. In the signature the prime is part of
the output's name; results and nets omit it.

A word before a name gives the dtype: `float x[N, K], like(x) weight[M, K]` are floats of one dtype, and
`{like(values) values[_, *d]}+` is a list of tensors that all have the dtype of the first.

A signature may also define or bound the values of an output, with inputs, attributes and sizes, in the language of
nets: `int64 lengths'[B] := minimum(lengths, k)` defines it, `int64 lengths'[B] <= lengths` bounds each element.
Bounds of sizes and sums are at the end: `-> unique[U], int64 counts[U], U <= N, sum(counts) <= N`. Inference, the
checks of results and the documentation use these definitions and bounds.

Integers may point at something: `index(R)` at the rows named R, `index(sum(lengths))` at the rows that the lengths
describe, `position(lengths)` at positions inside the sequences of these lengths; in some ops -1 means none.
`offset(R)` are indices that may also equal the number of rows, such as the offsets where sequences start and end.
Outputs of these words are int64.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from seqflow.errors import ShapeError
from seqflow.frozen import frozen

DTYPE_WORDS = {
    "any": "biufcmMSUV",
    "number": "biuf",
    "ordered": "biufmM",
    "int": "iu",
    "float": "f",
    "bool": "b",
    "str": "U",
}
"""Words for several dtypes, and the NumPy kinds they allow (kind `b` is bool)."""

CONCRETE_DTYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
)  # fmt: skip
OUTPUT_DTYPE_RULES = ("sum_of", "mean_of")
LIKE = "like"
"""Word for an input with the dtype of another: `like(x)`; for a list x, the dtype of its first tensor."""
POINTING = ("index", "offset", "position")
"""Words for integers that point at something."""
GIVEN_DTYPE = "dtype"
"""Word for an output with the dtype given by the attribute `dtype`."""


@frozen
class FixedSize:
    """A fixed size."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@frozen
class Name:
    """A dimension variable, or an attribute that gives a size."""

    name: str

    def __str__(self) -> str:
        return self.name


@frozen
class Sum:
    """The sum of a lengths tensor."""

    of: str

    def __str__(self) -> str:
        return f"sum({self.of})"


@frozen
class Max:
    """The largest element of a lengths tensor; 0 if it is empty."""

    of: str

    def __str__(self) -> str:
        return f"max({self.of})"


@frozen
class Count:
    """`len(mask)`: number of elements of an attribute; 1 for a number, 0 for None."""

    of: str

    def __str__(self) -> str:
        return f"len({self.of})"


@frozen
class Arithmetic:
    """A sum, difference, product or quotient rounded down, of two sizes."""

    operator: str
    left: "Value"
    right: "Value"

    def __str__(self) -> str:
        is_sum = self.operator in "+-"
        left = f"({self.left})" if not is_sum and _is_open(self.left, "+-") else f"{self.left}"
        right = f"({self.right})" if _is_open(self.right, "+-" if is_sum else "+-*//") else f"{self.right}"
        return f"{left}{self.operator}{right}"


@frozen
class Given:
    """`attribute|size`: the attribute if it is given, else the size."""

    attribute: str
    otherwise: "Value"

    def __str__(self) -> str:
        return f"{self.attribute}|{self.otherwise}"


@frozen
class OpCall:
    """`minimum(lengths, k)`: the first output of an op."""

    op: str
    arguments: "tuple[Value, ...]"
    keywords: "tuple[tuple[str, Value], ...]" = ()

    def __str__(self) -> str:
        named = [f"{name}={value}" for name, value in self.keywords]
        return f"{self.op}({', '.join([*map(str, self.arguments), *named])})"


@frozen
class Each:
    """`*lengths`: the tensors of a list input; `add(*lengths)` adds them from left to right, two at a time."""

    name: str

    def __str__(self) -> str:
        return f"*{self.name}"


Size = FixedSize | Name | Sum | Max | Count | Arithmetic | Given
Value = Size | OpCall | Each
"""Values of a tensor: a size, an attribute, an input, or a call of an op on these."""


def _is_open(value: Value, operators: str) -> bool:
    """Return whether a value needs brackets next to an operator that binds more strongly."""
    return isinstance(value, Given) or (isinstance(value, Arithmetic) and value.operator in operators)


@frozen
class AtLeast:
    """`T>=size`: a dimension variable with a lower bound."""

    name: str
    bound: Size

    def __str__(self) -> str:
        return f"{self.name}>={self.bound}"


@frozen
class Fresh:
    """`P=size`: `size` new rows, which are not rows of any input."""

    name: str
    size: Size

    def __str__(self) -> str:
        return f"{self.name}={self.size}"


@frozen
class Rest:
    """`*d`: any number of dimensions, the same everywhere; `*_`: any dimensions, which may differ at each place."""

    name: str

    def __str__(self) -> str:
        return f"*{self.name}"


@frozen
class Anything:
    """`_`: one dimension of any size."""

    def __str__(self) -> str:
        return "_"


Dim = Size | AtLeast | Fresh | Rest | Anything


class Axis(NamedTuple):
    """One dimension of an argument, and the place of its size in a shape."""

    dim: Dim
    key: int | slice
    """Index for `shape[key]`: counted from the end after `*d`, a slice for `*d` itself."""
    first: int
    """Number of the axis, or of the first axis of `*d`; counted from the end after `*d`."""
    lengths: str | None
    """Lengths tensor in `sum(…)` or `max(…)`, whose rows or steps the axis holds."""


@frozen
class DtypeRule:
    """A dtype word and the names in its brackets, as in `like(x)`, `sum_of(x)` and `mean_of(x)`."""

    word: str
    of: tuple[str, ...] = ()
    points: Name | Sum | None = None
    """Target of integers: rows for `index(R)`, `index(sum(n))` and `offset(R)`, lengths for `position(n)`."""

    def __str__(self) -> str:
        inside = ", ".join(self.of) if self.points is None else str(self.points)
        return f"{self.word}({inside})" if inside else self.word


@frozen
class Argument:
    """One tensor of a signature."""

    name: str
    dtype: DtypeRule
    dims: tuple[Dim, ...]
    is_lengths: bool = False
    optional: bool = False
    default: str | None = None
    """Input that stands for this optional one if it is left out, as in `kv_lengths[B]?=lengths`."""
    definition: Value | None = None
    """Definition of an output, `:= value`."""
    most: Value | None = None
    """Upper bound of each element of an output, `<= value`."""

    @cached_property
    def rank(self) -> int:
        """Number of dimensions without `*d`."""
        return len(self.dims) - (self.rest is not None)

    @cached_property
    def rest(self) -> int | None:
        """Position of `*d` among the dimensions; None without `*d`."""
        return next((i for i, dim in enumerate(self.dims) if isinstance(dim, Rest)), None)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Dimensions with a required size: all except `_` and `*_`."""
        return tuple(_axes(self.dims, self.rest))

    @cached_property
    def kinds(self) -> str | None:
        """NumPy dtype kinds that an input takes; None if it takes one dtype only."""
        words = {**dict.fromkeys(POINTING, "int"), LIKE: "any"}  # the input that it is like has the kinds
        return DTYPE_WORDS.get(words.get(self.dtype.word, self.dtype.word))

    @cached_property
    def row_name(self) -> str | None:
        """Dimension variable of axis 0, which names a row space; None if axis 0 is not a variable."""
        first = self.dims[0] if self.dims else None
        return first.name if isinstance(first, (Name, AtLeast)) else None

    @cached_property
    def may_be_lengths(self) -> bool:
        """Whether it is a vector that may hold integers by its dtype word."""
        words = ("any", "int", *POINTING, "number", "ordered", "sum_of", "dtype")
        return (self.dtype.word in words or "int" in self.dtype.word) and len(self.dims) == 1

    @property
    def moves(self) -> bool:
        """Whether inputs of this dtype word are usually moved unchanged, not computed with."""
        return self.dtype.word in ("any", "int", "ordered", LIKE)

    @property
    def field(self) -> str:
        """Name in results and in nets: without the prime of `lengths'`."""
        return self.name.removesuffix("'")

    def __str__(self) -> str:
        is_plain = self.dtype.word == ("int" if self.is_lengths else "any")
        lens = self.is_lengths and is_plain and self.field != "lengths"
        prefix = "lens " if lens else "" if is_plain else f"{self.dtype} "
        absent = f"?={self.default}" if self.default else "?" if self.optional else ""
        return f"{prefix}{self.name}[{', '.join(map(str, self.dims))}]{absent}"


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


@frozen
class Repeated:
    """`{…}+` of inputs (one list for each argument), or `{…}*count` of outputs (lists of `count` tensors).

    A tensor name in it means the tensor of the same repetition; dimension variables belong to the whole signature.
    """

    arguments: tuple[Argument, ...]
    count: str | None = None
    """Attribute that gives the number of repetitions: an int, or a list of that length."""

    def length(self, attributes: Mapping[str, Any]) -> int:
        """Return the number of repetitions of outputs."""
        value = attributes[str(self.count)]
        return value if isinstance(value, int) else len(value)

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.arguments))
        return f"{{{inside}}}{'+' if self.count is None else '*' + self.count}"


@frozen
class Limit:
    """`U <= N`: upper bound of a size of the outputs, or of the sum or the largest of their values."""

    size: Name | Sum | Max
    most: Value

    def __str__(self) -> str:
        return f"{self.size} <= {self.most}"


@frozen
class Signature:
    """The inputs and outputs of an op."""

    text: str
    inputs_text: str
    """Part of the text before the arrow."""
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
        """Inputs by name."""
        return {argument.name: argument for argument in self.input_arguments}

    @cached_property
    def defaults(self) -> Mapping[str, str]:
        """Inputs that may be left out because another input stands for them, and the other."""
        return {one.name: one.default for one in self.input_arguments if one.default is not None}

    def completed(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values of inputs by name, with those of other inputs for `defaults` that are left out."""
        absent = {name: given[of] for name, of in self.defaults.items() if name not in given and of in given}
        return {**given, **absent} if absent else given

    @cached_property
    def listed(self) -> frozenset[str]:
        """Names of the inputs that are lists."""
        lists = (item for item in self.inputs if isinstance(item, Repeated))
        return frozenset(argument.name for item in lists for argument in item.arguments)

    @cached_property
    def gives_lists(self) -> bool:
        return any(isinstance(item, Repeated) for item in self.outputs)

    @cached_property
    def wide(self) -> frozenset[int]:
        """Numbers of outputs that stay float32 for bfloat16: sums next to a result in the dtype of the inputs."""
        words = [one.dtype.word for one in self.output_arguments]
        return frozenset(i for i, word in enumerate(words) if word == "sum_of" and words[0] == "any")

    @cached_property
    def bound(self) -> frozenset[str]:
        """Dimension variables in inputs."""
        inside = (part for argument in self.input_arguments for dim in argument.dims for part in parts(dim))
        return frozenset(part.name for part in inside if isinstance(part, (Name, AtLeast)))

    @cached_property
    def alike(self) -> tuple[tuple[str, str], ...]:
        """Pairs of an input that is `like(…)` another, and the other."""
        return tuple((one.name, one.dtype.of[0]) for one in self.input_arguments if one.dtype.word == LIKE)

    @cached_property
    def pointing(self) -> tuple[Argument, ...]:
        """Inputs of integers that point at something."""
        return tuple(one for one in self.input_arguments if one.dtype.points is not None)

    @cached_property
    def definitions(self) -> Mapping[str, Value]:
        """Definitions of outputs, by the names of results."""
        return {one.field: one.definition for one in self.output_arguments if one.definition is not None}

    @cached_property
    def is_bounded(self) -> bool:
        """Whether it bounds a size or a value of the outputs."""
        bounded = any(one.most is not None or one.dtype.points is not None for one in self.output_arguments)
        return bool(self.limits or self.definitions or bounded)

    @cached_property
    def moved(self) -> tuple[str, ...]:
        """Inputs whose values an output without a dtype word has: the first, and the inputs like it."""
        if not self.input_arguments or not self.input_arguments[0].moves:
            return ()
        first = self.input_arguments[0].name
        return (first, *(name for name, of in self.alike if of == first != name))

    def size_names(self) -> set[str]:
        """Return the names of sizes, alone or inside other sizes."""
        dims = (dim for one in (*self.input_arguments, *self.output_arguments) for dim in one.dims)
        inside = (part for dim in dims for part in parts(dim))
        return {part.name for part in inside if isinstance(part, (Name, AtLeast, Fresh))}

    def grouped(self, flat: Iterable[Any]) -> list[Any]:
        """Group values of arguments by input: the values of a repetition become one list."""
        remaining = iter(flat)
        return [
            [next(remaining) for _ in item.arguments] if isinstance(item, Repeated) else next(remaining)
            for item in self.inputs
        ]

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield the subject and the value of each definition and bound."""
        for argument in self.output_arguments:
            if argument.definition is not None:
                yield argument.name, argument.definition
            if argument.most is not None:
                yield argument.name, argument.most
        for limit in self.limits:
            yield str(limit.size), limit.most

    def tensor_names(self, attributes: Mapping[str, Any]) -> list[str]:
        """Return the unique names of all output tensors; tensors of lists are numbered, `parts.0`, `parts.1`."""
        return self._numbered([argument.name for argument in self.output_arguments], attributes)

    def result_names(self, attributes: Mapping[str, Any]) -> list[str]:
        """Return the names of all output tensors in results and nets, without primes."""
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
        """Return the text; if it is longer than `width`, in several lines: inputs first, then outputs."""
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
    """Return the items of a list in a text, divided at commas outside brackets."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        found[-1] += character
        if character == "," and not depth:
            found.append("")
    return [item.strip() for item in found]


def flatten(arguments: tuple[Argument | Repeated, ...]) -> Iterator[Argument]:
    """Yield the arguments in order, including those inside a repetition."""
    for argument in arguments:
        if isinstance(argument, Repeated):
            yield from argument.arguments
        else:
            yield argument


def parts(dim: Dim | Value) -> Iterator[Dim | Value]:
    """Yield a dimension or value, then all parts of it, from the outside in."""
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
    """Return the value of a size, or None if something it needs is not in `known`.

    `known` maps names of variables and attributes, and `Sum`/`Max` nodes, to integers, and list attributes to their
    lists.
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
        """Return the name's value for this size, a number or a Dimension; raise ShapeError when no value gives it."""
        if not self.slope:
            found = size if isinstance(size, int) else size.get_length() if size.is_static else self.at_0
            if found != self.at_0:
                raise ShapeError(f"no {self.name} gives {size}")
            return type(size)(0)
        grown = (
            size + -self.at_0 if self.at_0 < 0 else size - self.at_0 if self.slope > 0 else self.at_0 - size
        )
        if not isinstance(grown, int):
            return grown.divide_exactly(abs(self.slope))
        if grown % self.slope or grown < 0:
            raise ShapeError(f"no {self.name} gives {size}")
        return grown // abs(self.slope)


def as_linear(size: Dim | Value, known: Mapping[Any, Any]) -> Linear | None:
    """Return the size as a linear function of its one unknown name; None if it is not linear, as `H//R`, `B*B`."""
    inside = list(parts(size))
    unknown = {part.name for part in inside if isinstance(part, Name)}.difference(known)
    if len(unknown) != 1 or any(isinstance(part, Arithmetic) and part.operator == "//" for part in inside):
        return None
    (name,) = unknown
    # sampling the size at three points is simpler than rearranging its tree
    at_0, at_1, at_2 = (evaluate(size, {**known, name: n}) for n in (0, 1, 2))  # type: ignore[arg-type]
    if at_0 is None or at_1 is None or at_2 is None or at_2 - at_1 != at_1 - at_0:
        return None
    return Linear(name, at_0, at_1 - at_0)


def sizes_given(attributes: Mapping[str, Any]) -> dict[Any, int]:
    """Return the sizes that attributes give: numbers by name, and the number of elements of each as `len(name)`."""
    counts: dict[Any, int] = {Count(name): count_of(value) for name, value in attributes.items()}
    return counts | {name: int(value) for name, value in attributes.items() if isinstance(value, int)}


def count_of(attribute: Any) -> int:
    """Return the number of elements of an attribute: 1 if it is not a list or tuple, 0 for None."""
    return len(attribute) if isinstance(attribute, (list, tuple)) else int(attribute is not None)


OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
}
"""Arithmetic of sizes and values."""
FUNCTIONS: Mapping[str, str] = {"+": "add", "-": "sub", "*": "mul", "//": "floor_divide"}
"""Ops that compute these operators on tensors."""
