"""Shape functions of the ops on maps: bounds of how many pairs and how many values there are."""

from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqflow.shape import Dimension, InferenceContext


def bound_by_features(ctx: "InferenceContext") -> None:
    """Each example has at most one pair for each feature."""
    features = ctx.dim(ctx.input("data"), 1)
    _bound_presence(ctx, "lengths", features, ctx.dim(ctx.input("data"), 0))


def bound_by_tensors(ctx: "InferenceContext") -> None:
    """The same for features that are a tensor each."""
    presence = ctx.inputs("presence")
    pairs = "counts" if "counts" in ctx.tensors else "lengths"
    _bound_presence(ctx, pairs, len(presence), ctx.dim(presence[0], 0))
    if pairs == "counts":
        _bound_longest(ctx)


def bound_joined(ctx: "InferenceContext") -> None:
    """Each row has the pairs of all inputs."""
    pairs = "counts" if "counts'" in ctx.tensors else "lengths"
    ctx.limit(ctx.max_of(f"{pairs}'"), sum(ctx.max_of(name) for name in _each(ctx, pairs)))
    ctx.limit(ctx.sum_of(f"{pairs}'"), sum(ctx.sum_of(name) for name in _each(ctx, pairs)))
    if pairs == "counts":
        _bound_longest(ctx)


def bound_picked(ctx: "InferenceContext") -> None:
    """Pairs are left out or moved, whole."""
    for name in ("lengths", "counts"):
        if f"{name}'" in ctx.tensors:
            ctx.limit(ctx.max_of(f"{name}'"), ctx.max_of(name))
            ctx.limit(ctx.sum_of(f"{name}'"), ctx.sum_of(name))


def bound_divided(ctx: "InferenceContext") -> None:
    """Each output has some of the pairs; the lists of a row may be joined."""
    for name in ctx.tensors:
        if name.startswith("lengths'."):
            ctx.limit(ctx.max_of(name), ctx.sum_of("lengths"))
            ctx.limit(ctx.sum_of(name), ctx.sum_of("lengths"))


def _bound_presence(
    ctx: "InferenceContext", pairs: str, features: "Dimension | int", rows: "Dimension"
) -> None:
    ctx.limit(ctx.max_of(pairs), features)
    ctx.limit(ctx.sum_of(pairs), rows * features)


def _bound_longest(ctx: "InferenceContext") -> None:
    """Lists stay whole."""
    lengths = _each(ctx, "lengths")
    ctx.limit(ctx.max_of("lengths'"), reduce(lambda a, b: a.maximum(b), map(ctx.max_of, lengths)))
    ctx.limit(ctx.sum_of("lengths'"), sum(map(ctx.sum_of, lengths)))


def _each(ctx: "InferenceContext", name: str) -> list[str]:
    return [f"{name}[{i}]" for i in range(len(ctx.inputs(name)))]
