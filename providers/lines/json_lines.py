"""JSON lines: one object in each line, checked against a declared or inferred schema."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite, isinf
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow import kernels
from seqflow.arguments import ByteSize
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.lines.documents import Layout
from seqflow.providers.lines.plain_lines import PlainLines, kind_of, plain_lines
from seqflow.providers.lines.text_lines import LineFiles
from seqflow.providers.lines.typed_lines import (
    Lines,
    TypedLines,
    check_text,
    check_types,
    declare_float,
    first_lines_of,
    no_schema,
    not_utf8,
)
from seqflow.providers.provider import Provider
from seqflow.providers.type_texts import SchemaLike, declared_schema, with_declared
from seqflow.record.arrow_types import LISTS, TEXTS, child_fields, is_any, is_any_level, with_child_fields
from seqflow.record.exact_casts import ALIKE, exact_cast
from seqflow.record.record import Tensor
from seqflow.record.selection import MAX_DEPTH, Selection, leaf_types

_LEAVES = (
    types.is_boolean, types.is_integer, types.is_float32, types.is_float64, types.is_string,
    types.is_large_string, types.is_timestamp, types.is_decimal128,
)  # fmt: skip
_FROM_JSON = (*ALIKE, ((types.is_string,), (types.is_timestamp,)))
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
"""Letters of a key that a line of JSON has only after a backslash."""
_INFINITE = re.compile(rb"Inf|[0-9]{39}|[0-9][eE]\+?[0-9]")
"""Part of each number that Arrow's parser makes infinite, also as float32."""
_DEEPEST = 64
_NOT_FINITE = pa.float16()
"""Type of `NaN` and `Infinity`, which JSON does not have: another line must show that the column is double."""
_MIXED = pa.month_day_nano_interval()
"""Type of values of several types under one key, which no column can hold."""
_BLANKS = b" \t\r"
_KINDS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), type(None): pa.null()}
_PLACE = re.compile(r"^JSON parse error: | in row \d+$")


@file_format("jsonl")
class JsonLines(Format):
    """Options of files with a JSON object in each line."""

    schema: SchemaLike | None = None
    """Types of some columns, `{"ids": "list<int64>"}`, or a `pyarrow.Schema` of all; others are inferred from the
    first lines."""
    extra_fields: Literal["error", "ignore"] = "error"
    """Keys that are neither in the schema nor in the first lines: an error of their line, or left out. "ignore" reads
    only the keys of a given schema."""
    batch_bytes: ByteSize = "4 MiB"
    """Bytes of a file that are read, and prepared, together."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of lines with an object each, whose keys are the columns. A missing key is null.

        Keys without a type in `schema` are inferred from the lines of the first 64 KiB of the first 16 files with
        lines; a key that is null, empty or of several types in all of them is left out. An object may be a map of the
        schema, as may a list of objects with "key" and "value". A later key is an error of its line, or left out with
        `extra_fields="ignore"`.
        """
        opened = LineFiles.of(files, has_layouts=True)
        opened.leave_out_unreadable(_is_row, _parsed)
        declared = None if self.schema is None else declared_schema(self.schema)
        if declared is not None:
            check_types(declared, is_readable, "JSON")
        if declared is None or (isinstance(self.schema, Mapping) and self.extra_fields == "error"):
            found, inferred = _infer_schema(opened, declared)
        else:
            found, inferred = declared, ""
        line_format = JsonLineFormat(found, self.extra_fields, _unknown(found))
        paths: dict[Layout, list[str]] = {}
        for path in opened.paths if opened.layouts else ():
            paths.setdefault(opened.layouts.get(path, ""), []).append(path)
        others = [(replace(line_format, layout=layout), of_one) for layout, of_one in paths.items()]
        return opened.provider(line_format, byte_count(self.batch_bytes), inferred, others)


def is_readable(kind: pa.DataType) -> bool:
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return False
    children = child_fields(kind)
    if children:
        return all(is_readable(child.type) for _, child in children)
    return is_any(kind, _LEAVES)


