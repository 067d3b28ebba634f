"""The functions of expressions in torch's own functions: compilers fuse them, and autograd differentiates them.

dtypes follow the rules of the expression language, which are NumPy's: a quotient of integers is float64, not torch's
default dtype. bfloat16 stays bfloat16 if there is no other float.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from seqflow.errors import ExpressionError, OpTypeError
from seqflow.expression import Expression
from seqflow.expression.functions import FAILURES, DType, Function, branches, by_name, promote, truth
from seqflow.expression.parser import Call, Literal, Operand, postorder
from seqflow.torch.compiler import constant_when_traced
from seqflow.torch.dtypes import numpy_dtype, torch_dtype

Value = Tensor | bool | int | float
Program = tuple[tuple[str, ...], tuple[tuple[str, Any, int], ...]]
"""Names of the operands; then operands, literals and calls in reverse Polish order."""


def _clip(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return torch.minimum(torch.maximum(x, low), high)


def _shifted(x: Tensor, y: Tensor, left: bool) -> Tensor:
    """Return shifted bits; a shift beyond the width of the dtype leaves 0, or the sign for negative numbers."""
    # torch's shifts are those of C++, undefined for counts below 0 and from the width on
    width = torch.iinfo(x.dtype).bits
    inside = (y >= 0) & (y < width)
    places = torch.where(inside, y, 0)
    if left:
        return torch.where(inside, x << places, 0)
    return torch.where(inside, x >> places, torch.where(x < 0, -1, 0).to(x.dtype))


_TAKES_NUMBERS: dict[str, Callable[..., Tensor]] = {
    "add": torch.add, "sub": torch.sub, "rsub": lambda x, y: y - x, "mul": torch.mul, "div": torch.true_divide,
    "floor_divide": torch.floor_divide, "remainder": torch.remainder, "fmod": torch.fmod, "pow": torch.pow,
    "equal": torch.eq, "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le, "greater": torch.gt,
    "greater_equal": torch.ge, "where": torch.where,
}  # fmt: skip
"""Functions that take a Python number together with a tensor."""
_TAKES_TENSORS: dict[str, Callable[..., Tensor]] = {
    **{
        name: getattr(torch, name)
        for name in (
            "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "expm1", "log",
            "log10", "log1p", "neg", "reciprocal", "rsqrt", "sin", "sinh", "sqrt", "square", "tan", "tanh", "relu",
            "sigmoid", "atan2", "logaddexp", "maximum", "minimum", "logical_and", "logical_or", "logical_xor",
            "logical_not", "isnan", "isfinite", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
        )
    },
    **{
        name: (lambda function: lambda x: function(x) if x.is_floating_point() else x.clone())(getattr(torch, name))
        for name in ("ceil", "floor", "round", "trunc")
    },
    "sign": lambda x: torch.where(torch.isnan(x), x, torch.sign(x)) if x.is_floating_point() else torch.sign(x),
    "clip": _clip,
    "lshift": lambda x, y: _shifted(x, y, left=True),
    "rshift": lambda x, y: _shifted(x, y, left=False),
}  # fmt: skip


_NUMBERS: dict[str, DType] = {"bool": bool, "int": int, "float": float}


def apply(function: Function, operands: Sequence[Value]) -> Value:
    """Return a function of the expression language on tensors and numbers; raise OpTypeError for wrong dtypes."""
    tensors = [one for one in operands if isinstance(one, Tensor)]
    if not tensors:
        return _of_numbers(function, operands)  # type: ignore[arg-type]
    kinds = tuple([one.dtype if isinstance(one, Tensor) else _number(one) for one in operands])
    common, result = _dtypes(function.name, kinds)
    common, result = _narrowed(common, tensors), _narrowed(result, tensors)
    try:
        return _computed(function, operands, tensors, common, result)
    except NotImplementedError:  # torch computes almost nothing in uint16, uint32 and uint64
        found = ", ".join(str(one.dtype) for one in tensors)
        message = f"torch does not compute {function.name} of {found}: cast to int64 first"
        raise OpTypeError(message).in_op(function.name) from None


def _of_numbers(function: Function, operands: Sequence[bool | int | float]) -> Value:
    try:
        return function.value(operands)  # type: ignore[return-value]
    except FAILURES as failure:
        raise OpTypeError(function.explain(failure, function.parameters)) from None


@constant_when_traced
def _dtypes(name: str, kinds: tuple[Any, ...]) -> tuple[torch.dtype, torch.dtype]:
    """Return the dtype in which a function computes, and the dtype of its result; Python numbers are weak."""
    function = by_name[name]
    dtypes = [numpy_dtype(kind) if isinstance(kind, torch.dtype) else _NUMBERS[kind] for kind in kinds]
    try:
        result = torch_dtype(function.result(dtypes))
        return (result if function.rule is not truth else torch_dtype(promote(dtypes))), result
    except FAILURES as failure:
        raise OpTypeError(function.explain(failure, function.parameters)) from None


def _computed(
    function: Function,
    operands: Sequence[Value],
    tensors: Sequence[Tensor],
    common: torch.dtype,
    result: torch.dtype,
) -> Tensor:
    if function.name not in _TAKES_NUMBERS and function.name not in _TAKES_TENSORS:
        x = tensors[0]
        return (x != 0) if result is torch.bool else x.to(result, copy=True)
    if function.rule is branches:
        condition, *rest = operands
        x, y = [_tensor(one, result, tensors[0]) for one in rest]
        return torch.where(_truth(condition, tensors[0]), x, y)
    wants_tensors = function.name in _TAKES_TENSORS
    cast = [_cast(one, common, tensors[0], wants_tensors) for one in operands]
    return (_TAKES_TENSORS if wants_tensors else _TAKES_NUMBERS)[function.name](*cast)


def _narrowed(dtype: torch.dtype, tensors: Sequence[Tensor]) -> torch.dtype:
    """Return bfloat16 in place of float32 if it is the only float of the tensors."""
    floats = {one.dtype for one in tensors if one.is_floating_point()}
    return torch.bfloat16 if dtype is torch.float32 and floats == {torch.bfloat16} else dtype


def _truth(value: Value, beside: Tensor) -> Tensor:
    if not isinstance(value, Tensor):
        return torch.full((), bool(value), dtype=torch.bool, device=beside.device)
    return value if value.dtype is torch.bool else value != 0


def _cast(value: Value, dtype: torch.dtype, beside: Tensor, wants_tensor: bool) -> Value:
    return _tensor(value, dtype, beside) if wants_tensor or isinstance(value, Tensor) else value


def _tensor(value: Value, dtype: torch.dtype, beside: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value.to(dtype)
    return torch.full((), value, dtype=dtype, device=beside.device)


def _number(value: Value) -> str:
    """Return the name of a number's type."""
    return "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"


