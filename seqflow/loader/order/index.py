"""The lengths index: the lengths of the prepared rows of each block, so that batches can be counted before
reading.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from seqflow.errors import OpError, ProviderError, SeqflowError
from seqflow.files.interface import LOCAL, Files
from seqflow.files.uris import is_uri
from seqflow.identity.content import cache_folder, digest_of_text
from seqflow.json_schema import LARGEST_COUNT, is_count, matches_schema
from seqflow.kernels.arrays import Array
from seqflow.loader.order.identity import LoaderIdentity, check_same
from seqflow.loader.order.recipe import BATCHES, Recipe
from seqflow.loader.order.windows import BlockSlice, Slices, Window
from seqflow.loader.plans.selection import UNUSABLE
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.net import Net
from seqflow.output.durable_files import writing
from seqflow.output.file_writer import FileEncoding, FileWriter
from seqflow.record import Record, from_arrow
from seqflow.record.validation import reading

_SETTINGS, _FILES, CHECKSUM = b"seqflow lengths index", b"seqflow files", b"seqflow checksum"
"""Keys of the file's metadata: the settings and the files as JSON, and a CRC-32 of the columns of integers."""
_ANEW = "remove the file, or name another: it is made again"

SliceKey = tuple[int, int]
"""Number of a block, and the first row of a slice of it."""


@dataclass(frozen=True, slots=True)
class LengthsIndex:
    """The lengths of the rows of each slice of a block, after `prepare`, and the settings they depend on.

    The file is an Arrow file with a row for each slice: `file`, `block`, `start`, `rows`, and `lengths`, one
    for each row of the slice. Its metadata names the data, columns and `prepare`. If nothing changes rows it
    has whole blocks, and fits windows of any size. If rows are shuffled in groups, it also has `groups`, the
    number of the group of each row in its block; an entry here is then int64[rows, 2].
    """

    lengths: Mapping[SliceKey, Array]
    whole_blocks: bool

    @property
    def tokens(self) -> int:
        """Number of tokens of all rows that can be used."""
        return sum(int(_lengths(one).clip(min=0).sum()) for one in self.lengths.values())

    def counts(self, recipe: Recipe, windows: Iterable[Window], epoch: int) -> list[int]:
        """Return the number of batches of each window."""
        return [recipe.batch.count(self._in_order(recipe, window, epoch)) for window in windows]

    def rows_of_batches(self, recipe: Recipe, window: Window, epoch: int) -> Array:
        """int64: the rows that begin in each batch of a window; cut rows begin in that of their first piece."""
        plan, lengths = recipe.batch, self._in_order(recipe, window, epoch)
        sizes = plan.batch_sizes(lengths, recipe.key(epoch, BATCHES, window.number))
        return sizes[: plan.count(lengths), 3]

    def fill(self, recipe: Recipe, window: Window, epoch: int) -> float | None:
        """Return the share of cells of a window's batches that holds tokens; None if they have no cells."""
        sizes = recipe.batch.batch_sizes(self._in_order(recipe, window, epoch))
        _, tokens, cells, *_ = sizes.sum(axis=0).tolist()
        return tokens / cells if cells else None

    def _in_order(self, recipe: Recipe, window: Window, epoch: int) -> Array:
        """Return the lengths of the rows of a window, in the order of an epoch."""
        lengths = self.of_window(window)
        groups = [] if recipe.grouped is None else [one[:, 1] for one in self._of_slices(window)]
        order = recipe.order(window, len(lengths), epoch, groups)
        return lengths if order is None else lengths[order]

    def of_window(self, window: Window) -> Array:
        """Return the lengths of the rows of a window, in the order of the source."""
        return np.concatenate([_lengths(one) for one in self._of_slices(window)])

    def _of_slices(self, window: Window) -> list[Array]:
        return [cast(Array, self.of(one, one.number)) for one in window.slices]

    def of(self, one: BlockSlice, number: int) -> Array | None:
        """Return the lengths of the rows of a slice, whose block then had number `number`; None if they are not
        known.
        """
        if not self.whole_blocks:
            return self.lengths.get((number, one.start))
        known = self.lengths.get((number, 0))
        if known is None or one.stop is None:
            return known
        return known[one.start : one.stop] if len(known) == one.block.num_rows else None


