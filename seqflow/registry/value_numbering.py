"""Value numbering: gives an op's outputs terms, which are equal for equal calls."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from seqflow.registry.definition import OpDef
from seqflow.shape import Comparison, Dimension, Equalities
from seqflow.shape.terms import Term, Terms, literal
from seqflow.signature.bind_rows import Facts, frozen
from seqflow.signature.language import FUNCTIONS, Arithmetic, Each, Name, OpCall, Sum, Value, evaluate, parts
from seqflow.signature.op_properties import NONE
from seqflow.signature.rows import NamedOutput

Inputs = Mapping[str, Term | list[Term]]
"""Value terms of the given inputs, by their names in the signature."""


def name_values(
    op: OpDef,
    inputs: Inputs,
    attributes: Mapping[str, Any],
    results: Sequence[NamedOutput],
    equalities: Equalities,
) -> Facts:
    """Set the values of the outputs of a call, and return the facts that new rows are made from."""
    depends = _flat(inputs.values())
    key = attributes_key(op, attributes)
    for output in results:
        argument = output.argument
        term = output_value(
            op, argument.field, output.repetition, inputs, attributes, equalities, depends, key
        )
        equalities.set_value(output.tensor, term, argument.may_be_lengths)
    if not op.claims.steps:
        return Facts(depends, key)
    given = {name for name, _ in key}
    padded = {
        name: definition(inputs, attributes, equalities)
        for name, definition, condition in op.padded
        if condition.holds(given)
    }
    return Facts(depends, key, padded)


def given_attributes(op: OpDef, attributes: Mapping[str, Any]) -> set[str]:
    """Return the attributes that differ from their defaults."""
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
    """Return the value term of one output, after recording the op's claims about it."""
    terms, claims = equalities.terms, op.claims
    if claims.value is not None:
        value: Term = claims.value(equalities, inputs, attributes)
        return value
    if not claims.pure:
        # the serial number makes it equal to nothing else
        return terms.make("made", (op.name, terms.serial()))
    signature = op.signature
    named = claims.depends.get(output) if claims.depends else None
    if named is not None:
        given: tuple[Any, ...] = tuple([name for name in named if name in inputs])
        depends = _flat([inputs[name] for name in given])
    else:
        given = tuple(inputs)
        depends = _flat(inputs.values()) if depends is None else depends
    if signature.listed:
        given = tuple([(name, len(v)) if isinstance(v := inputs[name], list) else name for name in given])
    alone = "" if len(signature.outputs) == 1 else output
    label = f"{output}.{repetition}" if signature.gives_lists else alone
    key = attributes_key(op, attributes) if key is None else key
    # x + alpha · y does not commute unless alpha is 1
    kind = "commutative" if claims.commutes and attributes.get("alpha", 1) == 1 else "call"
    term = terms.make(kind, (op.name, label, given, key), *depends)
    if claims is not NONE and not term.is_claimed:
        # equal calls share a term, and its claims are recorded only once
        term.is_claimed, term.is_moved = True, bool(claims.moves)
        _claim(op, output, term, inputs, attributes, key, equalities)
    return term


