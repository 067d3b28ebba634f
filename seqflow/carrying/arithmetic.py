"""Arithmetic on Sequences: Python's operators and NumPy's ufuncs, as functions of the expression table."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from seqflow.carrying.call import carried
from seqflow.expression.functions import binary_operators, table, unary_operators


def call_operator(symbol: str, operands: tuple[Any, ...]) -> Any:
    """The result of an operator, `+` or `==`; NotImplemented for operands that are no numbers at all."""
    if not all(_is_operand(one) for one in operands):
        return NotImplemented
    return _operator(symbol, len(operands))(*operands)


def _is_operand(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.ndarray, np.generic, list)) or hasattr(value, "lod")


@cache
def _operator(symbol: str, arity: int) -> Callable[..., Any]:
    return carried((unary_operators if arity == 1 else binary_operators)[symbol].name)


def call_ufunc(ufunc: np.ufunc, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What `np.sqrt(sequence)` gives; TypeError for ufuncs, methods and options the table has nothing for."""
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
    return carried(name)(*operands)


@cache
def _by_ufunc() -> dict[np.ufunc, str]:
    """The table's name for each ufunc that it has, by its kernel, its name or another of its names."""
    found: dict[np.ufunc, str] = {}
    for row in table:
        candidates = [row.kernel, *(getattr(np, name, None) for name in (row.name, *row.aliases))]
        found |= {one: row.name for one in candidates if isinstance(one, np.ufunc) and one.nin == row.arity}
    return found
