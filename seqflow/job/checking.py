"""Checking a job from its files' schemas and footers alone: no rows are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seqflow.job.declared import check_declared_lengths
from seqflow.job.running import open_loader
from seqflow.job.sections import Job
from seqflow.loader import Loader, Packed, Rows, TokenBudget
from seqflow.loader.batching import planned_lengths
from seqflow.net import Net, NetInference
from seqflow.record import Record, from_arrow
from seqflow.shape import Dimension
from seqflow.signature import Described
from seqflow.signature import Rows as RowSpace
from seqflow.tensor import TensorSpec

Specs = dict[str, TensorSpec]


@dataclass(frozen=True, slots=True)
class Check:
    """What a job comes to: the tensors of its source, of its nets and of its batches."""

    source: Specs
    prepare: NetInference | None
    batch: Specs
    net: NetInference | None

    def __str__(self) -> str:
        parts = [("source", _listed(self.source))]
        if self.prepare is not None:
            parts.append(("prepare", str(self.prepare)))
        parts.append(("batch", _listed(self.batch)))
        if self.net is not None:
            parts.append(("net", str(self.net)))
        return "\n\n".join(f"[{name}]\n{text}" for name, text in parts)


def check(job: Job) -> Check:
    """Infer every tensor of a job; the errors are those of `run`, before any data is read.

    Behind a `prepare` that is a Python function nothing is known, so jobs in Python are checked up to there.
    """
    loader = open_loader(job)
    source = source_specs(loader)
    rows, prepared = source, None
    if isinstance(loader.prepare, Net):
        prepared = loader.prepare.infer(source)
        rows = {name: prepared.specs[name] for name in loader.prepare.outputs(tuple(source))}
    batch = batch_specs(rows, loader)
    net = loader.net.infer(batch) if isinstance(loader.net, Net) else None
    check_declared_lengths(loader, source)
    return Check(source, prepared, batch, net)


def source_specs(loader: Loader) -> Specs:
    """The tensors that blocks of the source become."""
    empty = loader.source.schema.empty_table()
    record = from_arrow(empty, columns=loader.columns, fill=loader.fill, valid=loader.valid)
    return _specs(record, Dimension.symbol("rows", 0, loader.num_rows), {})


def batch_specs(rows: Specs, loader: Loader) -> Specs:
    """The tensors of a batch of these rows."""
    parents = {
        name: spec.rows.by if isinstance(spec.rows, Described) and spec.rows.by in rows else None
        for name, spec in rows.items()
    }
    plan = loader.batch
    name = planned_lengths(_empty(rows, parents), plan.lengths)
    if isinstance(plan, Packed):
        return {} if name is None else _packed(rows, parents, plan, name)
    most = plan.n if isinstance(plan, Rows) else plan.max_rows
    totals = {name: plan.max_tokens} if isinstance(plan, TokenBudget) and name is not None else {}
    return _specs(_empty(rows, parents), Dimension.symbol("batch", 0, most), totals)


def _specs(record: Record, own: Dimension, totals: Mapping[str, int]) -> Specs:
    """The specs of a record's tensors, whatever its number of rows; `totals` bounds sums of lengths."""
    space = RowSpace("the record")
    return {
        name: TensorSpec(
            tensor.dtype,
            [own if parent is None else Dimension.sum_of(parent, 0, totals.get(parent)), *tensor.shape[1:]],
            space if parent is None else Described(parent),
        )
        for (name, tensor), parent in zip(record.items(), record.parents.values(), strict=True)
    }


def _empty(rows: Specs, parents: Mapping[str, str | None]) -> Record:
    """A record without rows that has these tensors; sizes that are not known become 0."""
    import numpy as np

    tensors = {
        name: np.empty([0, *(d.min_length for d in (spec.shape.dimensions or ())[1:])], spec.dtype)
        for name, spec in rows.items()
    }
    return Record(tensors, dict(parents), 0)


def _packed(rows: Specs, parents: Mapping[str, str | None], plan: Packed, lengths: str) -> Specs:
    space, own = RowSpace("the packed rows"), Dimension.symbol("rows", 0, plan.rows)
    specs = {
        name.removesuffix(".values"): TensorSpec(
            rows[name].dtype, [own, plan.capacity, *(rows[name].shape.dimensions or ())[1:]], space
        )
        for name, parent in parents.items()
        if parent == lengths
    }
    for name in ("segment_ids", "position_ids"):
        specs[name] = TensorSpec("int32", [own, plan.capacity], space)
    specs["pieces"] = TensorSpec("int64", [own], space)
    for name in ("piece_lengths", "sources"):
        specs[name] = TensorSpec("int64", [Dimension.sum_of("pieces")], Described("pieces"))
    return specs


def _listed(specs: Specs) -> str:
    return "\n".join(f"{name}  {spec}" for name, spec in specs.items())
