"""RNN, GRU and LSTM cells, and the checks of their arguments."""

from typing import NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array, rows

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


def checked_arguments(cell: str, num_sequences: int, given: CellArguments) -> CellArguments:
    """Return the checked arguments; raise ValueError for an unknown cell or a wrong shape, TypeError for other
    dtypes.
    """
    if cell not in NUM_GATES:
        raise ValueError(f"cell is {cell!r}, expected one of {', '.join(NUM_GATES)}")
    x, w_hh = given.x, given.w_hh
    hidden = w_hh.shape[-1] if w_hh.ndim else 0
    gates = NUM_GATES[cell] * hidden
    shapes = {
        "x": (len(x), x.shape[-1]),
        "w_ih": (gates, x.shape[-1]),
        "w_hh": (gates, hidden),
        "bias_ih": (gates,),
        "bias_hh": (gates,),
        "h0": (num_sequences, hidden),
        "c0": (num_sequences, hidden),
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
    x, hidden = arguments.x, arguments.w_hh.shape[1]
    h_last, c_last = (
        np.zeros((num_sequences, hidden), x.dtype) if start is None else start.copy()
        for start in (arguments.h0, arguments.c0)
    )
    return np.empty((len(x), hidden), x.dtype), h_last, c_last if cell == "lstm" else None
