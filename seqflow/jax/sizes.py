"""Sizes of results before there are data: from those of the inputs, and from what lengths add up to."""

from collections.abc import Callable

from seqflow.errors import OpTypeError
from seqflow.registry import OpDef
from seqflow.registry.inference import Inference
from seqflow.shape import Dimension, PartialShape
from seqflow.shape.atoms import Atom
from seqflow.shape.guards import Guard


class Sizes:
    """What is known of one call: sums and largest of lengths, by their atoms."""

    def __init__(self, op: OpDef, inferred: Inference, total: int | None) -> None:
        self._op = op
        self._total = total
        self._known: dict[str, int] = {}
        for guard in inferred.guards:
            if isinstance(guard, Guard):
                for left, right in zip(_dimensions(guard.left), _dimensions(guard.right), strict=True):
                    self._learn(left, right)
                    self._learn(right, left)

    def shape(self, name: str, shape: PartialShape) -> tuple[int, ...]:
        """The shape of a result; OpTypeError, which says what to give, where data decide it."""
        if shape.dimensions is None:
            raise OpTypeError(f"the rank of {name} is not known before there are data").in_op(self._op.name)
        sizes = [self._size(one) for one in shape.dimensions]
        found = [self._total if size is None and self._total is not None else size for size in sizes]
        if None in found:
            raise OpTypeError(
                f"{name} has shape {shape}, which jax wants to know before there are data: give total="
            ).in_op(self._op.name)
        return tuple(size for size in found if size is not None)

    def _learn(self, unknown: Dimension, size: Dimension) -> None:
        """A sum that is all of a size is that size."""
        terms = unknown.terms or ()
        if len(terms) == 1 and terms[0][1] == 1 and not unknown.constant and size.is_static:
            self._known.setdefault(str(terms[0][0]), size.get_length())

    def _size(self, dimension: Dimension) -> int | None:
        if dimension.terms is None:
            return None
        total = dimension.constant
        for atom, factor in dimension.terms:
            value = self._atom(atom)
            if value is None:
                return None
            total += factor * value
        return total

    def _atom(self, atom: Atom) -> int | None:
        if str(atom) in self._known:
            return self._known[str(atom)]
        operands = [self._size(one) for one in atom.operands] + [self._atom(one) for one in atom.factors]
        given = [one for one in operands if one is not None]
        if not operands or len(given) < len(operands):
            return None
        return _OPERATIONS[atom.kind](given)


def _product(values: list[int]) -> int:
    found = 1
    for value in values:
        found *= value
    return found


_OPERATIONS: dict[str, Callable[[list[int]], int]] = {
    "*": _product,
    "/": lambda values: values[0] // values[1],
    "//": lambda values: values[0] // values[1],
    "smaller": min,
    "larger": max,
}


def _dimensions(side: Dimension | PartialShape) -> list[Dimension]:
    return [side] if isinstance(side, Dimension) else list(side.dimensions or ())
