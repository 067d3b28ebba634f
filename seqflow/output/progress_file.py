"""The progress file of an output: one line for the whole record, then a line for each later change."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from seqflow.json_schema import matches_schema
from seqflow.output.durable_files import append_bytes, write_bytes

FORMAT = 3
"""Version of the meaning of a part and of the schema of the file."""
_ADDITION = {"set": Mapping, "update": Mapping, "extend": Mapping}


@dataclass(frozen=True, slots=True)
class Change:
    """Change of a record: entries that are set, and objects and lists that get more entries."""

    set: Mapping[str, Any] = field(default_factory=dict)
    update: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    extend: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class Note(Protocol):
    """Protocol: the facts of a run that are noted together with its files, so that another process can continue after
    them.
    """

    def whole(self) -> Mapping[str, Any]:
        """Return all facts."""
        ...

    def change(self) -> Change:
        """Return the changes since the last call of `whole` or `change`."""
        ...


def write_progress(path: Path, record: Mapping[str, Any]) -> None:
    """Begin a progress file, or replace one, with a whole record."""
    write_bytes(path, _line({"progress": FORMAT, **record}))


def append_progress(path: Path, change: Change) -> None:
    """Add a change to a progress file."""
    append_bytes(path, _line(asdict(change)))


def parse_progress(content: str) -> Any:
    """Return the record of a progress file after all changes; raise ValueError when the file is damaged.

    A last line without its end is ignored: the run was killed while it was written.
    """
    lines = content.split("\n")
    # a whole record is written atomically: one without its end is damaged, not cut short by a killed run
    if len(lines) == 1:
        raise ValueError("the record has no end")
    record = json.loads(lines[0])
    for line in lines[1:-1]:
        add_change(record, json.loads(line))
    return record


def add_change(record: Any, addition: Any) -> None:
    """Apply a change, read from JSON, to a record; raise ValueError when it is damaged."""
    if not isinstance(record, dict) or not matches_schema(addition, _ADDITION):
        raise ValueError("a line is not a change of the record")
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
