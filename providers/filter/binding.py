"""Bind filters given as text to the columns of a source: a tree with literals of the columns' types.

Arrow compares exactly if both sides have one type, so each literal is converted to the type of the column that it is
compared with: an integer column is never compared as a float, which would round it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import NoReturn

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import UnknownColumnError, nearest
from seqflow.expression import filter_syntax
from seqflow.expression.filter_parser import refuse
from seqflow.expression.filter_syntax import LENGTHS, Constant, Scalar
from seqflow.providers.filter.arrow_expressions import (
    OPERATORS,
    ArrowCall,
    ArrowLiteral,
    Field,
    Node,
    call,
    cast,
)
from seqflow.providers.filter.arrow_values import comparable_schema, comparable_type
from seqflow.providers.filter.own_functions import HASHED
from seqflow.record.arrow_types import LISTS, TEXTS, is_any


def plain_literal(constant: Scalar) -> tuple[Node, pa.DataType]:
    """Return a literal as a tree of its own, with its type; an integer beyond int64 is a float."""
    is_large = isinstance(constant, int) and not -(2**63) <= constant < 2**63
    scalar = pa.scalar(float(constant) if is_large else constant)
    return ArrowLiteral(scalar), scalar.type


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's values; any other type itself."""
    return kind.value_type if types.is_dictionary(kind) else kind


def comparison_class(kind: pa.DataType) -> str | None:
    """Return the class of types with which values of a type are compared; None if they cannot be compared."""
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_boolean(kind):
        return "bools"
    if is_any(kind, TEXTS) or types.is_fixed_size_binary(kind):
        return "texts"
    if types.is_timestamp(kind):
        return "times without zone" if kind.tz is None else "times"
    return str(kind) if types.is_temporal(kind) else None


def exact_limit(operator: str, constant: Constant, kind: pa.DataType) -> tuple[str, pa.Scalar]:
    """Return an operator and a number of the type that compare each value of the type as the literal would.

    Integers and decimals are compared exactly, floats with the nearest float of their type.
    """
    if types.is_floating(kind):
        operator, limit = _float_limit(operator, constant.exact, kind)
        return operator, pa.scalar(limit, comparable_type(kind))
    scale = kind.scale if types.is_decimal(kind) else 0
    operator, whole = _whole_limit(operator, _shifted(constant.exact, scale), *_limits(kind))
    return operator, pa.scalar(_shifted(Decimal(whole), -scale) if types.is_decimal(kind) else whole, kind)


def _shifted(number: Decimal, places: int) -> Decimal:
    """Return a number times a power of ten, exactly: multiplying a Decimal rounds it to the context's precision."""
    sign, digits, exponent = number.as_tuple()
    return Decimal((sign, digits, exponent + places)) if isinstance(exponent, int) else number


def _whole_limit(operator: str, number: Decimal, low: int, high: int) -> tuple[str, int]:
    """Return an operator and an integer that compare each integer from `low` to `high` as the number would."""
    # ("<=", high) is true for all values, (">", high) for none: null stays null in both
    if number.is_nan():
        return ("<=", high) if operator == "!=" else (">", high)
    if number > high:
        return ("<=", high) if operator in ("<", "<=", "!=") else (">", high)
    if number < low:
        return (">=", low) if operator in (">", ">=", "!=") else ("<", low)
    floor = math.floor(number)
    if floor == number:
        return operator, floor
    if operator in ("==", "!="):
        return ("<=", high) if operator == "!=" else (">", high)
    return {"<": "<=", ">=": ">"}.get(operator, operator), floor


def _limits(kind: pa.DataType) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type; for a decimal, those of its digits without the point."""
    if types.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    bits = kind.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if types.is_signed_integer(kind) else (0, 2**bits - 1)


def _float_limit(operator: str, number: Decimal, kind: pa.DataType) -> tuple[str, float]:
    """Return an operator and the nearest float: infinity for a number beyond all floats, which counts as larger."""
    with np.errstate(over="ignore"):
        nearest = float(np.dtype(kind.to_pandas_dtype()).type(float(number)))
    if math.isfinite(nearest) or not number.is_finite():
        return operator, nearest
    if operator in ("==", "!="):
        return ("<", -math.inf) if operator == "==" else ("!=", math.nan)
    if nearest > 0:
        return ("<" if operator in ("<", "<=") else ">="), nearest
    return (">" if operator in (">", ">=") else "<="), nearest


def advice(name: str, kind: pa.DataType) -> str:
    """Return what to write instead, if a filter compares values that it cannot, or is not a condition."""
    if types.is_map(kind) or is_any(kind, LISTS):
        return f"its lengths can be compared: {name}.{LENGTHS} > 30"
    if types.is_struct(kind):
        return f"its fields can be compared: {name}.{kind.field(0).name if kind.num_fields else 'field'} == …"
    return (
        f"compare it: {name} == …" if comparison_class(kind) else "choose such rows by a function in prepare="
    )


def written_form(kind: pa.DataType) -> str:
    """Return how literals of a type are written."""
    if types.is_date(kind):
        return ": dates are written '2024-01-31'"
    if types.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        return f": times are written '2024-01-31T12:30:00{zone}', in at most the column's precision"
    if types.is_time(kind):
        return ": times of day are written '12:30:00'"
    return ""


COMPARISONS = {sign: function for function, sign in OPERATORS.items()}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_WHOLE = pa.decimal128(20)
"""Decimal type that holds all integers of 64 bits."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tree and its type; for a dictionary, the type of its values."""

    expression: Node
    type: pa.DataType
    is_coded: bool = False
    """Whether the column is dictionary-encoded."""


