"""Element by element: every function of the expression language, and expressions by their text."""

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import cleandoc
from operator import add
from typing import Any, Literal

import numpy as np

from seqflow.errors import ExpressionError, OpError, OpMemoryError, OpTypeError, SeqflowError
from seqflow.expression import Expression, functions, parser
from seqflow.expression.functions import FAILURES, Function, by_name, table
from seqflow.kernels.arrays import Array
from seqflow.registry import OpDef, get, register
from seqflow.registry.description import help_text
from seqflow.registry.gradients import Gradients, NoDerivative
from seqflow.registry.python_signature import python_signature
from seqflow.shape import Equalities, InferenceContext
from seqflow.shape.index_targets import either
from seqflow.shape.terms import Term, Terms, literal
from seqflow.signature import Attribute, limits, parse
from seqflow.signature.op_properties import NONE, Claims

Call = Callable[..., Array]

_ALPHA = Attribute("alpha", "scalar", default=1)
_OUT = Attribute("out", "object", default=None)
_EXPR = Attribute("expr", "object")

_RULES: dict[functions.Rule, str] = {
    functions.same: "the common dtype of the operands",
    functions.number: "the common dtype of the operands; bools count as int64",
    functions.floating: "the common dtype of the operands, float64 for integers and bools",
    functions.integer: "the common integer dtype of the operands, or bool",
    functions.shifted: "the common integer dtype of the operands",
    functions.branches: "the common dtype of x and y",
    functions.truth: "bool",
}
_ORIGINS = {
    "abs": "Abs", "acos": "Acos", "add": "Add, Sum", "asin": "Asin", "atan": "Atan", "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "ceil": "Ceil", "clip": "Clip", "cos": "Cos",
    "cosh": "Cosh", "div": "Div", "equal": "EQ", "erf": "Erf", "exp": "Exp", "floor": "Floor", "fmod": "Mod",
    "greater": "GT", "greater_equal": "GE", "less": "LT", "less_equal": "LE", "log": "Log", "log1p": "Log1p",
    "logical_and": "And", "logical_not": "Not", "logical_or": "Or", "logical_xor": "Xor", "maximum": "Max",
    "minimum": "Min", "mul": "Mul", "neg": "Negative", "not_equal": "NE", "pow": "Pow",
    "reciprocal": "Reciprocal", "relu": "Relu", "rsqrt": "Rsqrt", "sigmoid": "Sigmoid", "sign": "Sign",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "square": "Sqr", "sub": "Sub", "tan": "Tan", "tanh": "Tanh",
    "where": "Where",
}  # fmt: skip
"""Operators of Caffe2, by the names of functions."""
_COMMUTATIVE = {
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "logical_and", "logical_or", "logical_xor", "maximum",
    "minimum", "mul", "not_equal",
}  # fmt: skip
_FOLDS: Mapping[str, Callable[[int, int], int]] = {"add": add, "maximum": max, "minimum": min}
_BOUNDS = {
    "add": limits.bound_of_sum, "mul": limits.bound_of_product,
    "maximum": limits.bound_of_maximum, "minimum": limits.bound_of_minimum,
}  # fmt: skip
_CHOOSES = {
    "where": ("x", "y"), "maximum": ("x", "y"), "minimum": ("x", "y"), "clip": ("x", "low", "high"),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), ("x",)),
}  # fmt: skip
"""Operands whose elements a function returns unchanged: the result points at the same rows as they do."""


def _declare(row: Function) -> OpDef:
    """Return the op of a row of the table."""
    attributes = (_OUT,) if row.alpha is None else (_ALPHA, _OUT)
    call = _checked(row)
    inputs = ", ".join(f"{parameter}[*_]" for parameter in row.parameters)
    signature = parse(f"{inputs} -> result[*_]")
    return _described(
        OpDef(
            row.name, signature, attributes, call, call, None, _docs(row),
            caffe2=_ORIGINS.get(row.name), shape=_shape_of(row),
            claimed=_claims_of(row.name), grad=_gradients_of(row),
        )
    )  # fmt: skip


def _claims_of(name: str) -> Claims:
    commutes, moves = name in _COMMUTATIVE, _CHOOSES.get(name, ())
    if not (commutes or moves):
        return NONE
    return Claims(commutes=commutes, fold=_FOLDS.get(name), bound=_BOUNDS.get(name), moves=moves)


