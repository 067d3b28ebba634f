"""Infer dtypes, shapes and bounds of a job's tensors from schemas and footers, without reading rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from seqflow.byte_sizes import format_bytes
from seqflow.job.source_bounds import SourceBounds
from seqflow.job.step_totals import total_columns
from seqflow.loader import BatchPlan, Loader
from seqflow.loader.plans.shares import lists_of, shared
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.loader.run.pipeline import empty_source
from seqflow.net import Net, NetInference
from seqflow.printable import printable_line
from seqflow.record import Record
from seqflow.shape import Dimension, DimensionLike
from seqflow.signature import Described, OwnRows, Positions
from seqflow.tensor import TensorSpec

Specs = dict[str, TensorSpec]
Limits = dict[DimensionLike, int]


@dataclass(frozen=True, slots=True)
class JobSpecs:
    """Dtypes and shapes of a job's tensors: of its source, its nets and its batches."""

    source: Specs
    prepare: NetInference | None
    batch: Specs
    net: NetInference | None
    totals: Mapping[str, np.dtype[Any]] = field(default_factory=dict)
    """Columns with the totals of steps, and their dtypes."""
    name: str = ""
    """Name of the source in a mix."""

    def __str__(self) -> str:
        parts = [(f"source {self.name}".rstrip(), _listed(self.source))]
        if self.prepare is not None:
            parts.append(("prepare", str(self.prepare)))
        parts.append(("batch", _listed(self.batch)))
        if self.net is not None:
            parts.append(("net", str(self.net)))
        if self.totals:
            columns = (f"{printable_line(name)}  {dtype}[rows]" for name, dtype in self.totals.items())
            parts.append(("totals", "\n".join(columns)))
        return "\n\n".join(f"[{name}]\n{text}" for name, text in parts)

    def facts(self) -> dict[str, Any]:
        """Return the type of each tensor and the most bytes that it can have, for JSON; None where they have no
        bound.
        """
        nets = {"prepare": self.prepare, "net": self.net}
        parts = {
            "source": self.source,
            **{key: one.specs for key, one in nets.items() if one},
            "batch": self.batch,
        }
        tensors = {
            part: {key: {"type": str(one), "bytes": one.byte_bound} for key, one in specs.items()}
            for part, specs in parts.items()
        }
        return {"name": self.name, **tensors, "totals": {key: str(one) for key, one in self.totals.items()}}


def infer(loader: Loader, name: str = "") -> JobSpecs:
    """Infer every tensor of a job, or of one source of its mix."""
    bounds = SourceBounds.of(loader)
    source = source_specs(loader, bounds)
    rows, prepared = source, None
    longest: Mapping[str, int] = {}
    if isinstance(loader.prepare, Net):
        prepared = loader.prepare.infer(source)
        rows = prepared.among(loader.prepare.outputs(tuple(source)))
        longest = prepared.longest
    batch, limits = batch_specs(rows, loader, longest, bounds)
    net = loader.net.infer(batch, limits) if isinstance(loader.net, Net) else None
    return JobSpecs(source, prepared, batch, net, total_columns(loader), name)


def source_specs(loader: Loader, bounds: SourceBounds) -> Specs:
    """Return the tensors of a block of the source."""
    record = empty_source(loader.recipe)
    rows = {name: TensorSpec.of(tensor) for name, tensor in record.items()}
    specs = _specs(rows, record.parents, Dimension.symbol("rows", 0, bounds.block.get("rows")))
    return dict(Net("").infer(specs, bounds.limits(specs)).specs)


def batch_specs(
    rows: Specs, loader: Loader, longest: Mapping[str, int], bounds: SourceBounds
) -> tuple[Specs, Limits]:
    """Return the tensors of a batch of these rows, and upper bounds of further sizes.

    `longest` has upper bounds of the lengths of rows, which also hold for the lengths in a batch. No batch
    holds more than all blocks of the source together.
    """
    parents = {
        name: spec.rows.by if isinstance(spec.rows, Described) and spec.rows.by in rows else None
        for name, spec in rows.items()
    }
    plan, empty = loader.batch, _empty(rows, parents, loader.source.schema)
    name = loader.recipe.planned_lengths(empty)
    most, sums = _totals(rows, parents, bounds)
    of_batch = plan.limits(None if name is None else sums.get(name), None if plan.splits_rows else most)
    own = Dimension.symbol("batch" if plan.packed_capacity is None else "rows", 0, of_batch.rows)
    batch = shared(plan.of_window(WindowRows((empty,)), name).empty(), loader.recipe.shares)
    limits: Limits = {Dimension.max_of(of): size for of, size in of_batch.longest.items()}
    limits |= {Dimension.max_of(of): size for of, size in longest.items() if of in rows}
    if not plan.splits_rows:
        limits |= {Dimension.sum_of(of): size for of, size in sums.items()}
    if name is not None and of_batch.tokens is not None:
        limits[Dimension.sum_of(name)] = of_batch.tokens
    if name is not None and of_batch.cells is not None:
        limits[own * Dimension.max_of(name)] = of_batch.cells
    return dict(Net("").infer(_batch_specs(batch, rows, own, plan, of_batch.rows), limits).specs), limits


