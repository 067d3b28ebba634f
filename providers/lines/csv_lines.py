"""CSV and TSV: one row in each line, checked against a declared or inferred schema."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, islice
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow import kernels
from seqflow.arguments import ByteSize
from seqflow.errors import LEAVE_OUT, DamagedFileError, ProviderError, ProviderOptionError, nearest
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.formats.suffixes import COMPRESSIONS
from seqflow.providers.lines.json_lines import JsonLineFormat
from seqflow.providers.lines.json_lines import is_readable as is_readable_json
from seqflow.providers.lines.line_faults import Malformed, excerpt, holds
from seqflow.providers.lines.plain_lines import PlainLines, kind_of, plain_lines
from seqflow.providers.lines.quotes import hidden_newlines, row_ends
from seqflow.providers.lines.text_lines import BOM, LineFiles
from seqflow.providers.lines.typed_lines import (
    Lines,
    TypedLines,
    check_text,
    check_types,
    declare_float,
    first_lines_of,
    is_utf8,
    no_schema,
    not_utf8,
    parse_lines,
)
from seqflow.providers.provider import Provider
from seqflow.providers.type_texts import SchemaLike, declared_schema, with_declared
from seqflow.record.arrow_types import is_any
from seqflow.record.buffers import offsets_of
from seqflow.record.record import Tensor
from seqflow.record.selection import check_names

_LEAVES = (
    types.is_boolean, types.is_integer, types.is_float32, types.is_float64, types.is_string,
    types.is_large_string, types.is_timestamp, types.is_date32, types.is_decimal128,
)  # fmt: skip
_AS_WRITTEN = (types.is_boolean, types.is_string, types.is_large_string, types.is_timestamp)
"""Types for which Arrow's reader accepts the same texts as its cast of texts."""
_TABS = (".tsv", ".tab")
_DELIMITERS = ",;\t|"
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_BOOL = re.compile("true|false")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_QUOTE, _RETURN, _NEWLINE = b'"\r\n'
_SUSPECT = b" \txXnN"
"""Letters of numbers that Arrow's reader accepts but should not: with blanks, hexadecimal, `nan(1)`."""
_OF_VALUES = {*"0123456789.+-eE", *"truefalse", *"TRUEFALSE"}
"""Letters of numbers and bools. A delimiter among them ends no value for the native parser, which reads on."""
_AFTER_QUOTE = 'text after a closing quote; a quote inside a quoted value is written twice, ""'
_LONGEST_NAME = 1 << 17
_NO_HEADER = "%(header)s reads files without names"
Names: TypeAlias = tuple[str, ...]
Sample: TypeAlias = "tuple[CsvLines, str, list[bytes]]"
"""Parser of the texts of a file, its path, and its first lines."""
_NAMED = r"(?i)^[-+]?(nan|inf|infinity)$"
_DECIMAL = r"(?i)^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]{1,2})?$"
_MOST_DIGITS = 38
"""Digits of decimal128, beyond which Arrow's numbers wrap around."""
_PLACE = re.compile(r"^In CSV column #\d+: |^CSV parse error: |^CSV conversion error to [^:]*: |Row #\d+: ")


