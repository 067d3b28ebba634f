"""Running a net on a record."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from seqflow.errors import NetError, nearest
from seqflow.net import Net, Step
from seqflow.net.parser import Constant, Operand
from seqflow.record import Record
from seqflow.signature import Described, Rows, RowSpace

Array = np.ndarray[Any, Any]


def run(net: Net, record: Record) -> Record:
    """The net's outputs, as a record.

    An output that a returned lengths tensor describes has it as its parent; all others are rows of the record
    itself. The steps run in topological order and tensors are dropped after their last use. An exception keeps
    its type and gains a note with the statement and the shapes it was given.
    """
    tensors = _inputs(net, record)
    plan = _plan(net, tuple(record.parents.items()))
    for step, dead in zip(net.steps, plan.dead, strict=True):
        values = _call(step, tensors)
        tensors.update(zip(step.results, values, strict=True))
        for name in dead:
            tensors.pop(name, None)
    return _as_record({name: tensors[name] for name in plan.parents}, plan.parents, record)


@dataclass(frozen=True, slots=True)
class Plan:
    """What running a net on records of one structure comes to."""

    dead: tuple[tuple[str, ...], ...]
    """For each step, the tensors nothing needs after it."""
    parents: Mapping[str, str | None]
    """The outputs, and the lengths among them that describe their rows."""


@lru_cache(maxsize=128)
def _plan(net: Net, parents: tuple[tuple[str, str | None], ...]) -> Plan:
    outputs = net.outputs(tuple(name for name, _ in parents))
    known = net.rows(spaces(dict(parents)))
    described = {name: space.by for name, space in known.items() if isinstance(space, Described)}
    by = {name: described.get(name) for name in outputs}
    return Plan(
        tuple(_last_uses(net, outputs)),
        {name: parent if parent in outputs else None for name, parent in by.items()},
    )


def spaces(parents: Mapping[str, str | None]) -> dict[str, RowSpace]:
    """The row space of each tensor of a record."""
    own = Rows("the record")
    return {name: own if parent is None else Described(parent) for name, parent in parents.items()}


def _inputs(net: Net, record: Record) -> dict[str, Array]:
    missing = next((name for name in net.inputs if name not in record), None)
    if missing is not None:
        guess = nearest(missing, list(record))
        raise NetError(f"net: nothing assigns {missing!r} and the record has no such tensor{guess}\n"
                       f"  it has {', '.join(record)}")  # fmt: skip
    return {**record, **net.constants}


def _last_uses(net: Net, outputs: Iterable[str]) -> list[tuple[str, ...]]:
    kept = set(outputs)
    dead: list[tuple[str, ...]] = []
    for step in reversed(net.steps):
        last = tuple(name for name in dict.fromkeys((*step.uses, *step.results)) if name not in kept)
        kept.update(last)
        dead.append(last)
    return dead[::-1]


def _call(step: Step, tensors: Mapping[str, Array]) -> tuple[Array, ...]:
    inputs = {name: _value(operand, tensors) for name, operand in step.inputs.items()}
    try:
        result = step.op.call(**inputs, **step.attributes)
    except Exception as error:
        error.add_note(step.note({name: _shape(value) for name, value in inputs.items()}))
        raise
    if step.op.result is not None:
        return tuple(result)
    return (result,) if step.results else ()


def _value(operand: Operand, tensors: Mapping[str, Array]) -> Any:
    return operand.value if isinstance(operand, Constant) else tensors[operand.name]


def _shape(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)


def _as_record(tensors: dict[str, Array], parents: Mapping[str, str | None], source: Record) -> Record:
    own = (name for name, parent in parents.items() if parent is None and tensors[name].ndim)
    rows = next((len(tensors[name]) for name in own), 0)
    return Record(tensors, parents, rows, source.schema, source.dictionaries)
