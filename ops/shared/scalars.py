"""Scalar attributes, cast to the dtype they will be written in, and texts among texts."""

from typing import Any

import numpy as np

from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array


def cast_scalar(name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """`value` as a scalar of `dtype`; OpError where the dtype cannot hold it.

    Floats are rounded to the dtype, as NumPy does; an integer dtype takes whole numbers in its range only.
    """
    if isinstance(value, (str, bytes)):
        raise OpError(f"{name} is {value!r}, expected a value of {dtype}")
    if value == 0 and type(value) is int:
        return np.zeros((), dtype)[()] if dtype.kind in "SUV" else value
    if dtype.kind in "SU":
        raise OpError(
            f"{name} is {value!r}, expected a text, or 0, which stands for no text: {dtype} is text"
        )
    if dtype.kind == "V":
        raise OpError(f"{name} is {value!r}, expected 0, which stands for bytes of 0: {dtype} is no number")
    cast = np.asarray(value)
    if cast.dtype.kind in "biu" and dtype.kind in "mM":
        return cast.astype(dtype)[()]
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            result = cast.astype(dtype)
    except (ValueError, TypeError, OverflowError):
        raise OpError(f"{name} is {value!r}, expected a value of {dtype}") from None
    if dtype.kind in "biu" and not np.array_equal(result, cast):
        raise OpError(f"{name} is {value!r}, which {dtype} cannot hold")
    return result[()]


def with_fill(name: str, value: Any, data: Array) -> tuple[Array, Any]:
    """The rows and `value` in one dtype: that of the rows, but texts become as wide as a text among them.

    Errors are those of `cast_scalar`, and OpTypeError for text among bytes or bytes among text.
    """
    if not isinstance(value, (str, bytes)) or data.dtype.kind not in "SU":
        return data, cast_scalar(name, value, data.dtype)
    fill = np.asarray(value)
    if fill.dtype.kind != data.dtype.kind:
        expected = "bytes" if data.dtype.kind == "S" else "a str"
        raise OpTypeError(f"{name} is {value!r}, expected {expected}: the rows are {data.dtype}")
    dtype = np.promote_types(data.dtype, fill.dtype)
    return data.astype(dtype, copy=False), fill.astype(dtype)[()]
