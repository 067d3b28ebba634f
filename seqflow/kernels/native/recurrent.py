"""Recurrent cells, in C++."""

from seqflow.kernels import _native, reference
from seqflow.kernels.arrays import Array, counts
from seqflow.kernels.cells import NUM_GATES, cell_arguments, empty_states

_NUMBERS = {cell: number for number, cell in enumerate(NUM_GATES)}


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
    *,
    reverse: bool = False,
) -> tuple[Array, Array, Array | None]:
    lengths = counts(lengths, "lengths")
    arguments = cell_arguments(cell, len(lengths), x, w_ih, w_hh, bias_ih, bias_hh, h0, c0)
    if arguments.x.dtype not in ("float32", "float64"):
        return reference.run_cell(cell, arguments.x, lengths, *arguments[1:], reverse=reverse)
    results = empty_states(arguments, cell, len(lengths))
    _native.run_cell(_NUMBERS[cell], arguments.x, lengths, *arguments[1:], reverse, *results)
    return results
