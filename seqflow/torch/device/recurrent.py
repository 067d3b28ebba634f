"""Recurrent cells by torch's own functions, with cuDNN if available. The host waits for the lengths."""

from typing import Any

import torch
from torch import Tensor

from seqflow import registry
from seqflow.ops.recurrent import check_projection
from seqflow.ops.shared.directions import run_both
from seqflow.torch.device.registration import IMPLEMENTED, implements
from seqflow.torch.device.structure import arange, starts_of

_SYNCS = "the lengths"


class _Packed:
    """Rows of sequences by time step, longest sequence first, as torch's cells take them."""

    def __init__(self, lengths: Tensor, reverse: bool) -> None:
        self.order = torch.argsort(lengths, descending=True, stable=True)
        host = lengths[self.order].cpu()
        longest = int(host[0]) if len(host) else 0
        self.batch_sizes = (host[None] > torch.arange(longest)[:, None]).sum(1)
        self.alive = int(self.batch_sizes[0]) if longest else 0
        """Number of sequences with rows."""
        counts = self.batch_sizes.to(lengths.device)
        steps = torch.repeat_interleave(
            arange(lengths, longest), counts, output_size=int(self.batch_sizes.sum())
        )
        places = arange(lengths, len(steps)) - (counts.cumsum(0) - counts)[steps]
        starts = starts_of(lengths)
        first = starts + lengths - 1 if reverse else starts
        self.rows = first[self.order[places]] + (-steps if reverse else steps)

    def states(self, given: Tensor | None, x: Tensor, hidden: int) -> Tensor:
        """Return the initial states, longest sequence first."""
        return x.new_zeros(len(self.order), hidden) if given is None else given[self.order]

    def last(self, found: Tensor, initial: Tensor) -> Tensor:
        """Return the last states in the order of the sequences; an empty sequence keeps its initial state."""
        states = torch.cat([found, initial[self.alive :]])
        return torch.empty_like(states).index_copy(0, self.order, states)

    def in_order(self, found: Tensor) -> Tensor:
        """Return the rows in their original order."""
        return torch.empty_like(found).index_copy(0, self.rows, found)


