"""What shape functions say holds of every call, for ops that are drawn as shapes and dense arithmetic are."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inferring import ROWS
from strategies.shaping import SHAPING

from seqflow import Dimension, LodError, PartialShape, TensorSpec, registry

NAMES = [name for name in registry.names() if name in SHAPING and registry.get(name).shape]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_rows_said_to_be_kept_move_with_the_input(name, data):
    op = registry.get(name)
    inputs, attributes = data.draw(SHAPING[name]())
    moved = data.draw(st.sampled_from([key for key in inputs if key != "shape"]))
    specs = {key: specs_of(array, ROWS if key == moved else None) for key, array in inputs.items()}
    count = min((len(one) for one in as_list(inputs[moved]) if one.ndim), default=0)
    order = data.draw(st.permutations(range(count)))
    together = [key for key in inputs if key == moved or batches(inputs, name)]
    permuted = inputs | {key: permute(inputs[key], order) for key in together}
    found = as_list(op.call(**inputs, **attributes))
    again = as_list(op.call(**permuted, **attributes))
    try:
        inferred = op.infer(specs, attributes, values=inputs)
    except LodError as error:
        assert re.search("rows do not broadcast|rows meet the same rows, or a size of 1", str(error))  # noqa: PT017
        return
    for one, before, after in zip(inferred.outputs, found, again, strict=True):
        if one.rows == ROWS:
            np.testing.assert_allclose(after.astype(float), before[order].astype(float), rtol=1e-6)


def batches(inputs, name):
    """Whether axis 0 of both factors of a product is the same batch."""
    shapes = [array.shape for array in inputs.values()] if name == "matmul" else [()]
    return len(shapes[0]) > 2 and len(shapes[0]) == len(shapes[1]) and shapes[0][0] == shapes[1][0]


def as_list(value):
    return value if isinstance(value, list) else [value]


def permute(value, order):
    if isinstance(value, list):
        return [permute(one, order) for one in value]
    return value[order] if value.ndim and len(value) == len(order) else value


def specs_of(value, rows):
    if isinstance(value, list):
        return [specs_of(one, rows) for one in value]
    return TensorSpec.of(value, rows)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_a_shape_known_in_part_still_holds_the_real_one(name, data):
    op = registry.get(name)
    inputs, attributes = data.draw(SHAPING[name]())
    named = {key: blurred(data, key, value) for key, value in inputs.items()}
    values = inputs if data.draw(st.booleans()) else {}
    inferred = op.infer(named, attributes, values=values)
    result = op.call(**inputs, **attributes)
    for found, real in zip(inferred.outputs, result if isinstance(result, list) else [result], strict=True):
        assert found.dtype == real.dtype
        assert found.shape.relaxes(PartialShape(real.shape))


def blurred(data, name, value):
    """The spec of an array with some of its sizes forgotten, or given a name."""
    if isinstance(value, list):
        return [blurred(data, f"{name}_{i}", one) for i, one in enumerate(value)]
    forms = st.sampled_from(["size", "name", "bounds", "unknown"])
    sizes = [
        {
            "size": size,
            "name": f"{name}.shape[{i}]",
            "bounds": Dimension(max(size - 1, 0), size + 1),
            "unknown": "?",
        }[data.draw(forms)]
        for i, size in enumerate(value.shape)
    ]
    return TensorSpec(value.dtype, "?" if data.draw(st.integers(0, 5)) == 0 else sizes)
