"""Declared schemas: types written as text, such as `list<int64>`, `struct<a: string>` and `map<string, double>`."""

import re
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from seqflow.errors import ProviderOptionError
from seqflow.parsing.lexer import Lexicon
from seqflow.parsing.parser import Parser
from seqflow.record.arrow_types import child_fields
from seqflow.record.selection import MAX_DEPTH, check_depth, check_names

SchemaLike: TypeAlias = pa.Schema | Mapping[str, str | pa.DataType]


def declared_schema(schema: SchemaLike) -> pa.Schema:
    """Return the Arrow schema of a declaration: a schema, or types by column name, as text or as Arrow types."""
    if not isinstance(schema, pa.Schema):
        if not isinstance(schema, Mapping):
            raise ProviderOptionError(
                f"schema is a {type(schema).__name__}, expected a pyarrow.Schema, or types by column name"
            )
        fields = [
            pa.field(name, parse_type(kind, name) if isinstance(kind, str) else kind)
            for name, kind in schema.items()
        ]
        schema = pa.schema(fields)
    if not len(schema):
        raise ProviderOptionError("schema has no columns")
    check_names(schema)
    for field in schema:
        check_depth(f"column {field.name!r}", field.type)
        _check_nullable(field, field.name)
    return schema


def with_declared(inferred: pa.Schema, declared: pa.Schema | None) -> pa.Schema:
    """Return the declared columns if these are all; else the inferred ones with declared types, then the others."""
    if declared is None or set(inferred.names) <= set(declared.names):
        return inferred if declared is None else declared
    fields = {field.name: field for field in [*inferred, *declared]}
    return pa.schema(list(fields.values()))


def parse_type(text: str, column: str) -> pa.DataType:
    """Return the Arrow type that a text names."""
    reader = _TypeText(text, column)
    kind = reader.type()
    reader.kind("end", "the end")
    return kind


_BRACKETS = {"<": ">"}
_PART = r"(?:\[[^\[\]<>]*\]|\([^()<>]*\)|[^<>,:\s])"
_DECIMAL = re.compile(r"decimal(128|256)?\((\d+), ?(-?\d+)\)")
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), ?tz=([^\]]+)\]")


def _named_type(name: str) -> pa.DataType:
    """Return the type of a name as Arrow shows it; raise ValueError or TypeError for others."""
    if found := _ZONED.fullmatch(name):
        return pa.timestamp(*found.groups())
    if not (found := _DECIMAL.fullmatch(name)):
        return pa.type_for_alias(name)
    bits, digits, scale = found.groups()
    is_wide = bits == "256" or (bits is None and int(digits) > 38)
    return (pa.decimal256 if is_wide else pa.decimal128)(int(digits), int(scale))


class _TypeText(Parser[pa.DataType]):
    error = ProviderOptionError
    brackets = _BRACKETS
    deepest = MAX_DEPTH - 1
    # with what is in brackets and parentheses: timestamp[us, tz=+05:30], decimal(10, 2)
    lexicon = Lexicon("a type", name=rf"{_PART}(?:\s*{_PART})*", mark="[<>,:]")

    def __init__(self, text: str, column: str) -> None:
        self.what = f"schema: the type of {column!r}"
        super().__init__(text)

    def type(self) -> pa.DataType:
        token = self.kind("name", _EXPECTED)
        opening = self.accept("<")
        if opening is None:
            try:
                return _named_type(token.text)
            except (ValueError, TypeError):
                self.expected(_EXPECTED, token=token)
        if token.text not in ("list", "large_list", "map", "struct"):
            self.fail(token, f"{token.text!r} has no types inside, expected list, large_list, map or struct")
        self.deeper(opening)
        kind = self.nested(token.text)
        self.depth -= 1
        self.take(">")
        return kind

    def nested(self, name: str) -> pa.DataType:
        """Return the type of this name with the types inside its brackets."""
        if name == "struct":
            return pa.struct(self.fields())
        if name == "map":
            key = self.type()
            self.take(",")
            return pa.map_(key, self.type())
        if self.after.text == ":":  # list<item: int64>, as Arrow shows it
            self.next += 2
        return pa.list_(self.type()) if name == "list" else pa.large_list(self.type())

    def fields(self) -> list[pa.Field]:
        found = [self.field()]
        while self.accept(","):
            found.append(self.field())
        return found

    def field(self) -> pa.Field:
        name = self.kind("name", "the name of a field")
        self.take(":")
        return pa.field(name.text, self.type())


_EXPECTED = (
    "a type of Arrow such as int64, float, string, decimal(10, 2), timestamp[us, tz=UTC], list<int64>, "
    "struct<a: int64, b: string> or map<string, double>"
)


def _check_nullable(field: pa.Field, path: str, *, is_key: bool = False) -> None:
    """Raise ProviderOptionError for fields that may not be null: a missing value of a line is null."""
    if not field.nullable and not is_key:
        raise ProviderOptionError(
            f"schema: {path!r} may have no nulls, but a missing value is null\ndeclare it nullable"
        )
    for part, child in child_fields(field.type):
        _check_nullable(child, f"{path}.{part}", is_key=pa.types.is_map(field.type) and part == "keys")
