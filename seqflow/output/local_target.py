"""LocalTarget: an output on this machine, whose parts have hidden names until the end of the run."""

import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from seqflow.errors import JobError
from seqflow.json_schema import matches_schema
from seqflow.output import unfinished
from seqflow.output.attempt_folders import remove_attempts
from seqflow.output.committed_files import (
    check_sizes,
    committed_path,
    join,
    locate,
    remove_committed,
    schema_of,
)
from seqflow.output.durable_files import remove_temporaries, sync_folder, write_bytes
from seqflow.output.file_writer import FileKind, FileWriter
from seqflow.output.lock import Lock
from seqflow.output.output_file import FORM, Batches, OutputFile, damaged_files
from seqflow.output.output_names import (
    MANIFEST,
    OutputNames,
    damaged_progress,
    names_in,
)
from seqflow.output.progress_file import Change, append_progress, parse_progress, write_progress
from seqflow.version import __version__


@dataclass(slots=True)
class LocalTarget:
    """A file, or a folder that holds `part-00000.parquet`, … and `_manifest.json`.

    Until the end of a run, its finished parts have hidden names, and a hidden progress file lists them. Then the old
    manifest is removed, the parts get their final names, the parts of an earlier run are removed, and the new
    manifest is written: a folder with a manifest is complete. From `prepare` to `leave`, no other run may write
    there.

    Each of these steps is on the disk before the next one. Under their final names, parts may lie in partition
    folders (`lang=python/`).
    """

    names: OutputNames
    _created: list[Path] = field(default_factory=list)
    _lock: Lock | None = None

    @property
    def shown(self) -> str:
        """Place of the output, as messages name it."""
        return str(self.names.path)

    @property
    def progress(self) -> str:
        """Place of the progress record, as messages name it."""
        return str(self.names.progress)

    def place(self, file: OutputFile) -> Path:
        """Return the final path of a file, or its URI."""
        return file.path

    @property
    def has_output(self) -> bool:
        """Whether there is a complete output: its manifest, or the file itself."""
        return (self.names.path if self.names.is_file else self.names.manifest).exists()

    @property
    def has_progress(self) -> bool:
        """Whether there is a progress record, from which another process can resume."""
        return self.names.progress.exists()

    def check(self) -> None:
        """Raise JobError when the folder cannot be made or written to, or holds data files of another origin."""
        above = [self.names.folder, *self.names.folder.absolute().parents]
        there = next(path for path in above if path.exists() or path.is_symlink())
        if not there.exists():
            raise JobError(f"output: {str(there)!r} is a broken symbolic link, expected a folder")
        if not there.is_dir():
            raise JobError(f"output: {str(there)!r} is a file, expected a folder")
        if not os.access(there, os.W_OK):
            raise JobError(f"output: the folder {str(there)!r} cannot be written to: permission denied")
        if self.names.folder.is_dir():
            self._check_folders()
            if not self.names.is_file:
                self._check_foreign()

    def prepare(self, *, takes_over: bool) -> None:
        """Create and lock the folder, and remove the temporary files of killed runs.

        Raises JobError when the folder holds data files of another origin, or another run is writing there. A store
        cannot tell a run that was killed from one that is writing: `takes_over` ends either.
        """
        self.check()
        try:
            self._lock = self._locked()
            # checked again under the lock: another run may have written files since
            if not self.names.is_file:
                self._check_foreign()
            records = "|".join(re.escape(path.name) for path in (self.names.manifest, self.names.progress))
            own = f"{re.escape(self.names.path.name)}|" if self.names.is_file else ""
            remove_temporaries(self.names.folder, f"(?:{own}{self.names.part_names}|{records})")
            remove_attempts(self.names.folder, re.escape(self.names.hidden(".tasks-").name))
        except BaseException:
            self.leave()
            raise

    def attempts_folder(self, run: str) -> Path:
        """Create a folder in which other processes write parts, or return where they leave them in a store."""
        folder = self.names.hidden(f".tasks-{run}")
        folder.mkdir()
        return folder

    def leave(self) -> None:
        """Release the lock, and remove the folders that `prepare` made if they are empty."""
        if self._lock is not None:
            self._lock.release()
        for folder in reversed(self._created):
            try:
                folder.rmdir()
            except OSError:
                return
            unfinished.discard(folder)

    def commit(self, writer: FileWriter, path: Path, batches: Batches | None = None) -> OutputFile:
        """Commit the closed file of a writer as the file that will have this path."""
        return writer.finish(committed_path(writer.piece), path, batches)

    def adopt(self, file: OutputFile, path: Path) -> OutputFile:
        """Commit a file that another process has finished, as the file that will have this path; return that one."""
        file.path.replace(committed_path(path))
        return replace(file, path=path)

    def sync(self) -> None:
        """Make commits last: after this they may be noted."""
        sync_folder(self.names.folder)

    def committed(self, files: Sequence[OutputFile]) -> list[Path]:
        """Return paths from which committed files can be read; raise JobError when one does not have its size."""
        paths = [committed_path(file.path) for file in files]
        check_sizes(files, paths)
        return paths

    def schema_of(self, files: Sequence[OutputFile], kind: FileKind) -> pa.Schema | None:
        """Return the schema of the first of these files that is committed and not installed; None without one."""
        hidden = (committed_path(file.path) for file in files)
        there = next((path for path in hidden if path.exists()), None)
        return None if there is None else schema_of(there, kind)

    def schema_of_final(self, file: OutputFile) -> pa.Schema:
        """Return the schema of a part of a complete output."""
        return schema_of(file.path, self.names.kind)

    def keep_committed(self, parts: Sequence[OutputFile]) -> None:
        """Remove all committed parts except these: a killed run has left them without noting them."""
        remove_committed(self.names.folder, self.names.part_names, {part.path.name for part in parts})

    def save_progress(self, content: Mapping[str, Any]) -> None:
        """Write the progress file; from now on the folder stays, even after an error."""
        write_progress(self.names.progress, {"seqflow": __version__, **content})
        for folder in self._created:
            unfinished.discard(folder)
        self._created.clear()

    def append_progress(self, change: Change, files: Sequence[OutputFile]) -> None:
        """Add committed files and other changes to the progress record."""
        extend = {**change.extend, "files": self.names.entries(files)}
        append_progress(self.names.progress, replace(change, extend=extend))

    def install(self, content: Mapping[str, Any]) -> list[OutputFile]:
        """Give the parts of a sealed progress file their final names; can be repeated after a crash at any step.

        The old manifest is removed first and the new one written last: an output with a manifest is complete.
        """
        parts = self.names.files(content["files"])
        self.names.manifest.unlink(missing_ok=True)
        # on the disk before any part changes: after a crash, an old manifest must not describe new parts
        sync_folder(self.names.folder)
        if self.names.is_file:
            join(parts, self.names.path, self.names.encoding, self._note_joined)
            parts = [self._joined()]
        else:
            self.give_names(parts)
        parts = [*self.names.files(content["former"]), *parts]
        # stale parts go after the new parts have their names: a crash between leaves too many files, never too few
        self.remove_parts(set(content["stale"]) - {self.names.name_of(part) for part in parts})
        if not self.names.is_file or "job" in content:
            manifest = self.names.manifest_of(parts, content)
            write_bytes(self.names.manifest, (json.dumps(manifest, indent=2) + "\n").encode())
        # last: until then, another process can repeat all of this
        self.names.progress.unlink(missing_ok=True)
        return parts

    def give_names(self, parts: Sequence[OutputFile]) -> None:
        """Rename committed parts to their final names."""
        hidden = [committed_path(self.names.folder / part.path.name) for part in parts]
        # a part without a hidden file was renamed before a crash
        check_sizes(
            parts,
            [here if here.exists() else part.path for part, here in zip(parts, hidden, strict=True)],
        )
        for part, here in zip(parts, hidden, strict=True):
            if here.exists():
                part.path.parent.mkdir(parents=True, exist_ok=True)
                here.replace(part.path)
        for folder in {
            self.names.folder,
            *(above for part in parts for above in self._folders_of(part.path)),
        }:
            sync_folder(folder)

    def remove_parts(self, names: Collection[str]) -> None:
        """Remove parts by their final names, and partition folders that become empty."""
        for name in names:
            path = self.names.folder / name
            path.unlink(missing_ok=True)
            for folder in self._folders_of(path):
                try:
                    folder.rmdir()
                except OSError:  # it holds other parts, or is already removed
                    break

    def _folders_of(self, part: Path) -> list[Path]:
        """Return the folders between a part and the folder of the output, innermost first."""
        return [above for above in part.parents if self.names.folder in above.parents]

    def abandon(self) -> None:
        """Remove the committed parts of an unfinished run, and its parts that already have their final names."""
        self.keep_committed(())
        content = self.read_progress()
        if content is not None and content["sealed"] and not self.names.is_file:
            self.names.manifest.unlink(missing_ok=True)
            self.remove_parts({*content["stale"], *(entry["name"] for entry in content["files"])})
        self.names.progress.unlink(missing_ok=True)

    def note(self, key: str, value: Any) -> None:
        """Set one entry of the progress record."""
        append_progress(self.names.progress, Change(set={key: value}))

    def damaged_commits(self, record: Mapping[str, Any]) -> list[OutputFile]:
        """Return the parts of a progress file that are intact under neither their hidden nor their final name."""
        parts = self.names.files(record["files"])
        joined = self._joined_in(record)
        if joined is not None and joined.is_at(self.names.path):
            return []
        found = locate(parts, self.names.folder)
        return [part for part, path in zip(parts, found, strict=True) if path is None]

    def damaged_files(self, record: Mapping[str, Any]) -> list[OutputFile]:
        """Return the files of a manifest that are missing or changed."""
        return damaged_files(self.names.files(record["files"]))

    def _note_joined(self, file: OutputFile) -> None:
        self.note("joined", file.to_json(self.names.folder))

    def _joined(self) -> OutputFile:
        """Return the file that was joined from all pieces."""
        file = self._joined_in(self.read_progress())
        if file is None:
            raise damaged_progress(self.progress)
        return file

    def _joined_in(self, record: Mapping[str, Any] | None) -> OutputFile | None:
        """Return the noted file of all pieces; None if none is noted."""
        found: Any = None if record is None else record.get("joined")
        file = OutputFile.from_json(self.names.folder, found) if matches_schema(found, FORM) else None
        return file if file is not None and file.path == self.names.path else None

    def read_manifest(self) -> dict[str, Any] | None:
        """Return the record of a complete output; None if it is missing or damaged."""
        path = self.names.path
        size = path.stat().st_size if self.names.is_file and path.exists() else None
        return self.names.manifest_in(_read(self.names.manifest, json.loads), size)

    def read_progress(self) -> dict[str, Any] | None:
        """Return the record of an incomplete output; None if it is missing or damaged."""
        return self.names.progress_in(_read(self.names.progress, parse_progress))

    def _locked(self) -> Lock:
        lock = Lock(self.names.hidden(".lock"), self.names.path)
        while True:
            self._make(self.names.folder)
            try:
                lock.acquire()
            except FileNotFoundError:  # a failed run has removed the folder in the meantime
                self._created.clear()
                continue
            return lock

    def _make(self, folder: Path) -> None:
        if not folder.exists():
            self._make(folder.parent)
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                why = (error.strerror or str(error)).lower()
                raise JobError(f"output: the folder {str(folder)!r} cannot be made: {why}") from None
            self._created.append(folder)
            unfinished.add(folder)

    def _check_folders(self) -> None:
        """Raise JobError when a folder has the name of a file of this output."""
        own = f"{re.escape(self.names.path.name)}|" if self.names.is_file else ""
        records = "|".join(re.escape(path.name) for path in (self.names.manifest, self.names.progress))
        names = re.compile(rf"{own}{records}|{self.names.part_names}|\.(?:{self.names.part_names})\.done")
        for path in self._entries():
            if names.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                raise JobError(
                    f"output: {str(path)!r} is a folder, expected a file of this output\n"
                    "  remove it, or choose another output"
                )

    def _entries(self) -> list[Path]:
        """Return the entries of the folder, and of its partition folders."""
        return [
            *self.names.folder.iterdir(),
            *(() if self.names.is_file else self.names.folder.glob("*=*/**/*")),
        ]

    def _check_foreign(self) -> None:
        """Raise JobError when the folder holds data files that neither its manifest nor its progress file lists."""
        named = names_in(self.read_manifest()) | names_in(self.read_progress())
        entries = self._entries()
        for path in entries:
            if "=" in path.name and path.is_symlink() and path.is_dir():
                raise JobError(
                    f"output: {str(path)!r} is a symbolic link, expected a folder of this output\n"
                    "  remove it, or choose an empty or new folder"
                )
        found = [
            path.relative_to(self.names.path).as_posix()
            for path in entries
            if path.suffix in (".parquet", ".arrow") and path.name[0] != "."
        ]
        foreign = sorted(set(found) - named)
        if foreign:
            raise JobError(
                f"output: the folder {str(self.names.path)!r} holds {foreign[0]!r}, which {MANIFEST} does not list\n"
                "  choose an empty or new folder"
            )


def _read(path: Path, parse: Callable[[str], Any]) -> Any:
    """Return the content of a record; None if it is missing or damaged."""
    if not path.is_file():  # reading a pipe would never end
        return None
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
