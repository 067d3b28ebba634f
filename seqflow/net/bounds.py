"""Upper bounds of sizes and bytes, propagated through a net."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from seqflow.net.step import Step
from seqflow.shape import Dimension, DimensionLike, Equalities
from seqflow.signature.language import AtLeast
from seqflow.tensor import TensorSpec


def note_bounds(
    specs: Mapping[str, TensorSpec], limits: Mapping[DimensionLike, int], equalities: Equalities
) -> None:
    """Record the bounds in the inputs' shapes, and the limits of other sizes, for all ops of a net."""
    for spec in specs.values():
        for size in spec.shape.dimensions or ():
            equalities.limit(size, size, "the input")
    for other, most in limits.items():
        equalities.limit(Dimension.of(other), most, "what is known of the inputs")
    for name, spec in specs.items():
        tighten(name, spec, equalities)


def tighten(name: str, spec: TensorSpec, equalities: Equalities) -> None:
    """Bound the sum of a lengths tensor by its size times the longest, and the longest by the sum."""
    if spec.dtype.kind not in "iu" or spec.shape.dimensions is None or len(spec.shape.dimensions) != 1:
        return
    total, longest = Dimension.sum_of(name), Dimension.max_of(name)
    equalities.limit(total, spec.shape[0] * equalities.resolve(longest), "their number times the longest")
    equalities.limit(longest, total, "the sum of all")


def may_bound_inputs(step: Step, guards: Sequence[object]) -> bool:
    """Return whether a step can give its inputs bounds that were not known before."""
    arguments = step.op.signature.input_arguments
    return (
        bool(guards)
        or not step.results
        or any(isinstance(dim, AtLeast) for argument in arguments for dim in argument.dims)
    )


@dataclass(frozen=True)
class NetBounds:
    """Upper bounds for the tensors of a net, computed lazily: `seqflow check` needs them, a run does not."""

    specs: Mapping[str, TensorSpec]
    dropped: Mapping[str, TensorSpec]
    equalities: Equalities

    @cached_property
    def longest(self) -> dict[str, int]:
        """Upper bounds of the elements of vectors of integers, if known."""
        found = {}
        for name, spec in self.specs.items():
            if spec.dtype.kind in "iu" and spec.shape.rank == 1:
                most = self.equalities.resolve(Dimension.max_of(name)).max_length
                if most is not None:
                    found[name] = most
        return found

    @cached_property
    def of_bytes(self) -> dict[str, int | None]:
        """Upper bound of the bytes of each tensor; None without a bound."""
        return {name: self._most_bytes(spec) for name, spec in self.specs.items()}

    @cached_property
    def total_bytes(self) -> int | None:
        """Upper bound of the bytes of all tensors together, including dropped ones; None without a bound."""
        total = 0
        for bound in (*self.of_bytes.values(), *map(self._most_bytes, self.dropped.values())):
            if bound is None:
                return None
            total += bound
        return total

    def _most_bytes(self, spec: TensorSpec) -> int | None:
        most = self.equalities.resolve(spec.shape.num_elements).max_length
        width = spec.dtype.itemsize or None  # None: texts of unknown width
        return None if most is None or width is None else most * width
