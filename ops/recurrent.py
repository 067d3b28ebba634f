"""Recurrent cells along sequences of different lengths, without padding, and decoding of their outputs.

Sequences are run longest first; each step is one matrix product over the sequences that have not ended. Weights are
laid out as in PyTorch, so those of `torch.nn.LSTM`, `GRU` and `RNN` need no conversion (`seqflow.torch` loads them).
"""

from typing import Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.directions import both_directions
from seqflow.registry import op
from seqflow.signature import NonNegative, Positive

Weights = tuple[Array | None, ...]
"""Weights w_ih, w_hh, bias_ih, bias_hh; or the states h0, c0."""


@op(
    "float x[sum(lengths), K], lengths[B], like(x) w_ih[H, K], like(x) w_hh[H, H],"
    " like(x) bias[H]?, like(x) h0[B, H]? -> h[sum(lengths), H], h_last[B, H]",
    grad={
        "x, w_ih, w_hh, bias, h0": """
            rnn_backward(
                x, out.h, d.h, d.h_last, lengths, w_ih, w_hh,
                bias=bias, h0=h0, nonlinearity=nonlinearity, reverse=reverse
            )
        """
    },
)
def rnn(
    x: Array,
    lengths: Array,
    w_ih: Array,
    w_hh: Array,
    bias: Array | None,
    h0: Array | None,
    *,
    nonlinearity: Literal["tanh", "relu"] = "tanh",
    reverse: bool = False,
) -> tuple[Array, ...]:
    """Run a plain recurrent network, h = tanh(w_ih @ x + w_hh @ h + bias), or relu, along each sequence.

    Returns the state after every row, and the last state of each sequence; an empty sequence gives its initial
    state, `h0`, by default 0. `reverse` runs from the end of each sequence to its start. All floats have one dtype,
    also the results (float16 is computed in float32). This is `torch.nn.RNN` with bias = bias_ih + bias_hh.

    >>> x = np.array([[1.0], [2.0], [3.0]])
    >>> rnn(x, np.array([2, 0, 1]), np.eye(1), np.eye(1), nonlinearity="relu").h_last.ravel()
    array([3., 0., 3.])
    """
    return _run(f"rnn_{nonlinearity}", x, lengths, (w_ih, w_hh, bias, None), (h0, None), reverse)


@op(
    "float x[sum(lengths), K], lengths[B], like(x) w_ih[3*H, K], like(x) w_hh[3*H, H],"
    " like(x) bias_ih[3*H]?, like(x) bias_hh[3*H]?, like(x) h0[B, H]? -> h[sum(lengths), H], h_last[B, H]",
    caffe2="GRUUnit",
    grad={
        "x, w_ih, w_hh, bias_ih, bias_hh, h0": """
            gru_backward(
                x, out.h, d.h, d.h_last, lengths, w_ih, w_hh,
                bias_ih=bias_ih, bias_hh=bias_hh, h0=h0, linear_before_reset=linear_before_reset, reverse=reverse
            )
        """
    },
)
def gru(
    x: Array,
    lengths: Array,
    w_ih: Array,
    w_hh: Array,
    bias_ih: Array | None,
    bias_hh: Array | None,
    h0: Array | None,
    *,
    linear_before_reset: bool = True,
    reverse: bool = False,
) -> tuple[Array, ...]:
    """Run a gated recurrent unit along each sequence; the rows of the weights are the gates reset, update, new.

        r, z = sigmoid(w_ih @ x + bias_ih + w_hh @ h + bias_hh)
        n = tanh(w_ih @ x + bias_ih + r * (w_hh @ h + bias_hh))
        h = (1 - z) * n + z * h

    This is the form of `torch.nn.GRU` and cuDNN. `linear_before_reset=False` is the form of the paper (Cho et al.,
    2014), and Caffe2's default: n = tanh(w_ih @ x + bias_ih + w_hh @ (r * h) + bias_hh).

    Returns the state after every row, and the last state of each sequence; an empty sequence gives its initial
    state, `h0`, by default 0. `reverse` runs from the end of each sequence to its start. All floats have one dtype,
    also the results (float16 is computed in float32).

    >>> x = np.array([[1.0], [2.0], [3.0]])
    >>> gru(x, np.array([2, 0, 1]), np.ones((3, 1)), np.zeros((3, 1))).h_last.ravel().round(3)
    array([0.295, 0.   , 0.047])
    """
    cell = "gru" if linear_before_reset else "gru_reset_first"
    return _run(cell, x, lengths, (w_ih, w_hh, bias_ih, bias_hh), (h0, None), reverse)


