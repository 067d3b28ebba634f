"""Row provenance in a net: which lengths describe the rows of each tensor, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seqflow.errors import NetError, nearest
from seqflow.shape.terms import Term, Terms, parts, row_difference, say_same_rows
from seqflow.tensor import TensorSpec

if TYPE_CHECKING:
    from seqflow.net.net import Net


@dataclass(frozen=True, slots=True)
class UnrelatedRows:
    """Two tensors whose rows are not known to be the same or related by lengths."""

    one: str
    rows: str
    other: str
    other_rows: str
    advice: str


def _unrelated(one: str, rows: Term | None, other: str, other_rows: Term | None) -> UnrelatedRows:
    said = [f"{term}" if term is not None else "a plain size, no rows" for term in (rows, other_rows)]
    difference = None if rows is None or other_rows is None else row_difference(rows, other_rows)
    if difference is None or difference.equal == "rows":
        return UnrelatedRows(one, said[0], other, said[1], say_same_rows(one, other))
    return UnrelatedRows(one, said[0], other, said[1], difference.advice)


@dataclass(frozen=True, slots=True)
class NetRows:
    """Row provenance of all tensors of a net, as inferred."""

    net: Net
    terms: Terms
    specs: Mapping[str, TensorSpec]

    def parents(self, names: Sequence[str]) -> dict[str, str | None]:
        """Map each tensor to the lengths, among these tensors, that describe its rows, or to None.

        Of several, those of its own name do: `ts.lengths` for `ts.values`.
        """
        described = self._by_lengths(names, self.terms.described)
        found: dict[str, str | None] = {}
        for name in names:
            rows = self.specs[name].rows
            by = described.get(self.terms.find(rows), ()) if isinstance(rows, Term) else ()
            own = f"{name.removesuffix('.lengths').removesuffix('.values')}.lengths"
            chosen = own if own in by else next(iter(by), None)
            found[name] = None if chosen == name else chosen
        return found

    def insides(self, names: Sequence[str]) -> dict[str, str]:
        """Map tensors that hold positions inside sequences to the lengths of these sequences, among these tensors."""
        positions = self._by_lengths(names, self.terms.positions)
        found = {name: self.terms.find(one) for name in names if (one := self.specs[name].points) is not None}
        return {name: positions[one][0] for name, one in found.items() if one in positions}

    def _by_lengths(self, names: Sequence[str], of_lengths: Callable[[Term], Term]) -> dict[Term, list[str]]:
        """Map the terms made of lengths to those of these tensors that have the lengths."""
        found: dict[Term, list[str]] = defaultdict(list)
        for name in names:
            spec = self.specs[name]
            if spec.dtype.kind in "iu" and spec.shape.rank == 1:
                found[self.terms.find(of_lengths(self.terms.value(name)))].append(name)
        return found

    def unrelated(self, names: Sequence[str]) -> UnrelatedRows | None:
        """Return two of these tensors with rows that are neither the same nor described by others, or None."""
        first: tuple[str, Term | None] | None = None
        for name, parent in self.parents(names).items():
            spec = self.specs[name]
            if parent is not None or not spec.shape.dimensions:
                continue
            rows = self.terms.find(spec.rows) if isinstance(spec.rows, Term) and spec.rows.is_rows else None
            if first is None:
                first = name, rows
            elif rows is not first[1]:
                return _unrelated(*first, name, rows)
        return None

    def path(self, name: str, own: Hashable) -> list[tuple[str, str]] | None:
        """Return the steps that make a tensor's rows from the `own` rows: "described" or "select", and its tensor.

        None if they are made in another way.
        """
        rows = self.specs[name].rows
        return self._path(rows, own, set()) if isinstance(rows, Term) else None

    def _path(self, rows: Term, own: Hashable, seen: set[Term]) -> list[tuple[str, str]] | None:
        for one in self.terms.members(rows):
            if one.kind == "rows" and one.data == own:
                return []
            if one.kind not in ("described", "select") or one in seen:
                continue
            seen.add(one)  # equal terms may be made of each other
            names = (by.tensor for by in self.terms.members(one.args[-1]))
            name = next((by for by in names if by is not None and by in self.specs), None)
            if name is None:
                continue
            before = one.args[0] if one.kind == "select" else self.specs[name].rows
            path = self._path(before, own, seen) if isinstance(before, Term) else None
            if path is not None:
                return [*path, (one.kind, name)]
        return None

    def explain(self, name: str) -> str:
        """Explain which rows the axes of a tensor hold, and how their lengths and masks were made."""
        if name not in self.specs:
            raise NetError(f"net: there is no tensor {name!r}{nearest(name, self.specs)}")
        axes = self.specs[name].axes
        held = [(i, axis) for i, axis in enumerate(axes) if isinstance(axis, Term)]
        if not held:
            return f"{name}: plain sizes, no rows"
        lines = [f"{name}: " + ", ".join(f"axis {i} holds {axis}" for i, axis in held)]
        made = {result: step for step in self.net.steps for result in step.results}
        tensors = dict.fromkeys(
            part.tensor for _, axis in held for part in parts(axis) if part.tensor is not None
        )
        named: dict[Term, list[str]] = defaultdict(list)
        for other, term in self.terms.values.items():
            if other in self.specs:
                named[self.terms.find(term)].append(other)
        for tensor in map(str, tensors):
            step = made.get(tensor)
            if step is not None:
                lines.append(f"  {tensor} is made in line {step.line}: {step.statement}")
            equal = [other for other in named[self.terms.find(self.terms.value(tensor))] if other != tensor]
            if equal:
                lines.append(f"  {tensor} has the values of {', '.join(map(self._said, equal))}")
        return "\n".join(lines)

    def _said(self, tensor: str) -> str:
        """Return the tensor's name, or the call that made it if it has no name."""
        return str(self.terms.values[tensor]) if tensor.startswith("%") else tensor
