"""`sf.open` opens any supported source as a provider."""

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypedDict, Unpack, get_type_hints

from seqflow.arguments import Columns, checked
from seqflow.errors import ProviderError, ProviderOptionError, UnknownColumnError, nearest
from seqflow.files.interface import LOCAL, Files
from seqflow.printable import printable, printable_line
from seqflow.providers.bad_files import RAISE, BadFiles
from seqflow.providers.file_set import FileSet
from seqflow.providers.filter.row_filter import (
    Condition,
    Where,
    bound_filter,
    check_rename,
    columns_to_open,
    condition_of,
)
from seqflow.providers.formats.options import FORMATS, Format, byte_count, names_of, option_types, options_of
from seqflow.providers.formats.suffixes import (
    JSON,
    OF_LINES,
    Chosen,
    check_utf8,
    choose,
    choose_kind,
    kind_of,
)
from seqflow.providers.memory.tables import check_arrays, open_table, table_of
from seqflow.providers.object_openers import opener_of
from seqflow.providers.own_kinds import checked_options, made_by_kind
from seqflow.providers.own_sources import is_own, open_own
from seqflow.providers.paths import Search, find_duplicate, find_files, is_path, searched_path
from seqflow.providers.provider import OpenedBy, Provider
from seqflow.providers.schemas import UNIFY, SchemaPolicy, check_policy
from seqflow.providers.store_options import STORE_OPTIONS, files_of_source
from seqflow.providers.tables.hugging_face import in_saved_order
from seqflow.providers.tables.partitioned import (
    declared_apart,
    find_partitions,
    open_partitioned,
    recorded_types,
)
from seqflow.providers.tables.table_folders import table_folder
from seqflow.providers.tables.table_formats import check_table_formats
from seqflow.record import Fill, Valid, as_table, check_fill, check_valid
from seqflow.record.selection import Picked, Rename, select_schema

_log = logging.getLogger("seqflow")
_DEFAULTS: Mapping[str, tuple[Any, ...]] = {"schema": (UNIFY,), "bad_files": ("raise", RAISE)}


class _FurtherOptions(TypedDict, total=False):
    options: Mapping[str, Any] | None
    partitioning: Sequence[str] | None
    batch_bytes: int | str | None
    schema: SchemaPolicy | None
    bad_files: Literal["raise", "skip", "quarantine"] | BadFiles | None
    storage_options: Mapping[str, Any] | None
    filesystem: Any
    cache: str | os.PathLike[str] | None
    cache_bytes: int | str | None


class OpenOptions(_FurtherOptions, total=False):
    """All options of `open`."""

    columns: Columns | None
    where: Where
    kind: str | None
    format: Format | None
    exclude: Sequence[str] | str
    rename: Rename | None
    fill: Fill
    valid: Valid


def option_names() -> tuple[str, ...]:
    """Return the names of all options of `open`, and of those that belong to formats, whose errors say so."""
    return tuple({**get_type_hints(OpenOptions), **option_types()})


def file_kinds() -> list[str]:
    """Return the built-in kinds of files."""
    return sorted(FORMATS)


def check_kind(kind: Any) -> None:
    """Raise ProviderOptionError unless this is a built-in kind, or `module:function`."""
    if isinstance(kind, str) and (kind in (*FORMATS, JSON) or ":" in kind):
        return
    known = [*file_kinds(), JSON]
    meant = nearest(kind, known) if isinstance(kind, str) else ""
    raise ProviderOptionError(
        f"kind is {kind!r}{meant}, but must be one of {', '.join(known)}, or 'module:function'"
    )


def check_kind_of_format(kind: str, format: str, options: str) -> None:
    """Raise ProviderOptionError if these `options` are of a `format` that is not that of the kind."""
    if format != ("jsonl" if kind == JSON else kind):
        raise ProviderOptionError(f"{options} belongs to kind {format}, but kind is {kind}")


