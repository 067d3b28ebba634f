"""Claims: properties of an op beyond its signature, by which inference proves values and rows equal.

    depends   {"positions": "mask"}: the inputs that an output depends on; by default the inputs in its definition,
              or all inputs if it has none
    rows      {"K": "select(N, mask)"}: the rows of an axis that no input has
    steps     {"lengths": "minimum(lengths, max_length) if truncate"}: the lengths that outputs are padded for, if
              they differ from the input `lengths`
    masks     {"mask": "lengths"}: an output that is true at the steps inside these lengths
    describes {"lengths": "select(sum(lengths), mask)"}: the rows that an output, used as lengths, describes
    inverse   "pack_rows": another op; called on the outputs of that op, this op returns the inputs of that op
    moves     "data": the inputs whose values outputs without a dtype word hold; integers in these outputs keep their
              targets; "" for none. By default ops of this package move their first input and the inputs like it,
              and ops of users move none
    several   "gather_within": for an op that takes one position of each sequence, the op that takes several
    pure      False: two equal calls may give different results, so no output is known to equal anything

A claim may end with a condition: with `if num_sequences` it holds only if this attribute is given, with
`unless empty` only if it is not. An attribute is given if it differs from its default. The condition of an inverse
may name attributes of either op; an attribute that it requires is a number of sequences, which must be proved right.
Tests that walk over all ops check every claim.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from seqflow.errors import OpError
from seqflow.frozen import frozen
from seqflow.signature.language import Each, FixedSize, Fresh, Name, OpCall, Signature, Sum, Value, parts
from seqflow.signature.parser import parse_value


@frozen
class AttributeCondition:
    """Attributes that must, or must not, be given for a claim to hold."""

    given: tuple[str, ...] = ()
    not_given: tuple[str, ...] = ()

    def holds(self, given: Collection[str]) -> bool:
        """Return whether the condition holds if these attributes are given."""
        if not self.given and not self.not_given:
            return True
        return all(name in given for name in self.given) and not any(name in given for name in self.not_given)


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims of one op."""

    depends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rows: Mapping[str, Value] = field(default_factory=dict)
    """Rows made from other rows, `select(N, mask)`; a plain name is a dimension, an input or an attribute."""
    steps: Mapping[str, tuple[Value, AttributeCondition]] = field(default_factory=dict)
    masks: Mapping[str, str] = field(default_factory=dict)
    describes: Mapping[str, tuple[Value, AttributeCondition]] = field(default_factory=dict)
    inverse: tuple[str, AttributeCondition] | None = None
    moves: tuple[str, ...] = ()
    pure: bool = True
    several: str = ""
    commutes: bool = False
    """Whether the order of the inputs does not matter."""
    fold: Callable[[int, int], int] | None = None
    """For an op that commutes, combines two numbers in a row: 1 and 2 to 3 in `x + 1 + 2`."""
    bound: Callable[[Any, Any], Any] | None = None
    """Computes upper bounds of its output from those of two inputs (see `seqflow.signature.limits`)."""
    value: Callable[..., Any] | None = None
    """Computes the term of its one output; the op of expressions builds it from the functions of the expression."""
    look_up: Callable[[str], Any] = field(default=str, compare=False)
    """Looks up ops that definitions and inverses name; a function of the registry, which imports this module."""


NONE = Claims()
_HEADS = {"sum", "select", "sliced", "groups", "joined"}


def read_claims(
    name: str,
    signature: Signature,
    *,
    depends: Mapping[str, str] | None = None,
    rows: Mapping[str, str] | None = None,
    steps: Mapping[str, str] | None = None,
    masks: Mapping[str, str] | None = None,
    describes: Mapping[str, str] | None = None,
    inverse: str | None = None,
    moves: str = "",
    pure: bool = True,
    several: str = "",
    look_up: Callable[[str], Any],
) -> Claims:
    """Return the claims of an op; raise OpError when a claim uses a name that the signature does not have."""
    read = {output: _names(text) for output, text in (depends or {}).items()}
    _check_names(name, signature, depends=depends, rows=rows, steps=steps, masks=masks, describes=describes)
    inputs = set(signature.arguments)
    spoken_of = [("depends", one) for names in read.values() for one in names]
    spoken_of += [("moves", one) for one in _names(moves)]
    unknown = next((pair for pair in spoken_of if pair[1] not in inputs), None)
    if unknown is not None:
        raise OpError(f"{name}: {unknown[0]} names {unknown[1]!r}, expected inputs\n  {signature}")
    for output, value in signature.definitions.items():
        names = {part.name for part in parts(value) if isinstance(part, (Name, Each))}
        read.setdefault(output, tuple(sorted(names & inputs)))
    return Claims(
        read,
        {axis: _space(name, text) for axis, text in (rows or {}).items()},
        {one: (parse_value(claim), condition) for one, (claim, condition) in _conditional(steps).items()},
        dict(masks or {}),
        {
            output: (_space(name, claim), condition)
            for output, (claim, condition) in _conditional(describes).items()
        },
        None if inverse is None else _split(inverse),
        _names(moves),
        pure,
        several,
        look_up=look_up,
    )


def _check_names(name: str, signature: Signature, **claimed: Mapping[str, str] | None) -> None:
    """Raise OpError when the subject of a claim is not in the signature."""
    outputs = {argument.field for argument in signature.output_arguments}
    sizes = (part for one in signature.output_arguments for dim in one.dims for part in parts(dim))
    fresh = {size.name for size in sizes if isinstance(size, (Name, Fresh))}
    may_be = {"depends": outputs | fresh, "rows": fresh, "steps": set(signature.arguments)}
    for what, of in claimed.items():
        known = may_be.get(what, outputs)
        wrong = next((one for one in of or () if one not in known), None)
        if wrong is not None:
            raise OpError(
                f"{name}: {what} speaks of {wrong!r}, which is not among {sorted(known)}\n  {signature}"
            )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _space(op: str, text: str) -> Value:
    try:
        space = parse_value(text)
    except OpError:
        space = FixedSize(0)
    if all(
        isinstance(part, (Name, Sum)) or (isinstance(part, OpCall) and part.op in _HEADS)
        for part in parts(space)
    ):
        return space
    raise OpError(f"{op}: rows are {text!r}, expected one of {sorted(_HEADS)} of names")


def _conditional(claims: Mapping[str, str] | None) -> dict[str, tuple[str, AttributeCondition]]:
    return {name: _split(text) for name, text in (claims or {}).items()}


def _split(text: str) -> tuple[str, AttributeCondition]:
    """Split `claim if a, b` or `claim unless c` into the claim and its condition."""
    claim, _, given = text.partition(" if ")
    claim, _, not_given = claim.partition(" unless ")
    return claim.strip(), AttributeCondition(_names(given), _names(not_given))
