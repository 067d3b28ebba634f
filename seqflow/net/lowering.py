"""Turns statements into steps: matches operands to the inputs of each op's signature."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from seqflow import registry
from seqflow.deprecated_names import old_names, renamed_arguments
from seqflow.errors import LodError, UnknownOpError
from seqflow.lod_propagation.rule import gives_sequence
from seqflow.net.sequences import Sequences
from seqflow.net.step import Input, Step
from seqflow.net.syntax import (
    Formula,
    Listed,
    LiteralOperand,
    Location,
    NetCall,
    Operand,
    ParsedNet,
    Reference,
    Statement,
    fail,
    references,
)
from seqflow.registry import OpDef
from seqflow.registry.errors import nearest_argument
from seqflow.signature import Attribute


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


class Lowered(NamedTuple):
    """A net as steps in topological order."""

    steps: tuple[Step, ...]
    returned: tuple[Reference, ...] | None


def lower(program: ParsedNet, folder: Path | None = None) -> Lowered:
    """Return the steps of a program; raise NetError when an op does not take its arguments.

    Paths of files in the program are relative to `folder`.
    """
    lowering = _Lowering(program, folder)
    steps = tuple(lowering.steps())
    if program.returned is None:
        return Lowered(steps, None)
    returned: list[Reference] = []
    known: set[str] = set()  # Sequences may share lengths, which are returned once
    for reference in program.returned:
        tensor, *lengths = lowering.sequences.tensors(reference)
        returned += [tensor, *(one for one in lengths if one.name not in known)]
        known.update((tensor.name, *(one.name for one in lengths)))
    return Lowered(steps, tuple(returned))


def located(folder: Path | None, path: str) -> str:
    """Return a path of the text of a net for use in the current folder."""
    return path if folder is None else str(folder / Path(path).expanduser())


class _StepFields(NamedTuple):
    """Fields of a Step except its statement, which is complete only after its last part."""

    op: OpDef
    inputs: Mapping[str, Input]
    attributes: Mapping[str, Any]
    results: tuple[str, ...]
    value: NetCall | Formula


@dataclass(slots=True)
class _Lowering:
    """Turns one program into steps. Calls and expressions that are operands become steps of their own."""

    program: ParsedNet
    folder: Path | None
    sequences: Sequences = field(init=False)
    unnamed: Iterator[int] = field(default_factory=lambda: count(1))
    unfinished: list[_StepFields] = field(default_factory=list)
    """Steps of the current statement that are complete except for the statement."""
    values: dict[str, NetCall | Formula] = field(default_factory=dict)
    """Call or formula of each result without a name (`%1`)."""

    def steps(self) -> Iterator[Step]:
        drafts = [self.draft(statement) for statement in self.program.statements]
        makers = producers(self.program, drafts)
        self.sequences = Sequences(any(draft.declares for draft in drafts))
        # before all steps: a step may use the values of a Sequence by their own name, which does not order it
        for draft in drafts:
            if draft.declares and not draft.needs(makers):
                self.declare(draft.statement)
        for draft in ordered(self.program, drafts, makers):
            if draft.declares:
                self.declare(draft.statement)
            else:
                yield from self.lowered(draft)

    def fail(self, location: Location, message: str, advice: str = "") -> NoReturn:
        fail(self.program.text, location, message, advice)

    # Statements

    def draft(self, statement: Statement) -> Draft:
        """Return a draft of a statement, with the names that it assigns."""
        value = statement.value
        if isinstance(value, NetCall) and value.op == "sequence":
            self.sequence(statement)
            return Draft(statement, (statement.targets[0].name,), declares=True)
        op = _expression() if isinstance(value, Formula) else self.op(value)
        gives_lists = op.signature.gives_lists
        attributes = self.attributes(value, op) if gives_lists and isinstance(value, NetCall) else {}
        return Draft(statement, self.results(value, op, attributes, statement.targets))

    def sequence(self, statement: Statement) -> list[Reference]:
        """Return the values and the lengths of `words = sequence(values, outer, …, inner)` or `sequence(doc)`."""
        call = statement.value
        assert isinstance(call, NetCall)
        given = [operand for operand in call.arguments if isinstance(operand, Reference)]
        if call.keywords or not given or len(given) != len(call.arguments) or len(statement.targets) != 1:
            usage = "name = sequence(values, lengths), the lengths of the outermost level first"
            self.fail(call.location, f"found {statement}, expected {usage}")
        if len(given) > 1:
            return given
        return [Reference(f"{given[0].name}.{part}", given[0].location) for part in ("values", "lengths")]

    def declare(self, statement: Statement) -> None:
        values, *levels = [self.sequences.tensor(one).name for one in self.sequence(statement)]
        self.sequences.declare(statement.targets[0].name, values, tuple(levels))

    def lowered(self, draft: Draft) -> list[Step]:
        """Return the steps of a statement: the steps of its operands, then its own."""
        self.unfinished = []
        value = self.step(draft.statement.value, draft.results)
        statement = Statement(draft.statement.targets, value)
        if len(statement.targets) == 1 and self.sequences.in_use and gives_sequence(self.unfinished[-1].op):
            self.sequences.values[statement.targets[0].name] = draft.results[0]
        return [Step(*fields, statement) for fields in self.unfinished]

    def step(self, value: NetCall | Formula, results: tuple[str, ...] | None) -> NetCall | Formula:
        """Add the step that computes this value, and return the value with all lengths written out.

        Without `results` the value is an operand, and its result gets a generated name.
        """
        if isinstance(value, Formula):
            op = _expression()
            operands = tuple(self.operand(operand) for operand in value.operands)
            value = value.on(tuple(map(self.written, operands)))  # type: ignore[arg-type]
            attributes = op.complete({"expr": value.expression})
            distinct = {operand.name: operand for operand in operands if isinstance(operand, Reference)}
            given: dict[str, Input] = {"operands": Listed(tuple(distinct.values()), value.location)}
        else:
            op = self.op(value)
            attributes = self.attributes(value, op)
            given = self.inputs(value, op)
        if results is None:
            results = self.results(value, op, attributes, None)
        try:
            inputs = self.sequences.fill(op, given, attributes, results)
        except LodError as error:
            self.fail(value.location, error.message, error.advice)
        if isinstance(value, NetCall):
            required = (one.name for one in op.signature.input_arguments if not one.optional)
            self.check_complete(value, op, required, inputs)
            value = self.call(value, op, inputs)
        self.unfinished.append(_StepFields(op, inputs, attributes, results, value))
        return value

    # Operands

    def operand(self, operand: Operand) -> Input:
        """Return an operand as a tensor, a literal or a list of these; a call or an expression becomes a step."""
        match operand:
            case Listed(items=items, location=location):
                return Listed(tuple(self.operand(item) for item in items), location)
            case Reference():
                return self.sequences.tensor(operand)
            case LiteralOperand():
                return operand
        value = self.step(operand, None)
        (name,) = self.unfinished[-1].results
        self.values[name] = value
        return Reference(name, operand.location)

    def written(self, operand: Operand) -> Operand:
        """Return an operand as it is printed; for a result without a name, the call that makes it."""
        if isinstance(operand, Listed):
            return Listed(tuple(self.written(item) for item in operand.items), operand.location)
        return self.values.get(operand.name, operand) if isinstance(operand, Reference) else operand

    # Calls

    def op(self, call: NetCall) -> OpDef:
        try:
            return registry.get(call.op)
        except UnknownOpError as error:
            methods = (
                "an op stands alone: a tensor has no methods, a net no modules; " if "." in call.op else ""
            )
            self.fail(call.location, error.message, methods + error.advice)

    def attributes(self, call: NetCall, op: OpDef) -> dict[str, Any]:
        """Return all attributes of a call, checked, with defaults; the content of a file may be given as a tensor."""
        known = {attribute.name: attribute for attribute in op.attributes}
        names = [argument.name for argument in op.signature.input_arguments]
        found: dict[str, Any] = {}
        for name, operand in self.keywords(call):
            if name in names:
                continue
            if name not in known:
                guess = nearest_argument(name, [*names, *known])
                self.fail(operand.location, f"{op.name} takes no {name!r}{guess}", str(op.signature))
            if known[name].names_file and isinstance(operand, Reference):
                found[name] = operand
                continue
            if not isinstance(operand, LiteralOperand):
                self.fail(operand.location, f"{op.name}: {name} is {operand}, expected a literal")
            try:
                found[name] = known[name].check(self.located(known[name], operand.value))
            except ValueError as error:
                self.fail(operand.location, f"{op.name}: {error}")
        self.check_complete(call, op, (name for name, one in known.items() if one.required), found)
        return op.complete(found)

    def keywords(self, call: NetCall) -> Iterable[tuple[str, Operand]]:
        """Return the keyword arguments of a call, by their new names."""
        if not old_names(call.op):
            return call.keywords
        try:
            return renamed_arguments(call.op, dict(call.keywords)).items()
        except TypeError as error:
            self.fail(call.location, str(error))

    def located(self, attribute: Attribute, value: Any) -> Any:
        """Return the value, a path for use in the current folder."""
        return located(self.folder, value) if attribute.names_file and isinstance(value, str) else value

    def check_complete(
        self, call: NetCall, op: OpDef, required: Iterable[str], given: Mapping[str, object]
    ) -> None:
        missing = next((name for name in required if name not in given), None)
        if missing:
            self.fail(call.location, f"{op.name} needs {missing!r}", str(op.signature))

    def inputs(self, call: NetCall, op: OpDef) -> dict[str, Input]:
        """Return the inputs given to a call, in the order of the signature."""
        names = [argument.name for argument in op.signature.input_arguments]
        if len(call.arguments) > len(names):
            location = call.arguments[len(names)].location
            found = f"{op.name} takes {len(names)} inputs, found {len(call.arguments)}"
            self.fail(location, found, f"{op.signature}; attributes are given by keyword")
        arguments = [self.operand(operand) for operand in call.arguments]
        keywords = {name: self.operand(operand) for name, operand in call.keywords if name in names}
        positional = self.sequences.positional(op, arguments, keywords)
        given = dict(zip(positional, arguments, strict=False))
        for name, operand in keywords.items():
            if name in given:
                self.fail(operand.location, f"{op.name}: {name} is given twice")
            given[name] = operand
        lists = op.signature.listed
        for name, operand in given.items():
            if isinstance(operand, Listed) != (name in lists) and not isinstance(operand, LiteralOperand):
                what = f"{op.name}: {name} is {self.written(operand)}"
                wanted = "a list of tensors: [a, b]" if name in lists else "one tensor"
                self.fail(operand.location, f"{what}, expected {wanted}", str(op.signature))
        return {name: given[name] for name in names if name in given}

    def call(self, call: NetCall, op: OpDef, inputs: Mapping[str, Input]) -> NetCall:
        """Return the call as it is printed: inputs by position up to the first omitted one, then by keyword."""
        names = [argument.name for argument in op.signature.input_arguments]
        first = next((i for i, name in enumerate(names) if name not in inputs), len(names))
        arguments = tuple(self.written(inputs[name]) for name in names[:first])
        keywords = [(name, self.written(inputs[name])) for name in names[first:] if name in inputs]
        keywords += [(name, operand) for name, operand in self.keywords(call) if name not in names]
        return NetCall(op.name, arguments, tuple(keywords), call.location)

    # Results

    def results(
        self,
        value: NetCall | Formula,
        op: OpDef,
        attributes: Mapping[str, Any],
        targets: tuple[Reference, ...] | None,
    ) -> tuple[str, ...]:
        """Return the names of the results of a step; without targets, a generated name for its only result."""
        outputs = op.result_names(attributes)
        what = f"{op.name} has {len(outputs)} output{'s' * (len(outputs) != 1)} ({', '.join(outputs)})"
        if targets is None:
            if len(outputs) != 1:
                self.fail(
                    value.location, f"{what}, expected an operand with one", "give its results names first"
                )
            return (f"%{next(self.unnamed)}",)
        if len(targets) == 1 and len(outputs) > 1:
            group = targets[0].name
            if len(op.output_names) == 1:  # a list: its tensors have numbers only
                outputs = [name.rpartition(".")[2] for name in outputs]
            return tuple("_" if group == "_" else f"{group}.{name}" for name in outputs)
        if targets and not outputs:
            self.fail(
                targets[0].location, f"{op.name} has no outputs, expected a line without =", str(op.signature)
            )
        if len(targets) != len(outputs):
            location = targets[0].location if targets else value.location
            self.fail(location, f"{what}, found {len(targets)} names", str(op.signature))
        return tuple(target.name for target in targets)


def _expression() -> OpDef:
    """Return the op that computes formulas."""
    return registry.get("expression")
