"""Recurrent cells: what all kernels give, for any input."""

import numpy as np
import numpy_kernels as reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow import kernels
from seqflow.kernels import KernelError

CELLS = {"lstm": 4, "gru": 3, "gru_reset_first": 3, "rnn_tanh": 1, "rnn_relu": 1}
NAMES = ["x", "lengths", "w_ih", "w_hh", "bias_ih", "bias_hh", "h0", "c0", "w_hr"]
TOLERANCE = {"float32": 1e-6, "float64": 1e-12}
each_isa = settings(
    max_examples=60,
    deadline=None,
)


@st.composite
def cells(draw):
    """A cell and its arguments, of any size, with and without biases and states, in any strides."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cell = draw(st.sampled_from(list(CELLS)))
    lengths = np.array(
        draw(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 30)), max_size=30)), np.int64
    )
    inputs, hidden = draw(st.integers(0, 40)), draw(st.integers(0, 40))
    dtype = draw(st.sampled_from(list(TOLERANCE)))
    gates = CELLS[cell] * hidden
    projected = draw(st.integers(0, hidden)) if cell == "lstm" and draw(st.booleans()) else hidden
    shapes = [
        (int(lengths.sum()), inputs),
        (gates, inputs),
        (gates, projected),
        (gates,),
        (gates,),
        (len(lengths), projected),
        (len(lengths), hidden),
        (projected, hidden),
    ]
    arrays = []
    for shape in shapes:
        array = (random.standard_normal(shape) / (1 + hidden)).astype(dtype)
        match draw(st.sampled_from(["plain", "plain", "strided", "fortran", "read-only"])):
            case "strided":
                array = np.repeat(array, 2, axis=-1)[..., ::2]
            case "fortran":
                array = np.asfortranarray(array)
            case "read-only":
                array.flags.writeable = False
        arrays.append(array)
    arrays.insert(1, lengths)
    given = dict(zip(NAMES, arrays, strict=True))
    for name in NAMES[4:-1]:
        if draw(st.booleans()):
            given[name] = None
    if cell != "lstm" or projected == hidden:
        given["w_hr"] = None
    if cell != "lstm":
        given["c0"] = None
    return cell, given, draw(st.booleans())


def outcome(module, call):
    cell, given, reverse = call
    try:
        return module.run_cell(cell, **given, reverse=reverse)
    except (KernelError, TypeError, ValueError) as error:
        return type(error), str(error)


@given(call=cells())
@each_isa
def test_native_cells_agree_with_the_reference(native, call):
    for ours, theirs in zip(outcome(native, call), outcome(reference, call), strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype
            assert ours.flags.c_contiguous
            tolerance = TOLERANCE[str(ours.dtype)]
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@given(call=cells(), data=st.data())
@each_isa
def test_native_cells_refuse_what_the_reference_refuses(native, call, data):
    cell, given, reverse = call
    name = data.draw(st.sampled_from([name for name in NAMES if given[name] is not None]))
    array = given[name]
    match data.draw(
        st.sampled_from(["shape", "rank", "dtype", "cell"] if name != "lengths" else ["lengths"])
    ):
        case "shape":
            axis = data.draw(st.integers(0, array.ndim - 1))
            array = np.concatenate([array, array.take([0] if array.shape[axis] else [], axis)], axis)
        case "rank":
            array = array.reshape(*array.shape, 1)
        case "dtype":
            array = array.astype(data.draw(st.sampled_from(["float16", "int64", "float32", "float64"])))
        case "cell":
            cell = "elman"
        case "lengths":
            array = np.append(array, data.draw(st.sampled_from([-1, 1, 2**62, 2**63 - 1])))
    found = [outcome(module, (cell, given | {name: array}, reverse)) for module in (native, reference)]
    if isinstance(found[0][0], type) or isinstance(found[1][0], type):
        assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tanh_is_accurate_near_0_and_far_from_it(any_kernels, dtype):
    tiny, huge = np.finfo(dtype).tiny, np.finfo(dtype).max
    far = np.concatenate([np.linspace(0, 30, 3001), np.logspace(-30, 2, 500), [tiny, huge, np.inf]])
    x = np.concatenate([far, -far, [np.nan]]).astype(dtype)
    alone = np.ones(len(x), np.int64)
    one, zero = np.ones((1, 1), dtype), np.zeros((1, 1), dtype)
    found = kernels.run_cell("rnn_tanh", x[:, None], alone, one, zero)[0][:, 0]
    np.testing.assert_allclose(found, np.tanh(x.astype(np.float64)), rtol=TOLERANCE[dtype], atol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmoid_is_accurate(any_kernels, dtype):
    x = np.concatenate([np.linspace(-800, 800, 5001), [-np.inf, np.inf, np.nan]]).astype(dtype)
    alone = np.ones(len(x), np.int64)
    forget, zero = np.array([[0], [1], [0], [0]], dtype), np.zeros((4, 1), dtype)
    c0 = np.ones((len(x), 1), dtype)
    found = kernels.run_cell("lstm", x[:, None], alone, forget, zero, c0=c0)[2][:, 0]
    finite = np.isfinite(x)
    with np.errstate(over="ignore"):
        expected = 1 / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(found[finite], expected[finite], rtol=0, atol=TOLERANCE[dtype])


def test_sequences_give_the_same_bits_whichever_others_they_are_run_with(native):
    random = np.random.default_rng(5)
    lengths = random.integers(0, 40, 50)
    x = random.standard_normal((int(lengths.sum()), 19)).astype(np.float32)
    for cell, gates in CELLS.items():
        w_ih, w_hh = (random.standard_normal((gates * 37, k)).astype(np.float32) for k in (19, 37))
        together = kernels.run_cell(cell, x, lengths, w_ih, w_hh)[0]
        parts = np.split(np.arange(len(x)), np.cumsum(lengths)[:-1])
        for i, rows in enumerate(parts):
            alone = kernels.run_cell(cell, x[rows], lengths[i : i + 1], w_ih, w_hh)[0]
            assert alone.tobytes() == together[rows].tobytes()


def test_two_threads_give_the_bits_of_one(native, two_threads):
    random = np.random.default_rng(6)
    lengths = np.r_[random.integers(0, 60, 40), 200]
    x = random.standard_normal((int(lengths.sum()), 24))
    for cell, gates in CELLS.items():
        w_ih, w_hh = (random.standard_normal((gates * 50, k)) / 7 for k in (24, 50))
        kernels.set_num_threads(2)
        together = kernels.run_cell(cell, x, lengths, w_ih, w_hh)
        kernels.set_num_threads(1)
        alone = kernels.run_cell(cell, x, lengths, w_ih, w_hh)
        assert [a.tobytes() for a in together if a is not None] == [
            a.tobytes() for a in alone if a is not None
        ]


def test_single_thread_sequences_stay_in_one_share(native, two_threads):
    random = np.random.default_rng(7)
    x, w = random.standard_normal((6, 3)), random.standard_normal((2, 3))
    expected = kernels.run_cell("rnn_tanh", x, np.array([4, 2]), w, np.eye(2))[0]
    with kernels.single_thread():
        np.testing.assert_array_equal(
            kernels.run_cell("rnn_tanh", x, np.array([4, 2]), w, np.eye(2))[0], expected
        )
