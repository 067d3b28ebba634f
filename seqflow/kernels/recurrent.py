"""Recurrent cells over sequences of different lengths."""

# mypy: disable-error-code="no-any-return"

from seqflow.kernels import choice
from seqflow.kernels.arrays import Array


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
    """Run a cell along each sequence: h[N, H], h_last[B, H], and c_last[B, H] of an LSTM.

    x[N, K] and lengths[B] are the sequences, w_ih[G*H, K], w_hh[G*H, H] and two biases [G*H] the weights of G
    gates, h0 and c0 [B, H] the states before the first step (0 where they are None); all of one dtype of floats.

    cell is "lstm" (gates i, f, g, o), "gru" (r, z, n; the reset gate applied to the product with w_hh),
    "gru_reset_first" (applied to the state before it), "rnn_tanh" or "rnn_relu". `reverse` runs each sequence
    from its end. The last state of an empty sequence is the one before the first step.
    """
    return choice.chosen.run_cell(cell, x, lengths, w_ih, w_hh, bias_ih, bias_hh, h0, c0, reverse=reverse)
