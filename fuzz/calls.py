"""Calls of ops: good ones, drawn as the tests draw them, and what mutation makes of them."""

import array
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as start_at

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))

from strategies.calls import calls

from seqflow.registry import OpDef

Inputs = dict[str, Any]
Attributes = dict[str, Any]

INTEGERS = [
    -1, 0, 1, 2, 3, 7, 255, 2**15, 2**31 - 1, 2**31, 10**9, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64,
    -(2**31), -(2**63), 10**30,
]  # fmt: skip
LONG = 1 << 20
FLOATS = [0.0, -0.0, 1.5, -1e-308, 1e30, float("nan"), float("inf"), float("-inf")]
DTYPES = [
    "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "M8[s]", "m8[ns]",
    "S3", "S0", "U2", "V3", ">i4", ">i8", ">f8", "O", "i4,f4",
]  # fmt: skip


def good_calls(op: OpDef, seed: int, count: int) -> list[tuple[Inputs, Attributes]]:
    """Calls that the op takes."""
    found: list[tuple[Inputs, Attributes]] = []

    @start_at(seed)
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate], derandomize=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(calls(op))
    def collect(call: tuple[Inputs, Attributes]) -> None:
        found.append(call)

    collect()
    return found


def call(op: OpDef, inputs: Inputs, attributes: Attributes) -> list[Any]:
    """All tensors of the results, those of lists one after another."""
    given = next(iter(inputs.values())) if op.variadic else []
    given = given if isinstance(given, list) else [given]
    result = op.call(*given, **attributes) if op.variadic else op.call(**inputs, **attributes)
    found = tuple(result) if op.result else (result,)
    return [each for one in found for each in (one if isinstance(one, list) else [one])]


def mutated(draw: random.Random, inputs: Inputs, attributes: Attributes) -> tuple[Inputs, Attributes]:
    """The call with one or two things changed."""
    inputs, attributes = dict(inputs), dict(attributes)
    for _ in range(draw.choice([1, 1, 1, 2])):
        if attributes and draw.random() < 0.4:
            name = draw.choice(list(attributes))
            attributes[name] = _attribute(draw, attributes[name])
        elif inputs:
            name = draw.choice(list(inputs))
            value = inputs[name]
            if isinstance(value, list) and value and draw.random() < 0.9:
                place = draw.randrange(len(value))
                inputs[name] = [*value[:place], _input(draw, value[place]), *value[place + 1 :]]
            else:
                inputs[name] = _input(draw, value)
    return inputs, attributes


def _attribute(draw: random.Random, value: Any) -> Any:
    chosen = draw.randrange(9)
    if chosen < 4:
        return draw.choice(INTEGERS)
    if chosen == 4 and isinstance(value, (tuple, list)):
        return [draw.choice([*INTEGERS, *value]) for _ in range(draw.randrange(4))]
    if chosen == 5:
        return draw.choice(FLOATS)
    if chosen == 6:
        return [
            draw.choice([np.array(1), np.array([1]), np.int8(1), "x", 1.5, None])
            for _ in range(draw.randrange(1, 3))
        ]
    return draw.choice([
        None, True, "", "max", b"x", np.array(2), np.array([1, 2]), np.int8(-1), np.uint64(2**64 - 1),
        np.float16(0.5),
        np.void(b"abc"), np.str_("1"), np.bytes_(b"1"), np.datetime64("NaT"), np.bool_(True), 1j, [], (), {}, [[]],
        object, "f4", np.dtype("f4"), np.dtype("O"), 2**4000, value, [value],
    ])  # fmt: skip


def _input(draw: random.Random, value: Any) -> Any:
    if not isinstance(value, np.ndarray) or draw.random() < 0.08:
        return draw.choice([
            None, 1, "x", [], [[]], [[1], [1, 2]], object(), np.void(b"abc"), np.array(1), {"a": 1}, b"abc", [None],
            np.zeros((0, 3)), np.zeros((3, 0)), np.float32(1), np.array("x"), range(3),
        ])  # fmt: skip
    if value.ndim and len(value) > LONG:  # rows without bytes, which NumPy would copy one by one
        return value
    mutate = draw.choice([_element, _element, _element, _shape, _shape, _dtype, _form])
    try:
        return mutate(draw, value)
    except (ValueError, TypeError, RuntimeError, MemoryError, OverflowError):  # NumPy has no such array
        return value


def _element(draw: random.Random, value: Any) -> Any:
    """One element, or all, another."""
    if value.size == 0 or value.dtype.kind not in "iufb":
        return value
    changed = value.copy()
    if value.dtype.kind in "iu":
        limits = np.iinfo(value.dtype)
        changed.flat[draw.randrange(value.size)] = draw.choice(
            [
                i
                for i in [*INTEGERS, limits.min, limits.max, *value.ravel()[:3].tolist()]
                if limits.min <= i <= limits.max
            ]
        )
    elif draw.random() < 0.8:
        changed.flat[draw.randrange(value.size)] = draw.choice(FLOATS)
    else:
        changed[...] = draw.choice([number for number in FLOATS if number != 1e30])  # whose sums would cancel
    return changed


def _shape(draw: random.Random, value: Any) -> Any:
    """More or fewer rows, columns or axes."""
    chosen = draw.randrange(9)
    if chosen == 0:
        return value[..., None]
    if chosen == 1:
        return value[None]
    if chosen == 2 and value.ndim:
        return value[: draw.randrange(len(value) + 1)]
    if chosen == 3 and value.ndim:
        return np.concatenate([value, value])
    if chosen == 4 and value.ndim:
        return np.zeros((*value.shape, 0), value.dtype)
    if chosen == 5:
        return np.zeros(
            (draw.choice([1, 2**31, 2**40, 2**62]), 0),
            draw.choice(["i1", "f8", "?"]) if draw.random() < 0.2 else "i1",
        )
    if chosen == 6:
        return np.broadcast_to(value[..., None], (*value.shape, draw.choice([0, 1, 2, 2**10])))
    if chosen == 7 and value.ndim == 1 and value.dtype.kind in "iu":
        return np.full(1, len(value), value.dtype)
    return value.reshape(-1)


def _dtype(draw: random.Random, value: Any) -> Any:
    return value.astype(draw.choice(DTYPES))


def _form(draw: random.Random, value: Any) -> Any:
    """The same values in another form."""
    chosen = draw.randrange(9)
    if chosen == 0:
        return np.ma.masked_array(value, mask=np.ones(value.shape, bool))
    if chosen == 1:
        return value.tolist()
    if chosen == 2:
        return np.asfortranarray(value)
    if chosen == 3 and value.ndim:
        return np.repeat(value, 2, axis=0)[::2]
    if chosen == 4 and value.ndim:
        return value[::-1].copy()[::-1]
    if chosen == 5:
        unaligned = (
            np.zeros(value.nbytes + 1, np.uint8)[1:].view(value.dtype).reshape(value.shape)
            if value.dtype.itemsize
            else value
        )
        unaligned[...] = value
        return unaligned
    if chosen == 6 and value.ndim == 1:
        return [np.array(one) for one in value]
    if chosen == 7 and value.ndim == 1 and value.dtype == np.int64:
        return array.array("q", value.tolist())
    view = value.view()
    view.flags.writeable = False
    return view
