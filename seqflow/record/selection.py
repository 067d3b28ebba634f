"""Selection: the columns and fields to read and their new names, applied to tables without copying."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow.errors import DamagedFileError, ProviderError, ProviderOptionError, UnknownColumnError, nearest
from seqflow.record.arrays import with_fields, with_values
from seqflow.record.arrow_types import LISTS, TEXTS, child_fields, is_any, storage_type, with_child_fields
from seqflow.record.buffers import chunks_of
from seqflow.record.exact_casts import cast_values, exact_cast, unfit_reason
from seqflow.record.record import Tensor
from seqflow.record.run_ends import decoded, plain_schema

Table: TypeAlias = "pa.RecordBatch | pa.Table"
Rename = Mapping[str, str] | Sequence[str]


class Picked(NamedTuple):
    """Arguments of `open`: some of the columns, and new names."""

    columns: Sequence[str] | None = None
    rename: Rename | None = None


ALL = Picked()

_RESERVED = ("lengths", "values", "valid")
_MISSING = -1

Unfit = Callable[[int, pa.Field, str], None]
"""Receives a row of a table, a column, and why its value there is not one of the column's type."""


@dataclass(frozen=True)
class Selection:
    """The columns and fields to read of a source, their new names, and their types.

    `renamed` is the source schema under new names, with plain types in place of run ends and views, `schema` the
    chosen columns and fields of it. If the source is one of several with different schemas, `schema` has the types
    that hold the values of all, and columns that this one lacks: its values are cast, and missing ones are null. All
    properties are computed once: thousands of files with the same schema share one selection.
    """

    source: pa.Schema
    renamed: pa.Schema
    schema: pa.Schema

    def __reduce__(self) -> "tuple[type[Selection], tuple[pa.Schema, pa.Schema, pa.Schema]]":
        return Selection, (self.source, self.renamed, self.schema)

    @cached_property
    def _latest_part(self) -> "Selection | None":
        """The latest part that was requested: blocks are read one after another with the same columns."""
        return None

    @cached_property
    def positions(self) -> list[int]:
        """The positions of the chosen columns in the source, in the order chosen; -1 for a column that it lacks."""
        places = {name: place for place, name in reversed(list(enumerate(self.renamed.names)))}
        return [places.get(name, _MISSING) for name in self.schema.names]

    @cached_property
    def present(self) -> list[int]:
        """The positions of the chosen columns that the source has, each once, in the order of the source."""
        return sorted({*self.positions} - {_MISSING})

    @cached_property
    def of_source(self) -> pa.Schema:
        """The schema of these columns in the source."""
        return pa.schema([self.source.field(position) for position in self.present])

    @cached_property
    def before_casts(self) -> dict[str, pa.DataType]:
        """The types of the chosen columns that the source has, by their new names, before values are cast."""
        pairs = zip(self.positions, self.schema, strict=True)
        return {
            field.name: _pruned_type(self.renamed.field(at).type, field.type)
            for at, field in pairs
            if at != _MISSING
        }

    @cached_property
    def leaves(self) -> list[int]:
        """The chosen leaf columns, numbered depth first over the source schema, as Parquet has them."""
        chosen = {path for name, kind in self.before_casts.items() for path, _ in _leaves_of(kind, (name,))}
        return [number for number, (path, _) in enumerate(leaf_types(self.renamed)) if path in chosen]

    @cached_property
    def leaves_of_source(self) -> dict[tuple[str, ...], tuple[tuple[str, ...], pa.DataType]]:
        """The path and type in the source of each leaf column, by its path under the new names."""
        pairs = zip(leaf_types(self.renamed), leaf_types(plain_schema(self.source)), strict=True)
        return {renamed: leaf for (renamed, _), leaf in pairs}

    @cached_property
    def texts(self) -> list[int]:
        """The numbers of the leaf columns of the source that are texts."""
        return [number for number, (_, kind) in enumerate(leaf_types(self.renamed)) if is_any(kind, TEXTS)]

    @cached_property
    def value_bytes(self) -> Tensor:
        """int64 [leaf columns of the source]: the bytes of a value in memory; 0 if values differ in size."""
        return np.array([value_bytes_of(kind) for _, kind in leaf_types(self.source)], np.int64)

    def to(self, schema: pa.Schema) -> "Selection":
        """Return the selection of a part of the chosen columns and fields."""
        if schema is self.schema:
            return self
        known = self._latest_part
        if known is None or known.schema is not schema:
            known = Selection(self.source, self.renamed, schema)
            # a cached_property keeps its value in `vars`; the dataclass is frozen
            vars(self)["_latest_part"] = known
        return known

    def apply(
        self, table: Table, present: Sequence[int] | None = None, unfit: "Unfit | None" = None
    ) -> Table:
        """Rename and pick from a table of the source schema, or of the columns `present` in it.

        `unfit` receives the rows with a value that the type of `schema` does not hold, and that is null instead; None
        raises an error for the first.
        """
        return self._picked(
            table, range(len(self.source)) if present is None else present, self.renamed, unfit
        )

    def label(self, table: Table, unfit: "Unfit | None" = None) -> Table:
        """Rename and reorder a table that has only the chosen columns and fields, in the order of the source."""
        if table.schema.equals(self.schema, check_metadata=True):
            return table
        return self._picked(table, self.present, None, unfit)

    def _picked(
        self, table: Table, present: Sequence[int], renamed: pa.Schema | None, unfit: "Unfit | None"
    ) -> Table:
        """Return the chosen columns among `present`; with the types of `renamed` before fields are picked."""
        columns, places = [], {position: place for place, position in enumerate(present)}
        for position, field in zip(self.positions, self.schema, strict=True):
            if position == _MISSING:
                columns.append(exact_cast(pa.nulls(table.num_rows), field.type))
                continue
            pruned = self.before_casts[field.name]
            labelled = pruned if renamed is None else renamed.field(position).type
            column = _each_chunk(table.column(places[position]), labelled, pruned)
            columns.append(column if pruned == field.type else _cast(column, field, unfit))
        return _table_like(table, columns, self.schema)


