"""Calls that do not fit: the errors of ops on tensors are those of the ops on arrays."""

import numpy as np
import pytest

import seqflow as sf
from seqflow import torch as st_torch
from seqflow.errors import OpTypeError, SeqflowError

torch = pytest.importorskip("torch")
T = st_torch.ops

WRONG = {
    "an attribute by position": lambda ops, x, n: ops.truncate(x, n, 3),
    "a missing input": lambda ops, x, n: ops.lengths_sum(x),
    "a missing attribute": lambda ops, x, n: ops.truncate(x, n),
    "a value of another type": lambda ops, x, n: ops.truncate(x, n, max_length="a"),
    "an unknown operand": lambda ops, x, n: ops.add(x, x, alpa=2),
    "an operand twice": lambda ops, x, n: ops.add(x, x, x=x),
    "too many operands": lambda ops, x, n: ops.add(x, x, x),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_the_error_is_that_of_arrays(call):
    arrays = np.arange(5.0), np.array([2, 3])
    with pytest.raises(SeqflowError) as expected:
        call(sf.ops, *arrays)
    with pytest.raises(type(expected.value)) as found:
        call(T, *map(torch.from_numpy, arrays))
    assert str(found.value) == str(expected.value)


X, N = torch.arange(5.0), torch.tensor([2, 3])
KEYWORDS = "attributes are given by keyword: gamma= reverse="


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: T.pad(X, N, max_lenght=3), "'max_lenght' \\(did you mean 'max_length'"),
        (lambda: T.discounted_sum_within(X, N, 0.9), KEYWORDS),
        (lambda: sf.ops.discounted_sum_within(X.numpy(), N.numpy(), 0.9), KEYWORDS),
        (lambda: sf.ops.discounted_sum_within(X.numpy(), 0.9, N.numpy()), KEYWORDS),
        (lambda: T.lengths_sum(X, [2, 3]), r"torch.as_tensor\(lengths\)"),
        (lambda: T.lengths_sum(sf.Sequence(X, [2, 3]), N), r"seqflow.auto.lengths_sum\(sequence\)"),
        (lambda: sf.torch.lengths_sum, "ops on tensors are in seqflow.torch.ops"),
    ],
)
def test_the_advice_names_what_to_write(call, advice):
    with pytest.raises((SeqflowError, AttributeError), match=advice):
        call()


GIVEN = X.clone().requires_grad_()


@pytest.mark.parametrize(
    "call",
    [
        lambda: sf.ops.lengths_sum(GIVEN, N),
        lambda: sf.ops.add(GIVEN, 1),
        lambda: sf.ops.expression(GIVEN, expr="x + 1"),
        lambda: sf.ops.concat([GIVEN, GIVEN]),
        lambda: sf.run("y = x * 2", {"x": GIVEN}),
    ],
)
def test_a_tensor_with_a_gradient_is_for_the_ops_of_torch(call):
    with pytest.raises(SeqflowError, match=r"requires a gradient, expected an array\n.*seqflow\.torch\.ops"):
        call()


def test_an_unknown_attribute_is_an_error():
    with pytest.raises(OpTypeError, match="there is no attribute 'valeu'"):
        T.pad(X, N, valeu=7)
