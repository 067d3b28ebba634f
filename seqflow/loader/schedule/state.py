"""The state of a loader: its place in an epoch as plain JSON, and whether a saved state fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from seqflow.errors import OpError
from seqflow.identity.differences import ACCEPTABLE, differences, listed
from seqflow.json_form import has_form, is_count, numbered
from seqflow.loader.schedule.identity import FORMAT
from seqflow.loader.schedule.streams import Checkpoint

_WINDOW = {"window": is_count, "first_batch": is_count, "batches": is_count}
_FORM = {
    "settings": Mapping, "data": Mapping, "epoch": is_count, "batch": is_count, "ranks": is_count,
    "windows": numbered(_WINDOW),
    "by_rows": bool,
}  # fmt: skip


class Position(NamedTuple):
    """A place between two rounds of batches of an epoch."""

    epoch: int
    batch: int
    """The first batch of the next round of all ranks."""
    windows: Mapping[int, Checkpoint]
    """For streams whose batches are counted while they are read, the window of the last batch."""
    ranks: int
    """How many ranks the rounds are of."""

    def to_json(self) -> dict[str, Any]:
        windows = {
            str(stream): {"window": at.position, "first_batch": at.first, "batches": at.batches}
            for stream, at in self.windows.items()
        }
        return {"epoch": self.epoch, "batch": self.batch, "ranks": self.ranks, "windows": windows}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Position:
        windows = {
            int(stream): Checkpoint(at["window"], at["first_batch"], at["batches"])
            for stream, at in state["windows"].items()
        }
        return cls(int(state["epoch"]), int(state["batch"]), windows, int(state["ranks"]))


class MixPosition(NamedTuple):
    """A place between two rounds of batches of an epoch of a mix."""

    epoch: int
    batch: int
    """The first batch of the next round of all ranks."""
    ranks: int
    ended: bool
    """Whether the last batch was that of an incomplete round: behind it come only batches of some sources."""
    members: Sequence[Mapping[str, Any]]
    """For each source the batches of its passes that have ended, and its windows, as JSON."""

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


Place = Position | MixPosition


@dataclass(slots=True)
class Progress:
    """Where one iteration is: what it changes while it hands out batches, and those who take its state look at."""

    position: Place
    """Behind the last batch handed out."""
    at_window_end: bool = False
    """Whether the last batch handed out was the last of its window."""


def merge_states(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One state of those of all ranks, after equally many steps: it knows the place in every stream.

    Only streams whose batches nobody counted before reading need it, and only to go on with another world size.
    """
    if not len(states):
        raise OpError("merge_states: there are no states, expected one of each rank")
    first, windows = states[0], dict[str, Any]()
    for number, state in enumerate(states):
        check_form("a loader", state, _FORM)
        check_same_source("merge_states: ", state, first)
        for name in ("epoch", "batch", "ranks", "changes"):
            if state.get(name) != first.get(name):
                raise OpError(
                    f"merge_states: {name} is {state.get(name)} in state {number} and {first.get(name)} in state 0, "
                    "expected states of all ranks after the same step"
                )
        for stream, at in state["windows"].items():
            if stream not in windows or at["window"] < windows[stream]["window"]:
                windows[stream] = at
    return {**first, "windows": windows}


def check_state(
    state: Any,
    settings: Mapping[str, Any],
    data: Mapping[str, Any],
    changes: str = "refuse",
    accepted: Mapping[str, Any] | None = None,
) -> set[str]:
    """OpError where a state is none, or of another format, other settings or other data; it says which.

    With `changes="accept"` `prepare` and `net` may be others: the result are those that are. A refusal says so where
    that would do, and where it would accept the state in the form `accepted`.
    """
    check_changes(changes)
    check_loader_form(state)
    now = {"settings": settings, "data": dict(data)}
    try:
        changed = check_same_source("load_state_dict: ", state, now, changes)
    except OpError as error:
        if changes == "refuse" and accepted is not None and _ACCEPT not in str(error):
            with suppress(OpError):
                check_same_source("load_state_dict: ", accepted, now, "accept")
                error = OpError(f"{error}{_ACCEPT}")
        raise error from None
    check_streams(state["windows"], settings["streams"])
    return changed


