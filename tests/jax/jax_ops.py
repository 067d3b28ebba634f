"""Ops on jax's arrays: the ops of NumPy, in jit, with gradients."""

import numpy as np
import pytest
from every_op import OPS
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies.calls import calls

jax = pytest.importorskip("jax")

from seqflow import ops  # noqa: E402
from seqflow.errors import GradientError, OpError, OpTypeError  # noqa: E402
from seqflow.jax import ops as on_jax  # noqa: E402
from seqflow.jax.calls import why_not  # noqa: E402

NAMES = (
    "lengths_sum",
    "lengths_max",
    "softmax_within",
    "reverse_sequences",
    "cumsum_within",
    "gather",
    "fc",
)


@pytest.fixture(autouse=True, scope="module")
def _double():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("op", [op for op in OPS if op.name in NAMES], ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=5)
def test_results_are_those_of_numpy(op, data):
    inputs, attributes = data.draw(calls(op))
    assume(all(one.dtype.kind in "biuf" for one in inputs.values()))
    expected = op.call(**inputs, **attributes)
    found = getattr(on_jax, op.name)(**inputs, **attributes)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_gradients_are_those_of_the_formulas():
    x, n = np.random.default_rng(0).normal(size=(6, 2)), np.array([2, 0, 4])

    @jax.jit
    def loss(x):
        h = on_jax.softmax_within(x, n) * x
        return (on_jax.lengths_sum(h, n) ** 2).sum()

    found = jax.grad(loss)(x)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        slope = (loss(x + step) - loss(x - step)) / 2e-6
        assert found[place] == pytest.approx(float(slope), rel=1e-5, abs=1e-7)


def test_total_says_what_lengths_add_up_to():
    x, n = np.arange(2.0), np.array([2, 1])
    with pytest.raises(OpTypeError, match=r"expand: rows has shape .*sum\(lengths\).*: give total="):
        on_jax.expand(x, n)
    assert on_jax.expand(x, n, total=3).tolist() == [0, 0, 1]
    short = on_jax.truncate(np.arange(5.0), np.array([3, 2]), max_length=2, total=4)
    assert (
        short.values.tolist() == ops.truncate(np.arange(5.0), np.array([3, 2]), max_length=2).values.tolist()
    )


def test_what_has_no_derivative_says_why():
    with pytest.raises(GradientError, match="it is piecewise constant"):
        jax.grad(lambda x: on_jax.floor(x).sum())(np.ones(3))


def test_errors_are_those_of_the_op():
    with pytest.raises(Exception, match=r"lengths_sum: sum\(lengths\) is 4 but data has 3 rows"):
        on_jax.lengths_sum(np.ones(3), np.array([4])).block_until_ready()


def test_ops_that_jax_cannot_call_say_why():
    assert "lists" in why_not(next(op for op in OPS if op.name == "concat"))
    with pytest.raises(
        AttributeError, match="tokenize: it cannot be called from jax: its attribute tokenizer"
    ):
        _ = on_jax.tokenize
    assert "lengths_sum" in dir(on_jax)


def test_numbers_that_jax_would_cut_are_errors():
    ids, quarters, lengths = np.array([9_000_000_007, 7]), np.full(4, 2**30), np.array([4])
    buckets = ops.hash_indices(ids, num_buckets=1000).tolist()
    assert on_jax.hash_indices(ids, num_buckets=1000).tolist() == buckets
    assert on_jax.lengths_sum(quarters, lengths).tolist() == [2**32]
    with jax.enable_x64(False):
        assert on_jax.hash_indices(ids[1:], num_buckets=1000).tolist() == buckets[1:]
        with pytest.raises(OpError, match=r"x has 9000000007, which int32 cannot hold.*\n.*jax_enable_x64"):
            on_jax.hash_indices(ids, num_buckets=1000)
        with pytest.raises(OpError, match=r"data has 1e\+300, which float32 cannot hold"):
            on_jax.lengths_sum(np.full(4, 1e300), lengths)
        with pytest.raises(jax.errors.JaxRuntimeError, match="sums has 4294967296, which int32 cannot hold"):
            on_jax.lengths_sum(quarters, lengths)