@dataclass(frozen=True, slots=True)
class JsonLineFormat(TypedLines):
    """Parser of JSON lines; see LineFormat and TypedLines."""

    schema: pa.Schema
    extra_fields: str
    unread: frozenset[str] = frozenset()
    """Paths of keys of unknown type that are not read."""
    layout: Layout = ""
    kind: ClassVar[str] = "jsonl"
    rows_lack: ClassVar[bool] = True
    blanks: ClassVar[bytes] = _BLANKS
    counted: ClassVar[bytes] = b"[{"

    def reading(self, selection: Selection) -> "JsonLineFormat":
        unknown = _unknown(self.schema, selection.leaves) if self.unread else self.unread
        return self if unknown == self.unread else replace(self, unread=unknown)

    def plain_lines(self, data: Tensor) -> PlainLines | None:
        kinds = [kind for field in self.schema if (kind := kind_of(field.type))]
        if len(kinds) < len(self.schema) or any(_ESCAPED.search(name) for name in self.schema.names):
            return None
        return plain_lines(kernels.parse_json(data, self.schema.names, kinds), self.schema, self.schema)

    def faults(self, lines: Lines) -> Iterator[tuple[Tensor, str]]:
        """Yield the lines that pyarrow crashes on, accepts wrongly, or joins with the next one."""
        yield _too_deep(lines), f"nested in {MAX_DEPTH} levels or more"
        yield not_utf8(lines), "not UTF-8"
        first, last = lines.data[lines.starts], lines.data[lines.stops - 1]
        yield (first != ord("{")) | (last != ord("}")), "expected one whole object, {…}, in the line"

    def rows(self, data: bytes | Tensor) -> pa.RecordBatch:
        try:
            table = self._table(data)
        except pa.ArrowInvalid:
            if not self.unread and not any(is_any_level(one.type, types.is_map) for one in self.schema):
                raise
            # Arrow's parser reads no object as a map, and no value as a null
            lines = (self._rewritten(line) for line in bytes(data).split(b"\n") if line.strip(self.blanks))
            table = self._table(b"".join(lines))
        columns = [
            exact_cast(table.column(field.name).chunk(0), field.type, _FROM_JSON)
            if table.num_rows
            else pa.nulls(0, field.type)
            for field in self.schema
        ]
        if any(map(_holds_infinity, columns)):
            for line in filter(_INFINITE.search, bytes(data).split(b"\n")):
                self._rewritten(
                    line
                )  # raises for a number that is beyond its type, and not spelled as infinity
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _table(self, data: bytes | Tensor) -> pa.Table:
        from pyarrow import json as arrow_json

        return arrow_json.read_json(
            pa.BufferReader(pa.py_buffer(data)),
            arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            arrow_json.ParseOptions(
                explicit_schema=pa.schema([(field.name, _parsed_type(field.type)) for field in self.schema]),
                unexpected_field_behavior=self.extra_fields,
            ),
        ).combine_chunks()

    def _rewritten(self, line: bytes) -> bytes:
        """Return a line with lists of pairs for the objects of maps, and without values that are not read.

        Raise ValueError for a key that is an error.
        """
        return self._text_of(_as_written(line), pa.struct(list(self.schema)), "").encode() + b"\n"

    def _text_of(self, value: Any, kind: pa.DataType, path: str) -> str:
        """Return a parsed value at a path as JSON; `kind` is null below a key that is ignored."""
        if path in self.unread:
            return "null"
        if isinstance(value, _Number):
            return _in_range(value, kind)
        if isinstance(value, _Object) and types.is_map(kind):
            if len(dict(value)) < len(value):
                raise ValueError("a key of a map is there twice")
            texts = (
                (_key_of(name, kind.key_type), self._text_of(one, kind.item_type, path))
                for name, one in value
            )
            return "[" + ",".join(f'{{"key":{key},"value":{text}}}' for key, text in texts) + "]"
        if isinstance(value, _Object):
            children = {one.name: one.type for one in kind} if types.is_struct(kind) else {}
            paths = {name: f"{path}.{name}".removeprefix(".") for name, _ in value}
            for name in paths if children and self.extra_fields == "error" else ():
                if name not in children:
                    raise ValueError(_extra(paths[name]))
            parts = (
                f"{json.dumps(name)}:{self._text_of(one, children.get(name, pa.null()), paths[name])}"
                for name, one in value
            )
            return f"{{{','.join(parts)}}}"
        if isinstance(value, list):
            inner = kind.value_type if is_any(kind, LISTS) else pa.null()
            if types.is_map(kind):
                inner = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
            return f"[{','.join(self._text_of(one, inner, path) for one in value)}]"
        return json.dumps(value)

    def explain(self, line: bytes, error: Exception) -> tuple[str, int, str]:
        """Return the first key whose value is refused when it is parsed alone."""
        try:
            pairs = _as_written(line)
        except (ValueError, RecursionError):
            return "", 0, _plain(error)
        for name, value in pairs if isinstance(pairs, _Object) else ():
            place = max(line.find(json.dumps(name, ensure_ascii=False).encode(errors="replace")), 0)
            if name not in self.schema.names:
                if self.extra_fields == "error":
                    return "", place, _extra(name)
                continue
            kind = self.schema.field(name).type
            one = replace(self, schema=pa.schema([self.schema.field(name)]))
            try:
                one.rows(one._text_of(_Object([(name, value)]), pa.struct(list(one.schema)), "").encode())
            except (pa.ArrowException, ValueError) as found:
                advice = ""
                if is_any_level(kind, types.is_null):
                    advice = f"; schema={{{json.dumps(name)}: …}} declares its type"
                elif types.is_integer(kind) and _is_fraction(value):
                    advice = declare_float(name)
                return name, place, f"{name!r} is not a {kind}: {_plain(found)}{advice}"
        return "", 0, _plain(error)