def _gradients_of(row: Function) -> Gradients:
    """Return the formulas of the operands' gradients; each of several is summed to the shape of its operand."""
    if not row.derivatives:
        return NoDerivative("it is piecewise constant")
    written = {
        name: re.sub(r"\b([dr])\b", lambda found: "d.result" if found[1] == "d" else "out.result", text)
        for name, text in row.derivatives.items()
    }
    if row.arity == 1 and not row.strong:
        return written
    return {name: f"sum_to({written[name]}, {name})" if name in written else None for name in row.parameters}


def _described(definition: OpDef) -> OpDef:
    """Return the op after its function has got a name, a docstring and a signature, as `@op` gives them."""
    call: Any = definition.call
    call.__name__ = call.__qualname__ = definition.name
    call.__doc__ = help_text(definition)
    call.__signature__ = python_signature(
        definition.signature, definition.attributes, definition.result, variadic=definition.variadic
    )
    return definition


def _checked(row: Function) -> Call:
    def call(*operands: Any, out: Array | None = None, **named: Any) -> Array:
        alpha = named.pop("alpha", 1) if row.alpha is not None else 1
        values = row.in_order(operands, named) if named or len(operands) != row.arity else list(operands)
        try:
            # 1.0 is not skipped: a float factor makes integers float64
            if row.alpha is not None and not (type(alpha) is int and alpha == 1):
                values[row.alpha] = _scaled(row.name, values[row.alpha], alpha)
            return row(*values, out=out)
        except ExpressionError as error:
            advice, error.advice = error.advice, ""
            raise OpError(f"{error} ({row})", advice=advice) from None
        except SeqflowError:
            raise
        except MemoryError as error:
            raise OpMemoryError(f"{row.name}: {error} ({row})") from None
        except ValueError as error:  # NumPy raises it for shapes with more elements than it can count
            raise OpError(f"{row.name}: {error} ({row})") from None

    return call


def _scaled(name: str, value: Any, alpha: Any) -> Array:
    try:
        return by_name["mul"](value, _ALPHA.check(alpha))
    except OpError as error:
        error.in_op(name)
        raise
    except ExpressionError as error:
        raise OpError(f"alpha is {alpha!r}: {error.args[0]}").in_op(name) from None


def _docs(row: Function) -> str:
    operands = [f"np.array({example})" for example in _example(row)]
    with np.errstate(all="ignore"):
        result = row(*(np.array(example) for example in _example(row)))
    names = f" (or {', '.join(row.aliases)})" if row.aliases else ""
    written = "" if row.operator is None else ("x " if row.arity == 2 else "") + row.operator + (
        " y" if row.arity == 2 else "x"
    )  # fmt: skip
    how = f"\n\nIn an expression: {row}{names}" + (f", written `{written}`" if written else "") + "."
    return (
        f"{row.doc}\n\nresult = {row.formula}; its dtype is {result_dtype(row)}. Operands broadcast as in NumPy."
        f"{how}\n\n>>> {row.name}({', '.join(operands)})\n{result!r}"
    )


def result_dtype(row: Function) -> str:
    """Return the dtype of the result, in words."""
    return _RULES.get(row.rule, row.name)


def _example(row: Function) -> list[list[Any]]:
    if row.name == "where":
        return [[True, False], [1, 2], [3, 4]]
    if row.name == "clip":
        return [[1, 5], [2, 2], [4, 4]]
    numbers: list[list[Any]] = (
        [[6, 3], [2, 1]] if "f" not in row.kinds or row.divides else [[1.0, 2.5], [2.0, 0.5]]
    )
    return numbers[: row.arity]


def _shape_of(row: Function) -> Callable[[InferenceContext], None]:
    def shape(ctx: InferenceContext) -> None:
        dtypes = [ctx.dtype(name) for name in row.parameters]
        try:
            dtype = np.dtype(row.result([known for known in dtypes if known is not None]))
        except FAILURES as failure:
            raise OpTypeError(row.reason(failure, row.parameters)) from None
        result, axes = ctx.broadcast_inputs()
        ctx.set_output(0, result, axes=axes, dtype=dtype)

    return shape


