"""Target: the place of an output, a file or a folder of part files, with its manifest and progress file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seqflow.errors import JobError
from seqflow.json_form import has_form
from seqflow.output import unfinished
from seqflow.output.attempt_folders import remove_attempts
from seqflow.output.committed_files import (
    check_sizes,
    committed_path,
    join,
    locate,
    piece_path,
    remove_committed,
)
from seqflow.output.durable_files import remove_temporaries, sync_folder, write_bytes
from seqflow.output.file_writer import FileForm, FileKind, FileWriter
from seqflow.output.lock import Lock
from seqflow.output.output_file import FORM, OutputFile, damaged_files
from seqflow.output.progress_file import FORMAT, Change, append_progress, parse_progress, write_progress
from seqflow.output.sorted_runs import RUN
from seqflow.version import __version__

MANIFEST, PROGRESS = "_manifest.json", ".progress.json"
_MANIFEST = {"columns": [str], "files": [FORM]}
_OLD_PROGRESS = {**_MANIFEST, "are_runs": bool, "sealed": bool, "stale": [str], "former": [FORM]}
_PROGRESS = {**_OLD_PROGRESS, "progress": lambda form: form == FORMAT}
"""Required entries of the records; records of jobs have more."""


@dataclass(slots=True)
class Target:
    """A file, or a folder that holds `part-00000.parquet`, … and `_manifest.json`.

    Until the end of a run, its finished parts have hidden names, and a hidden progress file lists them. Then the old
    manifest is removed, the parts get their final names, the parts of an earlier run are removed, and the new
    manifest is written: a folder with a manifest is complete. From `prepare` to `leave`, no other run may write
    there.

    Each of these steps is on the disk before the next one. Under their final names, parts may lie in partition
    folders (`lang=python/`).
    """

    path: Path
    form: FileForm
    is_file: bool
    _created: list[Path] = field(default_factory=list)
    _lock: Lock | None = None

    @property
    def kind(self) -> FileKind:
        return self.form.kind

    @property
    def folder(self) -> Path:
        return self.path.parent if self.is_file else self.path

    @property
    def manifest(self) -> Path:
        """Record of a complete output; a hidden file next to a single file."""
        return self._hidden(".manifest.json") if self.is_file else self.path / MANIFEST

    @property
    def progress(self) -> Path:
        """Record of an incomplete output."""
        return self._hidden(PROGRESS)

    def _hidden(self, name: str) -> Path:
        """Return a hidden file in the folder, or next to a single file, with the name of that file before `name`."""
        return self.path.with_name(f".{self.path.name}{name}") if self.is_file else self.path / name

    @property
    def has_record(self) -> bool:
        """Whether an earlier run has left a file, a manifest or a progress file."""
        there = (self.path,) if self.is_file else ()
        return any(path.exists() for path in (*there, self.manifest, self.progress))

    @property
    def signs(self) -> tuple[Path, Path]:
        """Files of which one exists while a run has not ended, or was killed: progress file and lock."""
        return self.progress, self._hidden(".lock")

    def check(self) -> None:
        """Raise JobError when the folder cannot be made or written to, or holds data files of another origin."""
        above = [self.folder, *self.folder.absolute().parents]
        there = next(path for path in above if path.exists() or path.is_symlink())
        if not there.exists():
            raise JobError(f"output: {str(there)!r} is a broken symbolic link, expected a folder")
        if not there.is_dir():
            raise JobError(f"output: {str(there)!r} is a file, expected a folder")
        if not os.access(there, os.W_OK):
            raise JobError(f"output: the folder {str(there)!r} cannot be written to: permission denied")
        if self.folder.is_dir():
            self._check_folders()
            if not self.is_file:
                self._check_foreign()

    def prepare(self) -> None:
        """Create and lock the folder, and remove the temporary files of killed runs.

        Raises JobError when the folder holds data files of another origin, or another run is writing there.
        """
        self.check()
        try:
            self._lock = self._locked()
            # checked again under the lock: another run may have written files since
            if not self.is_file:
                self._check_foreign()
            records = "|".join(re.escape(path.name) for path in (self.manifest, self.progress))
            own = f"{re.escape(self.path.name)}|" if self.is_file else ""
            remove_temporaries(self.folder, f"(?:{own}{self._part_names}|{records})")
            remove_attempts(self.folder, re.escape(self._hidden(".tasks-").name))
        except BaseException:
            self.leave()
            raise

    def attempts_folder(self, run: str) -> Path:
        """Create a folder in which other processes write parts."""
        folder = self._hidden(f".tasks-{run}")
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

    def file(self, number: int) -> Path:
        """Return the path of part `number`, or of piece `number` of a single file."""
        return piece_path(self.path, number) if self.is_file else self.path / f"part-{number:05}.{self.kind}"

    def new_part(self, number: int) -> FileWriter:
        """Return a writer of part `number`; its errors name the file that the user asked for."""
        piece = self.file(number)
        return FileWriter(self.path if self.is_file else piece, self.form, piece)

    def new_run(self, number: int) -> FileWriter:
        """Return a writer of sorted run `number`."""
        return FileWriter(self.path, RUN, self.run(number))

    def run(self, number: int) -> Path:
        """Return the path of sorted run `number`."""
        name = f"run-{number:05}"
        return self.path.with_name(f"{self.path.name}.{name}") if self.is_file else self.path / name

    def keep_committed(self, parts: Sequence[OutputFile]) -> None:
        """Remove all committed parts except these: a killed run has left them without noting them."""
        remove_committed(self.folder, self._part_names, {part.path.name for part in parts})

    def save_progress(self, content: Mapping[str, Any]) -> None:
        """Write the progress file; from now on the folder stays, even after an error."""
        write_progress(self.progress, {"seqflow": __version__, **content})
        for folder in self._created:
            unfinished.discard(folder)
        self._created.clear()

    def append_progress(self, change: Change, files: Sequence[OutputFile]) -> None:
        """Add committed files and other changes to the progress file."""
        entries = [file.to_json(self.folder) for file in files]
        append_progress(self.progress, replace(change, extend={**change.extend, "files": entries}))

    def install(self, content: Mapping[str, Any]) -> list[OutputFile]:
        """Give the parts of a sealed progress file their final names; can be repeated after a crash at any step.

        The old manifest is removed first and the new one written last: an output with a manifest is complete.
        """
        parts = self.files(content)
        self.manifest.unlink(missing_ok=True)
        # on the disk before any part changes: after a crash, an old manifest must not describe new parts
        sync_folder(self.folder)
        if self.is_file:
            join(parts, self.path, self.form, lambda file: self.note("joined", file.to_json(self.folder)))
            parts = [self._joined()]
        else:
            self.give_names(parts)
        parts = [*self.files({"files": content["former"]}), *parts]
        # stale parts go after the new parts have their names: a crash between leaves too many files, never too few
        self.remove_parts(set(content["stale"]) - {self._name(part) for part in parts})
        if not self.is_file or "job" in content:
            self._write_manifest(parts, content)
        # last: until then, another process can repeat all of this
        self.progress.unlink(missing_ok=True)
        return parts

    def give_names(self, parts: Sequence[OutputFile]) -> None:
        """Rename committed parts to their final names."""
        hidden = [committed_path(self.folder / part.path.name) for part in parts]
        # a part without a hidden file was renamed before a crash
        check_sizes(
            parts,
            [here if here.exists() else part.path for part, here in zip(parts, hidden, strict=True)],
        )
        for part, here in zip(parts, hidden, strict=True):
            if here.exists():
                part.path.parent.mkdir(parents=True, exist_ok=True)
                here.replace(part.path)
        for folder in {self.folder, *(above for part in parts for above in self._folders_of(part.path))}:
            sync_folder(folder)

    def remove_parts(self, names: Collection[str]) -> None:
        """Remove parts by their final names, and partition folders that become empty."""
        for name in names:
            path = self.folder / name
            path.unlink(missing_ok=True)
            for folder in self._folders_of(path):
                try:
                    folder.rmdir()
                except OSError:  # it holds other parts, or is already removed
                    break

    def _folders_of(self, part: Path) -> list[Path]:
        """Return the folders between a part and the folder of the output, innermost first."""
        return [above for above in part.parents if self.folder in above.parents]

    def _name(self, part: OutputFile) -> str:
        return part.path.relative_to(self.folder).as_posix()

    def abandon(self) -> None:
        """Remove the committed parts of an unfinished run, and its parts that already have their final names."""
        self.keep_committed(())
        content = self.read_progress()
        if content is not None and content["sealed"] and not self.is_file:
            self.manifest.unlink(missing_ok=True)
            self.remove_parts({*content["stale"], *(entry["name"] for entry in content["files"])})
        self.progress.unlink(missing_ok=True)

    def files(self, record: Mapping[str, Any]) -> list[OutputFile]:
        """Return the files that a manifest or progress file lists."""
        return [OutputFile.from_json(self.folder, entry) for entry in record["files"]]

    def note(self, key: str, value: Any) -> None:
        """Set one entry of the progress file."""
        append_progress(self.progress, Change(set={key: value}))

    def damaged_commits(self, record: Mapping[str, Any]) -> list[OutputFile]:
        """Return the parts of a progress file that are intact under neither their hidden nor their final name."""
        parts = self.files(record)
        joined = record.get("joined")
        if joined is not None and has_form(joined, FORM):
            file = OutputFile.from_json(self.folder, joined)
            if file.path == self.path and file.is_at(self.path):
                return []
        found = locate(parts, self.folder)
        return [part for part, path in zip(parts, found, strict=True) if path is None]

    def damaged_files(self, record: Mapping[str, Any], *, whole: bool = False) -> list[OutputFile]:
        """Return the files of a manifest that are missing or changed."""
        return damaged_files(self.files(record), whole=whole)

    def _joined(self) -> OutputFile:
        """Return the file that was joined from all pieces."""
        record = self.read_progress()
        assert record is not None
        return OutputFile.from_json(self.folder, record["joined"])

    def stale_parts(self) -> list[str]:
        """Return the parts of an earlier run, from its manifest."""
        return [] if self.is_file else sorted(_names_in(self.read_manifest()))

    def read_manifest(self) -> dict[str, Any] | None:
        """Return the record of a complete output; None if it is missing or damaged."""
        return self._read(self.manifest, _MANIFEST)

    def read_progress(self) -> dict[str, Any] | None:
        """Return the record of an incomplete output; None if it is missing or damaged."""
        content = self._read(self.progress, _PROGRESS, parse_progress)
        return content if content is None or content["sealed"] or content["files"] else None

    @property
    def earlier_format(self) -> str | None:
        """Version of seqflow that wrote an existing progress file in an older form; None if there is none."""
        content = self._read(self.progress, _OLD_PROGRESS)
        if content is None or "progress" in content:
            return None
        return str(content.get("seqflow", "an older version"))

    def _read(
        self, path: Path, form: Mapping[str, Any], parse: Callable[[str], Any] = json.loads
    ) -> dict[str, Any] | None:
        """Read JSON of a form, whose files have names of parts of this output; return None for anything else."""
        if not path.is_file():  # reading a pipe would never end
            return None
        try:
            content = parse(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if isinstance(content, dict):
            content.setdefault("former", [])
        # records are untrusted: a name such as `../x` must not lead to files that `remove_parts` removes
        prefix = rf"{re.escape(self.path.name)}|" if self.is_file else r"(?:[^/]+=[^/]*/)*"
        names = re.compile(rf"{prefix}(?:{self._part_names})")
        return content if has_form(content, form) and all(map(names.fullmatch, _names_in(content))) else None

    @property
    def _part_names(self) -> str:
        own = re.escape(self.path.name)
        return rf"{own}\.(?:part|run)-\d+(?:-\d+)?" if self.is_file else r"part-\d+\.\w+|run-\d+(?:-\d+)?"

    def _locked(self) -> Lock:
        lock = Lock(self.signs[1], self.path)
        while True:
            self._make(self.folder)
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
        own = f"{re.escape(self.path.name)}|" if self.is_file else ""
        records = "|".join(re.escape(path.name) for path in (self.manifest, self.progress))
        names = re.compile(rf"{own}{records}|{self._part_names}|\.(?:{self._part_names})\.done")
        for path in self._entries():
            if names.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                raise JobError(
                    f"output: {str(path)!r} is a folder, expected a file of this output\n"
                    "  remove it, or choose another output"
                )

    def _entries(self) -> list[Path]:
        """Return the entries of the folder, and of its partition folders."""
        return [*self.folder.iterdir(), *(() if self.is_file else self.folder.glob("*=*/**/*"))]

    def _check_foreign(self) -> None:
        """Raise JobError when the folder holds data files that neither its manifest nor its progress file lists."""
        named = _names_in(self.read_manifest()) | _names_in(self.read_progress())
        entries = self._entries()
        for path in entries:
            if "=" in path.name and path.is_symlink() and path.is_dir():
                raise JobError(
                    f"output: {str(path)!r} is a symbolic link, expected a folder of this output\n"
                    "  remove it, or choose an empty or new folder"
                )
        found = [
            path.relative_to(self.path).as_posix()
            for path in entries
            if path.suffix in (".parquet", ".arrow") and path.name[0] != "."
        ]
        foreign = sorted(set(found) - named)
        if foreign:
            raise JobError(
                f"output: the folder {str(self.path)!r} holds {foreign[0]!r}, which {MANIFEST} does not list\n"
                "  choose an empty or new folder"
            )

    def _write_manifest(self, files: Sequence[OutputFile], content: Mapping[str, Any]) -> None:
        manifest: dict[str, Any] = {
            "seqflow": __version__,
            "rows": sum(file.num_rows for file in files),
            "columns": content["columns"],
            "files": [file.to_json(self.folder) for file in files],
            **{
                key: content[key]
                for key in ("partitions", "counts", "changes", "job", "made_by", "input", "appended")
                if key in content
            },
        }
        write_bytes(self.manifest, _as_json(manifest, indent=2))


def _as_json(record: Mapping[str, Any], indent: int) -> bytes:
    return (json.dumps(record, indent=indent) + "\n").encode()


def _names_in(record: Mapping[str, Any] | None) -> set[str]:
    """Return the names of files in a manifest or progress file."""
    return (
        set()
        if record is None
        else {*record.get("stale", ()), *(entry["name"] for entry in (*record["former"], *record["files"]))}
    )
