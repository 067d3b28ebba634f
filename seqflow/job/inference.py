"""Infer dtypes, shapes and bounds of a job's tensors from schemas and footers, without reading rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from seqflow.byte_sizes import format_bytes
from seqflow.job.source_bounds import SourceBounds
from seqflow.job.step_totals import total_columns
from seqflow.loader import Buckets, Loader, Packed, Rows, TokenBudget
from seqflow.loader.plans.packed import most_rows, packed_columns
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.net import Net, NetInference
from seqflow.printable import printable_line
from seqflow.record import Record, from_arrow
from seqflow.shape import Dimension, DimensionLike
from seqflow.signature import Described, OwnRows, Positions
from seqflow.tensor import TensorSpec

Specs = dict[str, TensorSpec]
Limits = dict[DimensionLike, int]


@dataclass(frozen=True, slots=True)
class JobSpecs:
    """Dtypes and shapes of a job's tensors: those of its source, its nets and its batches."""

    source: Specs
    prepare: NetInference | None
    batch: Specs
    net: NetInference | None
    totals: Mapping[str, np.dtype[Any]] = field(default_factory=dict)
    """Columns with the totals of steps, and their dtypes."""
    name: str = ""
    """That of the source, in a mix."""

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
    """The tensors of a block of the source."""
    empty = loader.source.schema.empty_table()
    record = from_arrow(empty, columns=loader.columns, fill=loader.fill, valid=loader.valid)
    rows = {name: TensorSpec.of(tensor) for name, tensor in record.items()}
    specs = _specs(rows, record.parents, Dimension.symbol("rows", 0, bounds.block.get("rows")))
    return dict(Net("").infer(specs, bounds.limits(specs)).specs)


def batch_specs(
    rows: Specs, loader: Loader, longest: Mapping[str, int], bounds: SourceBounds
) -> tuple[Specs, Limits]:
    """The tensors of a batch of these rows, and upper bounds of further sizes.

    `longest` has upper bounds of the lengths of rows, which hold for the lengths in a batch, too. No batch holds
    more than all blocks of the source together.
    """
    parents = {
        name: spec.rows.by if isinstance(spec.rows, Described) and spec.rows.by in rows else None
        for name, spec in rows.items()
    }
    plan = loader.batch.plan if isinstance(loader.batch, Buckets) else loader.batch
    empty = _empty(rows, parents, loader.source.schema)
    name = loader.recipe.planned_lengths(empty)
    limits: Limits = {Dimension.max_of(other): longest[other] for other in rows if other in longest}
    total, sums = _totals(rows, parents, bounds)
    if isinstance(plan, Packed):
        most = plan.rows if name not in sums else min(plan.rows, most_rows(sums[name], plan.capacity))
        own = Dimension.symbol("rows", 0, most)
        specs = {} if name is None else _packed(rows, empty, plan, name, own)
        limits |= {Dimension.max_of(of): plan.capacity for of in ("pieces", "piece_lengths")}
    else:
        splits = isinstance(plan, TokenBudget) and plan.oversize == "split"  # one row makes several
        total, sums = (None, {}) if splits else (total, sums)
        own = Dimension.symbol("batch", 0, plan.n if isinstance(plan, Rows) else plan.max_rows or total)
        specs = _specs(_cut(rows) if splits else rows, parents, own)
        limits |= {Dimension.sum_of(other): most for other, most in sums.items()}
        limits |= _planned(plan, own, name, sums)
    return dict(Net("").infer(specs, limits).specs), limits


def _totals(
    rows: Specs, parents: Mapping[str, str | None], bounds: SourceBounds
) -> tuple[int | None, dict[str, int]]:
    """Upper bounds of the rows of all blocks together, and of the sum of each lengths tensor."""
    own: int | None = None
    sums: dict[str, int] = {}
    for name, parent in parents.items():
        most = bounds.over_all_blocks(rows[name].shape[0]) if rows[name].shape.dimensions else None
        if most is not None and parent is None:
            own = most if own is None else min(own, most)
        elif most is not None and parent is not None:
            sums[parent] = min(most, sums.get(parent, most))
    return own, sums


def _planned(plan: Rows | TokenBudget, own: Dimension, name: str | None, sums: Mapping[str, int]) -> Limits:
    """Upper bounds that a plan sets on its lengths."""
    if name is None or isinstance(plan, Rows):
        return {}
    limits: Limits = {Dimension.sum_of(name): min(plan.max_tokens, sums.get(name, plan.max_tokens))}
    return limits | ({own * Dimension.max_of(name): plan.max_tokens} if plan.padded else {})


def _specs(rows: Specs, parents: Mapping[str, str | None], own: Dimension) -> Specs:
    """The specs of a record of `own` such rows."""
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


def _cut(rows: Specs) -> Specs:
    """The specs of rows that a plan may split: the targets of their positions are unknown afterwards."""
    return {
        name: TensorSpec(
            spec.dtype, spec.shape, spec.rows, points=spec.points and OwnRows("rows that were cut")
        )
        for name, spec in rows.items()
    }


def _points(before: Any, rows: Specs) -> Any:
    """The target of the indices of a window in a batch, whose rows are others; positions keep theirs."""
    if before is None or (isinstance(before, Positions) and before.inside in rows):
        return before
    return OwnRows("a window before batches were made")


def _inner(name: str, spec: TensorSpec) -> list[Dimension]:
    """The trailing sizes of a tensor; unknown ones become symbols with the same bounds, since batches may differ."""
    return [
        size if size.is_static else Dimension.axis_of(name, axis, size.min_length, size.max_length)
        for axis, size in enumerate(spec.shape.dimensions or ())
    ][1:]


def _empty(rows: Specs, parents: Mapping[str, str | None], schema: pa.Schema) -> Record:
    """A record of these tensors without rows; unknown sizes become their lower bound."""
    tensors = {
        name: np.empty([0, *(d.min_length for d in (spec.shape.dimensions or ())[1:])], spec.dtype)
        for name, spec in rows.items()
    }
    return Record(tensors, dict(parents), 0, schema)


def _packed(rows: Specs, empty: Record, plan: Packed, lengths: str, own: Dimension) -> Specs:
    """The specs of packed rows: `pieces` counts the pieces of each, of which other columns have a row each."""
    space = OwnRows("the packed rows")
    packed = packed_columns(plan, WindowRows((empty,)), lengths)
    specs = {
        column.name: TensorSpec(
            rows[column.tensor].dtype,
            [own, plan.capacity, *_inner(column.tensor, rows[column.tensor])],
            space,
        )
        for column in packed
    }
    for name in ("segment_ids", "position_ids"):
        specs[name] = TensorSpec("int32", [own, plan.capacity], space)
    for name in ("pieces", "window"):
        specs[name] = TensorSpec("int64", [own], space)
    for name in ("piece_lengths", "sources"):
        specs[name] = TensorSpec("int64", [Dimension.sum_of("pieces")], Described("pieces"))
    cut = {name for column in packed for name in (column.tensor, column.lengths)}
    for name, parent in empty.parents.items():
        if name not in cut:
            by = parent or "pieces"
            sizes = [Dimension.sum_of(by), *_inner(name, rows[name])]
            specs[name] = TensorSpec(rows[name].dtype, sizes, Described(by))
    return specs


def _listed(specs: Specs) -> str:
    return "\n".join(
        f"{printable_line(name)}  {spec} ≤ {format_bytes(spec.byte_bound)}" for name, spec in specs.items()
    )
