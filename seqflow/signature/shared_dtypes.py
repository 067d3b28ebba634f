"""Checks that inputs declared `like(…)` another share its dtype; texts share one at any width."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqflow.errors import OpTypeError
from seqflow.signature.language import Argument, Repeated, Signature

TEXT = "SU"
"""Kinds of NumPy's strings, whose dtypes have a width."""
DTypes = Mapping[str, np.dtype[Any] | Sequence[np.dtype[Any]] | None]


def same_dtype(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Return whether two dtypes are the same; texts of one kind count as the same at any width."""
    return one == other or (one.kind == other.kind and one.kind in TEXT)


def check_alike(signature: Signature, dtypes: DTypes) -> None:
    """Raise OpTypeError when the dtype of an input differs from that of the input it is like.

    `dtypes` maps the inputs to their dtypes, and an input in a list to a list of dtypes.
    """
    for name, of in signature.alike:
        first, expected = next(_each(of, dtypes))
        for found, dtype in _each(name, dtypes):
            if not same_dtype(dtype, expected):
                raise OpTypeError(
                    f"{found} is {dtype} but {first} is {expected}, expected one dtype for both\n"
                    f"  {_advice(found, dtype, first, expected)}"
                )


def _advice(found: str, dtype: np.dtype[Any], first: str, expected: np.dtype[Any]) -> str:
    """Return advice on a cast that keeps all values; if there is none, on the choice of one that does not."""
    if {dtype.kind, expected.kind} <= {"U", "S"}:  # the op `cast` takes no dtypes of text
        return f'convert both first: array.astype("{np.result_type(dtype, expected)}")'
    try:
        wide = np.result_type(dtype, expected)
    except TypeError:  # numbers and times have no common dtype
        return f"no dtype holds {dtype} and {expected}: give both as one of them"
    if not (np.can_cast(dtype, wide, "safe") and np.can_cast(expected, wide, "safe")) or _is_inexact(
        wide, dtype, expected
    ):
        return (
            f"no dtype holds the values of both: say with cast which of {dtype} and {expected} may lose some"
        )
    casts = [
        f'cast({name}, dtype="{wide}")' for name, one in ((found, dtype), (first, expected)) if one != wide
    ]
    return f"cast {'both' if len(casts) > 1 else 'it'} first: {' and '.join(casts)}"


def _is_inexact(wide: np.dtype[Any], *given: np.dtype[Any]) -> bool:
    """Return whether floats cannot hold all integers of the given dtypes: NumPy calls int64 to float64 safe."""
    return wide.kind == "f" and any(
        one.kind in "iu" and one.itemsize * 8 - (one.kind == "i") > np.finfo(wide).nmant + 1 for one in given
    )


def widen_texts(signature: Signature, bound: list[Any]) -> list[Any]:
    """Return the bound inputs with texts that share a dtype cast to the widest of them."""
    dtypes = dtypes_of(signature, bound)
    for shared in {of for _, of in signature.alike}:
        names = {shared, *(name for name, of in signature.alike if of == shared)}
        found = {dtype for name in names for _, dtype in _each(name, dtypes)}
        if len(found) == 1 or not all(dtype.kind in TEXT for dtype in found):
            continue
        widest = np.result_type(*found)
        bound = [
            _cast(item, value, names, widest) for item, value in zip(signature.inputs, bound, strict=True)
        ]
    return bound


def _cast(item: Argument | Repeated, value: Any, names: set[str], dtype: np.dtype[Any]) -> Any:
    """Return a bound input, or all repetitions of a group, with the named arrays cast to the dtype."""
    if isinstance(item, Argument):
        return value.astype(dtype, copy=False) if item.name in names and value is not None else value
    return [
        tuple(_cast(a, array, names, dtype) for a, array in zip(item.arguments, repetition, strict=True))
        for repetition in value
    ]


def _each(name: str, dtypes: DTypes) -> Iterator[tuple[str, np.dtype[Any]]]:
    """Yield the label and dtype of each tensor of an input; nothing if the input is not given."""
    found = dtypes.get(name)
    if isinstance(found, np.dtype):
        yield name, found
    elif found is not None:
        yield from ((f"{name}[{i}]", dtype) for i, dtype in enumerate(found))


def dtypes_of(signature: Signature, values: Sequence[Any]) -> DTypes:
    """Return the dtypes of bound inputs; for inputs in a group, a list with one dtype for each repetition."""
    found: dict[str, Any] = {}
    for item, value in zip(signature.inputs, values, strict=True):
        if isinstance(item, Repeated):
            for argument, column in zip(item.arguments, zip(*value, strict=True), strict=True):
                found[argument.name] = [array.dtype for array in column]
        elif value is not None:
            found[item.name] = value.dtype
    return found
