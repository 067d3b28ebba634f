"""Files added in the middle of an epoch: which windows the epoch then has.

Windows of which a batch was dealt before the change go on as they were planned. All other blocks, and those of new
files, are permuted by a key of the seed, the epoch and the change, and cut into windows after them. So the windows
are a function of the data, the settings, the seed, the epoch and the changes: no state lists rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from seqflow.errors import OpError
from seqflow.json_form import has_form, is_count
from seqflow.kernels.arrays import Array
from seqflow.loader.order.recipe import BLOCKS, Recipe
from seqflow.loader.order.windows import Slices, Windows, deal_windows
from seqflow.loader.plans.permutation import permutation

_FORM = [{"epoch": is_count, "batch": is_count, "begun": [is_count], "added": [str]}]
_FILE = (str, object, object, object)
_OF_FILES = ("rows", "blocks", "files")
"""Entries of a state about all files together: they differ where files were added."""


@dataclass(frozen=True, slots=True)
class Change:
    """Files that were added after batch `batch - 1` of an epoch."""

    epoch: int
    batch: int
    begun: tuple[int, ...]
    """For each stream how many windows were begun: they go on as they were planned."""
    added: tuple[str, ...]
    """The new files, by their paths in a state."""

    def to_json(self) -> dict[str, Any]:
        return {name: list(one) if isinstance(one, tuple) else one for name, one in asdict(self).items()}


def changes_of(state: Mapping[str, Any]) -> tuple[Change, ...]:
    """Read the changes that a state lists; OpError where they are damaged, or of sizes, as in version 0.2."""
    found = state.get("changes", [])
    if not has_form(found, _FORM) or any(
        len(one["begun"]) != state["settings"].get("streams") for one in found
    ):
        raise OpError(
            "load_state_dict: the changes of the state are damaged, expected what state_dict() gave"
        )
    if any(one.get("was") for one in found):
        raise OpError(
            "load_state_dict: the plan or the windows changed their size in the middle of the epoch, expected added "
            "files alone\n  finish the epoch with seqflow 0.2, or begin it again: set_epoch(…)"
        )
    return tuple(
        Change(one["epoch"], one["batch"], tuple(one["begun"]), tuple(one["added"])) for one in found
    )


def renamed(changes: Sequence[Change], folder: str) -> tuple[Change, ...]:
    """Return changes with the paths that their files have now, in `folder`."""
    return tuple(replace(one, added=tuple(folder + path for path in one.added)) for one in changes)


def added_files(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], str]:
    """Find the new files of some data, where nothing else has changed, and the folder that older paths are now in.

    The folder of all files changes where one was added above it.
    """
    files, of_now = before.get("files"), now.get("files")
    same = all(before.get(name) == now.get(name) for name in {*before, *now} - {*_OF_FILES})
    if not same or not has_form(files, [_FILE]) or not has_form(of_now, [_FILE]):
        return [], ""
    assert isinstance(files, Sequence)
    assert isinstance(of_now, Sequence)
    present = {path: rest for path, *rest in of_now}
    for folder in _folders([path for path, *_ in files], list(present)):
        old = [[folder + path, *rest] for path, *rest in files]
        known = {path for path, *_ in old}
        if [one for one in map(list, of_now) if one[0] in known] == old:
            return [path for path in present if path not in known], folder
    return [], ""


def _folders(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Folders in which all older files may be now."""
    if not before:
        return [""]
    first = before[0]
    return sorted(
        {path.removesuffix(first) for path in now if path == first or path.endswith("/" + first)}, key=len
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The windows of an epoch so far, and which of them each stream has."""

    slices: Slices
    """Window by window, inside one in the order of the source."""
    starts: Array
    """int64[windows + 1]: the first slice of each window."""
    dealt: tuple[Array, ...]
    """For each stream the numbers of its windows, in order."""

    def streams(self) -> list[Windows]:
        return [Windows(self.slices, None, self.starts, of) for of in self.dealt]

    def slices_of(self, windows: Array) -> Slices:
        """The slices of some windows."""
        of_window = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return self.slices.taken(np.flatnonzero(np.isin(of_window, windows)))


def changed_windows(
    recipe: Recipe, slices: Slices, paths: Mapping[str, str], epoch: int, changes: Sequence[Change]
) -> Iterator[list[Windows]]:
    """Yield the windows of each stream of an epoch before its first change, and after each.

    `slices` are those of all files there are now, `paths` their paths in a state.
    """
    no_windows = np.zeros(0, np.int64)
    layout = _Layout(slices.taken(no_windows), np.zeros(1, np.int64), (no_windows,) * recipe.streams)
    is_new = [_is_of(slices, paths, {*change.added}) for change in changes]
    present = ~np.any([np.zeros(len(slices.blocks), bool), *is_new], axis=0)
    rest = slices.taken(np.flatnonzero(present[slices.block_numbers]))
    layout = _appended(layout, recipe, _drawn(rest, present), epoch, 0)
    yield layout.streams()
    for number, change in enumerate(changes, 1):
        kept = tuple(of[:begun] for of, begun in zip(layout.dealt, change.begun, strict=True))
        left = layout.slices_of(np.setdiff1d(np.concatenate(layout.dealt), np.concatenate(kept)))
        of_new = slices.taken(np.flatnonzero(is_new[number - 1][slices.block_numbers]))
        present = present | is_new[number - 1]
        rest = _drawn(of_new, present).joined(_drawn(left, present))
        rest = rest.taken(np.lexsort((rest.first_rows, rest.block_numbers)))  # in the order of the source
        layout = _appended(replace(layout, dealt=kept), recipe, rest, epoch, number)
        yield layout.streams()


def _is_of(slices: Slices, paths: Mapping[str, str], files: Collection[str]) -> Array:
    """bool[B]: whether each block is of one of some files."""
    chosen = np.array([paths.get(origin) in files for origin in slices.blocks.origins], bool)
    return chosen[slices.blocks.file] if len(chosen) else np.zeros(0, bool)


def _drawn(slices: Slices, present: Array) -> Slices:
    """Slices whose random numbers are drawn for the places of their blocks among those that are present."""
    return replace(slices, drawn=(np.cumsum(present) - 1)[slices.block_numbers])


def _appended(layout: _Layout, recipe: Recipe, rest: Slices, epoch: int, change: int) -> _Layout:
    """Append the windows of what is left; `change` is 0 for the windows that the epoch begins with."""
    purpose = (BLOCKS, change) if change else (BLOCKS,)
    order = None if recipe.shuffle is None else permutation(len(rest), recipe.key(epoch, *purpose))
    windows = Windows.cut(rest, order, recipe.window)
    of_window = np.repeat(np.arange(len(windows)), np.diff(windows.starts))
    places = np.arange(len(rest)) if order is None else order[np.lexsort((order, of_window))]
    first = len(layout.starts) - 1
    dealt = deal_windows(windows, recipe.streams, all_needed=not change)
    more = [np.arange(len(of)) if of.numbers is None else of.numbers for of in dealt]
    return _Layout(
        layout.slices.joined(rest.taken(places)),
        np.concatenate([layout.starts, layout.starts[-1] + windows.starts[1:]]),
        tuple(np.concatenate([of, first + new]) for of, new in zip(layout.dealt, more, strict=True)),
    )
