"""The stub of the extension, `_native.pyi`, written from the kernels by `python -m seqflow.kernels.stub`."""

import inspect
import types
from pathlib import Path
from typing import Any, get_args, get_origin

from seqflow import kernels
from seqflow.kernels.arrays import Array, DType
from seqflow.kernels.dispatch import KERNELS, extension

_HEAD = '''\
"""The extension, as type checkers see it. Written by `python -m seqflow.kernels.stub`; do not edit.

A kernel answers NotImplemented where it declines.
"""

from types import NotImplementedType
from typing import Any

import numpy as np

from seqflow.kernels.chunks import ChunkedRows, PaddedBatch
from seqflow.kernels.packing import PackingPlan

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]
'''


def stub() -> str:
    """The text of the stub file."""
    public = sorted(name for name in vars(extension()) if not name.startswith("__"))
    return (
        _HEAD
        + "".join(f"\n{_kernel(name) if name in KERNELS else _function(name)}" for name in public)
        + "\n"
    )


def _kernel(name: str) -> str:
    signature = inspect.signature(KERNELS[name].body)
    parameters = [f"    {each.name}: {_type(each.annotation)},\n" for each in signature.parameters.values()]
    result = f"NotImplementedType | {_type(signature.return_annotation)}"
    return f"def {name}(\n{''.join(parameters)}    /,\n) -> {result}: ..."


def _function(name: str) -> str:
    ((declaration, _, _),) = getattr(extension(), name).__nb_signature__
    return f"{declaration}: ..."


def _type(annotation: Any) -> str:
    if annotation in (Array, DType):
        return "Array" if annotation == Array else "DType"
    if annotation in (None, types.NoneType):
        return "None"
    if isinstance(annotation, types.UnionType):
        return " | ".join(map(_type, get_args(annotation)))
    if (generic := get_origin(annotation)) in (list, tuple):
        return f"{generic.__name__}[{', '.join(map(_type, get_args(annotation)))}]"
    return str(annotation.__name__)


if __name__ == "__main__":
    Path(kernels.__file__).with_name("_native.pyi").write_text(stub())
