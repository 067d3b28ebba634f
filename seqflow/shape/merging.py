"""Merging shapes and sizes that must be equal: proved, refuted, or checked by a guard; broadcasting sizes."""

from collections.abc import Callable

from seqflow.errors import ShapeError
from seqflow.shape.arithmetic import Comparison
from seqflow.shape.dimension import Dimension
from seqflow.shape.equalities import Equalities
from seqflow.shape.guards import Guard, Guards
from seqflow.shape.inputs import InputShapes
from seqflow.shape.partial_shape import PartialShape


def merge_shapes(
    left: PartialShape, right: PartialShape, inputs: InputShapes, equalities: Equalities, guards: Guards
) -> PartialShape:
    """Return the merged shape; raise ShapeError when the two cannot be the same."""
    if left is right:
        return left
    if left.dimensions is None or right.dimensions is None:
        guards.append(
            Guard(left, right, f"{inputs.op_name}: {inputs.name_of(left)} and {inputs.name_of(right)}")
        )
        return right if left.dimensions is None else left
    if len(left) != len(right):
        raise inputs.error(
            f"{inputs.name_of(left)} has rank {len(left)} but {inputs.name_of(right)} has rank {len(right)}, "
            "expected the same shape"
        )
    dimensions = [
        merge_dimensions(a, b, inputs, equalities, guards)
        for a, b in zip(left.dimensions, right.dimensions, strict=True)
    ]
    return first_equal(PartialShape(dimensions), left, right)


def merge_dimensions(
    left: Dimension, right: Dimension, inputs: InputShapes, equalities: Equalities, guards: Guards
) -> Dimension:
    """Return the merged size; raise ShapeError when the two cannot be the same."""
    if left.is_static and left == right:
        return left
    answer = equalities.compare(left, right)
    if answer is Comparison.EQUAL:
        # equal sizes may have different bounds: the merged size has both
        merged = equalities.resolve(left).merge(equalities.resolve(right))
        return left if merged == equalities.resolve(left) else merged
    places = inputs.place_of(left), inputs.place_of(right)
    if answer is Comparison.UNEQUAL:
        found = " but ".join(_is(place, size) for place, size in zip(places, (left, right), strict=True))
        raise inputs.error(f"{found}, expected equal sizes", *equalities.explain(left, right))
    origin = f"{inputs.op_name}: {places[0] or left} and {places[1] or right}"
    try:
        merged = equalities.equate(left, right, origin)
    except ShapeError as error:
        raise inputs.error(f"{left} cannot be {right}: {error}") from None
    guards.append(Guard(left, right, origin))
    return merged


def first_equal(result: PartialShape, *shapes: PartialShape) -> PartialShape:
    """Return the first of `shapes` that equals the result, else the result: equal shapes are not copied."""
    return next((shape for shape in shapes if shape == result), result)


def _is(place: str | None, size: Dimension) -> str:
    return f"{place} is {size}" if place else str(size)


Merge = Callable[[Dimension, Dimension], Dimension]
"""Function that returns all that is known of two sizes that must be the same."""


def repeat_size(equalities: Equalities, merge: Merge, left: Dimension, right: Dimension) -> Dimension:
    """Return the size of an axis without rows; if one of the two may be 1, it covers both outcomes."""
    a, b = equalities.resolve(left), equalities.resolve(right)
    if a == 1 or b == 1:
        return right if a == 1 else left
    if a.compare(b) is Comparison.EQUAL:
        return left
    return a.broadcast_merge(b) if a.may_be(1) or b.may_be(1) else merge(left, right)
