"""Rows that cannot be used: why, which conditions refuse them, and what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seqflow import executor
from seqflow.errors import OpError, OpTypeError, ProviderError, SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.loader.run.stats import Stats
from seqflow.net import Net
from seqflow.output.file_writer import KIND_OF_SUFFIX
from seqflow.output.output_file import OutputFile
from seqflow.output.quarantine import NoQuarantine, Quarantine, with_reasons
from seqflow.record import BadRow, Record
from seqflow.record.run_ends import take_table

if TYPE_CHECKING:
    import pyarrow as pa

    from seqflow.loader.run.prepare import RowNumbers
    from seqflow.providers import Block


@dataclass(frozen=True, slots=True)
class BadRows:
    """The policy for rows that cannot be used.

    "raise" stops with an error that names file, block, row, column and reason; "skip" leaves the row out and
    counts it; "quarantine" also writes it, with those five and the line that could not be read, to the file `path`,
    in Parquet or Arrow format as its suffix says. Each of several ranks writes a file of its own, such as
    `bad.rank3.parquet` for `bad.parquet`, with the bad rows of the windows that it read; so does each source of a Mix
    (`bad.source0.parquet`).
    """

    policy: Literal["raise", "skip", "quarantine"] = "raise"
    """What a bad row is: an error, left out, or left out and written to `path`."""
    path: str | Path | None = None
    """The file of the rows that are left out, with "quarantine"."""

    def __post_init__(self) -> None:
        if self.policy not in ("raise", "skip", "quarantine"):
            raise OpError(f"BadRows: policy is {self.policy!r}, expected 'raise', 'skip' or 'quarantine'")
        if (self.policy == "quarantine") != (self.path is not None):
            what = "needs a path" if self.path is None else "takes no path: only 'quarantine' writes a file"
            raise OpError(f"BadRows: policy {self.policy!r} {what}")
        if self.path is not None and Path(self.path).suffix.lower() not in KIND_OF_SUFFIX:
            raise OpError(
                f"BadRows: path is {str(self.path)!r}, expected a name that ends in .parquet or .arrow"
            )

    def marked(self, *marks: str) -> BadRows:
        """The same policy, with these in the name of the file."""
        if self.path is None or not marks:
            return self
        path = Path(self.path)
        return replace(self, path=path.with_name(".".join([path.stem, *marks]) + path.suffix))


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows of a block that cannot be used, and why."""

    bad: tuple[BadRow, ...]
    numbers: tuple[int | None, ...]
    """The number in the block of the row of each entry of `bad`; None where `prepare` made new rows."""
    block: Block
    read: Callable[[], pa.Table]
    """Gives the row of each entry of `bad`, as the source has it. Only a quarantine file asks for them."""

    @classmethod
    def of(
        cls, batch: pa.RecordBatch | pa.Table, bad: Sequence[BadRow], numbers: RowNumbers, block: Block
    ) -> Rejected:
        """The bad rows of a batch, whose numbers in the block are `numbers`."""
        rows = [one.row for one in bad]
        table = take_table(batch, np.array(rows, np.int64))
        return cls(tuple(bad), tuple(int(numbers[row]) for row in rows), block, lambda: table)

    @property
    def count(self) -> int:
        """How many rows they are: one may be bad in several columns."""
        return len({one.row for one in self.bad})

    def table(self) -> pa.Table:
        """The rows as a quarantine file has them, with a column that says why."""
        return with_reasons(self.read(), self.bad, self.block.origin, self.block.index, self.numbers)

    def error(self) -> ProviderError:
        """The error for the first of them, where bad rows are errors."""
        bad, number = self.bad[0], self.numbers[0]
        row = "a row that prepare made" if number is None else f"row {number}"
        return ProviderError(
            f"{self.block.origin}, block {self.block.index}, {row}, column {bad.column!r}: {bad.reason}\n"
            "  bad_rows= says what becomes of such rows, fill= and valid= of nulls"
        )


def refused_row(row: int, names: Iterable[str], error: Exception) -> BadRow:
    """The bad row for the error of a net on this row alone. The statement that failed stands for its column."""
    statement = error.statement if isinstance(error, SeqflowError) else ""
    return BadRow(row, statement or ", ".join(names), str(error).split("\n")[0])


