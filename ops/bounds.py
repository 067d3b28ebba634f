"""Shape functions that say how long the sequences an op makes can be: the same few for many ops."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqflow.registry import ShapeFunction
    from seqflow.shape import InferenceContext


def never_longer(result: str) -> "ShapeFunction":
    """For an op that only leaves rows out: `result` has its new lengths."""

    def bound(ctx: "InferenceContext") -> None:
        ctx.limit(ctx.max_of(result), ctx.max_of("lengths"))
        ctx.limit(ctx.sum_of(result), ctx.sum_of("lengths"))

    return bound


def never_empty(result: str) -> "ShapeFunction":
    """For an op that leaves rows out, or gives an empty sequence one."""

    def bound(ctx: "InferenceContext") -> None:
        ctx.limit(ctx.max_of(result), ctx.max_of("lengths").maximum(1))
        ctx.limit(ctx.sum_of(result), ctx.sum_of("lengths") + ctx.dim(ctx.input("lengths"), 0))

    return bound


def longer_by(ctx: "InferenceContext", result: str, rows: int) -> None:
    """Each sequence has so many rows more."""
    ctx.limit(ctx.max_of(result), ctx.max_of("lengths") + rows)
    ctx.limit(ctx.sum_of(result), ctx.sum_of("lengths") + rows * ctx.dim(ctx.input("lengths"), 0))


def one_longer(result: str) -> "ShapeFunction":
    """For an op that adds a row to each sequence."""
    return lambda ctx: longer_by(ctx, result, 1)