@file_format("csv")
class Csv(Format):
    """Options of CSV and TSV files."""

    schema: SchemaLike | None = None
    """Types of some columns, `{"ids": "list<int64>"}`, or a `pyarrow.Schema` of all; others are inferred from the
    first lines."""
    extra_fields: Literal["error", "ignore"] = "error"
    """Columns that are not in a given `pyarrow.Schema`: an error, or left out. "ignore" also leaves out those that a
    mapping does not name."""
    delimiter: str | None = None
    """Separator of columns; None is a comma, or a tab if the name ends in .tsv or .tab."""
    list_delimiter: str | None = None
    """Separator of the values in columns that are declared as lists; without it, lists are JSON, as `[1, 2]`."""
    decimal: Literal[".", ","] = "."
    """Letter before the fraction of a number."""
    newlines_in_values: bool | None = None
    """Whether values in quotes may have newlines; None looks at the first lines. It takes a pass over each file."""
    header: bool = True
    """False reads the first lines as rows; the columns are then those of `schema`, in order."""
    batch_bytes: ByteSize = "4 MiB"
    """Bytes of a file that are read, and prepared, together."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of lines of values; an empty value is null, `""` an empty text.

        An empty value of a list column with a `list_delimiter` is an empty list. Structs, maps and other lists are
        JSON. Types that are not in the schema are inferred from the lines of the first 64 KiB of the first 16 files
        with rows, and of one file of each other header. Files that are not blank have a header, in one line; columns
        are found by name, and are null in files that lack them. Values in quotes may have newlines if the first lines
        show it, or with `newlines_in_values=True`; otherwise such lines are malformed.
        """
        schema, list_delimiter, header = self.schema, self.list_delimiter, self.header
        is_guessed, opened = self.delimiter is None, LineFiles.of(files)
        delimiter = _tabs_or_commas(opened.paths[0]) if self.delimiter is None else self.delimiter
        for name, letter in (("delimiter", delimiter), ("list_delimiter", list_delimiter or "|")):
            if not isinstance(letter, str) or len(letter) != 1 or not letter.isascii() or letter in '"\r\n':
                raise ProviderOptionError(f"{name} is {letter!r}, expected one letter of ASCII, and no quote")
        if not header and schema is None:
            raise ProviderOptionError("CSV without a header needs schema=, with all its columns in order")
        if not header:
            opened.leave_out_unreadable(_is_row, check_text)
        headers = _headers(opened, delimiter) if header else {}
        for names, (path, *_) in headers.items():
            if is_guessed and len(names) == 1:
                _check_one_column(path, names[0], delimiter)
        declared = None if schema is None else declared_schema(schema)
        if declared is not None:
            check_types(declared, lambda kind: _is_readable(kind, list_delimiter), "CSV")
        is_partial = isinstance(schema, Mapping) and self.extra_fields == "error"
        if declared is not None and header:
            _check_headers(headers, declared.names, self.extra_fields, is_partial)
        headers = headers or {tuple(() if declared is None else declared.names): [*opened.paths]}
        line_format = CsvLines(pa.schema([]), (), delimiter, list_delimiter, header, self.decimal)
        first = _samples(line_format, opened, headers)
        newlines = _have_newlines(first) if self.newlines_in_values is None else self.newlines_in_values
        line_format, inferred = replace(line_format, newlines=newlines), ""
        found: pa.Schema = declared
        if declared is None or (is_partial and {*chain(*headers)} > set(declared.names)):
            known, inferred = _inferred(opened, first, newlines, headers)
            found = with_declared(known, declared)
        versions = [
            (line_format.of(names, [one for one in found if one.name in names]), of_one)
            for names, of_one in headers.items()
        ]
        return opened.provider(versions[0][0], byte_count(self.batch_bytes), inferred, versions[1:])


def _tabs_or_commas(path: str) -> str:
    stem, suffix = os.path.splitext(path.lower())
    if suffix in COMPRESSIONS:
        suffix = os.path.splitext(stem)[1]
    return "\t" if suffix in _TABS else ","


def _is_readable(kind: pa.DataType, list_delimiter: str | None) -> bool:
    if types.is_nested(kind) and not _is_split(kind, list_delimiter):
        return is_readable_json(kind)
    return is_any(kind.value_type if types.is_list(kind) else kind, _LEAVES)


def _is_split(kind: pa.DataType, list_delimiter: str | None) -> bool:
    """Return whether values of this type are lists without brackets; other nested ones are JSON."""
    return types.is_list(kind) and list_delimiter is not None and not types.is_nested(kind.value_type)


