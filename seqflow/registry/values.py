"""What the outputs of an op are, as terms: equal calls give equal values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqflow.shape import Equalities
from seqflow.shape.terms import Term, Terms, literal
from seqflow.signature.claims import Definition, Space
from seqflow.signature.rows import NamedOutput
from seqflow.signature.spaces import frozen

if TYPE_CHECKING:
    from seqflow.registry.definition import OpDef

Inputs = Mapping[str, Term | list[Term]]
"""The values of the inputs that are given, by the signature's names."""


def name_values(
    op: OpDef,
    inputs: Inputs,
    attributes: Mapping[str, Any],
    results: Sequence[NamedOutput],
    equalities: Equalities,
) -> tuple[list[Term], dict[str, Term]]:
    """Say what the outputs of a call are.

    Returned are the values it depends on, and the lengths that it pads for in place of those it was given.
    """
    depends = _flat(inputs.values())
    key = attributes_key(attributes)
    for output in results:
        argument = output.argument
        term = output_value(
            op, argument.field, output.repetition, inputs, attributes, equalities, depends, key
        )
        is_vector = len(argument.dims) == 1 and argument.may_be_lengths
        equalities.set_value(output.tensor, term, is_vector)
    padded = {
        name: _defined(op, definition, inputs, attributes, equalities)
        for name, (definition, condition) in op.claims.steps.items()
        if condition.holds(given_attributes(op, attributes))
    }
    return depends, padded


def given_attributes(op: OpDef, attributes: Mapping[str, Any]) -> set[str]:
    """The attributes that differ from their defaults."""
    return {
        one.name
        for one in op.attributes
        if one.name in attributes and frozen(attributes[one.name]) != frozen(one.default)
    }


def output_value(
    op: OpDef,
    output: str,
    repetition: int,
    inputs: Inputs,
    attributes: Mapping[str, Any],
    equalities: Equalities,
    depends: Sequence[Term] | None = None,
    key: Any = None,
) -> Term:
    """The value of one output; what the op claims of it is made known."""
    terms, claims = equalities.terms, op.claims
    if claims.value is not None:
        return claims.value(equalities, inputs, attributes)
    if not claims.pure:
        return terms.make("made", (op.name, terms.serial()))
    named = claims.depends.get(output)
    if named is not None:
        depends = _flat(inputs[name] for name in named if name in inputs)
        given = [name for name in named if name in inputs]
    else:
        depends = _flat(inputs.values()) if depends is None else depends
        given = list(inputs)
    label = f"{output}.{repetition}" if op.has_lists else output
    shown = label if len(op.signature.outputs) > 1 or op.has_lists else ""
    key = attributes_key(attributes) if key is None else key
    term = terms.make("call", (op.name, shown, _arity(inputs, given), key), *depends)
    if terms.first_time(term):
        _claim(op, output, term, inputs, attributes, equalities)
    return term


