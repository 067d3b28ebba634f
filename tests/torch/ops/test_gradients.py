"""Gradients of ops on tensors, of first and second order; and what has none."""

import numpy as np
import pytest
from differences import is_smooth_at, taken
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import one_in
from strategies.calls import calls
from torch_calls import SAYABLE, call, each, flat, takes, tensors

from seqflow.errors import GradientError, OpError, SeqflowError
from seqflow.net.gradient.derivative import has_floats, is_differentiable
from seqflow.registry import NoDerivative
from seqflow.torch import ops

torch = pytest.importorskip("torch")

SMOOTH = [
    op
    for op in SAYABLE
    if op.name != "expression"
    and not isinstance(op.grad, NoDerivative)
    and op.grad is not None
    and any(is_differentiable(op, one.name) for one in op.signature.input_arguments)
    and any(has_floats(one) for one in op.signature.output_arguments)
    and op.name
    not in ("cast", "float16", "float32", "sparse_lengths_weighted_sum_quantized")  # of less than float64
]
ONCE = {
    "products_of_others",
    "attention_within",
    "crf_log_likelihood",
    "lengths_median",
    *(f"{ends}{cell}" for ends in ("", "bidirectional_") for cell in ("rnn", "gru", "lstm")),
}
"""Ops whose derivative has none of its own."""
FEW = (
    "lengths_sum",
    "lengths_max",
    "softmax_within",
    "pad",
    "unpad",
    "truncate",
    "sparse_lengths_mean",
    "matmul",
)


