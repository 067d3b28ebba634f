"""The part of a report about a source."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from seqflow import kernels, providers
from seqflow.errors import (
    DamagedFileError,
    LodError,
    OpError,
    ProviderError,
    ShapeError,
)
from seqflow.kernels.arrays import Array
from seqflow.kernels.packing import plan_packing
from seqflow.loader.run.ledger import Reasons, Rejected, good_rows, reason_of
from seqflow.printable import printable_line
from seqflow.progress import over
from seqflow.providers import Block, Provider
from seqflow.providers.bad_files import BadFile, BadFileList
from seqflow.providers.lenient import open_lenient
from seqflow.record import BadRow, Fill, Record, Valid, convert
from seqflow.record.run_ends import take_table
from seqflow.report.page import Bar, Section, chart, facts, paragraph, plural, section, table
from seqflow.report.survey import Survey

Policy: TypeAlias = Literal["raise", "skip"] | None
"""Policy for faults; None lists them, and they are not accepted."""
_PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
_ROWS, _ELEMENTS, _TEXT, _NUMBERS = 5, 8, 160, 12
"""Number of rows shown as examples, of lists of each, and of characters and numbers of each of these."""


DAMAGE = (ProviderError, OSError, pa.ArrowException, LodError, OpError, ShapeError)
"""Errors raised for data that cannot be read or used."""


_NULLS = 10
"""Number of rows with nulls after which no more are searched."""


class FirstBadRow(NamedTuple):
    """Place of a bad row: the same five fields as in a quarantine file."""

    file: str
    block: int
    row: int | None
    column: str
    reason: str


class BadRowList:
    """Counts bad rows by reason, with the place of the first row of each; takes the place of a quarantine piece, and
    writes nothing.
    """

    def __init__(self) -> None:
        self.count = 0
        self.reasons = Reasons()
        self.first: dict[str, FirstBadRow] = {}
        """Place of the first row, by reason."""
        self.error: ProviderError | None = None
        """Error for the first row of all."""

    def write(self, rejected: Rejected) -> None:
        self.count += rejected.count
        self.error = self.error or rejected.error()
        self.reasons = self.reasons + rejected.reasons
        for bad, number in zip(rejected.bad, rejected.numbers, strict=True):
            reason = reason_of(bad)
            if reason in self.reasons and reason not in self.first:
                block = rejected.block
                self.first[reason] = FirstBadRow(block.origin, block.index, number, bad.column, bad.reason)

    def rows(self) -> list[tuple[int, str, int, int | None, str, str]]:
        """Return the number of rows of each reason, and the place of the first; rows that `prepare` has made have no
        number in the source.
        """
        nowhere = FirstBadRow("", 0, None, "", "")
        return [
            (count, *(self.first.get(reason) or nowhere._replace(reason=reason)))
            for reason, count in self.reasons.most_common()
        ]

    def parts(self) -> Iterator[str]:
        """Yield a table of the reasons."""
        yield table(
            ("rows", *(f"first {name}" for name in FirstBadRow._fields)),
            self.rows(),
            stacks=True,
        )


class SurveyedSource(NamedTuple):
    """Survey of the readable rows, and the faults of the others."""

    survey: Survey
    unreadable: BadRowList
    """Rows that cannot be read."""
    with_nulls: BadRowList
    """First rows that can be read but not converted to tensors, unless `fill` or `valid` handles their nulls."""
    damaged: BadFileList
    """Files and blocks that cannot be read."""
    inferred: str
    """Message about the lines that types are inferred from."""
    notes: tuple[str, ...]
    """Sentences about columns that differ between files."""

    def is_accepted(self, bad_rows: str | None, bad_files: str | None) -> bool:
        """Return whether these policies leave out all that cannot be read."""
        is_stopped = (self.unreadable.count and bad_rows in (None, "raise")) or (
            self.damaged and bad_files in (None, "raise")
        )
        return not is_stopped

    def facts(self) -> dict[str, Any]:
        """Return the notes and all faults, for JSON."""
        names = ("rows", *FirstBadRow._fields)
        rows = [dict(zip(names, row, strict=True)) for row in self.unreadable.rows()]
        return {
            "notes": list(self.notes),
            "bad_files": self.damaged.facts(),
            "bad_rows": {"count": self.unreadable.count, "reasons": rows},
        }

    def lines(self) -> Iterator[str]:
        """Yield a line for each damaged file or block, and for each reason of bad rows."""
        yield from (f"damaged: {one}" for one in self.damaged)
        for kind, count in self.unreadable.reasons.most_common():
            yield f"{plural(count, 'bad row')}: {kind}"
            if (first := self.unreadable.first.get(kind)) is not None:
                file, block, row, _, reason = first
                place = reason.removeprefix(f"{file}, ").removesuffix(f": {kind}")
                yield f"  first: {file}, block {block}, row {row}: {place}"


def survey_of_path(
    path: str, batch: int, *, bad_rows: Policy = None, bad_files: Policy = None, **options: Any
) -> SurveyedSource:
    """Survey files, as `survey_of` does; without a policy for damaged files, those that cannot be opened are listed.

    `options` are those of `sf.open`.
    """
    if bad_files is None:
        source = open_lenient(path, **options)
    else:
        source = providers.open(path, **options, bad_files=bad_files)
    return survey_of(source, batch, bad_rows=bad_rows, bad_files=bad_files)


def survey_of(
    source: Provider,
    batch: int,
    columns: Sequence[str] | None = None,
    fill: Fill = None,
    valid: Valid = False,
    *,
    bad_rows: Policy = None,
    bad_files: Policy = None,
) -> SurveyedSource:
    """Survey all rows of a source, block by block; damaged rows are left out.

    The first row that cannot be read raises an error if `bad_rows` is "raise". An error of a block is listed, or
    raised if `bad_files` is a policy: rows that this policy leaves out are not errors.
    """
    caught = DAMAGE if bad_files is None else ()
    found = SurveyedSource(
        Survey(batch), BadRowList(), BadRowList(), BadFileList(source.damaged), source.inferred, source.notes
    )
    blocks = over(source.ahead(source.blocks(), columns), "blocks", lambda: _num_blocks(source))
    while True:
        try:
            if (block := next(blocks, None)) is None:
                return found._replace(notes=(*found.notes, *source.source.notes))
        except caught as error:
            found.damaged.append(BadFile(source.origin, None, first_line(error), None))
            return found
        try:
            _add(found, source, block, columns, fill, valid)
        except caught as error:
            damage = DamagedFileError(first_line(error))
            found.damaged.append(BadFile.of(block.origin, block.index, damage, block.num_rows))
        if bad_rows == "raise" and found.unreadable.error is not None:
            raise found.unreadable.error


def _num_blocks(source: Provider) -> int | None:
    try:
        return source.num_blocks
    except DAMAGE:
        return None


def _add(
    found: SurveyedSource,
    source: Provider,
    block: Block,
    columns: Sequence[str] | None,
    fill: Fill,
    valid: Valid,
) -> None:
    bad: list[BadRow] = []
    rows, numbers, _, damage = source.read_kept(block, columns, bad_rows=bad)
    if damage is not None:
        found.damaged.append(damage)
        return
    if bad:
        found.unreadable.write(Rejected.of(rows, bad, numbers, block))
        good = good_rows(rows.num_rows, bad)
        rows, numbers = take_table(rows, good), np.asarray(numbers)[good]
    nulls = found.survey.num_nulls
    found.survey.add(rows)
    if found.survey.num_nulls > nulls and found.with_nulls.count < _NULLS:
        _, refused = convert(rows, fill=fill, valid=valid)
        if refused:
            found.with_nulls.write(Rejected.of(rows, refused, numbers, block))


def first_line(error: BaseException) -> str:
    """Return the message of an error, without its advice."""
    return str(error).partition("\n")[0] or type(error).__name__


def summary_of(found: SurveyedSource, batch: int) -> Section:
    """Return what matters first: rows, faults, and for each column of sequences its lengths and its padding."""
    summary = found.survey.summary()
    counts = {
        "damaged files or blocks": len(found.damaged),
        "rows that cannot be read": found.unreadable.count,
        "rows with nulls": found.with_nulls.count,
    }
    more = " or more" * (found.with_nulls.count >= _NULLS)
    faults = [
        (name, f"{count:,}{more * name.endswith('nulls')}" if count else "none")
        for name, count in counts.items()
    ]
    lengths = [
        (
            name,
            f"{plural(one['sequences'], 'sequence')} of {one['shortest']:,} to {one['longest']:,}, "
            f"mean {one['mean']:,.1f}; padded, {batch} rows: {1 - one['padding']:.2%} are data",
        )
        for name, one in summary["lengths"].items()
        if one["sequences"]
    ]
    return section("Summary", facts([("rows", f"{summary['rows']:,}"), *faults, *lengths]))


def sections_of(found: SurveyedSource, batch: int, capacity: int) -> Iterator[Section]:
    """Yield the tensors of a source, its bad rows, the lengths, the waste of padding, and the first rows."""
    survey, summary = found.survey, found.survey.summary()
    rows = [
        (name, one["dtype"], " × ".join(map(str, ["N", *one["shape"]])), one["nulls"], one["lengths"])
        for name, one in summary["tensors"].items()
    ]
    count = f"{plural(summary['rows'], 'row')} in {plural(summary['blocks'], 'block')}."
    header = ("tensor", "dtype", "shape", "nulls", "described by")
    yield section(
        "Tensors",
        paragraph(count),
        *map(paragraph, filter(None, (found.inferred, *found.notes))),
        table(header, rows),
    )
    yield section("Rows that cannot be used", *_unusable(found))
    yield from sections_of_lengths(survey, batch, capacity)
    if survey.first is not None:
        yield section("The first rows", examples(survey.first))


def sections_of_lengths(survey: Survey, batch: int, capacity: int, of: str = "") -> Iterator[Section]:
    """Yield the lengths of each tensor and the waste of padding; `of` begins the headings."""
    for name, one in survey.summary()["lengths"].items():
        if one["sequences"]:
            yield section(f"{of}{name}", *_lengths(one, survey.sample_of(name), batch, capacity))


def _unusable(found: SurveyedSource) -> Iterator[str]:
    if found.damaged:
        yield paragraph(
            "Files and blocks that cannot be read. A loader stops at the first, unless bad_files is skip or "
            "quarantine; their rows are not counted on this page."
        )
        yield table(("file", "block", "reason", "rows"), found.damaged, stacks=True)
    if found.unreadable.count:
        yield paragraph(
            f"{plural(found.unreadable.count, 'row')} cannot be read. A loader stops at the first, unless bad_rows "
            "is skip or quarantine; these rows are not counted on this page."
        )
        yield from found.unreadable.parts()
    if found.with_nulls.count:
        yield paragraph(
            "Rows with nulls, of which the first are listed. A loader treats each as a bad row, unless fill or valid "
            "handles its nulls; these rows are counted on this page."
        )
        yield table(FirstBadRow._fields, found.with_nulls.first.values(), stacks=True)
    if not (found.damaged or found.unreadable.count or found.with_nulls.count):
        yield paragraph("None: all rows can be read, and every null is handled by fill or valid.")


def _lengths(found: dict[str, Any], sample: Array, batch: int, capacity: int) -> Iterator[str]:
    yield paragraph(f"{plural(found['sequences'], 'sequence')}, {plural(found['elements'], 'element')}.")
    percentiles = np.percentile(sample, _PERCENTILES, method="lower").tolist()
    of_percent = zip((f"{one} %" for one in _PERCENTILES), map(int, percentiles), strict=True)
    ends = ("longest", found["longest"]), ("mean", float(found["mean"]))
    yield facts([("shortest", found["shortest"]), *of_percent, *ends])
    yield chart("Sequences by their lengths", _histogram(found["histogram"], found["sequences"]))
    if found["elements"]:
        fills = [
            Bar(f"padded, {batch} rows", 1 - found["padding"]),
            Bar("of similar lengths", _fill_sorted(sample, batch)),
            Bar(f"packed, {capacity:,}", _fill_packed(sample, capacity)),
        ]
        yield chart("Share of elements that are not padding", fills)


def _histogram(entries: Sequence[dict[str, int]], sequences: int) -> list[Bar]:
    return [
        Bar(
            f"{entry['from']:,}" if entry["from"] == entry["to"] else f"{entry['from']:,} – {entry['to']:,}",
            entry["count"] / sequences,
            f"{entry['count']:,}",
        )
        for entry in entries
    ]


def _fill_sorted(lengths: Array, batch: int) -> float:
    ordered = np.sort(lengths)
    starts = np.arange(0, len(ordered), batch)
    longest = np.maximum.reduceat(ordered, starts)
    cells = int((longest * np.diff(np.append(starts, len(ordered)))).sum())
    return int(ordered.sum()) / cells if cells else 0.0


def _fill_packed(lengths: Array, capacity: int) -> float:
    rows = len(plan_packing(lengths, capacity).pieces)
    return int(lengths.sum()) / (rows * capacity) if rows else 0.0


def examples(record: Record) -> str:
    """Return the first rows of each column: texts decoded, numbers as they are.

    Elements of a list of lists, of texts or of structs are apart, so that fields of one struct have one place.
    """
    names = [name for name in record if not name.endswith((".lengths", ".valid", ".keys"))]
    short = [name.removesuffix(".values") for name in names]
    columns = [[" | ".join(map(_shown, parts)) for parts in _column(record, name)] for name in names]
    return table(short, [*zip(*columns, strict=True)], stacks=True)


def _column(record: Record, name: str) -> list[list[Array]]:
    """Return the values of each of the first rows: of each innermost list, or of the one that a row is."""
    values, parent = record[name], record.parents[name]
    if parent is None:
        return [[values[row : row + 1]] for row in range(min(record.num_rows, _ROWS))]
    levels: list[Array] = []
    while parent is not None:
        levels.insert(0, record[parent])
        name, parent = parent, record.parents[parent]
    index = record.shares.get(name)
    firsts = np.arange(min(record.num_rows, _ROWS)) if index is None else record[index][:_ROWS]
    lasts = firsts + 1
    for level in levels[:-1]:
        offsets = kernels.lengths_to_offsets(level)
        firsts, lasts = offsets[firsts], offsets[lasts]
    starts = kernels.lengths_to_offsets(levels[-1]).tolist()
    return [
        [values[starts[at] : starts[at + 1]] for at in range(first, min(last, first + _ELEMENTS))]
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
    ]


def _shown(values: Array) -> str:
    if values.dtype == np.uint8 and values.ndim == 1:
        text = values[: _TEXT + 1].tobytes().decode("utf-8", "replace")
        return printable_line(text[:_TEXT]) + "…" * (len(values) > _TEXT)
    flat = values.ravel()
    inside = ", ".join(printable_line(str(one)) for one in flat[:_NUMBERS].tolist())
    return f"{inside}{', …' if flat.size > _NUMBERS else ''}"
