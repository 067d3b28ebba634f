"""Sizes known by inference, as torch's symbolic integers, for fake kernels.

After an op has used a lengths tensor with rows, the tensor remembers its sum and its largest length. Later ops use
the same sizes, so `x - expand(lengths_mean(x, n), n)` compiles without further checks. A size that depends on data
becomes a new size, which torch calls unbacked.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import floordiv, mul
from typing import Any

import torch
from torch import SymInt, Tensor

from seqflow.shape import Dimension, PartialShape
from seqflow.shape.atoms import Atom

Size = int | SymInt
_MEMO = "_seqflow_sizes"


def remembered(tensor: Tensor, what: str) -> Size | None:
    """Return the known sum, or the known largest, of a lengths tensor; None if it is not known."""
    found: Size | None = getattr(tensor, _MEMO, {}).get(_key(tensor, what))
    return found


def remember(tensor: Tensor, what: str, size: Size) -> None:
    """Record the sum, or the largest, of a lengths tensor."""
    if not hasattr(tensor, _MEMO):
        setattr(tensor, _MEMO, {})
    getattr(tensor, _MEMO)[_key(tensor, what)] = size


def _key(tensor: Tensor, what: str) -> tuple[Any, ...]:
    """Return the key of a size, which changes if the tensor is written to, or is traced again."""
    mode = getattr(tensor, "fake_mode", None)
    return what, tensor._version, getattr(mode, "epoch", 0)


class Symbols:
    """Names of the symbolic sizes of the inputs of one call; equal sizes have the same name."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self.sizes: dict[str, Size] = {}

    def shape(self, tensor: Tensor) -> PartialShape:
        return PartialShape([self.dimension(size) for size in tensor.shape])

    def dimension(self, size: Size) -> Dimension:
        if isinstance(size, int):
            return Dimension(size)
        text = str(size.node.expr)
        name = self._names.setdefault(text, f"size{len(self._names)}")
        self.sizes[name] = size
        return Dimension.symbol(name)


class Evaluation:
    """Computes sizes of one call from the sizes of its inputs."""

    def __init__(self, symbols: Symbols, inputs: Mapping[str, Tensor], new_size: Callable[..., Size]) -> None:
        self._symbols = symbols
        self._inputs = inputs
        self._new_size = new_size
        self._unknown: dict[str, Size] = {}
        """Sizes of the outputs, by the text of their atoms."""

    def shape(self, shape: PartialShape) -> list[Size]:
        assert shape.dimensions is not None
        return [self.size(one) for one in shape.dimensions]

    def size(self, dimension: Dimension) -> Size:
        """Return the size; a new size if it depends on data."""
        if dimension.terms is None:
            return self._new(dimension)
        size = dimension.computed(self._atom, _OPERATIONS)
        assert size is not None  # `_atom` returns one for each atom without operands
        return size

    def known(self, dimension: Dimension) -> Size | None:
        """Return the size if the inputs determine it; None if it depends on data."""
        if dimension.terms is None or any(self._missing(atom) is not None for atom, _ in dimension.terms):
            return None
        return self.size(dimension)

    def missing_alone(self, dimension: Dimension) -> tuple[Tensor, str] | None:
        """Return a lengths tensor and "sum" or "max" if the size is exactly this unknown value."""
        if dimension.constant or dimension.terms is None or len(dimension.terms) != 1:
            return None
        (atom, factor) = dimension.terms[0]
        return self._missing(atom) if factor == 1 else None

    def of_output(self, name: str) -> dict[str, Size]:
        """Return the sum and the largest of an output, if sizes of other outputs have used them."""
        return {
            what: size
            for what in ("sum", "max")
            if (size := self._unknown.get(f"{what}({name})")) is not None
        }

    def _missing(self, atom: Atom) -> tuple[Tensor, str] | None:
        """Return a lengths tensor and "sum" or "max" if the atom contains this value and it is not known."""
        if atom.kind in ("sum", "max") and atom.tensor in self._inputs:
            tensor = self._inputs[str(atom.tensor)]
            return (tensor, atom.kind) if remembered(tensor, atom.kind) is None else None
        within = [*atom.factors, *(one for operand in atom.operands for one, _ in operand.terms or ())]
        return next((found for one in within if (found := self._missing(one)) is not None), None)

    def _atom(self, atom: Atom) -> Size | None:
        """Return the size of an atom; None for an atom that is computed from its operands."""
        if atom.kind in _OPERATIONS:
            return None
        if atom.kind == "size":
            return self._symbols.sizes[str(atom)]
        tensor = self._inputs.get(str(atom.tensor))
        if tensor is not None and atom.kind in ("sum", "max"):
            size = remembered(tensor, atom.kind)
            if size is None:
                size = self._new_size()
                remember(tensor, atom.kind, size)
            return size
        if tensor is not None:
            return tensor.shape[atom.axis or 0]
        if str(atom) not in self._unknown:
            self._unknown[str(atom)] = self._new_size()
        return self._unknown[str(atom)]

    def _new(self, dimension: Dimension) -> Size:
        most = dimension.max_length
        return self._new_size(min=dimension.min_length, max=most)


_OPERATIONS: Mapping[str, Callable[..., Size]] = {
    "*": lambda *factors: reduce(mul, factors),
    "/": floordiv,
    "//": floordiv,
    "smaller": torch.sym_min,
    "larger": torch.sym_max,
}
"""Arithmetic on symbolic integers, by the kinds of atoms with operands."""


def check_equal(left: Sequence[Size], right: Sequence[Size], message: str) -> None:
    """Let torch check that sizes are equal; if they are symbolic, it checks them when the program runs."""
    for one, other in zip(left, right, strict=True):
        torch._check(one == other, lambda: message)