@checked(ProviderOptionError)
def open(
    source: Any,
    *,
    columns: Columns | None = None,
    where: Where = None,
    kind: str | None = None,
    format: Format | None = None,
    exclude: Sequence[str] | str = (),
    rename: Rename | None = None,
    fill: Fill = None,
    valid: Valid = False,
    **options: Unpack[_FurtherOptions],
) -> Provider:
    """Open a source of rows; nothing but metadata is read yet.

        provider = sf.open("docs/*.parquet", columns=["tokens"], where="lang == 'py'")
        values, lengths = provider["tokens"].unpack()

    Args:
        source: Path, URI, glob, folder, or a list of these; a table, frame, dataset, reader, cursor, dict of
            arrays, list of rows or function that makes a stream (docs/sources.md lists all); or a provider,
            of which `columns`, `rename`, `fill` and `valid` take a part.
        columns: Columns to read, or fields of them (`docs.title`), in this order; None reads all.
        where: Condition that is true for the rows to keep, not false or null: text such as `"lang in ['py',
            'c'] and tokens.lengths > 30"`. Its names are those of the source, before `rename` and `fill`, and
            need not be among `columns`.
        kind: Kind of the source: "parquet", "arrow", "text", "jsonl", "csv", "numpy", "megatron" or
            "tar"; a function of your own as "module:function", which makes the source of `source` and
            `options` (docs/extending.md); or a kind that an installed package offers. None takes it from the
            suffix. "text" reads every file as one row, "json" is "jsonl" with files called `.json`.
        format: Options of files of one format, `sf.Csv(delimiter=";")`; files of other formats are then left
            out of folders and globs.
        exclude: Pattern, or patterns, of files to omit.
        rename: New names of columns by their old ones, or a list of all names.
        fill: Values in place of nulls when a loader converts the rows, as in `from_arrow`.
        valid: Masks of nulls to add when a loader converts the rows, as in `from_arrow`.
        options: Arguments of the function that `kind` names.
        partitioning: Names of the columns of folders called `2024/05`: `["year", "month"]`. Folders called
            `lang=python` have a column `lang` without it: integers if all values are, else text.
        batch_bytes: Bytes of blocks of data in memory (default: 64 MiB) and of re-readable streams (8 MiB),
            as a number or a text.
        schema: "unify" (default) reads files whose schemas differ with types that hold the values of all
            without loss; a column that some lack is null there. "first" takes the columns and types of the
            first file. A `pyarrow.Schema`, or types by name (`{"id": "int64"}`), declares the types of some
            columns; a value that a type does not hold is a bad row. For functions, lists, iterators and
            cursors it gives the types of all columns (default: those of the first rows).
        bad_files: Policy for files that are damaged or gone: "raise" (default), "skip", "quarantine", or a
            `BadFiles` with a bound. `provider.damaged` lists them.
        storage_options: Options of an object store, such as `{"aws_region": "eu-west-1"}` (docs/stores.md).
        filesystem: Store of obstore, or file system of pyarrow or fsspec, for paths inside it.
        cache: Folder that keeps what is fetched from a store; None keeps nothing.
        cache_bytes: Most bytes of that folder (default: 16 GiB).

    In paths `{stdlib}` and the other names of sysconfig.get_paths() stand for those folders, `~` for the
    user's. A list keeps its order; the files of a glob or folder are sorted by path. Files of prose, source
    code, markup and settings (`.txt`, `.md`, `.py`, `.toml`, …) are text, one row a file. A file that is
    named itself is text if it has no suffix, and an error if its suffix is not known; folders and globs leave
    such files out, and `left_out` counts them. A folder of Delta Lake or Lance is opened by its package.
    Files of other table formats are errors, because the files alone do not tell the rows.

    Raise MissingSourceError, UnknownColumnError, FilterError, DamagedFileError, or ProviderError: for files
    whose schemas do not unify, and for names that collide as tensor names.
    """
    # the defaults are given up here, so that only files see these options
    given = {
        name: value
        for name, value in options.items()
        if value is not None and not (isinstance(value, str | BadFiles) and value in _DEFAULTS.get(name, ()))
    }
    if format is not None:
        given["format"] = format
    if where is None:
        provider = _open(source, Picked(columns, rename), kind, exclude, given)
    else:
        provider = _open_filtered(source, condition_of(where), Picked(columns, rename), kind, exclude, given)
    if fill is None and valid is False:
        return provider
    check_fill(fill, provider.schema)
    check_valid(valid, provider.schema)
    return replace(provider, fill=fill, valid=valid)