def attributes_key(op: OpDef, given: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the attributes that differ from their defaults, in a hashable form."""
    if not op.attributes:
        return ()
    key = tuple(
        [
            (one.name, value)
            for one in op.attributes
            if (value := given[one.name]) is not one.default
            and not (type(value) is type(one.default) and value == one.default)
            and one.name != "out"
        ]
    )
    try:
        hash(key)
    except TypeError:
        return tuple([(name, frozen(value)) for name, value in key])
    return key


def _flat(values: Any) -> list[Term]:
    found: list[Term] = []
    for value in values:
        if isinstance(value, Term):
            found.append(value)
        else:
            found += value
    return found


# Claims


def _claim(
    op: OpDef,
    output: str,
    term: Term,
    inputs: Inputs,
    attributes: Mapping[str, Any],
    key: Sequence[tuple[str, Any]],
    equalities: Equalities,
) -> None:
    terms, claims = equalities.terms, op.claims
    definition = op.definitions.get(output)
    if definition is not None and (
        equalities.all_declared or not _is_of_one(op.signature.definitions[output], inputs)
    ):
        equalities.unite(term, definition(inputs, attributes, equalities), op.name)
    if claims.fold is not None and term.kind == "commutative":
        folded = _folded(term, claims.fold, equalities)
        if folded is not None:
            equalities.unite(term, folded, op.name)
    masked = claims.masks.get(output)
    if masked is not None:
        width = attributes.get("max_length")
        multiple = attributes.get("multiple_of", 1) if width is None else 1
        layout = (attributes.get("side", "right"), width, multiple)
        equalities.unite(term, terms.make("mask", layout, inputs[masked]), op.name)  # type: ignore[arg-type]
    describes = claims.describes.get(output)
    if describes is not None and any(terms.find(term).vector is not None for term in _flat(inputs.values())):
        space, condition = describes
        rows = _spaces(space, inputs, equalities) if condition.holds([name for name, _ in key]) else []
        if rows:
            equalities.unite(terms.described(term), rows[0], op.name)
    if claims.inverse is not None:
        given_back = _given_back(op, output, inputs, attributes, equalities)
        if given_back is not None:
            equalities.unite(term, given_back, op.name)


def _folded(term: Term, fold: Callable[[int, int], int], equalities: Equalities) -> Term | None:
    """Return lengths combined with one number instead of two: `n + 3` for `n + 1 + 2`; None if there are not two."""
    terms = equalities.terms
    of, number = _with_number(term, terms)
    if of is None or number is None:
        return None
    for inner in terms.members(of):
        if inner.kind == "commutative" and inner.data == term.data:
            lengths, known = _with_number(inner, terms)
            if lengths is not None and known is not None and terms.find(lengths).vector is not None:
                return terms.make(
                    "commutative", term.data, lengths, _literal(fold(known, number), equalities)
                )
    return None


def _with_number(call: Term, terms: Terms) -> tuple[Term | None, int | None]:
    """Return the operand of a call that is not a number, and the number; None for both if there is no such pair."""
    numbers = [_number(one, terms) for one in call.args]
    if len(numbers) != 2 or (numbers[0] is None) == (numbers[1] is None):
        return None, None
    return (call.args[1], numbers[0]) if numbers[1] is None else (call.args[0], numbers[1])


def _number(term: Term, terms: Terms) -> int | None:
    found = (one.data[1] for one in terms.members(term) if one.kind == "literal" and one.data[0] == "int")
    return next(found, None)


def _is_of_one(definition: Value, inputs: Inputs) -> bool:
    """Return whether a definition `op(*xs)` is of one tensor, from which the output may differ in dtype."""
    match definition:
        case OpCall(arguments=(Each(name=name),)):
            return len(_flat([inputs[name]])) == 1
    return False


TermOf = Callable[[Inputs, Mapping[str, Any], Equalities], Term]
"""Function that makes the term of a definition, for the inputs and attributes of one call."""


def read_term(op: OpDef, value: Value) -> TermOf:
    """Return a function that makes the term of a definition of an op."""
    names = {part.name for part in parts(value) if isinstance(part, (Name, Each))}
    if isinstance(value, Name):
        name = value.name
        if name in op.input_names:
            return lambda inputs, attributes, equalities: inputs[name]  # type: ignore[return-value]
        return lambda inputs, attributes, equalities: _literal(attributes[name], equalities)
    if names.isdisjoint(op.input_names):
        return lambda inputs, attributes, equalities: _literal(evaluate(value, attributes), equalities)
    match value:
        case OpCall(op=function, arguments=arguments, keywords=keywords):
            return _read_call(op, op.claims.look_up(function), arguments, keywords)
        case Arithmetic(operator=operator, left=left, right=right):
            return _read_call(op, op.claims.look_up(FUNCTIONS[operator]), (left, right), ())
    raise TypeError(value)


def _read_call(
    op: OpDef, other: OpDef, arguments: Sequence[Value], keywords: Sequence[tuple[str, Value]]
) -> TermOf:
    names = [argument.name for argument in other.signature.input_arguments]
    output = other.output_names[0]

    def call(given: Sequence[Term], attributes: Mapping[str, Any], equalities: Equalities) -> Term:
        own = {keyword: evaluate(one, attributes) for keyword, one in keywords}
        return output_value(
            other, output, 0, dict(zip(names, given, strict=False)), other.complete(own), equalities
        )

    if isinstance(arguments[0], Each):
        each = arguments[0].name
        return lambda inputs, attributes, equalities: reduce(
            lambda one, two: call((one, two), attributes, equalities), _flat([inputs[each]])
        )
    readers = [read_term(op, one) for one in arguments]
    return lambda inputs, attributes, equalities: call(
        [read(inputs, attributes, equalities) for read in readers], attributes, equalities
    )


def _literal(value: Any, equalities: Equalities) -> Term:
    return equalities.terms.make("literal", literal(value))


def _spaces(space: Value, inputs: Inputs, equalities: Equalities) -> list[Term]:
    """Return the terms of the rows, or values, in a claim: all tensors of a list; none for the name of an axis."""
    terms = equalities.terms
    match space:
        case Sum(of=name):
            return [terms.described(one) for one in _flat([inputs[name]])]
        case OpCall(op=kind, arguments=arguments):
            parts = [one for argument in arguments for one in _spaces(argument, inputs, equalities)]
            return [terms.make(kind, None, *parts)] if parts else []
        case Name(name=name):
            return _flat([inputs[name]]) if name in inputs else []
    raise TypeError(space)


def _given_back(
    op: OpDef, output: str, inputs: Inputs, attributes: Mapping[str, Any], equalities: Equalities
) -> Term | None:
    """Return the input of the inverse op that an output gives back, if the inputs are its results."""
    name, condition = op.claims.inverse  # type: ignore[misc]
    other = op.claims.look_up(name)
    made = [argument.field for argument in other.signature.output_arguments]
    taken = [argument.name for argument in op.signature.input_arguments]
    its = {name: "values" if name == taken[0] and "values" in made else name for name in inputs}
    originals: dict[str, Term] = {}
    depends = op.claims.depends.get(output, tuple(inputs))
    for name, term in inputs.items():
        if its[name] not in made or name not in depends:
            continue
        call = _call_of(term, str(other.name), its[name] if len(made) > 1 else "", equalities)
        if call is None:
            return None
        _, _, given, key = call.data
        theirs = other.complete(dict(key))
        shared = [one for one in attributes if one in theirs and one != "out"]
        if any(frozen(theirs[one]) != frozen(attributes[one]) for one in shared):
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
    if not all(_counts(attributes.get(one), originals.get("lengths"), equalities) for one in condition.given):
        return None
    first = other.signature.input_arguments[0].name
    return originals.get(first if output in ("values", "data") else output)


def _counts(number: Any, lengths: Term | None, equalities: Equalities) -> bool:
    """Return whether a number is proved to be the number of lengths."""
    spec = None if lengths is None else equalities.specs.get(equalities.terms.find(lengths))
    return bool(
        spec is not None
        and spec.shape.dimensions
        and equalities.compare(spec.shape.dimensions[0], Dimension.of(number)) is Comparison.EQUAL
    )


def _call_of(term: Term | list[Term], name: str, field: str, equalities: Equalities) -> Term | None:
    """Return the call of the op that made this value, or an equal one; None if there is none."""
    for one in equalities.terms.members(term) if isinstance(term, Term) else ():
        if one.kind == "call" and one.data[:2] == (name, field):
            return one
    return None