@constant_when_traced
def program_of(expression: str | Expression) -> Program:
    """Return an expression in reverse Polish form, as plain data; raise ExpressionError for a malformed one."""
    made = expression if isinstance(expression, Expression) else Expression(expression)
    steps: list[tuple[str, Any, int]] = []
    for node in postorder(made.tree):
        match node:
            case Operand(index=index):
                steps.append(("operand", index, 0))
            case Literal(value=value):
                steps.append(("literal", value, 0))
            case Call(function=function, arguments=arguments):
                steps.append(("call", function.name, len(arguments)))
    return made.inputs, tuple(steps)


def run_program(program: Program, operands: Sequence[Value]) -> Tensor:
    """Return an expression on tensors, in the order of its operands."""
    stack: list[Value] = []
    for kind, what, count in program[1]:
        if kind == "operand":
            stack.append(operands[what])
        elif kind == "literal":
            stack.append(what)
        else:
            given = stack[len(stack) - count :]
            del stack[len(stack) - count :]
            stack.append(apply(by_name[what], given))
    (result,) = stack
    return result if isinstance(result, Tensor) else torch.as_tensor(result)


@cache
def function_call(name: str) -> Callable[..., Tensor]:
    """Return a function of the expression language, as users call it on tensors."""
    row = by_name[name]

    def call(*operands: Value, alpha: float = 1, **named: Value) -> Tensor:
        values: list[Value] = row.in_order(operands, named)
        if alpha != 1 and row.alpha is not None:
            values[row.alpha] = apply(by_name["mul"], [values[row.alpha], alpha])
        found = apply(row, values)
        return found if isinstance(found, Tensor) else torch.as_tensor(found)

    call.__name__ = call.__qualname__ = row.name
    return call


def expression_call(*operands: Value, expr: str | Expression | None = None, **named: Value) -> Tensor:
    """Compute an expression, given by its text, on its operands: as `seqflow.ops.expression`."""
    if expr is None:
        raise OpTypeError("expression: expr is missing, expected the text of an expression: expr='2*x + y'")
    program = program_of(expr)
    names = program[0]
    given: Mapping[str, Any] = dict(zip(names, operands, strict=False)) | named
    missing = next((name for name in names if name not in given), None)
    if missing is not None or len(given) != len(names):
        raise ExpressionError(f"expression: found {len(given)} operands, expected {', '.join(names)}")
    return run_program(program, [given[name] for name in names])
