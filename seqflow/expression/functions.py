"""Functions of the expression language: a table of names, arities, dtype rules, kernels and operators.

The parser, constant folding and evaluation use the same rows, and each row is an op as well. If NumPy and PyTorch
agree about a function, it does what they do. The choices in other cases:

* Functions with fractional answers give float64 for integers and bools of any width.
* Bools count as int64 in arithmetic: `(x > 0) + (y > 0)` is 0, 1 or 2.
* Integers wrap around; dividing an integer by zero, or raising it to a negative power, is an error.
* Floats never warn: `1 / 0` is inf, `sqrt(-1)` is NaN.
* Python numbers and literals are weak, as in NumPy: they take the dtype of the arrays they are combined with.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from seqflow.errors import ExpressionError, OpTypeError
from seqflow.kernels.arrays import Array, is_masked, not_an_array
from seqflow.kernels.moves import choose

Scalar = bool | int | float
Value = Array | Scalar
DType = np.dtype[Any] | type[bool] | type[int] | type[float]
"""The dtype of an array, or the type of a Python number, which is a weak operand."""
Rule = Callable[[Sequence[DType]], np.dtype[Any]]
Kernel = Callable[..., Any]

_PLACEHOLDERS: dict[Any, Scalar] = {bool: False, int: 0, float: 0.0}
_WEAK: dict[str, type[bool] | type[int] | type[float]] = {"b": bool, "i": int, "u": int, "f": float}
_INT64, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)


def kind_of(dtype: DType) -> str:
    """Return the kind of a dtype: `b`, `i`, `u` or `f`; another letter if the language does not take the dtype."""
    return np.dtype(dtype).kind


def promote(dtypes: Sequence[DType]) -> np.dtype[Any]:
    """Return the common dtype of the operands, with weak Python numbers, in native byte order."""
    return np.result_type(*(_PLACEHOLDERS.get(dtype, dtype) for dtype in dtypes)).newbyteorder("=")


def same(dtypes: Sequence[DType]) -> np.dtype[Any]:
    """Return the common dtype of the operands."""
    return promote(dtypes)


def number(dtypes: Sequence[DType]) -> np.dtype[Any]:
    """Return the common dtype of the operands; bools count as int64."""
    dtype = promote(dtypes)
    return _INT64 if dtype.kind == "b" else dtype


def floating(dtypes: Sequence[DType]) -> np.dtype[Any]:
    """Return the common dtype of the operands; integers and bools become float64."""
    dtype = promote(dtypes)
    return dtype if dtype.kind == "f" else _FLOAT64


def integer(dtypes: Sequence[DType]) -> np.dtype[Any]:
    """Return the common integer dtype of the operands, or bool; int64 and uint64 have none."""
    dtype = promote(dtypes)
    if dtype.kind == "f":
        raise Refusal(0, "has no common integer dtype with the other operand, cast one of them")
    return dtype


def shifted(dtypes: Sequence[DType]) -> np.dtype[Any]:
    """Return the common integer dtype of the operands; bools count as int64."""
    dtype = integer(dtypes)
    return _INT64 if dtype.kind == "b" else dtype


def branches(dtypes: Sequence[DType]) -> np.dtype[Any]:
    """Return the common dtype of all operands after the first, which may be texts or times."""
    kinds = {kind_of(dtype) for dtype in dtypes[1:]}
    if kind_of(dtypes[0]) not in "biuf":
        raise Refusal(0, f"is {np.dtype(dtypes[0])}, expected numbers or bools")
    if len(kinds) > 1 and not kinds <= set("biufc"):
        x, y = (np.dtype(dtype) for dtype in dtypes[1:])
        raise Refusal(2, f"is {y}, expected the same kind of dtype as the second operand, {x}")
    dtype = promote(dtypes[1:])
    # next to a text of unknown width, which only inference has, no width is known
    return np.dtype(dtype.kind) if dtype.kind in "SU" and not all(map(_width, dtypes[1:])) else dtype


def _width(dtype: DType) -> int:
    return np.dtype(dtype).itemsize


def truth(dtypes: Sequence[DType]) -> np.dtype[Any]:
    """Return bool, the dtype of comparisons and logical functions."""
    return np.dtype(np.bool_)


class Refusal(Exception):
    """`Refusal(position, why)`: a function does not take the operand at that position."""


FAILURES = (Refusal, ArithmeticError, TypeError, ValueError)
"""The exceptions of rules and kernels."""


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A row of the table; a call with arrays or Python numbers returns the array of results.

    >>> by_name["div"](np.array([1, 2]), 4)
    array([0.25, 0.5 ])
    """

    name: str
    parameters: tuple[str, ...]
    rule: Rule
    """Computes the dtype of the result from the dtypes of the operands."""
    kernel: Kernel
    """`kernel(*operands, out=)`, where `out` has the dtype of the rule and the operands' broadcast shape. A ufunc
    also gets that dtype, unless the result is a bool, and may write over one of its operands."""
    formula: str
    doc: str
    aliases: tuple[str, ...] = ()
    operator: str | None = None
    """Operator, written before (arity 1) or between (arity 2) the operands."""
    kinds: str = "biuf"
    """Kinds of dtype it takes."""
    alpha: int | None = None
    """Number of the operand that an optional last argument, a literal number, multiplies."""
    divides: bool = False
    """Whether it divides, so that integers must not be divided by zero."""
    strong: bool = False
    """Whether the result has the dtype of the rule even if all operands are Python numbers."""
    has_steps: bool = False
    """Whether it returns floats for floats but is piecewise constant, so that no gradient flows through it."""
    of_two: str = ""
    """Name of a faster function that is equal to it if the second operand is the integer 2."""
    derivatives: Mapping[str, str] = field(default_factory=dict)
    """Expressions for the gradients of operands, in which `d` is the gradient that arrives at the result, `r` is the
    result, and operands have their names; none for a function that is piecewise constant. If operands are equal,
    `maximum` and `minimum` give each one half; a NaN in x gets all. `abs` and `relu` give 0 at 0; `clip` gives the
    gradient to the bound that replaced x."""

    @property
    def arity(self) -> int:
        return len(self.parameters)

    def __str__(self) -> str:
        alpha = ", alpha=1" if self.alpha is not None else ""
        return f"{self.name}({', '.join(self.parameters)}{alpha})"

    def __repr__(self) -> str:
        return f"<function {self}: {self.formula}>"

    def result(self, dtypes: Sequence[DType]) -> DType:
        """Return the dtype of the result; raise Refusal for a dtype it does not take."""
        for i, dtype in enumerate(dtypes):
            if kind_of(dtype) not in self.kinds:
                wanted = "numbers or bools" if "f" in self.kinds else "integers or bools"
                raise Refusal(i, f"is {np.dtype(dtype)}, expected {wanted}")
        dtype = self.rule(dtypes)
        weak = not self.strong and all(isinstance(operand, type) for operand in dtypes)
        return _WEAK[dtype.kind] if weak else dtype

    def kernel_for(self, dtypes: Sequence[DType]) -> Kernel:
        """Return the kernel for operands of these dtypes."""
        dtype = self.rule(dtypes)
        kernel = self.kernel
        # naming the dtype costs a wrapper on each call: a ufunc finds it itself if all arrays have it
        strong = {operand for operand in dtypes if not isinstance(operand, type)}
        if isinstance(kernel, np.ufunc) and self.rule is not truth and strong != {dtype}:
            kernel = _with_dtype(kernel, dtype)
        return _guarded(kernel) if self.divides and dtype.kind in "iu" else kernel

    def value(self, operands: Sequence[Value], out: Array | None = None) -> Value:
        """Return the result for arrays and Python numbers: a Python number if all operands are Python numbers.

        Raises one of FAILURES for operands it does not take; `explain` gives the reason.
        """
        dtypes = [dtype_of(operand) for operand in operands]
        dtype = self.result(dtypes)
        if out is None:
            out = np.empty(broadcast([np.shape(operand) for operand in operands]), dtype)
        with np.errstate(all="ignore"):
            self.kernel_for(dtypes)(*operands, out=out)
        if dtype is int and self.kernel in _WRAPS:
            _check_unwrapped(self.kernel, operands, out)
        result: Value = out.item() if isinstance(dtype, type) else out
        return result

    def explain(self, failure: Exception, operands: Sequence[str]) -> str:
        """Return the name of the function and the reason why it does not take these operands."""
        return f"{self.name}: {self.reason(failure, operands)}"

    def reason(self, failure: Exception, operands: Sequence[str]) -> str:
        """Return the reason why it does not take these operands."""
        why = str(failure)
        if isinstance(failure, Refusal):
            position, why = failure.args
            why = f"{operands[position]} {why}"
        elif isinstance(failure, FloatingPointError):
            why = f"an integer is divided by zero; the divisor is {operands[1]}"
        elif type(failure) is ValueError and self.kernel is np.power:
            why = f"an integer has no negative power; the exponent is {operands[1]}, a float base has such powers"
        return why

    def in_order(self, operands: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Return the operands in order, whether they were given by position or by name; raise OpTypeError."""
        values = dict(zip(self.parameters, operands, strict=False))
        wrong = next((name for name in named if name not in self.parameters or name in values), None)
        if wrong is not None:
            found = f"{wrong} is given twice" if wrong in values else f"there is no operand {wrong!r}"
            raise OpTypeError(f"{self.name}: {found}, expected {self}")
        values |= named
        if len(operands) > self.arity or len(values) < self.arity:
            count = max(len(values), len(operands))
            raise OpTypeError(f"{self.name}: found {count} operands, expected {self.arity}: {self}")
        return [values[name] for name in self.parameters]

    def __call__(self, *operands: Any, out: Array | None = None) -> Array:
        """Return the results, in `out` if it is given; raise ExpressionError for operands it does not take."""
        if len(operands) != self.arity:
            raise ExpressionError(f"{self} takes {self.arity} operands, {len(operands)} were given")
        try:
            values = [as_operand(name, value) for name, value in zip(self.parameters, operands, strict=True)]
            if out is None:
                return np.asarray(self.value(values))
            shape = broadcast([np.shape(value) for value in values])
            check_out(out, shape, np.dtype(self.result([dtype_of(value) for value in values])))
            # not every kernel reads an element before it writes there: an operand is overwritten only at the end
            if any(np.may_share_memory(value, out) for value in values if isinstance(value, np.ndarray)):
                np.copyto(out, self.value(values))
            else:
                self.value(values, out)
            return out
        except FAILURES as failure:
            raise ExpressionError(self.reason(failure, self.parameters)).in_op(self.name) from None


def as_operand(name: str, value: Any) -> Value:
    """Return a Python number unchanged, others as an array; raise ExpressionError when it is not a plain array."""
    if type(value) is np.ndarray:
        return value
    if type(value) in _PLACEHOLDERS:
        number_: Scalar = value
        return number_
    if is_masked(type(value)):
        raise ExpressionError(f"{name} is a masked array, expected a plain one: fill it first")
    try:
        return np.asarray(value)
    except MemoryError:
        raise
    except Exception as error:  # raised by the object's own __array__
        message, advice = not_an_array(name, value, error)
        raise ExpressionError(message, advice=advice) from None


def dtype_of(operand: Value) -> DType:
    """Return the dtype of an array, or the type of a Python number."""
    return operand.dtype if isinstance(operand, np.ndarray) else type(operand)


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the broadcast shape by NumPy's rules; raise ExpressionError when there is none."""
    found: tuple[int, ...] = ()
    for shape in shapes:
        if shape == found or not shape:
            continue
        try:
            found = np.broadcast_shapes(found, shape) if found else shape
        except ValueError:
            raise ExpressionError(f"shapes {found} and {shape} do not broadcast") from None
    return found


def check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise ExpressionError unless `out` is an array that can take the result."""
    if not isinstance(out, np.ndarray):
        raise ExpressionError(f"out is {type(out).__name__}, expected an array")
    if out.shape != shape or out.dtype != dtype:
        raise ExpressionError(f"out is {out.dtype} {out.shape}, expected {dtype} {shape}")
    if not out.flags.writeable:
        raise ExpressionError("out is read-only, expected an array to write to")


def _with_dtype(kernel: np.ufunc, dtype: np.dtype[Any]) -> Kernel:
    def run(*operands: Any, out: Array) -> None:
        kernel(*operands, out=out, dtype=dtype)

    return run


def _guarded(kernel: Kernel) -> Kernel:
    """Return the kernel with a check: it raises FloatingPointError when an integer is divided by zero."""

    def run(*operands: Any, out: Array) -> None:
        with np.errstate(divide="raise"):
            kernel(*operands, out=out)

    return run


def _check_unwrapped(kernel: Kernel, operands: Sequence[Value], found: Array) -> None:
    """Raise OverflowError when int64 does not hold the result for Python integers."""
    about = np.empty((), np.float64)
    first, *others = operands
    with np.errstate(all="ignore"):
        if kernel is np.left_shift:
            np.ldexp(float(first), int(others[0]), out=about)
        else:
            kernel(float(first), *[float(one) for one in others], out=about)
    # what has wrapped is wrong by 2**64 or more
    if not abs(about - float(found)) < 2.0**63:
        raise OverflowError(f"the result is about {about:.4g}, which int64 does not hold")


def _cast(x: Any, *, out: Array) -> None:
    np.copyto(out, x, casting="unsafe")


def _rounding(kernel: np.ufunc) -> Kernel:
    """Return a rounding kernel, which returns integers and bools unchanged."""

    def run(x: Any, *, out: Array) -> None:
        if out.dtype.kind == "f":
            kernel(x, out=out)
        else:
            np.copyto(out, x)

    return run


def _where(condition: Any, x: Any, y: Any, *, out: Array) -> None:
    x, y = (value if isinstance(value, np.ndarray) else np.asarray(out.dtype.type(value)) for value in (x, y))
    condition = np.asarray(condition)
    choose(condition if condition.dtype.kind == "b" else condition != 0, x, y, out)


def _clip(x: Any, low: Any, high: Any, *, out: Array) -> None:
    # the upper bound last: it wins if low is above high, as in NumPy and PyTorch
    np.maximum(x, low, out=out, dtype=out.dtype)
    np.minimum(out, high, out=out)


def _rsub(x: Any, y: Any, *, out: Array) -> None:
    np.subtract(y, x, out=out, dtype=out.dtype)


def _rsqrt(x: Any, *, out: Array) -> None:
    np.sqrt(x, out=out, dtype=out.dtype)
    np.divide(1, out, out=out)


def _relu(x: Any, *, out: Array) -> None:
    # not where(x > 0): NaN must stay NaN
    np.maximum(x, 0, out=out, dtype=out.dtype)


def _sigmoid(x: Any, *, out: Array) -> None:
    # exp may overflow to inf, for a large negative x: 1 / (1 + inf) is 0, the right answer
    np.negative(x, out=out, dtype=out.dtype)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.divide(1, out, out=out)


def _horner(coefficients: Sequence[float], t: Array) -> Array:
    """Return the polynomial with these coefficients, lowest power first."""
    total = np.full_like(t, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total *= t
        total += coefficient
    return total


# NumPy has no erf. Up to 1, erf(x) = x·P(x²), by its Taylor series. Above 1, erf(x) = 1 − exp(−x²)·Q(t), with t from
# −1 to 1 as x goes from 1 to 6, where erf is 1 to the last bit; Q interpolates exp(x²)·erfc(x) at Chebyshev's points.
_NEAR, _FAR, _POLE = 1.0, 6.0, 2.0
_SERIES = [(-1) ** n * 2 / math.sqrt(math.pi) / (math.factorial(n) * (2 * n + 1)) for n in range(20)]
_SCALE = 2 / (1 / (_POLE + _NEAR) - 1 / (_POLE + _FAR))
_SHIFT = 1 - _SCALE / (_POLE + _NEAR)


def _scaled_erfc(t: Array) -> Array:
    points = _SCALE / (t - _SHIFT) - _POLE
    return np.array([math.exp(x * x) * math.erfc(x) for x in points])


@cache
def _tail() -> list[float]:
    """Return the coefficients of Q. NumPy imports its polynomials where they are asked for: 20 ms."""
    found = np.polynomial.Chebyshev.interpolate(_scaled_erfc, 19)
    return [float(c) for c in found.convert(kind=np.polynomial.Polynomial).coef]


def _erf(x: Any, *, out: Array) -> None:
    values = np.array(x, dtype=np.float64, ndmin=1)
    size = np.abs(values)
    far = size > _NEAR
    result = np.where(far, 0.0, values)
    result *= _horner(_SERIES, result * result)
    size = np.minimum(size[far], _FAR)
    tail = np.exp(-size * size) * _horner(_tail(), _SCALE / (size + _POLE) + _SHIFT)
    result[far] = np.copysign(1 - tail, values[far])
    np.copyto(out, result.reshape(np.shape(x)), casting="same_kind")


_WRAPS: frozenset[Kernel] = frozenset(
    (np.absolute, np.negative, np.square, np.add, np.subtract, _rsub, np.multiply, np.floor_divide, np.power,
     np.left_shift)
)  # fmt: skip
"""Kernels that wrap around for integers."""

_RULES = {rule.__name__: rule for rule in (same, number, floating, integer, shifted, branches, truth)}
_KERNELS: Mapping[str, Kernel] = {
    **{f"rounding {name}": _rounding(getattr(np, name)) for name in ("ceil", "floor", "rint", "trunc")},
    "cast": _cast,
    "clip": _clip,
    "erf": _erf,
    "relu": _relu,
    "rsqrt": _rsqrt,
    "rsub": _rsub,
    "sigmoid": _sigmoid,
    "where": _where,
}
"""Kernels of our own; others are those of NumPy of that name."""


def _row(
    name: str, parameters: str, dtype: str, kernel: str, formula: str, doc: str, aliases: str, operator: str,
    options: str, derivatives: str,
) -> Function:  # fmt: skip
    """Return the function of a line; its dtype is that of a rule, or always the same."""
    flags = (option.partition("=") for option in options.split())
    more: dict[str, Any] = {key: int(value) if value.isdigit() else value or True for key, _, value in flags}
    pairs = (one.partition(": ") for one in derivatives.split("; ") if one)
    return Function(
        name, tuple(parameters.split()), _RULES.get(dtype) or (lambda dtypes: np.dtype(dtype)),
        _KERNELS.get(kernel) or getattr(np, kernel), formula, doc, tuple(aliases.split()), operator or None,
        derivatives={operand: text for operand, _, text in pairs}, **more,
    )  # fmt: skip


with Path(__file__).with_name("functions.txt").open(encoding="utf-8") as _lines:
    next(_lines)
    table: tuple[Function, ...] = tuple(_row(*line.removesuffix("\n").split("\t")) for line in _lines)
"""The lines of `functions.txt`, whose columns are separated by tabs."""

by_name: dict[str, Function] = {name: row for row in table for name in (row.name, *row.aliases)}
"""Rows by names and aliases."""
unary_operators = {row.operator: row for row in table if row.operator and row.arity == 1}
binary_operators = {row.operator: row for row in table if row.operator and row.arity == 2}
