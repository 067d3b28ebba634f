"""Second implementations train, give shapes of tensors without data, and refuse what the ops refuse."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import LodError, OpError, OpIndexError, OpTypeError

torch = pytest.importorskip("torch")

from seqflow.torch.device import IMPLEMENTATIONS  # noqa: E402

LENGTHS = torch.tensor([3, 0, 1, 2])
DATA = [[1.5, -2.0], [0.25, 3.0], [-1.0, 0.5], [2.0, 2.5], [0.75, -0.5], [-3.0, 1.0]]
OF_SEQUENCES = [
    "append_token", "context_windows", "cumsum_within", "lengths_first", "lengths_last", "lengths_logsumexp",
    "lengths_max", "lengths_mean", "lengths_min", "lengths_prod", "lengths_sqrt_sum", "lengths_std", "lengths_sum",
    "lengths_var", "log_softmax_within", "normalize_within", "pack_by_time", "pad", "reverse_sequences", "shift",
    "softmax_within", "sort_within", "truncate",
]  # fmt: skip
ATTRIBUTES = {
    "append_token": {"token": 1},
    "context_windows": {"before": 1, "after": 1},
    "shift": {"by": 1},
    "truncate": {"max_length": 2, "keep": "tail"},
}


@pytest.mark.parametrize("name", OF_SEQUENCES)
def test_gradients_are_those_of_differences(name):
    def first(data):
        found = IMPLEMENTATIONS[name](data, LENGTHS, **ATTRIBUTES.get(name, {}))
        return found[0] if isinstance(found, tuple) else found

    data = torch.tensor(DATA, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(first, (data,))


@pytest.mark.parametrize("name", ["sparse_lengths_sum", "sparse_lengths_mean", "sparse_lengths_max"])
def test_pools_pass_gradients_to_the_table(name):
    table = torch.tensor(DATA, dtype=torch.float64, requires_grad=True)
    indices = torch.tensor([0, 5, 1, 7, 2, 3])

    def pooled(table):
        return IMPLEMENTATIONS[name](table, indices, LENGTHS, ignore_index=7)

    torch.autograd.gradcheck(pooled, (table,))


def test_the_first_of_equal_elements_has_the_gradient_of_a_maximum():
    data = torch.tensor([2.0, 2.0], requires_grad=True)
    IMPLEMENTATIONS["lengths_max"](data, torch.tensor([2])).sum().backward()
    assert data.grad.tolist() == [1, 0]


def test_equal_elements_of_an_id_share_the_gradient():
    data = torch.tensor([2.0, 2.0], requires_grad=True)
    IMPLEMENTATIONS["sorted_segment_max"](data, torch.tensor([0, 0])).sum().backward()
    assert data.grad.tolist() == [0.5, 0.5]


def test_a_deviation_of_zero_has_a_gradient_of_zero():
    data = torch.tensor([2.0, 2.0], requires_grad=True)
    IMPLEMENTATIONS["lengths_std"](data, torch.tensor([2])).sum().backward()
    assert data.grad.tolist() == [0, 0]


@pytest.mark.parametrize("name", ["lengths_max", "lengths_argmax", "lengths_logsumexp", "softmax_within"])
def test_nan_and_infinity_are_those_of_numpy(name):
    data = np.array([1.0, np.nan, 3.0, np.inf, 0.0, -np.inf])
    lengths = np.array([3, 0, 2, 1])
    found = IMPLEMENTATIONS[name](torch.from_numpy(data), torch.from_numpy(lengths))
    np.testing.assert_array_equal(found.numpy(), getattr(ops, name)(data, lengths))


def test_running_sums_lose_no_digits_to_other_segments():
    data = torch.tensor([1e16, 1.0, 1.0], dtype=torch.float64)
    found = IMPLEMENTATIONS["cumsum_within"](data, torch.tensor([1, 2]))
    assert found.tolist() == [1e16, 1.0, 2.0]


def test_bfloat16_comes_back():
    data = torch.tensor([1.0, 2.0, 3.0], dtype=torch.bfloat16)
    found = IMPLEMENTATIONS["lengths_mean"](data, torch.tensor([2, 1]))
    assert found.dtype is torch.bfloat16
    assert found.tolist() == [1.5, 3.0]


@pytest.mark.parametrize("name", OF_SEQUENCES[:10])
def test_tensors_without_data_give_shapes(name):
    attributes = ATTRIBUTES.get(name, {})
    data = torch.tensor(DATA)
    expected = IMPLEMENTATIONS[name](data, LENGTHS, **attributes)
    found = IMPLEMENTATIONS[name](data.to("meta"), LENGTHS.to("meta"), **attributes)
    expected, found = ([one[0] if isinstance(one, tuple) else one][0] for one in (expected, found))
    assert found.is_meta
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


def test_a_size_that_only_data_tell_is_refused_without_data():
    with pytest.raises(OpError, match="expand: a size of the result depends on data"):
        IMPLEMENTATIONS["expand"](torch.zeros(2, device="meta"), torch.ones(2, device="meta").long())


def test_lengths_of_tensors_without_data_need_not_be_known():
    with pytest.raises(LodError, match="but data has 2 rows"):
        IMPLEMENTATIONS["lengths_sum"](torch.zeros(2, device="meta"), torch.zeros(0, device="meta").long())


def test_bad_input_is_refused():
    data = torch.tensor(DATA)
    with pytest.raises(LodError, match=r"lengths_sum: sum\(lengths\) is 4 but data has 6 rows"):
        IMPLEMENTATIONS["lengths_sum"](data, torch.tensor([4]))
    with pytest.raises(OpIndexError, match=r"gather: indices\[1\] = 6 is outside \[0, 6\)"):
        IMPLEMENTATIONS["gather"](data, torch.tensor([0, 6]))
    with pytest.raises(OpTypeError, match="data is list, expected a tensor"):
        IMPLEMENTATIONS["lengths_sum"](DATA, LENGTHS)
    with pytest.raises(OpTypeError, match="there is no attribute 'emty'"):
        IMPLEMENTATIONS["lengths_sum"](data, LENGTHS, emty=1)
    with pytest.raises(OpTypeError, match="found 3 inputs"):
        IMPLEMENTATIONS["lengths_sum"](data, LENGTHS, 1)
    with pytest.raises(OpError, match="data is on meta, lengths is on cpu, expected one device"):
        IMPLEMENTATIONS["lengths_sum"](data.to("meta"), LENGTHS)
    with pytest.raises(OpTypeError, match="with which torch does not compute"):
        IMPLEMENTATIONS["lengths_sum"](torch.zeros(6, dtype=torch.uint64), LENGTHS)
    with pytest.raises(OpError, match="out is given"):
        IMPLEMENTATIONS["expand"](torch.zeros(4), LENGTHS, out=np.zeros(6))
