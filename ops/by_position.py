"""Sequences of one group reduced position by position."""

from typing import Literal

from seqflow import kernels, registry
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import op
from seqflow.shape import InferenceContext

_REDUCERS = {"sqrt_n": "lengths_sqrt_sum"}


def _positions_back(how: str) -> str:
    lines = """
        starts = lengths_first(row_numbers(out.values), out.lengths)
        at = lengths_to_positions(lengths) + expand(expand(starts, groups), lengths)
    """
    if how == "sum":
        return f"{lines}\n        reshape_like(gather(d.values, at), data)"
    if how in ("mean", "sqrt_n"):
        counts = "maximum(float64(segment_counts(at, out.values)), 1)"
        shares = f"1.0 / {counts}" if how == "mean" else f"rsqrt({counts})"
        return f"{lines}\n        reshape_like(gather(scale_rows(d.values, {shares}), at), data)"
    lines = f"""{lines}
        order, n, back = group_order(at)
        sorted = gather(data, order)
        arriving = reshape_like(d.values, lengths_first(sorted, n))
    """
    if how == "prod":
        return f"""{lines}
        products = expand(arriving, n) * products_of_others(sorted, n)
        reshape_like(gather(products, back), data)
        """
    if how == "var":
        return f"""{lines}
        centred = sorted - expand(lengths_mean(sorted, n), n)
        reshape_like(gather(expand(scale_rows(arriving, 2.0 / float64(n)), n) * centred, back), data)
        """
    return f"""{lines}
        first = lengths_arg{how}(sorted, n)
        reshape_like(gather(put_at_positions(arriving, first, sorted, n), back), data)
    """


def _infer_dtype(ctx: InferenceContext) -> None:
    how, dtype = ctx.attr("how"), ctx.dtype("data")
    if dtype is not None and how not in ("max", "min"):
        kept = ctx.outputs[0]
        dtype = kernels.sum_dtype(dtype) if how in ("sum", "prod") else kernels.mean_dtype(dtype)
        ctx.set_output(0, kept.shape, dtype=dtype, axes=kept.axes)


@op(
    "number data[sum(lengths), *d], lens lengths[sum(groups)], groups[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[B] := lengths_max(lengths, groups)",
    shape=_infer_dtype,
    grad={"data": _positions_back},
)
def lengths_reduce_positions(
    data: Array,
    lengths: Array,
    groups: Array,
    *,
    how: Literal["sum", "mean", "max", "min", "prod", "var", "sqrt_n"] = "sum",
) -> tuple[Array, Array]:
    """Reduce the sequences of each group position by position, to one sequence as long as the longest of them.

    A position counts those sequences that reach it: each kind is the op `lengths_sum`, `lengths_mean`, and so on, of
    their rows ("sqrt_n" is `lengths_sqrt_sum`), with its dtypes. A group without sequences, or with empty ones only,
    gives an empty sequence. For sequences grouped by ids, first put them into the order of `group_order(ids)` with
    `gather_sequences`.

    >>> lengths_reduce_positions(np.array([1, 2, 3, 4, 5, 6]), np.array([2, 3, 1]), np.array([2, 1]))
    LengthsReducePositionsResult(values=array([4, 6, 5, 6]), lengths=array([3, 1]))
    """
    sizes, counts = int64(lengths), int64(groups)
    longest = kernels.segment_reduce("max", sizes, counts)
    first = kernels.expand(starts_of(longest), counts)
    places = kernels.lengths_to_positions(sizes) + kernels.expand(first, sizes)
    order, reached = kernels.group_rows(places, int(longest.sum()))
    found: Array = registry.get(_REDUCERS.get(how, f"lengths_{how}")).function(
        kernels.gather(data, order), reached
    )
    return found, longest
