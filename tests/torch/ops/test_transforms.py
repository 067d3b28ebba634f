"""Ops inside of torch.func: gradients of functions, maps over slices, and both in either order."""

import pytest

from seqflow.errors import GradientError, LodError, OpTypeError

torch = pytest.importorskip("torch")

from seqflow.torch import ops  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

N = torch.tensor([2, 0, 3])


def loss(x):
    return ops.lengths_sum(ops.softmax_within(x, N) * x, N).square().sum()


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(5, 2, dtype=torch.float64)


def gradient(x):
    own = x.clone().requires_grad_()
    return torch.autograd.grad(loss(own), own)[0]


def test_a_function_has_a_gradient(x):
    torch.testing.assert_close(torch.func.grad(loss)(x), gradient(x))
    _, back = torch.func.vjp(loss, x)
    torch.testing.assert_close(back(torch.tensor(2.0, dtype=torch.float64))[0], 2 * gradient(x))


def test_second_derivatives_are_those_of_autograd(x):
    hessian = torch.autograd.functional.hessian(loss, x)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(loss))(x), hessian)


def test_a_map_of_gradients_is_the_gradient_of_the_map(x):
    slices = torch.stack([x, 2 * x])
    expected = torch.stack([gradient(one) for one in slices])
    torch.testing.assert_close(torch.vmap(torch.func.grad(loss))(slices), expected)
    torch.testing.assert_close(torch.func.grad(lambda s: torch.vmap(loss)(s).sum())(slices), expected)


def test_a_map_may_be_differentiated_from_outside(x):
    slices = torch.stack([x, 2 * x]).requires_grad_()
    (found,) = torch.autograd.grad(torch.vmap(loss)(slices).sum(), slices)
    torch.testing.assert_close(found, torch.stack([gradient(one) for one in slices.detach()]))


def test_gradients_may_be_made_for_many_cotangents_at_once(x):
    for function in (loss, lambda x: ops.softmax_within(x, N), lambda x: ops.pad(x, N).padded):
        found = torch.autograd.functional.jacobian(function, x, vectorize=True)
        torch.testing.assert_close(found, torch.autograd.functional.jacobian(function, x))


def test_lengths_may_be_mapped_over(x):
    lengths = torch.tensor([[2, 3], [5, 0]])
    found = torch.vmap(lambda n: ops.lengths_sum(x, n))(lengths)
    torch.testing.assert_close(found, torch.stack([ops.lengths_sum(x, n) for n in lengths]))


def test_several_results_and_integers_pass(x):
    found = torch.func.grad(lambda x: ops.pad(x, N).padded.square().sum())(x)
    torch.testing.assert_close(found, 2 * x)
    places = ops.lengths_to_positions(N)[:, None]
    found = torch.func.grad(lambda x: (ops.lengths_to_positions(N)[:, None] * x).sum())(x)
    torch.testing.assert_close(found, places.double().expand(x.shape))


def test_errors_are_ours(x):
    with pytest.raises(LodError, match="lengths_sum: sum"):
        torch.func.grad(lambda x: ops.lengths_sum(x, torch.tensor([9])).sum())(x)
    with pytest.raises(GradientError, match="unique: it has no derivative"):
        torch.func.grad(lambda x: ops.unique(x[:, 0]).unique.sum())(x)


def test_views_that_negate_are_read(x):
    negative = torch.complex(x, x).conj().imag
    assert negative.is_neg()
    torch.testing.assert_close(ops.lengths_sum(negative, N), -ops.lengths_sum(x, N))


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_tensors_that_are_not_dense_are_refused(x, layout):
    with pytest.raises(OpTypeError, match=r"lengths_sum: a tensor is torch.sparse_\w+, expected a dense one"):
        ops.lengths_sum(getattr(x, layout)(), N)


def test_nested_tensors_are_refused(x):
    with pytest.raises(OpTypeError, match="lengths_sum: a tensor is nested, expected a dense one"):
        ops.lengths_sum(torch.nested.nested_tensor([x, x]), N)
