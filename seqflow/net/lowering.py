"""Statements into steps: each op gets the operands that its signature asks for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NoReturn

from seqflow import registry
from seqflow.errors import UnknownOpError, nearest
from seqflow.net.lexer import fail
from seqflow.net.step import Input, Step
from seqflow.net.syntax import (
    Call,
    Constant,
    Formula,
    Listed,
    Operand,
    Place,
    Program,
    Reference,
    Statement,
)
from seqflow.registry import OpDef
from seqflow.signature import Repeated


@dataclass(slots=True)
class Lowering:
    """A program's statements on their way to steps; calls and expressions that are operands become steps too."""

    program: Program
    found: list[Step] = field(default_factory=list)
    unnamed: Iterator[int] = field(default_factory=lambda: count(1))

    def steps(self) -> list[Step]:
        for statement in self.program.statements:
            self.step(statement, statement.value, statement.targets)
        return self.found

    def fail(self, place: Place, message: str, advice: str = "") -> NoReturn:
        fail(self.program.text, place, message, advice)

    def step(
        self, statement: Statement, value: Call | Formula, targets: tuple[Reference, ...] | None
    ) -> tuple[str, ...]:
        """Add the step that computes this value; the names of its results. Without targets they are made up."""
        if isinstance(value, Formula):
            op = registry.get("expression")
            operands = tuple(self.operand(statement, operand) for operand in value.operands)
            inputs: dict[str, Input] = {"operands": Listed(operands, value.place)}
            attributes: dict[str, Any] = {"expr": value.expression}
        else:
            op = self.op(value)
            inputs, attributes = self.match(statement, value, op)
        results = self.results(value, op, attributes, targets)
        self.found.append(Step(op, inputs, attributes, results, value, statement))
        return results

    def op(self, call: Call) -> OpDef:
        try:
            return registry.get(call.op)
        except UnknownOpError as error:
            message, _, advice = str(error).partition("\n  ")
            self.fail(call.place, message, advice)

    def match(self, statement: Statement, call: Call, op: OpDef) -> tuple[dict[str, Input], dict[str, Any]]:
        """The op's inputs and attributes."""
        names = [argument.name for argument in op.signature.input_arguments]
        if len(call.arguments) > len(names):
            place = call.arguments[len(names)].place
            found = f"{op.name} takes {len(names)} inputs, found {len(call.arguments)}"
            self.fail(place, found, f"{op.signature}; attributes are given by keyword")
        given = dict(zip(names, call.arguments, strict=False))
        attributes: dict[str, Any] = {}
        known = {attribute.name for attribute in op.attributes}
        for name, operand in call.keywords:
            if name in given:
                self.fail(operand.place, f"{op.name}: {name} is given twice")
            if name in names:
                given[name] = operand
            elif name in known:
                attributes[name] = self.attribute(op, name, operand)
            else:
                guess = nearest(name, [*names, *known])
                self.fail(operand.place, f"{op.name} takes no {name!r}{guess}", str(op.signature))
        self.check_complete(call, op, {*given, *attributes})
        lists = {
            argument.name
            for item in op.signature.inputs
            if isinstance(item, Repeated)
            for argument in item.arguments
        }
        inputs: dict[str, Input] = {}
        for name, operand in given.items():
            is_list = isinstance(operand, Listed)
            if is_list != (name in lists) and not isinstance(operand, Constant):
                wanted = "a list of tensors: [a, b]" if name in lists else "one tensor"
                self.fail(
                    operand.place, f"{op.name}: {name} is {operand}, expected {wanted}", str(op.signature)
                )
            inputs[name] = self.operand(statement, operand)
        return inputs, attributes

    def operand(self, statement: Statement, operand: Operand) -> Input:
        """A tensor, a literal or a list of these; what has to be computed first becomes a step."""
        if isinstance(operand, Listed):
            return Listed(tuple(self.operand(statement, item) for item in operand.items), operand.place)
        if not isinstance(operand, (Call, Formula)):
            return operand
        (name,) = self.step(statement, operand, None)
        return Reference(name, operand.place)

    def attribute(self, op: OpDef, name: str, operand: Operand) -> Any:
        if not isinstance(operand, Constant):
            self.fail(operand.place, f"{op.name}: {name} is {operand}, expected a literal")
        attribute = next(attribute for attribute in op.attributes if attribute.name == name)
        try:
            return attribute.check(operand.value)
        except ValueError as error:
            self.fail(operand.place, f"{op.name}: {error}")

    def check_complete(self, call: Call, op: OpDef, given: set[str]) -> None:
        required = [argument.name for argument in op.signature.input_arguments if not argument.optional]
        required += [attribute.name for attribute in op.attributes if attribute.required]
        missing = next((name for name in required if name not in given), None)
        if missing:
            self.fail(call.place, f"{op.name} needs {missing!r}", str(op.signature))

    def results(
        self,
        value: Call | Formula,
        op: OpDef,
        attributes: Mapping[str, Any],
        targets: tuple[Reference, ...] | None,
    ) -> tuple[str, ...]:
        """The names of the tensors the step makes."""
        outputs = op.result_names(attributes)
        what = f"{op.name} has {len(outputs)} output{'s' * (len(outputs) != 1)} ({', '.join(outputs)})"
        if targets is None:
            if len(outputs) != 1:
                self.fail(
                    value.place, f"{what}, expected an operand with one", "give its results names first"
                )
            return (f"%{next(self.unnamed)}",)
        if len(targets) == 1 and len(outputs) > 1:
            group = targets[0].name
            if len(op.output_names) == 1:  # a list: its tensors have numbers only
                outputs = [name.rpartition(".")[2] for name in outputs]
            return tuple("_" if group == "_" else f"{group}.{name}" for name in outputs)
        if len(targets) != len(outputs):
            place = targets[0].place if targets else value.place
            self.fail(place, f"{what}, found {len(targets)} names", str(op.signature))
        return tuple(target.name for target in targets)
