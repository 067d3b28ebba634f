"""Compare the lengths that a job's nets declare equal with the counts in the files' footers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from seqflow.errors import LodError
from seqflow.loader import Loader, Packed
from seqflow.net import Net, Step
from seqflow.providers import Block
from seqflow.providers.leaf_counts import LeafCounts, leaf_counts
from seqflow.providers.parquet import ParquetSource
from seqflow.signature import Described
from seqflow.tensor import TensorSpec


def check_declared_lengths(loader: Loader, specs: Mapping[str, TensorSpec]) -> None:
    """LodError where a footer proves that two columns which a net declares to have the same lengths have not.

    `specs` are the tensors of the source. Files without such counts are not checked, and no file is where
    bad rows are left out, since the others may agree.
    """
    source = loader.source.source
    pairs = list(_declared(loader, specs))
    if not pairs or loader.bad_rows.policy != "raise" or not isinstance(source, ParquetSource):
        return
    for block, leaves in leaf_counts(source):
        counts = _by_lengths(leaves, specs)
        for step, left, right in pairs:
            if left in counts and right in counts:
                _check(step, block, counts[left], counts[right])


@dataclass(frozen=True, slots=True)
class _Count:
    """Counts of the sequences of one lengths tensor, from a footer."""

    column: str
    total: int | None
    """The sum of the lengths."""
    entries: int | None
    """The sum of `max(length, 1)`; None where it depends on other lengths, too."""


def _declared(loader: Loader, specs: Mapping[str, TensorSpec]) -> Iterator[tuple[Step, str, str]]:
    """The pairs of lengths of the source that an op declares equal, with the op's step."""
    available = set(specs)
    for net in (loader.prepare, loader.net):
        if not isinstance(net, Net):
            available = available if net is None else set()
            continue
        for step in net.steps:
            names = [getattr(step.inputs[name], "name", None) for name in step.op.same or ()]
            if names and all(name in available and name not in net.assigned for name in names):
                yield step, str(names[0]), str(names[1])
        if isinstance(loader.batch, Packed):
            return  # its batches have other rows
        available &= set(net.outputs(tuple(specs))) - set(net.assigned)


def _by_lengths(leaves: list[LeafCounts], specs: Mapping[str, TensorSpec]) -> dict[str, _Count]:
    found: dict[str, _Count] = {}
    for leaf in leaves:
        texts = ".".join((*leaf.path, "lengths"))
        if texts in specs:
            found.setdefault(texts, _Count(_column(texts), leaf.text_bytes, None))
        above = [".".join((*leaf.path[:i], "lengths")) for i in range(1, len(leaf.path))]
        levels = [name for name in above if name in specs]
        if levels and len(levels) == sum(part in ("values", "keys") for part in leaf.path):
            entries = None if isinstance(specs[levels[-1]].rows, Described) else leaf.entries
            found.setdefault(levels[-1], _Count(_column(levels[-1]), leaf.values, entries))
    return found


def _check(step: Step, block: Block, left: _Count, right: _Count) -> None:
    known = left.total is not None and right.total is not None
    one, other = (left.total, right.total) if known else (left.entries, right.entries)
    if one is None or other is None or one == other:
        return
    raise LodError(
        f"{block.origin}, row group {block.index}: column {left.column!r} has {one} values and "
        f"{right.column!r} has {other}{'' if known else ', an empty list counted as one'}\n"
        f"  line {step.statement.place.line} of the net says that their lengths are the same: {step.statement}"
    )


def _column(lengths: str) -> str:
    return lengths.removesuffix(".lengths")
