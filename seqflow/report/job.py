"""What a report says of a job: what it would make, and what a sample of it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from seqflow import executor
from seqflow.byte_sizes import format_bytes
from seqflow.drawing.packed import packed_rows
from seqflow.drawing.svg import INLINE
from seqflow.executor import Profile
from seqflow.job import Job
from seqflow.job.checking import check
from seqflow.job.opening import open_loader
from seqflow.job.planning import plan
from seqflow.loader import Loader
from seqflow.loader.run.bad_rows import BadRows
from seqflow.loader.run.window_costs import window_tokens
from seqflow.net import Net
from seqflow.record import Record, from_arrow
from seqflow.report.nets import sections_of_specs
from seqflow.report.page import code, drawing, section, table
from seqflow.report.ranks import imbalance_of_ranks
from seqflow.report.source import examples

_BATCHES = 32


def sections_of_job(job: Job) -> Iterator[str]:
    """Nets, shapes and byte bounds, sizes of the run, the steps of `prepare` on a block, ranks, the first batches."""
    yield from sections_of_specs(check(job))
    yield section("The run", table(("size", "is"), plan(job).lines()))
    loader = open_loader(job if job.bad_rows.path is None else replace(job, bad_rows=BadRows("skip")))
    steps = _steps(loader)
    if steps:
        yield section("Steps of prepare on the first block", table(("step", "seconds", "bytes"), steps))
    yield from _ranks(loader)
    yield from _sample(loader)


def _steps(loader: Loader) -> list[tuple[str, str, str]]:
    """The cost of each op of `prepare`; none where a Python function prepares, or nothing does."""
    recipe = loader.pipeline.recipe
    block = next(iter(recipe.source.blocks()), None)
    if block is None or not isinstance(recipe.prepare, Net):
        return []
    rows = from_arrow(recipe.source.read(block), columns=recipe.columns, fill=recipe.fill, valid=recipe.valid)
    profile = Profile()
    executor.run(recipe.prepare, rows, profile)
    return [(row.statement, f"{row.seconds:.6f}", format_bytes(row.bytes)) for row in profile.rows]


def _ranks(loader: Loader) -> Iterator[str]:
    """The tokens of ranks in the first window; none where batches are planned on no column."""
    recipe = loader.recipe
    windows = recipe.windows(recipe.planned_slices(), 0)
    if not len(windows):
        return
    tokens = window_tokens(loader.window_maker().make(windows[0], 0), recipe)
    if tokens.any():
        by = "as they come" if recipe.batch.balance is None else f"dealt by {recipe.batch.balance}"
        dealt = f"of {len(tokens):,} batches of the first window, {by}"
        yield section("Tokens of ranks", imbalance_of_ranks(tokens, dealt))


def _sample(loader: Loader) -> Iterator[str]:
    batches = iter(loader)
    first: Record | None = None
    for batch in islice(batches, _BATCHES):
        first = batch if first is None else first
    stats = loader.stats()
    batches.close()
    if first is None:
        return
    lines = [
        ("batches", stats.batches), ("rows", stats.rows), ("tokens", stats.tokens),
        ("fill", "-" if stats.fill is None else f"{stats.fill:.2%}"),
        ("bad rows", stats.bad_rows), ("rows left out", stats.skipped),
        *([("imbalance of ranks", f"{stats.costs.imbalance:.4f}")] if stats.costs.steps else []),
        ("seconds reading", f"{stats.seconds_reading:.3f}"),
        ("seconds preparing", f"{stats.seconds_preparing:.3f}"),
        ("seconds planning", f"{stats.seconds_planning:.3f}"),
        ("seconds making batches", f"{stats.seconds_making:.3f}"),
    ]  # fmt: skip
    yield section(f"The first {stats.batches} batches", table(("of them", "is"), lines))
    yield section("The first batch", code(repr(first)), _picture(first), examples(first))


def _picture(batch: Record) -> str:
    ids = batch.get("segment_ids")
    return "" if ids is None or ids.ndim != 2 or not ids.size else drawing(packed_rows(ids, INLINE))
