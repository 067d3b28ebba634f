"""Several sequences in each row, in C++."""

from typing import Any

import numpy as np

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import (
    Array,
    PackingPlan,
    apart,
    check_same_size,
    check_strategy,
    check_width,
    counts,
    output,
    rows,
    scalar,
)
from seqflow.kernels.native.forms import is_moved, raw


def plan_packing(lengths: Array, capacity: int, strategy: str = "best_fit") -> PackingPlan:
    check_strategy(capacity, strategy)
    return PackingPlan(*_native.plan_packing(counts(lengths, "lengths"), capacity, strategy))


def fill_packed(
    data: Array,
    lengths: Array,
    plan: tuple[Array, Array, Array, Array],
    capacity: int,
    value: Any = 0,
    *,
    out: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array]:
    check_width(capacity)
    data, lengths = rows(data, "data"), counts(lengths, "lengths")
    if not is_moved(data):
        return reference.fill_packed(data, lengths, plan, capacity, value, out=out)
    sources, starts, sizes, pieces = (
        counts(array, name) for array, name in zip(plan, PackingPlan._fields, strict=True)
    )
    check_same_size(sources=sources, starts=starts, piece_lengths=sizes)
    fill = scalar(value, data.dtype).tobytes()
    shape = (len(pieces), capacity)
    given = out or (None, None, None)
    packed = output(given[0], shape + data.shape[1:], data.dtype)
    segment_ids = output(given[1], shape, np.dtype(np.int32), "segment_ids")
    position_ids = output(given[2], shape, np.dtype(np.int32), "position_ids")
    _native.fill_packed(
        raw(apart(data, packed)), lengths, sources, starts, sizes, pieces, capacity, fill,
        raw(packed), segment_ids, position_ids,
    )  # fmt: skip
    return packed, segment_ids, position_ids
