"""Finds an order of the arguments in which they would fit, for the advice of errors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Any

from seqflow.errors import SeqflowError
from seqflow.signature.language import Argument, Repeated, Signature

Bind = Callable[[Sequence[Any]], Sequence[Any]]
_MOST_PERMUTED = 4
"""Largest number of arguments for which all orders are tried (4! = 24); with more, only pairs are swapped."""


def advice_on_order(signature: Signature, values: Sequence[Any], bind: Bind) -> str:
    """Return advice if `bind` refuses the values but takes them in another order; else "".

    `values` has one value for each input, and for a group a list with one list for each of its arguments.
    """
    flat: list[Any] = []
    for item, value in zip(signature.inputs, values, strict=True):
        flat += value if isinstance(item, Repeated) else [value]
    names = [argument.name for argument in signature.input_arguments]
    given = [i for i, value in enumerate(flat) if value is not None]
    for order in _orders(given):
        moved = list(flat)
        for place, source in zip(given, order, strict=True):
            moved[place] = flat[source]
        if _fits(signature, moved, bind):
            return _advice([(names[a], names[b]) for a, b in zip(given, order, strict=True) if a != b])
    return ""


def advice_on_numbers(signature: Signature, values: Iterable[Any], attributes: Iterable[str]) -> str:
    """Return advice if a number is given for an input that has rows: attributes are given by keyword; else ""."""
    keywords = "".join(f" {name}=" for name in attributes)
    wrong = any(
        type(value) in (int, float) and isinstance(item, Argument) and item.rank > 0
        for item, value in zip(signature.inputs, values, strict=False)
    )
    return f"attributes are given by keyword:{keywords}" if wrong and keywords else ""


def _orders(given: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the orders to try: swaps of two arguments, then all other orders if there are few arguments."""
    for one, other in combinations(given, 2):
        yield tuple(other if i == one else one if i == other else i for i in given)
    if len(given) <= _MOST_PERMUTED:
        for order in permutations(given):
            if sum(a != b for a, b in zip(order, given, strict=True)) > 2:
                yield order


def _fits(signature: Signature, flat: Sequence[Any], bind: Bind) -> bool:
    """Return whether the values fit the signature and all indices are inside their tables."""
    try:
        bound = bind(signature.grouped(flat))
    except (SeqflowError, ValueError, OverflowError):
        return False
    # integers bind as indices of any table: swapped indices show only by their values
    plain = [(a, array) for a, array in zip(signature.inputs, bound, strict=True) if isinstance(a, Argument)]
    rows = {
        argument.row_name: len(array) for argument, array in plain if argument.row_name and array is not None
    }
    for argument, indices in plain:
        size = rows.get(str(argument.dtype.points)) if argument.dtype.word == "index" else None
        if size is not None and indices.size and not 0 <= indices.min() <= indices.max() < size:
            return False
    return True


def _advice(moved: Sequence[tuple[str, str]]) -> str:
    if len(moved) == 2:
        return f"{moved[0][0]} and {moved[1][0]} would fit the other way round"
    return "they would fit in another order: " + ", ".join(f"{given} as {place}" for place, given in moved)
