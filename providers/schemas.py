"""The columns and types that the files of a source give together, and the selection to read from each."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa
from pyarrow import types

from seqflow.errors import ProviderError, ProviderOptionError, UnknownColumnError, nearest
from seqflow.printable import printable
from seqflow.providers.folders import FolderKeys, Folders
from seqflow.providers.type_texts import SchemaLike, declared_schema
from seqflow.record.exact_casts import cast_values
from seqflow.record.run_ends import plain_schema
from seqflow.record.selection import (
    Picked,
    Rename,
    Selection,
    check_names,
    field_paths,
    readable,
    rename_schema,
    select_schema,
    selection,
)
from seqflow.record.unified_types import UnlikeTypes, unified_field

SchemaPolicy: TypeAlias = Literal["unify", "first"] | SchemaLike
"""How files of different schemas become one source: by the types that hold all values, by those of the first file, or
by types that are given for some columns, while those of the others are unified."""
UNIFY: Literal["unify"] = "unify"
_log = logging.getLogger("seqflow")


@dataclass(slots=True)
class Version:
    """Files with equal schemas."""

    schema: pa.Schema
    renamed: pa.Schema
    paths: list[str] = field(default_factory=list)
    lacking: dict[str, pa.Field] = field(default_factory=dict)
    """Columns from the names of folders that files, or rows of them, lack, by their keys, renamed."""

    @property
    def all(self) -> pa.Schema:
        """All columns, renamed, those of folders last."""
        added = [one for key, one in self.lacking.items() if key not in self.schema.names]
        return pa.schema([*self.renamed, *added])


def check_policy(schema: object) -> None:
    """Raise ProviderOptionError for a text that does not name a policy."""
    if isinstance(schema, str) and schema not in ("unify", "first"):
        meant = nearest(schema, ("unify", "first"))
        raise ProviderOptionError(
            f"schema is {schema!r}{meant}, expected 'unify', 'first', or types by column name"
        )


class Common(NamedTuple):
    """The columns that files give together."""

    selections: dict[str, Selection]
    """The selection to read from each file."""
    notes: list[str]
    """Sentences on what differs."""
    schema: pa.Schema
    folders: Folders | None
    """The columns from the names of folders."""


def common_selections(
    schemas: Mapping[str, pa.Schema],
    picked: Picked,
    policy: SchemaPolicy = UNIFY,
    keys: FolderKeys | None = None,
    *,
    rows_lack: bool = False,
) -> Common:
    """Return what to read from each file, so that all give the same columns.

    Only columns that are read must agree. A column that some files lack, or with `rows_lack` some of their rows, has
    the value that the names of folders give it (`keys`), else null. Raise ProviderError, with two files, the column
    and its types, if no type holds the values of both.
    """
    versions = _versions(schemas, picked.rename, keys, rows_lack)
    if keys is None and len(versions) == 1 and policy in (UNIFY, "first"):
        one = selection(versions[0].schema, *picked)
        return Common(dict.fromkeys(schemas, one), _alike(one.schema.names), one.schema, None)
    chosen = [_chosen(one.all, picked.columns) for one in versions]
    for path in picked.columns or ():
        if not any(_has(one.all, path) for one in versions):
            select_schema(versions[0].all, [path])  # raises
    declared = {} if isinstance(policy, str) else _declared(plain_schema(declared_schema(policy)), versions)
    found = list(_fields(versions, chosen, declared, policy))
    alone = set.intersection(*({*one.all.names[len(one.schema) :]} for one in versions))
    found.sort(key=lambda column: column.name in alone)  # those of folders last, in their order
    common = pa.schema(found, versions[0].schema.metadata)
    if picked.columns is not None:
        common = select_schema(common, picked.columns)
    check_names(common)
    of_files = (
        common
        if keys is None
        else pa.schema([one for one in common if one.name not in alone], common.metadata)
    )
    by_path: dict[str, Selection] = {}
    for version in versions:
        by_path |= dict.fromkeys(version.paths, Selection(version.schema, version.renamed, of_files))
    notes = [
        *_notes(versions, common, len(schemas)),
        *_alike(name for one in versions for name in one.all.names),
    ]
    folders = None if keys is None else _folders(keys, versions, common, alone)
    return Common({path: by_path[path] for path in schemas}, notes, common, folders)


def _folders(
    keys: FolderKeys, versions: Sequence[Version], common: pa.Schema, alone: Set[str]
) -> Folders | None:
    """Return the columns from the names of folders; None if there are none."""
    names = dict.fromkeys(one.name for version in versions for one in version.lacking.values())
    fields = [common.field(name) for name in names if name in common.names]
    values: dict[str, dict[str, Any]] = {}
    for version in versions:
        own = {
            key: common.field(one.name) for key, one in version.lacking.items() if one.name in common.names
        }
        values |= keys.values(version.paths, own)
    return Folders(pa.schema(fields), values, frozenset(names) - alone) if fields else None


def _versions(
    schemas: Mapping[str, pa.Schema], rename: Rename | None, keys: FolderKeys | None, rows_lack: bool
) -> list[Version]:
    """Return the different schemas, in the order of their first files."""
    # most of 10,000 files have the same schema, which is one object
    paths: dict[int, list[str]] = defaultdict(list)
    for path, schema in schemas.items():
        paths[id(schema)].append(path)
    found: list[Version] = []
    for of_one in paths.values():
        schema = schemas[of_one[0]]
        same = next((one for one in found if one.schema.equals(schema)), None)
        if same is None:
            found.append(same := Version(readable(schema), plain_schema(schema)))
        same.paths += of_one
    if keys is not None:
        _add_keys(found, keys, rows_lack)
    if rename is None:
        return found
    if not isinstance(rename, Mapping):
        first = found[0]
        first.renamed = rename_schema(first.renamed, rename)
        rename = dict(zip(first.schema.names, first.renamed.names, strict=True))
    known = {
        path
        for one in found
        for column in (*one.schema, *one.lacking.values())
        for path in field_paths(column)
    }
    for old in rename:
        if old not in known:
            raise UnknownColumnError(f"rename: there is no column {old!r}{nearest(old, known)}")
    for one in found:
        own = {path for column in one.schema for path in field_paths(column)}
        own_names = {old: new for old, new in rename.items() if old in own}
        one.renamed = rename_schema(plain_schema(one.schema), own_names)
        one.lacking = {key: column.with_name(rename.get(key, key)) for key, column in one.lacking.items()}
    return found


def _add_keys(versions: Sequence[Version], keys: FolderKeys, rows_lack: bool) -> None:
    """Add the columns from folders to the files that lack them."""
    for name in keys.names:
        column = keys.field(
            name, (one.schema.field(name).type for one in versions if name in one.schema.names)
        )
        for one in versions:
            if rows_lack or name not in one.schema.names:
                one.lacking[name] = column


def _chosen(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """Return the picked columns and fields that a schema has."""
    chosen = schema if columns is None else select_schema(schema, columns, partial=True)
    check_names(chosen)
    return chosen


def _has(schema: pa.Schema, path: str) -> bool:
    try:
        select_schema(schema, [path])
    except UnknownColumnError:
        return False
    return True


def _declared(schema: pa.Schema, versions: Sequence[Version]) -> dict[str, pa.Field]:
    """Return the declared fields by the new names of their columns; raise UnknownColumnError for unknown ones."""
    new_names = {
        old: new
        for one in versions
        for old, new in zip((*one.schema.names, *one.lacking), one.all.names, strict=True)
    }
    for name in schema.names:
        if name not in new_names:
            raise UnknownColumnError(f"schema: there is no column {name!r}{nearest(name, new_names)}")
    return {new_names[one.name]: one.with_name(new_names[one.name]) for one in schema}


def _fields(
    versions: Sequence[Version],
    chosen: Sequence[pa.Schema],
    declared: Mapping[str, pa.Field],
    policy: SchemaPolicy,
) -> Iterator[pa.Field]:
    """Yield the columns in the order in which files have them first, with the types of all files."""
    of_first = policy == "first"
    for name in dict.fromkeys(name for schema in chosen[: 1 if of_first else None] for name in schema.names):
        having = [at for at, schema in enumerate(chosen) if name in schema.names]
        fields = [chosen[at].field(name) for at in having]
        may_be_null = len(having) < len(chosen) or any(one.nullable for one in fields)
        if name in declared or of_first:
            found = declared.get(name, fields[0])
            for at, one in zip(having, fields, strict=True):
                _check_cast(one, found, versions[at].paths[0])
        else:
            try:
                found = unified_field(name, fields)
            except UnlikeTypes as error:
                raise _unlike(name, error, versions, having, fields) from None
        yield found.with_nullable(name in declared or may_be_null)


def _check_cast(own: pa.Field, common: pa.Field, path: str) -> None:
    """Raise ProviderError if no value of a file's type is one of the common type, such as text for numbers."""
    try:
        cast_values(pa.array([], own.type), common.type)
    except pa.ArrowException as error:
        raise ProviderError(
            f"column {own.name!r} is {own.type} in {path}, which cannot be read as {common.type}: {error}"
        ) from None


