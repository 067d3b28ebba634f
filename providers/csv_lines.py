"""CSV and TSV: one row in each line, held to a declared or inferred schema."""

import csv
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError, ProviderOptionError, nearest
from seqflow.providers.kinds import COMPRESSIONS
from seqflow.providers.line_faults import Malformed
from seqflow.providers.lines import first_line, first_sample, open_lines
from seqflow.providers.provider import Provider
from seqflow.providers.type_texts import SchemaLike, declared_schema
from seqflow.providers.typed_lines import BOM, Lines, check_types, inferred_from, not_utf8, parse_lines
from seqflow.record.arrow_types import is_any
from seqflow.record.buffers import offsets_of
from seqflow.record.record import Tensor
from seqflow.record.selection import Rename, check_names

_LEAVES = (
    types.is_boolean, types.is_integer, types.is_float32, types.is_float64, types.is_string,
    types.is_large_string, types.is_timestamp, types.is_date32, types.is_decimal128,
)  # fmt: skip
_TABS = (".tsv", ".tab")
_DELIMITERS = ",;\t|"
_INTEGER = re.compile(r"-?(0|[1-9]\d*)")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_PLACE = re.compile(r"^In CSV column #\d+: |^CSV parse error: |^CSV conversion error to [^:]*: |Row #\d+: ")


def open_csv(
    paths: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    rename: Rename | None = None,
    schema: SchemaLike | None = None,
    extra_fields: str = "error",
    delimiter: str | None = None,
    list_delimiter: str | None = None,
    header: bool = True,
    batch_bytes: int | None = None,
) -> Provider:
    """A provider of lines of values. An empty value is null, `""` an empty text, an empty list a list without values.

    Without a `schema` it is inferred from the lines of the first 64 KiB of the first file. All files have one header.
    A value has no newlines, not in quotes either: such lines are malformed.
    """
    is_guessed = delimiter is None
    delimiter = _tabs_or_commas(paths[0]) if delimiter is None else delimiter
    for name, letter in (("delimiter", delimiter), ("list_delimiter", list_delimiter or "|")):
        if not isinstance(letter, str) or len(letter) != 1 or not letter.isascii() or letter in '"\r\n':
            raise ProviderOptionError(f"{name} is {letter!r}, expected one letter of ASCII, and no quote")
    if extra_fields not in ("error", "ignore"):
        raise ProviderOptionError(f"extra_fields is {extra_fields!r}, expected 'error' or 'ignore'")
    if not header and schema is None:
        raise ProviderOptionError("CSV without a header needs schema=, with all its columns in order")
    names = _common_header(paths, delimiter) if header else ()
    if is_guessed and len(names) == 1:
        _check_one_column(paths[0], names[0], delimiter)
    inferred = ""
    if schema is None:
        found, inferred = _inferred(paths, names, delimiter)
    else:
        found = declared_schema(schema)
        check_types(found, _is_readable, "CSV")
        _check_lists(found, list_delimiter)
        if header:
            _check_header(paths[0], names, found.names, extra_fields)
    line_format = CsvLines(found, names or tuple(found.names), delimiter, list_delimiter, header)
    return open_lines(paths, line_format, columns, rename, batch_bytes, inferred=inferred)


def _tabs_or_commas(path: str) -> str:
    stem, suffix = os.path.splitext(path.lower())
    if suffix in COMPRESSIONS:
        suffix = os.path.splitext(stem)[1]
    return "\t" if suffix in _TABS else ","


def _is_readable(kind: pa.DataType) -> bool:
    return is_any(kind.value_type if types.is_list(kind) else kind, _LEAVES)


def _check_lists(schema: pa.Schema, list_delimiter: str | None) -> None:
    if list_delimiter is None:
        for field in schema:
            if types.is_list(field.type):
                raise ProviderOptionError(
                    f"schema: column {field.name!r} is {field.type}: list_delimiter= says what separates its values"
                )


def _common_header(paths: Sequence[str], delimiter: str) -> tuple[str, ...]:
    """The names of the columns, which all files have in the same order."""
    found: tuple[str, ...] = ()
    for path in paths:
        names = _header(path, delimiter)
        if found and names != found:
            raise ProviderError(
                f"the columns are {', '.join(found)} in {paths[0]}, but {', '.join(names)} in {path}\n"
                "open these files one by one"
            )
        found = names
    return found


def _header(path: str, delimiter: str) -> tuple[str, ...]:
    try:
        line = first_line(path).removeprefix(BOM).decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ProviderError(f"{path}, line 1: not UTF-8: {error.reason}") from None
    if not line or line.count('"') % 2 or "\r" in line:
        raise ProviderError(
            f"{path}, line 1: expected a header with the names of the columns in one line\n"
            "header=False reads files without one"
        )
    try:
        names = _values(line, delimiter)
    except ValueError as error:
        raise ProviderError(f"{path}, line 1: the header can't be read: {error}") from None
    check_names(pa.schema([(name, pa.null()) for name in names]))
    return tuple(names)


def _check_one_column(path: str, name: str, delimiter: str) -> None:
    """ProviderError where the only column has a name that another delimiter would cut."""
    other = next((letter for letter in _DELIMITERS if letter in name), None)
    if other is not None:
        raise ProviderError(
            f"{path}, line 1: the header has no {delimiter!r} and is {name!r}, one name\n"
            f"delimiter={other!r} cuts it, delimiter={delimiter!r} reads it as it is"
        )


