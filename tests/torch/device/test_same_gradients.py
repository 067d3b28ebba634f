"""Second implementations have the ops' own gradients, and theirs in turn: at ties, zeros, NaN and infinities, and of none.

Where a segment of products, variances or states of cells holds infinities, both give NaN or infinity, not always the
same: they compute in another order.
"""

import numpy as np
import pytest
from every_op import EXAMPLES
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import one_in
from strategies.calls import calls
from torch_calls import each, flat, takes, tensors

from seqflow import registry
from seqflow.errors import GradientError, SeqflowError
from seqflow.net.gradient.derivative import is_differentiable
from seqflow.registry import NoDerivative
from seqflow.torch import ops

torch = pytest.importorskip("torch")

from seqflow.torch.device import IMPLEMENTATIONS  # noqa: E402

TRAINED = [
    op
    for op in map(registry.get, sorted(IMPLEMENTATIONS))
    if op.grad is not None
    and not isinstance(op.grad, NoDerivative)
    and any(is_differentiable(op, one.name) for one in op.signature.input_arguments)
]
FEW = (
    "lengths_max",
    "lengths_logsumexp",
    "sorted_segment_max",
    "unsorted_segment_min",
)
ANOTHER_ORDER = (
    "attention_within", "lengths_prod", "lengths_var", "lengths_std", "sorted_segment_prod",
    *(f"{ends}{cell}" for ends in ("", "bidirectional_") for cell in ("rnn", "gru", "lstm")),
)  # fmt: skip
ODD = ([], [0.0], [np.nan], [-np.inf], [np.inf], [np.nan, -np.inf, 0.0])


@st.composite
def special_calls(draw, op):
    """A call on float64 of few values, so that many are equal, with odd ones among them."""
    inputs, attributes = draw(calls(op))
    odd = draw(st.sampled_from(ODD[:2] if op.name in ANOTHER_ORDER else ODD))
    rng = np.random.default_rng(draw(st.integers(0, 999)))

    def changed(name, array):
        if array is None or array.dtype.kind not in "biuf" or not is_differentiable(op, name):
            return array
        return np.asarray(rng.choice([-1.0, 0.0, 2.0, *odd], array.shape))

    return {
        name: [changed(name, one) for one in value] if isinstance(value, list) else changed(name, value)
        for name, value in inputs.items()
    }, attributes


def weighted(found):
    """A loss in which each element has a weight of its own; None where none trains."""
    trained = [one for one in found if one.is_floating_point() and one.requires_grad]
    weights = [torch.arange(1.0, one.numel() + 1).reshape(one.shape) for one in trained]
    return (
        sum((one * weight).sum() for one, weight in zip(trained, weights, strict=True)) if trained else None
    )


def derivatives(function, op, inputs, attributes):
    """The gradients, and the gradients of these, of all inputs through which they flow; None where none trains."""
    made = {name: tensors(value) for name, value in inputs.items()}
    reasons = op.grad if isinstance(op.grad, dict) else {}
    trained = [
        one.requires_grad_()
        for name, value in made.items()
        if is_differentiable(op, name) and not isinstance(reasons.get(name), NoDerivative)
        for one in each(value)
        if one is not None and one.dtype is torch.float64
    ]
    loss = weighted(
        flat(function(*(made.get(one.name) for one in op.signature.input_arguments), **attributes))
    )
    if loss is None or not trained:
        return None
    first = torch.autograd.grad(loss, trained, create_graph=True, materialize_grads=True)
    again = weighted(first)
    try:
        second = again if again is None else torch.autograd.grad(again, trained, materialize_grads=True)
    except GradientError:  # there is none of this order
        second = "none"
    return first, [torch.zeros_like(one) for one in trained] if second is None else second


def check(op, data):
    inputs, attributes = data.draw(special_calls(op))
    assume(takes(op, inputs))
    try:
        expected = derivatives(getattr(ops, op.name), op, inputs, attributes)
    except SeqflowError:
        assume(False)
    found = derivatives(IMPLEMENTATIONS[op.name], op, inputs, attributes)
    assert (found is None) == (expected is None), "one keeps the graph, the other does not"
    for mine, theirs in zip(found or (), expected or (), strict=True):
        if theirs != "none":
            torch.testing.assert_close(mine, theirs, equal_nan=True)


@pytest.mark.parametrize("op", [op for op in TRAINED if op.name in FEW], ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=10)
def test_gradients_are_those_of_the_cpu(op, data):
    check(op, data)


@pytest.mark.slow
@pytest.mark.parametrize("op", one_in(2, TRAINED, lambda op: op.family), ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_gradients_of_all_ops_are_those_of_the_cpu(op, data):
    check(op, data)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["gather", "expand", "sparse_lengths_sum", "lengths_first"])
def test_gradients_of_half_precision_are_summed_wide(name, dtype):
    table = torch.ones(2, 2, dtype=getattr(torch, dtype), requires_grad=True)
    many, once = torch.zeros(3000, dtype=torch.long), torch.tensor([3000, 0])
    arguments = {
        "gather": [many],
        "expand": [once],
        "sparse_lengths_sum": [many, once],
        "lengths_first": [torch.tensor([2])],
    }
    found = IMPLEMENTATIONS[name](table, *arguments[name])
    found.float().backward(
        torch.ones(found.shape)
    ) if name != "sparse_lengths_sum" else found.float().sum().backward()
    expected = 1.0 if name == "lengths_first" else 3000.0
    assert table.grad[0, 0] == torch.tensor(expected, dtype=table.dtype)