def _plain(error: Exception) -> str:
    """Return pyarrow's reason without its row, which counts from the start of the block, not of the file."""
    return _PLACE.sub("", str(error))


def _unknown(schema: pa.Schema, read: Collection[int] = ()) -> frozenset[str]:
    """Return the paths of the keys of type null, except leaves with the numbers in `read`."""
    return frozenset(
        ".".join(part for at, part in enumerate(path) if not at or part != "values")
        for number, (path, kind) in enumerate(leaf_types(schema))
        if types.is_null(kind) and number not in read
    )


class _Number(str):
    """Number as it is written."""


class _Object(list[tuple[str, Any]]):
    """Keys and values of an object."""


def _as_written(text: str | bytes) -> Any:
    """Return the value of JSON with its numbers as they are written, and its objects with all of their keys."""
    return json.loads(text, object_pairs_hook=_Object, parse_float=_Number, parse_int=_Number)


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, _Number) and not value.lstrip("-").isdigit())


def _in_range(number: str, kind: pa.DataType) -> str:
    """Return a number; raise ValueError for one that is beyond a type of floats, which Arrow makes infinite."""
    if types.is_floating(kind) and isinf(pa.array([number]).cast(kind)[0].as_py()):
        raise ValueError(f"{number[:40]} is beyond {kind}")
    return number


def _holds_infinity(values: pa.Array) -> bool:
    kind = values.type
    if types.is_struct(kind):
        return any(map(_holds_infinity, values.flatten()))
    if types.is_map(kind):
        return _holds_infinity(values.keys) or _holds_infinity(values.items)
    if is_any(kind, LISTS):
        return _holds_infinity(values.values)
    return types.is_floating(kind) and bool(np.isinf(values.to_numpy(zero_copy_only=False)).any())


def _key_of(name: str, kind: pa.DataType) -> str:
    """Return the key of a map, which JSON writes as a text, as a value of its type."""
    if is_any(_parsed_type(kind), TEXTS):
        return json.dumps(name)
    found = _as_written(name)  # raises for a text that is not JSON
    return _in_range(name, kind) if isinstance(found, _Number) else name


def _extra(path: str) -> str:
    return (
        f"the key {path!r} is not in the schema; declare it with schema={{…}}, or leave such keys out with "
        'format=sf.JsonLines(extra_fields="ignore")'
    )


def _too_deep(lines: Lines) -> Tensor:
    """Return which lines have MAX_DEPTH or more levels of objects and arrays, where pyarrow's parser overflows.

    A line is examined, without its texts, only if it has enough brackets to be too deep.
    """
    wrong = lines.counts[ord("[")] + lines.counts[ord("{")] >= MAX_DEPTH
    for at in np.flatnonzero(wrong).tolist():
        letters = np.frombuffer(_STRING.sub(b"", lines.line(at)), np.uint8)
        opened = (letters == ord("[")) | (letters == ord("{"))
        closed = (letters == ord("]")) | (letters == ord("}"))
        depth = np.cumsum(opened.astype(np.int32) - closed, dtype=np.int64)
        wrong[at] = depth.max(initial=0) >= MAX_DEPTH
    return wrong