@op(
    "float x[sum(lengths), K], lengths[B], like(x) w_ih[4*H, K], like(x) w_hh[4*H, proj_size|H],"
    " like(x) bias[4*H]?, like(x) h0[B, proj_size|H]?, like(x) c0[B, H]?, like(x) w_hr[proj_size|H, H]?"
    " -> h[sum(lengths), proj_size|H], h_last[B, proj_size|H], c_last[B, H]",
    caffe2="LSTMUnit",
    grad={
        "x, w_ih, w_hh, bias, h0, c0, w_hr": """
            lstm_backward(
                x, out.h, d.h, d.h_last, d.c_last, lengths, w_ih, w_hh,
                bias=bias, h0=h0, c0=c0, w_hr=w_hr, gate_order=gate_order, forget_bias=forget_bias,
                proj_size=proj_size, reverse=reverse
            )
        """
    },
)
def lstm(
    x: Array,
    lengths: Array,
    w_ih: Array,
    w_hh: Array,
    bias: Array | None,
    h0: Array | None,
    c0: Array | None,
    w_hr: Array | None,
    *,
    gate_order: Literal["ifgo", "ifog"] = "ifgo",
    forget_bias: float = 0.0,
    proj_size: Positive | None = None,
    reverse: bool = False,
) -> tuple[Array, ...]:
    """Run a long short-term memory along each sequence; the rows of the weights are the gates i, f, g, o.

        i, f, o = sigmoid(w_ih @ x + w_hh @ h + bias)
        g = tanh(w_ih @ x + w_hh @ h + bias)
        c = f * c + i * g
        h = o * tanh(c)

    Returns the state h after every row, and the last h and c of each sequence; an empty sequence gives its initial
    states, `h0` and `c0`, by default 0. `gate_order="ifog"` is Caffe2's order of gates; `forget_bias` is added to
    the bias of f. With `proj_size`, below H, the state is projected: h = w_hr @ (o * tanh(c)).
    `reverse` runs from the end of each sequence to its start. All floats have one dtype, also the results (float16 is
    computed in float32). This is `torch.nn.LSTM` with bias = bias_ih + bias_hh.

    >>> x = np.array([[1.0], [2.0], [3.0]])
    >>> lstm(x, np.array([2, 0, 1]), np.ones((4, 1)), np.zeros((4, 1))).h_last.ravel().round(3)
    array([0.768, 0.   , 0.704])
    """
    check_projection(proj_size, w_hr)
    weights = as_ifgo(gate_order, forget_bias, w_ih, w_hh, bias)
    return _run("lstm", x, lengths, (*weights, None), (h0, c0), reverse, w_hr)


@both_directions(rnn)
def bidirectional_rnn() -> None:
    """Run `rnn` in both directions, each with its own weights; states are the forward ones, then the reverse ones.

    An empty sequence gives its initial state, `h0`.

    >>> x, w = np.array([[1.0], [2.0], [3.0]]), np.eye(1)
    >>> bidirectional_rnn(x, np.array([2, 1]), w, w, w, w, nonlinearity="relu").h
    array([[1., 3.],
           [3., 2.],
           [3., 3.]])
    """


@both_directions(gru)
def bidirectional_gru() -> None:
    """Run `gru` in both directions, each with its own weights; states are the forward ones, then the reverse ones.

    An empty sequence gives its initial state, `h0`.

    >>> x, w, v = np.array([[1.0], [2.0], [3.0]]), np.ones((3, 1)), np.zeros((3, 1))
    >>> bidirectional_gru(x, np.array([2, 1]), w, v, w, v).h.round(3)
    array([[0.205, 0.289],
           [0.295, 0.115],
           [0.047, 0.047]])
    """