def good_rows(num_rows: int, bad: Iterable[BadRow]) -> Array:
    """int64: the rows, of so many, that are not bad."""
    is_good = np.ones(num_rows, bool)
    is_good[[one.row for one in bad]] = False
    return np.flatnonzero(is_good)


class BadRowHandler:
    """Takes the bad rows of one run, and writes them to a file where the policy says so.

    A run that goes on after an earlier one gives the `pieces` of the file that are committed.
    """

    def __init__(
        self,
        policy: BadRows = BadRows("skip"),
        files: Sequence[str] = (),
        *,
        pieces: Sequence[Mapping[str, Any]] = (),
        write: Callable[[Rejected], None] | None = None,
    ) -> None:
        self.first = ""
        """What is wrong with the first bad row."""
        self.file: Quarantine | NoQuarantine = NoQuarantine()
        self.write = write
        """Takes the bad rows: the file, or another that was given; None where they are only counted."""
        if policy.path is not None:
            self.file = file = Quarantine(Path(policy.path).expanduser(), files, pieces)
            self.write = lambda rejected: file.write(rejected.table())

    def again(self, piece: OutputFile | None) -> BadRowHandler:
        """A handler of rows that are counted already; up to the next commit it writes those of a damaged piece."""
        if piece is None or isinstance(self.file, NoQuarantine):
            return BadRowHandler()
        self.file.write_again(piece)
        return BadRowHandler(write=self.write)

    def add(self, rejected: Rejected) -> None:
        self.first = self.first or str(rejected.error()).partition("\n")[0]
        if self.write is not None:
            self.write(rejected)

    def check(self, stats: Stats) -> None:
        """ProviderError where all rows of a source, two or more, were left out, and only a count would tell."""
        if stats.bad_rows > 1 and not (stats.batches or stats.prepared or self.write):
            raise ProviderError(
                f"bad_rows: 'skip' leaves out all {stats.bad_rows:,} rows of a source, the first for: {self.first}\n"
                "  check schema=, columns= and nets; bad_rows='raise' stops at the first row"
            )


_NAME = re.compile(r"[^\W\d][\w.]*")


class Required:
    """Conditions that prepared rows must fulfil, as texts and the nets that compute them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self._nets = [
            Net(f"return {text}" if _NAME.fullmatch(text) else f"required = {text}\nreturn required")
            for text in texts
        ]
        """What computes each, as its only output."""

    def bad_rows(self, record: Record) -> list[BadRow]:
        """The rows for which a condition is false: the first that is.

        OpError for a condition that is not one truth value a row.
        """
        left = np.ones(record.num_rows, np.bool_)
        found = []
        for text, net in zip(self.texts, self._nets, strict=True):
            fulfilled = self._fulfilled(text, net, record)
            column = ", ".join(dict.fromkeys(name.removesuffix(".lengths") for name in net.inputs))
            found += [
                BadRow(row, column, f"require: {text} is false")
                for row in np.flatnonzero(left & ~fulfilled).tolist()
            ]
            left &= fulfilled
        return sorted(found)

    def _fulfilled(self, text: str, net: Net, record: Record) -> Array:
        """bool[num_rows]: for which rows a condition is true."""
        try:
            found = executor.run(net, record)[net.outputs()[0]]
        except SeqflowError as error:
            error.add_note(f"in require = {text!r}")
            raise
        if found.dtype != np.bool_ or found.shape != (record.num_rows,):
            raise OpError(
                f"require: {text} is {found.dtype}{list(found.shape)}, expected one truth value for each of "
                f"{record.num_rows} rows\n  lengths_any and lengths_all make one of those of elements"
            )
        return found


def texts_of_required(require: str | Sequence[str] | None) -> tuple[str, ...]:
    """The texts of conditions, each of which is one; OpTypeError for what is no text, NetError for what is no net."""
    if require is None:
        return ()
    texts = [require] if isinstance(require, str) else require
    if not isinstance(texts, Sequence) or not texts or not all(isinstance(text, str) for text in texts):
        raise OpTypeError(
            f"Loader: require is {require!r}, expected a condition, such as "
            "'lengths_any(labels.values != -100, labels.lengths)', or a list of conditions"
        )
    return Required(texts).texts
