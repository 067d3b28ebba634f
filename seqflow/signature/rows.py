"""Binding a signature to row spaces: whose rows axis 0 of each output holds.

The name of axis 0 says it. The same plain name on an output claims that row i is still row i; the same
`sum(lengths)` that the rows of sequence k are still those of sequence k; any other name stands for new rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from seqflow.signature.language import Argument, AtLeast, Name, Signature, Sum

_serial = count(1)


@dataclass(frozen=True, slots=True)
class Described:
    """Rows that the lengths tensor of this name describes: the first `lengths[0]` are sequence 0, and so on."""

    by: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that no lengths tensor describes, such as the rows of a record; only equal to themselves."""

    origin: str
    serial: int = field(default_factory=lambda: next(_serial))


RowSpace = Described | Rows


def bind_rows(
    signature: Signature,
    inputs: Mapping[str, str | None],
    outputs: Sequence[str],
    spaces: Mapping[str, RowSpace],
    origin: str,
) -> list[RowSpace | None]:
    """The row space of each output; None where the signature cannot tell.

    `inputs` names the tensor given to each input of the signature, `outputs` the tensors that will hold the
    results, `spaces` the row spaces known so far.
    """
    names: dict[str, RowSpace | None] = {}
    for argument in signature.input_arguments:
        match argument.dims[:1]:
            case (Name(name=name),) | (AtLeast(name=name),):
                space = spaces.get(inputs.get(argument.name) or "")
                names[name] = names.get(name) or space
    results = dict(zip((argument.name for argument in signature.output_arguments), outputs, strict=True))
    fresh: dict[object, Rows] = {}

    def space_of(argument: Argument) -> RowSpace | None:
        if not argument.dims:
            return None
        dim = argument.dims[0]
        if isinstance(dim, Sum):
            by = results.get(dim.of) or inputs.get(dim.of)
            return Described(by) if by else None
        if isinstance(dim, Name) and dim.name in names:
            return names[dim.name]
        return fresh.setdefault(dim, Rows(origin))

    return [space_of(argument) for argument in signature.output_arguments]
