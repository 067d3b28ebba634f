"""Caffe2's operators for a single step of a recurrent network."""

import numpy as np

from seqflow import ops
from seqflow.errors import OpError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array

from .adapter import ADAPTERS, Adapter, single_integer


def lstm_unit(
    hidden_prev: Array,
    cell_prev: Array,
    gates: Array,
    seq_lengths: Array,
    timestep: Array | None = None,
    *,
    forget_bias: float = 0.0,
    drop_states: bool = False,
    sequence_lengths: bool = True,
) -> tuple[Array, Array]:
    """Compute one step of an LSTM from the sums of its gates i, f, o, g, in this order: the new states h and c.

    A sequence that has ended keeps its states, or gets zeros with `drop_states`. With `sequence_lengths=False` the
    inputs have no lengths, and no sequence ends.
    """
    lengths, step = _lengths_and_step(seq_lengths, timestep, sequence_lengths)
    if cell_prev.shape != hidden_prev.shape:
        raise ShapeError(f"cell_prev is {cell_prev.shape}, expected {hidden_prev.shape} as hidden_prev")
    i, f, o, g = _gates(gates, hidden_prev, 4)
    bias = f.dtype.type(forget_bias)
    cell = ops.sigmoid(f + bias) * cell_prev + ops.sigmoid(i) * ops.tanh(g)
    hidden = ops.sigmoid(o) * ops.tanh(cell)
    over = _over(lengths, step, hidden_prev)
    return _kept(hidden, hidden_prev, over, drop_states), _kept(cell, cell_prev, over, drop_states)


def gru_unit(
    hidden_prev: Array,
    gates: Array,
    seq_lengths: Array,
    timestep: Array | None = None,
    *,
    drop_states: bool = False,
    sequence_lengths: bool = True,
) -> Array:
    """Compute one step of a GRU from its gates reset, update, output, in this order: the new state.

    The reset gate is applied earlier, outside this operator. Ended sequences are treated as in LSTMUnit.
    """
    lengths, step = _lengths_and_step(seq_lengths, timestep, sequence_lengths)
    _, update, output = _gates(gates, hidden_prev, 3)
    kept = ops.sigmoid(update)
    hidden = kept * hidden_prev + (1 - kept) * ops.tanh(output)
    return _kept(hidden, hidden_prev, _over(lengths, step, hidden_prev), drop_states)


def _lengths_and_step(seq_lengths: Array, timestep: Array | None, given: bool) -> tuple[Array | None, int]:
    if given != (timestep is not None):
        expected = "lengths and a timestep" if given else "a timestep and no lengths"
        raise OpError(f"sequence_lengths is {given}, expected {expected} as the last inputs")
    last = seq_lengths if timestep is None else timestep
    return (seq_lengths if given else None), single_integer("timestep", last)


def _gates(gates: Array, hidden: Array, count: int) -> list[Array]:
    if hidden.ndim != 3 or len(hidden) != 1:
        raise ShapeError(f"hidden_prev is {hidden.shape}, expected (1, sequences, width)")
    expected = (*hidden.shape[:2], count * hidden.shape[2])
    if gates.shape != expected:
        raise ShapeError(f"gates is {gates.shape}, expected {expected}")
    if gates.dtype.kind != "f" or hidden.dtype.kind != "f":
        raise OpTypeError(f"hidden_prev is {hidden.dtype} and gates {gates.dtype}, expected floats")
    return np.split(gates, count, axis=2)


def _over(lengths: Array | None, step: int, hidden: Array) -> Array | None:
    """Return a mask that is true for the sequences without such a step."""
    if lengths is None:
        return None
    if lengths.dtype.kind not in "iu" or lengths.shape != hidden.shape[1:2]:
        raise ShapeError(
            f"seq_lengths is {lengths.dtype} {lengths.shape}, expected integers {hidden.shape[1:2]}"
        )
    return (lengths <= step)[:, None]


def _kept(new: Array, old: Array, over: Array | None, drop: bool) -> Array:
    if over is None:
        return new
    return np.where(over, np.zeros_like(old) if drop else old, new)


ADAPTERS |= {
    "LSTMUnit": Adapter(lstm_unit),
    "GRUUnit": Adapter(gru_unit),
}
