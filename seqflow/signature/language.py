"""The signature language: `data[sum(lengths), *d], lengths[B] -> sum_of(data) sums[B, *d]` as plain data.

A signature is read once, when an op is registered, into the dataclasses below. Sizes are small syntax trees,
evaluated against a dictionary of what is known: `{"B": 3, Sum("lengths"): 7}`.

A prime marks an output that is called like an input: `lengths'` are new lengths. It is part of the name wherever the
signature speaks of the output; in results and nets the prime is dropped.

A word before a name says the dtype: `float x[N, K], like(x) weight[M, K]` are floats of one dtype, and
`{like(values) values[_, *d]}+` a list of tensors that all have the dtype of the first.

Integers may point at something: `index(R)` at the rows that R names, `index(sum(lengths))` at those that the lengths
describe, `position(lengths)` at places inside the sequences of these lengths, with -1 for none where an op says so.
Outputs of these words are int64.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, NoReturn

from seqflow.errors import OpError

DTYPE_WORDS = {
    "any": "biufcmMSUV",
    "number": "biuf",
    "ordered": "biufmM",
    "int": "iu",
    "float": "f",
    "bool": "b",
}
"""Words that stand for several dtypes, and the NumPy kinds they allow (kind `b` is bool)."""

CONCRETE_DTYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
)  # fmt: skip
OUTPUT_DTYPE_RULES = ("sum_of", "mean_of")
LIKE = "like"
"""The word for an input that has the dtype of another: `like(x)`. In a list `like(x)` is like the first of them."""
POINTING = ("index", "position")
"""The words for integers that point at something."""
GIVEN_DTYPE = "dtype"
"""The word for an output that has the dtype of the attribute `dtype`."""


@dataclass(frozen=True, slots=True)
class Literal:
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
class Arithmetic:
    """A sum, difference or product of two sizes."""

    operator: str
    left: "Size"
    right: "Size"

    def __str__(self) -> str:
        return f"{self.left}{self.operator}{self.right}"


@dataclass(frozen=True, slots=True)
class Given:
    """`attribute|size`: the attribute where it was given, else the size."""

    attribute: str
    otherwise: "Size"

    def __str__(self) -> str:
        return f"{self.attribute}|{self.otherwise}"


Size = Literal | Name | Sum | Max | Arithmetic | Given


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


@dataclass(frozen=True, slots=True)
class DtypeRule:
    """A dtype word and, for `like(x)`, `sum_of(x)` and `mean_of(x)`, the names in its brackets."""

    word: str
    of: tuple[str, ...] = ()
    points: Name | Sum | None = None
    """What integers point at: with `index(R)` and `index(sum(lengths))` rows, with `position(lengths)` lengths."""

    def __str__(self) -> str:
        inside = ", ".join(self.of) if self.points is None else str(self.points)
        return f"{self.word}({inside})" if inside else self.word


@dataclass(frozen=True, slots=True)
class Argument:
    """One tensor of a signature."""

    name: str
    dtype: DtypeRule
    dims: tuple[Dim, ...]
    is_lengths: bool = False
    optional: bool = False
    rank: int = field(init=False, repr=False, compare=False)
    """The number of dimensions without `*d`."""
    rest: int | None = field(init=False, repr=False, compare=False)
    """The position of `*d` among the dimensions; None without one."""
    kinds: str | None = field(init=False, repr=False, compare=False)
    """The NumPy dtype kinds an input takes, or None where it takes one dtype only."""
    row_name: str | None = field(init=False, repr=False, compare=False)
    """The dimension variable of axis 0, which names a row space; None for all other dimensions."""
    may_be_lengths: bool = field(init=False, repr=False, compare=False)
    """Whether it is a vector, of integers as far as its dtype word says."""
    computed: int = field(init=False, repr=False, compare=False)
    """The number of dimensions computed from other sizes. Arguments without any are bound first."""
    moves: bool = field(init=False, repr=False, compare=False)
    """Whether an input of this dtype word is one that is moved as it is, not computed with."""

    def __post_init__(self) -> None:
        rests = [i for i, dim in enumerate(self.dims) if isinstance(dim, Rest)]
        plain = sum(isinstance(dim, (Name, Rest, Anything)) for dim in self.dims)
        words = {
            "index": "int",
            "position": "int",
            LIKE: "any",
        }  # the input that it is like has the kinds it may have
        kinds = DTYPE_WORDS.get(words.get(self.dtype.word, self.dtype.word))
        object.__setattr__(self, "kinds", kinds)
        first = self.dims[0] if self.dims else None
        object.__setattr__(self, "row_name", first.name if isinstance(first, (Name, AtLeast)) else None)
        integers = (
            self.dtype.word in ("any", "int", *POINTING, "number", "ordered", "sum_of", "dtype")
            or "int" in self.dtype.word
        )
        object.__setattr__(self, "may_be_lengths", integers and len(self.dims) == 1)
        object.__setattr__(self, "rank", len(self.dims) - len(rests))
        object.__setattr__(self, "rest", rests[0] if rests else None)
        object.__setattr__(self, "computed", len(self.dims) - plain)
        object.__setattr__(self, "moves", self.dtype.word in ("any", "int", "ordered", LIKE))

    @property
    def field(self) -> str:
        """The name in results and in nets: without the prime of `lengths'`."""
        return self.name.removesuffix("'")

    def __str__(self) -> str:
        is_plain = self.dtype.word == ("int" if self.is_lengths else "any")
        lens = self.is_lengths and is_plain and self.field != "lengths"
        prefix = "lens " if lens else "" if is_plain else f"{self.dtype} "
        return f"{prefix}{self.name}[{', '.join(map(str, self.dims))}]{'?' if self.optional else ''}"


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
class Signature:
    """The inputs and outputs of an op."""

    text: str
    inputs_text: str
    """The part of the text before the arrow."""
    inputs: tuple[Argument | Repeated, ...]
    outputs: tuple[Argument | Repeated, ...]
    input_arguments: tuple[Argument, ...] = field(init=False, repr=False, compare=False)
    output_arguments: tuple[Argument, ...] = field(init=False, repr=False, compare=False)
    takes_lists: bool = field(init=False, repr=False, compare=False)
    gives_lists: bool = field(init=False, repr=False, compare=False)
    bound: frozenset[str] = field(init=False, repr=False, compare=False)
    """The dimension variables that inputs have."""
    alike: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    """The inputs that are `like(…)` another, and that other."""
    pointing: tuple[Argument, ...] = field(init=False, repr=False, compare=False)
    """The inputs of integers that point at something."""
    moved: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The inputs whose values an output without a dtype word has: the first, and those like it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_arguments", tuple(flatten(self.inputs)))
        object.__setattr__(self, "output_arguments", tuple(flatten(self.outputs)))
        object.__setattr__(self, "takes_lists", any(isinstance(item, Repeated) for item in self.inputs))
        object.__setattr__(self, "gives_lists", any(isinstance(item, Repeated) for item in self.outputs))
        dims = [dim for argument in self.input_arguments for dim in argument.dims]
        sizes = [part for dim in dims for part in parts(dim) if isinstance(part, (Name, AtLeast))]
        object.__setattr__(self, "bound", frozenset(size.name for size in sizes))
        alike = ((a.name, a.dtype.of[0]) for a in self.input_arguments if a.dtype.word == LIKE)
        object.__setattr__(self, "alike", tuple(alike))
        pointing = (a for a in self.input_arguments if a.dtype.points is not None)
        object.__setattr__(self, "pointing", tuple(pointing))
        first = self.input_arguments[0] if self.inputs else None
        like_it = (name for name, of in self.alike if first is not None and of == first.name != name)
        object.__setattr__(self, "moved", (first.name, *like_it) if first is not None and first.moves else ())

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

    def __str__(self) -> str:
        return self.text


def flatten(arguments: tuple[Argument | Repeated, ...]) -> Iterator[Argument]:
    """The arguments in order, those inside a repetition included."""
    for argument in arguments:
        if isinstance(argument, Repeated):
            yield from argument.arguments
        else:
            yield argument


def parts(dim: Dim) -> Iterator[Dim]:
    """A dimension and every size inside it, leaves last."""
    yield dim
    match dim:
        case Arithmetic(left=left, right=right):
            yield from parts(left)
            yield from parts(right)
        case Given(otherwise=size) | Fresh(size=size) | AtLeast(bound=size):
            yield from parts(size)


def evaluate(size: Size, known: Mapping[object, int]) -> int | None:
    """The value of a size, or None where something it needs is not in `known`.

    `known` maps names of variables and attributes, and `Sum`/`Max` nodes, to integers.
    """
    match size:
        case Literal(value=value):
            return value
        case Name(name=name):
            return known.get(name)
        case Sum() | Max():
            return known.get(size)
        case Given(attribute=attribute, otherwise=otherwise):
            given = known.get(attribute)
            return evaluate(otherwise, known) if given is None else given
        case Arithmetic(operator=operator, left=left, right=right):
            a, b = evaluate(left, known), evaluate(right, known)
            if a is None or b is None:
                return None
            return a + b if operator == "+" else a - b if operator == "-" else a * b


class _Token(NamedTuple):
    text: str
    position: int


_TOKEN = re.compile(r"\s*(?:(->|>=|[A-Za-z_]\w*'?|\d+|[\[\](){},+*|=?-])|(\S))")


class _Reader:
    """A cursor over the tokens of one signature."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        for match in _TOKEN.finditer(text):
            if match[2]:
                self.fail("a name, a number or punctuation", _Token(match[2], match.start(2)))
            self.tokens.append(_Token(match[1], match.start(1)))
        self.next = 0

    def peek(self, ahead: int = 0) -> str:
        index = self.next + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.peek()
        if not token or (expected and token not in expected):
            self.fail(" or ".join(map(repr, expected)) or "more text")
        self.next += 1
        return token

    def accept(self, text: str) -> bool:
        if self.peek() == text:
            self.next += 1
            return True
        return False

    def name(self) -> str:
        if self.peek().endswith("'"):
            self.fail("a name without a prime: it marks outputs, as in lengths'")
        return self.tensor()

    def tensor(self) -> str:
        """A name that may have a prime."""
        if not re.match(r"[A-Za-z_]", self.peek()):
            self.fail("a name")
        return self.take()

    def text_before(self) -> str:
        """The text up to the next token."""
        end = self.tokens[self.next].position if self.next < len(self.tokens) else len(self.text)
        return self.text[:end].rstrip()

    def fail(self, expected: str, token: _Token | None = None) -> NoReturn:
        if token is None:
            end = _Token("the end", len(self.text))
            token = self.tokens[self.next] if self.next < len(self.tokens) else end
        raise OpError(
            f"signature: found {token.text!r} at column {token.position + 1}, expected {expected}\n"
            f"  {self.text}\n  {' ' * token.position}^"
        )


