"""Changes of the data, or of plans' sizes, in the middle of an epoch: which windows the epoch then has.

Windows of which a batch was dealt before the change go on as they were planned. All other blocks, and those of new
files, are permuted by a key of the seed, the epoch and the change, and cut into windows behind them. So the windows
are a function of the data, the settings, the seed, the epoch and the changes: no state lists rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seqflow.json_form import has_form, is_count
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.permutation import permutation
from seqflow.loader.plans.plan import BatchPlan
from seqflow.loader.schedule.plan_text import plan_of_text
from seqflow.loader.schedule.recipe import BLOCKS, Recipe
from seqflow.loader.schedule.windows import Slices, Windows, deal_windows

CHANGEABLE = ("batch", "window")
"""Settings that may be others behind a change."""
_FORM = [{"epoch": is_count, "batch": is_count, "begun": [is_count], "added": [str], "was": Mapping}]


@dataclass(frozen=True, slots=True)
class Change:
    """What was another behind batch `batch` of an epoch."""

    epoch: int
    batch: int
    begun: tuple[int, ...]
    """For each stream how many windows were begun: they go on as they were planned."""
    added: tuple[str, ...]
    """The files that are new, by their paths in a state."""
    was: Mapping[str, Any] = field(default_factory=dict)
    """What settings were before, of those that are others."""

    def to_json(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch, "batch": self.batch, "begun": list(self.begun), "added": list(self.added),
            "was": dict(self.was),
        }  # fmt: skip


def has_changes_form(changes: Any, streams: Any) -> bool:
    """Whether the changes of a state of so many streams have the form of `Change.to_json`."""
    return has_form(changes, _FORM) and all(
        len(one["begun"]) == streams
        and set(one["was"]) <= {*CHANGEABLE}
        and isinstance(one["was"].get("batch", ""), str)
        and is_count(one["was"].get("window", 1))
        and one["was"].get("window", 1) > 0
        for one in changes
    )


def changes_of(changes: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """The changes that a state lists."""
    return tuple(
        Change(one["epoch"], one["batch"], tuple(one["begun"]), tuple(one["added"]), one["was"])
        for one in changes
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
    plans: tuple[tuple[int, BatchPlan], ...]
    """The plans of earlier windows, each with the number of the first that has it."""

    def streams(self) -> list[Windows]:
        return [Windows(self.slices, None, self.starts, of, self.plans) for of in self.dealt]

    def places_of(self, windows: Array) -> Array:
        """int64: the slices of some windows."""
        of_window = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return np.flatnonzero(np.isin(of_window, windows))


def changed_windows(
    recipe: Recipe, slices: Slices, paths: Mapping[str, str], epoch: int, changes: Sequence[Change]
) -> Iterator[list[Windows]]:
    """The windows of each stream of an epoch as they were before its first change, and behind each.

    `slices` are those of all files there are now, `paths` their paths in a state.
    """
    recipes = _recipes(recipe, changes)
    added = [set(change.added) for change in changes]
    present = ~_is_of(slices, paths, set[str]().union(*added))
    layout = _Layout(
        slices.taken(np.zeros(0, np.int64)),
        np.zeros(1, np.int64),
        (np.zeros(0, np.int64),) * recipe.streams,
        (),
    )
    rest = _sliced(recipes[0], slices, present, present)
    for number, of_segment in enumerate(recipes):
        if number:
            kept = tuple(
                of[:begun] for of, begun in zip(layout.dealt, changes[number - 1].begun, strict=True)
            )
            left = np.setdiff1d(np.concatenate(layout.dealt), np.concatenate(kept))
            is_new = _is_of(slices, paths, added[number - 1])
            present = present | is_new
            layout = replace(layout, dealt=kept)
            rest = _rest(of_segment, slices, layout.slices.taken(layout.places_of(left)), is_new, present)
        layout = _appended(layout, of_segment, rest, epoch, number)
        yield layout.streams()


def _recipes(recipe: Recipe, changes: Sequence[Change]) -> list[Recipe]:
    """The recipe before the first change, and behind each."""
    found = [recipe]
    for change in reversed(changes):
        was = dict(change.was)
        if "batch" in was:
            was["batch"] = plan_of_text(was["batch"])
        found.append(replace(found[-1], **was))
    return found[::-1]


def _is_of(slices: Slices, paths: Mapping[str, str], files: Collection[str]) -> Array:
    """bool[B]: whether each block is of one of some files."""
    chosen = np.array([paths.get(origin) in files for origin in slices.blocks.origins], bool)
    return chosen[slices.blocks.file] if len(chosen) else np.zeros(0, bool)


def _sliced(recipe: Recipe, slices: Slices, chosen: Array, present: Array) -> Slices:
    """The slices of some blocks, whose random numbers are drawn for their places among those that are present."""
    every = Slices.of(slices.blocks, recipe.window, sliced=recipe.slices_large)
    drawn = np.cumsum(present) - 1
    numbers = every.block_numbers
    return replace(every.taken(np.flatnonzero(chosen[numbers])), drawn=drawn[numbers[chosen[numbers]]])


def _rest(recipe: Recipe, slices: Slices, left: Slices, is_new: Array, present: Array) -> Slices:
    """What is left of earlier windows, and new blocks, in the order of the source.

    Blocks that are left as a whole are sliced anew, since windows may have another size.
    """
    rows_left = np.zeros(len(slices.blocks), np.int64)
    np.add.at(rows_left, left.block_numbers, np.maximum(left.rows, 0))
    is_part = np.zeros(len(slices.blocks), bool)
    is_part[left.block_numbers] = left.is_slice
    is_part &= rows_left < slices.blocks.rows
    is_whole = np.zeros(len(slices.blocks), bool)
    is_whole[left.block_numbers] = True
    whole = _sliced(recipe, slices, (is_whole & ~is_part) | is_new, present)
    parts = left.taken(np.flatnonzero(is_part[left.block_numbers]))
    parts = replace(parts, drawn=(np.cumsum(present) - 1)[parts.block_numbers])
    joined = whole.joined(parts)
    return joined.taken(np.lexsort((joined.first_rows, joined.block_numbers)))


def _appended(layout: _Layout, recipe: Recipe, rest: Slices, epoch: int, change: int) -> _Layout:
    """The layout with the windows of what is left; `change` is 0 for the windows that the epoch begins with."""
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
        (*layout.plans, (first, recipe.batch)),
    )
