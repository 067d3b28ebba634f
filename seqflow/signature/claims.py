"""What an op claims of its outputs beyond its signature, so that inference can tell equal values and equal rows.

    depends   {"positions": "mask"}: the inputs that an output depends on, all where nothing is said
    defines   {"lengths": "minimum(lengths, max_length)"}: an output in the language of nets
    rows      {"K": "select(N, mask)"}: the rows of an axis that no input has
    steps     {"lengths": "minimum(lengths, max_length) if truncate"}: what an output is really padded for
    masks     {"mask": "lengths"}: an output that is true where these lengths have rows
    describes {"lengths": "select(sum(lengths), mask)"}: the rows that an output describes, taken as lengths
    inverse   "pack_rows": the op whose inputs this one gives back, for what that op made of them
    moves     "data": the inputs whose values the outputs without a dtype word hold, and with them what integers
              point at; "" for none. Where nothing is said, the ops of this package move their first input, and those
              like it; ops of users none
    packed    {"values": "mask"}: an input with the rows that a mask is the first to select
    pure      False: two calls may differ; then nothing is known to be equal to an output

A claim may end with a condition: `if num_sequences` where this attribute has to be given for it to hold, `unless
empty` where it must not be; given is what differs from its default. That of an inverse may speak of either op;
the attribute it wants is the number of sequences that there were, and has to be known to be.
Every claim is held against the op by the tests that walk over all ops.
"""

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from seqflow.errors import OpError
from seqflow.signature.language import Fresh, Name, Signature, parts


@dataclass(frozen=True, slots=True)
class Space:
    """Rows made from others: `select(N, mask)`; a name alone is a dimension, an input or an attribute."""

    head: str
    args: "tuple[Space, ...]" = ()

    def __str__(self) -> str:
        return f"{self.head}({', '.join(map(str, self.args))})" if self.args else self.head


@dataclass(frozen=True, slots=True)
class Each:
    """The elements of an input that is a list, taken together two by two: `add(*lengths)`."""

    name: str


@dataclass(frozen=True, slots=True)
class Condition:
    """When a claim holds, by the attributes that are given."""

    given: tuple[str, ...] = ()
    not_given: tuple[str, ...] = ()

    def holds(self, given: Collection[str]) -> bool:
        """Whether it does where these attributes are given."""
        return all(name in given for name in self.given) and not any(name in given for name in self.not_given)


Definition = Any
"""A definition as data: a name, a literal that is no text, or (op, arguments, keywords)."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What an op claims of its outputs, read once when it is declared."""

    depends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defines: Mapping[str, Definition] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    """The definitions as they were written."""
    rows: Mapping[str, Space] = field(default_factory=dict)
    steps: Mapping[str, tuple[Definition, Condition]] = field(default_factory=dict)
    masks: Mapping[str, str] = field(default_factory=dict)
    describes: Mapping[str, tuple[Space, Condition]] = field(default_factory=dict)
    inverse: tuple[str, Condition] | None = None
    moves: tuple[str, ...] = ()
    packed: Mapping[str, str] = field(default_factory=dict)
    pure: bool = True
    commutes: bool = False
    """The order of the inputs does not matter."""
    value: Callable[..., Any] | None = None
    """Says itself what its one output is: an expression is what its functions are."""
    look_up: Callable[[str], Any] = field(default=str, compare=False)
    """The registry's, for the ops that definitions and inverses speak of."""


NONE = Claims()
_HEADS = {"sum", "select", "sliced", "groups", "joined"}


def read_claims(
    name: str,
    signature: Signature,
    *,
    depends: Mapping[str, str] | None = None,
    defines: Mapping[str, str] | None = None,
    rows: Mapping[str, str] | None = None,
    steps: Mapping[str, str] | None = None,
    masks: Mapping[str, str] | None = None,
    describes: Mapping[str, str] | None = None,
    inverse: str | None = None,
    moves: str = "",
    packed: Mapping[str, str] | None = None,
    pure: bool = True,
    look_up: Callable[[str], Any],
) -> Claims:
    """The claims of an op; OpError where one speaks of what the signature does not have."""
    outputs = {argument.field for argument in signature.output_arguments}
    inputs = {argument.name for argument in signature.input_arguments}
    sizes = (part for one in signature.output_arguments for dim in one.dims for part in parts(dim))
    fresh = {size.name for size in sizes if isinstance(size, (Name, Fresh))}
    for what, claimed, known in (
        ("depends", depends, outputs | fresh),
        ("defines", defines, outputs),
        ("rows", rows, fresh),
        ("steps", steps, inputs),
        ("masks", masks, outputs),
        ("describes", describes, outputs),
        ("packed", packed, inputs),
    ):
        wrong = next((one for one in claimed or () if one not in known), None)
        if wrong is not None:
            raise OpError(
                f"{name}: {what} speaks of {wrong!r}, which is not among {sorted(known)}\n  {signature}"
            )
    read = {output: _names(text) for output, text in (depends or {}).items()}
    spoken_of = [("depends", one) for names in read.values() for one in names]
    spoken_of += [("moves", one) for one in _names(moves)]
    unknown = next((pair for pair in spoken_of if pair[1] not in inputs), None)
    if unknown is not None:
        raise OpError(f"{name}: {unknown[0]} names {unknown[1]!r}, expected inputs\n  {signature}")
    return Claims(
        read,
        {output: _definition(name, text) for output, text in (defines or {}).items()},
        dict(defines or {}),
        {axis: _space(name, text) for axis, text in (rows or {}).items()},
        {
            one: (_definition(name, claim), condition)
            for one, (claim, condition) in _conditional(steps).items()
        },
        dict(masks or {}),
        {
            output: (_space(name, claim), condition)
            for output, (claim, condition) in _conditional(describes).items()
        },
        None if inverse is None else _split(inverse),
        _names(moves),
        dict(packed or {}),
        pure,
        look_up=look_up,
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _space(op: str, text: str) -> Space:
    try:
        return _read(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        raise OpError(f"{op}: rows are {text!r}, expected one of {sorted(_HEADS)} of names") from None


def _read(node: ast.AST) -> Space:
    match node:
        case ast.Name(id=name):
            return Space(name)
        case ast.Call(func=ast.Name(id=head), args=args, keywords=[]) if head in _HEADS:
            return Space(head, tuple(map(_read, args)))
    raise ValueError


_FUNCTIONS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}


def _definition(op: str, text: str) -> Definition:
    try:
        return _tree(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        raise OpError(f"{op}: the definition is {text!r}, expected a call or +, - and * of names") from None


def _conditional(claims: Mapping[str, str] | None) -> dict[str, tuple[str, Condition]]:
    return {name: _split(text) for name, text in (claims or {}).items()}


def _split(text: str) -> tuple[str, Condition]:
    """A claim, and the condition it ends with."""
    claim, _, given = text.partition(" if ")
    claim, _, not_given = claim.partition(" unless ")
    return claim.strip(), Condition(_names(given), _names(not_given))


def _tree(node: ast.AST) -> Definition:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=value) if not isinstance(value, str):
            return value
        case ast.Call(func=ast.Name(id=name), args=[ast.Starred(value=ast.Name(id=elements))]):
            return name, Each(elements), ()
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            return name, tuple(map(_tree, args)), tuple((one.arg, _tree(one.value)) for one in keywords)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _FUNCTIONS:
            return _FUNCTIONS[type(operator)], (_tree(left), _tree(right)), ()
    raise ValueError