def compared(operator: str, one: Value, other: Value) -> Node:
    """Return the comparison of two values of one class, of any types.

    If types are unlike, values of the finer one are rounded to the coarser one. Rounding keeps the order, so only
    equal results leave the question open: there the rounded value is compared with the original one in the finer
    type. A decimal is compared with a float as literals are: as the nearest float of that type.
    """
    if _fineness(one.type) > _fineness(other.type):
        return compared(MIRRORED[operator], other, one)
    compare = COMPARISONS[operator]
    coarse, kind, fine, of = one.expression, one.type, other.expression, other.type
    if types.is_floating(kind) and types.is_decimal(of):
        # cast through text: Arrow's own cast of decimals to floats is off by some bits
        return call(compare, coarse, cast(cast(cast(fine, pa.string()), kind), comparable_type(kind)))
    if types.is_floating(kind) and types.is_integer(of):
        grid, of = pa.float64(), _WHOLE
    elif types.is_signed_integer(kind) and types.is_uint64(of):
        grid = of = _WHOLE
    elif types.is_decimal(of) and kind != of:
        grid = pa.decimal256(76, kind.scale if types.is_decimal(kind) else 0)
    elif types.is_timestamp(kind) and kind.unit != of.unit:
        grid = pa.timestamp(kind.unit, of.tz)
    else:
        return call(compare, coarse, fine)
    coarse, rounded, fine = cast(coarse, grid), cast(fine, grid, safe=False), cast(fine, of)
    exactly = call(compare, cast(rounded, of), fine)
    return call("if_else", call("equal", coarse, rounded), exactly, call(compare, coarse, rounded))


def _fineness(kind: pa.DataType) -> int:
    """Return the position of a type in its class, from coarse to fine: later types are rounded to earlier ones."""
    if types.is_timestamp(kind):
        return ("s", "ms", "us", "ns").index(kind.unit)
    if types.is_decimal(kind):
        return 3 + int(kind.scale)
    return 0 if types.is_floating(kind) else 1 + types.is_uint64(kind)


_ARITHMETIC = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}
_DATES = (types.is_date, types.is_timestamp)


def bind_filter(text: str, tree: filter_syntax.Filter, schema: pa.Schema) -> Node:
    """Return the tree of a filter over columns of these names and types.

    Null is neither true nor false, and `not` keeps it null. Raise FilterError, with the place, if types
    don't fit, and UnknownColumnError for a name that is not a column.
    """
    if next(filter_syntax.columns_of(tree), None) is None:
        refuse(text, 0, "the filter names no column")
    binder = _Binder(text, comparable_schema(schema, halves=True), frozenset(schema.names))
    return binder.condition(tree, negated=False)


@dataclass(frozen=True, slots=True)
class _Binder:
    text: str
    schema: pa.Schema
    names: frozenset[str]
    """Names of the columns."""
    tells_null: bool = False
    """Whether null must be distinguished from false: both leave a row out, unless the filter asks for `== False`."""

    def fail(self, tree: filter_syntax.Filter, message: str, advice: str = "") -> NoReturn:
        refuse(self.text, tree.token.start, message, advice)

    def unfit(self, tree: filter_syntax.Filter, kind: pa.DataType, why: str) -> NoReturn:
        self.fail(tree, f"{self.shown(tree)} is {kind}, {why}", advice(self.shown(tree), kind))

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
            self.unfit(tree, value.type, "expected a condition")
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
        parts = tree.path or ([name] if name in self.names else name.split("."))
        if parts[0] not in self.names:
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
                self.unfit(one, value.type, "expected numbers")
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
            self.unfit(tree, kind, "which is not compared")

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
