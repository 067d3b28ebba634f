"""Steps of a net: calls of ops with resolved operands, and their execution."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seqflow.errors import SeqflowError
from seqflow.net.syntax import Formula, Listed, LiteralOperand, NetCall, Reference, Statement, references
from seqflow.printable import printable
from seqflow.registry import OpDef

Input = Reference | LiteralOperand | Listed
"""An input of a step: a tensor, a literal, or a list of these."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One call of an op, its operands matched to the op's inputs and attributes."""

    op: OpDef
    inputs: Mapping[str, Input]
    attributes: Mapping[str, Any]
    """All attributes of the op, checked, with defaults for those that the net omits.

    A Reference is the name of a tensor that holds the content of a file.
    """
    results: tuple[str, ...]
    """Names of the tensors of its outputs."""
    value: NetCall | Formula
    """Call or expression that it computes, with all lengths written out."""
    statement: Statement
    """Statement that it belongs to."""

    @property
    def is_part(self) -> bool:
        """Whether it computes a part of its statement, with a result without a name."""
        return self.value is not self.statement.value

    @property
    def expression(self) -> Any:
        """Expression that its op computes; None for other ops."""
        return None if self.op.expression is None else self.attributes[self.op.expression]

    @property
    def uses(self) -> tuple[str, ...]:
        """Names of the tensors it reads."""
        return tuple(one.name for one in self.references)

    @property
    def references(self) -> list[Reference]:
        """Uses of the tensors it reads, with their locations."""
        contents = [value for value in self.attributes.values() if isinstance(value, Reference)]
        return [one for operand in (*self.inputs.values(), *contents) for one in references(operand)]

    def names_at(self, number: int) -> list[str]:
        """Return the names of the results of step `number` of a net, with a unique name for each dropped result."""
        return [f"_{number}.{i}" if name == "_" else name for i, name in enumerate(self.results)]

    @property
    def line(self) -> int:
        return self.value.location.line

    def name_in(self, error: Exception, given: Mapping[str, str]) -> None:
        """Add a note with the statement and the inputs to an exception of this step."""
        inputs = ", ".join(f"{name} {what}" for name, what in given.items())
        error.add_note(printable(f"in the net, line {self.line}: {self.statement}\n  given {inputs}"))
        if isinstance(error, SeqflowError):
            error.statement = str(self.statement)


def compute(step: Step, tensors: Mapping[str, Any]) -> list[Any]:
    """Call a step's op and return the tensors of its results, with lists flattened.

    An exception keeps its type and gains a note with the statement and the shapes it was given.
    """
    inputs = {
        name: each(operand, lambda one: one.value if isinstance(one, LiteralOperand) else tensors[one.name])
        for name, operand in step.inputs.items()
    }
    attributes = {
        name: tensors[value.name] if isinstance(value, Reference) else value
        for name, value in step.attributes.items()
    }
    try:
        if step.op.variadic:
            (operands,) = inputs.values()
            result = step.op.call(*operands, **attributes)
        else:
            result = step.op.call(**inputs, **attributes)
    except Exception as error:
        step.name_in(error, {name: shown(value) for name, value in inputs.items()})
        raise
    if not step.results:
        return []
    found = result if step.op.result is not None else (result,)
    return [tensor for one in found for tensor in (one if isinstance(one, list) else (one,))]


def shown(value: Any) -> str:
    """Return a short text for a tensor, a spec or a list of these."""
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return f"{value.dtype}{list(value.shape)}" if hasattr(value, "device") else str(value)


def each(operand: Input, read: Callable[[Any], Any]) -> Any:
    """Apply `read` to an operand, or to each operand in a list."""
    if isinstance(operand, Listed):
        return [read(item) for item in operand.items]
    return read(operand)
