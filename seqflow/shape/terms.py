"""Terms: hash-consed nodes for the values of tensors and the rows of their axes.

This is value numbering, as in compilers. A value is an input, a literal, or an output of an op together with the
values it depends on; values computed in the same way are the same. Rows of an axis are made from values: the rows
that lengths describe, a selection of rows by a mask, groups by ids. So rows made in the same way are the same rows.

Nodes are interned: equal heads and equal arguments give the same node. When two nodes are assumed equal, all nodes
made from them in the same way are equal, too (congruence).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple


class Term:
    """A node of the term graph: its kind, its data and its arguments. Compare terms with `Terms.equal`."""

    __slots__ = (
        "args",
        "data",
        "is_claimed",
        "is_moved",
        "is_rows",
        "kind",
        "number",
        "said",
        "same",
        "stands_for",
        "tensor",
        "uses",
        "vector",
    )

    def __init__(self, kind: str, data: Any, args: "tuple[Term, ...]", number: int) -> None:
        self.kind = kind
        self.data = data
        self.args = args
        self.number = number
        """Number of the term, in the order of creation."""
        self.is_rows: bool = kind in _ROWS or (
            kind in _PARTS and any(one.is_rows for one in args[: _PARTS[kind]])
        )
        """Whether the term names rows; otherwise it is a value, a plain size, or the steps of a padded axis."""
        self.same: Term | None = None
        """An equal term that represents it (the parent in the union-find)."""
        self.is_claimed = False
        """Whether the row claims of its op are known."""
        self.is_moved = False
        """Whether its op only moves its inputs."""
        self.said: Hashable | None = None
        """The term as results state it, once it is fully known."""
        self.stands_for: list[Term] = []
        """The terms that it was chosen to represent."""
        self.uses: list[Term] = []
        """The terms made from it."""
        self.tensor: str | None = None
        """The first tensor that has this value."""
        self.vector: str | None = None
        """A tensor with this value that may be lengths; set on the representative of equal terms."""

    def __repr__(self) -> str:
        return f"<term {self.number}: {self}>"

    def __str__(self) -> str:
        return _text(self, _LEVELS)


class Terms:
    """The term graph of one net."""

    __slots__ = ("_all", "_journal", "_made", "values")

    def __init__(self) -> None:
        self._all: list[Term] = []
        self._made: dict[Hashable, Term] = {}
        self._journal: list[Callable[[], object]] = []
        self.values: dict[str, Term] = {}
        """Value of each tensor, by name."""

    # Making

    def make(self, kind: str, data: Hashable = None, *args: Term) -> Term:
        """Return the term of this kind and data for these arguments: the same term for the same call."""
        key = (kind, data, self._found(kind, args) if args else args)
        term = self._made.get(key)
        if term is None:
            term = self._made[key] = Term(kind, data, args, len(self._all))
            self._all.append(term)
            for one in key[2]:
                one.uses.append(term)
        return term

    def _found(self, kind: str, args: tuple[Term, ...]) -> tuple[Term, ...]:
        """Return the representatives of the arguments, sorted for a commutative call."""
        found = [self.find(one) for one in args]
        if kind == "commutative":
            found.sort(key=lambda one: one.number)
        return tuple(found)

    def value(self, tensor: str) -> Term:
        """Return the value of a tensor; a tensor without a known value becomes an input."""
        found = self.values.get(tensor)
        if found is None:
            found = self.make("input", tensor)
            found.tensor = tensor
            self.values[tensor] = found
        return found

    def serial(self) -> int:
        """Return a number that no term has."""
        return len(self._all)

    def owns(self, term: Term) -> bool:
        """Return whether this graph made the term."""
        return term.number < len(self._all) and self._all[term.number] is term

    def described(self, lengths: Term) -> Term:
        """Return the rows that lengths describe: the first `lengths[0]` of them are sequence 0, and so on."""
        return self.make("described", None, lengths)

    def steps(self, lengths: Term, side: str = "right") -> Term:
        """Return the steps of a padded axis: sequence i fills `lengths[i]` of them; padding is on this side."""
        return self.make("steps", side, lengths)

    def positions(self, lengths: Term) -> Term:
        """Return the target of positions inside the sequences of these lengths."""
        return self.make("positions", None, lengths)

    def select(self, rows: Term, by: Term) -> Term:
        """Return the rows that a mask or an order selects.

        A flattened padded tensor, selected by its flattened mask, gives the rows that were padded.
        """
        selected = self.make("select", None, rows, by)
        for flat in self.members(rows):
            for mask in self.members(by) if flat.kind == "flat" and flat.args[-1].kind == "steps" else ():
                steps = flat.args[-1]
                if mask.kind == "flat mask" and self.equal(mask.args[0].args[0], steps.args[0]):
                    self.unite(selected, self.described(steps.args[0]))
        return selected

    def join(self, parts: Sequence[Term], sizes: Sequence[Hashable]) -> Term:
        """Return the parts joined one after another; a part that is itself a join of few parts is taken apart first.

        `sizes` gives the number of entries of steps and plain axes; row spaces have their own number of rows.
        """
        flat: list[tuple[Term, Hashable]] = []
        for part, size in zip(parts, sizes, strict=True):
            known = self.find(part)
            if known.kind == "joined" and len(known.args) <= _FEW_PARTS:
                flat += zip(known.args, known.data or [None] * len(known.args), strict=True)
            else:
                flat.append((part, None if part.is_rows else size))
        if len(flat) == 1:
            return flat[0][0]
        held = tuple([size for _, size in flat])
        return self.make(
            "joined", held if any(size is not None for size in held) else None, *(p for p, _ in flat)
        )

    def plain(self, size: Hashable) -> Term:
        """Return a plain axis of this size, as a part of a join with rows."""
        return self.make("plain", size)

    def declared(self, rows: Hashable) -> Term:
        """Return rows as they were declared: the term itself, or a term for rows that equal only themselves."""
        return rows if isinstance(rows, Term) and self.owns(rows) else self.make("rows", rows)

    # Comparing

    def find(self, term: Term) -> Term:
        """Return the term that represents all terms equal to this one."""
        while term.same is not None:
            term = term.same
        return term

    def equal(self, one: Term, other: Term) -> bool:
        return one is other or self.find(one) is self.find(other)

    def members(self, term: Term) -> list[Term]:
        """Return all terms that are equal to this one."""
        found = [self.find(term)]
        for one in found:
            found += one.stands_for
        return found

    def unite(self, one: Term, other: Term) -> list[tuple[Term, Term]]:
        """Assume that two terms are equal, and with them all terms made from them in the same way.

        Return the pairs that became equal, the representative first.
        """
        united: list[tuple[Term, Term]] = []
        open_pairs = [(one, other)]
        while open_pairs:
            # no path compression in `find`: each union must be undone by itself
            left, right = open_pairs.pop()
            kept, gone = self.find(left), self.find(right)
            if kept is gone:
                continue
            if _last_to_stay(gone) < _last_to_stay(kept):
                kept, gone = gone, kept
            gone.same = kept
            kept.stands_for.append(gone)
            self._journal.append(lambda kept=kept: _part(kept))  # type: ignore[misc]
            united.append((kept, gone))
            for use in gone.uses:
                key = (use.kind, use.data, self._found(use.kind, use.args))
                known = self._made.get(key)
                kept.uses.append(use)
                if known is None:
                    self._made[key] = use
                    self._journal.append(lambda key=key: self._made.pop(key))  # type: ignore[misc]
                else:
                    open_pairs.append((known, use))
        return united

    @property
    def position(self) -> int:
        """Number of changes so far; `undo` returns to it."""
        return len(self._journal)

    def undo(self, position: int) -> None:
        """Undo the equalities since that position."""
        while len(self._journal) > position:
            self._journal.pop()()


def _part(kept: Term) -> None:
    """Undo the last equality."""
    kept.stands_for.pop().same = None


def _last_to_stay(term: Term) -> tuple[bool, int]:
    """Order of representatives: known terms before unknown ones, then the older term."""
    return term.kind == "variable", term.number


def made_from(terms: Terms, one: Term, other: Term) -> bool:
    """Return whether one of two row spaces is made from the rows of the other.

    Rows of sequences are made from the sequences, groups from the ids, a slice from the sliced rows.
    """
    return any(
        variable.kind == "variable" and _is_made_from(terms, space, variable)
        for variable, space in ((one, other), (other, one))
    )


def _is_made_from(terms: Terms, space: Term, variable: Term) -> bool:
    tensors = [str(one.data) for one in terms.members(variable) if one.kind == "variable"]
    waiting, seen = [space], {space}
    while waiting:
        one = waiting.pop()
        if one.kind in ("described", "groups"):
            if any(terms.equal(terms.value(tensor), one.args[0]) for tensor in tensors):
                return True
            continue
        rows = {terms.find(arg) for arg in one.args if arg.is_rows} - seen
        if variable in rows:
            return True
        seen |= rows
        waiting.extend(rows)
    return False


# Words


class RowDifference(NamedTuple):
    """Difference of two row spaces, and advice for the case that they should be the same."""

    kind: str
    advice: str
    equal: Literal["rows", "lengths"] | None = None
    """The advice is to declare that these are the same."""


def row_difference(one: Term, other: Term) -> RowDifference:
    """Compare two spaces of rows for a message."""
    kinds = {one.kind, other.kind}
    if kinds == {"steps"} and one.data != other.data:
        return RowDifference("padded on different sides", "write the same side= in all places")
    if kinds == {"steps"}:
        return _of_other_lengths("padded for other lengths", one.args[0], other.args[0])
    if not (one.is_rows and other.is_rows):
        if one.is_rows or other.is_rows:
            advice = "expand_dims or transpose one of them, or use unpad or unpack_by_time"
            return RowDifference("rows meet the steps of a padded axis", advice)
        return RowDifference(
            "other steps of padded axes",
            "take the same steps of both, or join the same ones in the same order",
        )
    if kinds == {"described"}:
        left, right = (value_text(term.args[0]) for term in (one, other))
        level = left.split(".")[0] == right.split(".")[0] and "." in left and "." in right
        kind = "another level of the same column" if level else "values of one column, lengths of another"
        return _of_other_lengths(kind, one.args[0], other.args[0])
    if "joined" in kinds:
        advice = "join both alike, or cut them where they were joined"
        return RowDifference("rows that were joined meet other rows", advice)
    if kinds & _SELECTED:
        advice = "select both by the same mask, slice or order"
        return RowDifference("a selection of rows meets other rows", f"{advice}, or lengths with their rows")
    if "described" in kinds:
        described = one if one.kind == "described" else other
        return RowDifference(
            "one has a row for each sequence, the other the rows of all sequences",
            f"expand(x, {value_text(described.args[0])}) gives each row of a sequence its value",
        )
    kind = "an op made new rows" if "new" in kinds else "rows of different places"
    return RowDifference(kind, say_same_rows("…", "…"), "rows")


def say_same_rows(one: str, other: str) -> str:
    """Advice for two tensors of which inference does not know that they have the same rows."""
    return f"if row i of both belongs together, say so: same_rows({one}, {other})"


def told_apart(one: Term, other: Term) -> tuple[str, str]:
    """Return both terms as texts that differ; if the difference lies deep, it is appended."""
    left, right = str(one), str(other)
    if left != right and len(left) + len(right) < _LONG:
        return left, right
    mine, theirs = _difference(one, other)
    if mine is one:
        return left, right
    return (
        f"{_text(one, 2)}, made of {value_text(mine, 3)}",
        f"{_text(other, 2)}, made of {value_text(theirs, 3)}",
    )


def _difference(one: Term, other: Term) -> tuple[Term, Term]:
    """Return the innermost parts of two terms that contain their only difference."""
    while (one.kind, one.data, len(one.args)) == (other.kind, other.data, len(other.args)):
        differing = [pair for pair in zip(one.args, other.args, strict=True) if pair[0] is not pair[1]]
        if len(differing) != 1 or differing[0][0].kind == "literal":
            break
        ((one, other),) = differing
    return one, other


_LONG = 300
_SELECTED = {"select", "sliced", "part"}


def _of_other_lengths(kind: str, one: Term, other: Term) -> RowDifference:
    """Return advice for two lengths: `same_lengths`, unless one is made from the other or both from one input."""
    if _sources(one) & _sources(other):
        return RowDifference(kind, "take the values with the lengths that were made with them")
    advice = f"if the lengths are the same, add a line: same_lengths({value_text(one)}, {value_text(other)})"
    return RowDifference(kind, advice, "lengths")


def _sources(value: Term) -> set[Term]:
    """Return the inputs that a value is made from."""
    return {one for one in parts(value) if one.kind in ("input", "made")}


def parts(term: Term) -> Iterator[Term]:
    """Yield the term and all terms that it is made from, each once."""
    waiting, seen = [term], {term}
    while waiting:
        one = waiting.pop()
        yield one
        new = [arg for arg in dict.fromkeys(one.args) if arg not in seen]
        seen.update(new)
        waiting.extend(reversed(new))


_FEW_PARTS = 16
"""Joins of more parts are not taken apart when they are joined again: chains of joins would grow without end."""
_SHOWN_PARTS = 3
_LEVELS = 6
"""Number of nested terms that are written out."""


def value_text(term: Term, levels: int = _LEVELS) -> str:
    """Return the text of a value: the name of the tensor, or the call that made it."""
    if term.tensor is not None and not term.tensor.startswith(("%", "_")):
        return term.tensor
    return _text(term, levels)


def _text(term: Term, levels: int) -> str:
    if levels == 0:
        return "…"
    return _WORDS[term.kind](
        term, lambda value: value_text(value, levels - 1), lambda rows: _text(rows, levels - 1)
    )


Words = Callable[[Term], str]


def _call(term: Term, value: Words, rows: Words) -> str:
    op, output, _, attributes = term.data
    named = [f"{name}={given!r}" for name, given in attributes]
    text = f"{op}({', '.join([*map(value, term.args), *named])})"
    return f"{text}.{output}" if output else text


def _joined_text(term: Term, rows: Words) -> str:
    """Return the first parts of a join, and the number of the others."""
    count = len(term.args)
    if len(set(term.args)) == 1 and count > 2:
        return f"{rows(term.args[0])}, {count} times"
    first = [rows(one) for one in term.args[:_SHOWN_PARTS]]
    return " and then ".join([*first, f"{count - _SHOWN_PARTS} more"] if count > _SHOWN_PARTS else first)


def _literal(term: Term, value: Words, rows: Words) -> str:
    return repr(term.data[1]) if isinstance(term.data, tuple) else str(term.data)


_WORDS: dict[str, Callable[[Term, Words, Words], str]] = {
    "input": lambda term, value, rows: str(term.data),
    "literal": _literal,
    "call": _call,
    "commutative": _call,
    "mask": lambda term, value, rows: f"the mask of {value(term.args[0])}",
    "flat mask": lambda term, value, rows: f"{rows(term.args[0])}, laid flat",
    "made": lambda term, value, rows: f"the result of {term.data}",
    "rows": lambda term, value, rows: f"the rows of {term.data}",
    "variable": lambda term, value, rows: f"the rows of {term.data}",
    "described": lambda term, value, rows: f"the rows that {value(term.args[0])} describes",
    "steps": lambda term, value, rows: f"steps padded {_ON[term.data]}to the longest of {value(term.args[0])}",
    "positions": lambda term, value, rows: f"positions inside the sequences of {value(term.args[0])}",
    "either": lambda term, value, rows: f"{' or '.join(map(rows, term.args))}",
    "select": lambda term, value, rows: f"a selection of {rows(term.args[0])} by {value(term.args[1])}",
    "part": lambda term, value, rows: f"part {term.data[0]} of {rows(term.args[0])} by {value(term.args[1])}",
    "sliced": lambda term, value, rows: f"a slice of {rows(term.args[0])}",
    "groups": lambda term, value, rows: f"the groups of {value(term.args[0])}",
    "joined": lambda term, value, rows: _joined_text(term, rows),
    "plain": lambda term, value, rows: f"a plain axis of {term.data}",
    "flat": lambda term, value, rows: f"{' × '.join(map(rows, term.args))}, laid flat",
    "new": lambda term, value, rows: f"new rows that {term.data[0]} makes{_of(map(value, term.args))}",
}  # fmt: skip
"""Text of each kind of term; `value` and `rows` return the text of its arguments."""


def _of(values: Iterable[str]) -> str:
    names = list(values)
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f" of {names[0]}{more}" if names else ""


_ON: dict[Any, str] = {"right": "", "left": "on the left "}

_ROWS = frozenset({"rows", "variable", "described", "groups", "new"})
_PARTS: dict[str, int | None] = {"select": 1, "sliced": 1, "part": 1, "joined": None, "flat": None}
"""Kinds that are made from other axes: they hold rows if one of their first arguments does (None: any argument)."""


def literal(value: Any) -> Hashable:
    """Return the data of a literal's term: equal for equal numbers of any width."""
    value = tuple(value) if isinstance(value, list) else value
    return type(value).__name__, value
