"""Sizes of a run, counted from footers and indexes, or estimated from one window, before the run."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from seqflow.byte_sizes import format_bytes
from seqflow.errors import asked_by
from seqflow.job.checking import refuse
from seqflow.job.job import Job
from seqflow.job.opening import open_job_output, open_loader
from seqflow.loader import Loader
from seqflow.loader.order.windows import Windows
from seqflow.loader.plans.balance import StepCosts
from seqflow.loader.plans.balanced_pools import window_costs
from seqflow.loader.plans.shares import shared
from seqflow.loader.run.windows import OpenWindow, WindowMaker
from seqflow.record import to_arrow
from seqflow.record.to_arrow import plain_lists


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of a run. All except windows and bytes are estimates if `is_estimate` is true."""

    windows: int
    rows: int | None
    """Rows of the source; None if its format does not record them."""
    bytes: int
    """Bytes of the source in memory."""
    batches: int
    is_estimate: bool
    """Whether batches are estimated from those of the first window."""
    fill: float | None
    """Share of elements of the first window that are tokens."""
    output_bytes: int
    """Arrow bytes of all batches, estimated from one batch."""
    memory: int
    """Largest memory of windows at one time in bytes, estimated from the first window."""
    split: int = 0
    """Number of rows of the first window of which batches have several pieces."""
    sort_by: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    costs: StepCosts | None = None
    """Costs of the ranks in the steps of the first window, if the plan has a balance."""

    def lines(self) -> list[tuple[str, str]]:
        about = "about " if self.is_estimate else ""
        return [
            ("windows", f"{self.windows:,}"),
            ("rows", "not known before reading" if self.rows is None else f"{self.rows:,}"),
            ("input", format_bytes(self.bytes)),
            ("batches", f"{about}{self.batches:,}"),
            ("fill", "-" if self.fill is None else f"about {self.fill:.2%}"),
            *([("rows split", f"{self.split:,} in the first window")] if self.split else ()),
            ("output", f"about {format_bytes(self.output_bytes)} of Arrow data"),
            ("memory", f"about {format_bytes(self.memory)} of windows"),
            *([("sorted by", ", ".join(self.sort_by))] if self.sort_by else ()),
            *([("folders by", ", ".join(self.partition_by))] if self.partition_by else ()),
            *(() if self.costs is None else _of_costs(self.costs)),
        ]


def _of_costs(costs: StepCosts) -> list[tuple[str, str]]:
    """Return how much more than the mean the most expensive rank costs, and how to lower it."""
    if not costs.steps:
        return [("imbalance", "not known: the first window has no whole step")]
    above = f"; {costs.above_share:,} rows cost more than a rank's share" if costs.above_share else ""
    return [
        ("imbalance", f"{costs.imbalance:.4f}, undealt {costs.imbalance_undealt:.4f}{above}"),
        (
            "its bound",
            f"at most {costs.bound(1):.4f} with pool = 1, 1.02 with pool = {costs.pool_for(1.02)}",
        ),
    ]


@asked_by("job")
def plan(job: Job) -> Plan:
    """Plan a run of the job. Read one window at most, and write nothing.

    Raise the errors that the run would raise up to that point.
    """
    loader = open_loader(job.without_rules())
    output = refuse(job, loader)[1] or open_job_output(job)
    arranged: dict[str, Any] = {
        "sort_by": tuple(str(key) for key in output.arrangement.sort_by),
        "partition_by": output.arrangement.partition_by,
    }
    recipe, maker = loader.recipe, loader.pipeline.window_maker()
    slices = recipe.planned_slices()
    windows = Windows.cut(slices, None, loader.window)
    size = int(windows.nbytes.sum())
    if not len(windows):
        return Plan(0, 0, 0, 0, False, None, 0, 0, **arranged)
    counted = _counted(loader)
    first = maker.make(recipe.windows(slices, 0)[0], 0)
    sizes = [first.batches.size(number) for number in range(len(first.batches))]
    cells = sum(one.cells for one in sizes)
    share = size / first.window.nbytes if first.window.nbytes else len(windows)
    batches = counted if counted is not None else round(len(first.batches) * share)
    rows = windows.rows
    growth = first.rows.nbytes / max(1, first.window.nbytes)
    return Plan(
        windows=len(windows),
        rows=None if rows is None else int(rows.sum()),
        bytes=size,
        batches=batches,
        is_estimate=counted is None,
        fill=sum(one.tokens - one.shared for one in sizes) / cells if cells else None,
        output_bytes=_batch_bytes(job, maker, first) * batches,
        memory=_memory(loader, windows, growth),
        costs=window_costs(first.batches),
        split=int((np.bincount(first.batches.pieces.rows) > 1).sum()),
        **arranged,
    )


def _counted(loader: Loader) -> int | None:
    """Return the number of batches; None if it is not known without reading rows."""
    if loader.index is not None and not loader.index.exists():
        return None
    try:
        return len(loader)
    except TypeError:
        return None


def _batch_bytes(job: Job, maker: WindowMaker, window: OpenWindow) -> int:
    """Return the Arrow bytes that are written of the first batch of a window."""
    if not len(window.batches) or job.output.kind == "none":
        return 0
    batch = shared(window.batches.make(0), maker.recipe.shares)
    if maker.recipe.net is not None:
        batch = maker.net_of(window.window.number, 0, 0)(batch)
    table = plain_lists(to_arrow(batch))
    return int(table.select(list(job.output.columns)).nbytes if job.output.columns else table.nbytes)


def _memory(loader: Loader, windows: Windows, growth: float) -> int:
    largest, total = int(windows.nbytes.max()), int(windows.nbytes.sum())
    return int(min(total * growth, max(loader.memory, largest * growth)))
