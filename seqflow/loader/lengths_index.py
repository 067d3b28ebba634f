"""The lengths index: how long the prepared rows of each block are, so that batches can be counted before reading."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqflow.errors import OpError, SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.loader.reading import Read
from seqflow.loader.recipe import PreparedPart, Recipe
from seqflow.loader.state import check_same, describe_transform
from seqflow.loader.window_rows import WindowRows
from seqflow.loader.windows import Part, Window
from seqflow.output.files import FileWriter, Format
from seqflow.record import from_arrow
from seqflow.record.damage import reading

if TYPE_CHECKING:
    import pyarrow as pa

_ANEW = "\n  remove the file, or name another: it is made anew"

Place = tuple[int, int]
"""A block, and the first row of a slice of it."""


@dataclass(frozen=True, slots=True)
class LengthsIndex:
    """The lengths of the rows of each part, after `prepare`, and what they depend on.

    The file is an Arrow file with a row for each part: `file`, `block`, `start`, `rows`, and `lengths`, one a row of
    the part. Its metadata says which data, columns and `prepare` it is of. Where nothing changes rows it has whole
    blocks, and is good for windows of any size.
    """

    lengths: Mapping[Place, Array]
    whole_blocks: bool

    def counts(self, recipe: Recipe, windows: Iterable[Window], epoch: int) -> list[int]:
        """The number of batches of each window."""
        return [self._count(recipe, window, epoch) for window in windows]

    def _count(self, recipe: Recipe, window: Window, epoch: int) -> int:
        lengths = np.concatenate([self._of(part) for part in window.parts])
        order = recipe.order(window, len(lengths), epoch)
        return recipe.batch.count(lengths if order is None else lengths[order])

    def _of(self, part: Part) -> Array:
        if self.whole_blocks and part.stop is not None:
            return self.lengths[part.number, 0][part.start : part.stop]
        return self.lengths[part.number, part.start]


class Measured:
    """The lengths of the parts that were read so far: an index once all were."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._missing = {(part.number, part.start) for part in parts}
        self.lengths: dict[Place, Array] = {}

    @property
    def complete(self) -> bool:
        return not self._missing

    def reading(self, recipe: Recipe, read: Read) -> Read:
        """Read parts, and measure each the first time. Threads may share it."""

        def measured(part: Part, epoch: int) -> PreparedPart:
            found = read(part, epoch)
            place = part.number, part.start
            if place in self._missing:
                self.lengths[place] = lengths_of(recipe, found)
                self._missing.discard(place)
            return found

        return measured


def lengths_of(recipe: Recipe, part: PreparedPart) -> Array:
    """The sizes that the rows of a part are planned on; 0 for each where no column is planned."""
    found = []
    for record in part.records:
        name = recipe.planned_lengths(record)
        found.append(
            np.zeros(record.num_rows, np.int64)
            if name is None
            else recipe.batch.row_sizes(WindowRows((record,)), name)
        )
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def index_key(
    recipe: Recipe, parts: Sequence[Part], data: Mapping[str, Any], lengths: str | None
) -> dict[str, Any]:
    """What the lengths depend on: the data, and everything up to the planning of batches.

    Without `prepare` and rows that are left out it is the column of the planned lengths alone.
    """
    as_read = recipe.prepare is None and not recipe.keeps_going and lengths is not None
    columns = None if recipe.columns is None else list(recipe.columns)
    if as_read:
        assert lengths is not None
        planned = [text for text in data["columns"] if lengths.startswith(f"{text.partition(': ')[0]}.")]
        columns, data = None, {**data, "columns": planned}
    sliced = any(part.stop is not None for part in parts)
    return {
        "columns": columns,
        "prepare": describe_transform(recipe.prepare),
        "lengths": lengths,
        "cut together": list(recipe.batch.columns or ()),
        "fill": repr(recipe.fill),
        "valid": recipe.valid,
        "bad_rows": "left out" if recipe.keeps_going else "raise",
        "window": recipe.window_bytes if sliced and not as_read else None,
        "data": dict(data),
    }


def index_beside(files: Sequence[str]) -> Path:
    """The name of the index of some files: hidden, in the folder of all of them."""
    if not files:
        raise OpError("Loader: index: the source has no files to keep it beside\n  name a file: index=…")
    if len(files) == 1:
        path = Path(files[0]).absolute()
        return path.with_name(f".{path.name}.lengths.arrow")
    folder = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in files])
    return Path(folder) / ".lengths.arrow"


def write_index(
    path: Path, parts: Sequence[Part], lengths: Mapping[Place, Array], key: Mapping[str, Any]
) -> None:
    """Write an index; the file appears whole or not at all."""
    import pyarrow as pa

    rows = [(part.block.origin, part.number, part.start, lengths[part.number, part.start]) for part in parts]
    if key["window"] is None:
        blocks = [list(found) for _, found in groupby(rows, key=lambda row: row[1])]
        rows = [(*found[0][:3], np.concatenate([one[3] for one in found])) for found in blocks]
    files, blocks_of, starts, of_parts = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = pa.table(
        {
            "file": pa.array([os.path.basename(file) for file in files], pa.string()),
            "block": pa.array(blocks_of, pa.int64()),
            "start": pa.array(starts, pa.int64()),
            "rows": pa.array([len(one) for one in of_parts], pa.int64()),
            "lengths": pa.array(of_parts, pa.large_list(pa.int64())),
        }
    ).replace_schema_metadata({"seqflow lengths index": json.dumps(key)})
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = FileWriter(path, Format("arrow"))
    try:
        writer.write(table, 0)
        writer.close()
        writer.temporary.replace(path)
    finally:
        writer.discard()


def read_index(path: Path, key: Mapping[str, Any]) -> LengthsIndex:
    """Read an index; OpError where it is damaged, or of other data or settings, with the difference."""
    table, described = _read(path)
    check_same(f"the lengths index {path} is stale: ", described, key, _ANEW)
    record = from_arrow(table.select(["block", "start", "lengths"]).combine_chunks())
    ends = np.cumsum(record["lengths.lengths"])[:-1]
    parts = np.split(record["lengths.values"], ends) if record.num_rows else []
    places = zip(record["block"].tolist(), record["start"].tolist(), strict=True)
    return LengthsIndex(dict(zip(places, parts, strict=True)), key["window"] is None)


def check_is_index(path: Path) -> None:
    """OpError where there is another file, which a new index would take the place of."""
    if path.exists():
        try:
            _read(path)
        except SeqflowError as error:
            raise OpError(f"{error}\n  remove it, or name another file for the index") from None


def _read(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """The table of an index, and what it was made of."""
    import pyarrow as pa

    with reading(f"{path} is no lengths index, or damaged"):
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate(full=True)
    described = (table.schema.metadata or {}).get(b"seqflow lengths index")
    if described is None:
        raise OpError(f"{path} is an Arrow file, but no lengths index")
    return table, json.loads(described)
