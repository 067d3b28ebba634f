"""Attempts at a part by other processes: their files have names that no other has, in a folder of the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from seqflow.output.attempt_folders import new_name
from seqflow.output.file_writer import FileWriter, Format
from seqflow.output.output_file import OutputFile
from seqflow.output.part_writer import FileLayout, PartWriter
from seqflow.output.sorted_runs import RUN
from seqflow.record import Record


@dataclass(frozen=True, slots=True)
class Attempt:
    """The files of one attempt at a part. Errors name the output that it is for."""

    folder: Path
    output: Path
    form: Format
    number: int
    """That of the part."""
    name: str = field(default_factory=new_name)

    def path(self, what: str) -> Path:
        """The path of a file."""
        return self.folder / f"{what}-{self.number:05}-{self.name}"

    def new_part(self, turn: int) -> FileWriter:
        """A writer of file `turn` of the part."""
        return FileWriter(self.output, self.form, self.path(f"part{turn}"))

    def new_run(self, group: int) -> FileWriter:
        """A writer of the sorted run of a row group."""
        return FileWriter(self.output, RUN, self.path(f"run{group}"))

    def write(
        self, layout: FileLayout, batches: Iterable[Record], *, inline: bool
    ) -> tuple[list[OutputFile], pa.Schema | None]:
        """Write the batches of the part; its finished files, and the schema of its batches, if it has any."""
        files: list[OutputFile] = []

        def finish(writer: FileWriter) -> None:
            files.append(writer.output_file(writer.piece))
            writer.rename(writer.piece)

        writer = PartWriter(layout, self, inline=inline)
        try:
            for batch in batches:
                writer.write(batch)
                del batch  # its memory is the writer's now
            writer.close(finish)
        finally:
            writer.groups.discard()
        return files, writer.schema
