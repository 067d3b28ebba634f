"""Net: a straight-line program of ops over named tensors."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from seqflow.errors import NetError, nearest
from seqflow.net.carrying import fill_lengths
from seqflow.net.inference import NetInference, infer_net
from seqflow.net.lexer import fail
from seqflow.net.lowering import Lowering
from seqflow.net.parser import parse
from seqflow.net.step import Step
from seqflow.net.syntax import Place, Program, references
from seqflow.shape import DimensionLike
from seqflow.tensor import TensorSpec


class Net:
    """A net, from its text.

        ids, n = truncate(doc.values, doc.lengths, max_length=512)
        x, mask = pad(ids, n, value=0)
        return x, mask

    Each statement calls an op, or computes an expression: `score = sqrt(x) * lengths_sum(y, n)`. Operands are
    names, literals, expressions, calls with one output, and lists of these where an op takes one. Names are
    assigned once; `_` throws a result away; one name for several outputs binds a group (`t = truncate(…)`, then
    `t.values`, `t.lengths`; of a list, `parts.0`, `parts.1`). Statements may stand in any order: they run in
    topological order. Free names are the inputs. `return` names the outputs; without it they are all names the
    net assigns and all tensors of the record that nothing consumed.

    Lengths may ride along: `words = sequence(doc.values, doc.lengths)` gives a name to both (of several levels, the
    outermost lengths first), and calls that are given it, or what is made of it, need no lengths:
    `h = lstm(words, w_ih, w_hh, bias)`. The printed net shows what was filled in.

    Raises NetError, with line, column and a caret, for text that is malformed, unknown ops, arguments an op does
    not take, names assigned twice and cycles.
    """

    def __init__(self, text: str, constants: Mapping[str, Any] | None = None) -> None:
        self.text = text
        self.constants: Mapping[str, Any] = dict(constants or {})
        program = fill_lengths(parse(text))
        self.steps: tuple[Step, ...] = _ordered(program, Lowering(program).steps())
        named = [name for step in self.steps if not step.is_part for name in step.results]
        self.assigned: tuple[str, ...] = tuple(name for name in named if name != "_")
        self.returned = self._returned(program)
        _refuse_groups(program, self.assigned)
        unused = next((name for name in self.constants if name not in self._free), None)
        if unused is not None:
            raise NetError(f"net: nothing uses the constant {unused!r}{nearest(unused, self._free)}")

    @cached_property
    def _free(self) -> tuple[str, ...]:
        """Names the net reads but does not assign, by first appearance."""
        assigned = {name for step in self.steps for name in step.results}
        read = [name for step in self.steps for name in step.uses] + list(self.returned or ())
        return tuple(dict.fromkeys(name for name in read if name not in assigned))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tensors the net takes from the record, by first appearance."""
        return tuple(name for name in self._free if name not in self.constants)

    def bind(self, **constants: Any) -> "Net":
        """The same net with some of its inputs fixed: tables, weights. They are not copied."""
        return Net(self.text, {**self.constants, **constants})

    def outputs(self, available: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The names of the results, for a record that has the tensors `available`."""
        if self.returned is not None:
            return self.returned
        consumed = {name for step in self.steps for name in step.uses}
        return (*(name for name in available if name not in consumed), *self.assigned)

    def infer(
        self, specs: Mapping[str, TensorSpec], limits: Mapping[DimensionLike, int] | None = None
    ) -> NetInference:
        """The spec of every tensor, for inputs of these specs; no data is needed.

        `limits` says of further sizes what they never exceed, such as `{"max(doc.lengths)": 512}`.

        OpTypeError, ShapeError and LodError come from the op that cannot take its inputs, with a note that names
        the statement. What could be neither proved nor refused is among the result's `guards`; the ops check it
        when they run.
        """
        return infer_net(self, specs, limits)

    def _returned(self, program: Program) -> tuple[str, ...] | None:
        if program.returned is None:
            return None
        names = [reference.name for reference in program.returned]
        for i, reference in enumerate(program.returned):
            if reference.name in names[:i]:
                fail(program.text, reference.place, f"{reference.name} is returned twice")
        return tuple(names)

    def __str__(self) -> str:
        lines = [str(step.statement) for step in self.steps if not step.is_part]
        return "\n".join(lines + ([f"return {', '.join(self.returned)}"] if self.returned else []))

    def _repr_html_(self) -> str:
        from seqflow.net.drawing import html

        return html(self)

    def __repr__(self) -> str:
        return f"Net({str(self)!r})"


def _refuse_groups(program: Program, assigned: tuple[str, ...]) -> None:
    """NetError where a group of results is used as if it were one tensor."""
    used = [name for statement in program.statements for name in references(statement.value)]
    groups = {name.rsplit(".", i)[0] for name in assigned for i in range(1, name.count(".") + 1)} - set(
        assigned
    )
    for reference in (*used, *(program.returned or ())):
        if reference.name in groups:
            members = ", ".join(name for name in assigned if name.startswith(f"{reference.name}."))
            fail(program.text, reference.place, f"{reference.name} is a group, expected one of {members}")


def _ordered(program: Program, steps: list[Step]) -> tuple[Step, ...]:
    """The steps in topological order: what only checks as early as it can, the rest as written if possible."""
    producer: dict[str, Step] = {}
    for step in steps:
        for name in step.results:
            if name in producer and name != "_":
                place = _target_place(step, name)
                first = producer[name].line
                fail(program.text, place, f"{name} is assigned already, in line {first}")
            producer[name] = step
    done: dict[int, Step] = {}
    for step in sorted(steps, key=lambda step: bool(step.results)):  # checks first: others may rely on them
        _visit(program, step, producer, done)
    return tuple(done.values())


def _visit(program: Program, start: Step, producer: Mapping[str, Step], done: dict[int, Step]) -> None:
    """Depth first, on a stack of its own: nets may be long."""
    stack, open_steps = [start], {id(start)}
    while stack:
        step = stack[-1]
        needed = [producer[name] for name in step.uses if name in producer and id(producer[name]) not in done]
        if id(step) in done or not needed:
            done.setdefault(id(step), step)
            open_steps.discard(id(step))
            stack.pop()
        elif id(needed[0]) in open_steps:
            chain = ", ".join(", ".join(step.results) for step in stack if not step.is_part)
            fail(program.text, step.statement.place, f"{step.statement} needs its own result ({chain})")
        else:
            stack.append(needed[0])
            open_steps.add(id(needed[0]))


def _target_place(step: Step, name: str) -> Place:
    targets = step.statement.targets
    return next((target.place for target in targets if target.name == name), targets[0].place)
