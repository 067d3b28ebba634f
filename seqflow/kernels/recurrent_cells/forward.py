"""RNN, GRU and LSTM layers over sequences of different lengths."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, rows
from seqflow.kernels.checks import check_sum, offsets_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import COUNTS, FLOATS

NUM_GATES = {"lstm": 4, "gru": 3, "gru_reset_first": 3, "rnn_tanh": 1, "rnn_relu": 1}
"""Number of gates of each cell; its weights have this many rows for each hidden unit."""


class CellArguments(NamedTuple):
    """Contiguous arrays of one dtype whose shapes agree."""

    x: Array
    w_ih: Array
    w_hh: Array
    bias_ih: Array | None
    bias_hh: Array | None
    h0: Array | None
    c0: Array | None
    w_hr: Array | None


def checked_arguments(cell: str, num_sequences: int, given: CellArguments) -> CellArguments:
    """Return the checked arguments; raise ValueError for an unknown cell or a wrong shape, TypeError for other
    dtypes.
    """
    if cell not in NUM_GATES:
        raise ValueError(f"cell is {cell!r}, expected one of {', '.join(NUM_GATES)}")
    if given.w_hr is not None and cell != "lstm":
        raise ValueError(f"w_hr is given to {cell}, expected none: only an LSTM is projected")
    x, w_hh = given.x, given.w_hh
    states = w_hh.shape[-1] if w_hh.ndim else 0
    hidden = given.w_hr.shape[-1] if given.w_hr is not None and given.w_hr.ndim else states
    gates = NUM_GATES[cell] * hidden
    shapes = {
        "x": (len(x), x.shape[-1]),
        "w_ih": (gates, x.shape[-1]),
        "w_hh": (gates, states),
        "bias_ih": (gates,),
        "bias_hh": (gates,),
        "h0": (num_sequences, states),
        "c0": (num_sequences, hidden),
        "w_hr": (states, hidden),
    }
    for name, array in given._asdict().items():
        if array is None:
            continue
        if array.dtype != x.dtype or array.dtype.kind != "f":
            raise TypeError(f"{name} is {array.dtype}, expected floats of the dtype of x, {x.dtype}")
        if array.shape != shapes[name]:
            raise ValueError(f"{name} has the shape {array.shape}, expected {shapes[name]}")
    return given._replace(
        **{name: rows(array, name) for name, array in given._asdict().items() if array is not None}
    )


def empty_states(
    arguments: CellArguments, cell: str, num_sequences: int
) -> tuple[Array, Array, Array | None]:
    """Return new arrays for h and for the last states, which hold the first states."""
    x, states = arguments.x, arguments.w_hh.shape[1]
    hidden = states if arguments.w_hr is None else arguments.w_hr.shape[1]
    h_last, c_last = (
        np.zeros((num_sequences, size), x.dtype) if start is None else start.copy()
        for start, size in ((arguments.h0, states), (arguments.c0, hidden))
    )
    return np.empty((len(x), states), x.dtype), h_last, c_last if cell == "lstm" else None


__all__ = ["run_cell"]

ROWS_AT_ONCE = 512

"""Approximate number of rows of x that are multiplied with w_ih in one product."""

Step = Callable[[Array, Array, Array | None], None]

"""Function that takes the products of x for the gates of some sequences, and updates their h and c."""


@kernel(
    x=FLOATS,
    lengths=COUNTS,
    w_ih=FLOATS,
    w_hh=FLOATS,
    bias_ih=FLOATS,
    bias_hh=FLOATS,
    h0=FLOATS,
    c0=FLOATS,
    w_hr=FLOATS,
)
def run_cell(
    cell: str,
    x: Array,
    lengths: Array,
    w_ih: Array,
    w_hh: Array,
    bias_ih: Array | None = None,
    bias_hh: Array | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    w_hr: Array | None = None,
    *,
    reverse: bool = False,
) -> tuple[Array, Array, Array | None]:
    """Run a cell along each sequence: h[N, H], h_last[B, H], and c_last[B, H] of an LSTM.

    x[N, K] and lengths[B] are the sequences, w_ih[G*H, K], w_hh[G*H, H] and two biases [G*H] the weights of G gates,
    h0 and c0 [B, H] the states before the first step (None: 0); all of one dtype of floats. An LSTM may have states
    h = w_hr @ (o * tanh(c)): w_hr is [P, H], and w_hh, h0, h and h_last have P in place of H.

    cell is "lstm" (gates i, f, g, o), "gru" (r, z, n; the reset gate applied to the product with w_hh),
    "gru_reset_first" (applied to the state before it), "rnn_tanh" or "rnn_relu". `reverse` runs each sequence from
    its end. The last state of an empty sequence is its first state.
    """
    lengths = int64_counts(lengths, "lengths")
    given = CellArguments(x, w_ih, w_hh, bias_ih, bias_hh, h0, c0, w_hr)
    arguments = checked_arguments(cell, len(lengths), given)
    check_sum(lengths, len(x), "x")
    out, h_last, c_last = empty_states(arguments, cell, len(lengths))
    weights, bias, step = _CELLS[cell](arguments)
    order = np.argsort(-lengths, kind="stable")
    h, c = h_last[order], None if c_last is None else c_last[order]
    with np.errstate(all="ignore"):
        for rows, alive in _schedule(lengths[order], offsets_of(lengths)[order], reverse):
            gates = arguments.x[rows] @ weights
            gates += bias
            states = np.empty((len(rows), h.shape[1]), h.dtype)
            begin = 0
            # with the longest sequences first, those alive in a step are the first n: slices, not index arrays
            for n in alive:
                step(gates[begin : begin + n], h[:n], None if c is None else c[:n])
                states[begin : begin + n] = h[:n]
                begin += n
            out[rows] = states
    h_last[order] = h
    if c_last is not None:
        c_last[order] = c
    return out, h_last, c_last


def _schedule(lengths: Array, starts: Array, reverse: bool) -> Iterator[tuple[Array, list[int]]]:
    """Yield blocks of steps: the rows to read, step by step, and their number in each step.

    The sequences must be ordered longest first, so that those alive in a step are the first ones.
    """
    longest = int(lengths.max(initial=0))
    alive = len(lengths) - np.searchsorted(lengths[::-1], np.arange(longest), side="right")
    first, direction = (starts + lengths - 1, -1) if reverse else (starts, 1)
    block = (np.cumsum(alive) - 1) // ROWS_AT_ONCE
    for steps in np.split(np.arange(longest), np.flatnonzero(np.diff(block)) + 1):
        rows = [first[: alive[t]] + direction * t for t in steps]
        yield np.concatenate(rows) if rows else first[:0], alive[steps].tolist()


def _lstm(arguments: CellArguments) -> tuple[Array, Array, Step]:
    hidden = len(arguments.w_hh) // 4
    signs = np.repeat(np.array([-1, -1, 1, -1], arguments.x.dtype), hidden)
    # i, f and o are negated in the weights, so that `_sigmoid_of_negated` needs no copy for the minus
    step = partial(_lstm_step, arguments.w_hh.T * signs, hidden, arguments.w_hr)
    return arguments.w_ih.T * signs, signs * _bias(arguments), step


def _lstm_step(weights: Array, hidden: int, w_hr: Array | None, gates: Array, h: Array, c: Array) -> None:
    gates += h @ weights
    i, f, g, o = (gates[:, k * hidden : (k + 1) * hidden] for k in range(4))
    for gate in (i, f, o):
        _sigmoid_of_negated(gate)
    np.tanh(g, out=g)
    c *= f
    i *= g
    c += i
    o *= np.tanh(c)
    h[...] = o if w_hr is None else o @ w_hr.T


def _gru(arguments: CellArguments, *, reset_first: bool) -> tuple[Array, Array, Step]:
    hidden = arguments.w_hh.shape[1]
    signs = np.repeat(np.array([-1, -1, 1], arguments.x.dtype), hidden)
    bias, outside = _biases(arguments)
    if reset_first:
        bias, step = bias + outside, _gru_reset_first_step
    else:  # the bias of the product with w_hh is multiplied by the reset gate, so it must stay separate
        bias[: 2 * hidden] += outside[: 2 * hidden]
        step = partial(_gru_step, outside[2 * hidden :])
    return arguments.w_ih.T * signs, signs * bias, partial(step, arguments.w_hh.T * signs)


def _gru_step(bias: Array, weights: Array, gates: Array, h: Array, c: None) -> None:
    hidden = h.shape[1]
    recurrent = h @ weights
    reset_and_update, new = gates[:, : 2 * hidden], gates[:, 2 * hidden :]
    reset_and_update += recurrent[:, : 2 * hidden]
    _sigmoid_of_negated(reset_and_update)
    recurrent[:, 2 * hidden :] += bias
    new += gates[:, :hidden] * recurrent[:, 2 * hidden :]
    _update(gates[:, hidden : 2 * hidden], np.tanh(new, out=new), h)


def _gru_reset_first_step(weights: Array, gates: Array, h: Array, c: None) -> None:
    hidden = h.shape[1]
    reset_and_update, new = gates[:, : 2 * hidden], gates[:, 2 * hidden :]
    reset_and_update += h @ weights[:, : 2 * hidden]
    _sigmoid_of_negated(reset_and_update)
    new += (gates[:, :hidden] * h) @ weights[:, 2 * hidden :]
    _update(gates[:, hidden : 2 * hidden], np.tanh(new, out=new), h)


def _update(update: Array, new: Array, h: Array) -> None:
    h -= new
    h *= update
    h += new


def _rnn(arguments: CellArguments, *, activation: Callable[..., Any]) -> tuple[Array, Array, Step]:
    return arguments.w_ih.T, _bias(arguments), partial(_rnn_step, arguments.w_hh.T, activation)


def _rnn_step(weights: Array, activation: Callable[..., Any], gates: Array, h: Array, c: None) -> None:
    gates += h @ weights
    activation(gates, out=h)


def _relu(values: Array, out: Array) -> None:
    np.maximum(values, 0, out=out)


def _sigmoid_of_negated(values: Array) -> None:
    """Compute sigmoid(x) of -x, in place: the weights contain the minus."""
    np.exp(values, out=values)
    values += 1
    np.divide(1, values, out=values)


def _biases(arguments: CellArguments) -> tuple[Array, Array]:
    """Return new copies of both biases, 0 if there is none."""
    zeros = np.zeros(len(arguments.w_hh), arguments.x.dtype)
    ih, hh = (zeros if bias is None else bias for bias in (arguments.bias_ih, arguments.bias_hh))
    return ih.copy(), hh.copy()


def _bias(arguments: CellArguments) -> Array:
    ih, hh = _biases(arguments)
    return ih + hh


_CELLS: dict[str, Callable[[CellArguments], tuple[Array, Array, Step]]] = {
    "lstm": _lstm,
    "gru": partial(_gru, reset_first=False),
    "gru_reset_first": partial(_gru, reset_first=True),
    "rnn_tanh": partial(_rnn, activation=np.tanh),
    "rnn_relu": partial(_rnn, activation=_relu),
}
