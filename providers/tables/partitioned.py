"""Hive partitions: files in folders such as `lang=python/year=2024`, whose names become columns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal
from urllib.parse import unquote

import pyarrow as pa

from seqflow.errors import DamagedFileError, ProviderError, ProviderOptionError
from seqflow.expression.filter_syntax import Column, Connection, Filter, Negation
from seqflow.files.interface import LOCAL, Files
from seqflow.files.uris import absolute, folder_of, join
from seqflow.providers.bad_files import RAISE
from seqflow.providers.file_set import FileSet
from seqflow.providers.filter.row_filter import Condition, columns_read
from seqflow.providers.filter.value_ranges import Path, Ranges, ValueRange, range_of_value
from seqflow.providers.folders import FolderKeys
from seqflow.providers.paths import searched_folders
from seqflow.providers.provider import Provider
from seqflow.providers.schemas import UNIFY
from seqflow.providers.type_texts import SchemaLike, declared_schema
from seqflow.record.partition_names import folder_value
from seqflow.record.selection import ALL

Partitions = dict[str, dict[str, str | None]]
"""Values in the names of folders, by the path of a file and the column."""


def recorded_types(source: object, store: Files = LOCAL) -> dict[str, pa.DataType]:
    """Return the types of partitions by column, from the manifests of the folders that are searched."""
    found: dict[str, pa.DataType] = {}
    for top in searched_folders(source):
        path = join(top, "_manifest.json")
        if (entry := store.entry(path)) is None:
            continue
        content = bytes(store.read(path, 0, entry.size))
        try:
            partitions = json.loads(content)["partitions"]
            found |= {name: pa.type_for_alias(kind) for name, kind in partitions.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return found


def find_partitions(
    source: object, paths: Sequence[str], names: Sequence[str] | None = None
) -> Partitions | None:
    """Return the values that the names of each file's folders hold, below the searched folder; None if none do.

    A folder is called `column=value`; or only `value`, one level for each column, if the `names` are given.
    """
    if isinstance(names, str) or (names is not None and not all(isinstance(name, str) for name in names)):
        raise ProviderOptionError(f"partitioning is {names!r}, expected a list of names of columns")
    tops = searched_folders(source)
    folders = [*map(folder_of, paths)]
    by_folder = {folder: _values(folder, tops, names) for folder in {*folders}}
    if not any(by_folder.values()):
        return None
    return {path: by_folder[folder] for path, folder in zip(paths, folders, strict=True)}


def declared_apart(
    schema: SchemaLike, partitions: Partitions
) -> tuple[SchemaLike | None, Mapping[str, pa.DataType] | Literal["unify"]]:
    """Return the declared types of files' columns, and those of columns from folders, as FileSet takes them."""
    keys, declared = {key for of in partitions.values() for key in of}, declared_schema(schema)
    of_folders = {one.name: one.type for one in declared if one.name in keys}
    if not of_folders:
        return schema, UNIFY
    of_files = [one for one in declared if one.name not in keys]
    kept = pa.schema(of_files) if isinstance(schema, pa.Schema) else {one.name: one.type for one in of_files}
    return kept or None, of_folders


def open_partitioned(
    open_files: Callable[[FileSet], Provider],
    files: FileSet,
    partitions: Partitions,
    types: Mapping[str, pa.DataType],
    condition: Condition | None = None,
) -> Provider:
    """Return a provider of the columns in files, followed by the columns from folders, of these `types`.

    A file is not opened if its folders show that no row fulfils the `condition`; the first one is always opened.

    A column that a file has is read from it. A file outside the folders of a column has null there. If no type is
    recorded, it is that of files with the column, else int64 if all values are written as integers, else text.
    """
    declared = (
        {} if isinstance(files.schema, str) else {one.name: one.type for one in declared_schema(files.schema)}
    )
    keys, every = FolderKeys(partitions, {**types, **declared}), list(partitions)
    if condition is None or isinstance(files.picked.columns, str):
        return open_files(replace(files, keys=keys))
    own = _own_schema(open_files, files)
    names = [name for name in keys.names if name not in own.names]
    paths = _fulfilling(condition, keys, names)
    # a provider needs a file for its schema
    some = replace(files, paths=tuple(paths or every[:1]), keys=keys, common=[])
    found = open_files(some)
    if len(some.paths) < len(every) and any(one.folders and one.folders.shared for one in some.common):
        # the folders of files that have such a column themselves do not tell its values
        return open_files(replace(files, keys=keys))
    return found


def _own_schema(open_files: Callable[[FileSet], Provider], files: FileSet) -> pa.Schema:
    """Return the columns of the first file that is not damaged."""
    for path in files.paths:
        alone = replace(
            files, paths=(path,), picked=ALL, schema=UNIFY, bad_files=RAISE, damaged={}, common=[]
        )
        try:
            return open_files(alone).schema
        except DamagedFileError:
            if not files.bad_files.leaves_out:
                raise
    return open_files(files).schema  # raises: all are damaged


def _fulfilling(condition: Condition, keys: FolderKeys, names: Sequence[str]) -> list[str]:
    """Return the files that may have rows that fulfil a condition, by the values of the keys with these names."""
    schema = pa.schema([keys.field(name) for name in names])
    paths = list(keys.texts)
    values = keys.values(paths, {one.name: one for one in schema})
    of_folders = replace(condition, tree=_of_folders(condition.tree, names))
    tree = of_folders.bind(pa.schema([*schema, pa.field(_OTHER, pa.bool_())]))
    columns: dict[Path, tuple[pa.DataType, Sequence[ValueRange]]] = {
        (one.name,): (one.type, [range_of_value(values[path][one.name]) for path in paths]) for one in schema
    }
    may_fulfil = Ranges(len(paths), columns).possible(tree).true
    return [path for path, may in zip(paths, may_fulfil, strict=True) if may]


_OTHER = "…"
"""Name of a column whose values are not known, in place of conditions of files' columns."""


def _of_folders(tree: Filter, names: Collection[str]) -> Filter:
    """Return a condition in which those that read other columns than these may be true, false or null."""
    match tree:
        case Connection(conditions=conditions):
            return replace(tree, conditions=tuple(_of_folders(one, names) for one in conditions))
        case Negation(condition=condition):
            return replace(tree, condition=_of_folders(condition, names))
    reads = columns_read(tree)
    return tree if reads and {*reads} <= {*names} else Column(tree.token, _OTHER, (_OTHER,))


def _values(folder: str, tops: Sequence[str], names: Sequence[str] | None) -> dict[str, str | None]:
    """Return the values in the names of a folder and of the folders above it, up to one of `tops`."""
    path = absolute(folder).rstrip(os.sep) + os.sep
    above = [top.rstrip(os.sep) + os.sep for top in tops if path.startswith(top.rstrip(os.sep) + os.sep)]
    folders = list(filter(None, path.removeprefix(max(above, key=len)).split(os.sep))) if above else []
    if names is None:
        return dict(pair for one in folders if (pair := folder_value(one)) is not None)
    if len(folders) != len(names):
        raise ProviderError(
            f"{folder} is {len(folders)} folders deep, expected {len(names)} for partitioning={list(names)}\n"
            "open the folder above all of them, or leave others out with exclude="
        )
    return {name: unquote(one) for name, one in zip(names, folders, strict=True)}
