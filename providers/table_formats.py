"""Recognise table formats (Delta Lake, Iceberg, …), whose data files alone are not their rows."""

import glob
import os
from collections.abc import Iterable

from seqflow.errors import ProviderOptionError

_MARKS = {
    "_delta_log": "a Delta Lake table",
    ".hoodie": "a Hudi table",
    "_spark_metadata": "the output of a Spark stream",
    "metadata/*.metadata.json": "an Iceberg table",
    "metadata/version-hint.text": "an Iceberg table",
    "_versions/*.manifest": "a Lance table",
}
"""Of a table: a file or folder in its own folder, which may have folders of data files."""
_SPLITS = "dataset_dict.json"
_INDEX = "index.json"
_SHARDS = (b'"shards"', b'"chunks"')


def check_table_formats(paths: Iterable[str]) -> None:
    """ProviderOptionError where a file, or what it links to, lies in a folder of another table format."""
    folders = set()
    for path in paths:
        folders |= {os.path.dirname(os.path.abspath(path)), os.path.dirname(os.path.realpath(path))}
    below: dict[str, set[str]] = {}
    """The folders of files in each folder above them."""
    for start in sorted(folders):
        child, folder = start, start
        while folder not in below or child not in below[folder]:
            below.setdefault(folder, set()).add(child)
            child, folder = folder, os.path.dirname(folder)
    for folder, children in below.items():
        if (found := _table_format(folder, is_own=folder in folders, splits=len(children))) is not None:
            raise ProviderOptionError(
                f"{folder} is {found}, which can't be read yet: the rows of all its files are not one table\n"
                "read it with its own package, and pass an Arrow table or stream; of splits, open one"
            )


def _table_format(folder: str, *, is_own: bool, splits: int) -> str | None:
    """The table format whose log or index lies in the folder; None where there is none.

    `is_own` says whether data files lie in the folder itself, `splits` in how many folders of it.
    """
    try:
        names = set(os.listdir(folder))
    except OSError:
        return None
    for mark, found in _MARKS.items():
        if mark.partition("/")[0] in names and ("/" not in mark or _is_found(folder, mark)):
            return found
    if _SPLITS in names and splits > 1:
        return "a DatasetDict with several splits"
    if is_own and _INDEX in names and _lists(folder):
        return "a dataset in shards with an index (MDS, LitData)"
    return None


def _is_found(folder: str, pattern: str) -> bool:
    return next(glob.iglob(os.path.join(glob.escape(folder), pattern)), None) is not None


def _lists(folder: str) -> bool:
    """Whether `index.json` of the folder lists shards."""
    try:
        with open(os.path.join(folder, _INDEX), "rb") as file:
            start = file.read(1 << 16)
    except OSError:
        return False
    return any(mark in start for mark in _SHARDS)
