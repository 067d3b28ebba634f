"""Nets in the carried style: a name stands for a Sequence, and the lengths that ops need are filled in.

    words = sequence(doc.values, doc.lengths)
    h     = lstm(words, w_ih, w_hh, bias)
    y     = fc(h.h, weight)

is read as `h = lstm(doc.values, doc.lengths, w_ih, w_hh, bias)` and so on, before anything else looks at it. What is
filled in is a guess by names alone; inference proves or refuses it like lengths that were written out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seqflow import registry
from seqflow.errors import UnknownOpError
from seqflow.net.lexer import fail
from seqflow.net.syntax import (
    Call,
    Constant,
    Formula,
    Listed,
    Operand,
    Program,
    Reference,
    Statement,
    references,
)
from seqflow.registry import OpDef
from seqflow.signature import Argument
from seqflow.signature.language import AtLeast, Name, Rest, Sum

Levels = tuple[str, ...]
"""The lengths tensors of a Sequence, outermost first."""


def fill_lengths(program: Program) -> Program:
    """The same program with all lengths written out; itself where no name stands for a Sequence."""
    declared = [s for s in program.statements if isinstance(s.value, Call) and s.value.op == "sequence"]
    if not declared:
        return program
    carried = _Carried(program)
    for statement in declared:
        carried.declare(statement)
    others = [statement for statement in program.statements if statement not in declared]
    statements = tuple(carried.statement(statement) for statement in _producers_first(others))
    returned = None
    if program.returned is not None:
        returned = tuple(name for reference in program.returned for name in carried.returned(reference))
    return Program(program.text, statements, returned)


@dataclass(slots=True)
class _Carried:
    """What is known of the tensors so far."""

    program: Program
    levels: dict[str, Levels] = field(default_factory=dict)
    """The lengths that describe each tensor's rows."""
    lengths: set[str] = field(default_factory=set)
    """The tensors that are lengths themselves."""
    tensors: dict[str, str] = field(default_factory=dict)
    """What the names that stand for a Sequence, and for its parts, are."""

    def declare(self, statement: Statement) -> None:
        """`words = sequence(values, outer, …, inner)`, or `sequence(doc)` for `doc.values` and `doc.lengths`."""
        call = statement.value
        assert isinstance(call, Call)
        names = [operand.name for operand in call.arguments if isinstance(operand, Reference)]
        if call.keywords or not names or len(names) != len(call.arguments) or len(statement.targets) != 1:
            usage = "name = sequence(values, lengths), the lengths of the outermost level first"
            fail(self.program.text, call.place, f"found {statement}, expected {usage}")
        values, *levels = names if len(names) > 1 else [f"{names[0]}.values", f"{names[0]}.lengths"]
        name = statement.targets[0].name
        if name in self.tensors:
            fail(self.program.text, statement.targets[0].place, f"{name} is a sequence already")
        self.tensors |= {name: values, f"{name}.values": values, f"{name}.lengths": levels[-1]}
        self.levels[values] = tuple(levels)
        self.lengths.update(levels)
        for i, lengths in enumerate(levels):
            self.levels.setdefault(lengths, tuple(levels[:i]))

    def returned(self, reference: Reference) -> list[Reference]:
        """A Sequence that is returned gives its values and its lengths."""
        if f"{reference.name}.values" in self.tensors:
            values = self.tensors[reference.name]
            return [replace(reference, name=name) for name in (values, *self.levels[values])]
        return [self.reference(reference)]

    def statement(self, statement: Statement) -> Statement:
        value = self.operand(statement.value)
        assert isinstance(value, (Call, Formula))
        op = None if isinstance(value, Formula) else _op(value)
        if op is None or isinstance(value, Formula):
            for target in statement.targets:
                self.levels[target.name] = self.of(value)
            return replace(statement, value=value)
        names = _results(op, value, [target.name for target in statement.targets])
        outputs = {argument.name: argument for argument in op.signature.output_arguments}
        self.lengths.update(name for output, name in names.items() if outputs[output].is_lengths)
        for output in sorted(names, key=lambda output: isinstance(_axis_0(outputs[output]), Sum)):
            self.levels[names[output]] = self.of_output(op, value, outputs[output], names)
        for output in names:  # once more, for rows that lengths among the outputs describe
            self.levels[names[output]] = self.of_output(op, value, outputs[output], names)
        return replace(statement, value=value)

    # Operands

    def reference(self, reference: Reference) -> Reference:
        return replace(reference, name=self.tensors.get(reference.name, reference.name))

    def operand(self, operand: Operand) -> Operand:
        """The operand with every Sequence replaced by its values, and with lengths filled in."""
        match operand:
            case Reference():
                return self.reference(operand)
            case Constant():
                return operand
            case Listed(items=items):
                return replace(operand, items=tuple(self.operand(item) for item in items))
            case Formula():
                return self.formula(operand)
            case Call():
                return self.call(operand)

    def formula(self, formula: Formula) -> Formula:
        operands: list[Reference | Call] = []
        text = formula.text
        for operand in formula.operands:
            changed = self.operand(operand)
            assert isinstance(changed, (Reference, Call))
            operands.append(changed)
            if isinstance(operand, Reference):
                text = re.sub(rf"(?<![\w.]){re.escape(operand.name)}(?![\w.(])", str(changed), text)
            else:
                text = text.replace(str(operand), str(changed))
        return replace(formula, operands=tuple(operands), text=text)

    def call(self, call: Call) -> Call:
        op = _op(call)
        if op is None:
            return call
        inputs = op.signature.input_arguments
        keywords = {name: self.operand(operand) for name, operand in call.keywords}
        arguments = [self.operand(operand) for operand in call.arguments]
        given = self.matched(op, arguments, keywords)
        if given is None:  # too many arguments: the check of the explicit form says so
            return replace(call, arguments=tuple(arguments), keywords=tuple(keywords.items()))
        for argument in inputs:
            operand = given.get(argument.name)
            if argument.is_lengths and operand is not None:
                given[argument.name] = self.as_lengths(operand)
        positional: list[Operand] = []
        for argument in inputs:
            if argument.name not in given:
                break
            positional.append(given.pop(argument.name))
        attributes = {name: operand for name, operand in keywords.items() if name not in _names(op)}
        return replace(call, arguments=tuple(positional), keywords=tuple((given | attributes).items()))

    def matched(
        self, op: OpDef, arguments: list[Operand], keywords: Mapping[str, Operand]
    ) -> dict[str, Operand] | None:
        """The inputs by name; lengths that a carried operand brings along are left out of the positional list."""
        names = _names(op)
        given = {name: operand for name, operand in keywords.items() if name in names}
        brought = {
            dim.of: argument.name
            for argument in reversed(op.signature.input_arguments)
            if isinstance(dim := _axis_0(argument), Sum) and dim.of in names and dim.of not in given
        }
        written = {name for name, operand in zip(names, arguments, strict=False) if self.is_lengths(operand)}
        brought = {lengths: by for lengths, by in brought.items() if lengths not in written}
        while True:
            left = [name for name in names if name not in brought and name not in given]
            if len(arguments) > len(left) and not brought:
                return None
            found = given | dict(zip(left, arguments, strict=False))
            plain = {lengths for lengths, by in brought.items() if not self.brings(found.get(by))}
            if not plain and len(arguments) <= len(left):
                return found | {lengths: self.innermost(found[by]) for lengths, by in brought.items()}
            brought = {} if not plain else {name: by for name, by in brought.items() if name not in plain}

    def is_lengths(self, operand: Operand) -> bool:
        return isinstance(operand, Reference) and operand.name in self.lengths

    def brings(self, operand: Operand | None) -> bool:
        if isinstance(operand, Listed):
            return all(self.of(item) for item in operand.items)
        return operand is not None and bool(self.of(operand))

    def innermost(self, operand: Operand) -> Operand:
        """The lengths that describe the rows of an operand."""
        if isinstance(operand, Listed):
            return replace(operand, items=tuple(self.innermost(item) for item in operand.items))
        return Reference(self.of(operand)[-1], operand.place)

    def as_lengths(self, operand: Operand) -> Operand:
        """What stands in a lengths slot: a Sequence there stands for its lengths."""
        if isinstance(operand, Listed):
            return replace(operand, items=tuple(self.as_lengths(item) for item in operand.items))
        return self.innermost(operand) if self.of(operand) and not self.is_lengths(operand) else operand

    # Levels

    def of(self, operand: Operand) -> Levels:
        """The lengths that describe the rows of an operand, as far as names tell."""
        match operand:
            case Reference(name=name):
                return self.levels.get(name, ())
            case Formula(operands=parts) | Listed(items=parts):
                return max((self.of(part) for part in parts), key=len, default=())
            case Call():
                op = _op(operand)
                outputs = op.signature.output_arguments if op else ()
                return self.of_output(op, operand, outputs[0], {}) if op and len(outputs) == 1 else ()
        return ()

    def of_output(self, op: OpDef, call: Call, output: Argument, results: Mapping[str, str]) -> Levels:
        """The rule: the name of axis 0 says whose rows they are."""
        given = dict(zip(_names(op), call.arguments, strict=False)) | dict(call.keywords)
        dim = _axis_0(output)
        if isinstance(dim, Sum):
            operand = given.get(dim.of)
            by = results.get(dim.of) or (operand.name if isinstance(operand, Reference) else None)
            return (*self.levels.get(by, ()), by) if by else ()
        if isinstance(dim, Rest):
            return max((self.of(operand) for operand in given.values()), key=len, default=())
        if not isinstance(dim, (Name, AtLeast)):
            return ()
        same = [
            given[argument.name]
            for argument in op.signature.input_arguments
            if argument.name in given and getattr(_axis_0(argument), "name", None) == dim.name
        ]
        return max((self.of(operand) for operand in same), key=len, default=())


