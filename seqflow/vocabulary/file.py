"""File format of a vocabulary: Arrow, with the columns `id` (1, 2, 3, …), `key` and, if keys were counted, `count`;
settings are metadata.
"""

import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import compute

from seqflow.errors import OpError, ProviderError
from seqflow.output.durable_files import NewFile, temporary_path, writing
from seqflow.record.validation import reading, validated
from seqflow.vocabulary.keys import STRINGS, as_keys

_FORMAT = b"seqflow.vocabulary"
_VERSION = b"1"
_COLUMNS = ["id", "key"], ["id", "key", "count"]


def write_keys(
    path: Path, keys: pa.Array, counts: pa.Array | None, max_size: int | None, frozen: bool
) -> None:
    """Write the file under another name, then rename it."""
    settings = {_FORMAT: _VERSION, b"frozen": str(frozen).lower(), b"max_size": str(max_size or "")}
    columns = {"id": pa.array(np.arange(1, len(keys) + 1)), "key": _readable(keys)}
    columns |= {} if counts is None else {"count": counts}
    table = pa.table(columns).replace_schema_metadata(settings)
    temporary = temporary_path(path)
    try:
        with writing(path):
            with closing(NewFile(temporary)) as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _readable(keys: pa.Array) -> pa.Array:
    """Return strings as texts if all of them are UTF-8: other readers of Arrow then show them."""
    if keys.type != STRINGS:
        return keys
    try:
        return compute.cast(keys, pa.large_string())
    except pa.ArrowInvalid:
        return keys


def read_keys(path: Path) -> tuple[pa.Array, pa.Array | None, int | None, bool]:
    """Return the keys, their counts (None if the file has none), `max_size`, and whether they are frozen.

    Raise ProviderError for files of other origin.
    """
    with reading(str(path)), pa.OSFile(str(path)) as file:
        table = validated(pa.ipc.open_file(file).read_all(), str(path))
    settings = table.schema.metadata or {}
    if settings.get(_FORMAT) != _VERSION or table.column_names not in _COLUMNS:
        raise ProviderError(f"{path} is not a vocabulary written by Vocabulary.save")
    if not table["id"].equals(pa.chunked_array([np.arange(1, len(table) + 1)])):
        raise ProviderError(f"{path}: the column id is not 1, 2, 3, …")
    try:
        keys = as_keys(table["key"])
    except OpError as error:
        raise ProviderError(f"{path}: {error}") from error
    twice = len(keys) - len(compute.unique(keys))
    if twice:
        raise ProviderError(f"{path}: {twice} keys occur more than once")
    max_size = settings.get(b"max_size", b"")
    counts = table["count"].combine_chunks() if "count" in table.column_names else None
    if counts is not None and (counts.type != pa.int64() or counts.null_count):
        raise ProviderError(f"{path}: the column count is {counts.type}, expected int64 without nulls")
    return keys, counts, int(max_size) if max_size.isdigit() else None, settings.get(b"frozen") == b"true"
