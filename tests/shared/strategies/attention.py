"""Inputs for attention, whose heads and rows have to fit together, and for rotary positions."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import registry

Call = tuple[dict[str, Any], dict[str, Any]]


@st.composite
def _attention(draw: Any, op: Any) -> Call:
    """Small numbers of a grid, so that scores are not too large; every form of the band."""
    count = draw(st.integers(0, 4))
    some_lengths = hnp.arrays(
        draw(st.sampled_from(["int32", "int64", "uint16"])), count, elements=st.integers(0, 4)
    )
    lengths = draw(some_lengths)
    kv_lengths = draw(some_lengths) if draw(st.booleans()) else lengths.copy()
    groups, ratio = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    depth, width = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    dtype = draw(st.sampled_from(["float16", "float32", "float64"]))
    queries, keys, heads = int(lengths.sum()), int(kv_lengths.sum()), groups * ratio
    shapes = {
        "q": (queries, heads, depth),
        "k": (keys, groups, depth),
        "v": (keys, groups, width),
        "slopes": (heads,),
    }
    given: dict[str, Any] = {"lengths": lengths, "kv_lengths": kv_lengths}
    for name, shape in shapes.items():
        given[name] = (draw(hnp.arrays("int64", shape, elements=st.integers(-8, 8))) / 8).astype(dtype)
    attributes = {
        "scale": draw(st.sampled_from([None, 0.5, -1.0])), "before": draw(st.sampled_from([None, 0, 2])),
        "after": draw(st.sampled_from([None, 0, 1])), "align": draw(st.sampled_from(["start", "end"])),
        "softcap": draw(st.sampled_from([None, 1.5])),
    }  # fmt: skip
    return {one.name: given[one.name] for one in op.signature.input_arguments}, attributes


@st.composite
def _attention_backward(draw: Any, op: Any) -> Call:
    """Inputs of attention, its results, and gradients that arrive at these."""
    forward = registry.get("attention_within")
    given, attributes = draw(_attention(forward))
    out, lse = forward.call(**given, **attributes)
    finite = np.where(np.isfinite(lse), lse, 0)
    known = given | {"out": out, "lse": lse, "d_out": out / 2 - out.dtype.type(0.25), "d_lse": finite / 2}
    return {one.name: known[one.name] for one in op.signature.input_arguments}, attributes


@st.composite
def _rotary(draw: Any, op: Any) -> Call:
    rows, pairs = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    dtype = draw(st.sampled_from(["float16", "float32", "float64"]))
    shape = (rows, *draw(st.sampled_from([(), (2,)])), 2 * pairs)
    x = (draw(hnp.arrays("int64", shape, elements=st.integers(-8, 8))) / 8).astype(dtype)
    sections = (draw(st.integers(0, pairs)),) if draw(st.booleans()) else ()
    sections = (*sections, pairs - sum(sections)) if sections else ()
    places = (rows, len(sections)) if sections else (rows,)
    positions = draw(
        hnp.arrays(draw(st.sampled_from(["int32", "int64", "float32"])), places, elements=st.integers(0, 9))
    )
    attributes = {"interleaved": draw(st.booleans()), "inverse": draw(st.booleans()), "sections": sections}
    return {"x": x, "positions": positions}, {"base": draw(st.sampled_from([10.0, 10000.0])), **attributes}


ATTENTION = {
    "attention_within": _attention,
    "attention_within_backward": _attention_backward,
    "rotary": _rotary,
}
