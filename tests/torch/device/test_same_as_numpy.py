"""Every second implementation is the op on arrays: values, dtypes, shapes, errors; its results are new memory."""

import numpy as np
import pytest
from every_op import EXAMPLES, returned
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import one_in
from strategies.calls import calls
from torch_calls import each, flat, takes, tensors

from seqflow import registry
from seqflow.errors import SeqflowError

torch = pytest.importorskip("torch")

from seqflow.torch.device import IMPLEMENTATIONS  # noqa: E402

OPS = [registry.get(name) for name in sorted(IMPLEMENTATIONS)]
each_implementation = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
TOLERANCE = {"float16": 1e-2, "float32": 1e-5}
UNSIGNED = ("uint16", "uint32", "uint64")


def optional_attributes(op):
    """Values of the attributes that need not be given; not all fit all inputs."""

    def values(one):
        if one.kind == "bool":
            return st.booleans()
        if one.kind == "choice":
            return st.sampled_from(one.choices)
        if one.kind in ("scalar", "fill"):
            return st.sampled_from([0, 1, 2, -1, 0.5])
        if one.kind == "float":
            return st.sampled_from([0.0, 0.5, 1.0])
        return st.integers(one.minimum or 0, 6)

    named = {
        one.name: values(one)
        for one in op.attributes
        if not one.required and one.name != "out" and one.kind in _DRAWN
    }
    return st.fixed_dictionaries({}, optional=named)


_DRAWN = ("bool", "choice", "scalar", "fill", "float", "int")


@st.composite
def device_calls(draw, op):
    inputs, attributes = draw(calls(op))
    return inputs, attributes | draw(optional_attributes(op))


def computed_by_torch(op, inputs):
    """Whether torch computes with data of these dtypes."""
    arguments = {one.name: one for one in op.signature.input_arguments}
    return all(
        array.dtype.name not in UNSIGNED
        or arguments[name].is_lengths
        or arguments[name].dtype.word in ("int", "index", "position", "offset")
        for name, value in inputs.items()
        for array in each(value)
        if array is not None
    )


def outcome(function):
    """What a call returns, or its error."""
    try:
        return flat(function()), None
    except SeqflowError as error:
        return None, error


def moved(value, device):
    if isinstance(value, list):
        return [moved(one, device) for one in value]
    return value if value is None else value.to(device)


def own_memory(tensor, sources):
    return all(tensor.untyped_storage().data_ptr() != one.untyped_storage().data_ptr() for one in sources)


@pytest.mark.slow
@pytest.mark.parametrize("op", one_in(2, OPS), ids=lambda op: op.name)
@pytest.mark.parametrize("device", DEVICES)
@given(data=st.data())
@settings(max_examples=2 * EXAMPLES)
def test_values_dtypes_shapes_and_errors_are_those_of_numpy(op, device, data):
    inputs, attributes = data.draw(device_calls(op))
    assume(takes(op, inputs) and computed_by_torch(op, inputs))
    expected, refusal = outcome(lambda: returned(op, inputs, attributes))
    assume(device == "cpu" or refusal is None)  # an assertion that fails on CUDA ends the process
    given_tensors = [moved(tensors(inputs.get(one.name)), device) for one in op.signature.input_arguments]
    found, error = outcome(lambda: IMPLEMENTATIONS[op.name](*given_tensors, **attributes))
    if refusal is not None:
        assert type(error) is type(refusal)
        assert str(error) == str(refusal)
        return
    assert error is None
    assert len(found) == len(expected)
    sources = [one for value in given_tensors for one in each(value) if one is not None and one.numel()]
    for tensor, array in zip(found, expected, strict=True):
        assert tensor.device.type == device
        assert tensor.cpu().numpy().dtype == array.dtype
        assert tuple(tensor.shape) == array.shape
        tolerance = TOLERANCE.get(array.dtype.name, 1e-12)
        np.testing.assert_allclose(tensor.cpu().numpy(), array, rtol=tolerance, atol=tolerance)
        assert not tensor.numel() or own_memory(tensor, sources)
