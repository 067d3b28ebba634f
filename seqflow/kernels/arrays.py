"""Convert arguments to the form that kernels work on, and compute the dtypes of results."""

import sys
from typing import Any

import numpy as np

from seqflow.kernels.error import too_large, wrong_out
from seqflow.kernels.memory import check_memory

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]


def read_only(array: Array) -> Array:
    """Return a read-only view of an array; a read-only array itself."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def is_masked(kind: type) -> bool:
    """Return whether it is the type of masked arrays of NumPy, or of its constant `masked`."""
    # numpy.ma takes a while to import; it is imported where there are masked arrays
    return "numpy.ma" in sys.modules and issubclass(kind, np.ma.MaskedArray)


def not_an_array(name: str, value: Any, error: Exception) -> tuple[str, str]:
    """Return the message, and advice, for an object whose `__array__` has failed, or a list of such objects."""
    items = value if isinstance(value, (list, tuple)) else (value,)
    if any(getattr(one, "requires_grad", False) is True for one in items):
        advice = "seqflow.torch.ops has the ops on tensors, with gradients; x.detach() is one without"
        return f"{name} is a tensor of torch that requires a gradient, expected an array", advice
    return f"{name} does not become an array: {error}", ""


def row_text(array: Array) -> str:
    """The shape of its rows, for messages."""
    return f"[{', '.join(['_', *map(str, array.shape[1:])])}]"


def integers(values: Any, argument: str) -> Array:
    """Return `values` as contiguous int32 or int64; other integer dtypes become int64.

    Raises TypeError for other dtypes, KernelError for an unsigned value above int64.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{argument} is {array.dtype}, expected integers")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        position = int(np.argmax(array.ravel() > np.uint64(np.iinfo(np.int64).max)))
        raise too_large(argument, position, int(array.ravel()[position]))
    dtype = np.dtype(np.int32) if array.dtype == np.int32 else np.dtype(np.int64)
    return np.require(array, dtype, ["C", "A"]).reshape(array.shape)


def counts(values: Any, argument: str) -> Array:
    """Return one-dimensional `integers`."""
    array = integers(values, argument)
    if array.ndim != 1:
        raise ValueError(f"{argument} has {array.ndim} dimensions, expected 1")
    return array


def int64_integers(values: Any, argument: str) -> Array:
    """Return a copy of `integers` as int64: NumPy reads them more than once, and another thread may change them."""
    return integers(values, argument).astype(np.int64)


def int64_counts(values: Any, argument: str) -> Array:
    """Return a copy of `counts` as int64."""
    return counts(values, argument).astype(np.int64)


def rows(values: Any, argument: str) -> Array:
    """Return `values` as a C-contiguous array in native byte order with at least one axis."""
    array = np.asarray(values)
    if array.ndim == 0:
        raise ValueError(f"{argument} has no rows: it is a scalar")
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])


def check_out(out: Any, shape: tuple[int, ...], dtype: DType, argument: str = "out") -> Array:
    """Return `out` if it is a writable C-contiguous array of that shape and dtype; raise KernelError otherwise."""
    if not isinstance(out, np.ndarray):
        raise wrong_out(argument, type(out).__name__, "a numpy array")
    if out.shape != shape or out.dtype != dtype:
        raise wrong_out(argument, f"{out.dtype}{list(out.shape)}", f"{dtype}{list(shape)}")
    if not (out.flags.carray and out.dtype.isnative):
        found = "read-only" if not out.flags.writeable else "not contiguous and aligned, in native byte order"
        raise wrong_out(argument, found, "a writable C-contiguous array")
    return out


def output(out: Any, shape: tuple[int, ...], dtype: DType, argument: str = "out") -> Array:
    """Return `out`, checked, or a new array if it is None."""
    if out is not None:
        return check_out(out, shape, dtype, argument)
    check_memory(shape, dtype)
    return np.empty(shape, dtype)


def apart(source: Array, target: Array | None) -> Array:
    """Return `source`, or a copy of it if writing to `target` could change it."""
    return source.copy() if target is not None and np.may_share_memory(source, target) else source


def sum_dtype(dtype: DType) -> DType:
    """Return the dtype of a sum: float16 and float32 give float32, integers and bool int64, uint64 uint64."""
    match dtype.kind:
        case "b" | "i":
            return np.dtype(np.int64)
        case "u":
            return np.dtype(np.uint64 if dtype.itemsize == 8 else np.int64)
        case "f" if dtype.itemsize < 4:
            return np.dtype(np.float32)
    return dtype.newbyteorder("=")


def mean_dtype(dtype: DType) -> DType:
    """Return the dtype of a mean: float32 and float64 (and complex) stay, all others give float64."""
    keeps = (dtype.kind == "f" and dtype.itemsize >= 4) or dtype.kind == "c"
    return dtype.newbyteorder("=") if keeps else np.dtype(np.float64)


def reduced_dtype(kind: str, dtype: DType) -> DType:
    """Return the dtype of a reduction; raise ValueError for an unknown kind."""
    match kind:
        case "sum" | "prod":
            return sum_dtype(dtype)
        case "mean":
            return mean_dtype(dtype)
        case "max" | "min":
            return dtype.newbyteorder("=")
    raise ValueError(f"kind is {kind!r}, expected 'sum', 'mean', 'prod', 'max' or 'min'")


def scalar(value: Any, dtype: DType) -> Array:
    """Return `value` as an array of one element; raise OverflowError when an integer dtype cannot hold it."""
    return np.full(1, value, dtype)
