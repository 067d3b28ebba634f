"""Second implementations have the gradients of the ops, of first and second order: at ties, zeros, NaN, infinities, and of batches without rows."""

import numpy as np
import pytest
from every_op import EXAMPLES
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from strategies.calls import calls
from torch_calls import each, flat, takes, tensors

from seqflow import registry
from seqflow.errors import GradientError, SeqflowError
from seqflow.net.gradient.derivative import is_differentiable
from seqflow.registry import NoDerivative
from seqflow.torch import ops

torch = pytest.importorskip("torch")

from seqflow.torch.device import IMPLEMENTATIONS  # noqa: E402

OPS = [registry.get(name) for name in sorted(IMPLEMENTATIONS)]
TRAINED = [
    op
    for op in OPS
    if op.grad is not None
    and not isinstance(op.grad, NoDerivative)
    and any(is_differentiable(op, one.name) for one in op.signature.input_arguments)
]


@st.composite
def special(draw, op):
    """A call, its numbers as float64, few and many of them equal, with zeros, NaN and infinities among them."""
    inputs, attributes = draw(calls(op))
    odd = draw(st.sampled_from([[], [0.0], [np.nan], [-np.inf], [np.inf], [np.nan, -np.inf, 0.0]]))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)

    def changed(name, array):
        if array is None or array.dtype.kind not in "biuf" or not is_differentiable(op, name):
            return array
        values = rng.choice([-1.0, 0.0, 2.0, *odd], array.shape)
        return np.asarray(values)

    made = {
        name: [changed(name, one) for one in value] if isinstance(value, list) else changed(name, value)
        for name, value in inputs.items()
    }
    return made, attributes


def derivatives(function, op, inputs, attributes):
    """The results that are floats, gradients, and gradients of gradients, of all inputs through which they flow."""
    given_tensors = {name: tensors(value) for name, value in inputs.items()}
    trained = [
        one.requires_grad_()
        for name, value in given_tensors.items()
        if is_differentiable(op, name)
        and not isinstance(op.grad.get(name) if isinstance(op.grad, dict) else None, NoDerivative)
        for one in each(value)
        if one is not None and one.dtype is torch.float64
    ]
    arguments = [given_tensors.get(one.name) for one in op.signature.input_arguments]
    found = [
        one
        for one in flat(function(*arguments, **attributes))
        if one.is_floating_point() and one.requires_grad
    ]
    if not found or not trained:
        return None
    loss = sum((one * torch.arange(1.0, one.numel() + 1).reshape(one.shape)).sum() for one in found)
    first = torch.autograd.grad(loss, trained, create_graph=True, materialize_grads=True)
    through = [one for one in first if one.requires_grad]
    second = []
    if through:
        again = sum((one * torch.arange(1.0, one.numel() + 1).reshape(one.shape)).sum() for one in through)
        try:
            second = torch.autograd.grad(again, trained, materialize_grads=True)
        except GradientError:
            second = None
    return found, first, second


@pytest.mark.parametrize("op", TRAINED, ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.filter_too_much])
def test_gradients_are_those_of_the_cpu(op, data):
    inputs, attributes = data.draw(special(op))
    assume(takes(op, inputs))
    try:
        expected = derivatives(getattr(ops, op.name), op, inputs, attributes)
    except SeqflowError:
        assume(False)
    found = derivatives(IMPLEMENTATIONS[op.name], op, inputs, attributes)
    assert (found is None) == (expected is None)
    assume(found is not None)
    for one, other in zip(found, expected, strict=True):
        if other is None or one is None:
            continue
        if len(one) != len(other):
            assert not any(x.isfinite().all() and x.any() for x in [*one, *other]), "second"
            continue
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(a.detach(), b.detach(), equal_nan=True)
