"""The progress file of an output: a record, and behind it a line for each later change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from seqflow.json_form import has_form
from seqflow.output.durable_files import append_bytes, write_bytes

FORMAT = 3
"""What a part is, and how the file is written; it rises when one of them changes. In 3 the plan cuts parts, and lines
are appended; before, parts were cut by the bytes that came out, and the file was written anew each time."""
_ADDITION = {"set": Mapping, "update": Mapping, "extend": Mapping}


@dataclass(frozen=True, slots=True)
class Change:
    """What has changed in a record: entries that are set, and objects and lists that get more entries."""

    set: Mapping[str, Any] = field(default_factory=dict)
    update: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    extend: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class Note(Protocol):
    """What is noted of a run together with its files, so that another can go on behind them."""

    def whole(self) -> Mapping[str, Any]:
        """All of it."""
        ...

    def change(self) -> Change:
        """What has changed since it was last asked for."""
        ...


def write_progress(path: Path, record: Mapping[str, Any]) -> None:
    """Begin a progress file, or replace one, by a whole record."""
    write_bytes(path, _line({"progress": FORMAT, **record}))


def append_progress(path: Path, change: Change) -> None:
    """Add a change to a progress file."""
    append_bytes(path, _line(asdict(change)))


def parse_progress(content: str) -> Any:
    """The record of a progress file after all changes; ValueError where it is damaged.

    A last line without its end was being written when the run was killed: it does not count.
    """
    lines = content.split("\n")
    if len(lines) == 1:  # the record is replaced as a whole, so this is none
        raise ValueError("the record has no end")
    record = json.loads(lines[0])
    for line in lines[1:-1]:
        _add(record, json.loads(line))
    return record


def _add(record: Any, addition: Any) -> None:
    if not isinstance(record, dict) or not has_form(addition, _ADDITION):
        raise ValueError("a line is no change of the record")
    record.update(addition["set"])
    for key, entries in addition["update"].items():
        if not isinstance(record.get(key), dict) or not isinstance(entries, dict):
            raise ValueError(f"{key!r} cannot be updated")
        record[key].update(entries)
    for key, entries in addition["extend"].items():
        if not isinstance(record.get(key), list) or not isinstance(entries, list):
            raise ValueError(f"{key!r} cannot be extended")
        record[key] += entries


def _line(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content) + "\n").encode()
