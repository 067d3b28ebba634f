"""Accounts of rows: where they come from, why some cannot be used, and the counts of a window and of a run."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from seqflow.arguments import FilePath
from seqflow.drawing.tables import html_table
from seqflow.errors import OpError, ProviderError, SeqflowError
from seqflow.hidden import hides_credentials
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import StepCosts
from seqflow.loader.run.timings import Timings
from seqflow.output.file_writer import KIND_OF_SUFFIX
from seqflow.output.quarantine import NoQuarantine, Quarantine, with_reasons
from seqflow.printable import without_values
from seqflow.providers import Block
from seqflow.providers.bad_files import BadFile, BadFileList, BadFiles
from seqflow.record import BadRow
from seqflow.record.run_ends import take_table

RowNumbers = range | np.ndarray[Any, np.dtype[np.int64]]


_SHOWN = 4


@dataclass(frozen=True, slots=True)
class RowRange:
    """Consecutive rows from one block."""

    block: Block
    rows: int
    numbers: RowNumbers | None
    """Their row numbers in the block; None if `prepare` made new rows."""
    key: tuple[int, ...] = ()
    """Key of the random numbers of its rows: the number of the block, and the first row of the slice of it where
    `prepare` made new rows."""
    groups: Array | None = None
    """Number of the group of each row in its block, if groups are shuffled."""

    def part(self, start: int, stop: int) -> str:
        """Return the place of rows start … stop - 1 of the range, as text."""
        place = f"{self.block.origin}, block {self.block.index}"
        if self.numbers is None:
            return place
        first, last = self.numbers[start], self.numbers[stop - 1]
        return f"{place}, row {first}" if stop - start == 1 else f"{place}, rows {first} to {last}"


def places_in(sizes: Sequence[int], rows: Sequence[int] | Array) -> tuple[Array, Array]:
    """int64 twice: the range, among consecutive ranges of these sizes, in which each row lies, and its place
    there.
    """
    ends = np.cumsum(sizes)
    found = np.searchsorted(ends, rows, side="right")
    return found, rows - (ends - sizes)[found]


def describe_rows(ranges: Sequence[RowRange], rows: Array) -> str:
    """Return the places of rows that are counted over the ranges in turn, as text; runs of a block are one entry."""
    found: list[str] = []
    of, places = places_in([one.rows for one in ranges], np.unique(rows))
    for at in np.unique(of).tolist():
        inside = places[of == at]
        together = len(inside) == inside[-1] - inside[0] + 1
        pieces = [(inside[0], inside[-1] + 1)] if together else [(row, row + 1) for row in inside]
        found += [ranges[at].part(int(low), int(high)) for low, high in pieces]
    found = list(dict.fromkeys(found))
    more = len(found) - _SHOWN
    return "; ".join(found[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


@hides_credentials
@dataclass(frozen=True, slots=True)
class BadRows:
    """Policy for rows that cannot be used; not the rows themselves.

    "raise" stops with an error that names file, block, row, column and reason; "skip" omits the row and counts
    it; "quarantine" also writes it, with those five and the line that could not be read, to the file `path`, in
    Parquet or Arrow format as its suffix says. Each of several ranks writes a file of its own, such as
    `bad.rank3.parquet` for `bad.parquet`, with the bad rows of the windows that it read; each source of a Mix
    has a file too (`bad.source0.parquet`).

    With `max` or `max_share` an epoch stops with an error when more rows are bad. Each process counts the rows that
    it reads: a rank, or a worker of a DataLoader. `max` holds after each batch, `max_share` at the end of the epoch;
    in a job both hold at the end of each part, for the rows so far.
    """

    policy: Literal["raise", "skip", "quarantine"] = "raise"
    """Treatment of a bad row: an error, omitted, or omitted and written to `path`."""
    path: FilePath | None = None
    """File of the omitted rows, with "quarantine"."""
    max: int | None = None
    """Largest number of bad rows; more are an error."""
    max_share: float | None = None
    """Largest share of bad rows in the rows that were read, from 0 to 1; more are an error."""
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    """Options of the store, if `path` is a URI such as `s3://bucket/bad.parquet`."""

    def __post_init__(self) -> None:
        if (self.policy == "quarantine") != (self.path is not None):
            what = "needs a path" if self.path is None else "takes no path: only 'quarantine' writes a file"
            raise OpError.of("BadRows.policy", f"{self.policy!r} {what}")
        if self.path is not None and Path(self.path).suffix.lower() not in KIND_OF_SUFFIX:
            raise OpError.of(
                "BadRows.path", f"is {str(self.path)!r}, expected a name that ends in .parquet or .arrow"
            )

        for name, bound, most in (("max", self.max, np.inf), ("max_share", self.max_share, 1)):
            if bound is not None and self.policy == "raise":
                raise OpError.of(
                    f"BadRows.{name}", "is given, expected policy 'skip' or 'quarantine' with it"
                )
            if bound is not None and not 0 <= bound <= most:
                expected = "0 or more" if most > 1 else "0 to 1"
                raise OpError.of(f"BadRows.{name}", f"is {bound}, expected {expected}")

    def marked(self, *marks: str) -> BadRows:
        """Return the same policy with these marks in the name of the file."""
        if self.path is None or not marks:
            return self
        stem, suffix = os.path.splitext(self.path)
        return replace(self, path=".".join([stem, *marks]) + suffix)


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows of a block that cannot be used, and the reasons."""

    bad: tuple[BadRow, ...]
    numbers: tuple[int | None, ...]
    """Number in the block of the row of each entry of `bad`; None if `prepare` made new rows."""
    block: Block
    read: Callable[[], pa.Table]
    """Function that returns the row of each entry of `bad`, as the source has it. Only a quarantine file calls it."""

    @classmethod
    def of(
        cls, batch: pa.RecordBatch | pa.Table, bad: Sequence[BadRow], numbers: RowNumbers, block: Block
    ) -> Rejected:
        """Return the bad rows of a batch, whose numbers in the block are `numbers`."""
        rows = [one.row for one in bad]
        table = take_table(batch, np.array(rows, np.int64))
        return cls(tuple(bad), tuple(int(numbers[row]) for row in rows), block, lambda: table)

    @property
    def count(self) -> int:
        """Number of rows: one row may be bad in several columns."""
        return len({one.row for one in self.bad})

    @property
    def reasons(self) -> Counter[str]:
        """Number of rows for each reason; a row counts with its first."""
        first = {one.row: one for one in reversed(self.bad)}
        return Counter(map(reason_of, first.values()))

    def table(self) -> pa.Table:
        """Return the rows as a quarantine file has them, with a column for the reason."""
        return with_reasons(self.read(), self.bad, self.block.origin, self.block.index, self.numbers)

    def error(self) -> ProviderError:
        """Return the error for the first of them, if bad rows are errors."""
        bad, number = self.bad[0], self.numbers[0]
        row = "a row that prepare made" if number is None else f"row {number}"
        column = f", column {bad.column!r}" if bad.column else ""
        return ProviderError(
            f"{self.block.origin}, block {self.block.index}, {row}{column}: {bad.reason}",
            advice="%(bad_rows)s leaves out such rows; %(fill)s replaces nulls, %(valid)s marks them",
        )