def _open_filtered(
    source: Any,
    condition: Condition,
    picked: Picked,
    kind: str | None,
    exclude: Sequence[str] | str,
    options: Mapping[str, Any],
) -> Provider:
    """Return a provider of the rows that fulfil a condition; its source has the condition's columns, too."""
    if isinstance(source, Provider):
        raise ProviderOptionError("this is a provider already; pass where= where it is opened")
    columns, rename = picked
    check_rename(rename)
    needed = columns_to_open(condition, columns, rename)
    try:
        provider = _open(source, Picked(needed, rename), kind, exclude, options, condition)
    except UnknownColumnError as error:
        if columns is None or needed is None or isinstance(columns, str):
            raise
        _open(source, picked, kind, exclude, options)  # raises first if `columns` has an unknown name itself
        raise UnknownColumnError(f"where: {error}") from None
    schema = provider.schema if columns is None else select_schema(provider.schema, columns)
    return replace(provider, schema=schema, where=bound_filter(condition, provider.schema, rename))


def _open(
    source: Any,
    picked: Picked,
    kind: str | None,
    exclude: Sequence[str] | str,
    options: Mapping[str, Any],
    condition: Condition | None = None,
) -> Provider:
    """Return a provider of all rows; files whose folders show that no row fulfils the condition are left out."""
    if isinstance(source, Provider):
        if any(one is not None for one in picked):
            raise ProviderOptionError(
                "this is a provider already; pass columns= and rename= where it is opened"
            )
        return source
    if kind is not None:
        check_kind(kind)
        if kind not in (*FORMATS, JSON):
            return _open_own_kind(source, kind, exclude, picked, options)
    if "options" in options:
        raise ProviderOptionError("options are passed to the function of a kind: kind='module:function'")
    if is_path(source) or (isinstance(source, list | tuple) and source and is_path(source[0])):
        exclude = exclude if isinstance(exclude, str) or not isinstance(exclude, Iterable) else list(exclude)
        source, store = files_of_source(source, options)
        access = {name: one for name, one in options.items() if name in STORE_OPTIONS}
        options = {name: one for name, one in options.items() if name not in access}
        format = options.get("format")
        if format is not None and not isinstance(format, Format):
            shown = f"sf.{format.__name__}" if isinstance(format, type) else repr(format)
            raise ProviderOptionError(
                f"format is {shown}, expected options of a format, such as sf.Csv()\n"
                "kind='csv' names a format without options"
            )
        if kind is not None and format is not None:
            check_kind_of_format(kind, format.kind, f"format=sf.{type(format).__name__}(…)")
        is_whole = kind is None and format is None and not exclude and is_path(source)
        if is_whole and (open_folder := table_folder(searched_path(source), store, access)):
            table = open_folder(picked, **_checked(options, (), "the folder of a table"))
            return replace(table, search=Search.of(source, kind, exclude))
        chosen = _chosen(source, kind, format, exclude, store)
        provider = _open_files(source, chosen, picked, options, condition, store)
        if kind is None and format is not None and format.kind != "text":
            kind = format.kind
        return replace(provider, search=Search.of(source, kind, exclude))
    if isinstance(source, list | tuple) and not source:
        raise ProviderError("the list of sources is empty")
    origin = f"a {type(source).__name__}"
    if (opener := opener_of(source)) is not None:
        return opener.open(source, picked, **_checked(options, opener.options, origin))
    if isinstance(source, Mapping):
        check_arrays(source)
        return open_table(table_of(source), picked, **_checked(options, ("batch_bytes",), "memory"))
    options = _checked(options, ("batch_bytes",), "memory")
    return open_table(as_table(source), picked, origin=origin, **options)