def _headers(files: LineFiles, delimiter: str) -> dict[Names, list[str]]:
    """Return the files of each header, in the order of their first files; blank files have none.

    Raise ProviderError if a file has no column of another one: its first line is probably a row.
    """

    def look(path: str, lines: list[bytes]) -> Names | None:
        return _header(path, lines[0], delimiter) if _has_row(lines) else None

    headers: dict[Names, list[str]] = {}
    for path, names in files.each_start(_has_row, look).items():
        if names is not None:
            headers.setdefault(names, []).append(path)
    if not headers:
        where = files.paths[0]
        raise ProviderError(f"{where}: there is no line with the names of the columns", advice=_NO_HEADER)
    counts = Counter(chain(*headers))
    for names, (path, *_) in headers.items() if len(headers) > 1 else ():
        if all(counts[name] == 1 for name in names):
            other, there = next((one, of_one[0]) for one, of_one in headers.items() if one != names)
            raise ProviderError(
                f"no other file has a column of {path}, whose first is {names[0]!r}; in {there} it is {other[0]!r}",
                advice=f"{_NO_HEADER}, %(exclude)s leaves out files",
            )
    return headers


def _is_row(line: bytes) -> bool:
    return bool(line.strip(b"\r"))


def _has_row(lines: Sequence[bytes]) -> bool:
    return any(map(_is_row, lines))


def _header(path: str, line: bytes, delimiter: str) -> tuple[str, ...]:
    line = line.rstrip(b"\r")
    values = [value for *_, value in _values(line, delimiter)]
    try:
        check_text(line)
        if not line or line.count(b'"') % 2 or b"\r" in line:
            raise ValueError("expected the names of the columns in one line")
        found = [(value or b"").decode() for value in values]
        if values[-1] is None or (longest := max(map(len, found))) > _LONGEST_NAME:
            raise ValueError(_AFTER_QUOTE if values[-1] is None else f"a name has {longest:,} letters")
    except ValueError as error:
        what = f"{path}, line 1: the header can't be read: {error}"
        raise DamagedFileError(what, advice=f"{LEAVE_OUT}; {_NO_HEADER}") from None
    check_names(pa.schema([(name, pa.null()) for name in found]))
    return tuple(found)


def _check_one_column(path: str, name: str, delimiter: str) -> None:
    """Raise ProviderError if the name of the only column contains another delimiter."""
    other = next((letter for letter in _DELIMITERS if letter in name), None)
    if other is not None:
        raise ProviderError(
            f"{path}, line 1: the header has no {delimiter!r} and is {name!r}, one name\n"
            f"format=sf.Csv(delimiter={other!r}) splits it, sf.Csv(delimiter={delimiter!r}) reads it as one name"
        )


def _check_headers(
    headers: Mapping[Names, Sequence[str]], declared: Sequence[str], extra_fields: str, is_partial: bool
) -> None:
    first, known = next(iter(headers.values()))[0], dict.fromkeys(chain(*headers))
    for name in declared:
        if name not in known:
            have, it = ("and the other files have", "they have") if len(headers) > 1 else ("has", "it has")
            raise ProviderError(
                f"{first} {have} no column {name!r}{nearest(name, known)}; {it} {', '.join(known)}"
            )
    for names, (path, *_) in headers.items() if not is_partial else ():
        for name in names if extra_fields == "error" else ():
            if name not in declared:
                raise ProviderError(
                    f"{path}: column {name!r} is not in the schema\n"
                    'declare it, or leave such columns out with extra_fields="ignore"'
                )
        if set(declared).isdisjoint(names):
            raise ProviderError(
                f"{path} has no column of the schema; it has {', '.join(names)}\nexclude= leaves out files"
            )


def _values(line: bytes, delimiter: str) -> list[tuple[int, int, bytes | None]]:
    """Return start, stop and content of each value of a line; the last content is None if text follows its quotes."""
    cut = re.escape(delimiter).encode()
    value = re.compile(rb'(?:"([^"]*(?:""[^"]*)*)"|((?!")[^%b]*))(%b|\Z)' % (cut, cut))
    found: list[tuple[int, int, bytes | None]] = []
    start = 0
    while match := value.match(line, start):
        quoted, plain, end = match.groups()
        found.append((start, match.start(3), plain if quoted is None else quoted.replace(b'""', b'"')))
        if not end:
            return found
        start = match.end()
    return [*found, (start, len(line), None)]


