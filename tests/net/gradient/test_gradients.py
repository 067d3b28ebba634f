"""The gradient of a net: a net again, equal to differences."""

import numpy as np
import pytest
from marks import one_in
from random_nets import random_net, tensors_of

from seqflow import Net, TensorSpec, run
from seqflow.errors import GradientError, NetError, ShapeError
from seqflow.signature import Described

STEP = 1e-6


def slopes(net, tensors, name, of="loss"):
    """The gradient of a scalar by central differences."""
    array = tensors[name]
    found = np.zeros(array.shape)
    for place in np.ndindex(*array.shape):
        before = array[place]
        array[place] = before + STEP
        above = run(net, tensors)[of]
        array[place] = before - STEP
        below = run(net, tensors)[of]
        array[place] = before
        found[place] = (above - below) / (2 * STEP)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", one_in(4, range(100)))
def test_gradients_of_random_nets_are_like_differences(seed):
    net = random_net(seed)
    tensors = {name: value for name, value in tensors_of(seed).items() if name in net.inputs}
    wrt = [name for name in ("x", "w", "target") if name in net.inputs]
    gradient = net.gradient("loss", wrt)
    found = run(gradient, tensors)
    assert found["loss"] == run(net, tensors)["loss"]
    for name in wrt:
        np.testing.assert_allclose(found[f"grad.{name}"], slopes(net, tensors, name), rtol=2e-5, atol=2e-6)


def test_a_gradient_is_printed_and_read_again():
    net = Net("h = tanh(fc(x, w))\npooled = lengths_sum(h, n)\nloss = reduce_sum(square(pooled))")
    gradient = net.gradient("loss", ["w", "x"])
    assert str(gradient).splitlines()[-1] == "return loss, grad.w, grad.x"
    assert "grad.h = cast_like(expand(grad.pooled, n), h)" in str(gradient)
    again = Net(str(gradient))
    tensors = tensors_of(3)
    tensors.pop("target")
    for name, value in run(gradient, tensors).items():
        np.testing.assert_array_equal(run(again, tensors)[name], value)


def test_a_gradient_is_inferred_and_bounded():
    net = Net("h = softmax_within(x, n)\nloss = reduce_sum(square(lengths_mean(h, n)))")
    specs = {
        "x": TensorSpec("float32", "{sum(n):0..100,4}", Described("n")),
        "n": TensorSpec("int64", "{B:0..10}"),
    }
    inference = net.gradient("loss", "x").infer(specs)
    assert str(inference.specs["grad.x"]) == str(inference.specs["x"])
    assert inference.specs["grad.x"].rows == Described("n")
    assert not inference.guards
    assert inference.byte_bound is not None


def test_the_gradient_of_a_gradient():
    net = Net("h = tanh(x * w)\nloss = reduce_sum(h * h)")
    first = net.gradient("loss", "x")
    second = Net(f"{str(first).rpartition(chr(10))[0]}\nnorm = reduce_sum(square(grad.x))").gradient(
        "norm", ["w", "x"]
    )
    assert second.returned == ("norm", "grad1.w", "grad1.x")
    tensors = {"x": np.array([0.3, -0.7]), "w": np.array([1.5, 0.5])}
    norm = Net(f"{str(first).rpartition(chr(10))[0]}\nnorm = reduce_sum(square(grad.x))\nreturn norm")
    found = run(second, tensors)
    for name in ("x", "w"):
        np.testing.assert_allclose(found[f"grad1.{name}"], slopes(norm, tensors, name, "norm"), rtol=1e-5)


def test_a_cotangent_stands_for_a_loss():
    net = Net("y = lengths_sum(x, n)")
    gradient = net.gradient("y", "x", cotangent="dy")
    found = run(gradient, {"x": np.ones(3), "n": np.array([2, 1]), "dy": np.array([5.0, 7.0])})
    np.testing.assert_array_equal(found["grad.x"], [5, 5, 7])


def test_results_that_are_thrown_away_are_no_obstacle():
    net = Net("values, _ = truncate(x, n, max_length=1)\nloss = reduce_sum(square(values))")
    found = run(net.gradient("loss", "x"), {"x": np.array([1.0, 2.0, 3.0]), "n": np.array([2, 1])})
    np.testing.assert_array_equal(found["grad.x"], [2, 0, 6])


def test_constants_and_results_have_gradients_too():
    net = Net("h = x * w\nloss = reduce_sum(h * h)").bind(w=np.array([2.0, 3.0]))
    found = run(net.gradient("loss", ["w", "h"]), {"x": np.array([1.0, 1.0])})
    np.testing.assert_array_equal(found["grad.h"], [4, 6])
    np.testing.assert_array_equal(found["grad.w"], [4, 6])