def _lengths(measured: Array) -> Array:
    """Return the lengths of rows, without the numbers of their groups."""
    return measured if measured.ndim == 1 else measured[:, 0]


class Measured:
    """The lengths of the slices read so far: an index once all were read. Threads may share it."""

    def __init__(self, slices: Sequence[BlockSlice]) -> None:
        self._missing = {one.key for one in slices}
        self.lengths: dict[SliceKey, Array] = {}

    @property
    def complete(self) -> bool:
        return not self._missing

    def lacks(self, one: BlockSlice) -> bool:
        """Return whether a slice was not measured yet."""
        return one.key in self._missing

    def add_measured(self, lengths: Mapping[SliceKey, Array]) -> None:
        """Add the lengths of slices that were measured elsewhere."""
        self.lengths.update(lengths)
        self._missing.difference_update(lengths)

    def add(
        self, recipe: Recipe, key: SliceKey, records: Sequence[Record], groups: Sequence[Array | None]
    ) -> None:
        """Measure the prepared rows of a slice, unless it is measured already; `groups` are those of the records."""
        if key in self._missing:
            lengths = lengths_of(recipe, records)
            if recipe.grouped is not None:
                of_rows = [one for one in groups if one is not None]
                lengths = np.stack([lengths, np.concatenate(of_rows or [lengths])], axis=1)
            self.lengths[key] = lengths
            self._missing.discard(key)


def lengths_of(recipe: Recipe, records: Sequence[Record]) -> Array:
    """Return the sizes that prepared rows are planned on; 0 for each row if no column is planned."""
    found = []
    for record in records:
        name = recipe.planned_lengths(record)
        found.append(
            np.zeros(record.num_rows, np.int64)
            if name is None
            else recipe.batch.row_sizes(WindowRows((record,)), name)
        )
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def index_beside(files: Sequence[str], store: Files = LOCAL) -> Path:
    """Return the name of the index of some files: a hidden file in the folder of all of them.

    If some lie in a store, it is a file in the user's folder for caches, named by their URIs and versions.
    """
    if not files:
        raise OpError("Loader: index: the source has no files to keep it next to\n  name a file: index=…")
    if any(map(is_uri, files)):
        name = digest_of_text(repr([tuple(store.entry(path) or (path,)) for path in files]))
        return cache_folder("lengths") / f"{name}.arrow"
    if len(files) == 1:
        path = Path(files[0]).absolute()
        return path.with_name(f".{path.name}.lengths.arrow")
    folder = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in files])
    return Path(folder) / ".lengths.arrow"


def write_index(
    path: Path,
    slices: Sequence[BlockSlice],
    lengths: Mapping[SliceKey, Array],
    key: Mapping[str, Any],
    files: Sequence[Sequence[Any]] | None,
) -> None:
    """Write an index; the file appears whole or not at all. `files` are the ones that a later index may share."""
    rows = [(one.block.origin, one.number, one.start, lengths[one.key]) for one in slices]
    # nothing changes rows: lengths of whole blocks fit windows of any size
    if key["window"] is None:
        blocks = [list(found) for _, found in groupby(rows, key=lambda row: row[1])]
        rows = [(*found[0][:3], np.concatenate([one[3] for one in found])) for found in blocks]
    origins, blocks_of, starts, measured = zip(*rows, strict=True) if rows else ((), (), (), ())
    of_slices = [_lengths(one) for one in measured]
    columns = {
        "file": [os.path.basename(origin) for origin in origins],
        "block": blocks_of,
        "start": starts,
        "rows": [len(one) for one in of_slices],
        "lengths": of_slices,
    }
    if "by" in key:
        columns["groups"] = [one[:, 1] for one in measured]
    table = pa.table(columns, _schema("by" in key))
    metadata = {_SETTINGS: json.dumps(key), _FILES: json.dumps(files), CHECKSUM: checksum(table)}
    table = table.replace_schema_metadata(metadata)
    writer = FileWriter(path, FileEncoding("arrow"))
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            writer.write(table, 0)
            writer.close()
            # renamed last: a killed process leaves no incomplete index
            writer.temporary.replace(path)
    finally:
        writer.discard()