def attributes_key(attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    """The attributes that are given, in a form that can be compared."""
    return tuple(
        [(name, frozen(value)) for name, value in attributes.items() if value is not None and name != "out"]
    )


def _flat(values: Any) -> list[Term]:
    found: list[Term] = []
    for value in values:
        if isinstance(value, Term):
            found.append(value)
        else:
            found += value
    return found


def _arity(inputs: Inputs, names: Sequence[str]) -> tuple[Any, ...]:
    """Which inputs there are, and how many in a list."""
    return tuple([(n, len(v)) if isinstance(v := inputs[n], list) else n for n in names])


# Claims


def _claim(
    op: OpDef, output: str, term: Term, inputs: Inputs, attributes: Mapping[str, Any], equalities: Equalities
) -> None:
    terms, claims = equalities.terms, op.claims
    definition = claims.defines.get(output)
    if definition is not None:
        equalities.unite(term, _defined(op, definition, inputs, attributes, equalities), op.name)
    masked = claims.masks.get(output)
    if masked is not None:
        side = str(attributes.get("side") or "right")
        width = attributes.get("max_length"), attributes.get("multiple_of") or 1
        equalities.unite(term, terms.make("mask", (side, *width), inputs[masked]), op.name)  # type: ignore[arg-type]
    describes = claims.describes.get(output)
    if describes is not None and _may_be_lengths(inputs, terms):
        space, condition = describes
        rows = _spaces(space, inputs, equalities)
        if rows and condition.holds(given_attributes(op, attributes)):
            equalities.unite(terms.described(term), rows[0], op.name)
    if claims.inverse is not None:
        given_back = _given_back(op, output, inputs, attributes, equalities)
        if given_back is not None:
            equalities.unite(term, given_back, op.name)


def _defined(
    op: OpDef, definition: Definition, inputs: Inputs, attributes: Mapping[str, Any], equalities: Equalities
) -> Term:
    """The value that a definition says."""
    if isinstance(definition, str):
        found = inputs.get(definition)
        if isinstance(found, Term):
            return found
        return equalities.terms.make("literal", literal(attributes[definition]))
    if not isinstance(definition, tuple):
        return equalities.terms.make("literal", literal(definition))
    name, arguments, keywords = definition
    other = op.claims.look_up(name)
    names = [argument.name for argument in other.signature.input_arguments]
    values = [_defined(op, one, inputs, attributes, equalities) for one in arguments]
    given = other.complete(
        {keyword: attributes[value] if isinstance(value, str) else value for keyword, value in keywords}
    )
    return output_value(
        other, other.output_names[0], 0, dict(zip(names, values, strict=False)), given, equalities
    )


def _may_be_lengths(inputs: Inputs, terms: Terms) -> bool:
    return any(terms.find(term).vector is not None for term in _flat(inputs.values()))


def _spaces(space: Space, inputs: Inputs, equalities: Equalities) -> list[Term]:
    """The rows, or the value, that a claim speaks of; of a list, all of them; nothing of rows that a call names."""
    terms = equalities.terms
    if not space.args:
        found = inputs.get(space.head, [])
        return [found] if isinstance(found, Term) else list(found)
    parts = [one for arg in space.args for one in _spaces(arg, inputs, equalities)]
    if not parts:
        return parts
    if space.head == "sum":
        return [terms.described(one) for one in parts]
    return [terms.make(space.head, None, *parts)]


def _given_back(
    op: OpDef, output: str, inputs: Inputs, attributes: Mapping[str, Any], equalities: Equalities
) -> Term | None:
    """What the inverse op was given, where the inputs are what it made of it."""
    name, condition = op.claims.inverse  # type: ignore[misc]
    other = op.claims.look_up(name)
    made = [argument.field for argument in other.signature.output_arguments]
    taken = [argument.name for argument in op.signature.input_arguments]
    its = {name: "values" if name == taken[0] and "values" in made else name for name in inputs}
    originals: dict[str, Term] = {}
    for name, term in inputs.items():
        if its[name] not in made:
            continue
        call = _call_of(term, str(other.name), its[name] if len(made) > 1 else "", equalities)
        if call is None:
            return None
        _, _, given, key = call.data  # type: ignore[misc]
        theirs = other.complete(dict(key))
        if any(
            theirs[one] != frozen(value)
            for one, value in attributes.items()
            if one in theirs and one != "out"
        ):
            return None
        if not condition.holds(given_attributes(op, attributes) | given_attributes(other, theirs)):
            return None
        for one, original in zip(given, call.args, strict=False):
            if not equalities.terms.equal(originals.setdefault(one, original), original):
                return None
    for name, term in inputs.items():
        known = originals.get(name)
        if its[name] not in made and known is not None and not (
            isinstance(term, Term) and equalities.terms.equal(term, known)
        ):  # fmt: skip
            return None
    first = other.signature.input_arguments[0].name
    return originals.get(first if output in ("values", "data") else output)


def _call_of(term: Term | list[Term], name: str, field: str, equalities: Equalities) -> Term | None:
    """The call of an op that this value, or one equal to it, is."""
    for one in equalities.terms.members(term) if isinstance(term, Term) else ():
        if one.kind == "call" and one.data[:2] == (name, field):  # type: ignore[index]
            return one
    return None
