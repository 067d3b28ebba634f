"""Upper bounds of every op: what is inferred from bounds of the inputs holds for the results, and is not lost."""

import numpy as np
import pytest
from every_op import EXAMPLES, each, each_fourth_op, flat, results
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.calls import calls

from seqflow import TensorSpec
from seqflow.net.inference import note_bounds, tighten
from seqflow.shape import Dimension, Equalities

UNBOUNDED = {
    "decode",
    "lengths_range",
    "patch_positions",
    "squeeze",
    "token_offsets",
    "tokenize",
    "tokenize_chat",
    "train_tokenizer",
    "window_order",
}
"""Ops whose results may have no bound: what a token stands for is up to the tokenizer, sizes decide on the
rank that `squeeze` leaves, and grids on the number of patches."""


def is_count(array):
    """Whether its values may be lengths, positions or ids, so that bounds speak of them."""
    return array.ndim == 1 and array.dtype.kind in "iu" and int(array.min(initial=0)) >= 0


def bounded_spec(name, array, slack):
    """Sizes with a name and a bound that may be above what they are."""
    sizes = [Dimension.axis_of(name, axis, 0, size + slack) for axis, size in enumerate(array.shape)]
    return TensorSpec(array.dtype, sizes)


def infer_bounded(op, inputs, attributes, slack):
    """What is inferred of a call from upper bounds of its inputs, and the equalities then known."""
    known = Equalities()
    tensors = {name: np.asarray(array) for name, array in flat(inputs)}
    specs = {name: bounded_spec(name, array, slack) for name, array in tensors.items()}
    limits = {}
    for name, array in tensors.items():
        if is_count(array):
            limits[Dimension.sum_of(name)] = int(array.sum()) + slack
            limits[Dimension.max_of(name)] = int(array.max(initial=0)) + slack
    note_bounds(specs, limits, known)
    given = {
        name: [specs[f"{name}[{i}]"] for i in range(len(value))] if isinstance(value, list) else specs[name]
        for name, value in inputs.items()
    }
    names = [f"{op.name}.{name}" for name in op.result_names(attributes)]
    inferred = op.infer(given, attributes, values=inputs, results=names, equalities=known)
    for name, spec in zip(names, inferred.outputs, strict=True):
        tighten(name, spec, known)
    return dict(zip(names, inferred.outputs, strict=True)), known


@pytest.mark.slow
@each_fourth_op(0)
@given(data=st.data(), slack=st.integers(0, 2))
@settings(max_examples=EXAMPLES)
def test_sizes_sums_and_largest_values_stay_within_what_is_inferred(op, data, slack):
    inputs, attributes = data.draw(calls(op))
    outputs, known = infer_bounded(op, each(inputs, np.asarray), attributes, slack)
    for (name, spec), array in zip(outputs.items(), results(op, inputs, attributes), strict=True):
        most = known.resolve(spec.shape.num_elements).max_length
        assert most is not None or op.name in UNBOUNDED, f"{name} has no bound"
        assert most is None or array.size <= most, name
        if is_count(array):
            for total, found in (
                (Dimension.sum_of(name), int(array.sum())),
                (Dimension.max_of(name), int(array.max(initial=0))),
            ):
                most = known.resolve(total).max_length
                assert most is None or found <= most, total