def _samples(
    line_format: "CsvLines", files: LineFiles, headers: Mapping[Names, Sequence[str]]
) -> list[Sample]:
    """Return the first lines of the first files with rows, and of one file of each header, and their parsers."""
    first = dict(files.samples(_is_row, line_format.header))
    for of_one in headers.values():
        if first.keys().isdisjoint(of_one):
            first |= islice(files.samples(_is_row, line_format.header, of_one), 1)
    names_of = {path: names for names, of_one in headers.items() for path in of_one}
    return [(line_format.of(names_of[path], _texts(names_of[path])), path, first[path]) for path in first]


def _texts(names: Names) -> list[pa.Field]:
    return [pa.field(name, pa.string()) for name in names]


def _whole_rows(lines: Sequence[bytes], texts: "CsvLines") -> Tensor:
    """Return the whole rows of the first lines of a file."""
    data = np.frombuffer(b"\n".join([*lines[texts.header :], b""]), np.uint8)
    ends = row_ends(data, texts.newlines)
    return data[: int(ends[-1]) + 1 if len(ends) else 0]


def _have_newlines(first: Sequence[Sample]) -> bool:
    """Return whether the first lines have newlines in quotes, and are rows without a fault if these end no row."""
    odd = [
        (replace(texts, newlines=True), lines)
        for texts, _, lines in first
        if b'"' in b"".join(lines) and any(line.count(_QUOTE) % 2 for line in lines[texts.header :])
    ]
    found = [(texts, _whole_rows(lines, texts)) for texts, lines in odd]
    has_any = any(len(row_ends(one, True)) < len(row_ends(one, False)) for _, one in found)
    return has_any and not any(next(texts.parse(one)[1], None) for texts, one in found)


def _inferred(
    files: LineFiles, first: Sequence[Sample], newlines: bool, headers: Mapping[Names, Sequence[str]]
) -> tuple[pa.Schema, str]:
    """Return the schema of the first lines: int64, double or bool if all values of a column are, else string."""
    counts, fault = {next(iter(headers.values()))[0]: 0}, ""
    values: dict[str, list[pa.Array]] = {name: [] for name in chain(*headers)}
    for texts, path, lines in first:
        texts = replace(texts, newlines=newlines)
        sample = _whole_rows(lines, texts)
        rows, malformed = texts.parse(sample)
        faults = list(malformed)
        if faults and not fault:
            number = 1 + texts.header + sample[: faults[0].position].tobytes().count(b"\n")
            fault = f"{path}, line {number}: the schema can't be inferred: {faults[0].reason}"
        good = rows.take(pa.array(np.delete(np.arange(rows.num_rows), [fault.row for fault in faults])))
        for name, column in zip(good.schema.names, good.columns, strict=True):
            values[name].append(column)
        counts[path] = good.num_rows
    if not sum(counts.values()) and not fault:
        raise no_schema(files, fault)
    decimal = first[0][0].decimal
    schema = pa.schema(
        [(name, _type_of(pa.chunked_array(found, pa.string()), decimal)) for name, found in values.items()]
    )
    sampled = {path: count for path, count in counts.items() if count}
    # the header tells the columns of lines that are all bad rows
    if not sampled:
        return schema, "columns are text: all of the first lines are malformed"
    return schema, f"schema inferred from {first_lines_of(sampled)}"


def _type_of(texts: pa.ChunkedArray, decimal: str) -> pa.DataType:
    import pyarrow.compute as pc

    def are_all(pattern: re.Pattern[str]) -> bool:
        return bool(pc.all(pc.match_substring_regex(found, rf"\A(?:{pattern.pattern})\z")).as_py())

    found = texts.drop_null()
    if decimal != ".":  # a wrong point becomes a blank
        found = pc.replace_substring(pc.replace_substring(found, ".", " "), decimal, ".")
    if not len(found):
        return pa.string()
    if are_all(_INTEGER):
        return pa.int64() if _fit(found, pa.int64()) else pa.string()
    if are_all(_NUMBER) and _fit(found, pa.float64()):
        return pa.float64()
    return pa.bool_() if are_all(_BOOL) else pa.string()


def _fit(numerals: pa.ChunkedArray, kind: pa.DataType) -> bool:
    """Return whether a type holds the numbers; Arrow reads large ones as infinity."""
    import pyarrow.compute as pc

    try:
        return bool(pc.all(pc.is_finite(numerals.cast(kind))).as_py())
    except pa.ArrowInvalid:
        return False


