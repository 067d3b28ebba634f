"""Every op on tensors is the op on arrays: values, dtypes, shapes; and its results are new memory."""

import numpy as np
import pytest
from every_op import EXAMPLES, returned
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import one_in
from strategies.calls import calls
from torch_calls import REGISTERED, SAYABLE, call, each, flat, schema_arguments, takes, tensors

from seqflow import registry
from seqflow.torch import ops
from seqflow.torch.ops.schemas import schema_of

torch = pytest.importorskip("torch")

TOLERANCE = {"float16": 1e-2, "float32": 1e-5}


def overlap(one, other):
    """Whether two tensors lie in the same memory."""
    spans = [(t.data_ptr(), t.data_ptr() + t.numel() * t.element_size()) for t in (one, other)]
    return one.numel() > 0 < other.numel() and spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]


@pytest.mark.parametrize("op", SAYABLE, ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_values_dtypes_and_shapes_are_those_of_numpy(op, data):
    inputs, attributes = data.draw(calls(op))
    assume(takes(op, inputs))
    expected = flat(returned(op, inputs, attributes))
    given_tensors = {name: tensors(value) for name, value in inputs.items()}
    found = flat(call(getattr(ops, op.name), op, given_tensors, attributes))
    assert len(found) == len(expected)
    for tensor, array in zip(found, expected, strict=True):
        assert tensor.numpy().dtype == array.dtype
        assert tuple(tensor.shape) == array.shape
        tolerance = TOLERANCE.get(array.dtype.name, 1e-12)
        np.testing.assert_allclose(tensor.numpy(), array, rtol=tolerance, atol=tolerance)
        sources = [one for value in given_tensors.values() for one in each(value) if one is not None]
        assert not any(overlap(tensor, one) for one in sources)


@pytest.mark.slow
@pytest.mark.parametrize(
    "op", one_in(4, REGISTERED, lambda op: (op.grad is None, op.variadic)), ids=lambda op: op.name
)
@given(data=st.data())
@settings(max_examples=2)
def test_torch_has_no_objections(op, data):
    """Schema, registration of autograd, fake tensors, and tracing with symbolic sizes, as `opcheck` holds them."""
    from seqflow.net.gradient.derivative import is_differentiable
    from seqflow.registry import NoDerivative

    inputs, attributes = data.draw(calls(op))
    assume(takes(op, inputs))

    def trained(name, value):
        said = op.grad.get(name) if isinstance(op.grad, dict) else op.grad
        may = op.grad is not None and not isinstance(said, NoDerivative) and is_differentiable(op, name)
        copies = [
            one.clone().requires_grad_(may and one.is_floating_point())
            for one in each(value)
            if one is not None
        ]
        return copies if isinstance(value, list) else copies[0] if copies else None

    given_tensors = {name: trained(name, tensors(value)) for name, value in inputs.items()}
    arguments, named = schema_arguments(op, given_tensors, attributes)
    getattr(ops, op.name)
    torch.library.opcheck(getattr(torch.ops.seqflow, op.name).default, arguments, named)


def test_a_schema_is_made_of_the_signature():
    assert schema_of(registry.get("pad")) == (
        "pad(Tensor data, Tensor lengths, *, int? max_length=None, Scalar fill=0, str side='right', "
        "bool truncate=False, int multiple_of=1) -> (Tensor, Tensor)"
    )
    assert schema_of(registry.get("concat")) == "concat(Tensor[] tensors, *, int axis=0) -> Tensor"


def test_results_have_names():
    padded = ops.pad(torch.ones(3), torch.tensor([2, 1]), max_length=3)
    assert padded.mask.tolist() == [[True, True, False], [True, False, False]]


def test_dtypes_may_be_those_of_torch():
    assert ops.cast(torch.ones(2), dtype=torch.int32).dtype is torch.int32
    assert ops.one_hot(torch.tensor([0]), width=2, dtype=torch.float64).dtype is torch.float64


def test_bfloat16_is_computed_in_float32():
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.bfloat16)
    n = torch.tensor([2, 1])
    assert ops.lengths_mean(x, n).dtype is torch.bfloat16
    assert ops.lengths_mean(x, n).tolist() == [1.5, 3.0]
    assert (ops.exp(x) * 1).dtype is torch.bfloat16
    assert ops.expression(x, expr="x * 2").dtype is torch.bfloat16


def test_half_precision_follows_the_op():
    assert ops.lengths_sum(torch.ones(3, dtype=torch.float16), torch.tensor([3])).dtype is torch.float32


def test_the_namespace_of_torch_has_them_too():
    _ = ops.lengths_sum
    assert torch.ops.seqflow.lengths_sum(torch.ones(3), torch.tensor([2, 1])).tolist() == [2, 1]


def test_ops_are_listed():
    assert "lengths_sum" in dir(ops)
    assert "tokenize" not in dir(ops)