def _shape_of_expression(ctx: InferenceContext) -> None:
    expression = _compiled(ctx.attr("expr"))
    dtypes = [ctx.dtype(i) for i in range(ctx.num_inputs)]
    try:
        dtype = expression.dtype(*dtypes)
    except ExpressionError as error:
        raise OpTypeError(str(error)) from None
    result, axes = ctx.broadcast_inputs()
    ctx.set_output(0, result, axes=axes, dtype=dtype)
    points: list[_Points] = [
        ctx.points(i) or (None if ctx.input(i).dimensions == () else "any") for i in range(ctx.num_inputs)
    ]
    if dtype.kind in "iu" and any(isinstance(one, Term) for one in points):
        found = _points_of_expression(expression, points, ctx.equalities.terms)
        if isinstance(found, Term):
            ctx.set_points(0, found)


_Points = Term | Literal["any"] | None
"""Rows that integers point at; "any" if that is not known of them; None for a single number."""


def _points_of_expression(expression: Expression, operands: Sequence[_Points], terms: Terms) -> _Points:
    """Return the rows that the result's integers point at, if functions have only chosen among operands that do."""
    stack: list[_Points] = []
    for node in parser.postorder(expression.tree):
        if isinstance(node, parser.Operand):
            stack.append(operands[node.index])
        elif isinstance(node, parser.Literal):
            stack.append(None)
        else:
            assert isinstance(node, parser.Call)
            given = dict(
                zip(node.function.parameters, stack[len(stack) - len(node.arguments) :], strict=True)
            )
            del stack[len(stack) - len(node.arguments) :]
            choices = get(node.function.name).claims.moves
            found = [given[name] for name in choices or given]
            known = [one for one in found if isinstance(one, Term)]
            is_computed = not choices and bool(known)
            stack.append("any" if "any" in found or is_computed else either(terms, known))
    return stack[0]


def _value_of_expression(
    equalities: Equalities, inputs: Mapping[str, Any], attributes: Mapping[str, Any]
) -> Term:
    """Return the value of an expression, the same as of its functions called one after another."""
    from seqflow.registry.value_numbering import output_value

    expression = _compiled(attributes["expr"])
    stack: list[Term] = []
    for node in parser.postorder(expression.tree):
        if isinstance(node, parser.Operand):
            stack.append(inputs["operands"][node.index])
        elif isinstance(node, parser.Literal):
            stack.append(equalities.terms.make("literal", literal(node.value)))
        else:
            assert isinstance(node, parser.Call)
            op = get(node.function.name)
            operands = stack[len(stack) - len(node.arguments) :]
            del stack[len(stack) - len(node.arguments) :]
            named = dict(zip(node.function.parameters, operands, strict=True))
            stack.append(output_value(op, op.output_names[0], 0, named, op.complete({}), equalities))
    return stack[0]


def _compiled(expr: Any) -> Expression:
    if expr is None:
        missing = OpError("expr is missing, expected the text of an expression: expr='2*x + y'")
        raise missing.in_op("expression")
    if isinstance(expr, Expression):
        return expr
    if not isinstance(expr, str):
        wrong = OpTypeError(f"expr is {expr!r} ({type(expr).__name__}), expected text")
        raise wrong.in_op("expression")
    return Expression(expr)


def _expression(*operands: Any, expr: Any = None, out: Array | None = None, **named: Any) -> Array:
    """Compute an expression, given by its text, on its operands.

    The operands stand for the names of the text in the order of their appearance, or for `@0`, `@1`, …; they may
    also be given by name. They broadcast as in NumPy. Use `Expression` to read a text once and compute it often.

    Raises OpError without `expr`, OpTypeError for an `expr` that is not text, and ExpressionError, with a caret at
    the place, for malformed text and for operands of wrong dtypes.

    >>> expression(np.array([22.0]), np.array([4.0]), expr="sqrt((2*x + y)/12)")
    array([2.])
    """
    try:
        return _compiled(expr)(*operands, out=out, **named)
    except SeqflowError:
        raise
    except MemoryError as error:
        raise OpMemoryError(str(error)).in_op("expression") from None
    except ValueError as error:  # NumPy raises it for shapes with more elements than it can count
        raise OpError(str(error)).in_op("expression") from None


for _row in table:
    register(_declare(_row))
register(
    _described(
        OpDef(
            "expression", parse("{operands[*_]}+ -> result[*_]"), (_EXPR, _OUT), _expression, _expression, None,
            cleandoc(_expression.__doc__ or ""),
            shape=_shape_of_expression, variadic=True, expression=_EXPR.name,
            claimed=Claims(value=_value_of_expression),
        )
    )
)  # fmt: skip
