"""The part of a report about a job: its plan, and a sample of its batches."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from seqflow.byte_sizes import format_bytes
from seqflow.errors import ProviderError
from seqflow.job import Job
from seqflow.job.checking import check_tables
from seqflow.job.inference import JobSpecs, infer
from seqflow.job.last_verdict import last_verdict
from seqflow.job.opening import open_loader
from seqflow.job.planning import plan
from seqflow.loader import BadRows, Loader, Verdict
from seqflow.loader.run.ledger import BadRowHandler, Stats
from seqflow.net import NetInference
from seqflow.progress import over
from seqflow.record import Record
from seqflow.report.page import Section, code, facts, paragraph, section, table
from seqflow.report.source import (
    DAMAGE,
    BadRowList,
    examples,
    first_line,
    sections_of_lengths,
)
from seqflow.report.survey import Survey
from seqflow.tensor import TensorSpec

_BATCHES, _MOST_BATCHES = 32, 1024
"""The sample ends with a window after this many batches, since bad rows are known at its end; or after the most."""


def sections_of_job(job: Job, batch: int, capacity: int) -> Iterator[Section]:
    """Yield nets, shapes and byte bounds, sizes of the run, a sample of batches, bad rows, and
    the lengths of prepared rows, whose padding is that of batches of `batch` rows, and of rows of `capacity`.
    """
    if job.output.path is None:  # the run may be given one
        job = replace(job, output=replace(job.output, kind="none"))
    checked = open_loader(job)
    specs = infer(checked)
    check_tables(job, checked, specs)
    yield from sections_of_specs(specs)
    lenient = _without_bad_rows(job)
    loader = open_loader(lenient)
    told: set[str] = set()
    parts: tuple[Callable[[], Iterator[Section]], ...] = (
        lambda: iter([section("The run", facts(plan(lenient).lines()))]),
        lambda: _last_run(job),
        lambda: _sample(job, lenient),
        lambda: _prepared(loader, batch, capacity),
    )
    for sections in parts:
        try:
            yield from [*sections()]
        except DAMAGE as error:
            if (line := first_line(error)) not in told:
                told.add(line)
                yield section("Where a run stops", paragraph(line))


def _without_bad_rows(job: Job) -> Job:
    """Return the job that leaves bad rows out, and has no index if rows share lists.

    Rows that differ from others of their key are left out, and the index has their lengths.
    """
    index = None if job.share else job.order.index
    return replace(job.without_quarantine(), bad_rows=BadRows("skip"), order=replace(job.order, index=index))


def _last_run(job: Job) -> Iterator[Section]:
    """Yield the verdict of the run that wrote the output, if it has saved one."""
    saved = last_verdict(job)
    if saved is not None:
        verdict = Verdict(saved)
        yield section("The last run", paragraph(verdict.title), facts(verdict.lines()))


class _Sample(NamedTuple):
    stats: Stats
    first: Record | None
    bad: BadRowList


def _taken(loader: Loader) -> _Sample:
    """Return the first batches of an epoch, with the bad rows of their windows. Nothing is written."""
    stats, bad, first = Stats(), BadRowList(), None
    with closing(loader.batches(BadRowHandler(write=bad.write), stats)) as batches:
        for batch in batches:
            first = batch if first is None else first
            if stats.batches >= (_BATCHES if loader.at_window_end else _MOST_BATCHES):
                break
    return _Sample(stats, first, bad)


def _sample(job: Job, lenient: Job) -> Iterator[Section]:
    """Yield a sample as the job makes it; if the job would stop at a bad row, a sample without bad rows."""
    stops = None
    try:
        sample = _taken(open_loader(job if job.bad_rows.policy == "raise" else lenient))
    except DAMAGE as error:
        if job.bad_rows.policy != "raise":
            raise
        sample, stops = _taken(open_loader(lenient)), error
    stats, first, bad = sample
    no_bad = [] if bad.count else [("bad rows", "none")]
    yield section("The first batches", facts([*stats.lines(), *no_bad]))
    if bad.count:
        why = (
            "The run leaves them out."
            if stops is None
            else f"The run stops at the first: {first_line(stops)}"
        )
        yield section("Bad rows of these batches", paragraph(why), *bad.parts())
    if first is not None:
        yield section(
            "The first batch",
            code(repr(first)),
            examples(first),
        )


def _prepared(loader: Loader, batch: int, capacity: int) -> Iterator[Section]:
    """Yield the lengths of all prepared rows, and the bad rows by reason; nothing without `prepare`."""
    recipe = loader.recipe
    if recipe.prepare is None:
        return
    survey, bad, maker = Survey(batch), BadRowList(), loader.pipeline.window_maker()
    for one in over(recipe.slices(), "blocks prepared", lambda: None):
        try:
            records, ledger = maker.read(one, 0)
        except (ProviderError, OSError, pa.ArrowException):
            continue  # damaged blocks are listed with the source
        for record in records:
            survey.add_record(record)
        for rejected in ledger.rejected:
            bad.write(rejected)
    if bad.count:
        yield section("Bad rows of the source", *bad.parts())
    yield from sections_of_lengths(survey, batch, capacity, "Prepared: ")


def sections_of_specs(found: JobSpecs) -> Iterator[Section]:
    """Yield the tensors of the source, of `prepare`, of the batches and of `net`."""
    yield section("Tensors of the source", _bounds(found.source))
    if found.prepare is not None:
        yield section("The net of prepare", *_net(found.prepare))
    yield section("Tensors of a batch", _bounds(found.batch))
    if found.net is not None:
        yield section("The net of batches", *_net(found.net))


def _bounds(specs: Mapping[str, TensorSpec]) -> str:
    rows = [(name, str(spec), format_bytes(spec.byte_bound)) for name, spec in specs.items()]
    return table(("tensor", "dtype and shape", "at most"), rows)


def _net(found: NetInference) -> Iterator[str]:
    net = found.net
    given = [
        (name, "constant" if name in net.constants else "input") for name in (*net.inputs, *net.constants)
    ]
    made = [(name, str(step.value)) for step in net.steps for name in step.results if name != "_"]
    rows = [
        (
            "" if name.startswith("%") else name,
            str(found.specs[name]),
            format_bytes(found.byte_bounds[name]),
            by,
        )
        for name, by in (*given, *made)
    ]
    yield table(("tensor", "dtype and shape", "at most", "made by"), rows)
    most = found.byte_bound
    yield paragraph(
        "The bytes of all tensors together have no known bound."
        if most is None
        else f"All tensors together have at most {format_bytes(most)}."
    )
    if found.guards:
        yield table(("checked when it runs",), [(str(guard),) for guard in found.guards])
