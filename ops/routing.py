"""Tokens to experts and back: a mixture of experts without padding."""

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.ops.shared.indices import indices_below
from seqflow.ops.shared.weights import weighted_dtype
from seqflow.registry import op
from seqflow.signature import NonNegative, Positive


@op(
    "int experts[N, T] -> index(N) tokens[sum(lengths)], int64 lengths[num_experts], int64 choices[sum(lengths)],"
    " sum(lengths) <= N*T + num_experts*(multiple_of - 1)",
)
def route_topk(
    experts: Array, *, num_experts: Positive, capacity: NonNegative | None = None, multiple_of: Positive = 1
) -> tuple[Array, Array, Array]:
    """Return the tokens of each expert, one expert after another, and which choice each is: `token * top_k + k`.

    Tokens of an expert keep their order; those beyond `capacity` are left out. `multiple_of` fills the rows of each
    expert that has some up to a multiple, by token 0 with the choice -1, which `unroute` ignores. `gather(x, tokens)`
    gives the rows of the experts, `segment_matmul` their layers, and `unroute` the sums for each token. An expert
    without tokens has the length 0, an empty sequence. An expert from `num_experts` on is an error.

    >>> route_topk(np.array([[2, 0], [1, 2]]), num_experts=3)
    RouteTopkResult(tokens=array([0, 1, 0, 1]), lengths=array([1, 1, 2]), choices=array([1, 2, 0, 3]))
    """
    top_k = max(experts.shape[1], 1)
    choices, lengths = kernels.group_rows(int64_integers(experts, "experts").reshape(-1), num_experts)
    if capacity is not None:
        choices = choices[kernels.lengths_to_positions(lengths) < capacity]
        lengths = np.minimum(lengths, min(capacity, kernels.max_length(lengths)))
    if multiple_of > 1:
        step = min(multiple_of, np.iinfo(np.int64).max // 2)
        padded = -(-lengths // step) * step
        rows = np.full(kernels.check_lengths(padded), -1, np.int64)
        rows[kernels.lengths_to_positions(padded) < kernels.expand(lengths, padded)] = choices
        choices, lengths = rows, padded
    return np.maximum(choices, 0) // top_k, lengths, choices


_TOKENS = """
        places = broadcast_like(expand_dims(row_numbers(weights), axis=1), weights)
        tokens = gather(flatten_rows(places), maximum(choices, 0))
"""


@op(
    "number y[K, *d], int choices[K], number weights[N, T] -> sum_of(y, weights) out[N, *d]",
    moves="",
    grad={
        "y": f"""{_TOKENS}
        by = gather(flatten_rows(weights), choices, ignore_index=-1)
        cast_like(scale_rows(gather(d.out, tokens), by), y)
        """,
        "weights": f"""{_TOKENS}
        dots = cast_like(row_dot(gather(d.out, tokens), y), weights)
        reshape_like(scatter_rows(dots, choices, flatten_rows(weights), ignore_index=-1), weights)
        """,
    },
)
def unroute(y: Array, choices: Array, weights: Array) -> Array:
    """Sum the rows of the experts back to their tokens, each times the weight of its choice.

    `choices` are those of `route_topk`: row i goes to token `choices[i] // top_k`; a choice of -1 is ignored. A token
    that was left out everywhere gives 0.

    >>> unroute(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 1, 3]), np.array([[0.5, 1.0], [2.0, 3.0]]))
    array([ 4., 14.])
    """
    kept = np.flatnonzero(choices != -1)
    chosen = indices_below("choices", choices[kept], weights.size)
    order, lengths = kernels.group_rows(chosen // max(weights.shape[1], 1), len(weights))
    dtype = weighted_dtype(y, weights)
    if dtype.kind != "f":
        with np.errstate(all="ignore"):
            rows = y[kept][order].astype(dtype) * _column(weights.reshape(-1)[chosen[order]].astype(dtype), y)
        return kernels.segment_reduce("sum", rows, lengths)
    by = weights.reshape(-1)[chosen[order]].astype(dtype, copy=False)
    return kernels.gather_segment_weigh(y.astype(dtype, copy=False), by, kept[order], lengths, False)


def _column(factors: Array, rows: Array) -> Array:
    return factors.reshape(-1, *[1] * (rows.ndim - 1))
