"""PyTorch's weights load by name and give PyTorch's results."""

import doctest
import subprocess
import sys

import numpy as np
import pytest

import seqflow as sf
import seqflow.torch as loading
from seqflow import ops
from seqflow.errors import OpTypeError

LENGTHS = np.array([3, 0, 5, 1])
ROWS = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
KINDS = {"lstm": 4, "gru": 3, "rnn": 1}


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def outputs_of(torch, module):
    filled = [torch.from_numpy(rows) for rows in np.split(ROWS, np.cumsum(LENGTHS)[:-1]) if len(rows)]
    packed = torch.nn.utils.rnn.pack_sequence(filled, enforce_sorted=False)
    with torch.no_grad():
        output, _ = module(packed)
    return torch.cat(torch.nn.utils.rnn.unpack_sequence(output)).numpy()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_all_layers_of_a_module_load_and_run(torch, kind, bidirectional, bias):
    module = getattr(torch.nn, kind.upper())(4, 6, num_layers=3, bidirectional=bidirectional, bias=bias)
    layers = getattr(loading, f"load_{kind}")(module)
    op = getattr(ops, f"bidirectional_{kind}" if bidirectional else kind)
    assert len(layers) == 3
    x = y = ROWS
    for weights in layers:
        x = op(x, LENGTHS, *weights).h
        y = op(y, LENGTHS, **weights._asdict()).h
    np.testing.assert_allclose(x, outputs_of(torch, module), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_share_the_memory_of_the_module(torch, kind):
    module = getattr(torch.nn, kind.upper())(4, 6)
    [weights] = getattr(loading, f"load_{kind}")(module)
    assert weights.w_ih.__array_interface__["data"][0] == module.weight_ih_l0.data_ptr()
    assert weights.w_hh.__array_interface__["data"][0] == module.weight_hh_l0.data_ptr()
    if kind == "gru":
        assert weights.bias_hh.__array_interface__["data"][0] == module.bias_hh_l0.data_ptr()


def test_parts_of_a_model_load_by_prefix(torch):
    model = torch.nn.ModuleDict(
        {"words": torch.nn.Embedding(10, 4), "encoder": torch.nn.LSTM(4, 6), "head": torch.nn.Linear(6, 2)}
    )
    ids = np.array([1, 9, 3])
    for source in (model, model.state_dict()):
        table = loading.load_embedding(source, prefix="words.")
        [encoder] = loading.load_lstm(source, prefix="encoder.")
        head = loading.load_linear(source, prefix="head.")
        h = ops.lstm(ops.gather(*table, ids), np.array([3]), *encoder).h
        with torch.no_grad():
            expected = model["head"](model["encoder"](model["words"](torch.from_numpy(ids)))[0]).numpy()
        np.testing.assert_allclose(ops.fc(h, *head), expected, rtol=0, atol=1e-5)
    assert ops.sparse_lengths_sum(*table, ids, np.array([3])).shape == (1, 4)


def test_bfloat16_becomes_float32(torch):
    [weights] = loading.load_gru(torch.nn.GRU(4, 6, dtype=torch.bfloat16))
    assert {array.dtype for array in weights} == {np.dtype("float32")}


def test_a_projected_lstm_is_refused(torch):
    with pytest.raises(sf.OpError, match="weight_hr_l0 projects the states"):
        loading.load_lstm(torch.nn.LSTM(4, 6, proj_size=2))


def test_a_state_dict_may_hold_arrays():
    state = {f"weight_{name}_l0": np.ones((12, size)) for name, size in (("ih", 2), ("hh", 3))}
    [weights] = loading.load_lstm(state)
    assert weights.w_ih is state["weight_ih_l0"]
    assert weights.bias is None
    [weights] = loading.load_lstm(state | {"bias_ih_l0": np.ones(12), "bias_hh_l0": np.ones(12)})
    assert weights.bias.tolist() == [2] * 12


def test_weights_of_another_cell_are_refused():
    state = {"weight_ih_l0": np.ones((9, 2)), "weight_hh_l0": np.ones((9, 3))}
    with pytest.raises(
        sf.ShapeError, match=r"weight_ih_l0 has the shape \(9, 2\), expected 12 rows: 4 gates of 3"
    ):
        loading.load_lstm(state)
    with pytest.raises(sf.ShapeError, match=r"bias_ih_l0 has the shape \(8,\), expected \(9,\)"):
        loading.load_gru(state | {"bias_ih_l0": np.ones(8)})
    with pytest.raises(sf.ShapeError, match=r"weight has the shape \(3,\), expected 2 dimensions"):
        loading.load_linear({"weight": np.ones(3)})


def test_what_is_not_there_is_named_beside_what_is():
    with pytest.raises(
        sf.OpError, match=r"there is no 'rnn.weight_ih_l0'; the state dict has 'weight_ih_l0'"
    ):
        loading.load_rnn({"weight_ih_l0": np.ones((3, 2))}, prefix="rnn.")
    with pytest.raises(sf.OpError, match=r"there is no 'weight'; the state dict has nothing"):
        loading.load_embedding({})


def test_neither_module_nor_state_dict_is_an_error():
    with pytest.raises(OpTypeError, match="weights are list, expected a module or a state dict"):
        loading.load_lstm([])


def test_torch_is_not_imported():
    code = "import sys, seqflow.torch; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_examples_in_the_docs_run():
    assert doctest.testmod(loading, extraglobs={"ops": ops}).failed == 0
