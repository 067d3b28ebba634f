"""Axes and numbers of parts given as attributes, with the same checks in inference and in calls."""

from collections.abc import Sequence

from seqflow.errors import OpError, ShapeError


def positive_axis(name: str, axis: int, rank: int, of: str = "x") -> int:
    """Return the axis counted from the front; raise ShapeError if it is outside the rank."""
    if not -rank <= axis < rank:
        raise ShapeError(f"{name} is {axis}, but {of} has {rank} dimension{'' if rank == 1 else 's'}")
    return axis % rank


def positive_axes(name: str, axes: Sequence[int], rank: int, of: str = "x") -> tuple[int, ...]:
    """Return the axes counted from the front; raise OpError if one is given twice."""
    found: list[int] = []
    for i, axis in enumerate(axes):
        place = f"{name}[{i}]" if len(axes) > 1 else name
        positive = positive_axis(place, axis, rank, of)
        if positive in found:
            first = found.index(positive)
            raise OpError(f"{place} is {axis}, the same axis as {name}[{first}] = {axes[first]}")
        found.append(positive)
    return tuple(found)


def check_parts(parts: int, found: int) -> None:
    """Raise OpError unless `parts`, the number of results of an op, is the number of tensors in its list."""
    if parts != found:
        raise OpError(f"parts is {parts}, expected {found}: the number of tensors")


def check_distinct(name: str, axes: Sequence[int]) -> None:
    """Raise OpError for an axis that is given twice: the check that is possible while the rank is not known."""
    for i, axis in enumerate(axes):
        if axis in axes[:i]:
            raise OpError(f"{name}[{i}] is {axis}, the same axis as {name}[{axes.index(axis)}] = {axis}")