def _parsed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that pyarrow's parser is asked for, which is then cast: lists for other lists, pairs for a map.

    The parser would drop the zones of times.
    """
    if types.is_struct(kind):
        return pa.struct([(child.name, _parsed_type(child.type)) for child in kind])
    if types.is_map(kind):
        pair = [("key", _parsed_type(kind.key_type)), ("value", _parsed_type(kind.item_type))]
        return pa.list_(pa.struct(pair))
    if types.is_timestamp(kind):
        return pa.string()
    if types.is_decimal128(kind):
        return pa.decimal256(38, kind.scale)  # as decimal128, larger numbers would wrap around
    return pa.list_(_parsed_type(kind.value_type)) if is_any(kind, LISTS) else kind


def _infer_schema(files: LineFiles, declared: pa.Schema | None = None) -> tuple[pa.Schema, str]:
    """Return the schema of declared keys, and of others by the first lines, see `samples`; and a message about these.

    Integers are int64, other numbers double, texts string, also those that look like times; objects are structs. Keys
    whose values are null or empty in all lines, or of unlike types, are null. Malformed lines do not count: they are
    bad rows when they are read. Raise ProviderError if there is no key.
    """
    kind, counts, fault = pa.struct([]), dict.fromkeys(files.paths[:1], 0), ""
    for path, lines in files.samples(_is_row):
        for number, line in enumerate(lines, start=1):
            if not (content := line.strip(_BLANKS)):
                continue
            try:
                kind = _merged(kind, _type_of(_parsed(content, _finite), 1))
                counts[path] = counts.get(path, 0) + 1
            except (ValueError, RecursionError) as error:
                fault = fault or f"{path}, line {number}: the schema can't be inferred: {error}"
    inferred = pa.schema([(child.name, _with_nulls(child.type)) for child in kind])
    found = with_declared(inferred, declared)
    if not len(found):
        raise no_schema(files, fault)
    if declared is not None and found.equals(declared):
        return found, ""
    names = () if declared is None else declared.names
    unknown = [
        f"{name!r} is {why}" for name, why in _unknown_types(kind, "") if name.partition(".")[0] not in names
    ]
    note = f"; schema={{…}} declares the types of others: {', '.join(unknown)}" if unknown else ""
    return found, f"schema inferred from {first_lines_of(counts)}{note}"


def _is_row(line: bytes) -> bool:
    return bool(line.strip(_BLANKS))


def _finite(number: str) -> float:
    if isinf(found := float(number)):
        raise ValueError(f"{number[:40]} is beyond double")
    return found


def _parsed(line: bytes, parse_float: Callable[[str], float] | None = None) -> dict[str, Any]:
    """Return the object of a line; raise ValueError or RecursionError for a line without one."""
    check_text(line)
    found = json.loads(line, parse_float=parse_float)
    if not isinstance(found, dict):
        raise ValueError("expected an object, {…}")
    return found


def _type_of(value: Any, depth: int) -> pa.DataType:
    """Return the type of a parsed value."""
    if depth > _DEEPEST:
        raise ValueError(f"nested in more than {_DEEPEST} levels")
    if isinstance(value, dict):
        return pa.struct([(name, _type_of(child, depth + 1)) for name, child in value.items()])
    if isinstance(value, list):
        if {*map(type, value)} in ({int}, {str}):
            value = [min(value), max(value)]  # which have the types of all others
        kind = pa.null()
        for child in value:
            kind = _merged(kind, _type_of(child, depth + 1))
        return pa.list_(kind)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is beyond int64")
    if isinstance(value, float) and not isfinite(value):
        return _NOT_FINITE
    return _KINDS[type(value)]


def _merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that holds values of both types; _MIXED if there is none."""
    # most are the same object: Arrow compares types much slower
    if one is other or one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if {one, other} <= {pa.int64(), pa.float64(), _NOT_FINITE}:
        return pa.float64()
    if types.is_list(one) and types.is_list(other):
        return pa.list_(_merged(one.value_type, other.value_type))
    if types.is_struct(one) and types.is_struct(other):
        fields = {child.name: child.type for child in one}
        for child in other:
            fields[child.name] = _merged(fields.get(child.name, pa.null()), child.type)
        return pa.struct(list(fields.items()))
    return _MIXED


def _with_nulls(kind: pa.DataType) -> pa.DataType:
    """Return the type with null in place of types that are not known."""
    fields = [child.with_type(_with_nulls(child.type)) for _, child in child_fields(kind)]
    if fields:
        return with_child_fields(kind, fields)
    return pa.null() if types.is_struct(kind) or kind in (_MIXED, _NOT_FINITE) else kind


def _unknown_types(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of fields whose types are not known, and a description of their values."""
    if kind == _MIXED:
        yield path, "of several types"
    elif kind == _NOT_FINITE:
        yield path, "NaN or infinite (NaN is not a number of JSON)"
    elif types.is_null(kind) or (types.is_struct(kind) and not kind.num_fields):
        yield path, "null or empty"
    elif types.is_struct(kind):
        for child in kind:
            yield from _unknown_types(child.type, f"{path}.{child.name}".removeprefix("."))
    elif types.is_list(kind):
        yield from _unknown_types(kind.value_type, path)
