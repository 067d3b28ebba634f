"""Datasets of Hugging Face: in memory or mapped, with their order and choice of rows; streams; saved datasets."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import pyarrow as pa

from seqflow.errors import MissingSourceError, ProviderError, ProviderOptionError
from seqflow.files.interface import LOCAL, Entry, Files
from seqflow.files.uris import folder_of, is_uri, join
from seqflow.providers.memory.rereadable import open_rereadable
from seqflow.providers.memory.tables import BLOCK_BYTES
from seqflow.providers.provider import Block, Provider
from seqflow.providers.source import Source, Wanted
from seqflow.record.selection import ALL, Picked, Selection, Table, selection
from seqflow.record.validation import reading

_STREAM_ROWS = 1000
"""Number of rows that are read at once from a stream."""


@dataclass(frozen=True, slots=True)
class HuggingFaceSource(Source):
    """Rows of a Dataset by number. If it is shuffled or filtered, they are gathered for each block."""

    dataset: Any
    """Dataset in the format "arrow"."""
    selection: Selection
    block_rows: int
    row_bytes: int
    paths: ClassVar[tuple[str, ...]] = ()
    slicing = "any"

    @property
    def num_rows(self) -> int:
        return len(self.dataset)

    def blocks(self, schema: pa.Schema) -> Iterator[Block]:
        for index, start in enumerate(range(0, self.num_rows, self.block_rows)):
            rows = min(self.block_rows, self.num_rows - start)
            yield Block("a Dataset", index, rows, rows * self.row_bytes)

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, chosen = wanted.block, self.selection.to(wanted.schema)
        rows = wanted.rows or range(block.num_rows or 0)
        start = block.index * self.block_rows + rows.start
        with reading(f"a Dataset, rows from {start} can't be read"):
            table = self.dataset.select_columns(chosen.of_source.names)[start : start + len(rows)]
        yield chosen.apply(table, chosen.present)


def open_hugging_face(dataset: Any, picked: Picked = ALL, *, batch_bytes: int | None = None) -> Provider:
    """Return a provider of a `datasets.Dataset` of any format, in blocks of about `batch_bytes` (64 MiB).

    Raise ProviderOptionError if a transform makes its rows when they are read.
    """
    form = dataset.format
    if form["type"] == "custom":
        raise ProviderOptionError(
            "a Dataset with a transform makes its rows in Python, one by one\n"
            "open dataset.with_format(None) and give the function as prepare=, or apply it before: dataset.map(…)"
        )
    arrow = dataset.with_format("arrow", columns=form["columns"])
    chosen = selection(arrow[:0].schema, *picked)
    data = dataset.data
    row_bytes = max(1, int(data.nbytes) // max(1, int(data.num_rows)))
    block_rows = max(1, (batch_bytes or BLOCK_BYTES) // row_bytes)
    source = HuggingFaceSource(arrow, chosen, block_rows, row_bytes)
    return Provider("hugging face", f"a Dataset of {len(dataset)} rows", chosen.schema, source)


@dataclass(frozen=True, slots=True)
class IterableDatasets:
    """Streams of a `datasets.IterableDataset`, shard after shard."""

    dataset: Any
    declared: pa.Schema | None

    def schema(self) -> pa.Schema:
        if self.declared is not None:
            return self.declared
        if self.dataset.features is None:
            raise ProviderOptionError(
                "the columns of this IterableDataset are not known before its rows are read\n"
                "pass schema=, a pyarrow.Schema, or make it with features="
            )
        return self.dataset.features.arrow_schema

    def stream(self, columns: Sequence[str]) -> Any:
        schema = self.schema()
        chosen = pa.schema([schema.field(name) for name in columns])
        dataset = (
            self.dataset if self.dataset.features is None else self.dataset.select_columns(list(columns))
        )
        return _batches(dataset.with_format("arrow"), chosen)


def _batches(dataset: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for table in dataset.iter(_STREAM_ROWS):
        if missing := [name for name in schema.names if name not in table.schema.names]:
            raise ProviderError(f"the IterableDataset has rows without the column {missing[0]!r}")
        yield from table.select(schema.names).cast(schema).combine_chunks().to_batches()


def open_iterable(
    dataset: Any, picked: Picked = ALL, *, batch_bytes: int | None = None, schema: pa.Schema | None = None
) -> Provider:
    """Return a provider of a `datasets.IterableDataset` as a re-readable stream."""
    streams = IterableDatasets(dataset, schema)
    return open_rereadable(streams, "an IterableDataset", picked, batch_bytes=batch_bytes)


def refuse_splits(splits: Any, picked: Picked, **options: Any) -> NoReturn:
    """Raise ProviderError for a DatasetDict: it has several datasets, and one must be chosen."""
    names = ", ".join(map(repr, splits))
    raise ProviderError(
        f"a {type(splits).__name__} has a dataset for each of its splits, {names}\n"
        f"open one of them, source[{next(iter(splits), 'train')!r}], or mix them: sf.Mix"
    )


_STATE = "state.json"


def in_saved_order(paths: Sequence[str], named: Sequence[str], store: Files = LOCAL) -> list[str]:
    """Return the files; those of a saved dataset in its order, without its caches unless these were `named`."""
    objects = {one.path: one for one in store.listed}
    listed = {folder: _listed(folder, store, objects) for folder in {folder_of(path) for path in paths}}
    if all(names is None for names in listed.values()):
        return list(paths)
    own = set(named)
    found: dict[str, None] = {}
    for path in paths:
        names = listed[folder_of(path)]
        if names is None or path in own:
            found[path] = None
        elif os.path.basename(path) in names:
            siblings = [join(folder_of(path), name) for name in names]
            found |= dict.fromkeys(one for one in siblings if one in paths)
    return list(found)


def _listed(folder: str, store: Files, objects: Mapping[str, Entry]) -> list[str] | None:
    """Return the names of the files of a saved dataset; None if the folder has none. `objects` lie in a store."""
    place = join(folder, _STATE)
    entry = objects.get(place) if is_uri(folder) else store.entry(place)
    if entry is None:
        return None
    store.pin(entry)
    try:
        content = bytes(store.read(place, 0, entry.size))
    except OSError:
        return None
    try:
        state = json.loads(content)
        names = [str(one["filename"]) for one in state["_data_files"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if state.get("_indices_data_files"):
        raise ProviderError(
            f"{folder} is a saved dataset with an indices mapping, which chooses its rows, expected none\n"
            "save it once more with a newer version of datasets"
        )
    for name in names:
        path = join(folder, name)
        if path not in objects if is_uri(folder) else not os.path.exists(path):
            raise MissingSourceError(f"{folder} is a saved dataset without its file {name}")
    return names
