"""Steps of a net that only pad list columns of its batches: rows are padded as they are gathered, not after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from seqflow.errors import OpError
from seqflow.loader.plans.plan import BatchPlan, WindowBatches
from seqflow.loader.plans.window_rows import Pad, PaddedColumn, StepPads
from seqflow.net import Net, Step
from seqflow.net.syntax import Reference
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.record.row_source import RowSource

_ATTRIBUTES = ("fill", "side", "multiple_of", "max_length", "truncate")


def padded_early(batches: WindowBatches, net: Net) -> tuple[WindowBatches, tuple[int, ...]]:
    """Return batches that have the results of the steps of `net` that only pad, and the numbers of these steps.

    Batches that are views of the rows, packed, cut, or padded themselves, are padded by the net.
    """
    rows = batches.rows
    if not rows.records or rows.pads or batches.columns or batches.first is not None:
        return batches, ()
    if (batches.is_whole and rows.order is None) or type(batches.plan).record is not BatchPlan.record:
        return batches, ()
    found = step_pads(net, rows.source)
    return (replace(batches, rows=rows.padded_by(found.columns)) if found.steps else batches), found.steps


def step_pads(net: Net, source: RowSource) -> StepPads:
    """Return the steps that pad a list column of numbers of `source`, if nothing else reads its values."""
    uses = [name for step in net.steps for name in step.uses] + [*(net.returned or ())]
    own = {*source.parents} - {*net.assigned, *net.constants}
    found = [
        (number, column)
        for number, step in enumerate(net.steps)
        if step.op.name == "pad" and (column := _column(step, source, own)) is not None
        if uses.count(column.values) == 1
    ]
    return StepPads(tuple(number for number, _ in found), tuple(column for _, column in found))


def _column(step: Step, source: RowSource, own: set[str]) -> PaddedColumn | None:
    """Return what a step pads; None unless it is a list column that a batch may have padded."""
    values, lengths = step.inputs["data"], step.inputs["lengths"]
    if not (isinstance(values, Reference) and isinstance(lengths, Reference)):
        return None
    if not {values.name, lengths.name} <= own or values.name in source.offsets:
        return None
    if source.parents[values.name] != lengths.name or source.parents[lengths.name] is not None:
        return None
    padded, mask = step.results
    dtype, given = source.chunks[values.name].dtype, step.attributes
    if dtype.kind not in "biuf" or {padded, mask} & {*source.parents} or padded == "_":
        return None
    options: dict[str, Any] = {name: given[name] for name in _ATTRIBUTES}
    try:
        pad = Pad(**options, mask=mask != "_")
        fill = cast_scalar("fill", pad.fill, dtype)
    except OpError:  # what a Pad refuses, the op takes, or refuses in its own words
        return None
    return PaddedColumn(values.name, lengths.name, padded, pad, dtype, fill, mask, None)