@cache
def parse(text: str) -> Signature:
    """Read a signature; OpError with a caret where it is malformed."""
    reader = _Reader(" ".join(text.split()))
    inputs = _arguments(reader, end="->")
    inputs_text = reader.text_before()
    reader.take("->")
    outputs = _arguments(reader, end="")
    signature = Signature(reader.text, inputs_text, inputs, outputs)
    _check_names(signature)
    _check_alike(signature)
    _check_pointing(signature)
    return _mark_lengths(signature)


def _check_names(signature: Signature) -> None:
    """One name for each tensor; of the outputs also without primes, which results drop."""
    primed = next((a.name for a in signature.input_arguments if a.name != a.field), None)
    if primed is not None:
        raise OpError(f"signature: the input {primed} has a prime, which marks outputs\n  {signature.text}")
    names = [a.name for a in (*signature.input_arguments, *signature.output_arguments)]
    for group in (names, [a.field for a in signature.output_arguments]):
        repeated = next((name for name in group if group.count(name) > 1), None)
        if repeated is not None:
            raise OpError(f"signature: the name {repeated!r} stands for two tensors\n  {signature.text}")


def _check_alike(signature: Signature) -> None:
    """An input that is `like(x)` needs an x that is always given; one in a list may be like the first of them."""
    required = {a.name for a in signature.inputs if isinstance(a, Argument) and not a.optional}
    for item in signature.inputs:
        group = {a.name for a in item.arguments} if isinstance(item, Repeated) else set()
        for argument in flatten((item,)):
            of = argument.dtype.of
            if argument.dtype.word == LIKE and not (
                len(of) == 1 and {*of} <= (required - {argument.name}) | group
            ):
                raise OpError(
                    f"signature: {argument.name} is {argument.dtype}, expected one other input, which is required\n"
                    f"  {signature.text}"
                )
    wrong = next((a for a in signature.output_arguments if a.dtype.word == LIKE), None)
    if wrong is not None:
        raise OpError(
            f"signature: the output {wrong.name} is {wrong.dtype}, which is for inputs\n  {signature.text}"
        )


