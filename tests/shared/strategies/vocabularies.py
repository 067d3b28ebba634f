"""Inputs for the ops that encode keys."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import seqflow as sf
from strategies.text import TEXTS, text_arrays

Call = tuple[dict[str, Any], dict[str, Any]]


@st.composite
def _integers(draw: Any, op: Any = None) -> Call:
    keys = draw(st.lists(st.integers(-4, 4) | st.just(2**40), unique=True, max_size=5))
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=4))
    ids = draw(hnp.arrays(draw(st.sampled_from(["int64", "int32"])), shape, elements=st.integers(-5, 5)))
    return {"ids": ids, "vocabulary": sf.Vocabulary(keys).freeze().table}, {}


@st.composite
def _strings(draw: Any, op: Any = None) -> Call:
    texts = draw(TEXTS)
    known = draw(st.lists(st.sampled_from([*texts, "no such text", ""]), unique=True))
    return {**text_arrays(texts), "vocabulary": sf.Vocabulary(known).freeze().table}, {}


VOCABULARIES = {"encode": _integers, "encode_strings": _strings}
