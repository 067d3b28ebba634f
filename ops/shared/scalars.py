"""Scalar attributes, cast to the dtype of the array they are written to, also as texts."""

from typing import Any

import numpy as np

from seqflow.errors import OpError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.kernels.exact import as_times, changed


def cast_scalar(name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return `value` as a scalar of `dtype`; raise OpError if the dtype cannot hold it.

    Floats are rounded to the dtype, as in NumPy, but not to infinity. An integer dtype takes only whole numbers in
    its range; a dtype of times takes only multiples of its unit.
    """
    if isinstance(value, (str, bytes)):
        raise OpError(f"{name} is {value!r}, expected a value of {dtype}")
    if value == 0 and type(value) is int:
        return np.zeros((), dtype)[()] if dtype.kind in "SUV" else value
    if dtype.kind in "SU":
        raise OpError(
            f"{name} is {value!r}, expected a text, or 0, which means an empty text: {dtype} is text"
        )
    if dtype.kind == "V":
        raise OpError(f"{name} is {value!r}, expected 0, which means bytes of 0: {dtype} is not a number")
    cast = np.asarray(value)
    if cast.dtype.kind in "biu" and dtype.kind in "mM":
        return cast.astype(dtype)[()]
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            result = as_times(cast, dtype)
    except (ValueError, TypeError, OverflowError):
        raise OpError(f"{name} is {value!r}, expected a value of {dtype}") from None
    is_nat = dtype.kind in "mM" and np.isnat(result)
    is_same = bool(np.all(result == cast)) or (is_nat and (cast.dtype.kind == "f" or np.isnat(cast)))
    is_finite = cast.dtype.kind == "O" or np.isfinite(cast)  # integers beyond int64 are objects
    is_changed = (
        not is_same if dtype.kind in "biumM" else dtype.kind == "f" and np.isinf(result) and is_finite
    )
    if is_changed:
        raise OpError(f"{name} is {value!r}, which {dtype} cannot hold")
    return result[()]


def filled(shape: tuple[int, ...], fill: Any, dtype: np.dtype[Any]) -> Array:
    """Return an array of one value; of zeros, so that no memory is touched before it is written."""
    zeros = np.zeros(shape, dtype)
    if np.asarray(fill, dtype).tobytes().strip(b"\0"):
        zeros[...] = fill
    return zeros


def cast_like_numpy(rows: Array, dtype: np.dtype[Any]) -> Array:
    """Return rows in another dtype as NumPy casts them, without its warning that floats become infinite."""
    with np.errstate(over="ignore"):
        return rows.astype(dtype, copy=False)


def cast_rows(name: str, rows: Array, dtype: np.dtype[Any]) -> Array:
    """Return rows in another dtype; raise OpError for the first element that it cannot hold. Floats are rounded."""
    if rows.dtype == dtype:
        return rows
    with np.errstate(over="ignore", invalid="ignore"):
        cast = as_times(rows, dtype)
    if dtype.kind in "mM":
        wrong = changed(rows, cast)
    elif dtype.kind in "iu":
        wrong = (cast != rows) & (rows == rows)  # NaN, which differs from itself, is allowed
    elif dtype.kind == "f":
        wrong = np.isinf(cast) & np.isfinite(rows)
    else:
        return cast
    if wrong.any():
        place = np.unravel_index(int(np.argmax(wrong)), rows.shape)
        where = f"{name}[{', '.join(map(str, place))}]" if place else name
        raise OpError(f"{where} is {rows[place]}, which {dtype} cannot hold")
    return cast


def with_fill(name: str, value: Any, data: Array) -> tuple[Array, Any]:
    """Return the rows and `value` in one dtype: that of the rows; texts are as wide as the wider of both.

    Raises the errors of `cast_scalar`, and OpTypeError for a text with rows of bytes, or bytes with rows of text.
    """
    if not isinstance(value, (str, bytes)) or data.dtype.kind not in "SU":
        return data, cast_scalar(name, value, data.dtype)
    fill = np.asarray(value)
    if fill.dtype.kind != data.dtype.kind:
        expected = "bytes" if data.dtype.kind == "S" else "a str"
        raise OpTypeError(f"{name} is {value!r}, expected {expected}: the rows are {data.dtype}")
    dtype = np.promote_types(data.dtype, fill.dtype)
    return data.astype(dtype, copy=False), fill.astype(dtype)[()]
