"""State of a loader: its place in an epoch as plain JSON, and checks that a saved state fits."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from seqflow.errors import OpError
from seqflow.identity.differences import differences, listed
from seqflow.json_schema import is_count, matches_schema, numbered
from seqflow.loader.epoch.assign_ranks import Assignment, Skips
from seqflow.loader.order.identity import FORMAT

_WINDOW = {"window": is_count, "first_batch": is_count, "batches": is_count}
_FORM = {
    "settings": Mapping, "data": Mapping, "epoch": is_count, "batch": is_count, "ranks": is_count,
    "windows": numbered(_WINDOW),
    "by_rows": bool,
}  # fmt: skip


PASS = 1 << 32
"""Distance between the epochs whose orders two passes over a source in an epoch have."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A window of a stream, its first batch, counted over the stream, and its number of batches."""

    position: int
    first: int
    batches: int


class Position(NamedTuple):
    """Place between two rounds of batches of an epoch."""

    epoch: int
    batch: int
    """First batch of the next round of all ranks; at the end of the epoch, the number of batches."""
    window: Checkpoint | None
    """Window of the last batch, if batches are counted while they are read."""
    ranks: int
    """Number of ranks in a round."""

    def to_json(self) -> dict[str, Any]:
        at = self.window
        windows = {} if at is None else {
            "0": {"window": at.position, "first_batch": at.first, "batches": at.batches}
        }  # fmt: skip
        return {"epoch": self.epoch, "batch": self.batch, "ranks": self.ranks, "windows": windows}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Position":
        at = state["windows"].get("0")
        window = None if at is None else Checkpoint(at["window"], at["first_batch"], at["batches"])
        return cls(int(state["epoch"]), int(state["batch"]), window, int(state["ranks"]))


class MixPosition(NamedTuple):
    """Place between two rounds of batches of an epoch of a mix."""

    epoch: int
    batch: int
    """First batch of the next round of all ranks."""
    ranks: int
    ended: bool
    """Whether the last batch belonged to an incomplete round: after it come only batches of some sources."""
    members: list[dict[str, Any]]
    """For each source, the number of batches of its ended passes, and its windows, as JSON."""

    def to_json(self) -> dict[str, Any]:
        return self._asdict()

    def of_member(self, member: int, number: int, batch: int) -> Position:
        """Return the place in a pass of a source; at most so many of its batches were handed out."""
        saved = self.members[member]
        at = saved["windows"].get("0") if number == len(saved["passes"]) else None
        return Position(self.epoch + PASS * number, max(0, batch), None if at is None else Checkpoint(*at), 1)


Place = Position | MixPosition


@dataclass(slots=True)
class Progress:
    """Position of a running iteration; updated after each batch, read by `state_dict()`."""

    position: Place
    """Position after the last batch handed out."""
    at_window_end: bool = False
    """Whether the last batch handed out was the last of its window."""


def check_loader_schema(state: Any) -> None:
    """Raise OpError when a state is not that of a loader, or has another format."""
    check_schema("a loader", state, _FORM)


def check_changes(changes: str) -> None:
    """Raise OpError unless `changes` is one of the words that say how to treat changes."""
    if changes not in ("refuse", "accept"):
        raise OpError(f"load_state_dict: changes is {changes!r}, expected 'refuse' or 'accept'")


def check_start(start: Place, batches: int, assignment: Assignment, skips: Skips) -> None:
    """Raise OpError when a state is after the end of the epoch.

    States of older versions lie at the end of their round of all ranks, or of all ranks and workers.
    """
    after = skips.kept_before(start.batch) - skips.kept_before(batches)
    if after >= max(start.ranks, assignment.stride):
        of = f", taken on {start.ranks} ranks," if start.ranks > 1 else ""
        raise OpError(
            f"load_state_dict: the state{of} is after batch {start.batch - 1}, but the epoch has {batches} batches: "
            "it is damaged, or of other data"
        )


