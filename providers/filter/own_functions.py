"""Functions of filters that Arrow lacks: `hash` and `%`, registered with Arrow, so that its expressions call them."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from seqflow import kernels
from seqflow.record.buffers import leaf_array, leaf_values, nulls_of, view
from seqflow.record.record import Tensor

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
HASHED = (*_INTEGERS, pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
"""Types whose values are hashed."""


@cache
def register() -> None:
    """Register the functions in this process, once; expressions that another process has made call them by name."""
    for kind in HASHED:
        inputs = {"x": kind, "seed": pa.uint64()}
        pc.register_scalar_function(_hash, f"seqflow.hash_{kind}", _described("hash"), inputs, pa.int64())
    inputs = {"x": pa.int64(), "y": pa.int64()}
    pc.register_scalar_function(_remainder, "seqflow.remainder", _described("remainder"), inputs, pa.int64())


def _described(summary: str) -> dict[str, str]:
    return {"summary": summary, "description": summary}


def _hash(_: Any, x: pa.Array | pa.Scalar, seed: pa.Scalar) -> pa.Array | pa.Scalar:
    """Return the hash of each value, as the ops `hash` and `hash_text` do."""
    array, state = _array(x), kernels.hash_state(seed.as_py())
    if types.is_integer(x.type):
        ids = leaf_values(array)
        ids = ids.view(np.int64) if ids.dtype == np.uint64 else ids
        found = kernels.hash_ids(ids, state, kernels.HASHES)
    else:
        is_large = types.is_large_string(x.type) or types.is_large_binary(x.type)
        _, starts, data = array.buffers()
        offsets = view(starts, np.dtype(np.int64 if is_large else np.int32), array.offset, len(array) + 1)
        texts = view(data, np.dtype(np.uint8), int(offsets[0]), int(offsets[-1] - offsets[0]))
        found = kernels.hash_strings(texts, np.diff(offsets), state, kernels.HASHES)
    return _like(found, nulls_of(array), x)


def _remainder(_: Any, x: pa.Array | pa.Scalar, y: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """Return x - y * ⌊x / y⌋, as the op `remainder` does; raise ArrowInvalid when an integer is divided by zero."""
    left, right = _array(x), _array(y)
    # an array of one row stands for a scalar, and broadcasts
    nulls = left.is_null().to_numpy(False) | right.is_null().to_numpy(False)
    divisors = leaf_values(right)
    if (~nulls & (divisors == 0)).any():
        raise pa.ArrowInvalid("an integer is divided by zero")
    found = np.remainder(leaf_values(left), np.where(divisors == 0, 1, divisors))
    return _like(found, nulls, x, y)


def _array(x: pa.Array | pa.Scalar) -> pa.Array:
    return pa.array([x.as_py()], x.type) if isinstance(x, pa.Scalar) else x


def _like(found: Tensor, nulls: Tensor | None, *operands: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """Return results as Arrow expects them: a scalar if all operands are scalars."""
    array = leaf_array(found, pa.int64(), nulls)
    return array[0] if all(isinstance(one, pa.Scalar) for one in operands) else array