def selection(
    schema: pa.Schema, columns: Sequence[str] | None = None, rename: Rename | None = None
) -> Selection:
    """Choose columns (`docs`, or fields of them, `docs.title`) by their new names; None chooses all.

    Raises UnknownColumnError for names that do not exist, ProviderError for names that would collide.
    """
    plain = plain_schema(readable(schema))
    renamed = plain if rename is None else rename_schema(plain, rename)
    chosen = renamed if columns is None else select_schema(renamed, columns)
    check_names(chosen)
    return Selection(schema, renamed, chosen)


def check_names(schema: pa.Schema) -> None:
    """Raise ProviderError for names that cannot be parts of tensor names."""
    check_once(readable(schema), set(schema.names))
    for field in schema:
        _check_name(field.name, field.name, "column")
        _check_fields(field.type, field.name)


def check_once(schema: pa.Schema, names: Collection[str]) -> None:
    """Raise ProviderError when one of the names belongs to several columns."""
    counts = Counter(schema.names)
    twice = next((name for name in schema.names if counts[name] > 1 and name in names), None)
    if twice is not None:
        found = [f"{one}_{at}" if counts[one] > 1 else one for at, one in enumerate(schema.names)]
        raise ProviderError(f"two columns are called {twice!r}\nname all columns with rename={found}")


MAX_DEPTH = 64
"""Most levels of nested types; the same limit as in Arrow's own formats."""


def readable(schema: pa.Schema) -> pa.Schema:
    """Check that names are UTF-8 and types are not nested too deeply, and return the schema; else raise
    DamagedFileError, or ProviderError.
    """
    try:
        for field in schema:
            check_depth(f"column {field.name!r}", field.type)
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"the schema is damaged: a name in it is not UTF-8: {error}") from error
    return schema


def check_depth(what: str, kind: pa.DataType) -> None:
    """Raise ProviderError for types that are nested in more than MAX_DEPTH levels."""
    level = [kind]
    # level by level, not by recursion: a schema may be nested deeper than Python's stack
    for _ in range(MAX_DEPTH):
        level = [child.type for above in level for child in _children(above)]
        if not level:
            return
    raise ProviderError(f"{what} has types nested in {MAX_DEPTH} levels or more, too many to be read")


def _children(kind: pa.DataType) -> list[pa.Field]:
    kind = storage_type(kind)
    children = [kind.field(at) for at in range(kind.num_fields)]
    for child in children:
        child.name  # noqa: B018  # reading the name decodes it, which fails for a damaged one
    return children


def rename_schema(schema: pa.Schema, rename: Rename) -> pa.Schema:
    """Return the schema with new names for columns (`{"a.b": "ab"}`), fields (`{"docs.lengths": "sizes"}`) or all
    columns.
    """
    if isinstance(rename, str):
        raise ProviderOptionError(f"rename must be a mapping or a list of names, not the string {rename!r}")
    if not isinstance(rename, Mapping):
        if len(rename) != len(schema):
            raise ProviderOptionError(
                f"rename has {len(rename)} names for {len(schema)} columns ({', '.join(schema.names)})"
            )
        return pa.schema(
            [field.with_name(name) for field, name in zip(schema, rename, strict=True)], schema.metadata
        )
    known = {path for field in schema for path in field_paths(field)}
    for path in rename:
        if path not in known:
            raise UnknownColumnError(f"rename: there is no column {path!r}{nearest(path, known)}")
    return pa.schema([_renamed(field, "", rename) for field in schema], schema.metadata)


