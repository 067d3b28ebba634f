"""Broadcasting: one size for two axes of an elementwise operation, as in NumPy; rows are never repeated."""

from collections.abc import Callable

from seqflow.shape.arithmetic import Comparison
from seqflow.shape.dimension import Dimension
from seqflow.shape.equalities import Equalities

Merge = Callable[[Dimension, Dimension], Dimension]
"""Says what is known of two sizes that have to be the same."""


def repeat_size(equalities: Equalities, merge: Merge, left: Dimension, right: Dimension) -> Dimension:
    """The size of an axis without rows; where one of the two may be 1, it covers what comes out either way."""
    a, b = equalities.resolve(left), equalities.resolve(right)
    if a == 1 or b == 1:
        return right if a == 1 else left
    if a.compare(b) is Comparison.EQUAL:
        return left
    return a.broadcast_merge(b) if a.may_be(1) or b.may_be(1) else merge(left, right)