def _unlike(
    name: str,
    error: UnlikeTypes,
    versions: Sequence[Version],
    having: Sequence[int],
    fields: Sequence[pa.Field],
) -> ProviderError:
    (one, kind), (other, other_kind) = (
        (versions[having[at]].paths[0], fields[at].type) for at in (error.one, error.other)
    )
    advice = f"schema={{{name!r}: {error.advice!r}}}" if error.advice else "columns= leaves the column out"
    if types.is_integer(kind) and types.is_floating(other_kind):
        advice += f", or {str(kind)!r} where all values are whole"
    return ProviderError(
        f"column {name!r} is {kind} in {one}, but {other_kind} in {other}: {error.reason}\n"
        f"{advice}, exclude= leaves out files"
    )


def _notes(versions: Sequence[Version], common: pa.Schema, num_files: int) -> Iterator[str]:
    """Yield sentences about columns that some files lack, which are logged, too, and about types that differ."""
    if len(versions) == 1:
        return
    for column in common:
        kinds: Counter[str] = Counter()
        lacking: list[str] = []
        for one in versions:
            if column.name in one.all.names:
                kinds[str(one.all.field(column.name).type)] += len(one.paths)
            else:
                lacking += one.paths
        if lacking:
            count = f"{len(lacking):,} of {num_files:,} files"
            note = f"column {column.name!r} is missing in {count}, such as {lacking[0]}"
            _log.warning(printable(f"{note}: its values are null there"))
            yield note
        if len(kinds) > 1:
            counts = ", ".join(f"{kind} in {count:,} of {num_files:,} files" for kind, count in kinds.items())
            yield f"column {column.name!r} is {counts}; read as {column.type}"


def _alike(names: Iterable[str]) -> list[str]:
    """Return sentences about names that differ in case only: engines of SQL take them for one column."""
    by_letters: dict[str, str] = {}
    return [
        f"columns {by_letters[name.casefold()]!r} and {name!r} are two columns"
        for name in dict.fromkeys(names)
        if by_letters.setdefault(name.casefold(), name) != name
    ]
