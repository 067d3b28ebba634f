"""Sizes of results before there are data: from the sizes of the inputs, and from sums of lengths."""

from seqflow.errors import OpTypeError
from seqflow.registry import OpDef
from seqflow.registry.inference import Inference
from seqflow.shape import Dimension, PartialShape
from seqflow.shape.guards import Guard


class CallSizes:
    """Known sums and largest lengths of one call, by their atoms."""

    def __init__(self, op: OpDef, inferred: Inference, total: int | None) -> None:
        self._op = op
        self._total = total
        self._known: dict[str, int] = {}
        for guard in inferred.guards:
            if isinstance(guard, Guard):
                for left, right in guard.pairs():
                    self._learn(left, right)
                    self._learn(right, left)

    def shape(self, name: str, shape: PartialShape) -> tuple[int, ...]:
        """Return the shape of a result; raise OpTypeError, with advice, when it depends on data."""
        if shape.dimensions is None:
            raise OpTypeError(f"the rank of {name} is not known before there are data").in_op(self._op.name)
        sizes = [one.evaluate(self._known) for one in shape.dimensions]
        found = [self._total if size is None and self._total is not None else size for size in sizes]
        if None in found:
            raise OpTypeError(
                f"{name} has shape {shape}, which jax wants to know before there are data: give total="
            ).in_op(self._op.name)
        return tuple(size for size in found if size is not None)

    def _learn(self, unknown: Dimension, size: Dimension) -> None:
        """Learn a sum that is the whole of a size."""
        terms = unknown.terms or ()
        if len(terms) == 1 and terms[0][1] == 1 and not unknown.constant and size.is_static:
            self._known.setdefault(str(terms[0][0]), size.get_length())
