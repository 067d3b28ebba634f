"""Inputs that share a dtype: those a signature says to be `like(…)` another."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqflow.errors import OpTypeError
from seqflow.signature.language import Repeated, Signature

DTypes = Mapping[str, np.dtype[Any] | Sequence[np.dtype[Any]] | None]


def check_alike(signature: Signature, dtypes: DTypes) -> None:
    """OpTypeError where an input has another dtype than the one it is like.

    `dtypes` maps the inputs to their dtypes; of an input in a list, to a list of them.
    """
    for name, of in signature.alike:
        first, expected = next(_each(of, dtypes))
        for found, dtype in _each(name, dtypes):
            if dtype != expected:
                raise OpTypeError(
                    f"{found} is {dtype} but {first} is {expected}, expected one dtype for both\n"
                    f"  {_advice(found, dtype, expected)}"
                )


def _advice(found: str, dtype: np.dtype[Any], expected: np.dtype[Any]) -> str:
    if {dtype.kind, expected.kind} <= {"U", "S"}:  # cast has no dtypes of text
        return f'convert both first: array.astype("{np.result_type(dtype, expected)}")'
    return f'cast one of them first: cast({found}, dtype="{expected}")'


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
