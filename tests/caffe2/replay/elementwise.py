"""Caffe2's elementwise operators, which broadcast the second tensor along axes of the first."""

from collections.abc import Callable
from functools import reduce

import numpy as np

from seqflow import ops
from seqflow.errors import OpError, ShapeError
from seqflow.kernels.arrays import Array

from .adapter import ADAPTERS, Adapter, origins
from .dense import Order

Binary = Callable[[Array, Array], Array]


def _broadcasting(function: Binary) -> Callable[..., Array]:
    """Return an operator on two tensors that broadcast: as in NumPy, or the second along axes of the first."""

    def call(
        a: Array,
        b: Array,
        *,
        broadcast: bool = False,
        axis: int = -1,
        axis_str: str = "",
        order: Order = "NCHW",
    ) -> Array:
        """Apply the function. With `broadcast`, the axes of `b` are those of `a` from `axis` on; without `axis`, its
        last ones.
        """
        if broadcast and axis_str:
            if axis != -1 or len(axis_str) != 1 or axis_str not in order:
                raise OpError(f"axis_str is {axis_str!r}, expected one of {order!r}, and axis not given")
            axis = order.index(axis_str)
        return function(a, _along(a, b, axis) if broadcast else b)

    return call


def _along(a: Array, b: Array, axis: int) -> Array:
    """Return `b` with axes of size 1 appended, so that its first axis is axis `axis` of `a`."""
    # a single element broadcasts over everything, whatever its axes
    if b.size == 1:
        return b.reshape(())
    last = a.ndim - b.ndim
    first = last if axis == -1 else axis
    if not 0 <= first <= last:
        raise ShapeError(
            f"axis is {axis}, expected 0 to {last}: b has {b.ndim} of the {a.ndim} dimensions of a"
        )
    for i, size in enumerate(b.shape):
        if size not in (1, a.shape[first + i]):
            raise ShapeError(
                f"b.shape[{i}] is {size}, expected {a.shape[first + i]} as in a.shape[{first + i}]"
            )
    return b.reshape(*b.shape, *[1] * (last - first))


def _divide(a: Array, b: Array) -> Array:
    """Divide; integers are divided as in C, towards 0, and dividing one by zero is an error."""
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        # `fmod` has the sign of `a`, so the difference is a multiple of `b`, and its floored quotient is the
        # truncated one
        return ops.floor_divide(ops.sub(a, ops.fmod(a, b)), b)
    return ops.div(a, b)


def power(
    x: Array, exponent_input: Array | None = None, *, exponent: float | None = None, broadcast: bool = False,
    axis: int = -1, axis_str: str = "", order: Order = "NCHW",
) -> Array:  # fmt: skip
    """Compute powers; the exponent is an argument or the second input."""
    if (exponent is None) == (exponent_input is None):
        raise OpError("exponent is expected either as an argument or as the second input")
    if exponent_input is None:
        return ops.pow(x, exponent)  # type: ignore[arg-type]
    return _power(x, exponent_input, broadcast=broadcast, axis=axis, axis_str=axis_str, order=order)


_power = _broadcasting(ops.pow)


def modulo(x: Array, *, divisor: int, sign_follow_divisor: bool = False) -> Array:
    """Compute remainders; the sign is that of the element, or of the divisor with `sign_follow_divisor`."""
    return ops.remainder(x, divisor) if sign_follow_divisor else ops.fmod(x, divisor)


def clip(x: Array, *, min: float | None = None, max: float | None = None) -> Array:
    """Clip; infinities become the largest finite numbers, unless bounds are given."""
    limits = np.finfo(x.dtype if x.dtype.kind == "f" else np.float64)
    low, high = float(limits.min) if min is None else min, float(limits.max) if max is None else max
    return ops.clip(x, low, high)


def where(condition: Array, x: Array, y: Array, *, broadcast_on_rows: bool = False) -> Array:
    """Select elements by a condition; with `broadcast_on_rows` there is one condition a row."""
    if broadcast_on_rows and condition.ndim < x.ndim:
        condition = condition.reshape(*condition.shape, *[1] * (x.ndim - condition.ndim))
    return ops.where(condition, x, y)


def _all_inputs(function: Binary) -> Callable[..., Array]:
    """Return an operator on one tensor or more, applied from left to right."""
    return lambda *inputs: reduce(function, inputs)


_BROADCASTING = (
    "Add", "Sub", "Mul", "EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or", "Xor",
    "BitwiseAnd", "BitwiseOr", "BitwiseXor",
)  # fmt: skip
_OPS = origins()

ADAPTERS |= {
    **{name: Adapter(_broadcasting(_OPS[name].call)) for name in _BROADCASTING},
    "Div": Adapter(_broadcasting(_divide)),
    "Pow": Adapter(power),
    "Mod": Adapter(modulo),
    "Clip": Adapter(clip),
    "Where": Adapter(where, strings=True),
    "Sum": Adapter(_all_inputs(ops.add)),
    "Max": Adapter(_all_inputs(ops.maximum)),
    "Min": Adapter(_all_inputs(ops.minimum)),
}
