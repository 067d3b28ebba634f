"""Equalities: the sizes, values and rows that are proved or assumed equal in one net."""

from collections.abc import Iterator
from typing import Any

from seqflow.shape.arithmetic import Comparison, difference
from seqflow.shape.atoms import Atom
from seqflow.shape.dimension import OPERATIONS, Dimension, DimensionLike, as_dimension, linear, operands_of
from seqflow.shape.terms import Term, Terms


class Equalities:
    """Equalities of named sizes, values and rows. All ops of one net share one instance; two nets never do.

    Assuming that two sizes are equal replaces one name by the other, so that later questions are decided by it.
    Values and rows are terms; equal terms have equal sizes.

    >>> known = Equalities()
    >>> rows, batch = Dimension.parse("sum(lengths)"), Dimension.parse("2*B")
    >>> print(known.equate(rows, batch, "fc: rows of x and y"), known.compare(rows + 1, batch + 1))
    2*B Comparison.EQUAL
    """

    __slots__ = ("_counts", "_journal", "_reasons", "_users", "_values", "all_declared", "specs", "terms")

    def __init__(self, all_declared: bool = True) -> None:
        self.all_declared = all_declared
        """Whether an axis without rows is plain; if not, it takes the first rows it is combined with."""
        self._values: dict[Atom, Dimension] = {}
        self._reasons: dict[Atom, str] = {}
        self._counts: dict[Term, Dimension] = {}
        """Number of rows, by the term that represents the row space."""
        self.terms = Terms()
        """The terms for values of tensors and for rows of their axes."""
        self.specs: dict[Term, Any] = {}
        """The spec of the first tensor with each value."""
        self._users: dict[Atom, dict[Atom, None]] = {}
        """For each atom, the atoms whose values have contained it, in order."""
        self._journal: list[tuple[dict[Any, Any], Any, Any]] = []
        """Previous value of each change, in order, so that `_undo` needs no copy of the tables."""

    def resolve(self, dimension: Dimension) -> Dimension:
        """Return the dimension with every name replaced by its assumed equal."""
        terms, known = dimension.terms, self._values
        if not terms:
            return dimension
        for atom, _ in terms:
            if atom in known or atom.operands or atom.factors:
                break
        else:
            return dimension
        if len(terms) == 1 and terms[0][1] == 1 and not dimension.constant:
            resolved = self._value(terms[0][0])
        else:
            values = [self._value(atom) for atom, _ in terms]
            if all(value is as_dimension(atom) for value, (atom, _) in zip(values, terms, strict=True)):
                return dimension
            parts = [(k, value) for value, (_, k) in zip(values, terms, strict=True)]
            resolved = linear(dimension.constant, parts, (dimension,))
        if dimension.relaxes(resolved):
            return resolved
        return resolved.within(dimension.min_length, dimension.max_length)

    def compare(self, left: Dimension, right: Dimension) -> Comparison:
        """Compare two sizes with the equalities assumed so far."""
        return self.resolve(left).compare(self.resolve(right))

    def equate(self, left: Dimension, right: Dimension, reason: str) -> Dimension:
        """Assume that two sizes are equal and return that size; raise ShapeError, without a change, when they cannot
        be.

        `reason` says where the two were combined, for the messages of later errors.
        """
        with self.staged():
            left, right = self.resolve(left), self.resolve(right)
            if right.is_static and left.may_be(right.min_length) and (atom := _alone(left)) is not None:
                self._record(atom, right, reason)
                return right
            merged = left.merge(right)
            if left.is_named and right.is_named:
                self._substitute(left, right, reason)
            self._narrow(merged, reason)
            return self.resolve(merged)

    def limit(self, size: Dimension, most: DimensionLike, reason: str) -> None:
        """Note that `size` is at most the largest possible value of `most`; do nothing if that has no bound.

        >>> known = Equalities()
        >>> known.limit(Dimension.parse("max(kept)"), 512, "truncate")
        >>> print(known.resolve(Dimension.parse("2*max(kept)")))
        2*max(kept):0..1024
        """
        high = most if type(most) is int else self.resolve(Dimension.of(most)).max_length
        known = self.resolve(size)
        if high is None or known.is_static or known.min_length > high:
            return
        if size.max_length is None and known.max_length is not None and known.max_length <= high:
            return  # the limit was noted before: `size` itself is unbounded, but its resolved form is not
        if known.min_length == high:
            self.equate(known, Dimension(high), reason)
        else:
            self._narrow(known.within(0, high), reason)

    def explain(self, *dimensions: Dimension) -> list[str]:
        """Return one sentence for each name in these dimensions that was assumed equal to something else."""
        atoms = dict.fromkeys(atom for dimension in dimensions for atom, _ in dimension.terms or ())
        known = [atom for atom in atoms if atom in self._reasons]
        return [f"{atom} is {self._values[atom]} since {self._reasons[atom]}" for atom in known]

    def staged(self) -> "_Staged":
        """Return a context manager that undoes all equalities assumed inside it when it ends with an exception."""
        return _Staged(self)

    # Values and rows

    def set_value(self, tensor: str, value: Term, is_vector: bool) -> None:
        """Set the value of a tensor. Vectors of integers may be lengths, and equal lengths have equal sums."""
        terms = self.terms
        terms.values[tensor] = value
        if value.tensor is None:
            value.tensor = tensor
        if is_vector:
            known = terms.find(value)
            if known.vector is None:
                known.vector = tensor
            elif known.vector != tensor:
                self._same_lengths(known.vector, tensor, "they are the same lengths")

    def unite(self, one: Term, other: Term, reason: str) -> None:
        """Assume that two values, or two row spaces, are equal; raise ShapeError when their sizes cannot be."""
        for kept, gone in self.terms.unite(one, other):
            if gone.vector is not None and kept.vector is not None:
                self._same_lengths(kept.vector, gone.vector, reason)
            elif gone.vector is not None:
                kept.vector = gone.vector
            count = self._counts.get(gone)
            if count is not None:
                self.count_rows(kept, count, reason)

    def count_rows(self, rows: Term, count: Dimension, reason: str) -> Dimension:
        """Set the number of rows of a row space; return what is then known of that number."""
        rows = self.terms.find(rows)
        known = self._counts.get(rows)
        if known is None:
            self._set(self._counts, rows, count)
            return count
        return known if known == count else self.equate(known, count, reason)

    def rows_counted(self, rows: Term) -> Dimension | None:
        """Return the number of rows of a row space, if it was set."""
        return self._counts.get(self.terms.find(rows))

    def _same_lengths(self, one: str, other: str, reason: str) -> None:
        self.equate(Dimension.sum_of(one), Dimension.sum_of(other), reason)
        self.equate(Dimension.max_of(one), Dimension.max_of(other), reason)

    def _value(self, atom: Atom) -> Dimension:
        known = self._values.get(atom)
        own = as_dimension(atom) if known is None else known
        if not (atom.operands or atom.factors) or own.terms != ((atom, 1),):
            return own
        operands = operands_of(atom)
        resolved = [self.resolve(operand) for operand in operands]
        if resolved == list(operands):
            return own
        return OPERATIONS[atom.kind](*resolved).within(own.min_length, own.max_length)

    def _substitute(self, left: Dimension, right: Dimension, reason: str) -> None:
        """Solve `left = right` for one atom."""
        constant, terms = difference(left, right)
        if len(terms) == 1:
            ((atom, k),) = terms.items()
            self._assign(atom, Dimension(-constant // k), reason)
            return
        # only factors of ±1: a quotient would not be a linear form; and no atom that occurs inside another one, since
        # its value would contain itself
        candidates = [
            atom for atom, k in terms.items()
            if abs(k) == 1 and not any(_occurs(atom, other) for other in terms if other != atom)
        ]  # fmt: skip
        if not candidates:
            return
        atom = max(candidates, key=_eliminated_first)
        sign = -terms.pop(atom)
        rest = [(sign * k, self._value(other)) for other, k in terms.items()]
        self._assign(atom, linear(sign * constant, rest, (left, "=", right)), reason)

    def _assign(self, atom: Atom, value: Dimension, reason: str) -> None:
        known = self._value(atom)
        value = value.within(known.min_length, known.max_length)
        self._record(atom, value, reason)
        self._narrow(value, reason)

    def _record(self, atom: Atom, value: Dimension, reason: str) -> None:
        self._store(atom, value)
        self._set(self._reasons, atom, reason)
        # the table of values is kept fully resolved: values that contain this atom are rewritten now, so `_value`
        # needs no loop
        for other in list(self._users.get(atom, ())):
            current = self._values.get(other)
            if current is not None and _speaks_of(current, atom):
                self._store(other, self.resolve(current))

    def _store(self, atom: Atom, value: Dimension) -> None:
        self._set(self._values, atom, value)
        for used in _atoms(value):
            self._users.setdefault(used, {})[atom] = None

    def _set(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self._journal.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def _undo(self, length: int) -> None:
        """Undo all changes except the first `length`."""
        while len(self._journal) > length:
            table, key, before = self._journal.pop()
            if before is _ABSENT:
                del table[key]
            else:
                table[key] = before

    def _narrow(self, dimension: Dimension, reason: str) -> None:
        """Derive the bounds of `atom` from those of `k·atom + c`."""
        if not dimension.terms or len(dimension.terms) != 1:
            return
        ((atom, k),) = dimension.terms
        if k < 0 or self._value(atom).terms != ((atom, 1),):
            return
        low = max(-((dimension.constant - dimension.min_length) // k), 0)
        high = None if dimension.max_length is None else (dimension.max_length - dimension.constant) // k
        known = self._value(atom)
        if not Dimension(low, high).relaxes(known):
            self._record(atom, known.within(low, high), self._reasons.get(atom, reason))


class _Staged:
    """Context manager that undoes all changes since it was entered when it ends with an exception."""

    __slots__ = ("before", "equalities", "terms_before")

    def __init__(self, equalities: Equalities) -> None:
        self.equalities = equalities
        self.before = len(equalities._journal)
        self.terms_before = equalities.terms.position

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.equalities._undo(self.before)
            self.equalities.terms.undo(self.terms_before)


_ABSENT = object()


def _alone(dimension: Dimension) -> Atom | None:
    """Return the atom if the dimension is exactly this atom."""
    if dimension.constant or dimension.terms is None or len(dimension.terms) != 1:
        return None
    ((atom, k),) = dimension.terms
    return atom if k == 1 else None


def _atoms(dimension: Dimension) -> Iterator[Atom]:
    """Yield all atoms in a dimension, and those in the operands of its atoms."""
    for atom, _ in dimension.terms or ():
        yield atom
        for operand in operands_of(atom):
            yield from _atoms(operand)


def _speaks_of(dimension: Dimension, atom: Atom) -> bool:
    return any(atom == other or _occurs(atom, other) for other, _ in dimension.terms or ())


def _occurs(atom: Atom, inside: Atom) -> bool:
    return any(
        atom == other or _occurs(atom, other)
        for operand in operands_of(inside)
        for other, _ in operand.terms or ()
    )


def _eliminated_first(atom: Atom) -> tuple[bool, int, str]:
    """Order of elimination: unnamed results first, then sizes about lengths tensors, then plain names."""
    kinds = ("sum", "max", "len", "size", "axis")
    unnamed = atom.tensor is not None and atom.tensor.startswith("%")
    return unnamed, kinds.index(atom.kind) + 1 if atom.kind in kinds else 0, atom.text
