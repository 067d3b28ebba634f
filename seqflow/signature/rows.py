"""Declarations of row spaces, by schemas and callers of inference; names of output tensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import NamedTuple

from seqflow.signature.language import Argument, Signature, Sum

_serial = count(1)


@dataclass(frozen=True, slots=True)
class Described:
    """Rows divided by the lengths tensor of this name: the first `lengths[0]` are sequence 0, and so on."""

    by: str

    def __str__(self) -> str:
        return f"the lengths {self.by}"


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Rows that no lengths tensor describes, such as the rows of a record; only equal to themselves."""

    origin: str
    serial: int = field(default_factory=lambda: next(_serial))

    def __str__(self) -> str:
        return self.origin


RowSpace = Described | OwnRows


@dataclass(frozen=True, slots=True)
class Positions:
    """Target of integers: positions inside the sequences of the lengths tensor of this name, or -1 for none."""

    inside: str

    def __str__(self) -> str:
        return f"the positions inside the sequences of {self.inside}"


def dividing(argument: Argument) -> str | None:
    """Return the lengths that divide the rows of an argument with `sum(lengths)` as axis 0; None for other axes 0."""
    first = argument.dims[0] if argument.dims else None
    return first.of if isinstance(first, Sum) else None


class NamedOutput(NamedTuple):
    """An output tensor: its argument in the signature, and its name."""

    argument: Argument
    repetition: int
    """Index of the repetition of its group; 0 without a group."""
    tensor: str
    tensors: Mapping[str, str]
    """Output tensors whose sums its sizes may use, by their names in the signature."""


def name_outputs(signature: Signature, tensors: Sequence[str]) -> list[NamedOutput]:
    """Match the outputs to the names of their tensors.

    `tensors` are in the order of the results: for `{a, b}*n` the n tensors of a, then the n of b. A signature has at
    most one such group, which gets all tensors that are not plain outputs.
    """
    # without lists, the usual case, an output is one tensor: this runs in each inference of an op
    if signature.outputs == signature.output_arguments:
        pairs = list(zip(signature.output_arguments, tensors, strict=True))
        names = {argument.name: tensor for argument, tensor in pairs}
        return [NamedOutput(argument, 0, tensor, names) for argument, tensor in pairs]
    count = len(tensors) - sum(isinstance(item, Argument) for item in signature.outputs)
    remaining = iter(tensors)
    columns: dict[str, list[str]] = {}
    for item in signature.outputs:
        if isinstance(item, Argument):
            columns[item.name] = [next(remaining)]
        else:
            columns |= {a.name: list(islice(remaining, count // len(item.arguments))) for a in item.arguments}
    shared = {item.name: columns[item.name][0] for item in signature.outputs if isinstance(item, Argument)}
    found: list[NamedOutput] = []
    for item in signature.outputs:
        group = [item] if isinstance(item, Argument) else item.arguments
        own = {argument.name for argument in group}
        for argument in group:
            for i, tensor in enumerate(columns[argument.name]):
                names = shared | {name: columns[name][i] for name in own}
                found.append(NamedOutput(argument, i, tensor, names))
    return found
