"""Tensors that share their memory with the kernels, and those that must not."""

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

from seqflow.errors import OpTypeError

torch = pytest.importorskip("torch")

from torch_calls import zero_tensor  # noqa: E402

from seqflow.torch import ops  # noqa: E402
from seqflow.torch.ops.kernels import call_on_tensors, tensor_of  # noqa: E402


def arrays_of(tensors):
    """Arrays on the memory of tensors; None where one is declined."""
    found = call_on_tensors(lambda *arrays: [arrays], lambda result, arrays: result[0], tensors, None)
    return None if found is NotImplemented else found


has_exchange = pytest.mark.skipif(
    arrays_of((torch.ones(1),)) is None,
    reason="torch has no exchange functions, or there are no native kernels",
)
DTYPES = [
    getattr(torch, name)
    for name in ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
]  # fmt: skip
N = torch.tensor([2, 0, 1])


def declined_tensors():
    """Tensors without memory of their own values, by their names, and the sums of their segments (None: an error)."""
    rows = torch.arange(6.0).reshape(3, 2)
    complex_rows = torch.complex(rows, rows + 1).conj()
    with warnings.catch_warnings(action="ignore"):  # the layout is a prototype, torch says
        nested = torch.nested.nested_tensor([rows, rows[:1]])
    found = {
        "negative bit": (complex_rows.imag, [[-4.0, -6.0], [0, 0], [-5.0, -6.0]]),
        "bfloat16": (rows.bfloat16(), [[2.0, 4.0], [0, 0], [4.0, 5.0]]),
        "complex": (complex_rows, None),
        "sparse": (rows.to_sparse(), None),
        "nested": (nested, None),
        "meta": (rows.to("meta"), None),
        "zero": (zero_tensor(3, 2), [[0.0, 0.0]] * 3),
    }
    return [pytest.param(tensor, sums, id=name) for name, (tensor, sums) in found.items()]


@pytest.mark.parametrize(("tensor", "sums"), declined_tensors())
def test_a_tensor_without_plain_memory_is_declined_and_its_values_are_right(tensor, sums):
    assert arrays_of((tensor,)) is None
    if sums is not None:
        assert ops.lengths_sum(tensor, N).tolist() == sums


@pytest.mark.parametrize("name", ["sparse", "nested", "complex"])
def test_a_tensor_that_is_not_dense_numbers_is_refused_by_its_op(name):
    (tensor,) = [case.values[0] for case in declined_tensors() if case.id == name]
    with pytest.raises(OpTypeError, match="lengths_sum"):
        ops.lengths_sum(tensor, N)


def test_wrappers_of_transforms_are_declined_also_when_they_have_ended():
    kept = []

    def function(value):
        kept.append(value)
        assert arrays_of((value,)) is None
        return value.sum()

    x = torch.ones(3, 2)
    torch.func.grad(function)(x)
    torch.vmap(function)(x)
    torch.func.functionalize(function)(x)
    assert [arrays_of((one,)) for one in kept] == [None, None, None]


def test_a_subclass_of_tensor_and_what_is_not_a_tensor_are_declined():
    class Mine(torch.Tensor):
        pass

    assert arrays_of((torch.ones(2).as_subclass(Mine),)) is None
    assert arrays_of((np.ones(2),)) is None
    assert arrays_of(("x",)) is None


@has_exchange
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_array_has_the_dtype_and_the_memory_of_its_tensor_and_the_way_back(dtype):
    tensor = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    (array,) = arrays_of((tensor,))
    assert array.dtype == tensor.numpy().dtype
    assert array.dtype is np.dtype(array.dtype.name)  # the checks of ops compare by identity
    assert array.__array_interface__["data"][0] == tensor.data_ptr()
    again = tensor_of(array)
    assert (again.dtype, again.data_ptr(), again.tolist()) == (dtype, tensor.data_ptr(), tensor.tolist())