def _run(
    cell: str,
    x: Tensor,
    lengths: Tensor,
    weights: tuple[Tensor, ...],
    biases: tuple[Tensor | None, Tensor | None],
    states: tuple[Tensor | None, ...],
    reverse: bool,
    w_hr: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Return the states after every row, and the last states of each sequence, in the dtype of x."""
    dtype = x.dtype
    if w_hr is not None:
        weights = (*weights, w_hr)
    if dtype is torch.float16:
        x, weights = x.float(), tuple(one.float() for one in weights)
    given = [None if one is None else one.to(x.dtype) for one in (*biases, *states)]
    packed = _Packed(lengths, reverse)
    widths = weights[1].shape[1], weights[-1].shape[1]  # of h and, with a projection, another of c
    initial = [packed.states(one, x, width) for one, width in zip(given[2:], widths, strict=False)]
    filled = [x.new_zeros(len(weights[0])) if one is None else one for one in given[:2]]
    if not packed.alive or not len(weights[0]):
        last = [one[: packed.alive] for one in initial]
        # sums of no elements, which keep the weights in the graph
        found = x.new_zeros(len(x), widths[0]) + sum(one[:0].sum() for one in (x, *weights, *filled))
    else:
        first = [one[None, : packed.alive].contiguous() for one in initial]
        every = [*weights[:2], *filled, *weights[2:]]
        found, *last = _CELLS[cell](x[packed.rows], packed.batch_sizes, first, every)
        found = packed.in_order(found)
    ends = (
        packed.last(one.reshape(packed.alive, start.shape[1]), start)
        for one, start in zip(last, initial, strict=True)
    )
    return tuple(one.to(dtype) for one in (found, *ends))


def _by_torch(function: Any, has_cell: bool) -> Any:
    def run(x: Tensor, batch_sizes: Tensor, states: list[Tensor], weights: list[Tensor]) -> Any:
        first = states if has_cell else states[0]
        return function(x, batch_sizes, first, weights, True, 1, 0.0, False, False)

    return run


def _gru_reset_first(x: Tensor, batch_sizes: Tensor, states: list[Tensor], weights: list[Tensor]) -> Any:
    """Return the form of the paper, step by step: n = tanh(w_ih @ x + b_ih + w_hh @ (r * h) + b_hh)."""
    w_ih, w_hh, bias_ih, bias_hh = weights
    by_x = torch.nn.functional.linear(x, w_ih, bias_ih)
    hidden = w_hh.shape[1]
    gates, new = w_hh[: 2 * hidden], w_hh[2 * hidden :]
    h, begin, found, ended = states[0][0], 0, [], []
    for count in batch_sizes.tolist():
        if count < len(h):  # sequences are sorted by length: those that have ended are the last ones
            ended.append(h[count:])
        h, step = h[:count], by_x[begin : begin + count]
        both = torch.sigmoid(step[:, : 2 * hidden] + h @ gates.T + bias_hh[: 2 * hidden])
        r, z = both[:, :hidden], both[:, hidden:]
        n = torch.tanh(step[:, 2 * hidden :] + (r * h) @ new.T + bias_hh[2 * hidden :])
        h = (1 - z) * n + z * h
        found.append(h)
        begin += count
    return torch.cat(found), torch.cat([h, *reversed(ended)])


_CELLS = {
    "rnn_tanh": _by_torch(torch.rnn_tanh, False),
    "rnn_relu": _by_torch(torch.rnn_relu, False),
    "gru": _by_torch(torch.gru, False),
    "gru_reset_first": _gru_reset_first,
    "lstm": _by_torch(torch.lstm, True),
}


@implements("rnn", syncs=_SYNCS)
def _rnn(x: Tensor, lengths: Tensor, *given: Any, nonlinearity: str, reverse: bool) -> tuple[Tensor, ...]:
    w_ih, w_hh, bias, h0 = given
    return _run(f"rnn_{nonlinearity}", x, lengths, (w_ih, w_hh), (bias, None), (h0,), reverse)


@implements("gru", syncs=_SYNCS)
def _gru(
    x: Tensor, lengths: Tensor, *given: Any, linear_before_reset: bool, reverse: bool
) -> tuple[Tensor, ...]:
    w_ih, w_hh, bias_ih, bias_hh, h0 = given
    cell = "gru" if linear_before_reset else "gru_reset_first"
    return _run(cell, x, lengths, (w_ih, w_hh), (bias_ih, bias_hh), (h0,), reverse)


@implements("lstm", syncs=_SYNCS)
def _lstm(
    x: Tensor,
    lengths: Tensor,
    *given: Any,
    gate_order: str,
    forget_bias: float,
    proj_size: int | None,
    reverse: bool,
) -> tuple[Tensor, ...]:
    w_ih, w_hh, bias, h0, c0, w_hr = given
    check_projection(proj_size, w_hr)
    if forget_bias:
        added = w_hh.new_zeros(len(w_hh))  # w_hh may have no columns
        added[len(w_hh) // 4 : len(w_hh) // 2] = forget_bias
        bias = added if bias is None else bias + added
    if gate_order == "ifog":
        w_ih, w_hh = _swapped(w_ih), _swapped(w_hh)
        bias = None if bias is None else _swapped(bias)
    return _run("lstm", x, lengths, (w_ih, w_hh), (bias, None), (h0, c0), reverse, w_hr)


def _swapped(weights: Tensor) -> Tensor:
    """Return the gates i, f, o, g in the order i, f, g, o."""
    i, f, o, g = weights.chunk(4)
    return torch.cat([i, f, g, o])


# From both ends

for _cell in ("rnn", "gru", "lstm"):
    _body = run_both(registry.get(_cell), IMPLEMENTED[_cell].body, torch.cat)
    implements(f"bidirectional_{_cell}", syncs=_SYNCS)(_body)
