"""Inputs for ops that other libraries have: by ids, of two columns, of several columns with one budget."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import lengths_arrays

Call = tuple[dict[str, Any], dict[str, Any]]


@st.composite
def _ids(draw: Any, op: Any = None) -> Call:
    """Ids in any order, with or without the number of segments."""
    dtype = draw(st.sampled_from(["int32", "int64", "uint8"]))
    ids = draw(hnp.arrays(dtype, st.integers(0, 6), elements=st.integers(0, 4)))
    return {"ids": ids}, draw(st.sampled_from([{}, {"num_segments": 5}, {"num_segments": 7}]))


PEERS = {
    "group_order": _ids,
}
