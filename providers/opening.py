"""`sf.open` opens any supported source as a provider."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypedDict

from seqflow.arguments import Columns, checked
from seqflow.errors import ProviderError, ProviderOptionError, UnknownColumnError, nearest
from seqflow.printable import printable, printable_line
from seqflow.providers.filter.row_filter import (
    Condition,
    Where,
    bound_filter,
    check_rename,
    columns_to_open,
    condition_of,
)
from seqflow.providers.formats.arrow import open_arrow
from seqflow.providers.formats.avro import open_avro
from seqflow.providers.formats.megatron import open_megatron
from seqflow.providers.formats.numpy_files import open_numpy
from seqflow.providers.formats.orc import open_orc
from seqflow.providers.formats.parquet import open_parquet
from seqflow.providers.formats.sqlite import open_sqlite
from seqflow.providers.formats.suffixes import Chosen, check_utf8, choose, choose_kind
from seqflow.providers.formats.tar import open_tar
from seqflow.providers.formats.text import open_text
from seqflow.providers.lines.criteo import Categories, open_criteo
from seqflow.providers.lines.csv_lines import open_csv
from seqflow.providers.lines.json_lines import open_json_lines
from seqflow.providers.lines.libsvm import open_libsvm
from seqflow.providers.memory.tables import check_arrays, open_table, table_of
from seqflow.providers.object_openers import opener_of
from seqflow.providers.own_kinds import checked_options, made_by_kind, package_kinds, place_of
from seqflow.providers.own_sources import is_own, open_own
from seqflow.providers.paths import Search, find_duplicate, find_files, is_path, searched_path
from seqflow.providers.provider import OpenedBy, Provider
from seqflow.providers.tables.hugging_face import in_saved_order
from seqflow.providers.tables.partitioned import find_partitions, open_partitioned, recorded_types
from seqflow.providers.tables.table_folders import table_folder
from seqflow.providers.tables.table_formats import check_table_formats
from seqflow.providers.type_texts import SchemaLike
from seqflow.record import Fill, Valid, as_table, check_fill, check_valid
from seqflow.record.selection import Picked, Rename, select_schema

_FILES: dict[str, tuple[Callable[..., Provider], tuple[str, ...]]] = {
    "parquet": (open_parquet, ("memory_map", "use_threads", "untrusted")),
    "arrow": (open_arrow, ("memory_map", "untrusted")),
    "text": (open_text, ("encoding", "errors", "batch_bytes")),
    "libsvm": (open_libsvm, ("one_based", "batch_bytes")),
    "criteo": (open_criteo, ("categories", "batch_bytes")),
    "jsonl": (open_json_lines, ("schema", "extra_fields", "batch_bytes")),
    "csv": (open_csv, ("schema", "extra_fields", "delimiter", "list_delimiter", "header", "batch_bytes")),
    "numpy": (open_numpy, ("batch_bytes",)),
    "orc": (open_orc, ("untrusted",)),
    "megatron": (open_megatron, ("documents", "batch_bytes")),
    "tar": (open_tar, ("batch_bytes",)),
    "avro": (open_avro, ("batch_bytes",)),
    "sqlite": (open_sqlite, ("table", "schema", "batch_bytes")),
}
_log = logging.getLogger("seqflow")


class OpenOptions(TypedDict, total=False):
    """All options of `open`, of whatever kind of source."""

    columns: Columns | None
    where: Where
    kind: str | None
    options: Mapping[str, Any] | None
    exclude: Sequence[str] | str
    rename: Rename | None
    fill: Fill
    valid: Valid
    batch_bytes: int | None
    memory_map: bool | None
    use_threads: bool | None
    untrusted: bool | None
    encoding: str | None
    errors: Literal["strict", "replace", "ignore"] | None
    one_based: bool | None
    categories: Categories | None
    schema: SchemaLike | None
    extra_fields: Literal["error", "ignore"] | None
    delimiter: str | None
    list_delimiter: str | None
    header: bool | None
    documents: bool | None
    table: str | None
    partitioning: Sequence[str] | None


def option_names() -> tuple[str, ...]:
    """The names of all options of `open`."""
    return tuple(OpenOptions.__annotations__)


def file_kinds() -> list[str]:
    """The kinds of files that are built in."""
    return list(_FILES)


def check_kind(kind: Any) -> None:
    """ProviderOptionError for what is no kind of files, `module:function`, or kind that a package offers."""
    if isinstance(kind, str) and (kind in _FILES or place_of(kind)):
        return
    known = [*_FILES, *package_kinds()]
    meant = nearest(kind, known) if isinstance(kind, str) else ""
    raise ProviderOptionError(
        f"kind is {kind!r}{meant}, but must be one of {', '.join(known)}, or 'module:function'"
    )


@checked(ProviderOptionError, options=OpenOptions.__annotations__)
def open(
    source: Any,
    *,
    columns: Columns | None = None,
    where: Where = None,
    kind: str | None = None,
    exclude: Sequence[str] | str = (),
    rename: Rename | None = None,
    fill: Fill = None,
    valid: Valid = False,
    **options: Any,
) -> Provider:
    """Open a source of rows as a provider. Footers and schemas are read here, data only later.

    `source` is a path, a glob (`docs/**/*.parquet`), a folder, or a list of those; a table, record batch, frame, or
    another object with `__arrow_c_stream__` or `__arrow_c_array__`; a dict of arrays; a list or iterator of record
    batches, tables or rows as dicts; a cursor; a `pyarrow.dataset`, a dataset or table of another package; or a
    function that makes a stream, cursor or iterator for each pass (docs/sources.md lists all). In paths `{stdlib}`
    and the other names of sysconfig.get_paths() stand for those folders, `~` for the user's. A list keeps its order;
    the files of a glob or folder are sorted by path. Files that match a pattern of `exclude` are left out. `columns`
    picks columns, or fields of them (`docs.title`); `rename` maps old names to new ones, or lists all names. `fill`
    and `valid` say what becomes of nulls where a loader makes tensors of the rows, as in `from_arrow`.

    `where` keeps the rows for which it is true, not those for which it is null: text such as
    `"lang in ['py', 'c'] and tokens.lengths > 30"`, or a `pyarrow.compute.Expression`. Its names are the source's,
    before `rename` and `fill`, and need not be among `columns`.

    `kind` is "parquet", "arrow", "text", "libsvm", "criteo", "jsonl", "csv", "numpy", "orc", "avro", "megatron",
    "tar", "sqlite", a function of your own as "module:function", which makes the source of `source` and `options`
    (docs/extending.md), or a kind that an installed package offers. Without it the suffix decides: those of prose,
    source code, markup and settings (`.txt`, `.md`, `.py`, `.toml`, …) are text, one row a file. A file that is named
    itself is text without a suffix, and an error with one that is not known; a folder or glob leaves such files out,
    and `left_out` counts them. `kind="text"` reads every file as text. A folder of Delta Lake or Lance is opened by
    its package. Other files of tables whose files alone are not their rows are errors, and so are URIs but
    `file:///…`.

    Files in folders called `lang=python` have a column `lang` behind their own: integers where all values are such,
    else text. `partitioning=["year", "month"]` names the columns of folders called `2024/05`.

    More options: for Parquet and Arrow files `memory_map=True`, and `untrusted=True`, which reads their metadata in a
    child process first, so that what would crash pyarrow is an error, as for ORC; for Parquet `use_threads=False`;
    for text `encoding=None`, `errors="strict"`, `batch_bytes` (2 MiB); for libsvm `one_based=False` and for Criteo
    `categories="ids"` or "texts", both with `batch_bytes` (4 MiB), and compressed where the name ends in .gz, .bz2 or
    .zst; for JSON lines and CSV, also compressed, `schema` (types by column, `{"ids": "list<int64>"}`, too), without
    which the first lines decide, `extra_fields="error"` or "ignore", and `batch_bytes` (4 MiB); for CSV
    `delimiter=","` (a tab where the name ends in .tsv or .tab), `list_delimiter` for columns declared as lists, and
    `header=True`; for SQLite `table` and `schema`, for Megatron's files `documents=True`, for both, NumPy's, Avro and
    tar `batch_bytes` (8 MiB); for what is in memory `batch_bytes` (64 MiB), for streams that can be had again 8 MiB;
    `schema`, a `pyarrow.Schema`, for functions, lists, iterators and cursors, whose columns are else those of the
    first rows; `options`, a dict of arguments for the function of a kind of your own.

    Raises MissingSourceError, UnknownColumnError, FilterError, and ProviderError for files that are damaged or
    disagree, and for names that collide as tensor names.
    """
    if where is None:
        provider = _open(source, Picked(columns, rename), kind, exclude, options)
    else:
        provider = _open_filtered(
            source, condition_of(where), Picked(columns, rename), kind, exclude, options
        )
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
    """A provider of the rows that fulfil a condition: opened with the columns of the condition, too."""
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
        _open(source, picked, kind, exclude, options)  # an unknown one of these has its own error
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
    """A provider of all rows; of those that fulfil the condition, files whose folders exclude it are left out."""
    if isinstance(source, Provider):
        if any(one is not None for one in picked):
            raise ProviderOptionError(
                "this is a provider already; pass columns= and rename= where it is opened"
            )
        return source
    if kind is not None:
        check_kind(kind)
        if kind not in _FILES:
            return _open_own_kind(source, kind, exclude, picked, options)
    if options.get("options") is not None:
        raise ProviderOptionError("options are passed to the function of a kind: kind='module:function'")
    if is_path(source) or (isinstance(source, list | tuple) and source and is_path(source[0])):
        exclude = exclude if isinstance(exclude, str) or not isinstance(exclude, Iterable) else list(exclude)
        is_whole = kind is None and not exclude and is_path(source)
        if is_whole and (open_folder := table_folder(searched_path(source))) is not None:
            table = open_folder(picked, **_checked(options, (), "the folder of a table"))
            return replace(table, search=Search.of(source, kind, exclude))
        provider = _open_files(source, _chosen(source, kind, exclude), picked, options, condition)
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
    """A provider of what the function of a kind makes: of a source of its own, or of anything that `open` takes."""
    if exclude:
        raise ProviderOptionError(f"exclude is of files that are found, and kind={kind!r} finds its own")
    rest = {name: value for name, value in options.items() if name != "options"}
    given = checked_options(options.get("options") or {})
    made = made_by_kind(kind, source, given)
    if isinstance(made, Provider):
        raise ProviderOptionError(
            f"{kind} returns a Provider\nreturn what it was opened of, or a source of your own"
        )
    if is_own(made):
        provider = open_own(made, picked, **_checked(rest, (), "a source of your own"), origin=kind)
    else:
        provider = _open(made, picked, None, (), rest)
    return replace(provider, opened_by=OpenedBy(kind, json.dumps(given, sort_keys=True)))


def _chosen(source: Any, kind: str | None, exclude: Sequence[str] | str) -> Chosen:
    """The files to read; logs what is left out, and files that are read twice."""
    paths, named = find_files(source, exclude)
    paths = in_saved_order(paths, named)
    chosen = choose(paths, named, str(source)) if kind is None else choose_kind(paths, kind, named)
    if chosen.kind in ("parquet", "arrow"):
        check_table_formats(chosen.paths)
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
) -> Provider:
    opener, known = _FILES[chosen.kind]
    checked = _checked(options, (*known, "partitioning"), chosen.kind)
    partitions = find_partitions(source, chosen.paths, checked.pop("partitioning", None))
    open_files = partial(opener, **checked)
    if partitions is not None:
        provider = open_partitioned(
            open_files, partitions, picked, types=recorded_types(source), condition=condition
        )
    else:
        provider = open_files(chosen.paths, picked)
    return replace(provider, left_out=chosen.left_out)


def _checked(options: Mapping[str, Any], known: Sequence[str], what: str) -> dict[str, Any]:
    """The options that are set; ProviderOptionError for one that this kind of source does not have."""
    for name, value in options.items():
        if name not in known and value is not None:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise ProviderOptionError(
                f"open has no option {name!r} for {what}{nearest(name, known)}; {there}"
            )
        if name == "batch_bytes" and value is not None and not 0 < value < 2**63:
            raise ProviderOptionError(f"batch_bytes is {value}, expected at least 1")
    return {name: value for name, value in options.items() if value is not None}