def read_index(path: Path, slices: Iterable[BlockSlice], key: Mapping[str, Any]) -> LengthsIndex:
    """Return the index of these slices; raise OpError, with the difference, when it belongs to other data or
    settings.

    Raise ProviderError when it is damaged.
    """
    table, described, _ = _read(path)
    check_same(f"the lengths index {path} is stale: ", described, key, f"\n  {_ANEW}")
    index = LengthsIndex(_lengths_in(table), key["window"] is None)
    for one in slices:
        if index.of(one, one.number) is None:
            raise _damaged(path, f"it lacks lengths of block {one.number}")
    return index


def _lengths_in(table: pa.Table) -> dict[SliceKey, Array]:
    names = [name for name in table.schema.names if name not in ("file", "rows")]
    record = from_arrow(table.select(names).combine_chunks())
    ends = np.cumsum(record["lengths.lengths"])[:-1]
    values = record["lengths.values"]
    if "groups" in names:
        values = np.stack([values, record["groups.values"]], axis=1)
    lengths = np.split(values, ends) if record.num_rows else []
    places = zip(record["block"].tolist(), record["start"].tolist(), strict=True)
    return dict(zip(places, lengths, strict=True))


def open_index(path: Path) -> tuple[LengthsIndex, dict[str, Any], Any]:
    """Return an index of any data, the settings it depends on, and its files as JSON; raise an error when it is
    not an index.
    """
    table, described, files = _read(path)
    return LengthsIndex(_lengths_in(table), described.get("window") is None), described, files


def check_is_index(path: Path) -> None:
    """Raise OpError when a new index would replace a file that is not an index."""
    if path.exists():
        try:
            _read(path)
        except SeqflowError as error:
            raise OpError(f"{error.message}\n  remove it, or name another file for the index") from None