@both_directions(
    lstm,
    without=("gate_order", "forget_bias"),
)
def bidirectional_lstm() -> None:
    """Run `lstm` in both directions, each with its own weights; states are the forward ones, then the reverse ones.

    An empty sequence gives its initial states, `h0` and `c0`.

    >>> x, w, v = np.array([[1.0], [2.0], [3.0]]), np.ones((4, 1)), np.zeros((4, 1))
    >>> bidirectional_lstm(x, np.array([2, 1]), w, v, w, v).h.round(3)
    array([[0.37 , 0.604],
           [0.768, 0.608],
           [0.704, 0.704]])
    """


@op(
    "number scores[sum(lengths), K], lengths[B] -> int64 values[sum(lengths')], int64 lengths'[B] <= lengths",
    caffe2="CTCGreedyDecoder",
)
def ctc_greedy_decode(
    scores: Array, lengths: Array, *, blank: NonNegative = 0, merge_repeated: bool = True
) -> tuple[Array, Array]:
    """Return the best label of every row, without blanks and without repeats of the previous label.

    The first label of equal scores wins, as in NumPy, and NaN wins over all. Two equal labels with a blank between
    them are both kept. An empty sequence has no labels.

    >>> best = np.eye(3)[[1, 1, 0, 1, 2, 2]]
    >>> ctc_greedy_decode(best, np.array([5, 0, 1]))
    CtcGreedyDecodeResult(values=array([1, 1, 2, 2]), lengths=array([3, 0, 1]))
    """
    num_labels = scores.shape[1]
    if blank >= num_labels and len(scores):
        raise OpError(
            f"blank is {blank}, expected less than {num_labels}, the labels of scores {scores.shape}"
        )
    best = scores.argmax(axis=1) if len(scores) else np.zeros(0, np.int64)
    kept = best != blank
    starts = kernels.lengths_to_offsets(lengths)
    if merge_repeated:
        repeats = np.zeros(len(best), bool)
        np.equal(best[1:], best[:-1], out=repeats[1:])
        repeats[starts[:-1][lengths > 0]] = False
        kept &= ~repeats
    before = np.concatenate([[0], np.cumsum(kept)])
    return best[kept], np.diff(before[starts])


def _run(
    cell: str,
    x: Array,
    lengths: Array,
    weights: Weights,
    states: Weights,
    reverse: bool,
    w_hr: Array | None = None,
) -> tuple[Array, ...]:
    """Run the kernel, and return its results in the dtype of x."""
    floats: list[Any] = [x, *weights, *states, w_hr]
    if x.dtype == np.float16:
        floats = [None if array is None else array.astype(np.float32) for array in floats]
    found = kernels.run_cell(cell, floats[0], lengths, *floats[1:], reverse=reverse)
    return tuple(array.astype(x.dtype, copy=False) for array in found if array is not None)


def check_projection(proj_size: int | None, w_hr: Any) -> None:
    """Raise OpError when one of the size and the weights of a projection is missing, or h is not smaller than c."""
    if (proj_size is None) != (w_hr is None):
        found, missing = ("w_hr", "proj_size") if proj_size is None else (f"proj_size={proj_size}", "w_hr")
        raise OpError(f"{found} is given without {missing}, expected both: w_hr is [proj_size, H]")
    if proj_size is not None and proj_size >= w_hr.shape[1]:
        raise OpError(f"proj_size is {proj_size}, expected less than {w_hr.shape[1]}, the columns of w_hr")


def as_ifgo(
    gate_order: str, forget_bias: float, w_ih: Array, w_hh: Array, bias: Array | None
) -> tuple[Array, Array, Array | None]:
    """Return an LSTM's weights with gates in the order i, f, g, o, and its bias with the forget bias added."""
    if gate_order == "ifog":
        w_ih, w_hh, bias = swap_last_gates(w_ih), swap_last_gates(w_hh), swap_last_gates(bias)
    if forget_bias:
        hidden = len(w_hh) // 4
        bias = np.zeros(4 * hidden, w_hh.dtype) if bias is None else bias.copy()
        bias[hidden : 2 * hidden] += forget_bias
    return w_ih, w_hh, bias


def swap_last_gates(weights: Any) -> Any:
    """Return the gates i, f, o, g in the order i, f, g, o, or back; None stays None."""
    if weights is None:
        return None
    i, f, one, other = np.split(weights, 4)
    return np.concatenate([i, f, other, one])
