"""Topological order of statements: checks as early as possible, others in the order of the text if possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seqflow.net.syntax import Location, ParsedNet, Statement, fail, references


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A statement and the names that it assigns."""

    statement: Statement
    results: tuple[str, ...]
    """Tensors it makes; for `words = sequence(…)`, the name of the Sequence."""
    declares: bool = False
    """Whether it is a `sequence(…)`, which gives names and computes nothing."""

    def needs(self, makers: "Mapping[str, Draft]") -> "list[Draft]":
        """Return the statements that make the tensors it reads; `doc = sequence(doc.values)` does not need itself."""
        found = [makers.get(reference.name) for reference in references(self.statement.value)]
        return [draft for draft in found if draft is not None and not (self.declares and draft is self)]


def producers(program: ParsedNet, drafts: Sequence[Draft]) -> dict[str, Draft]:
    """Map each name, also of groups and of parts of Sequences, to the statement that assigns it.

    Raises NetError when two statements assign one name.
    """
    found: dict[str, Draft] = {}
    for draft in drafts:
        for name in draft.results:
            if name in found and name != "_":
                location, first = _target_location(draft, name), found[name].statement.location.line
                fail(program.text, location, f"{name} is assigned already, in line {first}")
            found[name] = draft
    groups = {target.name: draft for draft in drafts for target in draft.statement.targets}
    parts = {
        f"{draft.results[0]}.{part}": draft
        for draft in drafts
        if draft.declares
        for part in ("values", "lengths")
    }
    return {**parts, **groups, **found}


def ordered(program: ParsedNet, drafts: Sequence[Draft], makers: Mapping[str, Draft]) -> list[Draft]:
    """Return the statements in topological order; raise NetError when one needs its own result."""
    done: dict[int, Draft] = {}
    for draft in sorted(drafts, key=lambda draft: 1 if draft.declares else 2 if draft.results else 0):
        _visit(program, draft, makers, done)
    return list(done.values())


def _visit(program: ParsedNet, start: Draft, makers: Mapping[str, Draft], done: dict[int, Draft]) -> None:
    """Add a statement after all it needs: depth first, on a stack, since chains may be long."""
    stack, open_drafts = [start], {id(start)}
    while stack:
        draft = stack[-1]
        needed = [one for one in draft.needs(makers) if id(one) not in done]
        if id(draft) in done or not needed:
            done.setdefault(id(draft), draft)
            open_drafts.discard(id(draft))
            stack.pop()
        elif id(needed[0]) in open_drafts:  # it waits for itself
            chain = ", ".join(", ".join(draft.results) for draft in stack)
            statement = draft.statement
            fail(program.text, statement.location, f"{statement} needs its own result ({chain})")
        else:
            stack.append(needed[0])
            open_drafts.add(id(needed[0]))


def _target_location(draft: Draft, name: str) -> Location:
    targets = draft.statement.targets
    return next((target.location for target in targets if target.name == name), targets[0].location)
