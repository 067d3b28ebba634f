"""The gradients of the recurrent ops, from their states h alone; they have no derivatives of their own."""

from typing import Any, Literal

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.recurrent_cells.backward import Pass
from seqflow.kernels.recurrent_cells.backward import gru_backward as _gru
from seqflow.kernels.recurrent_cells.backward import lstm_backward as _lstm
from seqflow.kernels.recurrent_cells.backward import rnn_backward as _rnn
from seqflow.ops.recurrent import as_ifgo, check_projection, swap_last_gates
from seqflow.ops.shared.directions import both_directions
from seqflow.registry import NoDerivative, op
from seqflow.signature import Positive

_SECOND = NoDerivative("the second derivative of a recurrent op is not there: take cells of PyTorch for it")


def _float(array: Any) -> Any:
    """Return a contiguous array, which BLAS always sums in one order; float16 is computed in float32."""
    if array is None:
        return None
    return np.ascontiguousarray(array, np.float32 if array.dtype == np.float16 else array.dtype)


def _pass(
    states: tuple[Array, Array, Array, Array],
    lengths: Array,
    weights: tuple[Array, Array],
    h0: Any,
    reverse: bool,
) -> Pass:
    """Return the arguments of a backward pass; `states` are x, h, d_h and d_h_last, `weights` w_ih and w_hh."""
    x, h, d_h, d_h_last = map(_float, states)
    w_ih, w_hh = map(_float, weights)
    return Pass(x, h, d_h, d_h_last, lengths, w_ih, w_hh, _float(h0), reverse)


def _as(dtype: Any, *arrays: Array | None) -> tuple[Any, ...]:
    return tuple(one.astype(dtype, copy=False) for one in arrays if one is not None)


@op(
    "float x[sum(lengths), K], like(x) h[sum(lengths), H], like(x) d_h[sum(lengths), H], like(x) d_h_last[B, H],"
    " lengths[B], like(x) w_ih[H, K], like(x) w_hh[H, H], like(x) bias[H]?, like(x) h0[B, H]?"
    " -> like(x) grad_x[sum(lengths), K], like(x) grad_w_ih[H, K], like(x) grad_w_hh[H, H], like(x) grad_bias[H],"
    " like(x) grad_h0[B, H]",
    moves="",
    grad=_SECOND,
)
def rnn_backward(
    x: Array,
    h: Array,
    d_h: Array,
    d_h_last: Array,
    lengths: Array,
    w_ih: Array,
    w_hh: Array,
    bias: Array | None,
    h0: Array | None,
    *,
    nonlinearity: Literal["tanh", "relu"] = "tanh",
    reverse: bool = False,
) -> tuple[Array, ...]:
    """Return the gradients of `rnn`: of x, the weights, the bias and the initial state; `h` are its states.

    For an empty sequence the gradient of its last state is that of its initial state.

    >>> x, w, one = np.array([[2.0]]), np.eye(1), np.ones((1, 1))
    >>> rnn_backward(x, x, one, 0 * one, np.array([1]), w, w, nonlinearity="relu").grad_w_ih
    array([[2.]])
    """
    given = _pass((x, h, d_h, d_h_last), lengths, (w_ih, w_hh), h0, reverse)
    found = _rnn(given, nonlinearity == "relu")
    return _as(x.dtype, found.x, found.w_ih, found.w_hh, found.bias, found.h0)