def _with_point(number: str, decimal: str) -> str:
    """Return a number with a point before its fraction; a wrong point becomes a blank."""
    return number if decimal == "." else number.replace(".", " ").replace(decimal, ".")


def _read_as(kind: pa.DataType, are_texts: bool) -> pa.DataType:
    """Return the type for Arrow's reader to read a column as: text for types that it would convert wrongly."""
    if types.is_nested(kind) or types.is_decimal128(kind) or (are_texts and not is_any(kind, _AS_WRITTEN)):
        return pa.string()
    return kind


@dataclass(frozen=True, slots=True)
class CsvLines(TypedLines):
    """Parser of lines of CSV; see LineFormat and TypedLines. `names` has a name for each value of a line."""

    schema: pa.Schema
    names: tuple[str, ...]
    delimiter: str
    list_delimiter: str | None
    header: bool
    decimal: str = "."
    newlines: bool = False
    """Whether newlines in quotes do not end a row."""
    hidden: bytes = b""
    """Letters in place of newlines and carriage returns inside quotes."""
    kind: ClassVar[str] = "csv"
    blanks: ClassVar[bytes] = b"\r"
    counted: ClassVar[bytes] = b'\r"'

    def of(self, names: Names, schema: Iterable[pa.Field]) -> "CsvLines":
        """Return the parser of files with this header, which reads the columns of `schema`."""
        return replace(self, names=names, schema=pa.schema(list(schema)))

    def parse(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        if not self.newlines:
            return parse_lines(self, data)
        data, hidden = hidden_newlines(data, f"{self.delimiter}{self.list_delimiter or ''}")
        return parse_lines(replace(self, hidden=hidden), data)

    def _shown(self, content: bytes) -> bytes:
        """Return bytes with newlines and carriage returns where letters stand for them."""
        return content.translate(bytes.maketrans(self.hidden, b"\n\r"[: len(self.hidden)]))

    def plain_lines(self, data: Tensor) -> PlainLines | None:
        fields = [self.schema.field(name) if name in self.schema.names else None for name in self.names]
        kinds = [
            kind for field in fields if (kind := "skipped" if field is None else self._kind_of(field.type))
        ]
        if len(kinds) < len(fields) or self.hidden or self.delimiter in _OF_VALUES:
            return None
        parsed = kernels.parse_csv(data, kinds, ord(self.delimiter), ord(self.list_delimiter or "\0"))
        return plain_lines(parsed, fields, self.schema)

    def _kind_of(self, kind: pa.DataType) -> str | None:
        """Return the kind of a column for `kernels.parse_csv`; None if it does not parse its values."""
        if types.is_list(kind) and (
            not self.list_delimiter or self.list_delimiter in {*_OF_VALUES, self.delimiter}
        ):
            return None
        leaf = kind.value_type if types.is_list(kind) else kind
        return None if types.is_floating(leaf) and self.decimal != "." else kind_of(kind)

    def is_plain(self, data: Tensor) -> bool:
        returns, quotes = (np.flatnonzero(data == letter) for letter in (_RETURN, _QUOTE))
        return (
            is_utf8(data)
            and bool(np.isin(data[returns + 1], (_RETURN, _NEWLINE)).all())
            and len(quotes) % 2 == 0
            and bool(self._are_edges(data[quotes[::2] - 1]).all())
            and bool(self._are_edges(data[quotes[1::2] + 1]).all())
        )

    def _are_edges(self, letters: Tensor) -> Tensor:
        """Return which letters may come before an opening quote or after a closing one; quotes may be doubled."""
        found: Tensor = (letters == _NEWLINE) | (letters == _RETURN) | (letters == _QUOTE)
        found |= letters == ord(self.delimiter)
        return found

    def faults(self, lines: Lines) -> Iterator[tuple[Tensor, str | Exception]]:
        """Yield the lines that pyarrow would join with the next one, split, or read as other texts."""
        yield not_utf8(lines), "not UTF-8"
        yield lines.counts[_RETURN] > 0, "a carriage return inside the line"
        open_quote = "a quote that is not closed in its line"
        if not self.newlines:
            open_quote += "; format=sf.Csv(newlines_in_values=True) reads values with newlines"
        yield lines.counts[_QUOTE] % 2 == 1, open_quote
        wrong = np.zeros(len(lines.starts), np.bool_)
        for at in self._suspects(lines).tolist():
            *_, last = _values(lines.line(at), self.delimiter)[-1]
            wrong[at] = last is None
        yield wrong, ValueError(_AFTER_QUOTE)

    def _suspects(self, lines: Lines) -> Tensor:
        """Return the lines with a quoted value in which the quotes do not alternately open and close values."""
        data, starts = lines.data, lines.starts
        opening = np.flatnonzero((data[:-1] == ord(self.delimiter)) & (data[1:] == _QUOTE)) + 1
        opening = np.concatenate([starts[data[starts] == _QUOTE], opening])
        if not len(opening):
            return opening
        quotes = np.flatnonzero(data == _QUOTE)
        line_of = np.searchsorted(starts, quotes, "right") - 1
        closes = (np.arange(len(quotes)) - np.searchsorted(line_of, line_of)) % 2 == 1
        odd = line_of[~self._are_edges(data[np.where(closes, quotes + 1, quotes - 1)])]
        return np.intersect1d(odd, np.searchsorted(starts, opening, "right") - 1)

    def rows(self, data: bytes | Tensor) -> pa.RecordBatch:
        from pyarrow import csv as arrow_csv

        # Arrow's reader of numbers and dates accepts blanks around them, its cast of texts does not. If the
        # delimiter is such a letter, it is everywhere; a value can contain it only in quotes, so these count.
        letters = _SUSPECT.replace(self.delimiter.encode(), b'"')
        are_texts = self.decimal != "." or holds(data, letters)
        table = arrow_csv.read_csv(
            # Arrow drops one byte order mark, but here it is part of the first value: give it two
            pa.BufferReader(pa.py_buffer(BOM + bytes(data) if bytes(data[:3]) == BOM else data)),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(data) + 9, column_names=self.names),
            arrow_csv.ParseOptions(delimiter=self.delimiter),
            arrow_csv.ConvertOptions(
                check_utf8=False,  # the block was checked, or each of its lines
                column_types={field.name: _read_as(field.type, are_texts) for field in self.schema},
                include_columns=self.schema.names,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        ).combine_chunks()
        columns = []
        for field in self.schema:
            column = table.column(field.name)
            values = column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
            columns.append(self._built(values, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _built(self, values: pa.Array, kind: pa.DataType) -> pa.Array:
        import pyarrow.compute as pc

        if types.is_string(values.type) or types.is_large_string(values.type):
            for letter, meant in zip(self.hidden.decode(), "\n\r", strict=False):
                values = pc.replace_substring(values, letter, meant)
        if _is_split(kind, self.list_delimiter):
            return self._lists(values, kind)
        if types.is_nested(kind):
            return _parsed_json(values, kind)
        if values.type != kind:
            return self._parsed(values, kind)
        # Arrow reads 1e999 as infinity; a line that spells out inf has a suspect letter, and comes as text
        if types.is_floating(kind) and pc.any(pc.is_inf(values)).as_py():
            raise ValueError(f"a number is beyond {kind}")
        return values

    def _lists(self, texts: pa.Array, kind: pa.ListType) -> pa.Array:
        """Split each text into a list of values; an empty text or null becomes an empty list."""
        import pyarrow.compute as pc

        split = pc.split_pattern(pc.if_else(pc.equal(texts, ""), None, texts), self.list_delimiter)
        lengths = pc.fill_null(pc.list_value_length(split), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(offsets_of(lengths, wide=False), pa.int32())
        return pa.ListArray.from_arrays(offsets, self._parsed(split.flatten(), kind.value_type), type=kind)

    def _parsed(self, texts: pa.Array, kind: pa.DataType) -> pa.Array:
        """Convert texts to values, as `_parsed_values` does, with the decimal letter of the file."""
        import pyarrow.compute as pc

        if self.decimal != "." and (types.is_floating(kind) or types.is_decimal(kind)):
            if pc.any(pc.match_substring(texts, ".")).as_py():
                raise ValueError(f"a number has a point, and decimal is {self.decimal!r}")
            texts = pc.replace_substring(texts, self.decimal, ".")
        return _parsed_values(texts, kind)

    def explain(self, line: bytes, error: Exception) -> tuple[str, int, str]:
        """Return the first column whose value is refused when it is parsed alone."""
        values = _values(line, self.delimiter)
        start, _, last = values[-1]
        if last is None:
            name = self.names[min(len(values), len(self.names)) - 1]
            return name, start, f"found {excerpt(self._shown(line[start:]))}, {_AFTER_QUOTE}"
        if len(values) != len(self.names):
            expected = f"{len(self.names)} value{'s' * (len(self.names) != 1)}"
            is_ended = len(values) == len(self.names) + 1 and not last
            more = (
                f" with the empty one after the {self.delimiter!r} at the end: leave it out"
                if is_ended
                else ""
            )
            return "", 0, f"expected {expected}, found {len(values)}{more}"
        for name, (start, stop, _) in zip(self.names, values, strict=True):
            if name not in self.schema.names or start == stop:
                continue
            field = self.schema.field(name)
            one = replace(self, schema=pa.schema([field]), names=(name,))
            try:
                one.rows(line[start:stop] + b"\n")
            except (pa.ArrowException, ValueError):
                text = self._shown(line[start:stop]).decode()
                return (
                    name,
                    start,
                    f"{name!r} is not a {field.type}: {text[:40]!r}{self._advice(field, text)}",
                )
        return "", 0, _PLACE.sub("", _PLACE.sub("", str(error))).partition("\n")[0]

    def _advice(self, field: pa.Field, text: str) -> str:
        """Return what reads a number that the column's type, or its decimal letter, does not fit."""
        text = text.strip('"')
        if types.is_integer(field.type) and _NUMBER.fullmatch(_with_point(text, self.decimal)):
            return declare_float(field.name)
        is_fraction = types.is_floating(field.type) or types.is_decimal(field.type)
        if self.decimal == "." and is_fraction and _NUMBER.fullmatch(text.replace(",", ".", 1)):
            return '; format=sf.Csv(decimal=",") reads decimal commas'
        return ""


def _parsed_values(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert an array of texts to a type; raise ArrowInvalid or ValueError for a text that is not a value of it.

    A finite number beyond a float's range, and hexadecimal digits, are refused, although Arrow accepts them.
    """
    import pyarrow.compute as pc

    if types.is_decimal128(kind):
        return _decimals(texts, kind)
    values = texts.cast(kind)
    odd = texts.filter(pc.invert(pc.is_finite(values))) if types.is_floating(kind) else texts[:0]
    is_hexadecimal = types.is_integer(kind) and holds(texts.buffers()[2] or b"", b"xX")
    if is_hexadecimal or not pc.all(pc.match_substring_regex(odd, _NAMED), min_count=0).as_py():
        raise ValueError(f"a text is not one of {kind}")
    return values


def _decimals(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    import pyarrow.compute as pc

    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest + kind.scale <= _MOST_DIGITS and not holds(texts.buffers()[2] or b"", b"eE"):
        return texts.cast(kind)
    if pc.all(pc.match_substring_regex(texts, _DECIMAL), min_count=0).as_py():
        found = [text and Decimal(text) for text in texts.to_pylist()]
        if (values := pa.array(found, kind)).to_pylist() == found:
            return values
    raise ValueError(f"a text is not one of {kind}")


def _parsed_json(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert texts of JSON to values; raise ValueError for a text that is not a value of the type."""
    cells = ("null" if text is None else text.replace("\n", " ") for text in texts.to_pylist())
    lines = (f'{{"value":{cell}}}\n' for cell in cells)
    data = np.frombuffer("".join(lines).encode(), np.uint8)
    rows, malformed = JsonLineFormat(pa.schema([("value", kind)]), "error").parse(data)
    if (fault := next(malformed, None)) is not None:
        raise ValueError(fault.reason)
    return rows.column(0)