def _totals(
    rows: Specs, parents: Mapping[str, str | None], bounds: SourceBounds
) -> tuple[int | None, dict[str, int]]:
    """Return upper bounds of the rows of all blocks together, and of the sum of each lengths tensor."""
    own: int | None = None
    sums: dict[str, int] = {}
    for name, parent in parents.items():
        most = bounds.over_all_blocks(rows[name].shape[0]) if rows[name].shape.dimensions else None
        if most is not None and parent is None:
            own = most if own is None else min(own, most)
        elif most is not None and parent is not None:
            sums[parent] = min(most, sums.get(parent, most))
    return own, sums


def _specs(rows: Specs, parents: Mapping[str, str | None], own: Dimension) -> Specs:
    """Return the specs of a record with `own` rows."""
    space = OwnRows("the record")
    return {
        name: TensorSpec(
            spec.dtype,
            [own if parent is None else Dimension.sum_of(parent), *_inner(name, spec)],
            space if parent is None else Described(parent),
            points=_points(spec.points, rows),
        )
        for (name, spec), parent in zip(rows.items(), parents.values(), strict=True)
    }


def _batch_specs(batch: Record, rows: Specs, own: Dimension, plan: BatchPlan, most_rows: int | None) -> Specs:
    """Return the specs of a batch with `own` rows: tensors of rows, packed columns, and the tensors that
    packing makes.
    """
    is_packed, specs = plan.packed_capacity is not None, {}
    space = OwnRows("the packed rows" if is_packed else "the record")
    of_lists = {index: OwnRows(index) for index in batch.shares.values()}
    for name, tensor in batch.items():
        parent, points = batch.parents[name], None
        source = name if name in rows else f"{name}.values"
        if name in rows and not is_packed:
            points = _points(rows[name].points, {} if plan.splits_rows else rows)
        inner = _inner(source, rows[source]) if source in rows else []
        made = tensor.shape[1 : tensor.ndim - len(inner)]
        shape = [own if parent is None else Dimension.sum_of(parent), *made, *inner]
        held = space if parent is None else Described(parent)
        if name in batch.shares:
            held, shape[0] = of_lists[batch.shares[name]], lists_of(batch.shares[name], most_rows)
        specs[name] = TensorSpec(tensor.dtype, shape, held, points=of_lists.get(name, points))
    return specs


def _points(before: Any, rows: Specs) -> Any:
    """Return the target of the indices of a window in a batch, whose rows differ; positions keep their target."""
    if before is None or (isinstance(before, Positions) and before.inside in rows):
        return before
    return OwnRows("a window before batches were made")


def _inner(name: str, spec: TensorSpec) -> list[Dimension]:
    """Return the trailing sizes of a tensor; unknown sizes become symbols with the same bounds, as batches may
    differ.
    """
    return [
        size if size.is_static else Dimension.axis_of(name, axis, size.min_length, size.max_length)
        for axis, size in enumerate(spec.shape.dimensions or ())
    ][1:]


def _empty(rows: Specs, parents: Mapping[str, str | None], schema: pa.Schema) -> Record:
    """Return a record of these tensors without rows; unknown sizes become their lower bound."""
    tensors = {
        name: np.empty([0, *(d.min_length for d in (spec.shape.dimensions or ())[1:])], spec.dtype)
        for name, spec in rows.items()
    }
    return Record(tensors, dict(parents), 0, schema)


def _listed(specs: Specs) -> str:
    return "\n".join(
        f"{printable_line(name)}  {spec} ≤ {format_bytes(spec.byte_bound)}" for name, spec in specs.items()
    )
