"""Backward passes of recurrent cells along ragged rows, from the states h of the forward pass alone.

Sequences are ordered longest first, so that step t concerns only the first of them. Two products over all rows
compute the gates again; one small product for each step goes back through time, and the gradients of the weights are
again products over all rows. Gates are those of PyTorch: r, z, n of GRU and i, f, g, o of LSTM.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.lengths import lengths_to_offsets

__all__ = ["CellGradients", "Pass", "gru_backward", "lstm_backward", "rnn_backward"]


class Pass(NamedTuple):
    """Input of a backward pass: the inputs of the cell, its states h, and the gradients of its outputs."""

    x: Array
    h: Array
    d_h: Array
    d_h_last: Array
    lengths: Array
    w_ih: Array
    w_hh: Array
    h0: Array | None
    reverse: bool


class CellGradients(NamedTuple):
    """Gradients of a cell; `bias_hh` is None if the cell has one bias, `c0` and `w_hr` if it has no state c."""

    x: Array
    w_ih: Array
    w_hh: Array
    bias: Array
    bias_hh: Array | None
    h0: Array
    c0: Array | None
    w_hr: Array | None


class _Steps:
    """The rows of all sequences, step by step."""

    def __init__(self, lengths: Array, reverse: bool) -> None:
        lengths = lengths.astype(np.int64)
        self.order: Array = np.argsort(-lengths, kind="stable")
        """Indices of the sequences, longest first."""
        longest = int(lengths.max(initial=0))
        self.counts: Array = len(lengths) - np.searchsorted(
            np.sort(lengths), np.arange(longest), side="right"
        )
        """Number of sequences that have a row at each step."""
        self.ends: Array = np.cumsum(self.counts)
        offsets = lengths_to_offsets(lengths)
        first = offsets[1:] - 1 if reverse else offsets[:-1]
        step = np.repeat(np.arange(longest), self.counts)
        place = np.arange(len(step)) - np.repeat(self.ends - self.counts, self.counts)
        self.rows: Array = first[self.order[place]] + (-step if reverse else step)
        """Row at each place; all rows of the first step come first."""

    def before(self, states: Array, initial: Array) -> Array:
        """Return for each place the state of the step before; `initial` has the state of each sequence, longest
        first.
        """
        found = np.empty_like(states)
        previous = initial
        for rows, count in self.forwards():
            found[rows] = previous[:count]
            previous = states[rows]
        return found

    def forwards(self) -> Iterator[tuple[slice, int]]:
        """Yield the places of each step, and their number."""
        for end, count in zip(self.ends.tolist(), self.counts.tolist(), strict=True):
            yield slice(end - count, end), count

    def backwards(self) -> Iterator[tuple[slice, int]]:
        yield from reversed(list(self.forwards()))


def rnn_backward(given: Pass, relu: bool) -> CellGradients:
    """Return the gradients of h = tanh(w_ih @ x + w_hh @ h + bias), or of relu."""
    steps, x, h, d_h, h0 = _by_time(given)
    slope = (h > 0).astype(h.dtype) if relu else 1 - h * h
    d = np.empty_like(h)
    dh = given.d_h_last[steps.order]
    for rows, count in steps.backwards():
        np.multiply(d_h[rows] + dh[:count], slope[rows], out=d[rows])
        dh[:count] = d[rows] @ given.w_hh
    return _collected(steps, given, x, steps.before(h, h0), d, d, dh)


def lstm_backward(
    given: Pass, d_c_last: Array, bias: Array | None, c0: Array | None, w_hr: Array | None
) -> CellGradients:
    """Return the gradients of c = f c + i g, h = o tanh(c), or w_hr @ (o tanh(c)); c is computed again, step by step.

    The gradient of w_hr is 0 if there is none.
    """
    steps, x, h, d_h, h0 = _by_time(given)
    previous = steps.before(h, h0)
    gates = x @ given.w_ih.T + previous @ given.w_hh.T
    if bias is not None:
        gates += bias
    hidden = d_c_last.shape[1]
    i, f, o = (_sigmoid(gates[:, k * hidden : (k + 1) * hidden]) for k in (0, 1, 3))
    g = np.tanh(gates[:, 2 * hidden : 3 * hidden])
    state = np.zeros_like(d_c_last) if c0 is None else c0[steps.order]
    before, tanh_c = np.empty_like(g), np.empty_like(g)
    for rows, count in steps.forwards():
        before[rows] = state[:count]
        state[:count] = f[rows] * state[:count] + i[rows] * g[rows]
        np.tanh(state[:count], out=tanh_c[rows])
    slope = np.concatenate([g * i * (1 - i), before * f * (1 - f), i * (1 - g * g)], axis=1)
    through = o * (1 - tanh_c * tanh_c)
    by_o = tanh_c * o * (1 - o)
    d = gates  # reuses memory: `gates` are not needed below
    arriving_h = np.empty_like(h)
    dh, dc = given.d_h_last[steps.order], d_c_last[steps.order]
    for rows, count in steps.backwards():
        arriving = np.add(d_h[rows], dh[:count], out=arriving_h[rows])
        if w_hr is not None:
            arriving = arriving @ w_hr
        of_c = dc[:count]
        of_c += arriving * through[rows]
        d[rows, : 3 * hidden] = slope[rows] * np.tile(of_c, 3)
        d[rows, 3 * hidden :] = arriving * by_o[rows]
        dh[:count] = d[rows] @ given.w_hh
        of_c *= f[rows]
    found = _collected(steps, given, x, previous, d, d, dh)
    of_w_hr = np.zeros((hidden, hidden), h.dtype) if w_hr is None else arriving_h.T @ (o * tanh_c)
    return found._replace(c0=_in_order(steps, dc), w_hr=of_w_hr)


def gru_backward(
    given: Pass, bias_ih: Array | None, bias_hh: Array | None, linear_before_reset: bool
) -> CellGradients:
    """Return the gradients of h = (1 - z) n + z h, in PyTorch's form or, with the reset first, in that of the
    paper.
    """
    steps, x, h, d_h, h0 = _by_time(given)
    previous = steps.before(h, h0)
    hidden = h.shape[1]
    by_x = x @ given.w_ih.T + (0 if bias_ih is None else bias_ih)
    first = given.w_hh[: 2 * hidden]
    by_h = previous @ first.T + (0 if bias_hh is None else bias_hh[: 2 * hidden])
    r, z = (_sigmoid(by_x[:, part] + by_h[:, part]) for part in (slice(0, hidden), slice(hidden, 2 * hidden)))
    w_n, b_n = given.w_hh[2 * hidden :], 0 if bias_hh is None else bias_hh[2 * hidden :]
    if linear_before_reset:
        hn = previous @ w_n.T + b_n
        n = np.tanh(by_x[:, 2 * hidden :] + r * hn)
    else:
        hn = previous
        n = np.tanh(by_x[:, 2 * hidden :] + (r * previous) @ w_n.T + b_n)
    slope_z, slope_n, slope_r = (previous - n) * z * (1 - z), (1 - z) * (1 - n * n), hn * r * (1 - r)
    d = np.empty_like(by_x)
    dh = given.d_h_last[steps.order]
    for rows, count in steps.backwards():
        arriving = d_h[rows] + dh[:count]
        dn = d[rows, 2 * hidden :]
        d[rows, hidden : 2 * hidden] = arriving * slope_z[rows]
        np.multiply(arriving, slope_n[rows], out=dn)
        if linear_before_reset:
            d[rows, :hidden] = dn * slope_r[rows]
            dh[:count] = arriving * z[rows] + d[rows, : 2 * hidden] @ first + (dn * r[rows]) @ w_n
        else:
            back = dn @ w_n
            d[rows, :hidden] = back * slope_r[rows]
            dh[:count] = arriving * z[rows] + back * r[rows] + d[rows, : 2 * hidden] @ first
    if linear_before_reset:
        of_h = d.copy()
        of_h[:, 2 * hidden :] *= r
        found = _collected(steps, given, x, previous, d, of_h, dh)
        return found._replace(bias_hh=of_h.sum(0))
    found = _collected(steps, given, x, previous, d, d, dh)
    w_hh = np.concatenate([found.w_hh[: 2 * hidden], d[:, 2 * hidden :].T @ (r * previous)])
    return found._replace(w_hh=w_hh, bias_hh=found.bias.copy())


def _by_time(given: Pass) -> tuple[_Steps, Array, Array, Array, Array]:
    """Return the steps; x, h and the gradients of h in their order; the initial states, longest sequence first."""
    steps = _Steps(given.lengths, given.reverse)
    x, h, d_h = (array[steps.rows] for array in (given.x, given.h, given.d_h))
    h0 = np.zeros(given.d_h_last.shape, h.dtype) if given.h0 is None else given.h0[steps.order]
    return steps, x, h, d_h, h0


def _collected(
    steps: _Steps, given: Pass, x: Array, previous: Array, of_x: Array, of_h: Array, dh: Array
) -> CellGradients:
    """Return all gradients, from the gradients of the products with x and of the products with h."""
    back = np.empty(given.x.shape, given.x.dtype)
    back[steps.rows] = of_x @ given.w_ih
    w_hh = of_h.T @ previous
    return CellGradients(back, of_x.T @ x, w_hh, of_x.sum(0), None, _in_order(steps, dh), None, None)


def _in_order(steps: _Steps, states: Array) -> Array:
    """Return states of the sequences, given longest first, in the original order."""
    found = np.empty_like(states)
    found[steps.order] = states
    return found


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        found: Array = 1 / (1 + np.exp(-x))
    return found