def _check_pointing(signature: Signature) -> None:
    """An `index(R)` needs an axis R: of an input, or of an output; or it is a size that an attribute gives."""
    arguments = (*signature.input_arguments, *signature.output_arguments)
    sizes = {
        part.name
        for argument in arguments
        for dim in argument.dims
        for part in parts(dim)
        if isinstance(part, (Name, AtLeast, Fresh))
    }
    for argument in arguments:
        points = argument.dtype.points
        if argument.dtype.word == "index" and isinstance(points, Name) and points.name not in sizes:
            raise OpError(
                f"signature: {argument.name} is {argument.dtype}, expected the name of an axis\n  {signature.text}"
            )


def _arguments(reader: _Reader, end: str) -> tuple[Argument | Repeated, ...]:
    found: list[Argument | Repeated] = []
    while reader.peek() != end:
        if found:
            reader.take(",")
        found.append(_repeated(reader) if reader.peek() == "{" else _argument(reader))
    return tuple(found)


def _repeated(reader: _Reader) -> Repeated:
    reader.take("{")
    arguments = [_argument(reader)]
    while reader.accept(","):
        arguments.append(_argument(reader))
    reader.take("}")
    if reader.accept("+"):
        return Repeated(tuple(arguments))
    reader.take("*")
    return Repeated(tuple(arguments), count=reader.name())


