"""Inputs for the ops on quantised rows."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import registry
from seqflow.registry import OpDef


@st.composite
def _numbers(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Finite rows, wide enough for whole bytes."""
    shape = draw(st.tuples(st.integers(0, 4), st.sampled_from([0, 4, 8])))
    data = draw(hnp.arrays("float32", shape, elements=st.integers(-9, 9)))
    return {"data": data}, {"bits": draw(st.sampled_from([8, 4, 2]))}


@st.composite
def _quantized(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """A table of quantised rows, and what else the op takes; the mapping prunes at times."""
    inputs, attributes = draw(_numbers(op))
    table = registry.get("quantize_rowwise").call(**inputs, **attributes)
    lengths = draw(hnp.arrays("int64", st.integers(0, 4), elements=st.integers(0, 4)))
    if not len(table):
        lengths[:] = 0
    size = int(lengths.sum())
    drawn = {"table": table, "lengths": lengths, "weights": np.arange(size, dtype=np.float32) / 2}
    drawn["indices"] = np.arange(size) * 7 % max(len(table), 1)
    pruned = draw(st.booleans())
    drawn["mapping"] = np.arange(len(table)) - (1 if pruned else 0)
    return {argument.name: drawn[argument.name] for argument in op.signature.input_arguments}, attributes


@st.composite
def _pruned(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    mapping = draw(hnp.arrays("int32", st.integers(1, 4), elements=st.integers(-1, 3)))
    lengths = draw(hnp.arrays("int64", st.integers(0, 4), elements=st.integers(0, 4)))
    return {"indices": np.arange(lengths.sum()) % len(mapping), "mapping": mapping, "lengths": lengths}, {}


QUANTIZED = {
    "quantize_rowwise": _numbers,
    "dequantize_rowwise": _quantized,
    "gather_quantized": _quantized,
    "sparse_lengths_mean_quantized": _quantized,
    "sparse_lengths_sum_quantized": _quantized,
    "sparse_lengths_weighted_sum_quantized": _quantized,
    "sparse_lookup": _pruned,
}
