"""Binding a signature to row spaces: whose rows axis 0 of each output holds.

The name of axis 0 says it. The same plain name on an output claims that row i is still row i; the same
`sum(lengths)` that the rows of sequence k are still those of sequence k; any other name stands for new rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import NamedTuple

from seqflow.signature.language import Argument, Name, Rest, Signature, Sum

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


def dividing(argument: Argument) -> str | None:
    """The lengths that divide the rows of an argument, `sum(lengths)` being its axis 0; None for all others."""
    first = argument.dims[0] if argument.dims else None
    return first.of if isinstance(first, Sum) else None


def bind_rows(
    signature: Signature,
    inputs: Mapping[str, str | Sequence[str] | None],
    outputs: Sequence[str],
    spaces: Mapping[str, RowSpace],
    origin: str,
) -> list[RowSpace | None]:
    """The row space of each output; None where the signature cannot tell.

    `inputs` names the tensor given to each input of the signature (a list of tensors, where the op takes a list),
    `outputs` the tensors that will hold the results (those of a list of outputs one after another), `spaces` the
    row spaces known so far.
    """
    return rows_of(signature, inputs, name_outputs(signature, outputs), spaces, origin)


def rows_of(
    signature: Signature,
    inputs: Mapping[str, str | Sequence[str] | None],
    outputs: "Sequence[NamedOutput]",
    spaces: Mapping[str, RowSpace],
    origin: str,
) -> list[RowSpace | None]:
    """`bind_rows` for outputs that have their tensors' names already."""
    names: dict[str, RowSpace | None] = {}
    single: dict[str, str] = {}
    for argument in signature.input_arguments:
        given, name = inputs.get(argument.name), argument.row_name
        if isinstance(given, str):
            single[argument.name] = given
        if name is not None:
            tensors = [given] if isinstance(given, str) else given or []
            known = [spaces[tensor] for tensor in tensors if tensor in spaces] if spaces else []
            names[name] = names.get(name) or (known[0] if known else None)
    fresh: dict[object, OwnRows] = {}

    def space_of(output: NamedOutput) -> RowSpace | None:
        if not output.argument.dims:
            return None
        dim, lengths = output.argument.dims[0], dividing(output.argument)
        if lengths is not None:
            by = output.tensors.get(lengths) or single.get(lengths)
            return Described(by) if by else None
        if isinstance(dim, Rest):
            return None
        if isinstance(dim, Name) and dim.name in names:
            return names[dim.name]
        return fresh.setdefault((dim, output.repetition), OwnRows(origin))

    return [space_of(output) for output in outputs]


class NamedOutput(NamedTuple):
    """One tensor of the results."""

    argument: Argument
    repetition: int
    """Which repetition of its group it belongs to; 0 where there is no group."""
    tensor: str
    tensors: Mapping[str, str]
    """The tensors of the outputs whose sums its sizes may use, by the signature's names."""


def name_outputs(signature: Signature, tensors: Sequence[str]) -> list[NamedOutput]:
    """Maps the outputs to the names of their tensors.

    `tensors` are in the order of the results: those of `{a, b}*n` are the n of a, then the n of b. One such group
    can stand in a signature: it takes what the plain outputs leave.
    """
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
