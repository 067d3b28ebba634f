"""Go on with a saved state though files were added, or sizes of plans and windows are others, since it was taken."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seqflow.errors import OpError
from seqflow.identity.plans import plan_text
from seqflow.json_form import has_form
from seqflow.loader.epoch.table import Missing, Table
from seqflow.loader.run.opened import WindowsAgain
from seqflow.loader.run.planned import PlannedRows
from seqflow.loader.run.windows import WindowMaker
from seqflow.loader.schedule.changes import CHANGEABLE, Change, changes_of, has_changes_form
from seqflow.loader.schedule.layout import Layout
from seqflow.loader.schedule.plan_text import plan_of_text
from seqflow.loader.schedule.state import Position

_FILE = (str, object, object, object)
_OF_FILES = ("rows", "blocks", "files")
"""What a state says of all files together: it is another where files were added."""
_SIZE = re.compile(r"\b(n|capacity|rows|max_tokens|max_rows)=(\d+|None)|\bboundaries=\([\d, ]*\)")
"""The arguments of plans that are sizes."""


def earlier_changes(state: Mapping[str, Any]) -> tuple[Change, ...]:
    """The changes that a state lists; OpError where they are damaged."""
    found = state.get("changes", [])
    if not has_changes_form(found, state["settings"].get("streams")):
        raise OpError(
            "load_state_dict: the changes of the state are damaged, expected what state_dict() gave"
        )
    return changes_of(found)


@dataclass(frozen=True, slots=True)
class Found:
    """What has changed since a state was taken, of what may."""

    was: Mapping[str, Any]
    """Settings that are others, as they were."""
    added: Sequence[str]
    """New files, by their paths in a state of now."""
    folder: str
    """What comes before the paths of the state: the folder of all files is another where one was added above."""

    def __bool__(self) -> bool:
        return bool(self.was or self.added)


def found_since(state: Mapping[str, Any], settings: Mapping[str, Any], data: Mapping[str, Any]) -> Found:
    """The changes since a state that may be accepted; whatever else differs is not among them."""
    before = state["settings"]
    was = {name: before[name] for name in CHANGEABLE if _may_change(name, before.get(name), settings[name])}
    if "batch" in was:
        was["batch"] = plan_text(was["batch"])
    return Found(was, *_added(state["data"], data))


def as_of_now(
    state: Mapping[str, Any], found: Found, settings: Mapping[str, Any], data: Mapping[str, Any]
) -> dict[str, Any]:
    """What a state says, as if it were of the data and sizes of now; whatever else differs stays in it."""
    changed = {**state, "settings": {**state["settings"], **{name: settings[name] for name in found.was}}}
    if found.added:
        changed["data"] = {**state["data"], **{name: data[name] for name in _OF_FILES}}
    return changed


def renamed(changes: Sequence[Change], folder: str) -> tuple[Change, ...]:
    """Earlier changes with the paths that their files have now."""
    return tuple(replace(one, added=tuple(folder + path for path in one.added)) for one in changes)


def windows_begun(table: Table, layout: Layout, maker: WindowMaker, place: Position) -> tuple[int, ...]:
    """For each stream how many windows the batches before a place are of; those that are not counted are read."""
    rows = PlannedRows(table, WindowsAgain(maker, layout, place.epoch))
    return tuple(_begun_of(rows, number, place.batch) for number in range(len(table.streams)))


def _may_change(name: str, before: Any, now: Any) -> bool:
    """Whether a setting is another one, and may be: a window's bytes, or the sizes of a plan."""
    if before == now:
        return False
    if name == "window":
        return isinstance(before, int) and before > 0
    before, now = plan_text(before), plan_text(now)
    if _SIZE.sub("", before) != _SIZE.sub("", now):
        return False
    plan_of_text(before)
    return True


def _added(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], str]:
    """The files that are new, where that is all that has changed; and what their folder puts before older paths."""
    files, of_now = before.get("files"), now.get("files")
    same = all(before.get(name) == now.get(name) for name in {*before, *now} - {*_OF_FILES})
    if not same or not has_form(files, [_FILE]) or not has_form(of_now, [_FILE]):
        return [], ""
    assert isinstance(files, Sequence)
    assert isinstance(of_now, Sequence)
    present = {path: rest for path, *rest in of_now}
    for folder in _folders([path for path, *_ in files], list(present)):
        if not all(folder + path in present for path, *_ in files):
            continue
        old = [[folder + path, *rest] for path, *rest in files]
        known = {path for path, *_ in old}
        if [one for one in map(list, of_now) if one[0] in known] == old:
            return [path for path in present if path not in known], folder
    return [], ""


def _folders(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """The folders that all files may now be found under: that of all files is another where one was added above."""
    if not before:
        return [""]
    first = before[0]
    return sorted(
        {path.removesuffix(first) for path in now if path == first or path.endswith("/" + first)}, key=len
    )


def _begun_of(rows: PlannedRows, number: int, batch: int) -> int:
    places, stream = rows.table.turns.before(number, batch), rows.table.streams[number]
    if not places:
        return 0
    while isinstance(found := stream.has(places - 1), Missing):
        rows.plan(found, wait=True)
    if not found:
        rows.table.total = stream.planned  # fillers of the last round are no batches
        return stream.windows
    return 1 + stream.row(-1, number, places - 1).pieces[-1][0]
