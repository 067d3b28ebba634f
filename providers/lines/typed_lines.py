"""Lines with a schema: checked, parsed a block at once by Arrow, and searched for bad lines if that fails."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.errors import LEAVE_OUT, DamagedFileError, ProviderError, ProviderOptionError
from seqflow.providers.lines.line_faults import Malformed
from seqflow.providers.lines.plain_lines import PlainLines, in_place
from seqflow.providers.lines.text_lines import LineFiles, LineFormat
from seqflow.record.record import Tensor

_NEWLINE = ord("\n")
_FEW = 8
"""Number of lines that are parsed one by one if one is bad: halving takes more calls if many are."""


class TypedLines(LineFormat):
    """Parser of whole lines into rows of a schema; finds lines that Arrow's parsers accept wrongly or crash on."""

    __slots__ = ()
    blanks: ClassVar[bytes]
    """Letters that have no meaning at the start and the end of a line."""
    counted: ClassVar[bytes]
    """Letters that are counted in each line, for `faults`."""

    def parse(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        return parse_lines(self, data)

    def plain_lines(self, data: Tensor) -> PlainLines | None:
        """Return rows from a native kernel, which leaves out some lines; None if it does not parse such columns."""
        raise NotImplementedError

    def is_plain(self, data: Tensor) -> bool:
        """Return whether a quick check finds no faults. It may not notice a value that continues in the next line.

        False by default: then each line is checked before Arrow parses it.
        """
        return False

    def faults(self, lines: "Lines") -> Iterator[tuple[Tensor, str | Exception]]:
        """Yield which lines have a fault, whatever the schema, and its reason; the first fault of a line counts.

        A reason that is an exception is explained further by `explain`.
        """
        raise NotImplementedError

    def rows(self, data: bytes | Tensor) -> pa.RecordBatch:
        """Return the rows of whole lines; raise ArrowException or ValueError for lines that don't fit the schema."""
        raise NotImplementedError

    def explain(self, line: bytes, error: Exception) -> tuple[str, int, str]:
        """Return why a line is malformed: the column ("" if not known), the position in the line, and the reason."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a block that are not blank: `data[start:stop]`, without the newline and blanks around it."""

    data: Tensor
    starts: Tensor
    stops: Tensor
    counts: dict[int, Tensor]
    """Number of occurrences in each line, by letter."""

    @classmethod
    def of(cls, data: Tensor, blanks: bytes, counted: bytes) -> "Lines":
        """Split data that ends with a newline into lines, without the `blanks` around each; count letters in each."""
        letters = np.frombuffer(counted, np.uint8)
        starts, stops, counts = kernels.split_lines(data, np.frombuffer(blanks, np.uint8), letters)
        return cls(data, starts, stops, dict(zip(counted, counts, strict=True)))

    def line(self, at: int) -> bytes:
        return self.data[self.starts[at] : self.stops[at]].tobytes()

    def join(self, chosen: Tensor) -> bytes:
        return b"".join(self.line(at) + b"\n" for at in chosen.tolist())


def not_utf8(lines: Lines) -> Tensor:
    """Return which lines are not UTF-8."""
    wrong = np.zeros(len(lines.starts), np.bool_)
    if not is_utf8(lines.data):
        wrong[:] = [not is_utf8(lines.line(at)) for at in range(len(wrong))]
    return wrong


def check_text(line: bytes) -> None:
    """Raise ValueError for a line that is not text."""
    if b"\0" in line or not is_utf8(line):
        raise ValueError("a NUL character" if b"\0" in line else "not UTF-8")


def is_utf8(content: bytes | Tensor) -> bool:
    """Return whether bytes are a text in UTF-8."""
    offsets = pa.py_buffer(np.array([0, len(content)], np.int64))
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(content)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def parse_lines(parser: TypedLines, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
    """Return the rows of a block, and its malformed lines in order; their rows are null."""
    plain = parser.plain_lines(data)
    if plain is None:
        return parse_any_lines(parser, data)
    if not len(plain.odd):
        return plain.rows, iter(())
    lines = Lines(data, plain.starts, plain.stops, {})
    others, malformed = parse_any_lines(
        parser, np.frombuffer(lines.join(np.arange(len(plain.odd))), np.uint8)
    )
    return in_place(plain, others), _moved(malformed, plain)


def _moved(malformed: Iterator[Malformed], plain: PlainLines) -> Iterator[Malformed]:
    """Yield malformed lines of those that were not plain, with their rows and positions in the block."""
    # each of them was joined with a newline after it
    starts = kernels.lengths_to_offsets(plain.stops - plain.starts + 1)
    for row, position, column, reason in malformed:
        place = int(plain.starts[row] - starts[row]) + position
        yield Malformed(int(plain.odd[row]), place, column, reason)


def parse_any_lines(parser: TypedLines, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
    """Return what `parse_lines` does, parsed by Arrow."""
    # The only fault of plain lines is a value that goes on in the next line: then there are fewer rows than lines.
    is_plain = parser.is_plain(data)
    rows = _whole(parser, data) if is_plain else None
    if rows is not None and rows.num_rows == np.count_nonzero(data == _NEWLINE):
        return rows, iter(())
    lines = Lines.of(data, parser.blanks, parser.counted)
    bad: dict[int, str | Exception] = {}
    if rows is None or rows.num_rows != len(lines.starts):
        for wrong, reason in parser.faults(lines):
            for at in np.flatnonzero(wrong).tolist():
                bad.setdefault(at, reason)
        rows = None if bad or is_plain else _whole(parser, data)
    if rows is not None and rows.num_rows == len(lines.starts):
        return rows, iter(())
    good = np.delete(np.arange(len(lines.starts)), list(bad))
    table = pa.Table.from_batches(_parsed(parser, lines, good, bad), parser.schema).combine_chunks()
    rows = table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], parser.schema)
    if bad:
        rows = _with_nulls(rows, np.isin(np.arange(len(lines.starts)), list(bad)))
    return rows, _malformed(parser, lines, bad)


def _whole(parser: TypedLines, data: Tensor) -> pa.RecordBatch | None:
    """Return the rows of a block; None if a line does not fit."""
    try:
        return parser.rows(data)
    except (pa.ArrowException, ValueError):
        return None


def _with_nulls(rows: pa.RecordBatch, is_bad: Tensor) -> pa.RecordBatch:
    """Return the rows with a null row in the place of each bad one."""
    # a null index gives a null row, so the values under the mask do not matter
    return rows.take(pa.array(np.cumsum(~is_bad) - 1, mask=is_bad))


def _parsed(
    parser: TypedLines, lines: Lines, chosen: Tensor, bad: dict[int, str | Exception]
) -> Iterator[pa.RecordBatch]:
    """Parse the chosen lines; if that fails, parse each half, and the lines of a small part one by one."""
    # with no line found bad so far, parsing all of them together has failed already
    pending = [chosen] if bad else _halves(chosen)
    while pending:
        part = pending.pop()
        if not len(part):
            continue
        try:
            batch = parser.rows(lines.join(part))
            if batch.num_rows != len(part):
                raise ValueError("found several rows in one line, or one row in several")
            yield batch
        except (pa.ArrowException, ValueError) as error:
            if len(part) == 1:
                bad[int(part[0])] = error
            else:
                pending += _halves(part)


def _halves(part: Tensor) -> list[Tensor]:
    """Return the halves of some lines, or each line of a few; the last one first, since they go on a stack."""
    return np.array_split(part, max(len(part), 1) if len(part) <= _FEW else 2)[::-1]


def _malformed(parser: TypedLines, lines: Lines, bad: Mapping[int, str | Exception]) -> Iterator[Malformed]:
    """Yield the malformed lines in order; the fault of a line is searched when the line is reported."""
    for at, error in sorted(bad.items(), key=itemgetter(0)):
        column, offset, reason = "", 0, error
        if isinstance(error, Exception):
            column, offset, reason = parser.explain(lines.line(at), error)
        yield Malformed(at, int(lines.starts[at]) + offset, column, str(reason))


def no_schema(files: LineFiles, fault: str) -> ProviderError:
    """Return the error of files that have no line to infer a schema from, or only lines with a fault."""
    declare = "declare the types with %(schema)s"
    if fault:
        more = "" if files.files.bad_files.leaves_out else f"; {LEAVE_OUT}"
        return DamagedFileError(fault, advice=declare + more)
    return ProviderError(f"{files.paths[0]}: there is no line to infer a schema from", advice=declare)


def declare_float(column: str) -> str:
    """Return the advice for a fraction in a column of integers."""
    return f'; schema={{{json.dumps(column, ensure_ascii=False)}: "float64"}} reads it'


def first_lines_of(counts: Mapping[str, int]) -> str:
    """Return which lines a schema is inferred from, by the number of lines of each file, for messages."""
    (path, *more), lines = counts, sum(counts.values())
    of_files = f"of {path}" if not more else f"of {path} and {len(more)} more file{'s' * (len(more) > 1)}"
    return f"the first {lines:,} line{'s' * (lines != 1)} {of_files}"


def check_types(schema: pa.Schema, fits: Callable[[pa.DataType], bool], kind: str) -> None:
    """Raise ProviderOptionError for a declared column whose type lines of this kind cannot have."""
    for field in schema:
        if not fits(field.type):
            raise ProviderOptionError(
                f"schema: column {field.name!r} is {field.type}, which {kind} can't be read as\n"
                "declare it as text, and convert it in a net"
            )
