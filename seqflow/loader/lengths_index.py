"""The lengths index: how long the prepared rows of each block are, so that batches can be counted before reading."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.loader.recipe import PreparedPart, Recipe
from seqflow.loader.state import check_same, describe_transform
from seqflow.loader.window_rows import WindowRows
from seqflow.loader.windows import Part, Window
from seqflow.output.files import FileWriter, Format
from seqflow.record import from_arrow
from seqflow.record.damage import reading

Place = tuple[int, int]
"""A block, and the first row of a slice of it."""


@dataclass(frozen=True, slots=True)
class LengthsIndex:
    """The lengths of the rows of each part, after `prepare`, and what they depend on.

    The file is an Arrow file with a row for each part: `block`, `start`, `rows`, and `lengths`, one a row of the
    part. Its metadata says which data, columns and `prepare` it is of.
    """

    lengths: Mapping[Place, Array]

    def counts(self, recipe: Recipe, windows: Iterable[Window], epoch: int) -> list[int]:
        """The number of batches of each window."""
        return [self._count(recipe, window, epoch) for window in windows]

    def _count(self, recipe: Recipe, window: Window, epoch: int) -> int:
        lengths = np.concatenate([self.lengths[part.number, part.start] for part in window.parts])
        order = recipe.order(window, len(lengths), epoch)
        return recipe.batch.count(lengths if order is None else lengths[order])


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


def index_key(recipe: Recipe, parts: Sequence[Part], data: Mapping[str, Any]) -> dict[str, Any]:
    """What the lengths depend on: the data, and everything up to the planning of batches."""
    return {
        "columns": None if recipe.columns is None else list(recipe.columns),
        "prepare": describe_transform(recipe.prepare),
        "lengths": recipe.batch.lengths,
        "cut together": list(recipe.batch.columns or ()),
        "fill": repr(recipe.fill),
        "valid": recipe.valid,
        "bad_rows": "left out" if recipe.keeps_going else "raise",
        "window": recipe.window_bytes if any(part.stop is not None for part in parts) else None,
        "data": dict(data),
    }


def write_index(path: Path, lengths: Mapping[Place, Array], key: Mapping[str, Any]) -> None:
    """Write an index; the file appears whole or not at all."""
    import pyarrow as pa

    places = sorted(lengths)
    of_parts = [lengths[place] for place in places]
    table = pa.table(
        {
            "block": np.array([block for block, _ in places], np.int64),
            "start": np.array([start for _, start in places], np.int64),
            "rows": np.array([len(one) for one in of_parts], np.int64),
            "lengths": pa.array(of_parts, pa.large_list(pa.int64())),
        }
    ).replace_schema_metadata({"seqflow lengths index": json.dumps(key)})
    writer = FileWriter(path, Format("arrow"))
    try:
        writer.write(table, 0)
        writer.close()
        writer.temporary.replace(path)
    finally:
        writer.discard()


def read_index(path: Path, key: Mapping[str, Any]) -> LengthsIndex:
    """Read an index; OpError where it is damaged, or of other data or settings, with the difference."""
    import pyarrow as pa

    with reading(f"{path} is no lengths index, or damaged"):
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate(full=True)
    described = (table.schema.metadata or {}).get(b"seqflow lengths index")
    if described is None:
        raise OpError(f"{path} is an Arrow file, but no lengths index")
    check_same(f"the lengths index {path} is stale: ", json.loads(described), key)
    record = from_arrow(table.combine_chunks())
    ends = np.cumsum(record["lengths.lengths"])[:-1]
    parts = np.split(record["lengths.values"], ends)
    places = zip(record["block"].tolist(), record["start"].tolist(), strict=True)
    return LengthsIndex(dict(zip(places, parts, strict=True)))