def _axis_0(argument: Argument) -> object:
    return argument.dims[0] if argument.dims else None


def _names(op: OpDef) -> list[str]:
    return [argument.name for argument in op.signature.input_arguments]


def _op(call: Call) -> OpDef | None:
    try:
        return registry.get(call.op)
    except UnknownOpError:
        return None


def _results(op: OpDef, call: Call, targets: list[str]) -> dict[str, str]:
    """The tensors that the op's outputs will be; lists of outputs are left out."""
    outputs = op.signature.output_arguments
    if len(targets) == 1 and len(outputs) > 1:
        return {argument.name: f"{targets[0]}.{argument.field}" for argument in outputs}
    if len(outputs) != len(targets):
        return {}
    return {argument.name: target for argument, target in zip(outputs, targets, strict=True)}


def _producers_first(statements: list[Statement]) -> list[Statement]:
    """The statements in an order in which names are assigned before they are used, where there is one."""
    assigned = {target.name for statement in statements for target in statement.targets}
    done: set[str] = set()
    found: list[Statement] = []
    remaining = statements
    while remaining:
        ready = [s for s in remaining if all(_is_there(r.name, assigned, done) for r in references(s.value))]
        if not ready:
            return found + remaining  # a cycle: the net says so
        found += ready
        done.update(target.name for statement in ready for target in statement.targets)
        remaining = [statement for statement in remaining if statement not in ready]
    return found


def _is_there(name: str, assigned: set[str], done: set[str]) -> bool:
    parts = name.split(".")
    makers = {".".join(parts[:i]) for i in range(1, len(parts) + 1)} & assigned
    return makers <= done
