"""RowFilter: which rows of a source are kept, as an expression of Arrow over the source's own columns."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import types

from seqflow.errors import FilterError, ProviderError
from seqflow.expression.filter_parser import parse_filter
from seqflow.expression.filter_syntax import LENGTHS, Filter, columns_of
from seqflow.providers.filter.arrow_expressions import Node, canonical, expression_of, fields_of
from seqflow.providers.filter.arrow_values import comparable, comparable_schema, value_of
from seqflow.providers.filter.dropped_rows import DroppedRows
from seqflow.providers.filter.value_ranges import Path, Possible, Ranges, ValueRange
from seqflow.providers.other_packages import is_a
from seqflow.record.record import Tensor
from seqflow.record.selection import Rename, Selection, Table, field_paths, rename_schema

Where = Any
"""A filter as users write it: text. Anything else is a FilterError that says so."""
ALL = ("", -1)
"""Key of `counts` for all blocks together, in place of a block."""
_RECENT = 8
"""Number of blocks whose row numbers are remembered while they are read in slices."""
_LONGEST = 1000
"""Characters of a filter's text that states and messages keep; longer ones are cut and get a digest."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter before the columns are known: its text with the syntax tree."""

    text: str
    tree: Filter

    def bind(self, schema: pa.Schema) -> Node:
        """Bind the filter to a schema's columns; raise FilterError or UnknownColumnError if it does not fit."""
        from seqflow.providers.filter.binding import bind_filter

        return bind_filter(self.text, self.tree, schema)


def columns_read(tree: Filter) -> list[str]:
    """Return the columns that a condition reads, by the source's names."""
    names = (one.path[0] if one.path else one.name.removesuffix(f".{LENGTHS}") for one in columns_of(tree))
    return list(dict.fromkeys(names))


def condition_of(where: Where) -> Condition:
    """Return the condition of a text; raise FilterError for anything else."""
    if isinstance(where, str):
        return Condition(where, parse_filter(where))
    what = "a function" if callable(where) else f"a {type(where).__name__}"
    if is_a(where, "pyarrow", "Expression"):
        what = f"the expression {where}"
    raise FilterError(
        f"where is {what}, expected text, such as \"lang == 'py'\""
        + ("\nrows are chosen by a function in prepare=" if callable(where) else "")
    )


class RecentNumbers:
    """Numbers of the kept rows of the few blocks that were asked for last. Threads may share it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], Tensor] = {}

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return RecentNumbers, ()

    def get(self, block: tuple[str, int], make: Callable[[], Tensor]) -> Tensor:
        """Return the numbers of a block; compute them if they are not remembered."""
        # no lock: two threads may compute the same numbers, and both results are right
        found = self._found.get(block)
        if found is None:
            found = make()
            for oldest in list(self._found)[: 1 - _RECENT]:
                self._found.pop(oldest, None)
            self._found[block] = found
        return found

    def forget(self, block: tuple[str, int]) -> None:
        """Forget a block: its last slice was read."""
        self._found.pop(block, None)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Filter of rows: keeps those for which the expression is true, not those for which it is false or null."""

    expression: Any = field(compare=False)
    """None keeps all, apart from those that are dropped."""
    text: str
    """The expression as text; equal for two spellings of one expression."""
    full: pa.Schema
    """All columns of the opened source, those of the filter included, under the provider's names."""
    columns: pa.Schema
    """Columns that the filter reads."""
    source: pa.Schema
    """The columns of the filter under the source's names."""
    tree: Node | None = field(default=None, compare=False, repr=False)
    """The tree of the expression; None if it keeps all."""
    counts: dict[tuple[str, int], int] = field(default_factory=dict, compare=False, repr=False)
    """Number of kept rows of each block counted so far, by origin and index; `ALL` has their total."""
    numbers: RecentNumbers = field(default_factory=RecentNumbers, compare=False, repr=False)
    """Kept rows of the blocks that are read in slices."""
    dropped: DroppedRows = field(default=DroppedRows(), compare=False, repr=False)
    """Rows that are left out, whatever the expression says."""
    widened: dict[int, tuple[pa.Schema, pa.Schema]] = field(default_factory=dict, compare=False, repr=False)
    """The latest schema with the columns of the filter added: selections are cached for the same object."""

    @classmethod
    def of_all(cls, schema: pa.Schema) -> "RowFilter":
        """Return the filter that keeps all rows."""
        return cls(None, "", schema, pa.schema([]), pa.schema([]))

    def looks_at(self) -> dict[Path, Path]:
        """Return the columns and fields that the expression reads: the provider's paths by the source's."""
        paths = [] if self.tree is None else dict.fromkeys(fields_of(self.tree))
        return {path: _path_under(path, self.source, self.columns) for path in paths}

    def possible(self, ranges: Sequence[Sequence[ValueRange]]) -> Possible:
        """Return what the filter may be in each block, from the ranges of the columns that it reads."""
        schema = comparable_schema(self.source)
        columns = {
            path: (_type_at(path, schema), [of_block[at] for of_block in ranges])
            for at, path in enumerate(self.looks_at())
        }
        return Ranges(len(ranges), columns).possible(self.tree)

    def with_columns(self, schema: pa.Schema) -> pa.Schema:
        """Return a schema with the columns of the filter added, the same object each time."""
        known = self.widened.get(id(schema))
        if known is not None and known[0] is schema:
            return known[1]
        own, shared = set(schema.names), set(self.columns.names)
        names = [*schema.names, *(name for name in self.columns.names if name not in own)]
        full = pa.schema([self.full.field(name) if name in shared else schema.field(name) for name in names])
        self.widened.clear()
        self.widened[id(schema)] = schema, full
        return full

    def mask(self, table: Table) -> pa.ChunkedArray:
        """Return bool[rows]: whether each row of a table is kept; never null."""
        try:
            found = self.evaluate(self.expression, table)
        except pa.ArrowException as error:  # overflow, or a text that cannot be cast to a number
            raise ProviderError(f"where: {self.text} can't be evaluated: {error}") from error
        if not found.null_count:
            return found
        import pyarrow.compute as pc

        return pc.fill_null(found, False)

    def evaluate(self, expression: Any, table: Table) -> pa.ChunkedArray:
        """Evaluate an expression over the source's names for each row of a table with the provider's names."""
        columns = [table.column(name) for name in self.columns.names]
        chosen = pa.Table.from_arrays(columns, names=self.columns.names)
        if self.source.names != self.columns.names or self.source.types != self.columns.types:
            chosen = Selection(chosen.schema, self.source, self.source).apply(chosen)
        return value_of(expression, comparable(chosen))


