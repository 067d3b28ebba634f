"""Repair a damaged output: make its damaged parts again, each from the batches that it held."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from seqflow.errors import JobError
from seqflow.job.mixed import mixed_batches
from seqflow.job.step_totals import empty_batch, with_totals
from seqflow.loader import Loader, Mix, Stats
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.order.windows import Parts
from seqflow.loader.parts import make_parts
from seqflow.loader.run.ledger import BadRowHandler
from seqflow.output import Batches, OutputFile, OutputWriter
from seqflow.output.target import Target
from seqflow.record import Record


def check_complete(target: Target, manifest: Mapping[str, Any], *, resume: bool) -> list[OutputFile]:
    """Return the damaged files of a complete output; raise JobError when they cannot be repaired, or `resume`
    is not given.
    """
    damaged = target.damaged_files(manifest)
    if damaged and target.names.is_file:
        raise JobError(
            f"output: {target.shown!r} is not as this job has written it: something else has changed it\n"
            "  --overwrite replaces it; or choose another output"
        )
    if damaged and not resume:
        raise JobError(
            f"output: parts of {target.shown!r} are gone, or not as this job has written them: "
            f"{_listed(damaged, target)}\n  --resume makes these again, --overwrite begins again"
        )
    return damaged


def _listed(files: Sequence[OutputFile], target: Target) -> str:
    names = [repr(target.names.name_of(file)) for file in files]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def is_repairable(loader: EpochBatches, files: Sequence[OutputFile], record: Mapping[str, Any]) -> bool:
    """Return whether each file holds consecutive batches that this job would make with the same content."""
    place = "members" if isinstance(loader, Mix) else "part"
    has_places = all(file.batches is not None and place in file.batches.start for file in files)
    return not files or (has_places and not record.get("changes"))


def repair_output(
    loader_of: Callable[[int], EpochBatches],
    output: OutputWriter,
    bad_rows: BadRowHandler,
    files: Sequence[OutputFile],
    pieces: Sequence[OutputFile],
    plan: Callable[[], Parts],
) -> None:
    """Write damaged files of an output again, and damaged pieces of its quarantine file.

    `loader_of` returns the loader of the first run, number 0, and of each append.
    """
    # parts without batches begin with the same batch as the next one
    spans = {
        tuple(file.batches.start.get(key, 0) for key in ("append", "batch", "part")): file.batches
        for file in (*files, *pieces)
        if file.batches
    }
    for _, batches in sorted(spans.items()):
        piece = next((piece for piece in pieces if piece.batches == batches), None)
        loader = loader_of(batches.start.get("append", 0))
        records = _batches(loader, batches, bad_rows.again(piece), plan())
        if any(file.batches == batches for file in files):
            output.write_again(batches, records)
        else:
            # only the piece of bad rows is damaged: it is written while the batches are made
            for _ in records:
                pass
        if piece is not None:
            bad_rows.file.commit(batches)


def _batches(loader: EpochBatches, span: Batches, bad_rows: BadRowHandler, plan: Parts) -> Iterator[Record]:
    """Yield the batches of a file; one without rows if the job has none."""
    loader.load_state_dict({**loader.state_dict(), **span.start})
    stats = Stats()
    if not isinstance(loader, Loader):
        with mixed_batches(loader, bad_rows, stats) as mixed:
            yield from _until(with_totals(mixed), loader, span.stop)
    else:
        with closing(make_parts(loader, plan, span.start["part"], bad_rows, stats)) as parts:
            yield from with_totals(next(parts))
    if not stats.batches and (empty := empty_batch(loader)) is not None:
        yield empty


def _until(batches: Iterator[Record], loader: EpochBatches, stop: int | None) -> Iterator[Record]:
    """Yield the batches up to a place of the loader."""
    for batch in batches:
        yield batch
        if loader.place.batch == stop:
            return
