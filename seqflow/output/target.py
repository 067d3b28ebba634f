"""Target: the place of an output, on this machine or in an object store, with the records of its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from seqflow.output.file_writer import FileKind, FileWriter
from seqflow.output.output_file import Batches, OutputFile
from seqflow.output.output_names import OutputNames
from seqflow.output.progress_file import Change
from seqflow.output.store_attempts import StoreAttempts


class Target(Protocol):
    """Protocol: a file, or a folder that holds `part-00000.parquet`, … and a manifest.

    Until the end of a run its finished parts are committed, and a progress record lists them. `install` completes the
    output: one with a manifest is complete. From `prepare` to `leave`, no other run may write there.
    """

    @property
    def names(self) -> OutputNames: ...

    @property
    def shown(self) -> str:
        """Place of the output, as messages name it."""
        ...

    @property
    def progress(self) -> str:
        """Place of the progress record, as messages name it."""
        ...

    def place(self, file: OutputFile) -> Path | str:
        """Return the final path or URI of a file."""
        ...

    # The state of the output

    @property
    def has_output(self) -> bool:
        """Whether there is a complete output: its manifest, or the file itself."""
        ...

    @property
    def has_progress(self) -> bool:
        """Whether there is a progress record, from which another process can resume."""
        ...

    @property
    def is_unfinished(self) -> bool:
        """Whether a run has not ended, or was killed."""
        ...

    def find_unfinished(self) -> Sequence[str]:
        """Return paths of records of runs that have not ended; the path of this output is a pattern for theirs."""
        ...

    def read_manifest(self) -> dict[str, Any] | None:
        """Return the record of a complete output; None if it is missing or damaged."""
        ...

    def read_progress(self) -> dict[str, Any] | None:
        """Return the record of an incomplete output; None if it is missing or damaged."""
        ...

    @property
    def earlier_format(self) -> str | None:
        """Version of seqflow that wrote an existing progress record in an older form; None if there is none."""
        ...

    def damaged_files(self, record: Mapping[str, Any]) -> list[OutputFile]:
        """Return the files of a manifest that are missing or changed."""
        ...

    def damaged_commits(self, record: Mapping[str, Any]) -> list[OutputFile]:
        """Return the parts of a progress record that are intact under none of their names."""
        ...

    # One run at a time

    def check(self) -> None:
        """Raise JobError when the output cannot be written, or its place holds data files of another origin."""
        ...

    def prepare(self, *, takes_over: bool) -> None:
        """Keep other runs away, and remove what killed runs have left; raise JobError when another run is writing.

        A store cannot tell a run that was killed from one that is writing: `takes_over` ends either.
        """
        ...

    def leave(self) -> None:
        """Let other runs write, and remove what is not finished."""
        ...

    def attempts_folder(self, run: str) -> Path | StoreAttempts:
        """Create a folder in which other processes write parts, or return where they leave them in a store."""
        ...

    # Parts

    def commit(self, writer: FileWriter, path: Path, batches: Batches | None = None) -> OutputFile:
        """Commit the closed file of a writer as the file that will have this path."""
        ...

    def adopt(self, file: OutputFile, path: Path) -> OutputFile:
        """Commit a file that another process has finished, as the file that will have this path; return that one."""
        ...

    def sync(self) -> None:
        """Make commits last: after this they may be noted."""
        ...

    def committed(self, files: Sequence[OutputFile]) -> list[Path]:
        """Return paths from which committed files can be read; raise JobError when one does not have its size."""
        ...

    def schema_of(self, files: Sequence[OutputFile], kind: FileKind) -> pa.Schema | None:
        """Return the schema of the first of these committed files that is not installed yet; None without one."""
        ...

    def schema_of_final(self, file: OutputFile) -> pa.Schema:
        """Return the schema of a part of a complete output."""
        ...

    def keep_committed(self, parts: Sequence[OutputFile]) -> None:
        """Remove all committed parts except these: a killed run has left them without noting them."""
        ...

    # The record

    def save_progress(self, content: Mapping[str, Any]) -> None:
        """Write the whole progress record; from now on it stays, even after an error."""
        ...

    def append_progress(self, change: Change, files: Sequence[OutputFile]) -> None:
        """Add committed files and other changes to the progress record."""
        ...

    def note(self, key: str, value: Any) -> None:
        """Set one entry of the progress record."""
        ...

    def stale_parts(self) -> list[str]:
        """Return the names of the parts of an earlier run, from its manifest."""
        ...

    # The end

    def install(self, content: Mapping[str, Any]) -> list[OutputFile]:
        """Complete the output of a sealed progress record; can be repeated after a crash at any step."""
        ...

    def abandon(self) -> None:
        """Remove the committed parts of an unfinished run, and its record."""
        ...
