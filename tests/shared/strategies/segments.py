"""Inputs for the ops that reduce rows by ids."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import registry
from seqflow.registry import OpDef


@st.composite
def _sorted_ids(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows with the id of their segment; ids count up from 0 without gaps."""
    size = draw(st.integers(0, 6))
    steps = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    return _with_ids(draw, op, np.cumsum([-1, 1, *steps[1:]][: size + 1])[1:]), {}


@st.composite
def _ids(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows with the id of their segment, in any order."""
    ids = draw(hnp.arrays("int64", st.integers(0, 6), elements=st.integers(0, 4)))
    return _with_ids(draw, op, ids), {"num_segments": 5}


def _with_ids(draw: Any, op: OpDef, ids: np.ndarray[Any, Any]) -> dict[str, Any]:
    data = np.arange(len(ids) * 2).reshape(-1, 2) - len(ids)
    inputs = {
        "data": data.astype(draw(st.sampled_from(["float32", "int64", "uint8"]))),
        "weights": np.arange(len(ids), dtype="float32") / 2,
        "ids": ids.astype(draw(st.sampled_from(["int32", "uint64"]))),
    }
    return {argument.name: inputs[argument.name] for argument in op.signature.input_arguments}


@st.composite
def _indices_with_sorted_ids(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    inputs, attributes = draw(_sorted_ids(registry.get("sorted_segment_weighted_sum")))
    return _into_table(draw, op, inputs), attributes


@st.composite
def _indices_with_ids(draw: Any, op: OpDef) -> tuple[dict[str, Any], dict[str, Any]]:
    inputs, attributes = draw(_ids(registry.get("unsorted_segment_weighted_sum")))
    return _into_table(draw, op, inputs), attributes


def _into_table(draw: Any, op: OpDef, inputs: dict[str, Any]) -> dict[str, Any]:
    """The same with rows of a table that indices pick."""
    rows = draw(st.integers(1, 4))
    inputs |= {
        "table": np.arange(rows * 2).reshape(-1, 2).astype(inputs["data"].dtype),
        "indices": np.arange(len(inputs["ids"])) * 7 % rows,
    }
    return {argument.name: inputs[argument.name] for argument in op.signature.input_arguments}


SORTED = ("logmeanexp", "logsumexp", "max", "mean", "min", "prod", "sum", "weighted_sum")
UNSORTED = ("max", "mean", "min", "sum", "weighted_sum")
SPARSE = ("mean", "sum", "weighted_sum")
SEGMENTS = {f"sorted_segment_{kind}": _sorted_ids for kind in SORTED} | {
    f"unsorted_segment_{kind}": _ids for kind in UNSORTED
}
SEGMENTS |= {f"sparse_sorted_segment_{kind}": _indices_with_sorted_ids for kind in SPARSE} | {
    f"sparse_unsorted_segment_{kind}": _indices_with_ids for kind in SPARSE
}
