"""JSON lines: one object in each line, checked against a declared or inferred schema."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.lines.json_schemas import infer_schema
from seqflow.providers.lines.line_faults import Malformed
from seqflow.providers.lines.text_lines import LineFiles
from seqflow.providers.lines.typed_lines import Lines, check_types, not_utf8, parse_lines
from seqflow.providers.provider import Provider
from seqflow.providers.type_texts import SchemaLike, declared_schema
from seqflow.record.arrow_types import LISTS, child_fields, is_any
from seqflow.record.exact_casts import ALIKE, exact_cast
from seqflow.record.record import Tensor
from seqflow.record.selection import MAX_DEPTH

_LEAVES = (
    types.is_boolean, types.is_integer, types.is_float32, types.is_float64, types.is_string,
    types.is_large_string, types.is_timestamp, types.is_decimal128,
)  # fmt: skip
_FROM_JSON = (*ALIKE, ((types.is_string,), (types.is_timestamp,)))
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_PLACE = re.compile(r"^JSON parse error: | in row \d+$")


@file_format("jsonl")
class JsonLines(Format):
    """Options of files with a JSON object in each line."""

    schema: SchemaLike | None = None
    """Types by column, `{"ids": "list<int64>"}`, or a `pyarrow.Schema`; None infers them from the first lines."""
    extra_fields: Literal["error", "ignore"] = "error"
    """Keys that are not in the schema: an error of their line, or left out."""
    batch_bytes: int | str = "4 MiB"
    """Bytes of a file that are read, and prepared, together."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of lines with an object each, whose keys are the columns. A missing key is null.

        Without a `schema`, it is inferred from the lines of the first 64 KiB of the first file that has some. A key
        that is not in the schema is an error of its line, or left out with `extra_fields="ignore"`.
        """
        opened, inferred = LineFiles.of(files), ""
        if self.schema is None:
            found, inferred = infer_schema(opened.paths)
        else:
            found = declared_schema(self.schema)
            check_types(found, _is_readable, "JSON")
        line_format = JsonLineFormat(found, self.extra_fields)
        return opened.provider(line_format, byte_count(self.batch_bytes), inferred=inferred)


def _is_readable(kind: pa.DataType) -> bool:
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return False
    children = child_fields(kind)
    if children:
        return all(_is_readable(child.type) for _, child in children)
    return is_any(kind, _LEAVES)


@dataclass(frozen=True, slots=True)
class JsonLineFormat:
    """Parser of JSON lines; see LineFormat and typed_lines.Parser."""

    schema: pa.Schema
    extra_fields: str
    kind: ClassVar[str] = "jsonl"
    blanks: ClassVar[bytes] = b" \t\r"
    counted: ClassVar[bytes] = b"[{"

    def parse(self, data: Tensor) -> tuple[pa.RecordBatch, Iterator[Malformed]]:
        return parse_lines(self, data)

    def is_plain(self, data: Tensor) -> bool:
        return False  # the depth of each line must be counted before pyarrow parses it

    def faults(self, lines: Lines) -> Iterator[tuple[Tensor, str]]:
        """Yield the lines that pyarrow crashes on, accepts wrongly, or joins with the next one."""
        yield _too_deep(lines), f"nested in {MAX_DEPTH} levels or more"
        yield not_utf8(lines), "not UTF-8"
        first, last = lines.data[lines.starts], lines.data[lines.stops - 1]
        yield (first != ord("{")) | (last != ord("}")), "expected one whole object, {…}, in the line"

    def rows(self, data: bytes | Tensor) -> pa.RecordBatch:
        from pyarrow import json as arrow_json

        table = arrow_json.read_json(
            pa.BufferReader(pa.py_buffer(data)),
            arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            arrow_json.ParseOptions(
                explicit_schema=pa.schema([(field.name, _parsed_type(field.type)) for field in self.schema]),
                unexpected_field_behavior=self.extra_fields,
            ),
        ).combine_chunks()
        columns = [
            exact_cast(table.column(field.name).chunk(0), field.type, _FROM_JSON)
            if table.num_rows
            else pa.nulls(0, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def explain(self, line: bytes, error: Exception) -> tuple[str, int, str]:
        """Return the first key whose value is refused when it is parsed alone."""
        try:
            pairs = json.loads(line, object_pairs_hook=list)
        except (ValueError, RecursionError):
            return "", 0, _plain(error)
        for name, _ in pairs if isinstance(pairs, list) else ():
            place = max(line.find(json.dumps(name, ensure_ascii=False).encode(errors="replace")), 0)
            if name not in self.schema.names:
                if self.extra_fields == "error":
                    return "", place, f"the key {name!r} is not in the schema"
                continue
            value = json.loads(line)[name]
            one = JsonLineFormat(pa.schema([self.schema.field(name)]), self.extra_fields)
            try:
                one.rows(json.dumps({name: value}).encode() + b"\n")
            except (pa.ArrowException, ValueError) as found:
                kind = self.schema.field(name).type
                return name, place, f"{name!r} is not a {kind}: {_plain(found)}"
        return "", 0, _plain(error)


def _plain(error: Exception) -> str:
    """Return pyarrow's reason without its row, which counts from the start of the block, not of the file."""
    return _PLACE.sub("", str(error))


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

    The parser would drop the zones of times, and make numbers beyond float32 infinite.
    """
    if types.is_struct(kind):
        return pa.struct([(child.name, _parsed_type(child.type)) for child in kind])
    if types.is_map(kind):
        pair = [("key", _parsed_type(kind.key_type)), ("value", _parsed_type(kind.item_type))]
        return pa.list_(pa.struct(pair))
    if types.is_timestamp(kind) or types.is_float32(kind):
        return pa.string() if types.is_timestamp(kind) else pa.float64()
    if types.is_decimal128(kind):
        return pa.decimal256(38, kind.scale)  # as decimal128, larger numbers would wrap around
    return pa.list_(_parsed_type(kind.value_type)) if is_any(kind, LISTS) else kind