@has_exchange
@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3.0),
        torch.empty(0, 3),
        torch.empty(3, 0),
        torch.arange(6).reshape(2, 3).T,
        torch.arange(12).reshape(3, 4)[1:, ::2],
        torch.ones(1, 3).expand(4, 3),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2, requires_grad=True),
        torch.ones([1] * 64),
    ],
    ids=[
        "0-d",
        "no rows",
        "no columns",
        "transposed",
        "strided",
        "expanded",
        "parameter",
        "trained",
        "64 axes",
    ],
)
def test_shapes_and_strides_are_those_of_the_tensor(tensor):
    (array,) = arrays_of((tensor,))
    assert array.shape == tuple(tensor.shape)
    assert array.tolist() == tensor.tolist()


@has_exchange
def test_none_stays_none_and_one_tensor_declines_all():
    assert arrays_of((None, torch.ones(1)))[0] is None
    assert arrays_of((torch.ones(1), torch.ones(1).bfloat16())) is None


@has_exchange
def test_a_tensor_of_more_axes_than_arrays_may_have_is_declined():
    assert arrays_of((torch.ones([1] * 65),)) is None


@has_exchange
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.arange(6)[::-1],
        np.empty((0, 2)),
        np.ones(2, complex),
        np.ones(2, np.longdouble),
        np.ones(2, ">f4"),
        np.array(["a"]),
        np.zeros(2, "m8[s]"),
        np.broadcast_to(np.ones(1), (3,)),
    ],
    ids=[
        "transposed",
        "reversed",
        "empty",
        "complex",
        "long double",
        "big-endian",
        "text",
        "times",
        "read-only",
    ],
)
def test_an_array_that_torch_cannot_share_is_declined(array):
    assert tensor_of(array) is None


@pytest.mark.slow
@has_exchange
def test_memory_lives_as_long_as_the_array_or_the_tensor_on_it():
    tensor = torch.arange(1000.0)
    (array,) = arrays_of((tensor,))
    del tensor
    gc.collect()
    assert array.sum() == 499500
    made = np.arange(1000.0)
    alive, shared = weakref.ref(made), tensor_of(made)
    del made
    assert alive() is not None
    assert shared.sum() == 499500
    last = [shared]
    del shared
    thread = threading.Thread(target=last.clear)  # frees the memory elsewhere
    thread.start()
    thread.join()
    assert alive() is None


@has_exchange
def test_a_result_cannot_be_resized():
    with pytest.raises(RuntimeError, match="resiz"):
        ops.lengths_sum(torch.ones(3, 2), N).resize_(100)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dense", [True, False])
def test_a_derivative_on_arrays_is_that_on_tensors(dtype, dense):
    x = torch.arange(6.0).reshape(3, 2).to(dtype).requires_grad_()
    y = ops.lengths_sum(x, N)
    arriving = (
        torch.full((3, 2), 0.5, dtype=y.dtype) if dense else torch.tensor(0.5, dtype=y.dtype).expand(3, 2)
    )
    (found,) = torch.autograd.grad(y, x, arriving, retain_graph=True)
    (again,) = torch.autograd.grad(y, x, arriving, create_graph=True)
    assert found.dtype is again.dtype is dtype
    assert found.tolist() == again.tolist() == [[0.5, 0.5]] * 3


def test_a_derivative_of_a_call_follows_its_attributes_and_the_inputs_that_need_it():
    x, w = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    for needs in ([x, w], [x], [w], [x, w]):
        a, b = [one if any(one is need for need in needs) else one.detach() for one in (x, w)]
        found = torch.autograd.grad(ops.lengths_weighted_sum(a, b, N).sum(), needs)
        assert [one.tolist() for one in found] == [[2.0] * 3 if one is x else [1.0] * 3 for one in needs]
    padded = [
        torch.autograd.grad(ops.pad(x, N, side=side)[0][:, 0].sum(), x)[0].tolist()
        for side in ("right", "left")
    ]
    assert padded == [[1, 0, 1], [1, 0, 0]]
