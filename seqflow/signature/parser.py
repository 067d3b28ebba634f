"""Parser of signatures, which makes the syntax trees of `seqflow.signature.language`."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from seqflow.errors import OpError
from seqflow.parsing.lexer import Lexicon, Token, marks
from seqflow.parsing.parser import Parser
from seqflow.signature import language

_GIVEN, _SUM, _PRODUCT = range(3)
_PLAIN_WORDS = {*language.DTYPE_WORDS, *language.CONCRETE_DTYPES, language.GIVEN_DTYPE}


@cache
def parse(text: str) -> language.Signature:
    """Read a signature; raise OpError with a caret when it is malformed."""
    signature = _Signature(text).signature()
    _check_names(signature)
    _check_alike(signature)
    _check_optional(signature)
    _check_pointing(signature)
    _check_values(signature)
    return _mark_lengths(signature)


@cache
def parse_value(text: str) -> language.Value:
    """Read a value, such as `minimum(lengths, k)`; raise OpError with a caret when it is malformed."""
    return _Signature(text).whole("an operator")


def _check_names(signature: language.Signature) -> None:
    """Raise OpError when two tensors share a name; for outputs also without primes, which results omit."""
    primed = next((a.name for a in signature.input_arguments if a.name != a.field), None)
    if primed is not None:
        raise OpError(f"signature: the input {primed} has a prime, which marks outputs\n  {signature.text}")
    names = [a.name for a in (*signature.input_arguments, *signature.output_arguments)]
    for group in (names, [a.field for a in signature.output_arguments]):
        repeated = next((name for name in group if group.count(name) > 1), None)
        if repeated is not None:
            raise OpError(f"signature: the name {repeated!r} stands for two tensors\n  {signature.text}")


def _check_optional(signature: language.Signature) -> None:
    """Raise OpError unless optional inputs come last, and outside of lists: calls give inputs by position."""
    flags = [isinstance(item, language.Argument) and item.optional for item in signature.inputs]
    optional = [a.name for a in (*signature.input_arguments, *signature.output_arguments) if a.optional]
    if len(optional) > sum(flags):
        raise OpError(
            f"signature: {optional[-1]} is in a list, or an output: neither is optional\n  {signature.text}"
        )
    if flags != sorted(flags):
        last = ", ".join(
            map(
                str,
                sorted(
                    signature.inputs, key=lambda item: isinstance(item, language.Argument) and item.optional
                ),
            )
        )
        raise OpError(f"signature: {optional[0]} is optional, inputs after it are required\n  write {last}")
    required = {a.name: a for a in signature.inputs if isinstance(a, language.Argument) and not a.optional}
    for name, of in signature.defaults.items():
        if of not in required or required[of].dims != signature.arguments[name].dims:
            raise OpError(
                f"signature: {name} is {of} if it is left out, expected an input that is required and has its axes\n"
                f"  {signature.text}"
            )


def _check_alike(signature: language.Signature) -> None:
    """Raise OpError when x of `like(x)` may be missing; a tensor of a list may be like another of the list."""
    required = {a.name for a in signature.inputs if isinstance(a, language.Argument) and not a.optional}
    for item in signature.inputs:
        group = {a.name for a in item.arguments} if isinstance(item, language.Repeated) else set()
        for argument in language.flatten((item,)):
            of = argument.dtype.of
            if argument.dtype.word == language.LIKE and not (
                len(of) == 1 and {*of} <= (required - {argument.name}) | group
            ):
                raise OpError(
                    f"signature: {argument.name} is {argument.dtype}, expected one other input, which is required\n"
                    f"  {signature.text}"
                )
    for output in signature.output_arguments:
        given = {a.name for a in signature.input_arguments if not a.optional}
        if output.dtype.word == language.LIKE and not (
            len(output.dtype.of) == 1 and {*output.dtype.of} <= given
        ):
            raise OpError(
                f"signature: the output {output.name} is {output.dtype}, expected an input that is required\n"
                f"  {signature.text}"
            )


def _check_pointing(signature: language.Signature) -> None:
    """Raise OpError when R of `index(R)` is not an axis of an input or output, or a size that an attribute gives."""
    sizes = signature.size_names()
    for argument in (*signature.input_arguments, *signature.output_arguments):
        points = argument.dtype.points
        if (
            argument.dtype.word != "position"
            and isinstance(points, language.Name)
            and points.name not in sizes
        ):
            raise OpError(
                f"signature: {argument.name} is {argument.dtype}, expected the name of an axis\n  {signature.text}"
            )


def _check_values(signature: language.Signature) -> None:
    """Raise OpError when a definition or bound uses an output; `@op` checks the names of sizes and attributes."""
    inputs = {argument.name for argument in signature.input_arguments}
    outputs = {argument.name for argument in signature.output_arguments} - inputs
    for place, value in signature.values():
        for part in language.parts(value):
            wrong = (
                (isinstance(part, (language.Sum, language.Max)) and part.of not in inputs)
                or (isinstance(part, language.Each) and part.name not in inputs)
                or (isinstance(part, language.Name) and part.name in outputs)
            )  # fmt: skip
            if wrong:
                raise OpError(f"signature: {place} speaks of {part}, expected inputs\n  {signature.text}")
    tensors = outputs | inputs
    for limit in signature.limits:
        if isinstance(limit.size, (language.Sum, language.Max)) and limit.size.of not in tensors:
            raise OpError(f"signature: {limit.size} is of no tensor that it names\n  {signature.text}")


class _Signature(Parser[language.Value]):
    what = "signature"
    error = OpError
    lexicon = Lexicon(
        "a name, a number or punctuation",
        number=r"\d+",
        name=r"[A-Za-z_]\w*'?",
        mark=marks("-> >= <= := // [ ] ( ) { } , + * | = ? -"),
    )
    infix = {"|": _GIVEN} | dict.fromkeys(("+", "-"), _SUM) | dict.fromkeys(("*", "//"), _PRODUCT)
    to_the_right = frozenset({_GIVEN})
    deepest = highest = 64

    def __init__(self, text: str) -> None:
        # one line: messages point at a column of the signature
        super().__init__(" ".join(text.split()))

    # Values

    def atom(self, token: Token) -> language.Value:
        if token.kind == "number":
            if len(token.text) > 18:  # with 18 digits a size is below 2**63 and fits an int64
                self.expected("a size below 10**18")
            self.next += 1
            return language.FixedSize(int(token.text))
        name = self.name()
        opening = self.accept("(")
        if opening is None:
            return language.Name(name)
        if name not in _OF_TENSORS:
            return self.call(token, opening)
        of = self.name() if name == "len" else self.tensor()
        self.take(")")
        return _OF_TENSORS[name](of)

    def call(self, token: Token, opening: Token) -> language.OpCall:
        arguments: list[language.Value] = []
        keywords: list[tuple[str, language.Value]] = []

        def argument() -> None:
            if self.after.text == "=":
                keyword = self.name()
                self.take("=")
                keywords.append((keyword, self.value()))
            elif self.accept("*"):
                arguments.append(language.Each(self.name()))
            else:
                arguments.append(self.value())

        self.deeper(opening)
        self.items(opening, argument)
        self.depth -= 1
        return language.OpCall(token.text, tuple(arguments), tuple(keywords))

    def infixed(self, token: Token, operands: list[language.Value], start: Token) -> language.Value:
        left, right = operands
        if isinstance(left, language.Name) and token.text == "|":
            return language.Given(left.name, right)
        return language.Arithmetic(token.text, left, right)

    def suffixed(self, token: Token, node: language.Value) -> None:
        if token.text == "|" and not isinstance(node, language.Name):
            self.expected("the name of an attribute before '|'", token=self.tokens[self.next - 1])

    # Inputs, outputs and limits

    def name(self) -> str:
        if self.token.text.endswith("'"):
            self.expected("a name without a prime: it marks outputs, as in lengths'")
        return self.tensor()

    def tensor(self) -> str:
        """Read a name that may have a prime."""
        return self.kind("name", "a name").text

    def signature(self) -> language.Signature:
        inputs: list[language.Argument | language.Repeated] = []
        while not self.at("->"):
            if inputs:
                self.take(",")
            inputs.append(self.item(self.argument))
        inputs_text = self.text[: self.token.start].rstrip()
        self.take("->")
        outputs: list[language.Argument | language.Repeated] = []
        limits: list[language.Limit] = []
        while self.token.kind != "end":
            if outputs or limits:
                self.take(",")
            is_sum = self.token.text in ("sum", "max") and self.after.text == "("
            if limits or is_sum or self.after.text == "<=":
                limits.append(self.limit())
            else:
                outputs.append(self.item(self.output))
        return language.Signature(self.text, inputs_text, tuple(inputs), tuple(outputs), tuple(limits))

    def item(self, read: Callable[[], language.Argument]) -> language.Argument | language.Repeated:
        opening = self.accept("{")
        if opening is None:
            return read()
        arguments = tuple(self.items(opening, read)) or self.expected(
            "a name", token=self.tokens[self.next - 1]
        )
        if self.accept("+"):
            return language.Repeated(arguments)
        self.take("*")
        return language.Repeated(arguments, count=self.name())

    def limit(self) -> language.Limit:
        token = self.token
        size = self.value(math.inf)
        if not isinstance(size, (language.Name, language.Sum, language.Max)):
            self.expected("the name of a size, sum(…) or max(…)", token=token)
        self.take("<=")
        return language.Limit(size, self.value())

    def output(self) -> language.Argument:
        """Read an output, with its definition and its bound if it has them."""
        argument = self.argument()
        definition = self.value() if self.accept(":=") else None
        most = self.value() if self.accept("<=") else None
        if definition is None and most is None:
            return argument
        return replace(argument, definition=definition, most=most)

    def argument(self) -> language.Argument:
        start = self.token
        word, dtype, is_lengths = self.tensor(), language.DtypeRule("any"), False
        if not self.at("["):
            is_lengths = word == "lens"
            dtype = language.DtypeRule("int") if is_lengths else self.dtype(start)
            word = self.tensor()
        dims = tuple(self.items(self.take("["), self.dim))
        optional = self.accept("?") is not None
        default = self.name() if optional and self.accept("=") else None
        return language.Argument(word, dtype, dims, is_lengths, optional, default)

    def dtype(self, start: Token) -> language.DtypeRule:
        word = start.text
        opening = self.accept("(")
        if word in language.POINTING and opening is not None:
            token = self.token
            points: language.Value = (
                language.Name(self.tensor()) if word == "position" else self.value(math.inf)
            )
            if not isinstance(points, (language.Name, language.Sum)):
                self.expected("a name or sum(…)", token=token)
            self.take(")")
            return language.DtypeRule(word, points=points)
        names = () if opening is None else tuple(self.items(opening, self.name))
        takes_names = word in (language.LIKE, *language.OUTPUT_DTYPE_RULES)
        if takes_names != bool(names) or not (takes_names or word in _PLAIN_WORDS):
            self.expected("a dtype word before the name", token=self.tokens[self.next - 1])
        return language.DtypeRule(word, names)

    def dim(self) -> language.Dim:
        token = self.token
        if token.text in ("*", "_"):
            self.next += 1
            return language.Rest(self.name()) if token.text == "*" else language.Anything()
        kind = _NAMED_SIZES.get(self.after.text)
        if kind is None:
            return self.size()
        name = self.name()
        self.next += 1
        return kind(name, self.size())

    def size(self) -> language.Size:
        start = self.token
        value = self.value()
        if any(isinstance(part, (language.OpCall, language.Each)) for part in language.parts(value)):
            self.expected("a size", token=start)
        return value  # type: ignore[return-value]


_OF_TENSORS: dict[str, Callable[[str], language.Value]] = {
    "sum": language.Sum,
    "max": language.Max,
    "len": language.Count,
}
_NAMED_SIZES: dict[str, Callable[[str, Any], language.Dim]] = {">=": language.AtLeast, "=": language.Fresh}


def _mark_lengths(signature: language.Signature) -> language.Signature:
    """Mark as lengths all tensors named `lengths` or `lengths'`, or used in `sum(…)`, `max(…)` or `position(…)`."""
    arguments = [*language.flatten(signature.inputs), *language.flatten(signature.outputs)]
    spoken_of = {
        part.of for argument in arguments for dim in argument.dims for part in language.parts(dim)
        if isinstance(part, (language.Sum, language.Max))
    }  # fmt: skip
    # targets of integers are lengths even if no axis uses their sum
    for argument in arguments:
        match argument.dtype:
            case language.DtypeRule("index" | "offset", points=language.Sum(of=of)) | language.DtypeRule(
                "position", points=language.Name(name=of)
            ):
                spoken_of.add(of)
    unknown = spoken_of - {argument.name for argument in arguments}
    if unknown:
        raise OpError(
            f"signature: sum or max of {unknown.pop()!r}, which it does not name\n  {signature.text}"
        )

    def mark(argument: language.Argument) -> language.Argument:
        if not (argument.is_lengths or argument.field == "lengths" or argument.name in spoken_of):
            return argument
        dtype = language.DtypeRule("int") if argument.dtype.word == "any" else argument.dtype
        return replace(argument, is_lengths=True, dtype=dtype)

    def mark_all(
        group: tuple[language.Argument | language.Repeated, ...],
    ) -> tuple[language.Argument | language.Repeated, ...]:
        return tuple(
            language.Repeated(tuple(map(mark, item.arguments)), item.count)
            if isinstance(item, language.Repeated)
            else mark(item)
            for item in group
        )

    return replace(signature, inputs=mark_all(signature.inputs), outputs=mark_all(signature.outputs))