def _argument(reader: _Reader) -> Argument:
    word = reader.tensor()
    dtype, is_lengths = DtypeRule("any"), False
    if reader.peek() != "[":
        is_lengths = word == "lens"
        dtype = DtypeRule("int") if is_lengths else _dtype(reader, word)
        word = reader.tensor()
    reader.take("[")
    dims: list[Dim] = []
    while not reader.accept("]"):
        if dims:
            reader.take(",")
        dims.append(_dim(reader))
    return Argument(word, dtype, tuple(dims), is_lengths, optional=reader.accept("?"))


_PLAIN_WORDS = {*DTYPE_WORDS, *CONCRETE_DTYPES, GIVEN_DTYPE}


def _dtype(reader: _Reader, word: str) -> DtypeRule:
    if word in POINTING and reader.accept("("):
        points = _factor(reader) if word == "index" else Name(reader.tensor())
        if not isinstance(points, (Name, Sum)):
            reader.fail("a name or sum(…)")
        reader.take(")")
        return DtypeRule(word, points=points)
    names: list[str] = []
    if reader.accept("("):
        names.append(reader.name())
        while reader.accept(","):
            names.append(reader.name())
        reader.take(")")
    takes_names = word in (LIKE, *OUTPUT_DTYPE_RULES)
    if takes_names != bool(names) or not (takes_names or word in _PLAIN_WORDS):
        reader.next -= 1
        reader.fail("a dtype word before the name")
    return DtypeRule(word, tuple(names))


def _dim(reader: _Reader) -> Dim:
    if reader.accept("*"):
        return Rest(reader.name())
    if reader.peek() == "_":
        reader.take()
        return Anything()
    if reader.peek(1) == ">=":
        name = reader.name()
        reader.take(">=")
        return AtLeast(name, _size(reader))
    if reader.peek(1) == "=":
        name = reader.name()
        reader.take("=")
        return Fresh(name, _size(reader))
    if reader.peek(1) == "|":
        attribute = reader.name()
        reader.take("|")
        return Given(attribute, _size(reader))
    return _size(reader)


def _size(reader: _Reader) -> Size:
    left = _product(reader)
    while reader.peek() in ("+", "-"):
        left = Arithmetic(reader.take(), left, _product(reader))
    return left


def _product(reader: _Reader) -> Size:
    left = _factor(reader)
    while reader.peek() == "*":
        left = Arithmetic(reader.take(), left, _factor(reader))
    return left


def _factor(reader: _Reader) -> Size:
    if reader.peek().isdecimal():
        if len(reader.peek()) > 18:
            reader.fail("a size below 10**18")
        return Literal(int(reader.take()))
    name = reader.name()
    if name in ("sum", "max") and reader.accept("("):
        of = reader.tensor()
        reader.take(")")
        return Sum(of) if name == "sum" else Max(of)
    return Name(name)


def _mark_lengths(signature: Signature) -> Signature:
    """Mark as lengths all tensors named `lengths` or `lengths'`, and those used in a `sum(…)` or `max(…)`."""
    arguments = [*flatten(signature.inputs), *flatten(signature.outputs)]
    spoken_of = {
        part.of for argument in arguments for dim in argument.dims for part in parts(dim)
        if isinstance(part, (Sum, Max))
    }  # fmt: skip
    for argument in arguments:
        match argument.dtype:
            case DtypeRule("index", points=Sum(of=of)) | DtypeRule("position", points=Name(name=of)):
                spoken_of.add(of)
    unknown = spoken_of - {argument.name for argument in arguments}
    if unknown:
        raise OpError(
            f"signature: sum or max of {unknown.pop()!r}, which it does not name\n  {signature.text}"
        )

    def mark(argument: Argument) -> Argument:
        if not (argument.is_lengths or argument.field == "lengths" or argument.name in spoken_of):
            return argument
        dtype = DtypeRule("int") if argument.dtype.word == "any" else argument.dtype
        return replace(argument, is_lengths=True, dtype=dtype)

    def mark_all(group: tuple[Argument | Repeated, ...]) -> tuple[Argument | Repeated, ...]:
        return tuple(
            Repeated(tuple(map(mark, item.arguments)), item.count)
            if isinstance(item, Repeated)
            else mark(item)
            for item in group
        )

    return replace(signature, inputs=mark_all(signature.inputs), outputs=mark_all(signature.outputs))
