"""Derivatives of the functions of expressions, as expressions.

In a formula, `d` is the gradient that arrives at the result, `r` is the result, and operands have their names. If
operands are equal, `maximum` and `minimum` give each one half; a NaN in x gets all. `abs` and `relu` give 0 at 0;
`clip` gives the gradient to the bound that replaced x.
"""

from collections.abc import Mapping

_AT_TWO_OVER_ROOT_PI = 1.1283791670955126
_ONE_OVER_LN_10 = 0.4342944819032518

FORMULAS: Mapping[str, Mapping[str, str]] = {
    "abs": {"x": "where(x < 0, -d, where(x == 0, 0.0, d))"},
    "acos": {"x": "-d / sqrt(1 - x * x)"},
    "acosh": {"x": "d / sqrt(x * x - 1)"},
    "asin": {"x": "d / sqrt(1 - x * x)"},
    "asinh": {"x": "d / sqrt(x * x + 1)"},
    "atan": {"x": "d / (1 + x * x)"},
    "atanh": {"x": "d / (1 - x * x)"},
    "cos": {"x": "-d * sin(x)"},
    "cosh": {"x": "d * sinh(x)"},
    "erf": {"x": f"d * {_AT_TWO_OVER_ROOT_PI} * exp(-(x * x))"},
    "exp": {"x": "d * r"},
    "expm1": {"x": "d * (r + 1)"},
    "log": {"x": "d / x"},
    "log10": {"x": f"d * {_ONE_OVER_LN_10} / x"},
    "log1p": {"x": "d / (x + 1)"},
    "neg": {"x": "-d"},
    "reciprocal": {"x": "-d * r * r"},
    "rsqrt": {"x": "-0.5 * d * r * r * r"},
    "sin": {"x": "d * cos(x)"},
    "sinh": {"x": "d * cosh(x)"},
    "sqrt": {"x": "0.5 * d / r"},
    "square": {"x": "2 * d * x"},
    "tan": {"x": "d * (1 + r * r)"},
    "tanh": {"x": "d * (1 - r * r)"},
    "relu": {"x": "where(x <= 0, 0.0, d)"},
    "sigmoid": {"x": "d * r * (1 - r)"},
    "add": {"x": "d", "y": "d * alpha"},
    "sub": {"x": "d", "y": "-d * alpha"},
    "rsub": {"x": "-d * alpha", "y": "d"},
    "mul": {"x": "d * y", "y": "d * x"},
    "div": {"x": "d / y", "y": "-d * r / y"},
    "remainder": {"x": "d", "y": "-d * ((x - r) / y)"},
    "fmod": {"x": "d", "y": "-d * ((x - r) / y)"},
    "pow": {
        "x": "d * where(y == 0, 0.0, y * pow(x, where(y == 0, 1.0, y) - 1))",
        "y": "d * where(x == 0, 0.0, r * log(where(x == 0, 1.0, x)))",
    },
    "atan2": {"x": "d * y / (x * x + y * y)", "y": "-d * x / (x * x + y * y)"},
    "logaddexp": {"x": "d * exp(x - r)", "y": "d * exp(y - r)"},
    "maximum": {
        "x": "d * where(x == y, 0.5, where(logical_or(x > y, isnan(x)), 1.0, 0.0))",
        "y": "d * where(x == y, 0.5, where(logical_or(x > y, isnan(x)), 0.0, 1.0))",
    },
    "minimum": {
        "x": "d * where(x == y, 0.5, where(logical_or(x < y, isnan(x)), 1.0, 0.0))",
        "y": "d * where(x == y, 0.5, where(logical_or(x < y, isnan(x)), 0.0, 1.0))",
    },
    "clip": {
        "x": "where(logical_or(x < low, x > high), 0.0, d)",
        "low": "where(logical_and(x < low, low <= high), d, 0.0)",
        "high": "where(logical_or(x > high, low > high), d, 0.0)",
    },
    "where": {"x": "where(condition, d, 0.0)", "y": "where(condition, 0.0, d)"},
    "float16": {"x": "d"},
    "float32": {"x": "d"},
    "float64": {"x": "d"},
}  # fmt: skip
"""Formulas by the names of functions and of operands. A function without formulas is piecewise constant."""