def _check_header(path: str, names: Sequence[str], declared: Sequence[str], extra_fields: str) -> None:
    for name in declared:
        if name not in names:
            raise ProviderError(
                f"{path} has no column {name!r}{nearest(name, names)}; it has {', '.join(names)}"
            )
    for name in names:
        if name not in declared and extra_fields == "error":
            raise ProviderError(
                f"{path}: column {name!r} is not in the schema\n"
                'declare it, or leave such columns out with extra_fields="ignore"'
            )


def _values(line: str, delimiter: str) -> list[str]:
    """The values of a line; ValueError for a line that is malformed."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise ValueError(str(error)) from None


def _inferred(paths: Sequence[str], names: Sequence[str], delimiter: str) -> tuple[pa.Schema, str]:
    """The schema of the first lines: int64, double or bool where all values are such, and else string."""
    path, lines = first_sample(paths)
    rows: list[list[str]] = []
    for line in lines[1:]:
        text = line.decode(errors="replace").rstrip("\r")
        try:
            values = _values(text, delimiter)
        except ValueError:
            continue
        if text and len(values) == len(names):
            rows.append(values)
    if not rows:
        raise ProviderError(
            f"{path}: there is no line to infer a schema from\ndeclare the types with schema={{…}}"
        )
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return pa.schema([(name, _type_of(values)) for name, values in columns]), inferred_from(path, len(rows))


def _type_of(values: Sequence[str]) -> pa.DataType:
    found = [value for value in values if value]
    if found and all(map(_INTEGER.fullmatch, found)):
        fits = all(len(value) < 20 and -(2**63) <= int(value) < 2**63 for value in found)
        return pa.int64() if fits else pa.string()
    if found and all(map(_NUMBER.fullmatch, found)):
        return pa.float64()
    is_bool = found and all(value in ("true", "false") for value in found)
    return pa.bool_() if is_bool else pa.string()


@dataclass(frozen=True, slots=True)
class CsvLines:
    """Parses lines of CSV; see LineFormat and typed_lines.Parser. `names` are those of all values in a line."""

    schema: pa.Schema
    names: tuple[str, ...]
    delimiter: str
    list_delimiter: str | None
    header: bool
    kind: ClassVar[str] = "csv"
    blanks: ClassVar[bytes] = b"\r"
    counted: ClassVar[bytes] = b'\r"'

    def skip(self, content: bytes) -> int:
        if self.header:
            return content.find(b"\n") + 1
        return len(BOM) if content.startswith(BOM) else 0

    def parse(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        return parse_lines(self, data)

    def faults(self, lines: Lines) -> Iterator[tuple[Tensor, str]]:
        """Lines that pyarrow would read over the end of, or as several."""
        yield not_utf8(lines), "not UTF-8"
        yield lines.counts[ord("\r")] > 0, "a carriage return inside the line"
        open_quote = "a quote that is not closed in its line; values with newlines can't be read"
        yield lines.counts[ord('"')] % 2 == 1, open_quote

    def rows(self, data: bytes | Tensor) -> pa.RecordBatch:
        from pyarrow import csv as arrow_csv

        table = arrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(data)),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.names),
            arrow_csv.ParseOptions(delimiter=self.delimiter),
            arrow_csv.ConvertOptions(
                column_types={
                    field.name: pa.string() if types.is_list(field.type) else field.type
                    for field in self.schema
                },
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
            columns.append(self._lists(values, field.type) if types.is_list(field.type) else values)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _lists(self, texts: pa.Array, kind: pa.ListType) -> pa.Array:
        """Split each text into a list of values; an empty one, or none at all, has no values."""
        import pyarrow.compute as pc

        split = pc.split_pattern(pc.if_else(pc.equal(texts, ""), None, texts), self.list_delimiter)
        lengths = pc.fill_null(pc.list_value_length(split), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(offsets_of(lengths, wide=False), pa.int32())
        return pa.ListArray.from_arrays(offsets, split.flatten().cast(kind.value_type), type=kind)

    def explain(self, line: bytes, error: Exception) -> tuple[str, int, str]:
        """The first column whose value alone is refused, too."""
        reason = _PLACE.sub("", _PLACE.sub("", str(error))).partition("\n")[0]
        try:
            values = _values(line.decode(), self.delimiter)
        except ValueError:
            return "", 0, reason
        if len(values) != len(self.names):
            return "", 0, f"expected {len(self.names)} values, found {len(values)}"
        for place, (name, value) in enumerate(zip(self.names, values, strict=True)):
            if name not in self.schema.names or not value:
                continue
            field = self.schema.field(name)
            one = CsvLines(pa.schema([field]), (name,), self.delimiter, self.list_delimiter, self.header)
            quoted = '"' + value.replace('"', '""') + '"'
            try:
                one.rows(quoted.encode() + b"\n")
            except (pa.ArrowException, ValueError):
                start = len(self.delimiter.join(values[:place]).encode()) + (place > 0)
                return name, start, f"{name!r} is no {field.type}: {value[:40]!r}"
        return "", 0, reason
