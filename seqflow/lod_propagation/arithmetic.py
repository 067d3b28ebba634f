"""Arithmetic on Sequences: map operators and ufuncs of NumPy to functions of the expression table."""

from functools import cache
from typing import Any

import numpy as np

from seqflow.expression.functions import binary_operators, table, unary_operators


def name_of_operator(symbol: str, arity: int) -> str:
    """Return the name of the function of an operator, such as `+` or `==`."""
    return (unary_operators if arity == 1 else binary_operators)[symbol].name


def name_of_ufunc(ufunc: np.ufunc, method: str, options: dict[str, Any]) -> str:
    """Return the name of the function of a ufunc; raise TypeError for unsupported ufuncs, methods and options."""
    name = _by_ufunc().get(ufunc)
    if name is None:
        raise TypeError(
            f"np.{ufunc.__name__} is not among the functions for Sequences\n"
            f"  use np.{ufunc.__name__} on sequence.values; `seqflow ops` lists the functions"
        )
    if method != "__call__" or options:
        asked = f".{method}" if method != "__call__" else f" with {', '.join(options)}="
        raise TypeError(
            f"np.{ufunc.__name__}{asked} does not take a Sequence\n  use sequence.values, or seqflow.auto.{name}"
        )
    return name


@cache
def _by_ufunc() -> dict[np.ufunc, str]:
    """Return the table's name for each ufunc that it has, by its kernel, its name or one of its other names."""
    found: dict[np.ufunc, str] = {}
    for row in table:
        candidates = [row.kernel, *(getattr(np, name, None) for name in (row.name, *row.aliases))]
        found |= {one: row.name for one in candidates if isinstance(one, np.ufunc) and one.nin == row.arity}
    return found