def _open_own_kind(
    source: Any, kind: str, exclude: Any, picked: Picked, options: Mapping[str, Any]
) -> Provider:
    """Return a provider of the result of a kind's function: a source of its own, or anything that `open` takes."""
    if exclude:
        raise ProviderOptionError(f"exclude is of files that are found, and kind={kind!r} finds its own")
    rest = {name: value for name, value in options.items() if name != "options"}
    given = checked_options(options.get("options") or {})
    made = made_by_kind(kind, source, given)
    if isinstance(made, Provider):
        policy = BadFiles.of(rest.pop("bad_files", made.bad_files))
        if rest or any(one is not None for one in picked):
            raise ProviderOptionError(
                f"{kind} returns a Provider, which has its columns and options already\n"
                "return what it was opened of, or a source of your own"
            )
        provider = replace(made, bad_files=policy)
    elif is_own(made):
        provider = open_own(made, picked, **_checked(rest, (), "a source of your own"), origin=kind)
    else:
        provider = _open(made, picked, None, (), rest)
    return replace(provider, opened_by=OpenedBy(kind, json.dumps(given, sort_keys=True)))


def choose_files(
    source: Any,
    kind: str | None,
    format: Format | None = None,
    exclude: Sequence[str] | str = (),
    store: Files = LOCAL,
) -> Chosen:
    """Find the files to read and their kind, which is `kind`, that of `format`, or that of their suffixes."""
    paths, named = find_files(source, exclude, store)
    paths = in_saved_order(paths, named, store)
    if kind == "text":
        return Chosen(kind, paths, "")
    if kind is not None:
        return choose_kind(paths, kind, named)
    if format is None:
        return choose(paths, named, str(source))
    chosen = choose_kind(paths, format.kind, named)
    for path in chosen.paths:
        other = kind_of(path)
        if other not in (None, "text", format.kind) and not (other in OF_LINES and format.kind in OF_LINES):
            raise ProviderOptionError(
                f"format is {type(format).__name__}, and {path} is {FORMATS[str(other)].__name__}\n"
                f"kind={format.kind!r} reads it as that all the same"
            )
    return chosen


def _chosen(
    source: Any, kind: str | None, format: Format | None, exclude: Sequence[str] | str, store: Files
) -> Chosen:
    """Return the files to read; log the files left out, and files that would be read twice."""
    chosen = choose_files(source, kind, format, exclude, store)
    if chosen.kind in ("parquet", "arrow"):
        check_table_formats(chosen.paths, store)
    if chosen.kind != "text":
        check_utf8(chosen.paths, chosen.kind)
    if chosen.left_out:
        _log.info(printable(chosen.left_out))
    if (pair := find_duplicate(chosen.paths)) is not None:
        one, other = map(printable_line, pair)
        _log.warning(
            "%s and %s are one file, whose rows come twice; leave one out with exclude if they should not",
            one,
            other,
        )
    return chosen


def _open_files(
    source: Any,
    chosen: Chosen,
    picked: Picked,
    options: Mapping[str, Any],
    condition: Condition | None,
    store: Files,
) -> Provider:
    given = {name: value for name, value in options.items() if name not in ("format", "partitioning")}
    schema, bad_files = given.pop("schema", UNIFY), BadFiles.of(given.pop("bad_files", "raise"))
    check_policy(schema)
    of_format = options_of(chosen.kind, options.get("format"), given, chosen.paths[0])
    partitions = find_partitions(source, chosen.paths, options.get("partitioning"))
    if not isinstance(schema, str) and "schema" in names_of(type(of_format)):
        declared, schema = declared_apart(schema, partitions or {})
        of_format = replace(of_format, schema=declared)  # type: ignore[type-var]
    files = FileSet(tuple(chosen.paths), picked, schema, bad_files, store)
    if partitions is not None:
        provider = open_partitioned(
            of_format.open, files, partitions, recorded_types(source, store), condition
        )
    else:
        provider = of_format.open(files)
    return replace(provider, left_out=chosen.left_out)


def _checked(options: Mapping[str, Any], known: Sequence[str], what: str) -> dict[str, Any]:
    """Return the options; raise ProviderOptionError for an option that this kind of source does not have."""
    for name in options:
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise ProviderOptionError(
                f"open has no option {name!r} for {what}{nearest(name, known)}; {there}"
            )
    if "batch_bytes" in options:
        return {**options, "batch_bytes": byte_count(options["batch_bytes"])}
    return dict(options)