def _read(path: Path) -> tuple[pa.Table, dict[str, Any], Any]:
    """Return the table of an index, its settings, and its files; raise ProviderError when it is damaged."""
    with reading(f"{path} is not a lengths index, or damaged", _ANEW):
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate(full=True)
    metadata = table.schema.metadata or {}
    if _SETTINGS not in metadata:
        raise OpError(f"{path} is an Arrow file, but not a lengths index")
    try:
        described, files = json.loads(metadata[_SETTINGS]), json.loads(metadata.get(_FILES, b"null"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its settings are not JSON: {error}") from None
    if not isinstance(described, dict):
        raise _damaged(path, "its settings are not a JSON object")
    _check_table(path, table, metadata.get(CHECKSUM))
    return table, described, files


def _check_table(path: Path, table: pa.Table, expected: bytes | None) -> None:
    """Raise ProviderError unless a table has the columns of an index, with counts in them, and the expected
    checksum.
    """
    import pyarrow.compute as pc

    lists = [name for name in ("lengths", "groups") if name in table.schema.names]
    if not table.schema.equals(_schema("groups" in lists)):
        raise _damaged(path, "it has other columns")
    flat = [pc.list_flatten(table[name]) for name in lists]
    if any(column.null_count for column in (*flat, *table.columns)):
        raise _damaged(path, "it has nulls")
    if not all(pc.list_value_length(table[name]).equals(table["rows"]) for name in lists):
        raise _damaged(path, "rows are not the numbers of lengths")
    lengths = flat[0].to_numpy()
    # added up in float64: damaged lengths may exceed int64
    if lengths.min(initial=0) < UNUSABLE or lengths.sum(dtype=np.float64) >= LARGEST_COUNT:
        raise _damaged(path, "it has negative lengths, or too large ones")
    if expected != checksum(table):
        raise _damaged(path, "its checksum is another")


def checksum(table: pa.Table) -> bytes:
    """Return a CRC-32 of the columns of integers of an index."""
    import pyarrow.compute as pc

    found = 0
    lists = [pc.list_flatten(table[name]) for name in ("lengths", "groups") if name in table.schema.names]
    for column in (table["block"], table["start"], table["rows"], *lists):
        found = zlib.crc32(column.to_numpy(), found)
    return str(found).encode()


def _damaged(path: Path, why: str) -> ProviderError:
    return ProviderError(f"the lengths index {path} is damaged: {why}", advice=_ANEW)


def _schema(grouped: bool) -> pa.Schema:
    numbers = pa.large_list(pa.int64())
    columns = {"file": pa.string(), "block": pa.int64(), "start": pa.int64(), "rows": pa.int64()}
    return pa.schema({**columns, "lengths": numbers, **({"groups": numbers} if grouped else {})})


FileBlocks = Sequence[Any]
"""A file of an index: its relative path, its bytes, a digest of samples, and its number of blocks."""
_FILES_FORM = [(str, is_count, str, is_count)]
_OF_FILES = ("rows", "blocks", "files", "digest", "damaged files")
"""Entries about all files together in the identity of an index's data."""


def files_with_blocks(
    files: Sequence[Sequence[Any]], names: Sequence[str], slices: Slices
) -> list[FileBlocks] | None:
    """Return the files of a source with their blocks; None unless blocks come one file after another.

    `files` are those of a fingerprint, `names` their paths.
    """
    blocks = slices.blocks
    counts = dict(
        zip(blocks.origins, np.bincount(blocks.file, minlength=len(blocks.origins)).tolist(), strict=True)
    )
    in_order = (np.diff(blocks.file) >= 0).all() and [name for name in names if name in counts] == [
        *blocks.origins
    ]
    if not in_order or not set(counts) <= set(names):
        return None
    pairs = zip(files, names, strict=True)
    return [[path, size, digest, counts.get(name, 0)] for (path, size, _, digest), name in pairs]


def reusable_lengths(
    path: Path, key: Mapping[str, Any], files: Sequence[FileBlocks], slices: Slices
) -> dict[SliceKey, Array]:
    """Return the lengths of slices whose files are in an older index with the same settings; none if there is
    no such index.
    """
    try:
        index, described, old_files = open_index(path)
    except SeqflowError:
        return {}
    # the key as JSON, in which tuples are lists, as in the file
    if not matches_schema(old_files, _FILES_FORM) or _settings(described) != _settings(
        json.loads(json.dumps(key))
    ):
        return {}
    starts = np.cumsum([0, *(count for *_, count in old_files)]).tolist()
    before = {tuple(file): start for file, start in zip(old_files, starts, strict=False)}
    shifts, number = np.full(len(slices.blocks), -1), 0  # -1: the index does not have the block's file
    for file in files:
        if (start := before.get(tuple(file))) is not None:
            shifts[number : number + file[-1]] = range(start, start + file[-1])
        number += file[-1]
    return _moved(index, shifts, slices)


def _moved(index: LengthsIndex, old_numbers: Array, slices: Slices) -> dict[SliceKey, Array]:
    """Return the lengths of an index for slices of blocks that had other numbers in it."""
    found = ((one.key, index.of(one, int(old_numbers[one.number]))) for one in slices)
    return {key: lengths for key, lengths in found if lengths is not None}


def _settings(described: Any) -> Any:
    """Return the identity of an index without its files."""
    if not isinstance(described, dict) or not isinstance(described.get("data"), dict):
        return None
    data = {name: value for name, value in described["data"].items() if name not in _OF_FILES}
    return {**described, "data": data}


class Indexing:
    """The lengths index in a file: made during an epoch, or by a pass over the data, and read again.

    `lengths` are read or made when they are first needed; `measure` reads the slices that were not measured yet.
    """

    def __init__(
        self,
        path: Path,
        identity: LoaderIdentity,
        lengths: Callable[[], str | None],
        measure: Callable[[Measured], None],
        whole: "Indexing | None" = None,
    ) -> None:
        self.path, self._identity, self._planned, self._measure = path, identity, lengths, measure
        self._whole = whole
        """The index of more files, which has the lengths of these."""
        self.num_read_blocks = 0
        """Number of blocks that were read for the index, because no older index had their lengths."""
        self.lengths: LengthsIndex | None = None
        """The lengths of all prepared rows, once they were read."""
        self._measured: Measured | None = None
        """The lengths measured so far, if there is no file yet."""

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"lengths": None, "_measured": None}

    @property
    def _slices(self) -> Slices:
        return self._identity.listing.slices()

    def _key(self) -> dict[str, Any]:
        """Return the settings that the lengths depend on."""
        return self._identity.index_key(self._planned())

    def _files(self) -> list[FileBlocks] | None:
        """Return the files of the data with their blocks, by which a later index recognizes them.

        None unless blocks come one file after another.
        """
        source = self._identity.recipe.source
        if not source.source_reads_columns:  # a block is of several files
            return None
        return files_with_blocks(self._identity.files, source.files, self._slices)

    def read(
        self,
        *,
        anew: bool = False,
        update: bool = False,
    ) -> LengthsIndex:
        """Return the lengths of all prepared rows from the file, which is made if it does not exist.

        `anew` always makes it, and replaces an older index once the new one is complete; `update` also
        replaces it, but reads only files that are new or have changed. Raise OpError when the file is not an index,
        or belongs to other data or settings; the message names the difference.
        """
        if self._whole is not None:
            self.lengths = self.lengths or self._of_part(self._whole.read())
        elif self.lengths is None or anew or update:
            self._check_indexable()
            if anew or update:
                check_is_index(self.path)
            if anew or update or not self.path.exists():
                self._measured = Measured(self._slices)
                if update:
                    self._measured.add_measured(self._reusable())
                self.num_read_blocks = len({one.number for one in self._slices if self._measured.lacks(one)})
                self._measure(self._measured)
                self.keep()
            self.lengths = read_index(self.path, self._slices, self._key())
        return self.lengths

    def _of_part(self, whole: LengthsIndex) -> LengthsIndex:
        measured = Measured(self._slices)
        measured.add_measured(self._reusable())
        if not measured.complete:
            raise OpError(
                f"the lengths index {self.path} lacks files of the epoch\n  begin it again: set_epoch(…)"
            )
        return LengthsIndex(measured.lengths, whole.whole_blocks)

    def measured(self) -> Measured:
        """Provide a collector for the lengths of what an epoch reads: `keep` makes the index of them."""
        self._check_indexable()
        if self._measured is None:
            self._measured = Measured(self._slices)
        return self._measured

    def keep(self) -> None:
        """Write the index, once all slices are measured."""
        measured = self._measured
        if measured is not None and measured.complete:
            write_index(self.path, self._slices, measured.lengths, self._key(), self._files())
            self._measured = None

    def _reusable(self) -> dict[SliceKey, Array]:
        """Return the lengths in an older index of files that have not changed."""
        files = self._files()
        if files is None or not self.path.exists():
            return {}
        return reusable_lengths(self.path, self._key(), files, self._slices)

    def _check_indexable(self) -> None:
        recipe = self._identity.recipe
        if recipe.source.is_stream:
            raise OpError(
                "Loader: index: the source is a stream, whose blocks are not known before\n  read files instead"
            )
        if why := recipe.batch.unknown_by_lengths():
            raise OpError(f"Loader: index: {why}")
        if isinstance(recipe.prepare, Net) and recipe.prepare.is_random:
            raise OpError(
                "Loader: index: prepare draws random numbers, so that lengths differ from epoch to epoch"
            )
