"""Checks the inputs that must share a dtype, `like(…)` another; texts of any width share one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqflow.errors import OpTypeError
from seqflow.signature.language import Argument, Repeated, Signature

TEXT = "SU"
"""The kinds of NumPy's strings, whose dtypes have a width."""
DTypes = Mapping[str, np.dtype[Any] | Sequence[np.dtype[Any]] | None]


def same_dtype(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether two dtypes are the same; those of texts are, whatever their widths."""
    return one == other or (one.kind == other.kind and one.kind in TEXT)


def check_alike(signature: Signature, dtypes: DTypes) -> None:
    """OpTypeError where an input has another dtype than the one it is like.

    `dtypes` maps the inputs to their dtypes; of an input in a list, to a list of them.
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
    """A cast that loses nothing: of the narrower, or of both; where there is none, say what it would lose."""
    if {dtype.kind, expected.kind} <= {"U", "S"}:  # cast has no dtypes of text
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
    """Whether floats of a width stand for integers they do not all hold: NumPy calls int64 to float64 safe."""
    return wide.kind == "f" and any(
        one.kind in "iu" and one.itemsize * 8 - (one.kind == "i") > np.finfo(wide).nmant + 1 for one in given
    )


def widen_texts(signature: Signature, bound: list[Any]) -> list[Any]:
    """Bound inputs; texts that share a dtype are as wide as the widest of them."""
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
    """A bound input, or all repetitions of a group, in which the named arrays have that dtype."""
    if isinstance(item, Argument):
        return value.astype(dtype, copy=False) if item.name in names and value is not None else value
    return [
        tuple(_cast(a, array, names, dtype) for a, array in zip(item.arguments, repetition, strict=True))
        for repetition in value
    ]


def _each(name: str, dtypes: DTypes) -> Iterator[tuple[str, np.dtype[Any]]]:
    """The tensors of an input, as messages call them, with their dtypes; none where it is not given."""
    found = dtypes.get(name)
    if isinstance(found, np.dtype):
        yield name, found
    elif found is not None:
        yield from ((f"{name}[{i}]", dtype) for i, dtype in enumerate(found))


def dtypes_of(signature: Signature, values: Sequence[Any]) -> DTypes:
    """The dtypes of bound inputs: of a group, of each repetition."""
    found: dict[str, Any] = {}
    for item, value in zip(signature.inputs, values, strict=True):
        if isinstance(item, Repeated):
            for argument, column in zip(item.arguments, zip(*value, strict=True), strict=True):
                found[argument.name] = [array.dtype for array in column]
        elif value is not None:
            found[item.name] = value.dtype
    return found
