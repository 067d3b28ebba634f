"""ProgressLog: the numbered objects of an output in a store, which are its lock, its progress record and its fence.

Each object is created only if its number is free. A run claims the output with the next number, and each later change
of its record has a number of its own. When another run has claimed the output meanwhile, the next number is taken:
the run notices it, and stops.
"""

import json
import os
import re
import secrets
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import datetime
from typing import Any

from seqflow.errors import JobError
from seqflow.files.outputs import LOG
from seqflow.files.uris import join, split
from seqflow.files.writing import StoreWriter
from seqflow.json_schema import matches_schema
from seqflow.output.output_names import damaged_progress
from seqflow.output.progress_file import Change, add_change

_NUMBER = re.compile(r"(\d{8})\.json")
_ENTRY = {"owner": str, "ended": bool}
_MOST_CHANGES = 500
"""Changes after which the whole record is written again: a run that resumes reads so many objects at most."""


class ProgressLog:
    """The log of one output; `folder` is the URI of its objects, `shown` that of the output in messages."""

    def __init__(self, writer: StoreWriter, folder: str, shown: str) -> None:
        self._writer, self._folder, self._shown = writer, folder, shown
        started = datetime.now().isoformat(sep=" ", timespec="seconds")
        self._me = f"process {os.getpid()} on {socket.gethostname()}, since {started},"
        self._token = secrets.token_hex(8)
        self._numbers: list[int] = []
        """Numbers of the objects that exist, as far as this process knows."""
        self.record: dict[str, Any] | None = None
        """Record of an unfinished run."""
        self.is_damaged = False
        """Whether there is a record that cannot be read."""
        self.owner = ""
        """The run that has created the last object, and has not ended; empty if it has."""
        self.is_held = False
        """Whether this run has claimed the output, and no other one has meanwhile."""
        self.claim_number = 0
        self.has_begun = False
        """Whether a run has claimed the output before this one, and was killed or has failed."""
        self._num_changes = 0

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the record, which may be large: another process only asks whether this run holds the output."""
        return {**vars(self), "record": None, "_numbers": []}

    @property
    def has_record(self) -> bool:
        """Whether there is a record of an unfinished run, which may be damaged."""
        return self.is_damaged or self.record is not None

    def read(self) -> None:
        """Read the objects of all runs."""
        contents: list[bytes | None] = [None]
        while None in contents:  # a run has removed it meanwhile, because the next one has the whole record
            paths = self._listed()
            with ThreadPoolExecutor(16) as threads:
                contents = list(threads.map(self._writer.get, paths))
        entries = list(map(_parsed, contents))
        self._numbers = [int(_name(path)[:8]) for path in paths]
        self.record, self.owner, self.is_damaged = None, "", False
        wholes = [at for at, entry in enumerate(entries) if "record" in entry]
        # objects before the last whole record remain if a run was killed while it removed them
        first = wholes[-1] if wholes else 0
        try:
            for entry in entries[first:]:
                if "record" in entry:
                    self.record = entry["record"]
                elif self.record is not None and "change" in entry:
                    add_change(self.record, entry["change"])
        except ValueError:
            self.record, self.is_damaged = None, True
        span = self._numbers[first:]
        if {} in entries[first:] or span != list(range(span[0], span[0] + len(span)) if span else []):
            self.record, self.is_damaged = None, True
        last = entries[-1] if entries else None
        self.owner = "" if last is None or last.get("ended") else last.get("owner", "another process")
        self.has_begun = last is not None and not (last.get("ended") and "record" in last)

    def _listed(self, after: str = "") -> list[str]:
        """Return the objects in the order of their numbers; a killed run may have left its trial of a condition."""
        listed = [entry.path for entry in self._writer.list(self._folder, after)]
        return [path for path in listed if _NUMBER.fullmatch(_name(path))]

    def claim(self, *, takes_over: bool) -> None:
        """Claim the output for this run; raise JobError when another run has claimed it and has not ended.

        It is not known whether that run was killed: `takes_over` lets it stop at its next change.
        """
        self.read()
        if self.owner and not takes_over:
            raise JobError(
                f"output: {self.owner} is writing to {self._shown!r}, or was killed\n"
                "  wait for its end; --resume goes on with what it has finished, --overwrite begins again"
            )
        self.claim_number = self._numbers[-1] + 1 if self._numbers else 0
        try:
            self._add({})
        except _TakenError as error:
            raise JobError(
                f"output: {error} is writing to {self._shown!r}\n  wait for its end, or choose another output"
            ) from None
        self.is_held = True

    def save(self, record: Mapping[str, Any] | None, *, ended: bool = False) -> None:
        """Replace the record; remove the objects before it."""
        self._note({"record": record}, ended=ended)
        self.is_held = not ended
        self._num_changes = 0
        before, self._numbers = self._numbers[:-1], self._numbers[-1:]
        self._writer.delete(map(self._path, before))
        self.record = None if record is None else json.loads(json.dumps(record))

    def append(self, change: Change) -> None:
        """Change the record."""
        added = json.loads(json.dumps(asdict(change)))
        if self.record is None:
            raise damaged_progress(join(self._shown, LOG))
        add_change(self.record, added)
        self._num_changes += 1
        if self._num_changes > _MOST_CHANGES:
            self.save(self.record)
        else:
            self._note({"change": added})

    def release(self) -> None:
        """Let other runs write; what is recorded stays."""
        self._note({}, ended=True)
        self.is_held = False

    def check(self) -> None:
        """Raise JobError when another run has claimed the output."""
        later = self._listed(after=self._path(self._numbers[-1]))
        if later:
            self.is_held = False
            owner = _parsed(self._writer.get(later[-1])).get("owner", "another process")
            raise self._lost(owner)

    def is_last(self) -> bool:
        """Return whether the last object is of this run; a copy of this log in another process may ask."""
        listed = self._listed()
        return bool(listed) and _parsed(self._writer.get(listed[-1])).get("token") == self._token

    def _note(self, what: Mapping[str, Any], *, ended: bool = False) -> None:
        try:
            self._add(what, ended=ended)
        except _TakenError as error:
            self.is_held = False
            raise self._lost(str(error)) from None
        # a process that has slept through the end of another run finds its number free again
        self.check()

    def _add(self, what: Mapping[str, Any], *, ended: bool = False) -> None:
        """Create the next object; raise _TakenError, with its owner, when it exists."""
        number = self._numbers[-1] + 1 if self._numbers else 0
        entry = {"token": self._token, "owner": self._me, **what, "ended": ended}
        there = self._writer.create(self._path(number), (json.dumps(entry) + "\n").encode())
        if there is not None:
            raise _TakenError(_parsed(there).get("owner", "another process"))
        self._numbers.append(number)

    def _lost(self, owner: str) -> JobError:
        return JobError(
            f"output: another run has taken over {self._shown!r} meanwhile ({owner.rstrip(',')}): this one stops\n"
            "  what it finished stays, and the other run goes on from there or begins again"
        )

    def _path(self, number: int) -> str:
        return join(self._folder, f"{number:08}.json")


class _TakenError(Exception):
    """A number that another run has used; the text names the run."""


def _name(path: str) -> str:
    return split(path)[1].rpartition("/")[2]


def _parsed(content: bytes | None) -> dict[str, Any]:
    """Return an object of the log; an empty dict if it is damaged."""
    try:
        entry = json.loads(content or b"")
    except (ValueError, RecursionError):
        return {}
    return entry if matches_schema(entry, _ENTRY) else {}