def reason_of(bad: BadRow) -> str:
    """Return the reason by which a bad row is counted."""
    reason = bad.kind or bad.reason
    return f"{bad.column}: {reason}" if bad.column else reason


class RefusedRow(BadRow):
    """A row that a net refuses. The failed statement is in place of its column."""


def refused_row(row: int, names: Iterable[str], error: Exception) -> BadRow:
    """Return the bad row for the error of a net on this row alone."""
    statement = error.statement if isinstance(error, SeqflowError) else ""
    reason = str(error).split("\n")[0]
    return RefusedRow(row, statement or ", ".join(names), reason, without_values(reason))


def good_rows(num_rows: int, bad: Iterable[BadRow]) -> Array:
    """int64: the rows of so many that are not bad."""
    is_good = np.ones(num_rows, bool)
    is_good[[one.row for one in bad]] = False
    return np.flatnonzero(is_good)


_KINDS = 20


class Counts(Counter[str]):
    """Number of rows by a text."""

    def __init__(self, counts: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        super().__init__(dict(counts))  # dataclasses.asdict passes pairs, which a Counter would count

    def __add__(self, counts: Mapping[str, int]) -> Counts:  # type: ignore[override]
        return Counts(Counter(self) + Counter(counts))


class Reasons(Counts):
    """Number of bad rows by reason. After the first 20 reasons, rows of all others count as "other"."""

    def __add__(self, counts: Mapping[str, int]) -> Reasons:  # type: ignore[override]
        found = Reasons(self)
        for reason, count in counts.items():
            found[reason if reason in found or len(found) < _KINDS else "other"] += count
        return found


Column = Literal["rows", "rows_left", "bad_rows", "dropped", "skipped"]


@dataclass(slots=True)
class Ledger:
    """Accounts of the rows of a window, or of a slice of a block: each row is in one column.

    Rows are entered in the column `rows_left`, or `skipped` if a filter omitted them, when they are read. After
    that they only move between columns, by `reject` and `move`. Therefore `rows_left + dropped + skipped +
    bad_rows` are all rows entered, and the sum of all columns of `Stats`, to which closed ledgers are added, is
    all rows of the windows so far. It differs only if `prepare` changes the number of rows.
    """

    rows_read: int = 0
    """Rows that were read and prepared, as the source has them."""
    rows_left: int = 0
    """Rows for batches, as `prepare` made them."""
    dropped: int = 0
    skipped: int = 0
    filtered: int = 0
    """Number of the skipped rows that `where` or `keep` omitted."""
    filtered_by_keep: int = 0
    filtered_by_condition: Counts = field(default_factory=Counts)
    rejected: list[Rejected] = field(default_factory=list)
    """Bad rows that reading, `prepare`, `require` or the batch plan refuses."""
    damaged: list[BadFile] = field(default_factory=list)
    """Damaged blocks, whose rows are in no column."""
    refused: dict[int, BadRow] = field(default_factory=dict)
    """Bad rows by their numbers in the window that `net` refuses, until all batches are handed out."""
    ranges: tuple[RowRange, ...] = ()
    """Ranges of the source that the rows come from."""
    seconds_reading: float = 0.0
    seconds_preparing: float = 0.0
    seconds_planning: float = 0.0

    @classmethod
    def of_source(cls, rows: int, filtered: int) -> Ledger:
        """Return the ledger of rows that were read, or are known without reading."""
        return cls(rows, rows, skipped=filtered, filtered=filtered)

    @property
    def bad_rows(self) -> int:
        return sum(one.count for one in self.rejected)

    def reject(self, rejected: Rejected, *, is_prepared: bool = False) -> None:
        """Count bad rows; rows that are not prepared do not count as read."""
        self.rejected.append(rejected)
        self.rows_left -= rejected.count
        if not is_prepared:
            self.rows_read -= rejected.count

    def leave_out(self, refused: Counter[str]) -> None:
        """Count prepared rows that `keep` omits, by the text of the condition."""
        rows = refused.total()
        move(self, rows, "rows_left", "skipped")
        self.filtered += rows
        self.filtered_by_keep += rows
        self.filtered_by_condition = self.filtered_by_condition + refused

    def add(self, other: Ledger) -> None:
        """Add the ledger of one of several slices."""
        add_columns(self, other)
        self.rejected += other.rejected
        self.damaged += other.damaged


def add_columns(to: Any, ledger: Ledger) -> None:
    """Add the columns of a ledger to those of another, or of Stats."""
    for name in SUMMED:
        setattr(to, name, getattr(to, name) + getattr(ledger, name))


def count_bad(stats: Stats, rejected: Rejected) -> None:
    """Count bad rows, by reason."""
    stats.bad_rows += rejected.count
    stats.reasons = stats.reasons + rejected.reasons


def move(of: Any, rows: int, source: Column, target: Column) -> None:
    """Move rows from one column to another, of a ledger or of Stats."""
    setattr(of, source, getattr(of, source) - rows)
    setattr(of, target, getattr(of, target) + rows)


class SourceCounts(NamedTuple):
    """Counts of a source of a mix."""

    rows: int
    tokens: int
    passes: int
    """Passes over it in the epoch that are complete."""


@dataclass(slots=True, repr=False)
class Stats:
    """Counts of one iteration so far, and where its time was spent.

    If `prepare` keeps the number of rows, `rows + rows_left + dropped + skipped + bad_rows` is the number of
    rows in the windows so far; after an epoch with one rank it is all rows of the source, and `rows_left` is 0.
    """

    rows: int = 0
    """Rows handed out; a row that is cut into pieces counts with its first piece."""
    rows_read: int = 0
    """Rows of the source in the windows so far, except rows that `where` omitted or that could not be prepared."""
    rows_left: int = 0
    """Rows of these windows, as `prepare` made them, for later batches, or for batches of other ranks."""
    tokens: int = 0
    """Elements of the planned column in the batches so far."""
    cells: int = 0
    """Elements of these batches when dense: of packed rows, or of rows padded to the longest."""
    shared: int = 0
    """Elements among the tokens that rows share with others of their batch, which has them once."""
    batches: int = 0
    bad_rows: int = 0
    dropped: int = 0
    """Rows of short batches that `drop_last` omitted, and of the last round that `tail="drop"` omitted."""
    skipped: int = 0
    """Rows that `where` or `keep` omitted, and those that the batch plan omitted because of their lengths."""
    filtered: int = 0
    """Number of the skipped rows that `where` or `keep` omitted; rows in files excluded by names of folders are not
    counted."""
    filtered_by_keep: int = 0
    """Number of the filtered rows that `keep` omitted."""
    filtered_by_condition: Counts = field(default_factory=Counts)
    """The same by the text of the condition of `keep`, the first one that was false. Never changed in place."""
    repeated: int = 0
    """Rows of the epoch's first batches that were handed out again to fill the last round."""
    bad_files: BadFileList = field(default_factory=BadFileList)
    """Damaged files, and damaged blocks of files, that `bad_files` omitted. Each rank lists all files that could not
    be opened, and the blocks of its own windows."""
    seconds_reading: float = 0.0
    """Sum over all threads, as are the next three."""
    seconds_preparing: float = 0.0
    seconds_planning: float = 0.0
    seconds_making: float = 0.0
    seconds_waiting: float = 0.0
    """Time for which the consumer waited for the threads of the loader, without the work that it did for them."""
    bytes_in_flight: int = 0
    """Bytes of windows read ahead or in use; at most `memory`."""
    costs: StepCosts = field(default_factory=StepCosts)
    """Costs of the ranks in each step, if the plan has a `Balance`."""
    without: Counter[str] = field(default_factory=Counter)
    """For each of `totals`, the rows, or pieces of rows, for which it is 0, such as rows whose labels are all
    masked. The first piece of a row may have a total of 0 for a good reason; `require` judges whole rows."""
    sources: dict[str, SourceCounts] = field(default_factory=dict)
    """Of a Mix, rows, tokens and complete passes of each source by name."""
    reasons: Reasons = field(default_factory=Reasons)
    """Bad rows by column and reason, without the values of rows. Never changed in place: saved counts refer to it."""
    timings: Timings = field(default_factory=Timings, repr=False, compare=False)
    """Times of stages, steps and windows, which `loader.verdict()` judges."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def filtered_by(self) -> Counter[str]:
        """Filtered rows by the option that omitted them: `where` and `keep`, if they omitted any."""
        kept_out = self.filtered_by_keep
        return +Counter({"where": self.filtered - kept_out, "keep": kept_out})

    @property
    def prepared(self) -> int:
        """Rows that `prepare` has made or kept, and that are not bad; among them those that `keep` omitted."""
        return (
            self.rows + self.rows_left + self.dropped + self.skipped - (self.filtered - self.filtered_by_keep)
        )

    @property
    def rows_done(self) -> int:
        """Rows of the source that are finished: the progress of an epoch, also inside a large window."""
        left = min(1.0, max(0, self.rows_left) / self.prepared) if self.prepared else 0.0
        return self.rows_read - round(self.rows_read * left)

    @property
    def fill(self) -> float | None:
        """Share of all cells that holds tokens; None before there are any."""
        return (self.tokens - self.shared) / self.cells if self.cells else None

    @property
    def saving(self) -> float | None:
        """Tokens of rows for each token of a batch, above 1 if rows share prefixes; None before there are any."""
        return self.tokens / (self.tokens - self.shared) if self.tokens else None

    def lines(self) -> list[tuple[str, str]]:
        """Return the lines of the table, name and value: rows, tokens and batches always, other counts if not 0."""
        always = {"rows", "tokens", "batches"}
        found = [
            (one.name.replace("_", " "), _shown(one.name, value))
            for one in fields(self)
            if one.repr and isinstance(value := getattr(self, one.name), int | float)
            if value or one.name in always
        ]
        at = next(i for i, (name, _) in enumerate(found) if name == "batches")
        if self.shared:
            found.insert(at, ("saving", f"{self.saving:.2f} times"))
        if self.fill is not None:
            found.insert(at, ("fill", f"{self.fill:.2%}"))
        if self.costs.steps:
            found.append(("imbalance of ranks", f"{self.costs.imbalance:.3f}"))
        if self.bad_files:
            found.append(("damaged files", f"{self.bad_files.num_files:,}"))
        found += [
            (f"rows without {name}", f"{count:,}") for name, count in sorted(self.without.items()) if count
        ]
        found += [
            (f"{name}: rows, tokens, passes", f"{one.rows:,}, {one.tokens:,}, {one.passes}")
            for name, one in self.sources.items()
        ]
        found += [
            (f"filtered by {text}", f"{count:,}") for text, count in self.filtered_by_condition.most_common()
        ]
        found += [(f"bad rows, {reason}", f"{count:,}") for reason, count in self.reasons.most_common()]
        return found

    def __repr__(self) -> str:
        """Return a table with a line for each count or time."""
        lines = self.lines()
        names, values = (max(len(line[i]) for line in lines) for i in (0, 1))
        return "\n".join(["Stats", *(f"  {name:{names}}  {value:>{values}}" for name, value in lines)])

    def _repr_html_(self) -> str:
        return html_table("Stats", (), self.lines())

    def add_making(self, seconds: float) -> None:
        # workers add here; all other counts change in the iterating thread
        with self._lock:
            self.seconds_making += seconds


SUMMED = [one.name for one in fields(Ledger) if one.name in Stats.__dataclass_fields__]
"""Fields of a ledger whose sums over ledgers are kept."""


def _shown(name: str, value: float) -> str:
    return f"{value:.3f}" if name.startswith("seconds") else f"{value:,}"


class BadRowHandler:
    """Receiver of the bad rows of one run, which writes them to a file if the policy says so.

    A resumed run gives the `pieces` of the file that are committed; a job names its output, the `owner` of the file.
    """

    def __init__(
        self,
        policy: BadRows = BadRows("skip"),
        files: Sequence[str] = (),
        *,
        pieces: Sequence[Mapping[str, Any]] = (),
        write: Callable[[Rejected], None] | None = None,
        before: Stats | None = None,
        owner: str = "",
    ) -> None:
        self.policy = policy
        self.before = before or Stats()
        """Counts of earlier runs, which bounds do not concern."""
        self.first = ""
        """Description of the first bad row."""
        self.is_net: bool | None = None
        """Whether a net has refused all bad rows; None if they came to other processes."""
        self.file: Quarantine | NoQuarantine = NoQuarantine()
        self.write = write
        """Receives the bad rows: the file, or another given function; None if they are only counted."""
        if policy.path is not None:
            path = os.path.expanduser(policy.path)
            self.file = file = Quarantine(path, files, pieces, policy.storage_options, owner)
            self.write = lambda rejected: file.write(rejected.table())

    def add(self, rejected: Rejected) -> None:
        self.first = self.first or str(rejected.error()).partition("\n")[0]
        is_net = all(isinstance(one, RefusedRow) for one in rejected.bad)
        self.is_net = is_net and self.is_net is not False
        if self.write is not None:
            self.write(rejected)

    def check_bounds(self, stats: Stats, *, at_end: bool = True) -> None:
        """Raise ProviderError when more of the rows that were read are bad than `max` allows, and `max_share` unless
        `at_end` is false.
        """
        since = self.before
        bad_rows = stats.bad_rows - since.bad_rows
        rows = stats.prepared - since.prepared + bad_rows
        most, share = self.policy.max, self.policy.max_share if at_end else None
        is_above = most is not None and bad_rows > most
        if is_above or (share is not None and bad_rows > share * rows):
            reasons = stats.reasons - since.reasons
            by_reason = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common(_SHOWN))
            name, bound = ("max", f"{most:,}") if is_above else ("max_share", f"{share} of them")
            raise ProviderError(
                f"bad_rows: {bad_rows:,} of {rows:,} are bad, expected at most {bound} ({name}): {by_reason}"
                f"{'; ' * bool(self.first)}{self._cause(reasons, is_all=1 < bad_rows == rows)}",
                advice=f"mend them, or give a higher bound: %({name})s",
            )

    def add_damage(self, found: Sequence[BadFile], policy: BadFiles, stats: Stats, schema: pa.Schema) -> None:
        """Count damaged files and blocks, and enter them in the quarantine file if the policy says so, as a row of
        nulls each. Raise DamagedFileError if there are more than the policy allows.
        """
        new = [one for one in found if one not in stats.bad_files]
        stats.bad_files = stats.bad_files + new
        policy.check(one for one in stats.bad_files if one not in self.before.bad_files)
        if policy.policy == "quarantine" and self.write is not None:
            nulls = pa.table({one.name: pa.nulls(1, one.type) for one in schema})
            for one in new:
                entry = (BadRow(0, "", one.reason),)
                self.write(
                    Rejected(entry, (None,), Block(one.path, one.block or 0, None, None), lambda: nulls)
                )

    def _cause(self, reasons: Counter[str], *, is_all: bool) -> str:
        """Return the first bad row, if any; or the net and its fault, if that has refused all rows for one reason."""
        if is_all and self.is_net and len(reasons) == 1:
            return f"the net is wrong, not a row: {next(iter(reasons))}"
        return f"the first: {self.first}" if self.first else ""

    def check(self, stats: Stats) -> None:
        """Raise ProviderError when all rows of a source, two or more, were omitted and the count would be the
        only sign.
        """
        # one row may be all that a source has; if all of many are bad, a setting is wrong
        # batches whose rows a net has refused are empty, and are counted
        if stats.bad_rows > 1 and not (stats.prepared or self.write):
            raise ProviderError(
                f"bad_rows: 'skip' leaves out all {stats.bad_rows:,} rows of a source, "
                f"{self._cause(stats.reasons, is_all=True)}",
                advice="check %(schema)s, %(columns)s and nets; without %(bad_rows)s the first row stops it",
            )
