"""Hive partitions: files in folders such as `lang=python/year=2024`, whose names become columns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from seqflow.errors import DamagedFileError, ProviderError, ProviderOptionError, UnknownColumnError
from seqflow.files.local import LOCAL
from seqflow.files.place import Files, absolute, folder_of, join
from seqflow.providers.bad_files import RAISE
from seqflow.providers.file_set import FileSet
from seqflow.providers.filter.arrow_expressions import structure
from seqflow.providers.filter.row_filter import Condition
from seqflow.providers.filter.value_ranges import Path, Ranges, ValueRange, range_of_value
from seqflow.providers.folders import Folders
from seqflow.providers.paths import searched_folders
from seqflow.providers.provider import Provider
from seqflow.providers.schemas import UNIFY
from seqflow.record.partition_names import folder_value
from seqflow.record.selection import ALL, Picked, check_names, rename_schema, select_schema

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


def open_partitioned(
    open_files: Callable[[FileSet], Provider],
    files: FileSet,
    partitions: Partitions,
    types: Mapping[str, pa.DataType],
    condition: Condition | None = None,
) -> Provider:
    """Return a provider of the columns in files, followed by the columns from folders, of these `types`.

    A file is not opened if its folders show that no row fulfils the `condition`; the first one is always opened.

    A column that the files have is read from them. A file outside the folders of a column has null there. If no
    type is recorded, it is int64 if all values are written as integers, else text.
    """
    columns, rename = files.picked
    paths = list(partitions)
    own = _own_schema(open_files, files)
    names = [
        name
        for name in dict.fromkeys(key for values in partitions.values() for key in values)
        if name not in own.names
    ]
    if not names or isinstance(columns, str):
        return open_files(files)
    new_names = {name: name for name in names}
    if isinstance(rename, Mapping):
        new_names |= {name: rename[name] for name in names if name in rename}
        rename = {old: new for old, new in rename.items() if old not in names}
    # folders, not files, differ: those of one folder share their values
    values = {id(of): {new_names[name]: of.get(name) for name in names} for of in partitions.values()}
    fields = [
        pa.field(new, types.get(name) or _type_of([of[new] for of in values.values()]))
        for name, new in new_names.items()
    ]
    of_folders = _typed(values, fields)
    typed = {path: of_folders[id(of)] for path, of in partitions.items()}
    if condition is not None:
        by_source = pa.schema([one.with_name(name) for one, name in zip(fields, names, strict=True)])
        found = [{name: typed[path][new] for name, new in new_names.items()} for path in paths]
        paths = [
            path
            for path, keep in zip(paths, _may_fulfil(condition, own, by_source, found), strict=True)
            if keep
        ]
        paths = paths or list(partitions)[:1]  # a provider needs a file for its schema
    inner = None
    if columns is not None:
        select_schema(pa.schema([*(own if rename is None else rename_schema(own, rename)), *fields]), columns)
        inner = [one for one in columns if one.partition(".")[0] not in new_names.values()]
    found_files = open_files(replace(files, paths=tuple(paths), picked=Picked(inner, rename)))
    schema = pa.schema([*found_files.schema, *fields])
    check_names(schema)
    source = replace(found_files.source, folders=Folders(pa.schema(fields), typed))
    return replace(
        found_files, schema=schema if columns is None else select_schema(schema, columns), source=source
    )


def _own_schema(open_files: Callable[[FileSet], Provider], files: FileSet) -> pa.Schema:
    """Return the columns of the first file that is not damaged."""
    for path in files.paths:
        alone = replace(files, paths=(path,), picked=ALL, schema=UNIFY, bad_files=RAISE, damaged={}, notes=[])
        try:
            return open_files(alone).schema
        except DamagedFileError:
            if not files.bad_files.leaves_out:
                raise
    return open_files(files).schema  # raises: all are damaged


def _may_fulfil(
    condition: Condition, own: pa.Schema, folders: pa.Schema, found: Sequence[Mapping[str, Any]]
) -> Sequence[bool]:
    """Return whether rows of each file may fulfil a condition, from the values in the names of folders."""
    try:
        tree = structure(condition.bind(pa.schema([*own, *folders])))
    except UnknownColumnError:  # reported with a better message when the files are open
        return [True] * len(found)
    columns: dict[Path, tuple[pa.DataType, Sequence[ValueRange]]] = {
        (one.name,): (one.type, [range_of_value(values[one.name]) for values in found]) for one in folders
    }
    return Ranges(len(found), columns).possible(tree).true.tolist()  # type: ignore[no-any-return]


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


def _type_of(values: Sequence[str | None]) -> pa.DataType:
    """Return int64 if all values are written as integers, else text."""
    found = [value for value in values if value is not None]
    return pa.int64() if found and all(map(_is_integer, found)) else pa.string()


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    # leading zeros stay text, since a column of integers would drop them; 19 digits may exceed int64
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text


def _typed(
    values: Mapping[int, Mapping[str, str | None]], fields: Sequence[pa.Field]
) -> dict[int, dict[str, Any]]:
    kinds = {field.name: field.type for field in fields}
    # each text is converted once: there may be a million folders, but few values
    texts = {pair for of in values.values() for pair in of.items()}
    known = {(name, text): _value(name, text, kinds[name]) for name, text in texts}
    return {key: {name: known[name, text] for name, text in of.items()} for key, of in values.items()}


def _value(column: str, text: str | None, kind: pa.DataType) -> Any:
    """Convert a text from the name of a folder to the type; raise ProviderError if it is not a value of it."""
    try:
        return pa.array([text], pa.string()).cast(kind)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ProviderError(f"the folder of {column} = {text!r} is not of type {kind}: {error}") from None