def bound_filter(condition: Condition, full: pa.Schema, rename: Rename | None) -> RowFilter:
    """Return the filter over the columns of a provider that was opened with `rename` and has all that it needs.

    Raise UnknownColumnError, or FilterError if types don't fit or the filter is not a condition.
    """
    inverse = _inverse(full, rename) if isinstance(rename, Mapping) else {}
    source = rename_schema(full, inverse)
    shown = comparable_schema(source)
    tree = condition.bind(source)
    expression = expression_of(tree)
    _check_condition(condition, expression, shown)
    names = {path[0] for path in fields_of(tree)}
    positions = [at for at, name in enumerate(source.names) if name in names]
    columns, own = (pa.schema([schema.field(at) for at in positions]) for schema in (full, source))
    return RowFilter(expression, _text(tree), full, columns, own, tree)


def _check_condition(condition: Condition, expression: Any, schema: pa.Schema) -> None:
    # without rows, the type of the result is found and nothing is computed
    try:
        found = value_of(expression, schema.empty_table())
    except (pa.ArrowException, TypeError) as error:
        raise FilterError(f"where: {condition.text} can't be evaluated: {error}") from None
    if not types.is_boolean(found.type):
        raise FilterError(f"where: {condition.text} is {found.type}, expected a condition")


def _text(tree: Node) -> str:
    """Return a filter as text, cut and with a digest if it is long."""
    text = canonical(tree)
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… {hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def _path_under(path: Path, source: pa.Schema, renamed: pa.Schema) -> Path:
    """Return the path of a field in a schema of the same types with other names."""
    found = []
    fields: Any = source
    others: Any = renamed
    for name in path:
        at = fields.get_field_index(name)
        found.append(others.field(at).name)
        fields, others = fields.field(at).type, others.field(at).type
    return tuple(found)


def _type_at(path: Path, schema: pa.Schema) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind.value_type if types.is_dictionary(kind) else kind


def _inverse(full: pa.Schema, rename: Mapping[str, str]) -> dict[str, str]:
    """Return the source's names of the renamed columns and fields, by their new paths."""
    known = {path for one in full for path in field_paths(one)}
    found = {}
    for old, name in rename.items():
        path = new_path(old, rename)
        if path in known:
            found[path] = old.rpartition(".")[2] if "." in path else old
        elif name in known:  # a column with a dot in its name
            found[name] = old
    return found


def new_path(path: str, rename: Mapping[str, str]) -> str:
    """Return the path of a column or field under its new names."""
    parts = path.split(".")
    prefixes = [".".join(parts[: end + 1]) for end in range(len(parts))]
    return ".".join(rename.get(prefix, part) for prefix, part in zip(prefixes, parts, strict=True))


def columns_to_open(
    condition: Condition, columns: Sequence[str] | None, rename: Rename | None
) -> Sequence[str] | None:
    """Return the columns to open a source with, by their new names, so that the filter has its own; None for all."""
    needed = columns_read(condition.tree)
    if columns is None or isinstance(columns, str):
        return columns if isinstance(columns, str) else None
    if rename is None:
        return [*columns, *needed]
    if not isinstance(rename, Mapping) or any("." in name for name in rename):
        return None
    return [*columns, *(new_path(name, rename) for name in needed)]


def check_rename(rename: Rename | None) -> None:
    """Raise FilterError for a list of new names, which does not tell the source's own names."""
    if rename is not None and not isinstance(rename, Mapping):
        raise FilterError(
            "where names the source's columns\ngive rename as a mapping of old names to new ones"
        )
