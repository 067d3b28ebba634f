"""Bind filters given as text to the columns of a source: a tree with literals of the columns' types.

Arrow compares exactly if both sides have one type, so each literal is converted to the type of the column that it is
compared with: an integer column is never compared as a float, which would round it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import pyarrow as pa
from pyarrow import types

from seqflow.errors import UnknownColumnError, nearest
from seqflow.expression import filter_syntax
from seqflow.expression.filter_parser import refuse
from seqflow.providers.filter.arrow_expressions import ArrowCall, ArrowLiteral, Field, Node, call, cast
from seqflow.providers.filter.arrow_values import comparable_schema, comparable_type
from seqflow.providers.filter.comparisons import (
    COMPARISONS,
    MIRRORED,
    Value,
    advice,
    compared,
    comparison_class,
    exact_limit,
    plain_literal,
    value_type,
    written_form,
)
from seqflow.providers.filter.own_functions import HASHED
from seqflow.record.arrow_types import LISTS, TEXTS, is_any

_ARITHMETIC = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}
_DATES = (types.is_date, types.is_timestamp)


def bind_filter(text: str, tree: filter_syntax.Filter, schema: pa.Schema) -> Node:
    """Return the tree of a filter over columns of these names and types.

    Null is neither true nor false, and `not` keeps it null. Raise FilterError, with the place, if types
    don't fit, and UnknownColumnError for a name that is not a column.
    """
    if next(filter_syntax.columns_of(tree), None) is None:
        refuse(text, 0, "the filter names no column")
    return _Binder(text, comparable_schema(schema, halves=True)).condition(tree, negated=False)


@dataclass(frozen=True, slots=True)
class _Binder:
    text: str
    schema: pa.Schema
    tells_null: bool = False
    """Whether null must be distinguished from false: both leave a row out, unless the filter asks for `== False`."""

    def fail(self, tree: filter_syntax.Filter, message: str, advice: str = "") -> NoReturn:
        refuse(self.text, tree.token.start, message, advice)

    def condition(self, tree: filter_syntax.Filter, *, negated: bool) -> Node:
        """Return a condition, or its negation: `not` is moved inwards to the comparisons."""
        match tree:
            case filter_syntax.Negation(condition=inner):
                return self.condition(inner, negated=not negated)
            case filter_syntax.Connection(is_and=is_and, conditions=parts):
                found = [self.condition(part, negated=negated) for part in parts]
                return _joined("and_kleene" if is_and != negated else "or_kleene", found)
            case filter_syntax.ComparisonTest():
                return _inverted(self.comparison(tree), negated)
            case filter_syntax.Membership():
                return self.membership(tree, tree.negated != negated)
            case filter_syntax.NullTest(value=inner):
                is_valid = tree.negated != negated
                return call("is_valid" if is_valid else "is_null", self.value(inner).expression)
        value = self.value(tree)
        if not types.is_boolean(value.type):
            self.fail(
                tree,
                f"{self.shown(tree)} is {value.type}, expected a condition",
                advice(self.shown(tree), value.type),
            )
        return _inverted(value.expression, negated)

    def value(self, tree: filter_syntax.Filter) -> Value:
        match tree:
            case filter_syntax.Column():
                return self.column(tree)
            case filter_syntax.Operation(name=name, arguments=arguments) if name == filter_syntax.LENGTHS:
                if len(arguments) != 1:
                    self.fail(tree, f"{filter_syntax.LENGTHS} takes 1 argument, found {len(arguments)}")
                return self.lengths(tree, self.value(arguments[0]))
            case filter_syntax.Operation(name="hash"):
                return self.hash(tree)
            case filter_syntax.Operation():
                return self.arithmetic(tree)
            case filter_syntax.Constant(value=constant):
                return Value(*plain_literal(constant))
        return Value(replace(self, tells_null=True).condition(tree, negated=False), pa.bool_())

    def column(self, tree: filter_syntax.Column) -> Value:
        name = tree.name
        parts = tree.path or ([name] if name in self.schema.names else name.split("."))
        if parts[0] not in self.schema.names:
            known = self.schema.names
            raise UnknownColumnError(
                f"where: there is no column {name!r}{nearest(name, known)}; there are {', '.join(known)}"
            )
        kind, path = self.schema.field(parts[0]).type, [parts[0]]
        for part in parts[1:]:
            is_coded, kind = types.is_dictionary(kind), value_type(kind)
            if part == filter_syntax.LENGTHS and (types.is_map(kind) or is_any(kind, (*LISTS, *TEXTS))):
                return self.lengths(tree, Value(Field((*path,)), kind, is_coded))
            names = [child.name for child in kind] if types.is_struct(kind) else []
            if part not in names:
                what = f"{'.'.join(path)} is {kind}, which has no field {part!r}{nearest(part, names)}"
                raise UnknownColumnError(f"where: {what}")
            kind = kind.field(part).type
            path.append(part)
        return Value(Field((*path,)), value_type(kind), types.is_dictionary(kind))

    def lengths(self, tree: filter_syntax.Filter, value: Value) -> Value:
        """Return the lengths of lists in elements, or of texts in bytes."""
        if types.is_map(value.type) or is_any(value.type, LISTS):
            return Value(call("list_value_length", value.expression), pa.int64())
        if is_any(value.type, TEXTS):
            texts = cast(value.expression, value.type) if value.is_coded else value.expression
            return Value(call("binary_length", texts), pa.int64())
        return self.fail(tree, f"{value.type} has no lengths, expected lists or texts")

    def hash(self, tree: filter_syntax.Operation) -> Value:
        """Return the hash of integers or texts, by their values."""
        column, *rest = tree.arguments or (tree,)
        if len(rest) > 1 or column is tree:
            self.fail(tree, f"hash takes one column, and seed=, found {len(tree.arguments)} arguments")
        seed = rest[0] if rest else filter_syntax.Constant(tree.token, 0)
        if not (
            isinstance(seed, filter_syntax.Constant) and type(seed.value) is int and 0 <= seed.value < 2**64
        ):
            what = "the seed of a hash is not an integer from 0 to 2**64 - 1"
            self.fail(seed, what, "write hash(user_id, seed=1)")
        value = self.value(column)
        if value.type not in HASHED:
            hint = "the bits of floats, decimals and times depend on their unit and width"
            what = f"{self.shown(column)} is {value.type}, expected integers or texts to hash"
            self.fail(column, what, hint)
        is_plain = not value.is_coded and isinstance(value.expression, Field)
        # dictionaries, and lengths, which Arrow counts in int32, have another type than their values here
        plain = value.expression if is_plain else cast(value.expression, value.type)
        state = ArrowLiteral(pa.scalar(seed.value, pa.uint64()))
        return Value(call(f"seqflow.hash_{value.type}", plain, state), pa.int64())

    def arithmetic(self, tree: filter_syntax.Operation) -> Value:
        known = (*_ARITHMETIC, "/", "%", "abs")
        if tree.name not in known:
            hint = "other functions are for keep=, prepare= and net=, which get the rows that are kept"
            expected = f"{filter_syntax.LENGTHS}, hash, {', '.join(known)}"
            self.fail(tree, f"a filter has no {tree.name!r}, expected {expected}", hint)
        values = [self.value(one) for one in tree.arguments]
        if len(values) not in {"abs": (1,), "-": (1, 2)}.get(tree.name, (2,)):
            self.fail(tree, f"{tree.name} takes another number of arguments, found {len(values)}")
        for one, value in zip(tree.arguments, values, strict=True):
            if not (types.is_integer(value.type) or types.is_floating(value.type)):
                self.fail(
                    one,
                    f"{self.shown(one)} is {value.type}, expected numbers",
                    advice(self.shown(one), value.type),
                )
        operands = [value.expression for value in values]
        if tree.name == "/":
            floats = (cast(one, pa.float64(), safe=False) for one in operands)
            return Value(call("divide", *floats), pa.float64())
        is_float = any(types.is_floating(value.type) for value in values)
        kind = pa.float64() if is_float else pa.int64()
        if tree.name == "%" and is_float:
            self.fail(tree, "% takes integers, found a float")
        if tree.name == "%":  # no casts of int64, which the text of the filter would show
            plain = (one.expression if _has_type(one, kind) else cast(one.expression, kind) for one in values)
            return Value(call("seqflow.remainder", *plain), kind)
        # integers beyond 2**53 are rounded to floats, but uint64 beyond int64 is an error
        operands = [cast(one, kind, safe=not is_float) for one in operands]
        if tree.name == "abs":
            return Value(call("abs_checked", *operands), kind)
        if len(operands) == 1:
            return Value(call("negate_checked", *operands), kind)
        return Value(call(_ARITHMETIC[tree.name], *operands), kind)

    def comparison(self, tree: filter_syntax.ComparisonTest) -> Node:
        operator, left, right = tree.token.text, tree.left, tree.right
        if isinstance(left, filter_syntax.Constant):
            operator, left, right = MIRRORED[operator], right, left
        if isinstance(left, filter_syntax.Constant):
            self.fail(left, "this compares two literals, expected a column on one side")
        value = self.value(left)
        self.comparable(left, value.type)
        if isinstance(right, filter_syntax.Constant):
            operator, scalar = self.with_literal(operator, value.type, left, right)
            return call(COMPARISONS[operator], value.expression, ArrowLiteral(scalar))
        other = self.value(right)
        self.comparable(right, other.type)
        if comparison_class(value.type) != comparison_class(other.type):
            self.mismatch(tree, left, value.type, f"{self.shown(right)}, which is {other.type}")
        return compared(operator, value, other)

    def comparable(self, tree: filter_syntax.Filter, kind: pa.DataType) -> None:
        if comparison_class(kind) is None:
            self.fail(
                tree, f"{self.shown(tree)} is {kind}, which is not compared", advice(self.shown(tree), kind)
            )

    def mismatch(
        self, place: filter_syntax.Filter, left: filter_syntax.Filter, kind: pa.DataType, other: str
    ) -> NoReturn:
        self.fail(place, f"{self.shown(left)} is {kind} and does not compare with {other}")

    def with_literal(
        self, operator: str, kind: pa.DataType, left: filter_syntax.Filter, right: filter_syntax.Constant
    ) -> tuple[str, pa.Scalar]:
        """Return an operator and a scalar of the type that compare each of its values as the literal would."""
        if comparison_class(kind) == "numbers" and type(right.value) in (int, float):
            return exact_limit(operator, right, kind)
        return operator, self.literal(kind, left, right)

    def literal(
        self, kind: pa.DataType, left: filter_syntax.Filter, right: filter_syntax.Constant
    ) -> pa.Scalar:
        """Convert a literal that is not a number to a scalar of the type that it is compared with."""
        constant = right.value
        if types.is_boolean(kind) and isinstance(constant, bool):
            return pa.scalar(constant)
        if isinstance(constant, str) and comparison_class(kind) == "texts":
            is_text = types.is_string(kind) or types.is_large_string(kind)
            return pa.scalar(constant if is_text else constant.encode())
        if isinstance(constant, str) and (is_any(kind, _DATES) or types.is_time(kind)):
            return self.time(kind, left, right)
        return self.mismatch(right, left, kind, f"the literal {right.token.text}{written_form(kind)}")

    def time(self, kind: pa.DataType, left: filter_syntax.Filter, right: filter_syntax.Constant) -> pa.Scalar:
        try:
            if types.is_time(kind):
                return (
                    pa.scalar(f"1970-01-01T{right.value}")
                    .cast(pa.timestamp("ns"))
                    .cast(pa.time64("ns"))
                    .cast(kind)
                )
            return pa.scalar(right.value).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            self.fail(
                right, f"{self.shown(left)} is {kind}, and {right.token.text} is none{written_form(kind)}"
            )

    def membership(self, tree: filter_syntax.Membership, negated: bool) -> Node:
        value = self.value(tree.value)
        self.comparable(tree.value, value.type)
        expression = value.expression
        found = [self.with_literal("==", value.type, tree.value, one) for one in tree.members]
        # a number that the type cannot hold has another operator: no value of the column equals it
        members = [scalar for operator, scalar in found if operator == "=="]
        has_nan = False
        # is_in compares bits: it finds only NaN of the same bits, and tells 0.0 from -0.0
        if types.is_floating(value.type):
            has_nan = any(math.isnan(one.as_py()) for one in members)
            members += [pa.scalar(-one.as_py(), one.type) for one in members if one.as_py() == 0]
        kind = comparable_type(value.type)
        of_kind = pa.array([one.cast(kind) for one in members], kind)
        is_in: Node = ArrowCall("is_in", (expression,), members=of_kind)
        if has_nan:
            is_in = call("or_kleene", is_in, call("is_nan", expression))
        is_in = _inverted(is_in, negated)
        if self.tells_null:
            return call(
                "if_else", call("is_valid", expression), is_in, ArrowLiteral(pa.scalar(None, pa.bool_()))
            )
        # is_in is false for null, so its negation has to leave null out
        return call("and_kleene", call("is_valid", expression), is_in) if negated else is_in

    def shown(self, tree: filter_syntax.Filter) -> str:
        return tree.name if isinstance(tree, filter_syntax.Column) else repr(tree.token.text)


def _has_type(value: Value, kind: pa.DataType) -> bool:
    """Return whether Arrow sees this type, too: dictionaries, and lengths, which it counts in int32, have another."""
    node = value.expression
    is_length = isinstance(node, ArrowCall) and node.function in ("list_value_length", "binary_length")
    return bool(value.type == kind) and not value.is_coded and not is_length


def _joined(function: str, parts: Sequence[Node]) -> Node:
    """Join the conditions in pairs, and the pairs in pairs: a chain would be nested as deep as it is long."""
    while len(parts) > 1:
        pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
        parts = [call(function, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def _inverted(node: Node, negated: bool) -> Node:
    return call("invert", node) if negated else node
