"""What of an older lengths index still holds: the lengths of files that are the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqflow.errors import SeqflowError
from seqflow.json_form import has_form, is_count
from seqflow.kernels.arrays import Array
from seqflow.loader.schedule.index import LengthsIndex, SliceKey, open_index
from seqflow.loader.schedule.windows import Slices

FileBlocks = Sequence[Any]
"""A file of an index: its relative path, its bytes, a digest of samples, and how many blocks it has."""
_FILES = [(str, is_count, str, is_count)]
_OF_FILES = ("rows", "blocks", "files", "digest")
"""What the data of an index say of the files together."""


def files_with_blocks(
    files: Sequence[Sequence[Any]], names: Sequence[str], slices: Slices
) -> list[FileBlocks] | None:
    """The files of a source with their blocks; None where blocks are not those of one file after another.

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
    """The lengths of slices whose files are those of an older index of the same settings; none where it is none."""
    try:
        index, described, old_files = open_index(path)
    except SeqflowError:
        return {}
    if not has_form(old_files, _FILES) or _settings(described) != _settings(json.loads(json.dumps(key))):
        return {}
    starts = np.cumsum([0, *(count for *_, count in old_files)]).tolist()
    before = {tuple(file): start for file, start in zip(old_files, starts, strict=False)}
    shifts, number = np.full(len(slices.blocks), -1), 0
    for file in files:
        if (start := before.get(tuple(file))) is not None:
            shifts[number : number + file[-1]] = range(start, start + file[-1])
        number += file[-1]
    return _moved(index, shifts, slices)


def _moved(index: LengthsIndex, old_numbers: Array, slices: Slices) -> dict[SliceKey, Array]:
    """The lengths of an index for the slices of blocks that had other numbers in it."""
    found: dict[SliceKey, Array] = {}
    for one in slices:
        old = int(old_numbers[one.number])
        if old < 0:
            continue
        lengths = index.lengths.get((old, 0) if index.whole_blocks else (old, one.start))
        if lengths is not None and index.whole_blocks and one.stop is not None:
            lengths = lengths[one.start : one.stop] if len(lengths) == one.block.num_rows else None
        if lengths is not None:
            found[one.key] = lengths
    return found


def _settings(described: Any) -> Any:
    """What an index depends on besides its files."""
    if not isinstance(described, dict) or not isinstance(described.get("data"), dict):
        return None
    data = {name: value for name, value in described["data"].items() if name not in _OF_FILES}
    return {**described, "data": data}
