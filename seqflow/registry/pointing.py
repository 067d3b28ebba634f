"""Results that point at something, held against what the signature says: indices of rows, positions in sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpIndexError
from seqflow.kernels.arrays import Array
from seqflow.signature.language import Argument, Sum


def check_pointing(
    argument: Argument, result: Array, sizes: Mapping[object, Any], tensors: Mapping[str, Array]
) -> None:
    """OpIndexError where a result points outside what its dtype word says; -1, for none, is fine.

    `sizes` are those of the names of the signature, `tensors` the inputs and outputs by their names.
    """
    points = argument.dtype.points
    if argument.dtype.word in ("index", "offset"):
        count = sizes.get(points if isinstance(points, Sum) else str(points))
        if count is not None:
            count += argument.dtype.word == "offset"
            _refuse(argument, result, np.full(result.shape, count), f"which {points} says")
    elif argument.dtype.word == "position" and str(points) in tensors:
        lengths = tensors[str(points)].astype(np.int64)
        first = argument.dims[0] if argument.dims else None
        of = tensors.get(first.of) if isinstance(first, Sum) else None
        sequences = np.arange(len(lengths)) if of is None else kernels.lengths_to_segment_ids(of)
        most = lengths[sequences].reshape(-1, *[1] * (result.ndim - 1))
        _refuse(argument, result, np.broadcast_to(most, result.shape), "the rows of its sequence")


def _refuse(argument: Argument, result: Array, most: Array, why: str) -> None:
    outside = (result < -1) | (result >= most)
    if outside.any():
        place = np.unravel_index(int(np.argmax(outside)), result.shape)
        where = ", ".join(map(str, place))
        raise OpIndexError(f"{argument.name}[{where}] = {result[place]} is outside [0, {most[place]}), {why}")