def check_loader_form(state: Any) -> None:
    """OpError where a state is none of a loader, or of another format."""
    check_form("a loader", state, _FORM)


def check_changes(changes: str) -> None:
    """OpError where `changes` is not a word for what is to happen with them."""
    if changes not in ("refuse", "accept"):
        raise OpError(f"load_state_dict: changes is {changes!r}, expected 'refuse' or 'accept'")


def check_start(batch: int, ranks: int, batches: int) -> None:
    """OpError where a state of so many ranks is at a batch behind the end of the epoch."""
    if batch and batch >= batches + ranks:
        of = f", taken on {ranks} ranks," if ranks > 1 else ""
        raise OpError(
            f"load_state_dict: the state{of} is behind batch {batch - 1}, but the epoch has {batches} batches: it is "
            "damaged, or of other data"
        )


def check_form(of: str, state: Any, form: Mapping[str, Any]) -> None:
    """OpError where a state is of another format, or has not the form of a state of this one."""
    found = state.get("format", FORMAT) if isinstance(state, Mapping) else FORMAT
    if found != FORMAT:
        raise OpError(
            f"load_state_dict: the state has format {_shown(found)}, expected {FORMAT}\n"
            "  it was taken by another version of seqflow: go on with that one, or begin the epoch anew"
        )
    if not has_form(state, {"format": is_count, **form}):
        advice = "\n  found text: json.loads(text) first" if isinstance(state, str | bytes) else ""
        raise OpError(
            f"load_state_dict: this is not the state of {of}, expected what state_dict() gave{advice}"
        )


def check_streams(windows: Mapping[str, Any], streams: int) -> None:
    """OpError where a state knows windows of a stream that there is not."""
    for stream in windows:
        if int(stream) >= streams:
            raise OpError(f"load_state_dict: the state has a window of stream {stream}, of {streams} streams")


def check_same_source(
    what: str, then: Mapping[str, Any], now: Mapping[str, Any], changes: str = "refuse"
) -> set[str]:
    """OpError where two states differ in settings, nets or files of the data; the sections that may, and do."""
    before, after = ({**state["settings"], "data": state["data"]} for state in (then, now))
    return check_settings(before, after, changes, what)


def check_settings(
    before: Mapping[str, Any], after: Mapping[str, Any], changes: str, what: str = "load_state_dict: "
) -> set[str]:
    """OpError, its message beginning with `what`, where settings differ; the sections that may, and do."""
    found = list(differences(before, after))
    acceptable = {one.section for one in found if one.section in ACCEPTABLE}
    refused = [one.text for one in found if changes == "refuse" or one.section not in acceptable]
    if refused:
        can = len(acceptable) == len({one.section for one in found}) and what.startswith("load_state_dict")
        raise OpError(f"{what}{listed(refused)}{_ACCEPT if can else ''}")
    return acceptable


_ACCEPT = '\n  load_state_dict(state, changes="accept") goes on with what is new'


def check_same(what: str, then: Mapping[str, Any], now: Mapping[str, Any], advice: str = "") -> None:
    """OpError, its message beginning with `what`, where settings, nets or files of the data differ."""
    found = [one.text for one in differences(then, now)]
    if found:
        raise OpError(f"{what}{listed(found)}{advice}")


def check_prepared_place(state: Mapping[str, Any], by_rows: bool, streams: int) -> None:
    """OpError where another `prepare` could not go on at a place without losing or repeating rows.

    It can where batches are counted by the rows of the source, then and now (`by_rows`), and where a window ends.
    """
    if state["batch"] == 0 or (state["by_rows"] and by_rows):
        return
    ends = [at["first_batch"] + at["batches"] == state["batch"] for at in state["windows"].values()]
    if by_rows or streams > 1 or ends != [True]:
        raise OpError(
            "load_state_dict: prepare is another one, and nobody knows which of its rows come next: the state is not "
            "at the end of a window\n  begin the epoch anew: set_epoch(…)"
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
