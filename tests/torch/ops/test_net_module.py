"""A net as a module: trained in torch, and back."""

import copy
import io
import pickle

import numpy as np
import pytest
from random_nets import random_net, tensors_of
from torch_calls import compiled

from seqflow import Net, run
from seqflow.errors import NetError
from seqflow.torch import mark_ragged, module, to_tensors

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

TEXT = """
h = tanh(fc(x.values, w1, b1))
a = softmax_within(fc(h, w2), x.lengths)
t = truncate(h * a, x.lengths, max_length=4)
p, mask = pad(t.values, t.lengths)
pooled = lengths_sum(t.values, t.lengths)
y = pooled - reduce_mean(pooled, axes=0)
return y, p, mask
"""


def weights():
    rng = np.random.default_rng(0)
    return {"w1": rng.normal(size=(8, 5)), "b1": np.zeros(8), "w2": rng.normal(size=(1, 8))}


def batch(seed, rows=4):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, rows)
    return {"x.values": rng.normal(size=(int(lengths.sum()), 5)), "x.lengths": lengths}


def tensors(arrays):
    return to_tensors(arrays)


def test_a_module_gives_what_the_net_gives():
    model = module(TEXT, parameters=weights())
    expected = run(Net(TEXT).bind(**weights()), batch(1))
    found = model(tensors(batch(1)))
    assert list(found) == ["y", "p", "mask"]
    for name, value in found.items():
        np.testing.assert_allclose(value.detach().numpy(), expected[name], rtol=1e-12, atol=1e-14)


def test_arrays_and_records_are_batches_too():
    model = module(TEXT, parameters=weights())
    expected = model(tensors(batch(1)))["y"]
    torch.testing.assert_close(model(batch(1))["y"], expected)