def test_lists_of_tensors_have_gradients():
    net = Net(
        "j = concat([x, y, x], axis=0)\na, b = split(j * j, parts=[2, 4])\n"
        "v = concat([b, a], axis=0)\nloss = reduce_sum(v * v * z)"
    )
    tensors = {"x": np.array([1.0, 2.0]), "y": np.array([3.0, 4.0]), "z": np.arange(6.0)}
    found = run(net.gradient("loss", ["x", "y"]), tensors)
    for name in ("x", "y"):
        np.testing.assert_allclose(found[f"grad.{name}"], slopes(net, tensors, name), rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "wrt", "message"),
    [
        ("loss = reduce_sum(x)", ["w"], "the net has no tensor 'w'"),
        ("loss = reduce_sum(x)", [], "wrt is .., expected one or more tensors"),
        ("loss = reduce_sum(x)", ["x", "x"], "expected one or more tensors, each once"),
        ("loss = reduce_sum(x)\ny = w * 2", ["w"], "loss does not depend on w"),
        ("loss = reduce_sum(float32(x > w))", ["w"], "or only through integers and conditions"),
        (
            "u = unique(x)\nloss = reduce_sum(u.unique)",
            ["x"],
            "unique: it has no derivative: it picks by value",
        ),
        ("loss = reduce_sum(floor(x))", ["x"], "floor has no derivative: it is piecewise constant"),
        (
            "t = topk_within(x, x, n, k=1)\nloss = reduce_sum(t.values)",
            ["x"],
            "no derivative by scores: they only determine which rows are picked",
        ),
    ],
)
def test_what_has_no_gradient_says_why(text, wrt, message):
    with pytest.raises(GradientError, match=message) as raised:
        Net(text).gradient("loss", wrt)
    assert isinstance(raised.value, NetError)


def test_errors_name_the_statement():
    with pytest.raises(GradientError) as raised:
        Net("y = x + 1\nu = unique(y)\nloss = reduce_sum(u.unique)").gradient("loss", "x")
    assert "in the net, line 2: u = unique(y)" in raised.value.__notes__[0]


def test_a_loss_is_a_scalar():
    with pytest.raises(ShapeError, match="one_like: x has shape"):
        run(Net("loss = x * x").gradient("loss", "x"), {"x": np.ones(3)})


def test_gradients_can_be_stopped():
    net = Net(
        "scores = x * w\nt = topk_within(x, stop_gradient(scores), n, k=1)\nloss = reduce_sum(t.values)"
    )
    found = run(
        net.gradient("loss", "x"), {"x": np.array([1.0, 5.0, 2.0]), "w": np.ones(3), "n": np.array([3])}
    )
    np.testing.assert_array_equal(found["grad.x"], [0, 1, 0])


def test_a_small_model_learns():
    net = Net(
        "h = tanh(fc(x, w1, b1))\na = softmax_within(fc(h, w2), n)\n"
        "pooled = lengths_sum(h * a, n)\nloss = reduce_mean(square(reduce_sum(pooled, axes=-1) - y))"
    )
    rng = np.random.default_rng(0)
    n = rng.integers(1, 6, 32)
    x = rng.normal(size=(int(n.sum()), 4))
    from seqflow import ops

    y = ops.lengths_max(x[:, 0], n)
    weights = {"w1": rng.normal(size=(8, 4)) / 2, "b1": np.zeros(8), "w2": rng.normal(size=(1, 8)) / 2}
    gradient = net.gradient("loss", list(weights))
    losses = []
    for _ in range(150):
        found = run(gradient, {"x": x, "n": n, "y": y, **weights})
        losses.append(float(found["loss"]))
        for name in weights:
            weights[name] = weights[name] - 0.1 * found[f"grad.{name}"]
    assert losses[-1] < losses[0] / 4


def test_only_what_the_gradient_needs_is_computed():
    net = Net(
        "other = lengths_max(x, n)\nsame_lengths(n, k)\nloss = reduce_sum(lengths_sum(x, n) * c)\nreturn loss, other, d"
    )
    gradient = net.bind(c=np.array([2.0]), d=np.array([1.0])).gradient("loss", "x")
    assert "lengths_max" not in str(gradient)
    assert "same_lengths(n, k)" in str(gradient)
    assert list(gradient.constants) == ["c"]
    found = run(gradient, {"x": np.ones(2), "n": np.array([2]), "k": np.array([2])})
    np.testing.assert_array_equal(found["grad.x"], [2, 2])