def check_step(start: Place, world_size: int, size: int) -> None:
    """Raise OpError when other ranks would go on inside a step of `size` batches whose totals are counted."""
    if start.ranks != world_size and start.batch % size:
        raise OpError(
            f"load_state_dict: batch {start.batch} is inside a step of {size} batches, whose totals would "
            f"count what {start.ranks} ranks have had\n  choose steps_of so that a step ends there"
        )


def check_schema(of: str, state: Any, schema: Mapping[str, Any]) -> None:
    """Raise OpError when a state has another format, or not the structure of a state of this format."""
    found = state.get("format", FORMAT) if isinstance(state, Mapping) else FORMAT
    if found != FORMAT:
        raise OpError(
            f"load_state_dict: the state has format {_shown(found)}, expected {FORMAT}\n"
            "  it was taken by another version of seqflow: go on with that one, or begin the epoch again"
        )
    if not matches_schema(state, {"format": is_count, **schema}):
        advice = "\n  found text: json.loads(text) first" if isinstance(state, str | bytes) else ""
        raise OpError(
            f"load_state_dict: this is not the state of {of}, expected what state_dict() gave{advice}"
        )


def check_streams(windows: Mapping[str, Any], streams: int) -> None:
    """Raise OpError when a state has windows of a stream that does not exist."""
    for stream in windows:
        if int(stream) >= streams:
            raise OpError(f"load_state_dict: the state has a window of stream {stream}, of {streams} streams")


def check_same_source(
    what: str,
    then: Mapping[str, Any],
    now: Mapping[str, Any],
    changes: str = "refuse",
    also: Collection[str] = (),
) -> set[str]:
    """Raise OpError when two states differ in settings, nets or files of the data; return the accepted sections.

    `also` are sections whose changes may be accepted here, besides those that always may.
    """
    before, after = ({**state["settings"], "data": state["data"]} for state in (then, now))
    return check_settings(before, after, changes, what, also)


def check_settings(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    changes: str,
    what: str = "load_state_dict: ",
    also: Collection[str] = (),
) -> set[str]:
    """Raise OpError, its message beginning with `what`, when settings differ; return the accepted sections."""
    found = list(differences(before, after))
    changed = {one.section for one in found if one.may_change or one.section in also}
    refused = [one for one in found if changes == "refuse" or one.section not in changed]
    if refused:
        can = len(changed) == len({one.section for one in found}) and what.startswith("load_state_dict")
        accept = _ADDED if "data" in changed else _ACCEPT
        advice = accept if can else _SIZES if refused[0].section in AT_BEGINNING else ""
        raise OpError(f"{what}{listed([one.text for one in refused])}{advice}")
    return changed


def check_prepared(
    what: str, state: Mapping[str, Any], changed: Collection[str], *, counts_rows: bool
) -> None:
    """Raise OpError when a changed `prepare` loses or repeats rows: batches are not rows of the source, and no window
    ends.
    """
    prepared = [name for name in ("prepare", "keep", "require") if name in changed]
    if not prepared or state["batch"] == 0:
        return
    # parts of jobs end where windows do: a job goes on with a mended net
    ends = [at["first_batch"] + at["batches"] for at in state["windows"].values()]
    if not (state["by_rows"] if counts_rows else ends == [state["batch"]]):
        raise OpError(
            f"{what}{prepared[0]} has changed since the state was saved, so the next row is unknown: the "
            "state is not at the end of a window\n  begin the epoch again: set_epoch(…)"
        )


AT_BEGINNING = ("batch", "window")
"""Settings that may change between two epochs, but not inside one."""
_SIZES = "\n  it may change where an epoch begins: finish this one with what it was, or begin it again: set_epoch(…)"
_ACCEPT = '\n  load_state_dict(state, changes="accept") goes on with what is new'
_ADDED = (
    '\n  load_state_dict(state, changes="accept") ends a begun epoch with the files of the state, and new ones join '
    "at the next\n  set_epoch(…) begins it again with all files"
)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
