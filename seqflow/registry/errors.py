"""Errors of an op, with the name and the inputs of the op."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqflow.errors import LodError, OpError, OpIndexError, OpMemoryError, OpTypeError, SeqflowError, nearest
from seqflow.kernels import KernelError
from seqflow.kernels.error import KernelMemoryError, beyond_memory
from seqflow.names_elsewhere import instead
from seqflow.signature import Attribute, Signature

_KINDS: Mapping[str, type[SeqflowError]] = {"index": OpIndexError, "negative": LodError, "sum": LodError}


def name_op(name: str, signature: Signature, error: SeqflowError) -> SeqflowError:
    """Return the error with the name of the op in its message."""
    return error.in_op(name, "" if isinstance(error, OpError) else signature.inputs_text)


def too_many_inputs(count: int, expected: Sequence[str], attributes: Sequence[Attribute]) -> OpTypeError:
    """Return the error of a call with more inputs than the op has: attributes are given by keyword."""
    keywords = "".join(f" {one.name}=" for one in attributes)
    advice = f"attributes are given by keyword:{keywords}" if keywords else ""
    return OpTypeError(f"found {count} inputs, expected {len(expected)}", advice=advice)


def missing_input(name: str, op: str) -> OpTypeError:
    """Return the error of a call without one of its inputs."""
    advice = f"lengths are inputs of ops; for a Sequence, which has its own: seqflow.auto.{op}(sequence)"
    return OpTypeError(f"{name} is missing", advice=advice)


def check_names(op: str, signature: Signature, kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise OpTypeError when a name is not known to the op; it names the nearest one, or what it is called here."""
    known = list(known)
    wrong = next((name for name in given if name not in known), None)
    if wrong is not None:
        takes = ", ".join(known) or "none"
        message = f"there is no {kind} {wrong!r}{nearest_argument(wrong, known)}, expected {takes}"
        raise OpTypeError(message, advice=str(signature)).in_op(op)


def nearest_argument(name: str, known: Iterable[str]) -> str:
    """Return the argument that is meant, in brackets: by its name elsewhere, or the nearest; else ""."""
    known, there = list(known), instead("attribute", name)
    return f" ({there})" if there.partition("=")[0] in known else nearest(name, known)


def explain(name: str, signature: Signature, error: KernelError) -> SeqflowError:
    """Return the error of a kernel as an error of the op."""
    kind = _KINDS.get(error.kind, LodError if error.argument == "lengths" else OpError)
    return kind(str(error)).in_op(name, signature.inputs_text)


def explain_memory(
    name: str, signature: Signature, error: MemoryError, values: Mapping[str, Any]
) -> OpMemoryError:
    """Return an error with the memory that was needed, and the likely cause: the argument with the largest number."""
    asked = max(_numbers(values), key=lambda found: found[1], default=None)
    because = "" if asked is None else f": {asked[0]} is {asked[1]}"
    return OpMemoryError(f"{_need(error)}{because}").in_op(name, signature.inputs_text)


def _need(error: MemoryError) -> str:
    if isinstance(error, KernelMemoryError):
        return str(error)
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return "there is too little memory"
    return str(beyond_memory(math.prod(shape) * dtype.itemsize))


def _numbers(values: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the numbers in arguments, and the largest element of each array of integers."""
    for name, value in values.items():
        items = enumerate(value) if isinstance(value, (list, tuple)) else [(None, value)]
        for i, item in items:
            place = name if i is None else f"{name}[{i}]"
            if isinstance(item, int) and not isinstance(item, bool):
                yield place, int(item)
            elif isinstance(item, np.ndarray) and item.dtype.kind in "iu" and item.size:
                yield f"the largest of {place}", int(item.max())
