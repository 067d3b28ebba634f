"""Target: one output file, or a folder of part files with a manifest."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqflow.errors import JobError
from seqflow.output import unfinished
from seqflow.output.files import FileWriter, Kind, remove_temporaries, temporary_path
from seqflow.output.lock import Lock
from seqflow.version import __version__

MANIFEST = "_manifest.json"


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One finished file."""

    path: Path
    num_rows: int
    nbytes: int
    groups: tuple[int, ...]
    """The numbers of its row groups in the order of the whole output."""


@dataclass(slots=True)
class Target:
    """A file, or a folder that holds `part-00000.parquet`, … and `_manifest.json`.

    The manifest has the rows, bytes and row groups of each part. It is written last and removed first, so a folder
    with a manifest is complete. A later run replaces the parts that it names. From `prepare` to `leave` no other
    run may write there.
    """

    path: Path
    kind: Kind
    is_file: bool
    _created: list[Path] = field(default_factory=list)
    _lock: Lock | None = None

    @property
    def folder(self) -> Path:
        return self.path.parent if self.is_file else self.path

    def check(self) -> None:
        """JobError where the folder can't be made or written to, or holds data files of another origin."""
        there = next(path for path in (self.folder, *self.folder.absolute().parents) if path.exists())
        if not there.is_dir():
            raise JobError(f"output: {str(there)!r} is a file, expected a folder")
        if not os.access(there, os.W_OK):
            raise JobError(f"output: the folder {str(there)!r} cannot be written to: permission denied")
        if not self.is_file and self.folder.is_dir():
            self._earlier_parts()

    def prepare(self) -> None:
        """Make and lock the folder, and remove what killed runs left in it.

        JobError where it holds data files of another origin, or another run is writing there.
        """
        self.check()
        try:
            self._lock = self._locked()
            if not self.is_file:
                self._earlier_parts()
            names = re.escape(self.path.name) if self.is_file else rf"(?:part-\d+\.\w+|{re.escape(MANIFEST)})"
            remove_temporaries(self.folder, names)
        except BaseException:
            self.leave()
            raise

    def _locked(self) -> Lock:
        lock = Lock(self.folder / (f".{self.path.name}.lock" if self.is_file else ".lock"), self.path)
        while True:
            self._make(self.folder)
            try:
                lock.acquire()
            except FileNotFoundError:  # a run that failed has removed the folder meanwhile
                self._created.clear()
                continue
            return lock

    def file(self, number: int) -> Path:
        """Where part `number` will be."""
        return self.path if self.is_file else self.path / f"part-{number:05}.{self.kind}"

    def keep(self, writers: Sequence[FileWriter], columns: Sequence[str]) -> list[OutputFile]:
        """Give finished files their names, in place of those of an earlier run."""
        sizes = [writer.close() for writer in writers]
        files = [
            OutputFile(writer.path, writer.num_rows, size, tuple(writer.groups))
            for writer, size in zip(writers, sizes, strict=True)
        ]
        if self.is_file:
            writers[0].temporary.replace(self.path)
        else:
            self._replace_parts(writers, self._write_manifest(files, columns))
        for folder in self._created:
            unfinished.discard(folder)
        self._created.clear()
        return files

    def leave(self) -> None:
        """Release the lock, and remove the folders that `prepare` made, unless `keep` has filled them."""
        if self._lock is not None:
            self._lock.release()
        for folder in reversed(self._created):
            try:
                folder.rmdir()
            except OSError:
                return
            unfinished.discard(folder)

    def _make(self, folder: Path) -> None:
        if not folder.exists():
            self._make(folder.parent)
            folder.mkdir(exist_ok=True)
            self._created.append(folder)
            unfinished.add(folder)

    def _earlier_parts(self) -> list[Path]:
        """The parts an earlier run's manifest names."""
        named = _names_in(self.path / MANIFEST)
        found = [path for path in self.path.iterdir() if path.suffix in (".parquet", ".arrow")]
        foreign = sorted(path.name for path in found if path.name not in named and path.name[0] != ".")
        if foreign:
            raise JobError(
                f"output: the folder {str(self.path)!r} holds {foreign[0]!r}, which no {MANIFEST} names\n"
                "  choose an empty or new folder"
            )
        return [path for path in found if path.name in named]

    def _write_manifest(self, files: Sequence[OutputFile], columns: Sequence[str]) -> Path:

        content: dict[str, Any] = {
            "seqflow": __version__,
            "rows": sum(file.num_rows for file in files),
            "columns": list(columns),
            "files": [
                {"name": f.path.name, "rows": f.num_rows, "bytes": f.nbytes, "row_groups": list(f.groups)}
                for f in files
            ],
        }
        temporary = temporary_path(self.path / MANIFEST)
        unfinished.add(temporary)
        try:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def _replace_parts(self, writers: Sequence[FileWriter], manifest: Path) -> None:
        renamed: list[Path] = []
        try:
            stale = set(self._earlier_parts()) - {writer.path for writer in writers}
            (self.path / MANIFEST).unlink(missing_ok=True)
            for writer in writers:
                writer.temporary.replace(writer.path)
                renamed.append(writer.path)
            for path in stale:
                path.unlink()
            manifest.replace(self.path / MANIFEST)
        except BaseException:
            for path in (manifest, *renamed):
                path.unlink(missing_ok=True)
            raise


def _names_in(manifest: Path) -> set[str]:
    """The files a manifest of ours names; none where there is no such manifest."""
    try:
        return {file["name"] for file in json.loads(manifest.read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, LookupError, TypeError):
        return set()
