"""OutputFile: size and checksums of a finished file, which show damage."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqflow.json_schema import is_count, matches_schema
from seqflow.output.threads import in_threads

_END = 64 << 10
"""Bytes at each end of a file that the quick checksum covers."""
WHOLE_BYTES = 2 << 30
"""Complete files are read whole up to this many bytes in total; of larger outputs only both ends are read."""


FORM = {"name": str, "rows": is_count, "bytes": is_count, "row_groups": [is_count]}
"""Minimum schema of a file's entry in a record."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Range of batches that a file is made from."""

    start: Mapping[str, Any]
    """Position of the loader before the first of them, from its state."""
    stop: int | None
    """Number of the batch after the last of them; None if the run ended with them."""

    def to_json(self) -> dict[str, Any]:
        return {"from": dict(self.start), "to": self.stop}

    @classmethod
    def from_json(cls, entry: Any) -> "Batches | None":
        return cls(entry["from"], entry["to"]) if matches_schema(entry, _BATCHES) else None


def _is_place(start: Any) -> bool:
    """Return whether this is a place of a loader, whose part, and append, are counts if they are recorded."""
    return matches_schema(start, {"batch": is_count}) and all(
        is_count(start.get(name, 0)) for name in ("part", "append")
    )


_BATCHES = {"from": _is_place, "to": lambda value: value is None or is_count(value)}


@dataclass(frozen=True, slots=True)
class Checksums:
    """SHA-256, in hexadecimal digits."""

    whole: str
    ends: str
    """Checksum of the first and the last 64 KiB."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One finished file."""

    path: Path
    num_rows: int
    nbytes: int
    groups: tuple[int, ...]
    """Numbers of its row groups in the order of the whole output."""
    checksums: Checksums
    batches: Batches | None = None
    """Range of batches in the file; None if not contiguous or not recorded."""
    version: str = ""
    """Etag of the object in a store."""
    stored: str = ""
    """Name of its object in a store, if that is not its own: a worker has written it."""

    def to_json(self, folder: Path) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "name": self.path.relative_to(folder).as_posix(),
            "rows": self.num_rows,
            "bytes": self.nbytes,
            "row_groups": list(self.groups),
            "sha256": self.checksums.whole,
            "sha256_of_ends": self.checksums.ends,
        }
        if self.batches is not None:
            entry["batches"] = self.batches.to_json()
        place = {"etag": self.version, "stored": self.stored}
        return {**entry, **{key: value for key, value in place.items() if value}}

    @classmethod
    def from_json(cls, folder: Path, entry: Mapping[str, Any]) -> "OutputFile":
        checksums = Checksums(str(entry.get("sha256")), str(entry.get("sha256_of_ends")))
        return cls(
            folder / entry["name"], entry["rows"], entry["bytes"], tuple(entry["row_groups"]), checksums,
            Batches.from_json(entry.get("batches")), str(entry.get("etag", "")), str(entry.get("stored", "")),
        )  # fmt: skip

    def is_at(self, path: Path, *, whole: bool = True) -> bool:
        """Return whether a path has the content of this file: its size, and the checksum of all of it or of its
        ends.
        """
        try:
            if path.stat().st_size != self.nbytes or not path.is_file():
                return False
            return (
                checksum_of(path) == self.checksums.whole
                if whole
                else checksum_of_ends(path) == self.checksums.ends
            )
        except OSError:
            return False


def damaged_files(files: Sequence[OutputFile]) -> list[OutputFile]:
    """Return the files that are missing or changed; only both ends of large outputs are read."""
    whole = sum(file.nbytes for file in files) <= WHOLE_BYTES
    intact = in_threads(lambda file: file.is_at(file.path, whole=whole), files)
    return [file for file, is_intact in zip(files, intact, strict=True) if not is_intact]


def checksum_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_of_ends(path: Path) -> str:
    """Return the SHA-256 of the first and the last 64 KiB of a file."""
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(_END))
        file.seek(max(0, os.fstat(file.fileno()).st_size - _END))
        digest.update(file.read(_END))
        return digest.hexdigest()
