"""Recognise table formats (Delta Lake, Iceberg, …), whose data files alone do not tell their rows."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import NamedTuple

from seqflow.errors import ProviderOptionError
from seqflow.files.interface import LOCAL, Entry, Files
from seqflow.files.uris import folder_of, is_uri, join


class TableFormat(NamedTuple):
    """Format of tables, with advice on how to read its folders."""

    name: str
    advice: str


DELTA = TableFormat("a Delta Lake table", "open the folder itself, with the package deltalake")
LANCE = TableFormat("a Lance table", "open the folder itself, with the package pylance")
_ICEBERG = TableFormat(
    "an Iceberg table", "load it from its catalog with pyiceberg, sf.open(catalog.load_table(…))"
)
_HUDI = TableFormat(
    "a Hudi table", "read it with the package hudi, and pass the record batches that it gives"
)
_SPARK = TableFormat("the output of a Spark stream", "read it with Spark, and write it to Parquet once")
_SHARDED = TableFormat(
    "a dataset in shards with an index (MDS, LitData)",
    "read it by a source of your own (docs/extending.md has one for MDS), or with its package, by a function: "
    "sf.open(lambda: iter(streaming.StreamingDataset(local=…)))",
)
_DICT = TableFormat("a DatasetDict with several splits", "open the folder of one split")
_MARKS = {
    "_delta_log": DELTA,
    ".hoodie": _HUDI,
    "_spark_metadata": _SPARK,
    "metadata/*.metadata.json": _ICEBERG,
    "metadata/version-hint.text": _ICEBERG,
    "_versions/*.manifest": LANCE,
}
"""Files or folders that mark the folder of a table, with its format; data files may be in folders below."""
_SPLITS = "dataset_dict.json"
_INDEX = "index.json"
_SHARDS = (b'"shards"', b'"chunks"')


def format_of(folder: str, store: Files = LOCAL) -> TableFormat | None:
    """Return the format of the table whose folder this is; None for a folder of loose files."""
    if is_uri(folder):
        return dict(_marked(store.listing(folder))).get(folder_of(join(folder, "")))
    return _table_format(folder, is_own=False, splits=0)


def check_table_formats(paths: Iterable[str], store: Files = LOCAL) -> None:
    """Raise ProviderOptionError if a file, or what it links to, lies in a folder of another table format.

    Of a store, the folders are known that were listed.
    """
    paths = list(paths)
    objects = [path for path in paths if is_uri(path)]
    if objects:
        for folder, table in _tables_of(objects, store):
            raise ProviderOptionError(refusal(folder, table))
        paths = [path for path in paths if not is_uri(path)]
    own = {os.path.dirname(path) for path in paths}  # folders are checked once, since each has many files
    folders = {os.path.abspath(folder) for folder in own} | {os.path.realpath(folder) for folder in own}
    folders |= {os.path.dirname(os.path.realpath(path)) for path in _links(own).intersection(paths)}
    for folder, children in _leading_to((start, start) for start in sorted(folders)).items():
        if (found := _table_format(folder, is_own=folder in folders, splits=len(children))) is not None:
            raise ProviderOptionError(refusal(folder, found))


def _links(folders: Iterable[str]) -> set[str]:
    """Return the links in folders, which the folders tell: asking for each file took as long as finding them."""
    found: set[str] = set()
    for folder in folders:
        with suppress(OSError), os.scandir(folder or ".") as entries:
            found.update(os.path.join(folder, one.name) for one in entries if one.is_symlink())
    return found


def _leading_to(starts: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return the children of each folder that lead to starts, which are a child and its folder each."""
    below: dict[str, set[str]] = {}
    for child, folder in starts:
        # stops where another start has passed before: all above it is known
        while child not in below.setdefault(folder, set()):
            below[folder].add(child)
            child, folder = folder, folder_of(folder)
    return below


def _marked(entries: Iterable[Entry]) -> Iterator[tuple[str, TableFormat]]:
    """Yield the folders of tables among objects, each for every object that marks it."""
    for entry in entries:
        for mark, found in _MARKS.items():
            name, _, inner = mark.partition("/")
            folder, is_marked, rest = entry.path.partition(f"/{name}/")
            if is_marked and (not inner or fnmatchcase(rest, inner)):
                yield folder, found


def _tables_of(paths: Sequence[str], store: Files) -> Iterator[tuple[str, TableFormat]]:
    """Yield the folders of tables in a store that hold some of these objects."""
    below = _leading_to((path, folder_of(path)) for path in paths)
    yield from ((folder, found) for folder, found in _marked(store.listed) if folder in below)
    own = {folder_of(path) for path in paths}
    for entry in store.listed:
        folder, name = folder_of(entry.path), os.path.basename(entry.path)
        if name == _SPLITS and len(below.get(folder, ())) > 1:
            yield folder, _DICT
        if name == _INDEX and folder in own:
            store.pin(entry)
            if _is_index(bytes(store.read(entry.path, 0, 1 << 16))):
                yield folder, _SHARDED


def refusal(folder: str, found: TableFormat) -> str:
    """Return why the files of such a folder are not read, and what to do."""
    return f"{folder} is {found.name}: the rows of all its files are not one table\n{found.advice}"


def _table_format(folder: str, *, is_own: bool, splits: int) -> TableFormat | None:
    """Return the table format whose log or index lies in the folder; None if there is none.

    `is_own` tells whether the folder itself has data files, `splits` how many of its folders lead to some.
    """
    try:
        names = set(os.listdir(folder))
    except OSError:
        return None
    for mark, found in _MARKS.items():
        if mark.partition("/")[0] in names and ("/" not in mark or _is_found(folder, mark)):
            return found
    if _SPLITS in names and splits > 1:
        return _DICT
    if is_own and _INDEX in names and _lists(folder):
        return _SHARDED
    return None


def _is_found(folder: str, pattern: str) -> bool:
    return next(glob.iglob(os.path.join(glob.escape(folder), pattern)), None) is not None


def _lists(folder: str) -> bool:
    """Return whether `index.json` of the folder lists shards."""
    try:
        with open(os.path.join(folder, _INDEX), "rb") as file:
            start = file.read(1 << 16)
    except OSError:
        return False
    return _is_index(start)


def _is_index(start: bytes) -> bool:
    return any(mark in start for mark in _SHARDS)