def test_what_was_trained_runs_without_torch():
    torch.manual_seed(0)
    model = module(TEXT, parameters=weights())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(20):
        optimizer.zero_grad()
        loss = (model(tensors(batch(step)))["y"] ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    net = model.to_net()
    expected = model(tensors(batch(99)))["y"].detach().numpy()
    np.testing.assert_allclose(run(net, batch(99))["y"], expected, rtol=1e-6)
    assert not np.array_equal(net.constants["w1"], weights()["w1"])
    assert sum(losses[-5:]) < sum(losses[:5])


def test_states_are_saved_and_loaded():
    one, other = (
        module(TEXT, parameters=weights()),
        module(TEXT, parameters={name: value * 0 for name, value in weights().items()}),
    )
    assert list(one.state_dict()) == ["w1", "b1", "w2"]
    other.load_state_dict(one.state_dict())
    torch.testing.assert_close(other(tensors(batch(2)))["y"], one(tensors(batch(2)))["y"])


def test_constants_of_a_net_are_buffers():
    net = Net("y = fc(x, w) + offset").bind(offset=np.array([1.0]))
    model = module(net, parameters={"w": np.ones((1, 2))}, buffers={})
    assert [name for name, _ in model.named_buffers()] == ["offset"]
    assert model({"x": torch.ones(1, 2, dtype=torch.float64)})["y"].tolist() == [[3.0]]
    assert set(model.to_net().constants) == {"w", "offset"}


def test_names_with_dots_become_attributes():
    model = module("y = fc(x, layer.w)", parameters={"layer.w": np.ones((1, 2))})
    assert list(model.state_dict()) == ["layer_w"]
    assert list(model.to_net().constants) == ["layer.w"]


def test_modules_are_copied_and_pickled():
    model = module(TEXT, parameters=weights())
    expected = model(tensors(batch(3)))["y"]
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(copied(tensors(batch(3)))["y"], expected)


def test_gradients_are_those_of_the_net():
    net = Net("h = tanh(fc(x, w))\nloss = reduce_sum(square(lengths_mean(h, n)))")
    arrays = {"x": np.random.default_rng(0).normal(size=(5, 3)), "n": np.array([2, 3]), "w": np.ones((2, 3))}
    model = module(net, parameters={"w": arrays["w"]})
    model({"x": arrays["x"], "n": arrays["n"]})["loss"].backward()
    expected = run(net.gradient("loss", "w"), arrays)["grad.w"]
    np.testing.assert_allclose(model.w.grad.numpy(), expected, rtol=1e-12)


@pytest.mark.slow
def test_a_module_compiles_whole():
    model = module(TEXT, parameters=weights())
    made, counter = compiled(model)
    for seed in range(8):
        given = mark_ragged(tensors(batch(seed, rows=seed)))
        torch.testing.assert_close(made(given)["p"], model(given)["p"])
    assert counter.frame_count == 1


@pytest.mark.slow
def test_a_module_exports_with_dynamic_lengths():
    model = module(TEXT, parameters=weights())
    sizes = ({"x.values": {0: torch.export.Dim.DYNAMIC}, "x.lengths": {0: torch.export.Dim.DYNAMIC}},)
    program = torch.export.export(model, (tensors(batch(1)),), dynamic_shapes=sizes)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for seed in range(2, 6):
        given = tensors(batch(seed, rows=seed + 1))
        torch.testing.assert_close(loaded(given)["y"], model(given)["y"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameters": {"v": np.ones(2)}}, "module: the net takes no 'v'"),
        ({"parameters": {"w": np.ones(2)}, "buffers": {"w": np.ones(2)}}, "'w' is a parameter and a buffer"),
    ],
)
def test_names_that_do_not_fit_are_refused(options, message):
    with pytest.raises(NetError, match=message):
        module("y = fc(x, w)", **options)


def test_a_batch_without_an_input_is_refused():
    with pytest.raises(NetError, match="module: the batch has no 'x', which the net takes"):
        module("y = fc(x, w)", parameters={"w": np.ones((1, 2))})({"z": torch.ones(1)})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_gradients_of_random_nets_are_those_of_autograd(seed):
    net = random_net(seed)
    arrays = {name: value for name, value in tensors_of(seed).items() if name in net.inputs}
    wrt = [name for name in ("x", "w", "target") if name in net.inputs]
    model = module(net, parameters={name: arrays[name] for name in wrt})
    found = model({name: arrays[name] for name in model.inputs})["loss"]
    found.backward()
    expected = run(net.gradient("loss", wrt), arrays)
    np.testing.assert_allclose(found.item(), expected["loss"], rtol=1e-12)
    for name in wrt:
        gradient = getattr(model, name).grad
        np.testing.assert_allclose(gradient.numpy(), expected[f"grad.{name}"], rtol=1e-9, atol=1e-12)


def test_tensors_may_be_called_as_modules_call_something_else():
    names = ("net", "inputs", "training", "forward")
    x, w = torch.ones(2, 3), torch.ones(1, 3)
    for name in names:
        model = module(f"y = fc(x, {name})", parameters={name: w})
        assert model.inputs == ("x",)
        assert list(model.state_dict()) == [f"{name}_"]
        torch.testing.assert_close(model({"x": x})["y"], torch.full((2, 1), 3.0))
        assert list(model.to_net().constants) == [name]


def test_parameters_of_integers_and_batches_that_are_no_mappings_are_refused():
    with pytest.raises(
        NetError, match=r"the parameter 'w' is torch\.int64, expected floats: make it a buffer"
    ):
        module("y = gather(x, w)", parameters={"w": np.arange(3)})
    model = module("y = gather(x, w)", buffers={"w": np.arange(3)})
    with pytest.raises(NetError, match="the batch is Tensor, expected tensors by name"):
        model(torch.ones(3))


def test_what_was_trained_in_bfloat16_comes_back_as_float32():
    model = module("y = fc(x, w)", parameters={"w": np.full((1, 2), 0.5)}).bfloat16()
    assert model.to_net().constants["w"].dtype == np.float32
