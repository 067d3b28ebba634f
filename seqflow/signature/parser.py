"""Parses signatures into the syntax trees of `seqflow.signature.language`."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from seqflow.cursor import Cursor
from seqflow.errors import OpError
from seqflow.signature.language import (
    CONCRETE_DTYPES,
    DTYPE_WORDS,
    GIVEN_DTYPE,
    LIKE,
    OUTPUT_DTYPE_RULES,
    POINTING,
    Anything,
    Argument,
    Arithmetic,
    AtLeast,
    Count,
    Dim,
    DtypeRule,
    Each,
    FixedSize,
    Fresh,
    Given,
    Limit,
    Max,
    Name,
    OpCall,
    Repeated,
    Rest,
    Signature,
    Size,
    Sum,
    Value,
    flatten,
    parts,
)

_TOKEN = re.compile(r"\s*(?:(->|>=|<=|:=|//|[A-Za-z_]\w*'?|\d+|[\[\](){},+*|=?-])|(\S))")


_LONGEST = 64


class _Reader(Cursor):
    """A cursor over the tokens of a signature."""

    def __init__(self, text: str) -> None:
        wanted = "a name, a number or punctuation"
        super().__init__(" ".join(text.split()), _TOKEN, wanted=wanted, what="signature", error=OpError)

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
        return self.text[: self.token(self.next).position].rstrip()


@cache
def parse(text: str) -> Signature:
    """Read a signature; OpError with a caret where it is malformed."""
    reader = _Reader(text)
    inputs = _inputs(reader)
    inputs_text = reader.text_before()
    reader.take("->")
    outputs, limits = _outputs(reader)
    signature = Signature(reader.text, inputs_text, inputs, outputs, limits)
    _check_names(signature)
    _check_alike(signature)
    _check_optional(signature)
    _check_pointing(signature)
    _check_values(signature)
    return _mark_lengths(signature)


@cache
def parse_value(text: str) -> Value:
    """Read a value, such as `minimum(lengths, k)`; OpError with a caret where it is malformed."""
    reader = _Reader(text)
    value = _value(reader)
    if reader.peek():
        reader.fail("an operator")
    return value


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


def _check_optional(signature: Signature) -> None:
    """Inputs that are optional stand last, since calls give inputs by position; lists and outputs never are."""
    flags = [isinstance(item, Argument) and item.optional for item in signature.inputs]
    optional = [a.name for a in (*signature.input_arguments, *signature.output_arguments) if a.optional]
    if len(optional) > sum(flags):
        raise OpError(
            f"signature: {optional[-1]} is in a list, or an output: neither is optional\n  {signature.text}"
        )
    if flags != sorted(flags):
        last = ", ".join(
            map(str, sorted(signature.inputs, key=lambda item: isinstance(item, Argument) and item.optional))
        )
        raise OpError(f"signature: {optional[0]} is optional, inputs after it are required\n  write {last}")


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
    for output in signature.output_arguments:
        given = {a.name for a in signature.input_arguments if not a.optional}
        if output.dtype.word == LIKE and not (len(output.dtype.of) == 1 and {*output.dtype.of} <= given):
            raise OpError(
                f"signature: the output {output.name} is {output.dtype}, expected an input that is required\n"
                f"  {signature.text}"
            )


def _check_pointing(signature: Signature) -> None:
    """An `index(R)` needs an axis R: of an input, or of an output; or it is a size that an attribute gives."""
    sizes = signature.size_names()
    for argument in (*signature.input_arguments, *signature.output_arguments):
        points = argument.dtype.points
        if argument.dtype.word != "position" and isinstance(points, Name) and points.name not in sizes:
            raise OpError(
                f"signature: {argument.name} is {argument.dtype}, expected the name of an axis\n  {signature.text}"
            )


def _check_values(signature: Signature) -> None:
    """Definitions and bounds speak of inputs and sizes; what is neither is an attribute, which `@op` knows."""
    inputs = {argument.name for argument in signature.input_arguments}
    outputs = {argument.name for argument in signature.output_arguments} - inputs
    for place, value in signature.values():
        for part in parts(value):
            wrong = (
                (isinstance(part, (Sum, Max)) and part.of not in inputs)
                or (isinstance(part, Each) and part.name not in inputs)
                or (isinstance(part, Name) and part.name in outputs)
            )  # fmt: skip
            if wrong:
                raise OpError(f"signature: {place} speaks of {part}, expected inputs\n  {signature.text}")
    tensors = outputs | inputs
    for limit in signature.limits:
        if isinstance(limit.size, (Sum, Max)) and limit.size.of not in tensors:
            raise OpError(f"signature: {limit.size} is of no tensor that it names\n  {signature.text}")


def _inputs(reader: _Reader) -> tuple[Argument | Repeated, ...]:
    found: list[Argument | Repeated] = []
    while reader.peek() != "->":
        if found:
            reader.take(",")
        found.append(_repeated(reader, _argument) if reader.peek() == "{" else _argument(reader))
    return tuple(found)


def _outputs(reader: _Reader) -> tuple[tuple[Argument | Repeated, ...], tuple[Limit, ...]]:
    """The outputs, and the bounds that may follow them."""
    found: list[Argument | Repeated] = []
    limits: list[Limit] = []
    while reader.peek():
        if found or limits:
            reader.take(",")
        is_sum = reader.peek() in ("sum", "max") and reader.peek(1) == "("
        if limits or is_sum or reader.peek(1) == "<=":
            limits.append(_limit(reader))
        else:
            found.append(_repeated(reader, _output) if reader.peek() == "{" else _output(reader))
    return tuple(found), tuple(limits)


def _limit(reader: _Reader) -> Limit:
    size = _factor(reader)
    if not isinstance(size, (Name, Sum, Max)):
        reader.fail("the name of a size, sum(…) or max(…)")
    reader.take("<=")
    return Limit(size, _value(reader))


def _repeated(reader: _Reader, read: Callable[[_Reader], Argument]) -> Repeated:
    reader.take("{")
    arguments = [read(reader)]
    while reader.accept(","):
        arguments.append(read(reader))
    reader.take("}")
    if reader.accept("+"):
        return Repeated(tuple(arguments))
    reader.take("*")
    return Repeated(tuple(arguments), count=reader.name())


def _output(reader: _Reader) -> Argument:
    """An output, with its definition and its bound where it has them."""
    argument = _argument(reader)
    definition = _value(reader) if reader.accept(":=") else None
    most = _value(reader) if reader.accept("<=") else None
    if definition is None and most is None:
        return argument
    return replace(argument, definition=definition, most=most)


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
        if dims and not reader.accept(","):
            reader.fail("',' or ']'")
        dims.append(_dim(reader))
    return Argument(word, dtype, tuple(dims), is_lengths, optional=reader.accept("?"))


_PLAIN_WORDS = {*DTYPE_WORDS, *CONCRETE_DTYPES, GIVEN_DTYPE}


def _dtype(reader: _Reader, word: str) -> DtypeRule:
    if word in POINTING and reader.accept("("):
        points: Value = Name(reader.tensor()) if word == "position" else _factor(reader)
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
    return _size(reader)


def _size(reader: _Reader) -> Size:
    start = reader.next
    value = _value(reader)
    if any(isinstance(part, (OpCall, Each)) for part in parts(value)):
        reader.next = start
        reader.fail("a size")
    return value  # type: ignore[return-value]


def _value(reader: _Reader) -> Value:
    if reader.peek(1) == "|":
        attribute = reader.name()
        reader.take("|")
        reader.deeper()
        value = Given(attribute, _value(reader))
        reader.depth -= 1
        return value
    return _chain(reader, ("+", "-"), _product)


def _product(reader: _Reader) -> Value:
    return _chain(reader, ("*", "//"), _factor)


def _chain(reader: _Reader, operators: tuple[str, str], operand: Callable[[_Reader], Value]) -> Value:
    """Operands between operators that bind alike."""
    left = operand(reader)
    count = 0
    while reader.peek() in operators:
        left = Arithmetic(reader.take(), left, operand(reader))
        count += 1
        if count > _LONGEST:
            reader.fail(f"at most {_LONGEST} operators in a row")
    return left


def _factor(reader: _Reader) -> Value:
    if reader.accept("("):
        reader.deeper()
        value = _value(reader)
        reader.take(")")
        reader.depth -= 1
        return value
    if reader.peek().isdecimal():
        if len(reader.peek()) > 18:
            reader.fail("a size below 10**18")
        return FixedSize(int(reader.take()))
    name = reader.name()
    if not reader.accept("("):
        return Name(name)
    if name in ("sum", "max"):
        of = reader.tensor()
        reader.take(")")
        return Sum(of) if name == "sum" else Max(of)
    if name == "len":
        of = reader.name()
        reader.take(")")
        return Count(of)
    return _call(reader, name)


def _call(reader: _Reader, name: str) -> OpCall:
    """The arguments of a call, whose first bracket is read."""
    reader.deeper()
    arguments: list[Value] = []
    keywords: list[tuple[str, Value]] = []
    while not reader.accept(")"):
        if arguments or keywords:
            reader.take(",")
        if reader.peek(1) == "=":
            keyword = reader.name()
            reader.take("=")
            keywords.append((keyword, _value(reader)))
        elif reader.accept("*"):
            arguments.append(Each(reader.name()))
        else:
            arguments.append(_value(reader))
    reader.depth -= 1
    return OpCall(name, tuple(arguments), tuple(keywords))


def _mark_lengths(signature: Signature) -> Signature:
    """Mark as lengths all tensors named `lengths` or `lengths'`, and those used in a `sum(…)` or `max(…)`."""
    arguments = [*flatten(signature.inputs), *flatten(signature.outputs)]
    spoken_of = {
        part.of for argument in arguments for dim in argument.dims for part in parts(dim)
        if isinstance(part, (Sum, Max))
    }  # fmt: skip
    for argument in arguments:
        match argument.dtype:
            case DtypeRule("index" | "offset", points=Sum(of=of)) | DtypeRule(
                "position", points=Name(name=of)
            ):
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
