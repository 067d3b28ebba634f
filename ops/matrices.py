"""A matrix for each sequence, or for each row by index: grouped matrix products without padding."""

from collections.abc import Iterator

import numpy as np

from seqflow import kernels
from seqflow.errors import ShapeError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import op
from seqflow.shape import InferenceContext


def _infer_product(ctx: InferenceContext) -> None:
    """Infer which axes of the matrices the rows meet, and which they get."""
    x, weight = ctx.input("x"), ctx.input("weight")
    if weight.dimensions is None or x.dimensions is None:
        return
    inner, outer = (2, 1) if ctx.attr("transpose") else (1, 2)
    ctx.merge(ctx.dim(x, 1), ctx.dim(weight, inner))
    ctx.set_output(0, [ctx.dim(x, 0), ctx.dim(weight, outer)], axes=[ctx.axes("x")[0], None])


@op(
    "float x[sum(lengths), K], like(x) weight[B, P, Q], lengths[B] -> y[sum(lengths), _]",
    shape=_infer_product,
    moves="",
    grad={
        "x": "segment_matmul(d.y, weight, lengths, transpose=logical_not(transpose))",
        "weight": lambda transpose: (
            "lengths_outer_sum(d.y, x, lengths)" if transpose else "lengths_outer_sum(x, d.y, lengths)"
        ),
    },
)
def segment_matmul(x: Array, weight: Array, lengths: Array, *, transpose: bool = False) -> Array:
    """Multiply the rows of sequence b by matrix b, without padding: `x[K]` by `weight[b]`, which is [K, M].

    With `transpose` the matrices are [M, K]. An empty sequence has no rows. The sums do not depend on what else is in
    the batch.

    Rows beyond the groups give 0 as padding of the others:
    `pad(segment_matmul(x[:total], weight, n), [total], max_length=len(x)).padded[0]`, with `total = n.sum()`.

    >>> weight = np.array([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 1.0], [0.0, 3.0]]])
    >>> segment_matmul(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), weight, np.array([1, 2]))
    array([[ 1.,  2.],
           [ 6., 15.],
           [10., 23.]])
    """
    _check_inner(x, weight.swapaxes(1, 2) if transpose else weight)
    return kernels.multiply_segments(x, weight, lengths, transpose)


def _check_inner(x: Array, matrices: Array) -> None:
    if x.shape[1] != matrices.shape[1]:
        raise ShapeError(
            f"x.shape[1] is {x.shape[1]} but the matrices have {matrices.shape[1]} rows, expected equal sizes"
        )


def _alike(lengths: Array) -> Iterator[tuple[Array | int, Array | slice]]:
    """Yield sequences and their rows: many short ones of one length together, any other alone."""
    starts = starts_of(lengths)
    distinct, codes, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    order = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1]) if len(distinct) else []
    for length, which in zip(distinct.tolist(), order, strict=True):
        # from 64 rows on, a call of its own costs less than to copy the rows
        if 0 < length < 64 and len(which) > 1:
            yield which, starts[which][:, None] + np.arange(length)
        elif length:
            yield from ((int(i), slice(int(starts[i]), int(starts[i]) + length)) for i in which)


@op(
    "float a[sum(lengths), K], like(a) b[sum(lengths), M], lengths[B] -> product[B, K, M]",
    moves="",
    grad={
        "a": "segment_matmul(b, d.product, lengths, transpose=True)",
        "b": "segment_matmul(a, d.product, lengths)",
    },
)
def lengths_outer_sum(a: Array, b: Array, lengths: Array) -> Array:
    """Sum the outer products of the rows of each sequence: `a.T @ b` of each; an empty sequence gives zeros.

    >>> lengths_outer_sum(np.array([[1.0], [2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]), np.array([2]))
    array([[[13., 16.]]])
    """
    sizes = int64(lengths)
    product = np.zeros((len(sizes), a.shape[1], b.shape[1]), a.dtype)
    with np.errstate(all="ignore"):
        for which, rows in _alike(sizes):
            product[which] = np.matmul(a[rows].swapaxes(-1, -2), b[rows])
    return product


@op(
    "float x[N, K], like(x) weight[R, P, Q], index(R) ids[N] -> y[N, _]",
    shape=_infer_product,
    moves="",
    grad={
        "x": "gather_matmul(d.y, weight, ids, transpose=logical_not(transpose))",
        "weight": lambda transpose: (
            "outer_sums_by_id(d.y, x, ids, weight)" if transpose else "outer_sums_by_id(x, d.y, ids, weight)"
        ),
    },
)
def gather_matmul(x: Array, weight: Array, ids: Array, *, transpose: bool = False) -> Array:
    """Multiply each row by the matrix of its id: `x[i] @ weight[ids[i]]`, without a copy of the matrix for each row.

    With `transpose` the matrices are [R, M, K]. For sorted rows see `segment_matmul`.

    >>> weight = np.array([[[1.0], [0.0]], [[0.0], [2.0]]])
    >>> gather_matmul(np.array([[1.0, 2.0], [3.0, 4.0]]), weight, np.array([1, 0]))
    array([[4.],
           [3.]])
    """
    order, lengths = kernels.group_rows(int64_integers(ids, "ids"), len(weight))
    sorted_y = segment_matmul(kernels.gather(x, order), weight, lengths, transpose=transpose)
    y = np.empty_like(sorted_y)
    y[order] = sorted_y
    return y


@op(
    "float a[N, K], like(a) b[N, M], index(R) ids[N], float like[R, *d] -> product[R, K, M]",
    moves="",
    grad={
        "a": "gather_matmul(b, d.product, ids, transpose=True)",
        "b": "gather_matmul(a, d.product, ids)",
        "like": None,
    },
)
def outer_sums_by_id(a: Array, b: Array, ids: Array, like: Array) -> Array:
    """Sum the outer products of the rows of each id, one for each row of `like`: the gradient of `gather_matmul`.

    >>> outer_sums_by_id(np.array([[2.0]]), np.array([[3.0]]), np.array([1]), np.zeros(2))
    array([[[0.]],
    <BLANKLINE>
           [[6.]]])
    """
    order, lengths = kernels.group_rows(int64_integers(ids, "ids"), len(like))
    return lengths_outer_sum(kernels.gather(a, order), kernels.gather(b, order), lengths)
