"""OutputNames: the names of an output's files in a folder of this machine, and the encoding of its records."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqflow.errors import JobError
from seqflow.json_schema import matches_schema
from seqflow.output.committed_files import piece_path
from seqflow.output.file_writer import FileEncoding, FileKind, FileWriter
from seqflow.output.output_file import FORM, OutputFile
from seqflow.output.progress_file import FORMAT
from seqflow.output.sorted_runs import RUN
from seqflow.version import __version__

MANIFEST, PROGRESS = "_manifest.json", ".progress.json"
_MANIFEST = {"columns": [str], "files": [FORM]}
_PROGRESS = {
    **_MANIFEST, "progress": lambda version: version == FORMAT,
    "are_runs": bool, "sealed": bool, "stale": [str], "former": [FORM],
}  # fmt: skip
"""Required entries of the records; records of jobs have more."""


@dataclass(frozen=True, slots=True)
class OutputNames:
    """Names of the files of an output: a folder of parts `part-00000.parquet`, …, or one file."""

    path: Path
    """The folder or file on this machine: the output itself, or its spool if it lies in a store."""
    encoding: FileEncoding
    is_file: bool

    @property
    def kind(self) -> FileKind:
        return self.encoding.kind

    @property
    def folder(self) -> Path:
        return self.path.parent if self.is_file else self.path

    @property
    def manifest(self) -> Path:
        """Record of a complete output; a hidden file next to a single file."""
        return self.hidden(".manifest.json") if self.is_file else self.path / MANIFEST

    @property
    def progress(self) -> Path:
        """Record of an incomplete output."""
        return self.hidden(PROGRESS)

    def hidden(self, name: str) -> Path:
        """Return a hidden file in the folder, or next to a single file, with the name of that file before `name`."""
        return self.path.with_name(f".{self.path.name}{name}") if self.is_file else self.path / name

    def file(self, number: int) -> Path:
        """Return the path of part `number`, or of piece `number` of a single file."""
        return piece_path(self.path, number) if self.is_file else self.path / f"part-{number:05}.{self.kind}"

    def run(self, number: int) -> Path:
        """Return the path of sorted run `number`."""
        name = f"run-{number:05}"
        return self.path.with_name(f"{self.path.name}.{name}") if self.is_file else self.path / name

    def new_part(self, number: int) -> FileWriter:
        """Return a writer of part `number`; its errors name the file that the user asked for."""
        piece = self.file(number)
        return FileWriter(self.path if self.is_file else piece, self.encoding, piece)

    def new_run(self, number: int) -> FileWriter:
        """Return a writer of sorted run `number`."""
        return FileWriter(self.path, RUN, self.run(number))

    @property
    def part_names(self) -> str:
        """Regular expression of the names of parts, pieces and sorted runs."""
        own = re.escape(self.path.name)
        return rf"{own}\.(?:part|run)-\d+(?:-\d+)?" if self.is_file else r"part-\d+\.\w+|run-\d+(?:-\d+)?"

    def name_of(self, file: OutputFile) -> str:
        """Return the path of a file in the folder: `lang=python/part-00000.parquet`."""
        return file.path.relative_to(self.folder).as_posix()

    def entries(self, files: Sequence[OutputFile]) -> list[dict[str, Any]]:
        """Return the entries of files in a record."""
        return [file.to_json(self.folder) for file in files]

    def files(self, entries: Sequence[Mapping[str, Any]]) -> list[OutputFile]:
        """Return the files that a record lists."""
        return [OutputFile.from_json(self.folder, entry) for entry in entries]

    def manifest_in(self, content: Any, size: int | None) -> dict[str, Any] | None:
        """Return a manifest of this output; None for anything else, or if a single file is not of its size."""
        found = self._checked(content, _MANIFEST)
        if found is None or not self.is_file:
            return found
        return found if [size] == [file["bytes"] for file in found["files"]] else None

    def progress_in(self, content: Any) -> dict[str, Any] | None:
        """Return a progress record of this output; None for anything else."""
        found = self._checked(content, _PROGRESS)
        return found if found is None or found["sealed"] or found["files"] else None

    def _checked(self, content: Any, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a record of a schema, whose files have names of parts of this output; None for anything else."""
        if isinstance(content, dict):
            content.setdefault("former", [])
        # records are untrusted: a name such as `../x` must not lead to files that are removed
        prefix = rf"{re.escape(self.path.name)}|" if self.is_file else r"(?:[^/]+=[^/]*/)*"
        names = re.compile(rf"{prefix}(?:{self.part_names})")
        return (
            content
            if matches_schema(content, schema) and all(map(names.fullmatch, names_in(content)))
            else None
        )

    def manifest_of(self, files: Sequence[OutputFile], content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the manifest of these files, for the progress record of the run that has written them."""
        return {
            "seqflow": __version__,
            "rows": sum(file.num_rows for file in files),
            "columns": content["columns"],
            "files": self.entries(files),
            **{
                key: content[key]
                for key in (
                    "partitions",
                    "counts",
                    "changes",
                    "job",
                    "made_by",
                    "input",
                    "appended",
                    "curated",
                    "too_short",
                )
                if key in content
            },
        }


def check_intact(shown: str, damaged: Sequence[OutputFile]) -> None:
    """Raise JobError, which names the output at `shown`, when some of its files are damaged."""
    if damaged:
        names = [repr(file.path.name) for file in damaged]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise JobError(
            f"output: files of {shown!r} are gone, or not as this job has written them: "
            f"{', '.join(names[:5])}{more}\n  --overwrite begins again; or choose another output"
        )


def damaged_progress(progress: str) -> JobError:
    """Return the error of a progress record that cannot be read; `progress` is its place."""
    return JobError(
        f"output: the progress file {progress!r} is damaged, or of no job\n  --overwrite begins again"
    )


def names_in(record: Mapping[str, Any] | None) -> set[str]:
    """Return the names of files in a manifest or progress record."""
    return (
        set()
        if record is None
        else {*record.get("stale", ()), *(entry["name"] for entry in (*record["former"], *record["files"]))}
    )
