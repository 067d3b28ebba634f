"""Broadcasting: the shape of an elementwise operation, as in NumPy, but rows of sequences are never repeated."""

from collections.abc import Callable, Collection, Sequence

from seqflow.shape.arithmetic import Comparison
from seqflow.shape.dimension import Dimension
from seqflow.shape.equalities import Equalities
from seqflow.shape.partial_shape import PartialShape

Merge = Callable[[Dimension, Dimension], Dimension]


def broadcast_shapes(
    shapes: Sequence[PartialShape], held: Collection[int], equalities: Equalities, merge: Merge
) -> PartialShape:
    """The shape that shapes of known rank broadcast to; the axes in `held` hold rows, or steps.

    `merge` says what is known of two sizes that have to be the same.
    """
    rank = max(map(len, shapes), default=0)
    result: list[Dimension] = []
    for axis in range(-rank, 0):
        size = Dimension(1)
        for shape in shapes:
            if len(shape) >= -axis:
                if axis + rank in held:
                    size = _merge_size(size, shape[axis], merge)
                else:
                    size = _broadcast_size(size, shape[axis], equalities, merge)
        result.append(size)
    return PartialShape(result)


def _merge_size(left: Dimension, right: Dimension, merge: Merge) -> Dimension:
    """Both sizes, where only a static 1 is repeated."""
    return right if left == 1 else left if right == 1 else merge(left, right)


def _broadcast_size(left: Dimension, right: Dimension, equalities: Equalities, merge: Merge) -> Dimension:
    a, b = equalities.resolve(left), equalities.resolve(right)
    if a == 1 or b == 1:
        return right if a == 1 else left
    if a.compare(b) is Comparison.EQUAL:
        return left
    return a.broadcast_merge(b) if a.may_be(1) or b.may_be(1) else merge(left, right)
