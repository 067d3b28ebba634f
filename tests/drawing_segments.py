"""Rows and the ids of their segments, for the ops that reduce by ids."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


@st.composite
def _by_ids(draw: Any, weighted: bool, in_order: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows with the id of their segment; `in_order`: ids count up from 0 without gaps."""
    size = draw(st.integers(0, 6))
    if in_order:
        steps = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
        ids, attributes = np.cumsum([-1, 1, *steps[1:]][: size + 1])[1:], {}
    else:
        ids, attributes = draw(hnp.arrays("int64", size, elements=st.integers(0, 4))), {"num_segments": 5}
    data = np.arange(size * 2).reshape(size, 2) - size
    dtype = draw(st.sampled_from(["float32", "int64", "uint8"]))
    inputs = {"data": data.astype(dtype), "ids": ids.astype(draw(st.sampled_from(["int32", "uint64"])))}
    if weighted:
        weights = np.arange(size, dtype="float32") / 2
        inputs = {"data": inputs["data"], "weights": weights, "ids": inputs["ids"]}
    return inputs, attributes


SEGMENTS = {
    "sorted_ids": lambda op: _by_ids(weighted=False, in_order=True),
    "weighted_sorted_ids": lambda op: _by_ids(weighted=True, in_order=True),
    "ids": lambda op: _by_ids(weighted=False, in_order=False),
    "weighted_ids": lambda op: _by_ids(weighted=True, in_order=False),
}