def select_schema(schema: pa.Schema, columns: Sequence[str], partial: bool = False) -> pa.Schema:
    """Return the schema of the named columns and fields, in the order of their first mention.

    Raise UnknownColumnError for one that it lacks; a `partial` schema has those of them that there are, and columns
    without fields whole.
    """
    if isinstance(columns, str):
        raise ProviderOptionError(f"columns must be a list of names, not the string {columns!r}")
    if not isinstance(columns, Iterable):
        raise ProviderOptionError(f"columns must be a list of names, not {type(columns).__name__}")
    requested: dict[str, list[list[str]]] = {}
    names = set(schema.names)
    for path in columns:
        if not isinstance(path, str):
            raise ProviderOptionError(f"columns must be a list of names, not of {type(path).__name__}")
        if path in names:
            requested.setdefault(path, []).append([])
            continue
        first, *rest = path.split(".")
        if first not in names and partial:
            continue
        if first not in names:
            raise UnknownColumnError(
                f"there is no column {path!r}{nearest(path, schema.names)}; there are {', '.join(schema.names)}"
            )
        requested.setdefault(first, []).append(rest)
    check_once(schema, requested)
    return pa.schema(
        [_chosen(schema.field(name), paths, name, partial) for name, paths in requested.items()],
        schema.metadata,
    )


def _chosen(field: pa.Field, paths: list[list[str]], name: str, partial: bool) -> pa.Field:
    """Prune a field to the children that the paths lead to; an empty path chooses all of it."""
    kind = field.type
    if [] in paths or types.is_map(kind):
        return field
    if types.is_struct(kind):
        children = []
        for child in kind:
            inner = [rest for first, *rest in paths if first == child.name]
            if inner:
                children.append(_chosen(child, inner, f"{name}.{child.name}", partial))
        fields = [child.name for child in kind]
        for first, *_ in paths:
            if first not in fields and not partial:
                raise UnknownColumnError(f"{name} has no field {first!r}{nearest(first, fields)}")
        return field.with_type(pa.struct(children))
    if is_any(kind, LISTS):
        inner = [path[1:] if path[0] == "values" else path for path in paths if path != ["lengths"]]
        if inner != [] and len(inner) == len(paths):
            return field.with_type(with_child_fields(kind, [_chosen(kind.value_field, inner, name, partial)]))
        return field
    if partial or paths in ([["values"]], [["lengths"]]):  # the tensors of a text
        return field
    raise UnknownColumnError(f"{name} has type {kind}, without a field {'.'.join(paths[0])!r}")


def _renamed(field: pa.Field, prefix: str, rename: Mapping[str, str]) -> pa.Field:
    path = prefix + field.name
    return field.with_name(rename.get(path, field.name)).with_type(_renamed_below(field.type, path, rename))


def _renamed_below(kind: pa.DataType, path: str, rename: Mapping[str, str]) -> pa.DataType:
    """Rename the struct fields below a type; `path` leads to the type."""
    if types.is_struct(kind):
        return pa.struct([_renamed(child, f"{path}.", rename) for child in kind])
    fields = [
        child.with_type(_renamed_below(child.type, _path_below(kind, path, part), rename))
        for part, child in child_fields(kind)
    ]
    return with_child_fields(kind, fields) if fields else kind


def _path_below(kind: pa.DataType, path: str, part: str) -> str:
    """Return the path of a child: structs and maps add a part to it, lists do not."""
    return path if is_any(kind, LISTS) else f"{path}.{part}"


def _structs(kind: pa.DataType, path: str) -> Iterator[tuple[str, pa.StructType]]:
    """Yield the struct types in a type, at any depth, with their paths."""
    if types.is_struct(kind):
        yield path, kind
    for part, child in child_fields(kind):
        yield from _structs(child.type, _path_below(kind, path, part))


def field_paths(field: pa.Field) -> Iterator[str]:
    """Yield the path of a field and of all struct fields below it."""
    yield field.name
    for path, kind in _structs(field.type, field.name):
        yield from (f"{path}.{child.name}" for child in kind)