def check(op, data, second):
    inputs, attributes = data.draw(calls(op))
    assume(takes(op, inputs))
    attributes |= {"fill": 0.0} if op.name == "sequence_mask" else {}  # by default it is infinite
    inputs = taken(op, inputs)
    assume(is_smooth_at(op, inputs))
    given_tensors = {name: tensors(value) for name, value in inputs.items()}
    names = [
        name
        for name, value in given_tensors.items()
        if is_differentiable(op, name)
        and all(one.is_floating_point() for one in each(value))
        and not isinstance(op.grad.get(name) if isinstance(op.grad, dict) else None, NoDerivative)
    ]
    trained = [one for name in names for one in each(given_tensors[name])]
    assume(trained and any(one.numel() for one in trained))

    def function(*changed):
        remaining = iter(changed)
        named = {
            name: [next(remaining) for _ in value] if isinstance(value, list) else next(remaining)
            for name, value in given_tensors.items()
            if name in names
        }
        results = flat(call(getattr(ops, op.name), op, {**given_tensors, **named}, attributes))
        # a query that sees no key has the logarithm -inf, of which there are no differences
        return tuple(one.masked_fill(one.isinf(), 0) for one in results if one.dtype is torch.float64)

    copies = [one.clone().requires_grad_() for one in trained]
    assume(function(*copies))
    assert torch.autograd.gradcheck(function, copies, atol=1e-6, rtol=1e-4)
    if second and op.name not in ONCE:
        assert torch.autograd.gradgradcheck(function, copies, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("op", [op for op in SMOOTH if op.name in FEW], ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=4)
def test_gradients_are_like_differences(op, data):
    check(op, data, second=True)


@pytest.mark.slow
@pytest.mark.parametrize("op", one_in(4, SMOOTH, lambda op: op.variadic), ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=2)
def test_gradients_of_all_ops_are_like_differences_twice(op, data):
    check(op, data, second=True)


def test_what_has_no_derivative_says_why():
    x = torch.randn(4, requires_grad=True)
    found = ops.unique(x)
    with pytest.raises(GradientError, match="unique: it has no derivative: it picks by value"):
        found.unique.sum().backward()
    with pytest.raises(GradientError, match="by scores: they only determine which rows are picked"):
        ops.topk_within(x, x, torch.tensor([4]), k=2).values.sum().backward()
    assert ops.topk_within(x, x.detach(), torch.tensor([4]), k=2).values.sum().backward() is None


def test_integers_have_no_gradients():
    x = torch.randn(4, requires_grad=True)
    assert not ops.lengths_argmax(x, torch.tensor([4])).requires_grad


def test_saved_lengths_that_were_written_to_are_noticed():
    x = torch.randn(4, requires_grad=True)
    n = torch.tensor([3, 1])
    total = ops.lengths_sum(x, n).sum()
    n[0] = 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_forward_mode_is_refused():
    n = torch.tensor([2, 1])
    with pytest.raises(OpError, match="lengths_sum: it has no derivative in forward mode"):
        torch.func.jvp(lambda x: ops.lengths_sum(x, n), (torch.ones(3),), (torch.ones(3),))


def test_only_what_formulas_name_is_saved():
    saved = []
    x = torch.randn(1000, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda one: saved.append(one.shape) or one, lambda one: one
    ):
        ops.reverse_sequences(x, torch.tensor([1000]))
    assert saved == [torch.Size([1])]


def test_a_model_learns_with_torch_as_it_does_with_numpy():
    from seqflow import Net, run

    net = Net(
        "h = tanh(fc(x, w))\na = softmax_within(h, n)\npooled = lengths_sum(h * a, n)\n"
        "loss = reduce_mean(square(pooled - y))"
    )
    rng = np.random.default_rng(0)
    n = np.array([3, 0, 4, 2])
    given_arrays = {
        "x": rng.normal(size=(9, 5)),
        "n": n,
        "y": rng.normal(size=(4, 2)),
        "w": rng.normal(size=(2, 5)),
    }
    gradient = run(net.gradient("loss", "w"), given_arrays)["grad.w"]
    x, n_, y, w = (torch.from_numpy(given_arrays[name]) for name in "xnyw")
    w.requires_grad_()
    h = torch.tanh(ops.fc(x, w))
    loss = (ops.lengths_sum(h * ops.softmax_within(h, n_), n_) - y).square().mean()
    loss.backward()
    np.testing.assert_allclose(w.grad.numpy(), gradient, rtol=1e-12, atol=1e-14)


POOLED = ("sum", "mean", "weighted_sum", "positional_weighted_sum")


@pytest.mark.parametrize("ignore_index", [None, 2])
@pytest.mark.parametrize("kind", POOLED)
def test_sparse_gradients_of_tables_are_the_dense_ones(kind, ignore_index):
    torch.manual_seed(0)
    n = torch.tensor([3, 0, 4])
    indices = torch.randint(0, 6, (7,))
    table, weights = torch.randn(9, 2, dtype=torch.float64), torch.rand(7, dtype=torch.float64)
    pool = getattr(ops, f"sparse_lengths_{kind}")
    found = {}
    for sparse in (False, True):
        own = [one.clone().requires_grad_() for one in (table, weights)][: 2 if "weighted" in kind else 1]
        pooled = pool(*own, indices, n, ignore_index=ignore_index, sparse=sparse)
        (pooled * torch.arange(6.0).reshape(3, 2)).sum().backward()
        assert own[0].grad.is_sparse is sparse
        found[sparse] = [pooled.detach(), own[0].grad.to_dense(), *(one.grad for one in own[1:])]
    for one, other in zip(found[False], found[True], strict=True):
        torch.testing.assert_close(one, other)


def test_sparse_gradients_train():
    table = torch.zeros(1000, 4, requires_grad=True)
    optimizer = torch.optim.SparseAdam([table], lr=0.1)
    pooled = ops.sparse_lengths_sum(table, torch.tensor([3, 5, 3]), torch.tensor([2, 1]), sparse=True)
    (pooled - 1).square().sum().backward()
    optimizer.step()
    assert table.detach().abs().sum(1).nonzero().ravel().tolist() == [3, 5]


@pytest.mark.parametrize("kind", POOLED)
def test_sparse_look_ups_have_the_dtypes_and_errors_of_dense_ones(kind):
    pool, n = getattr(ops, f"sparse_lengths_{kind}"), torch.tensor([2, 1])
    indices = torch.tensor([1, 2, 1])
    for dtype in (torch.float16, torch.float32, torch.bfloat16):
        own = [torch.ones(9, 2, dtype=dtype, requires_grad=True), torch.ones(3)][
            : 2 if "weighted" in kind else 1
        ]
        found, dense = (pool(*own, indices, n, sparse=sparse) for sparse in (True, False))
        assert found.dtype is dense.dtype
        found.sum().backward()
        assert own[0].grad.dtype is dtype
    for wrong, lengths in ((indices, torch.tensor([9])), (indices + 9, n), (indices.float(), n)):
        messages = []
        for sparse in (True, False):
            with pytest.raises(SeqflowError, match=f"sparse_lengths_{kind}: ") as raised:
                pool(*own, wrong, lengths, sparse=sparse)
            messages.append((raised.type, str(raised.value)))
        assert messages[0] == messages[1]
    with pytest.raises(SeqflowError, match=f"sparse_lengths_{kind}: indices is list, expected a tensor"):
        pool(*own, [1], n, sparse=True)


def test_an_optimizer_may_step_between_a_sparse_look_up_and_its_backward():
    table = torch.ones(9, 2, requires_grad=True)
    pooled = ops.sparse_lengths_mean(table, torch.tensor([1, 2]), torch.tensor([2]), sparse=True)
    with torch.no_grad():
        table.mul_(2)
    pooled.sum().backward()
    assert table.grad.coalesce().values().tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_attributes_that_an_op_does_not_take_are_refused():
    from seqflow.errors import OpTypeError

    x, n = torch.ones(3), torch.tensor([2, 1])
    for wrong in ("sparse", "out", "emtpy"):
        with pytest.raises(OpTypeError, match=f"lengths_sum: there is no attribute '{wrong}'"):
            ops.lengths_sum(x, n, **{wrong: 0})
    with pytest.raises(OpTypeError, match="x is list, expected a tensor"):
        ops.expand([1, 2], n)
    with pytest.raises(
        OpTypeError, match=r"table is Embedding, expected a tensor\n  pass its tensor, table.weight"
    ):
        ops.sparse_lengths_sum(torch.nn.Embedding(3, 2), torch.tensor([1]), torch.tensor([1]))
    with pytest.raises(OpTypeError, match="lengths is missing"):
        ops.lengths_sum(x)
    with pytest.raises(OpError, match="data is on cpu, lengths is on meta, expected one device"):
        ops.lengths_sum(x, n.to("meta"))
    with pytest.raises(OpError, match="side is 'top', expected 'right' or 'left'"):
        ops.pad(x, n, side="top")


SUMMED = {
    "gather": lambda t, k: ops.gather(t, torch.zeros(k, dtype=torch.long)),
    "expand": lambda t, k: ops.expand(t, torch.tensor([k, 0])),
    "tile": lambda t, k: ops.tile(t[:1], repeats=(k, 1)),
    "broadcast_like": lambda t, k: ops.broadcast_like(t[:1], torch.zeros(k, 2, dtype=t.dtype)),
    "pooled": lambda t, k: ops.sparse_lengths_sum(
        t, torch.zeros(k, dtype=torch.long), torch.ones(k, dtype=torch.long)
    ),
    "sparse": lambda t, k: ops.sparse_lengths_sum(
        t, torch.zeros(k, dtype=torch.long), torch.ones(k, dtype=torch.long), sparse=True
    ),
    "weights": lambda t, k: ops.sparse_lengths_positional_weighted_sum(
        torch.ones_like(t), t[:, 0], torch.zeros(k, dtype=torch.long), torch.ones(k, dtype=torch.long)
    )[:, :1],
    "gather_cells": lambda t, k: ops.gather_cells(t[None], torch.zeros(k, dtype=torch.long), torch.tensor([k])),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", SUMMED)
def test_gradients_of_half_precision_are_summed_wide_and_cast_once(name, dtype):
    t = torch.ones(2, 2, dtype=dtype, requires_grad=True)
    (found,) = torch.autograd.grad(SUMMED[name](t, 3000).float().sum(), t)
    assert found.to_dense()[0, 0] == torch.tensor(3000.0).to(dtype)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_of_a_hot_id_is_that_of_float64(weighted):
    k, found = 300_000, {}
    indices, n = torch.zeros(k, dtype=torch.long), torch.full((k // 100,), 100)
    for dtype in (torch.float32, torch.float64):
        t = torch.zeros(2, 1, dtype=dtype, requires_grad=True)
        inputs = (t, torch.full((k,), 0.3, dtype=dtype)) if weighted else (t,)
        pool = ops.sparse_lengths_weighted_sum if weighted else ops.sparse_lengths_sum
        y = pool(*inputs, indices, n)
        (found[dtype],) = torch.autograd.grad(y, t, torch.full_like(y, 0.1))
    torch.testing.assert_close(found[torch.float32].double(), found[torch.float64], rtol=1e-6, atol=0)


def test_the_first_nan_has_the_gradient_of_a_maximum():
    x, ids = torch.tensor([1.0, np.nan, 2.0, np.nan], requires_grad=True), torch.zeros(4, dtype=torch.long)
    for function in (
        lambda: ops.lengths_max(x, torch.tensor([4])),
        lambda: ops.sorted_segment_min(x, ids),
        lambda: ops.unsorted_segment_max(x, ids),
        lambda: ops.reduce_max(x),
        lambda: ops.reduce_max(x.reshape(2, 2), axes=(1, 0)),
    ):
        assert torch.autograd.grad(function().sum(), x)[0].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("name", ["lengths_max", "lengths_min"])
def test_an_extreme_that_is_trained_has_the_same_values_gradients_and_errors(name):
    function, n = getattr(ops, name), torch.tensor([3, 0, 2])
    x = torch.tensor([[1.0, -0.0], [3.0, 0.0], [3.0, np.nan], [-2.0, 5.0], [0.5, 5.0]], requires_grad=True)
    y = function(x, n, empty=7)
    assert y.detach().numpy().tobytes() == function(x.detach(), n, empty=7).numpy().tobytes()
    (found,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    registered = getattr(torch.ops.seqflow, name)(x, n)  # finds the positions in its derivative
    assert torch.equal(found, torch.autograd.grad(registered, x, torch.ones_like(y))[0])
    messages = []
    for one in (x, x.detach()):
        with pytest.raises(SeqflowError, match=f"{name}: ") as raised:
            function(one, torch.tensor([3]))
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("total", [-1, 2.5, "x", True, 4])
def test_a_total_that_is_wrong_is_refused(total):
    with pytest.raises(OpError, match="expand: total is"):
        ops.expand(torch.ones(2, 2), torch.tensor([2, 3]), total=total)


def test_the_second_derivative_of_a_recurrent_op_is_an_error_that_says_what_has_one():
    x, w_ih, w_hh = (torch.randn(*shape, requires_grad=True) for shape in ((5, 3), (16, 3), (16, 4)))
    h = ops.lstm(x, torch.tensor([3, 0, 2]), w_ih, w_hh).h
    (first,) = torch.autograd.grad(h.square().sum(), x, create_graph=True)
    with pytest.raises(GradientError, match="take cells of PyTorch for it"):
        torch.autograd.grad(first.sum(), w_ih)