@op(
    "float x[sum(lengths), K], like(x) h[sum(lengths), H], like(x) d_h[sum(lengths), H], like(x) d_h_last[B, H],"
    " lengths[B], like(x) w_ih[3*H, K], like(x) w_hh[3*H, H], like(x) bias_ih[3*H]?, like(x) bias_hh[3*H]?,"
    " like(x) h0[B, H]?"
    " -> like(x) grad_x[sum(lengths), K], like(x) grad_w_ih[3*H, K], like(x) grad_w_hh[3*H, H],"
    " like(x) grad_bias_ih[3*H], like(x) grad_bias_hh[3*H], like(x) grad_h0[B, H]",
    moves="",
    grad=_SECOND,
)
def gru_backward(
    x: Array,
    h: Array,
    d_h: Array,
    d_h_last: Array,
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
    """Return the gradients of `gru`: of x, the weights, the biases and the initial state; `h` are its states.

    For an empty sequence the gradient of its last state is that of its initial state.

    >>> x, w, v, one = np.zeros((1, 1)), np.ones((3, 1)), np.zeros((3, 1)), np.ones((1, 1))
    >>> gru_backward(x, 0 * one, one, 0 * one, np.array([1]), w, v).grad_bias_ih
    array([0. , 0. , 0.5])
    """
    given = _pass((x, h, d_h, d_h_last), lengths, (w_ih, w_hh), h0, reverse)
    found = _gru(given, _float(bias_ih), _float(bias_hh), linear_before_reset)
    return _as(x.dtype, found.x, found.w_ih, found.w_hh, found.bias, found.bias_hh, found.h0)


@op(
    "float x[sum(lengths), K], like(x) h[sum(lengths), proj_size|H], like(x) d_h[sum(lengths), proj_size|H],"
    " like(x) d_h_last[B, proj_size|H], like(x) d_c_last[B, H], lengths[B], like(x) w_ih[4*H, K],"
    " like(x) w_hh[4*H, proj_size|H], like(x) bias[4*H]?, like(x) h0[B, proj_size|H]?, like(x) c0[B, H]?,"
    " like(x) w_hr[proj_size|H, H]?"
    " -> like(x) grad_x[sum(lengths), K], like(x) grad_w_ih[4*H, K], like(x) grad_w_hh[4*H, proj_size|H],"
    " like(x) grad_bias[4*H], like(x) grad_h0[B, proj_size|H], like(x) grad_c0[B, H],"
    " like(x) grad_w_hr[proj_size|H, H]",
    moves="",
    grad=_SECOND,
)
def lstm_backward(
    x: Array,
    h: Array,
    d_h: Array,
    d_h_last: Array,
    d_c_last: Array,
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
    """Return the gradients of `lstm`: of x, the weights, the bias and the initial states; `h` are its states.

    The gates and the states c are computed again. For an empty sequence the gradients of its last states are those of
    its initial states. `grad_w_hr` is 0 without a projection.

    >>> x, w, v, one = np.zeros((1, 1)), np.ones((4, 1)), np.zeros((4, 1)), np.ones((1, 1))
    >>> lstm_backward(x, 0 * one, one, 0 * one, 0 * one, np.array([1]), w, v).grad_bias
    array([0.  , 0.  , 0.25, 0.  ])
    """
    check_projection(proj_size, w_hr)
    w_ih, w_hh, bias = as_ifgo(gate_order, forget_bias, w_ih, w_hh, bias)
    given = _pass((x, h, d_h, d_h_last), lengths, (w_ih, w_hh), h0, reverse)
    found = _lstm(given, _float(d_c_last), _float(bias), _float(c0), _float(w_hr))
    weights = [found.w_ih, found.w_hh, found.bias]
    if gate_order == "ifog":
        weights = [swap_last_gates(one) for one in weights]
    return _as(x.dtype, found.x, *weights, found.h0, found.c0, found.w_hr)


# From both ends


@both_directions(rnn_backward, moves="", grad=_SECOND)
def bidirectional_rnn_backward() -> None:
    """Return the gradients of `bidirectional_rnn`: of x, and of both directions' weights, biases and initial states.

    For an empty sequence the gradient of its last state is that of its initial state.

    >>> x, w, one = np.array([[2.0]]), np.eye(1), np.ones((1, 2))
    >>> bidirectional_rnn_backward(x, 2 * one, one, 0 * one, np.array([1]), w, w, w, w, nonlinearity="relu").grad_x
    array([[2.]])
    """


@both_directions(gru_backward, moves="", grad=_SECOND)
def bidirectional_gru_backward() -> None:
    """Return the gradients of `bidirectional_gru`: of x, and of both directions' weights, biases and initial states.

    For an empty sequence the gradient of its last state is that of its initial state.

    >>> x, w, v, one = np.zeros((1, 1)), np.ones((3, 1)), np.zeros((3, 1)), np.ones((1, 2))
    >>> bidirectional_gru_backward(x, 0 * one, one, 0 * one, np.array([1]), w, v, w, v).grad_x
    array([[1.]])
    """


@both_directions(
    lstm_backward,
    without=("gate_order", "forget_bias"),
    moves="",
    grad=_SECOND,
)
def bidirectional_lstm_backward() -> None:
    """Return the gradients of `bidirectional_lstm`: of x, and of both directions' weights, biases and initial states.

    For an empty sequence the gradients of its last states are those of its initial states.

    >>> x, w, v, one = np.zeros((1, 1)), np.ones((4, 1)), np.zeros((4, 1)), np.ones((1, 2))
    >>> bidirectional_lstm_backward(x, 0 * one, one, 0 * one, 0 * one, np.array([1]), w, v, w, v).grad_x
    array([[0.5]])
    """