def _check_fields(kind: pa.DataType, path: str) -> None:
    for place, struct in _structs(kind, path):
        names = [child.name for child in struct]
        if len(set(names)) < len(names):
            raise ProviderError(f"column {place!r} has two fields of one name: {', '.join(names)}")
        for name in names:
            _check_name(name, f"{place}.{name}", "field")


def _check_name(name: str, path: str, what: str) -> None:
    if what == "field" and name in _RESERVED:
        trouble, better = f"is named like the {name} tensor of a list", f"{name}_"
    elif "." in name:
        trouble, better = "has a dot in its name, which tensor names use for nesting", name.replace(".", "_")
    elif not name:
        trouble, better = "has no name", "unnamed"
    else:
        return
    raise ProviderError(
        f"{what} {path!r} {trouble}\ngive it another name with rename={{{path!r}: {better!r}}}"
    )


def leaf_types(schema: Iterable[pa.Field]) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Yield path and type of every leaf column, depth first."""
    for field in schema:
        yield from _leaves_of(field.type, (field.name,))


def _leaves_of(kind: pa.DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    children = child_fields(kind)
    for part, child in children:
        yield from _leaves_of(child.type, (*path, part))
    if not children and not types.is_struct(kind):  # a struct without fields has no leaf
        yield path, kind


def value_bytes_of(kind: pa.DataType) -> int:
    """Return the bytes of a value in memory; 0 if values differ in size."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 0


def _pruned_type(kind: pa.DataType, requested: pa.DataType, is_read: bool = True) -> pa.DataType:
    """Return a type of the source without the struct fields that the requested type lacks.

    Where the two differ in nothing else, this is the requested type, in which a field may be null more often. A type
    that `is_read` has a field of each struct, whatever is requested.
    """
    if kind == requested:
        return requested
    is_alike = kind.id == requested.id or (is_any(kind, LISTS) and is_any(requested, LISTS))
    if not is_alike or isinstance(kind, pa.BaseExtensionType) or not child_fields(kind):
        return kind
    others = dict(child_fields(requested))
    children = [
        child.with_type(_pruned_type(child.type, others[part].type, is_read)).with_nullable(
            child.nullable or others[part].nullable
        )
        for part, child in child_fields(kind)
        if part in others
    ]
    # a struct of which only other fields are requested is read whole: its nulls count
    return with_child_fields(kind, children) if children or not is_read else kind


def _cast(column: pa.Array | pa.ChunkedArray, field: pa.Field, unfit: Unfit | None) -> Any:
    """Return a column as one of the field's type; values that it does not hold are null, and told to `unfit`."""
    chunks, start = [], 0
    for chunk in chunks_of(column):
        chunk = _prune(chunk, _pruned_type(chunk.type, field.type, is_read=False))
        made, wrong = cast_values(chunk, field.type)
        chunks.append(made)
        if wrong is not None:
            for row in np.flatnonzero(wrong).tolist():
                reason = unfit_reason(chunk, field.type, row)
                if unfit is None:
                    raise ProviderError(f"row {start + row}, column {field.name!r}: {reason}")
                unfit(start + row, field, reason)
        start += len(chunk)
    return chunks[0] if isinstance(column, pa.Array) else pa.chunked_array(chunks, field.type)


def _each_chunk(column: pa.Array | pa.ChunkedArray, labelled: pa.DataType, requested: pa.DataType) -> Any:
    if isinstance(column, pa.ChunkedArray):
        chunks = [_prune(_labelled(chunk, labelled), requested) for chunk in column.chunks]
        return pa.chunked_array(chunks, requested)
    return _prune(_labelled(column, labelled), requested)


def _labelled(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """View a decoded array as a type that differs in names only; cast it if the types differ in more."""
    if array.type == kind:
        return array
    array = decoded(array)
    try:
        return array.view(kind)
    except pa.ArrowInvalid:
        return array.cast(kind)


def _prune(array: pa.Array, requested: pa.DataType) -> pa.Array:
    """Drop the struct fields that the requested type lacks; nulls are allowed where that type allows them."""
    kind = array.type
    if kind == requested:
        return array
    if types.is_struct(kind):
        children = [_prune(array.field(kind.get_field_index(child.name)), child.type) for child in requested]
        return with_fields(array, requested, children)
    if types.is_map(kind):
        return with_values(array, requested, _prune(array.values, requested.field(0).type))
    return with_values(array, requested, _prune(array.values, requested.value_type))


def _table_like(table: Table, columns: list[Any], schema: pa.Schema) -> Table:
    if not columns:
        return table.select([])  # a table without columns, which keeps its number of rows
    if isinstance(table, pa.RecordBatch):
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return pa.Table.from_arrays(columns, schema=schema)
