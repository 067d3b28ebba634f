"""A net as a module: trained in torch, and back."""

import copy
import io
import pickle

import numpy as np
import pyarrow as pa
import pytest
from marks import one_in
from random_nets import random_net, tensors_of
from torch_calls import compiled

import seqflow as sf
from seqflow import Net, run
from seqflow.errors import LodError, NetError
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
@pytest.mark.parametrize("seed", one_in(4, range(100)))
def test_gradients_of_random_nets_are_those_of_autograd(seed):
    net = random_net(seed)
    arrays = {name: value for name, value in tensors_of(seed).items() if name in net.inputs}
    wrt = [name for name in ("x", "w", "target") if name in net.inputs]
    batch = tensors(arrays)
    for name in wrt:
        batch[name].requires_grad_()
    found = module(net)(batch)["loss"]
    found.backward()
    expected = run(net.gradient("loss", wrt), arrays)
    np.testing.assert_allclose(found.item(), expected["loss"], rtol=1e-12)
    for name in wrt:
        np.testing.assert_allclose(batch[name].grad.numpy(), expected[f"grad.{name}"], rtol=1e-9, atol=1e-12)


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


COLUMNS = pa.table({"a": [[1.0, 2.0], [3.0]], "b": [[1.0], [2.0, 3.0]], "c": [1.0, 2.0]})
W = np.ones((1, 2))
X = {"x": np.ones((3, 2)), "labels": np.ones(3)}
MIXED = {
    "a row for each column": ("y = fc(x, w) - labels", X),
    "lengths of another column": ("y = lengths_sum(a.values, b.lengths)", COLUMNS),
    "lengths that the net does not take": (
        "y = lengths_sum(a.values, m)",
        {"a.values": np.ones(3), "a.lengths": np.array([1, 2]), "m": np.array([2, 1])},
    ),
    "rows of a list and of the batch": ("y = a.values * c", COLUMNS),
}


def batch_of(source):
    """The arrays of a batch, and its tensors: those of a loader for a table."""
    if isinstance(source, dict):
        return source, tensors(source)
    (record,), (found,) = sf.Loader(source), sf.Loader(source).to("torch")
    return record, found


@pytest.mark.parametrize(("text", "source"), MIXED.values(), ids=MIXED)
def test_rows_that_do_not_belong_together_are_refused_as_on_arrays(text, source):
    arrays, given = batch_of(source)
    net = Net(text).bind(**({"w": W} if "w" in Net(text).inputs else {}))
    with pytest.raises(LodError) as expected:
        run(net, arrays)
    model = module(net)
    for _ in range(2):
        with pytest.raises(LodError) as found:
            model(given)
        assert (str(found.value), found.value.__notes__) == (str(expected.value), expected.value.__notes__)


def test_one_batch_of_another_structure_is_checked_again():
    model = module("y = fc(x, w) - labels", parameters={"w": W})
    assert model(tensors({**X, "labels": np.ones((3, 1))}))["y"].shape == (3, 1)
    assert model(tensors({**X, "labels": np.ones(1)}))["y"].shape == (3, 1)
    with pytest.raises(LodError, match="rows do not broadcast"):
        model(tensors(X))


def test_axes_of_parameters_are_plain_sizes():
    places = module(
        "p, mask = pad(x, n, max_length=3)\ny = p + places", parameters={"places": np.ones((3, 2))}
    )
    assert places(tensors({"x": np.ones((3, 2)), "n": np.array([1, 2])}))["y"].shape == (2, 3, 2)
    with pytest.raises(LodError, match=r"same_rows\(c, v\)"):
        module("y = c * v", parameters={"v": np.ones(2)})(batch_of(COLUMNS)[1])


SAME = """
a = sequence(x, n)
b = sequence(z, m)
c = lengths_sum(a)
d = lengths_sum(b)
e = a * b
return e
"""


@pytest.mark.parametrize("is_compiled", [False, True])
def test_lengths_that_were_assumed_equal_are_compared_in_each_call(is_compiled):
    model = module(SAME)
    model = compiled(model)[0] if is_compiled else model
    batch = {"x": np.ones(3), "z": np.ones(3), "n": np.array([1, 2]), "m": np.array([1, 2])}
    assert model(tensors(batch))["e"].tolist() == [1, 1, 1]
    with pytest.raises(LodError, match=r"\[0\] is 2 but .*\[0\] is 1, expected the same"):
        model(tensors({**batch, "m": np.array([2, 1])}))


def test_tensors_without_data_give_shapes():
    given = {name: torch.empty(size, device="meta") for name, size in {"x": 3, "z": 3}.items()}
    given |= {name: torch.empty(2, dtype=torch.int64, device="meta") for name in ("n", "m")}
    assert module(SAME)(given)["e"].shape == (3,)


def test_rows_are_checked_when_a_module_is_compiled():
    made, counter = compiled(module("y = fc(x, w) - labels", parameters={"w": W}))
    for rows in (4, 0, 1, 7):
        given = mark_ragged(tensors({"x": np.ones((rows, 2)), "labels": np.ones((rows, 1))}))
        assert made(given)["y"].shape == (rows, 1)
    assert counter.frame_count == 1
    with pytest.raises(Exception, match=r"LodError: expression: operands.* rows do not broadcast"):
        made(mark_ragged(tensors(X)))


def test_inference_that_needs_sizes_gets_those_of_each_batch():
    model = module("y = reshape(x, shape)\nz = y + offset", buffers={"shape": np.array([2, 3])})
    for size in (1, 3):
        given = tensors({"x": np.ones(6), "offset": np.ones(size)})
        assert model(given)["z"].shape == (2, 3)
