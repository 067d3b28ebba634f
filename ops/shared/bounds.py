"""Shape functions that bound the sizes, sums and largest values of what an op gives."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqflow.shape import Dimension, InferenceContext


def never_longer(ctx: "InferenceContext") -> None:
    """For an op that only leaves rows out."""
    ctx.limit(ctx.max_of("lengths'"), ctx.max_of("lengths"))
    ctx.limit(ctx.sum_of("lengths'"), ctx.sum_of("lengths"))


def never_empty(ctx: "InferenceContext") -> None:
    """For an op that leaves rows out, or gives an empty sequence one."""
    ctx.limit(ctx.max_of("lengths'"), ctx.max_of("lengths").maximum(1))
    ctx.limit(ctx.sum_of("lengths'"), ctx.sum_of("lengths") + ctx.dim(ctx.input("lengths"), 0))


def longer_by(ctx: "InferenceContext", rows: int) -> None:
    """Each sequence has this many more rows."""
    ctx.limit(ctx.max_of("lengths'"), ctx.max_of("lengths") + rows)
    ctx.limit(ctx.sum_of("lengths'"), ctx.sum_of("lengths") + rows * ctx.dim(ctx.input("lengths"), 0))


def one_longer(ctx: "InferenceContext") -> None:
    """For an op that adds a row to each sequence."""
    longer_by(ctx, 1)


def largest_id(ctx: "InferenceContext") -> None:
    """For an op whose first output has a row for each id up to the largest of `ids`."""
    ctx.limit(ctx.dim(ctx.output(0), 0), ctx.max_of("ids") + 1)


def indices_below(ctx: "InferenceContext", name: str, count: "Dimension") -> None:
    """For an output of indices below `count`."""
    most = ctx.equalities.resolve(count).max_length
    if most is not None:
        ctx.limit(ctx.max_of(name), max(most - 1, 0))
