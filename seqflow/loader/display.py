"""What a loader knows of its epoch before it reads rows, as lines of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from seqflow.byte_sizes import format_bytes
from seqflow.errors import SeqflowError
from seqflow.loader.epoch.state import Place
from seqflow.loader.run.pipeline import Pipeline
from seqflow.loader.run.stats import Stats

_UNKNOWN = "not known before reading"


class Displayed(Protocol):
    """The interface of a Loader that display uses."""

    pipeline: Pipeline
    index: Path | None

    @property
    def place(self) -> Place: ...
    def stats(self) -> Stats: ...


def known_of(loader: Displayed) -> list[tuple[str, str]]:
    """Name and value of each fact. No row is read for it, no index made, and no block of a stream taken."""
    recipe = loader.pipeline.recipe
    source = recipe.source
    where = [] if source.where is None else [("where", source.where.text)]
    lines = [("source", f"{source.kind}, {source.origin}"), *where]
    try:
        rows = None if source.where is not None else source.num_rows
        return [
            *lines,
            ("rows", _UNKNOWN if rows is None else f"{rows:,}"),
            ("windows", _windows(loader)),
            ("batches", _batches(loader)),
            ("fill", _fill(loader)),
        ]
    except (SeqflowError, OSError) as error:
        return [*lines, ("plan", f"not known: {str(error).partition(chr(10))[0]}")]


def _windows(loader: Displayed) -> str:
    recipe = loader.pipeline.recipe
    each = f"up to {format_bytes(recipe.window)} each"
    if recipe.source.is_stream:
        return f"{_UNKNOWN} the stream, {each}"
    if not _lists_at_once(loader.pipeline):
        return f"{_UNKNOWN}, {each}"
    windows = recipe.windows(loader.pipeline.listing.slices(), loader.place.epoch)
    return f"{len(windows):,} of {format_bytes(int(windows.nbytes.sum()))}, {each}"


def _batches(loader: Displayed) -> str:
    pipeline = loader.pipeline
    if pipeline.recipe.steps_per_epoch is None:
        if not _lists_at_once(pipeline):
            return _UNKNOWN
        if not _has_index(loader) and (loader.index is not None and not pipeline.counts_rows):
            return f"{_UNKNOWN}: the first epoch makes the index"
    total = pipeline.num_batches(loader.place.epoch)
    if total is None:
        return f"{_UNKNOWN}: there is no index"
    ranks = pipeline.deal.ranks
    each = f", {ranks.rounds(total):,} for each of {ranks.world_size} ranks" if ranks.world_size > 1 else ""
    return f"{total:,}{each}"


def _fill(loader: Displayed) -> str:
    """That of the batches so far; before there are any that of the first window, by the index."""
    stats, pipeline = loader.stats(), loader.pipeline
    if stats.fill is not None:
        return f"{stats.fill:.2%} of the batches of the last iteration"
    if not _has_index(loader) or not _lists_at_once(pipeline):
        return _UNKNOWN
    epoch = loader.place.epoch
    windows = pipeline.recipe.windows(pipeline.listing.slices(), epoch)
    index = pipeline.lengths_index(anew=False)
    fill = index.fill(pipeline.recipe, windows[0], epoch) if len(windows) else None
    return _UNKNOWN if fill is None else f"about {fill:.2%}, that of the first window"


def _has_index(loader: Displayed) -> bool:
    return loader.index is not None and loader.index.exists()


def _lists_at_once(pipeline: Pipeline) -> bool:
    """Whether blocks are listed by metadata alone: filters look at rows, and so do formats that do not count them."""
    source = pipeline.recipe.source
    counted = source.where is None and not source.is_stream and source.num_rows is not None
    return counted or pipeline.listing.is_known
